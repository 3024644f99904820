#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/sandbox/sandbox_private.h"
#include "base/log.h"
#include "base/mem.h"

/*
 * A box is held by its sandboxes until it is over, and frees itself from the loop, so that a
 * handler may end it while one of its frames is being read.
 */

#define STOP_MS           3000 /* after a stop: the box has gone astray */
#define COMPLAINT_MAX     4000
#define FLOOD_MAX         (256u << 20) /* bytes in a second */
#define MEASURE_MS        5000         /* while commands run */
#define MAX_WAITING       (64u << 20)
#define WORD_MAX          (128u << 10)
#define INPUT_MAX         (16u << 20)

#define INPUT_WAITING_MAX (1u << 20) /* of a job */
#define PROGRAM_INPUT_MAX (16u << 20)

/* ---- the end ---- */

static void box_free(struct sandbox_box *b)
{
        if (b->folders >= 0)
                close(b->folders);
        if (b->status >= 0)
                close(b->status);
        buf_release(&b->from);
        buf_release(&b->complaint);
        buf_release(&b->waiting);
        free(b->signature);
        free(b);
}

/* From the loop, so that none of its frames is being read. */
static void on_released(void *arg)
{
        struct sandbox_box *b = arg;

        b->released = true;
        if (!b->measuring)
                box_free(b);
}

/* It is in no list any more. */
static void tell_exit(struct sandbox_run *r, const struct sandbox_result *result)
{
        timer_free(r->timer);
        if (r->on.on_exit)
                r->on.on_exit(r->arg, result);
        free(r);
}

static void finish_run(struct sandbox_run *r, const struct sandbox_result *result)
{
        LIST_REMOVE(r, next);
        tell_exit(r, result);
}

static void box_over(struct sandbox_box *b, enum error_kind kind, const char *why)
{
        struct sandbox_run *r;

        if (b->over)
                return;
        b->over = true;
        LIST_REMOVE(b, next);
        timer_free(b->idle);
        timer_free(b->measure);
        egress_free(b->egress);
        b->egress = NULL;
        while ((r = LIST_FIRST(&b->runs))) {
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed ones have left the list */
                struct sandbox_result result = { -1, 0, r->kind ? r->kind : kind,
                                                 r->why[0] ? r->why : why };

                finish_run(r, &result);
        }
        loop_defer(b->all->loop, on_released, b);
}

void box_end(struct sandbox_box *b, enum error_kind kind, const char *why)
{
        if (b->over)
                return;
        process_abandon(b->process);
        b->process = NULL;
        box_over(b, kind, why);
}

/* Without the document with the exit code bwrap itself failed, not what ran in it. */
static bool says_exit_code(const struct sandbox_box *b)
{
        char text[2000];
        ssize_t n = b->status >= 0 ? read(b->status, text, sizeof(text) - 1) : -1;

        if (n <= 0)
                return b->status < 0; /* other kinds say nothing */
        text[n] = '\0';
        return strstr(text, "\"exit-code\"") != NULL;
}

static void on_ended(void *arg, const struct process_result *result)
{
        struct sandbox_box *b = arg;
        struct error err;

        (void)result;
        b->process = NULL;
        if (!b->ready) {
                refusal_explain(b->all->conf, b->complaint.data, &err);
                box_over(b, err.kind, err.text);
                return;
        }
        box_over(b, ERR_IO,
                 says_exit_code(b)
                         ? "the sandbox ended while this ran: a command killed its processes, or "
                           "memory ran out; the next command gets a new one"
                         : "the sandbox was killed from outside; the next command gets a new one");
}

/* ---- idleness and disk use ---- */

void box_touch(struct sandbox_box *b)
{
        timer_start(b->idle, b->all->conf->idle_seconds * 1000);
}

static void on_idle(void *arg)
{
        struct sandbox_box *b = arg;

        if (LIST_EMPTY(&b->runs))
                box_end(b, ERR_CANCELLED, "idle");
        else
                box_touch(b);
}

static void measure(void *arg)
{
        struct sandbox_box *b = arg;

        b->used_bytes = disk_use(b->folders, !b->measured);
}

static bool is_full(const struct sandbox_box *b)
{
        return b->all->conf->disk_mb > 0 && b->used_bytes >> 20 >= b->all->conf->disk_mb;
}

