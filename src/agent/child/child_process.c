/*
 * child_process: a program in a sandbox of its own, and the objects it sends.
 *
 * A line is parsed in its turn; long ones on a pool thread, so that the loop goes on. What is not
 * an object is skipped: programs print banners and warnings among their messages.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/child/child_private.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "net/json_queue.h"
#include "net/lines.h"
#include "net/stderr_tail.h"

#define WAITING_MAX (64u << 20) /* bytes that wait while a long line is parsed */
#define WHY_SIZE    400
#define LINE_KEPT   (1u << 20)

struct child_process {
        struct child_process_handlers on;
        void *arg;
        struct loop *loop;
        char *name;
        struct sandboxes *sandboxes;
        struct sandbox_run *run; /* NULL: it has ended */
        struct lines lines;
        struct buf line; /* what is parsed instead of one */
        struct json_queue *queue;
        struct stderr_tail errors;
        size_t received;
        uint64_t junk;
        bool over; /* freed, or broken: nothing more is read */
        bool freed;
        char *ended; /* why; told when the queue is empty */
};

static void on_freed(void *arg)
{
        struct child_process *p = arg;

        json_queue_free(p->queue);
        lines_release(&p->lines);
        buf_release(&p->line);
        stderr_tail_release(&p->errors);
        free(p->ended);
        free(p->name);
        free(p);
}

void child_process_free(struct child_process *p)
{
        if (!p)
                return;
        p->over = p->freed = true;
        sandbox_abandon(p->run);
        p->run = NULL;
        loop_defer(p->loop, on_freed, p); /* one of its lines may be being read */
}

static void break_off(struct child_process *p, enum error_kind kind, const char *why)
{
        if (p->over)
                return;
        p->over = true;
        if (p->run)
                sandbox_stop(p->run, 0);
        p->on.broken(p->arg, kind, why);
}

/* ---- lines ---- */

static void note_junk(struct child_process *p, const char *line, size_t n)
{
        stderr_tail_add(&p->errors, line, n); /* it may say why it ends */
        stderr_tail_add(&p->errors, "\n", 1);
        if (p->junk++ == 0)
                log_warn("agent sends what is no JSON object; it is skipped",
                         LOG_S("agent", p->name));
}

static void on_parsed(void *arg, json_t *root)
{
        struct child_process *p = arg;

        if (p->over)
                return;
        if (json_is_object(root))
                p->on.message(p->arg, root);
        else if (p->junk++ == 0)
                log_warn("agent sends what is no JSON object; it is skipped",
                         LOG_S("agent", p->name));
}

static void tell_end(struct child_process *p)
{
        char *why = p->ended;

        p->ended = NULL;
        p->over = true;
        p->on.ended(p->arg, why);
        free(why);
}

static void on_busy(void *arg, bool busy)
{
        struct child_process *p = arg;

        if (!busy && p->ended && !p->freed)
                tell_end(p);
}

static void parse_line(struct child_process *p, const char *line, size_t n)
{
        char *clean = NULL;
        int rc;

        p->received += n;
        if (!utf8_valid(line, n)) {
                clean = utf8_clean(line, n);
                line = clean;
                n = strlen(clean);
        }
        rc = json_queue_add(p->queue, line, n);
        free(clean);
        if (rc < 0)
                break_off(p, ERR_LIMIT, "it sends more than can be read");
}

static bool on_line(void *arg, const char *line, size_t n)
{
        struct child_process *p = arg;
        size_t skip = 0;
        int what;

        while (skip < n && isspace((unsigned char)line[skip]))
                skip++;
        if (skip == n)
                return true;
        if (line[skip] != '{') {
                note_junk(p, line, n);
                return true;
        }
        buf_clear(&p->line);
        what = p->on.line(p->arg, line + skip, n - skip, &p->line);
        if (what < 0 && !p->over)
                parse_line(p, line, n);
        else if (what > 0 && !p->over)
                parse_line(p, p->line.data, p->line.len);
        if (p->line.cap > LINE_KEPT) {
                buf_release(&p->line);
                buf_init(&p->line, 0);
        }
        return !p->over;
}

static void on_output(void *arg, int fd, const char *bytes, size_t n)
{
        struct child_process *p = arg;
        char why[80];

        if (fd == 2) {
                stderr_tail_add(&p->errors, bytes, n);
                return;
        }
        if (p->over || lines_add(&p->lines, bytes, n, on_line, p) == 0)
                return;
        snprintf(why, sizeof(why), "it sent a line over %zu KiB", p->lines.part.max >> 10);
        break_off(p, ERR_LIMIT, why);
}

/* ---- the end ---- */

char *child_process_last_words(struct child_process *p)
{
        return stderr_tail_line(&p->errors);
}

static void on_exit_seen(void *arg, const struct sandbox_result *r)
{
        struct child_process *p = arg;
        char *words = child_process_last_words(p);
        const char *why = *words ? words : r->why;

        p->run = NULL;
        if (r->signal)
                p->ended = mem_printf("it was ended by signal %d%s%s", r->signal, why ? ": " : "",
                                      why ? why : "");
        else if (r->exit_code >= 0)
                p->ended = mem_printf("it ended with exit code %d%s%s", r->exit_code,
                                      why ? ": " : "", why ? why : "");
        else
                p->ended = mem_strdup(why ? why : "it ended");
        free(words);
        if (!json_queue_busy(p->queue) || p->over)
                tell_end(p);
}

/* ---- the caller's side ---- */

struct child_process *child_process_start(const struct child_process_options *o,
                                          const struct child_process_handlers *h, void *arg,
                                          struct error *err)
{
        static const struct sandbox_handlers handlers = { on_output, on_exit_seen };
        static const struct json_queue_handlers parsing = { on_parsed, on_busy };
        struct child_process *p = mem_zalloc(sizeof(*p));

        p->on = *h;
        p->arg = arg;
        p->loop = o->loop;
        p->name = mem_strdup(o->name);
        p->sandboxes = o->sandboxes;
        lines_init(&p->lines, o->line_max);
        buf_init(&p->line, 0);
        stderr_tail_init(&p->errors);
        p->queue = json_queue_new(o->loop, WAITING_MAX, &parsing, p);
        p->run = sandbox_start_program(
                o->sandboxes, &o->key,
                &(struct sandbox_command){ .argv = o->argv, .cwd = o->folder }, &handlers, p, err);
        if (p->run)
                return p;
        child_process_free(p);
        return NULL;
}

int child_process_send(struct child_process *p, const char *line, size_t n, struct error *err)
{
        int rc;
        char *whole;

        if (!p->run || p->over)
                return error_set(err, ERR_CONFLICT, "it has ended");
        whole = mem_alloc(n + 1);
        memcpy(whole, line, n);
        whole[n] = '\n';
        rc = sandbox_write(p->run, whole, n + 1, err);
        free(whole);
        return rc;
}

void child_process_close_input(struct child_process *p)
{
        if (p && p->run)
                sandbox_close_input(p->run);
}

void child_process_stop(struct child_process *p, int64_t grace_ms)
{
        if (p->run)
                sandbox_stop(p->run, grace_ms);
}

int child_process_pid(const struct child_process *p)
{
        return p->run ? sandbox_pid(p->run) : 0;
}

size_t child_process_received(const struct child_process *p)
{
        return p->received;
}
