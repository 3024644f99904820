#include "cli/chat.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define POLL_MS       10
#define READY_MS      120000 /* a large database is checked at start */
#define STOP_MS       15000  /* it drains for ten seconds */
#define HURRY_MS      500
#define LOG_KEEP      (8L << 20)
#define LOG_TAIL      4096
#define LOG_TAIL_LINE 12

struct launch {
        struct client *client;
        struct loop *loop;
        uv_process_t process;
        char *log_path;
        off_t log_from; /* where this run's log begins */
        bool exited, closed;
        int exit_code;
};

/* ---- the log ---- */

static int make_dirs(const char *dir, struct error *err)
{
        char *state = mem_printf("%s/state", dir);
        int rc = 0;

        if (mkdir(dir, 0755) < 0 && errno != EEXIST)
                rc = error_set(err, ERR_IO, "cannot make directory '%s': %s", dir, strerror(errno));
        else if (mkdir(state, 0700) < 0 && errno != EEXIST)
                rc = error_set(err, ERR_IO, "cannot make directory '%s': %s", state,
                               strerror(errno));
        free(state);
        return rc;
}

/* Appends, after rotating a large one. */
static int open_log(struct launch *l, struct error *err)
{
        struct stat st;
        int fd;

        if (stat(l->log_path, &st) == 0 && st.st_size >= LOG_KEEP) {
                char *old = mem_printf("%s.1", l->log_path);

                (void)!rename(l->log_path, old);
                free(old);
        }
        fd = open(l->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return error_set(err, ERR_IO, "cannot open '%s': %s", l->log_path, strerror(errno));
        l->log_from = lseek(fd, 0, SEEK_END);
        return fd;
}

static const char *last_lines(const char *text, size_t n, int lines)
{
        const char *p = text + n;

        while (p > text && lines >= 0) {
                p--;
                if (*p == '\n' && p + 1 < text + n)
                        lines--;
        }
        return *p == '\n' ? p + 1 : p;
}

void launch_log(const struct launch *l, struct buf *out)
{
        char tail[LOG_TAIL + 1];
        int fd = open(l->log_path, O_RDONLY | O_CLOEXEC);
        off_t end, from;
        ssize_t n;

        if (fd < 0)
                return;
        end = lseek(fd, 0, SEEK_END);
        from = end - l->log_from > LOG_TAIL ? end - LOG_TAIL : l->log_from;
        n = pread(fd, tail, LOG_TAIL, from);
        close(fd);
        if (n <= 0)
                return;
        tail[n] = '\0';
        buf_addstr(out, last_lines(tail, (size_t)n, LOG_TAIL_LINE));
}

/* ---- the child ---- */

static void on_closed(uv_handle_t *h)
{
        ((struct launch *)h->data)->closed = true;
}

static void on_child_exit(uv_process_t *p, int64_t code, int signal)
{
        struct launch *l = p->data;

        l->exited = true;
        l->exit_code = signal ? CLI_FAILED : (int)code;
        uv_close((uv_handle_t *)p, on_closed);
}

static int spawn(struct launch *l, const char *listen, int log, struct error *err)
{
        char self[] = "dragoman", verb[] = "run", watch[] = "--parent-watch", flag[] = "--listen";
        char *dir = mem_strdup(client_dir(l->client)), *where = mem_strdup(listen);
        char *argv[] = { self,  verb, watch, (char[]){ "--dir" }, dir, listen ? flag : NULL,
                         where, NULL };
        uv_stdio_container_t stdio[3] = { { .flags = UV_IGNORE },
                                          { .flags = UV_INHERIT_FD, .data.fd = log },
                                          { .flags = UV_INHERIT_FD, .data.fd = log } };
        uv_process_options_t options = { .file = "/proc/self/exe",
                                         .args = argv,
                                         .flags = UV_PROCESS_DETACHED,
                                         .stdio = stdio,
                                         .stdio_count = 3,
                                         .exit_cb = on_child_exit };
        int rc = uv_spawn(loop_uv(l->loop), &l->process, &options);

        l->process.data = l;
        free(dir);
        free(where);
        if (rc == 0)
                return 0;
        uv_close((uv_handle_t *)&l->process, on_closed);
        l->exited = true;
        return error_set(err, ERR_IO, "cannot start the daemon: %s", uv_strerror(rc));
}

static void launch_free(struct launch *l)
{
        while (!l->closed)
                loop_step(l->loop, true);
        free(l->log_path);
        free(l);
}

struct launch *launch_start(struct client *c, const char *listen, struct error *err)
{
        struct launch *l = mem_zalloc(sizeof(*l));
        int log = -1, rc = -1;

        l->client = c;
        l->loop = client_loop(c);
        l->closed = true;
        l->log_path = mem_printf("%s/state/daemon.log", client_dir(c));
        if (make_dirs(client_dir(c), err) == 0)
                log = open_log(l, err);
        if (log >= 0) {
                l->closed = false;
                rc = spawn(l, listen, log, err);
                close(log);
        }
        if (rc < 0) {
                launch_free(l);
                return NULL;
        }
        return l;
}

static void on_time(void *arg)
{
        *(bool *)arg = true;
}

/* For a while, or until the child exits. */
static void run_loop(struct launch *l, int64_t ms)
{
        bool over = false;
        struct timer *t = timer_new(l->loop, on_time, &over);

        timer_start(t, ms);
        while (!over && !l->exited)
                loop_step(l->loop, true);
        timer_free(t);
}

int launch_wait(struct launch *l, struct error *err)
{
        int64_t deadline = clock_mono_ms() + READY_MS;

        while (!l->exited && clock_mono_ms() < deadline) {
                if (client_alive(l->client))
                        return 0;
                run_loop(l, POLL_MS);
        }
        if (!l->exited)
                return error_set(err, ERR_TIMEOUT,
                                 "the daemon started but does not answer; see its log: %s",
                                 l->log_path);
        return error_set(err, ERR_INTERNAL, "the daemon exited with code %d", l->exit_code);
}

bool launch_has_exited(const struct launch *l)
{
        return l->exited;
}

int launch_exit_code(const struct launch *l)
{
        return l->exited ? l->exit_code : CLI_FAILED;
}

void launch_stop(struct launch *l, bool hurry)
{
        if (!l)
                return;
        if (!l->exited)
                uv_process_kill(&l->process, SIGTERM);
        if (!l->exited && hurry) {
                run_loop(l, HURRY_MS);
                if (!l->exited)
                        /* a second signal: do not wait for agents */
                        uv_process_kill(&l->process, SIGTERM);
        }
        if (!l->exited)
                run_loop(l, STOP_MS);
        if (!l->exited)
                uv_process_kill(&l->process, SIGKILL);
        launch_free(l);
}