static const char *full_text(const struct sandbox_box *b, char *text, size_t size)
{
        snprintf(text, size,
                 "the channel's folder is full (%lld of %lld MiB): delete files, no command can "
                 "write until then",
                 (long long)(b->used_bytes >> 20), (long long)b->all->conf->disk_mb);
        return text;
}

static void stop_writers(struct sandbox_box *b)
{
        struct sandbox_run *r;
        char why[200];

        LIST_FOREACH(r, &b->runs, next)
                if (!r->no_writes)
                        run_stop(r, ERR_LIMIT, 0, full_text(b, why, sizeof(why)));
}

static void on_measured(void *arg)
{
        struct sandbox_box *b = arg;
        bool first = !b->measured;

        b->measuring = false;
        if (b->over) {
                if (b->released)
                        box_free(b);
                return;
        }
        b->measured = true;
        if (first) {
                process_write(b->process, b->waiting.data, b->waiting.len, NULL);
                buf_clear(&b->waiting);
        } else if (is_full(b)) {
                stop_writers(b);
        }
}

static void begin_measuring(struct sandbox_box *b)
{
        if (b->measuring || b->folders < 0)
                return;
        b->measuring = true;
        loop_work(b->all->loop, measure, on_measured, b);
}

static void on_measure(void *arg)
{
        struct sandbox_box *b = arg;

        if (!LIST_EMPTY(&b->runs))
                begin_measuring(b);
}

/* ---- frames ---- */

static struct sandbox_run *find_run(const struct sandbox_box *b, uint32_t id)
{
        struct sandbox_run *r;

        LIST_FOREACH(r, &b->runs, next)
                if (r->id == id)
                        return r;
        return NULL;
}

static void on_run_output(struct sandbox_run *r, int fd, const char *data, size_t n)
{
        const struct sandbox_conf *conf = r->box->all->conf;
        size_t fits = n < r->output_left ? n : r->output_left;
        struct sandbox_box *b = r->box;
        uint32_t id = r->id;
        char why[100];

        if (r->kind)
                return; /* it is being stopped */
        if (r->output_left != SIZE_MAX)
                r->output_left -= fits;
        if (fits > 0 && r->on.on_output)
                r->on.on_output(r->arg, fd, data, fits);
        if (fits == n || b->over || find_run(b, id) != r)
                return;
        snprintf(why, sizeof(why), "ended: it printed more than %lld KiB",
                 (long long)conf->output_kb);
        run_stop(r, ERR_LIMIT, 0, why);
}

/* What a signal or a shell's exit code says about our limits. */
static const char *limit_hit(const struct sandbox_box *b, const struct box_exit *e, char *text,
                             size_t size)
{
        const struct sandbox_conf *conf = b->all->conf;
        int signal = e->signal ? e->signal : e->code > 128 ? e->code - 128 : 0;

        switch (signal) {
        case SIGXCPU:
                snprintf(text, size, "it used more than %lld seconds of CPU time",
                         (long long)conf->cpu_seconds);
                return text;
        case SIGXFSZ:
                if (is_full(b))
                        return full_text(b, text, size);
                snprintf(text, size, "it wrote a file of more than %lld MiB",
                         (long long)conf->file_mb);
                return text;
        case SIGKILL:
                return "it was killed, perhaps because memory ran out";
        default:
                break;
        }
        if (e->killed > 0) {
                snprintf(text, size,
                         "it left %d processes running, which were ended; start a background job "
                         "to keep one running",
                         (int)e->killed);
                return text;
        }
        return NULL;
}

/* Its sandbox ends first, so that its owner may begin another one of the same key. */
static void finish_program(struct sandbox_run *r, const struct sandbox_result *result)
{
        LIST_REMOVE(r, next);
        box_end(r->box, ERR_CANCELLED, "the program of this sandbox has ended");
        tell_exit(r, result);
}

static void on_run_exit(struct sandbox_run *r, const struct box_exit *e)
{
        struct sandbox_box *b = r->box;
        char text[200];
        struct sandbox_result result = {
                .exit_code = e->signal ? -1 : e->code,
                .signal = e->signal,
                .kind = r->kind,
                .why = r->why[0] ? r->why
                       : r->kind ? NULL
                                 : limit_hit(b, e, text, sizeof(text)),
        };

        if (r->sort == RUN_PROGRAM) {
                finish_program(r, &result);
                return;
        }
        finish_run(r, &result);
        if (!b->over) {
                box_touch(b);
                begin_measuring(b);
        }
}

