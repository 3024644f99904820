#include "net/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/spawn_thread.h"

/*
 * The child leads a process group of its own, so that one kill reaches everything it started. When
 * it ends, the rest of the group is killed at once: the group's number is safe to use only while a
 * member exists. A process that left the group and still holds the pipes gets the grace period.
 */

#define MAX_OUTPUT    (16u << 20)
#define MAX_WAITING   (1u << 20) /* bytes on their way to stdin */
#define GRACE_MS      2000
#define INHERITED_MAX 5

enum stage {
        STAGE_RUNNING,
        STAGE_TERMINATING, /* TERM was sent */
        STAGE_KILLED,
        STAGE_DRAINING, /* the child has ended, output may still come */
        STAGE_OVER,     /* on_exit was called, or the process was abandoned */
};

struct process {
        struct loop *loop;
        struct process_handlers on;
        void *arg;
        enum stage stage;
        uv_process_t child;
        uv_pipe_t pipes[3]; /* stdin, stdout, stderr, if used */
        uv_shutdown_t shutdown;
        struct timer *timer; /* of the stage */
        int64_t grace_ms;
        size_t output_left, max_waiting;
        unsigned open;    /* uv handles not yet closed */
        unsigned flowing; /* output pipes without end of file */
        bool has_stdin, exited;
        struct process_result result;
        char space[16384];
};

struct stdin_write {
        uv_write_t uv;
        char bytes[];
};

/* --- the end --- */

static void on_closed(uv_handle_t *h)
{
        struct process *p = h->data;

        if (--p->open == 0)
                free(p);
}

static void close_handle(void *handle)
{
        uv_handle_t *h = handle;

        if (h->data && !uv_is_closing(h))
                uv_close(h, on_closed);
}

static void close_pipes(struct process *p)
{
        for (int i = 0; i < 3; i++)
                close_handle(&p->pipes[i]);
        p->has_stdin = false;
        p->flowing = 0;
}

/* The child's handle stays until the child has been waited for. */
static void release(struct process *p)
{
        p->stage = STAGE_OVER;
        timer_free(p->timer);
        p->timer = NULL;
        close_pipes(p);
        if (p->exited)
                close_handle(&p->child);
}

static void finish_if_complete(struct process *p)
{
        if (p->stage != STAGE_DRAINING || p->flowing > 0)
                return;
        p->stage = STAGE_OVER;
        p->on.on_exit(p->arg, &p->result);
        release(p);
}

static void stop_because(struct process *p, enum error_kind kind)
{
        if (p->stage != STAGE_RUNNING)
                return;
        p->stage = STAGE_TERMINATING;
        p->result.kind = kind;
        kill(-p->child.pid, SIGTERM); /* the whole group */
        timer_start(p->timer, p->grace_ms);
}

static void on_timer(void *arg)
{
        struct process *p = arg;

        switch (p->stage) {
        case STAGE_RUNNING:
                stop_because(p, ERR_TIMEOUT);
                break;
        case STAGE_TERMINATING:
                p->stage = STAGE_KILLED;
                kill(-p->child.pid, SIGKILL);
                break;
        case STAGE_DRAINING:
                close_pipes(p);
                finish_if_complete(p);
                break;
        case STAGE_KILLED:
        case STAGE_OVER:
                break;
        }
}

static void on_child_exit(uv_process_t *child, int64_t status, int signal)
{
        struct process *p = child->data;

        p->exited = true;
        kill(-p->child.pid, SIGKILL);
        if (p->stage == STAGE_OVER) {
                close_handle(child);
                return;
        }
        p->result.exit_code = signal ? -1 : (int)status;
        p->result.signal = signal;
        p->stage = STAGE_DRAINING;
        timer_start(p->timer, p->grace_ms);
        finish_if_complete(p);
}

/* --- output --- */

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *b)
{
        struct process *p = h->data;

        (void)suggested;
        *b = uv_buf_init(p->space, sizeof(p->space));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
        struct process *p = stream->data;

        if (n >= 0) {
                size_t fits = (size_t)n < p->output_left ? (size_t)n : p->output_left;

                p->output_left -= fits;
                if (fits > 0 && p->on.on_output)
                        p->on.on_output(p->arg, (uv_pipe_t *)stream == &p->pipes[1] ? 1 : 2,
                                        b->base, fits);
                if (fits < (size_t)n)
                        stop_because(p, ERR_LIMIT); /* the rest of the output is dropped */
                return;
        }
        close_handle(stream);
        p->flowing--;
        finish_if_complete(p);
}

/* --- start --- */

char *process_find(const char *name)
{
        const char *path = getenv("PATH");

        if (strchr(name, '/'))
                return access(name, X_OK) == 0 ? mem_strdup(name) : NULL;
        for (const char *dir = path ? path : "/usr/bin:/bin"; *dir;) {
                size_t n = strcspn(dir, ":");
                char *full = mem_printf("%.*s/%s", n > 0 ? (int)n : 1, n > 0 ? dir : ".", name);

                if (access(full, X_OK) == 0)
                        return full;
                free(full);
                dir += dir[n] ? n + 1 : n;
        }
        return NULL;
}

/* The variables that programs expect; none of them can hold a secret. */
static void minimal_environment(char *env[INHERITED_MAX])
{
        static const char *const names[] = { "PATH", "HOME", "LANG", "TZ" };
        size_t n = 0;

        for (size_t i = 0; i < COUNT(names); i++) {
                const char *value = getenv(names[i]);

                if (value)
                        env[n++] = mem_printf("%s=%s", names[i], value);
        }
        env[n] = NULL;
}