static void on_run_failed(struct sandbox_run *r, const char *data, size_t n)
{
        struct sandbox_result result = { -1, 0, ERR_IO, r->why };

        snprintf(r->why, sizeof(r->why), "%.*s", (int)n, data);
        if (r->sort == RUN_PROGRAM)
                finish_program(r, &result);
        else
                finish_run(r, &result);
}

static void on_frame(struct sandbox_box *b, const struct box_head *h, const char *data)
{
        struct sandbox_run *r = find_run(b, h->id);
        struct box_exit e;
        uint32_t took;

        if (h->type == BOX_READY)
                b->ready = true;
        if (!r)
                return;
        switch (h->type) {
        case BOX_OUT:
        case BOX_ERR:
                on_run_output(r, h->type == BOX_OUT ? 1 : 2, data, h->n);
                break;
        case BOX_TOOK:
                memcpy(&took, data, sizeof(took));
                r->input_waiting -= took < r->input_waiting ? took : r->input_waiting;
                break;
        case BOX_EXIT:
                memcpy(&e, data, sizeof(e));
                on_run_exit(r, &e);
                break;
        case BOX_FAILED:
                on_run_failed(r, data, h->n);
                break;
        default:
                break;
        }
}

/* The box sends far less; one that does not was taken over, and would keep us busy. */
static bool is_flooding(struct sandbox_box *b, size_t n)
{
        int64_t now = loop_now_ms(b->all->loop);

        if (now - b->window_ms >= 1000) {
                b->window_ms = now;
                b->window_bytes = 0;
        }
        b->window_bytes += n;
        return b->window_bytes > FLOOD_MAX;
}

static void on_output(void *arg, int fd, const char *bytes, size_t n)
{
        struct sandbox_box *b = arg;
        struct box_head h;
        const char *data;
        size_t consumed, done = 0;
        int rc = 0;

        if (fd == 2) {
                buf_add(&b->complaint, bytes, n);
                return;
        }
        if (is_flooding(b, n)) {
                box_end(b, ERR_PROTOCOL, "the sandbox sent too much at once and was ended");
                return;
        }
        buf_add(&b->from, bytes, n);
        while (!b->over) {
                struct buf rest = { b->from.data + done, b->from.len - done, 0, 0, false };

                rc = frame_next(&rest, &h, &data, &consumed);
                if (rc <= 0)
                        break;
                done += consumed;
                on_frame(b, &h, data);
        }
        buf_consume(&b->from, done);
        if (rc < 0 || b->from.overflow)
                box_end(b, ERR_PROTOCOL, "the sandbox broke its protocol and was ended");
}

void box_send(struct sandbox_box *b, const struct buf *frames)
{
        if (b->over)
                return;
        if (!b->measured)
                buf_add(&b->waiting, frames->data, frames->len);
        else if (process_write(b->process, frames->data, frames->len, NULL) < 0)
                process_stop(b->process); /* it no longer listens; its end is reported */
}

/* ---- the start ---- */