static uv_stdio_container_t pipe_for(struct process *p, int fd)
{
        /* seen from the child: it reads its stdin and writes the others */
        uv_stdio_flags way = fd == 0 ? UV_READABLE_PIPE : UV_WRITABLE_PIPE;

        uv_pipe_init(loop_uv(p->loop), &p->pipes[fd], 0);
        p->pipes[fd].data = p;
        p->open++;
        return (uv_stdio_container_t){ .flags = UV_CREATE_PIPE | way,
                                       .data.stream = (uv_stream_t *)&p->pipes[fd] };
}

struct spawn_job {
        struct process *process;
        const uv_process_options_t *options;
        int rc;
};

/* Runs on the spawner while the loop waits, so it may use the loop's data. */
static void run_spawn(void *arg)
{
        struct spawn_job *j = arg;

        j->rc = uv_spawn(loop_uv(j->process->loop), &j->process->child, j->options);
}

static int spawn(struct process *p, const struct process_options *o)
{
        uv_stdio_container_t stdio[PROCESS_FD_MAX + 1] = { { .flags = UV_IGNORE } };
        char *inherited[INHERITED_MAX];
        /* libuv would search the child's PATH */
        char *file = strchr(o->argv[0], '/') ? NULL : process_find(o->argv[0]);
        uv_process_options_t options = {
                .exit_cb = on_child_exit,
                .file = file ? file : o->argv[0],
                .args = (char **)(uintptr_t)o->argv,
                .env = o->env ? (char **)(uintptr_t)o->env : inherited,
                .cwd = o->cwd,
                .flags = UV_PROCESS_DETACHED, /* setsid: a session and group of its own */
                .stdio_count = 3,
                .stdio = stdio,
        };
        struct spawn_job job = { p, &options, 0 };

        if (o->keep_stdin)
                stdio[0] = pipe_for(p, 0);
        stdio[1] = pipe_for(p, 1);
        if (o->inherit_stderr)
                stdio[2] =
                        (uv_stdio_container_t){ .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO };
        else
                stdio[2] = pipe_for(p, 2);
        for (size_t i = 0; i < o->fd_count; i++) {
                int number = o->fds[i].child;

                stdio[number] =
                        (uv_stdio_container_t){ .flags = UV_INHERIT_FD, .data.fd = o->fds[i].here };
                if (options.stdio_count <= number)
                        options.stdio_count = number + 1;
        }
        minimal_environment(inherited);
        p->child.data = p;
        p->open++;
        spawn_thread_run(run_spawn, &job);
        for (char **e = inherited; *e; e++)
                free(*e);
        free(file);
        return job.rc;
}

struct process *process_start(struct loop *l, const struct process_options *options,
                              const struct process_handlers *handlers, void *arg, struct error *err)
{
        struct process *p = mem_zalloc(sizeof(*p));
        int rc;

        p->loop = l;
        p->on = *handlers;
        p->arg = arg;
        p->timer = timer_new(l, on_timer, p);
        p->grace_ms = options->grace_ms > 0 ? options->grace_ms : GRACE_MS;
        p->output_left = options->max_output ? options->max_output : MAX_OUTPUT;
        p->max_waiting = options->max_waiting ? options->max_waiting : MAX_WAITING;
        rc = spawn(p, options);
        if (rc) {
                error_set(err,
                          rc == UV_ENOENT   ? ERR_MISSING
                          : rc == UV_EACCES ? ERR_REFUSED
                                            : ERR_IO,
                          "cannot start '%s': %s", options->argv[0], uv_strerror(rc));
                p->exited = true; /* there is no child to wait for */
                release(p);
                return NULL;
        }
        p->has_stdin = options->keep_stdin;
        for (int fd = 1; fd <= 2; fd++) {
                if (!p->pipes[fd].data)
                        continue;
                uv_read_start((uv_stream_t *)&p->pipes[fd], on_alloc, on_read);
                p->flowing++;
        }
        if (options->timeout_ms > 0)
                timer_start(p->timer, options->timeout_ms);
        return p;
}

/* --- the caller's side --- */

static void on_written(uv_write_t *uv, int status)
{
        (void)status; /* a child that stops reading is noticed by its exit */
        free(uv->data);
}

int process_write(struct process *p, const char *bytes, size_t n, struct error *err)
{
        uv_stream_t *to = (uv_stream_t *)&p->pipes[0];
        uv_buf_t b;
        struct stdin_write *w;
        int rc;

        if (!p->has_stdin)
                return error_set(err, ERR_CONFLICT, "the program's input is closed");
        if (n > p->max_waiting || uv_stream_get_write_queue_size(to) > p->max_waiting - n)
                return error_set(err, ERR_LIMIT, "the program does not read its input");
        w = mem_alloc(sizeof(*w) + n);
        memcpy(w->bytes, bytes, n);
        w->uv.data = w;
        b = uv_buf_init(w->bytes, (unsigned)n);
        rc = uv_write(&w->uv, to, &b, 1, on_written);
        if (rc == 0)
                return 0;
        free(w);
        return error_set(err, ERR_IO, "cannot write to the program: %s", uv_strerror(rc));
}

static void on_shutdown(uv_shutdown_t *s, int status)
{
        (void)status;
        close_handle(s->handle);
}

void process_close_stdin(struct process *p)
{
        if (!p->has_stdin)
                return;
        p->has_stdin = false;
        /* sends what is queued first */
        if (uv_shutdown(&p->shutdown, (uv_stream_t *)&p->pipes[0], on_shutdown))
                close_handle(&p->pipes[0]);
}

void process_stop(struct process *p)
{
        stop_because(p, ERR_CANCELLED);
}

void process_abandon(struct process *p)
{
        if (!p || p->stage == STAGE_OVER)
                return;
        if (!p->exited)
                kill(-p->child.pid, SIGKILL);
        release(p);
}

int process_pid(const struct process *p)
{
        return p->child.pid;
}