char *box_signature(const struct workspace_view *view)
{
        struct buf s;

        buf_init(&s, 0);
        for (size_t i = 0; view && i < view->count; i++) {
                const struct workspace_mount *m = &view->mounts[i];
                struct stat st = { 0 };

                fstat(m->fd, &st);
                buf_addf(&s, "%s %d %llu %llu\n", m->inside, m->writable,
                         (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
        }
        return buf_take(&s);
}

struct sandbox_box *box_find(struct sandboxes *all, const struct sandbox_key *key)
{
        char *signature = box_signature(key->view);
        struct sandbox_box *b;

        LIST_FOREACH(b, &all->boxes, next)
                if (b->conversation == key->conversation && strcmp(b->signature, signature) == 0)
                        break;
        free(signature);
        return b;
}

static void on_request(void *arg, const struct sandbox_request *request)
{
        const struct sandbox_box *b = arg;
        struct sandbox_request told = *request;

        told.conversation = b->conversation;
        log_info("sandbox request", LOG_I("conversation", b->conversation),
                 LOG_S("host", request->host), LOG_I("port", request->port),
                 LOG_S("refused", request->why), LOG_I("sent", request->sent),
                 LOG_I("received", request->received));
        if (b->all->on_request)
                b->all->on_request(b->all->request_arg, &told);
}

static struct process *start_process(struct sandbox_box *b, const struct sandbox_key *key,
                                     struct error *err)
{
        static const struct process_handlers handlers = { on_output, on_ended };
        struct sandbox_launch l;
        struct process *p;

        if (launch_prepare(&l, b->all->conf, key->view, err) < 0)
                return NULL;
        p = process_start(b->all->loop,
                          &(struct process_options){ .argv = l.argv,
                                                     .env = l.env,
                                                     .cwd = "/",
                                                     .max_output = SIZE_MAX,
                                                     .keep_stdin = true,
                                                     .max_waiting = MAX_WAITING,
                                                     .fds = l.fds,
                                                     .fd_count = l.fd_count },
                          &handlers, b, err);
        if (p) {
                b->status = l.status;
                l.status = -1;
        }
        if (p && l.egress >= 0) {
                b->egress = egress_new(b->all->loop, b->all->conf, l.egress, on_request, b);
                l.egress = -1;
        }
        launch_release(&l);
        return p;
}

struct sandbox_box *box_new(struct sandboxes *all, const struct sandbox_key *key, struct error *err)
{
        struct sandbox_box *b = mem_zalloc(sizeof(*b));

        b->all = all;
        b->conversation = key->conversation;
        b->signature = box_signature(key->view);
        b->status = -1;
        b->folders = key->view ? fcntl(key->view->channel_fd, F_DUPFD_CLOEXEC, 0) : -1;
        buf_init(&b->from, 2 * BOX_ANSWER_MAX + (1u << 16));
        buf_init(&b->complaint, COMPLAINT_MAX);
        buf_init(&b->waiting, MAX_WAITING);
        LIST_INIT(&b->runs);
        b->process = start_process(b, key, err);
        if (!b->process) {
                box_free(b);
                return NULL;
        }
        LIST_INSERT_HEAD(&all->boxes, b, next);
        b->idle = timer_new(all->loop, on_idle, b);
        timer_unref(b->idle);
        b->measure = timer_new(all->loop, on_measure, b);
        timer_unref(b->measure);
        b->measured = b->folders < 0;
        begin_measuring(b);
        timer_repeat(b->measure, MEASURE_MS);
        box_touch(b);
        return b;
}

/* ---- commands ---- */

static void on_run_timer(void *arg)
{
        struct sandbox_run *r = arg;
        char why[160];

        if (r->kind) {
                box_end(r->box, r->kind, "the command could not be ended, so its sandbox was");
                return;
        }
        snprintf(why, sizeof(why),
                 "ended after %lld seconds; start what takes longer as a background job",
                 (long long)(r->timeout_ms / 1000));
        run_stop(r, ERR_TIMEOUT, 500, why);
}

void run_stop(struct sandbox_run *r, enum error_kind kind, int64_t grace_ms, const char *why)
{
        uint32_t grace = (uint32_t)grace_ms;
        struct buf frames;

        if (r->kind)
                return;
        r->kind = kind;
        snprintf(r->why, sizeof(r->why), "%s", why ? why : "");
        timer_start(r->timer, grace_ms + STOP_MS);
        buf_init(&frames, 0);
        frame_add(&frames, r->id, BOX_STOP, &grace, sizeof(grace));
        box_send(r->box, &frames);
        buf_release(&frames);
}

/* bash -c, or the words themselves. */
static const char *const *command_words(const struct sandbox_command *c, const char *shell[4])
{
        if (c->argv)
                return c->argv;
        shell[0] = "bash";
        shell[1] = "-c";
        shell[2] = c->command;
        shell[3] = NULL;
        return shell;
}

static int check_command(const struct sandbox_command *c, struct error *err)
{
        /* the kernel's limit for one word */
        if (!c->argv && strlen(c->command) >= WORD_MAX)
                return error_set(err, ERR_LIMIT,
                                 "the command is longer than %u bytes: write it to a file and run "
                                 "that",
                                 WORD_MAX - 1);
        if (c->input_n > INPUT_MAX)
                return error_set(err, ERR_LIMIT, "the input is longer than %u MiB: use a file",
                                 INPUT_MAX >> 20);
        return 0;
}

static void add_input(struct buf *frames, uint32_t id, const struct sandbox_command *c)
{
        for (size_t at = 0; c->input && at < c->input_n;) {
                size_t n = c->input_n - at < BOX_REQUEST_MAX ? c->input_n - at : BOX_REQUEST_MAX;

                frame_add(frames, id, BOX_WRITE, c->input + at, n);
                at += n;
        }
}

static struct sandbox_run *run_new(struct sandbox_box *b, enum run_kind kind, bool any_output,
                                   const struct sandbox_handlers *h, void *arg)
{
        struct sandbox_run *r = mem_zalloc(sizeof(*r));

        r->box = b;
        r->id = ++b->last_id;
        r->on = *h;
        r->arg = arg;
        r->sort = kind;
        r->output_left = kind != RUN_COMMAND || any_output ? SIZE_MAX
                                                           : (size_t)b->all->conf->output_kb << 10;
        r->timer = timer_new(b->all->loop, on_run_timer, r);
        LIST_INSERT_HEAD(&b->runs, r, next);
        return r;
}

static int check_room(const struct sandbox_box *b, struct error *err)
{
        const struct sandbox_run *r;
        size_t n = 0;

        LIST_FOREACH(r, &b->runs, next)
                n++;
        if (n >= BOX_RUNS_MAX)
                return error_set(err, ERR_LIMIT, "%zu commands are running: wait for one to end",
                                 n);
        return 0;
}

static int64_t timeout_of(const struct sandboxes *all, const struct sandbox_command *c,
                          enum run_kind kind)
{
        if (kind == RUN_PROGRAM)
                return 0;
        if (c->timeout_ms)
                return c->timeout_ms;
        return 1000 * (kind == RUN_JOB ? all->conf->job_seconds : all->conf->timeout_seconds);
}

struct sandbox_run *run_start(struct sandboxes *all, const struct sandbox_key *key,
                              const struct sandbox_command *c, enum run_kind kind,
                              const struct sandbox_handlers *h, void *arg, struct error *err)
{
        struct sandbox_run *r = NULL;
        const char *shell[4];
        unsigned flags = 0;
        char *cwd = NULL;
        struct buf frames;
        struct sandbox_box *b;

        if (check_command(c, err) < 0)
                return NULL;
        b = box_find(all, key);
        if (!b)
                b = box_new(all, key, err);
        if (!b || check_room(b, err) < 0)
                return NULL;
        buf_init(&frames, 0);
        cwd = launch_folder(all->conf, key->view, c->cwd);
        if (kind != RUN_COMMAND || c->input)
                flags |= BOX_HAS_INPUT;
        if (is_full(b))
                flags |= BOX_NO_WRITES; /* it can still delete files */
        if (frame_add_run(&frames, b->last_id + 1, flags, cwd, command_words(c, shell), err) == 0) {
                r = run_new(b, kind, c->any_output, h, arg);
                r->no_writes = (flags & BOX_NO_WRITES) != 0;
                r->timeout_ms = timeout_of(all, c, kind);
                if (r->timeout_ms > 0)
                        timer_start(r->timer, r->timeout_ms);
                add_input(&frames, r->id, c);
                if (kind == RUN_COMMAND)
                        frame_add(&frames, r->id, BOX_CLOSE, "", 0);
                box_send(b, &frames);
                box_touch(b);
        }
        buf_release(&frames);
        free(cwd);
        return r;
}

int run_write(struct sandbox_run *r, const char *bytes, size_t n, bool close, struct error *err)
{
        size_t most = r->sort == RUN_PROGRAM ? PROGRAM_INPUT_MAX : INPUT_WAITING_MAX;
        struct buf frames;

        if (n > most - r->input_waiting)
                return error_set(err, ERR_LIMIT, "the program does not read its input");
        buf_init(&frames, 0);
        add_input(&frames, r->id, &(struct sandbox_command){ .input = bytes, .input_n = n });
        if (close)
                frame_add(&frames, r->id, BOX_CLOSE, "", 0);
        r->input_waiting += n;
        box_send(r->box, &frames);
        buf_release(&frames);
        return 0;
}
