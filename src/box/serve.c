#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "box/box.h"
#include "box/frame.h"

/*
 * One poll loop. Each command has a keeper and up to four pipes. While the daemon is slow to read,
 * commands are not read either, so memory stays bounded. Nor are they while they print faster than
 * anybody could want, so a command that floods does not keep the daemon busy.
 */

#define ARGV_MAX     256
#define PIECE        16384        /* bytes of output in one frame */
#define PIPE_MAX     (1 << 20)    /* the largest pipe that a user can make */
#define OUT_HIGH     (256u << 10) /* commands wait while more is on its way to the daemon */
#define INPUT_MAX    (20u << 20)  /* bytes on their way to one command */
#define WINDOW_MS    50
#define WINDOW_BYTES (1u << 20) /* of output in this time: 20 MiB a second */
#define PER_COMMAND  4
#define FIRST_OF_RUN 2

struct bytes {
        char *data;
        size_t len, cap;
};

struct run {
        uint32_t id;
        pid_t keeper; /* 0: the slot is free */
        int status, in, out, err;
        struct bytes input;
        bool input_ends; /* close it when all was written */
};

static struct {
        struct bytes from, to; /* of the daemon */
        struct run runs[BOX_RUNS_MAX];
        int64_t window_ms; /* when it began */
        size_t window_bytes;
} server;

static void *must(void *p)
{
        if (!p)
                _exit(1);
        return p;
}

static void bytes_add(struct bytes *b, const void *data, size_t n)
{
        if (b->cap - b->len < n) {
                b->cap = (b->len + n) * 2;
                b->data = must(realloc(b->data, b->cap));
        }
        memcpy(b->data + b->len, data, n);
        b->len += n;
}

static void bytes_consume(struct bytes *b, size_t n)
{
        b->len -= n;
        memmove(b->data, b->data + n, b->len);
}

static void bytes_release(struct bytes *b)
{
        free(b->data);
        *b = (struct bytes){ 0 };
}

static void answer(uint32_t id, enum box_type type, const void *data, size_t n)
{
        struct box_head h = { (uint32_t)n, id, type };

        bytes_add(&server.to, &h, sizeof(h));
        bytes_add(&server.to, data, n);
}

static void failed(uint32_t id, const char *what)
{
        char text[200];
        int n = snprintf(text, sizeof(text), "%s: %s", what, strerror(errno));

        answer(id, BOX_FAILED, text, (size_t)n);
}

/* ---- commands ---- */

static void close_fd(int *fd)
{
        if (*fd >= 0)
                close(*fd);
        *fd = -1;
}

static struct run *find_run(uint32_t id)
{
        for (size_t i = 0; i < BOX_RUNS_MAX; i++)
                if (server.runs[i].keeper && server.runs[i].id == id)
                        return &server.runs[i];
        return NULL;
}

static struct run *free_run(void)
{
        for (size_t i = 0; i < BOX_RUNS_MAX; i++)
                if (!server.runs[i].keeper)
                        return &server.runs[i];
        errno = EAGAIN;
        return NULL;
}

/* Ours does not block, the command's does. */
static int make_pipe(int *ours, int *theirs, bool ours_writes)
{
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -1;
        *ours = fds[ours_writes];
        *theirs = fds[!ours_writes];
        return fcntl(*ours, F_SETFL, O_NONBLOCK);
}

static int start_keeper(struct run *r, unsigned flags, const char *cwd, char **argv)
{
        int std[3] = { -1, -1, -1 }, status = -1;
        pid_t keeper = -1;

        if (flags & BOX_HAS_INPUT)
                make_pipe(&r->in, &std[0], true);
        else
                std[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (std[0] >= 0 && make_pipe(&r->out, &std[1], false) == 0 &&
            make_pipe(&r->err, &std[2], false) == 0 && make_pipe(&r->status, &status, false) == 0)
                keeper = keeper_start(cwd, argv, flags, std, status);
        for (int i = 0; i < 3; i++)
                close_fd(&std[i]);
        close_fd(&status);
        r->keeper = keeper > 0 ? keeper : 0;
        return keeper > 0 ? 0 : -1;
}

static void release_run(struct run *r)
{
        close_fd(&r->status);
        close_fd(&r->in);
        close_fd(&r->out);
        close_fd(&r->err);
        bytes_release(&r->input);
        r->keeper = 0;
}

/* data ends with NUL, see next_request. */
static void start_run(uint32_t id, char *data, size_t n)
{
        struct run *r = free_run();
        char *argv[ARGV_MAX + 1], *end = data + n;
        uint32_t flags;
        size_t argc = 0;
        char *cwd;

        if (!r || n < sizeof(flags)) {
                failed(id, "too many commands at a time");
                return;
        }
        memcpy(&flags, data, sizeof(flags));
        cwd = data + sizeof(flags);
        for (char *s = cwd + strlen(cwd) + 1; s < end && argc < ARGV_MAX; s += strlen(s) + 1)
                argv[argc++] = s;
        argv[argc] = NULL;
        *r = (struct run){ .id = id, .status = -1, .in = -1, .out = -1, .err = -1 };
        if (argc > 0 && start_keeper(r, flags, cwd, argv) == 0)
                return;
        failed(id, "cannot start a process in the sandbox");
        release_run(r);
}

/* Sends what a command printed; false at its end. */
static bool pass_output(struct run *r, int fd, enum box_type type)
{
        char piece[PIECE];
        ssize_t n = read(fd, piece, sizeof(piece));

        if (n > 0) {
                answer(r->id, type, piece, (size_t)n);
                server.window_bytes += (size_t)n;
        }
        return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* What is left in the pipe. Another command may hold it open, so there is an end to it. */
static void pass_rest(struct run *r, int fd, enum box_type type)
{
        char piece[PIECE];
        ssize_t n;

        for (int i = 0; fd >= 0 && i < PIPE_MAX / PIECE; i++) {
                n = read(fd, piece, sizeof(piece));
                if (n <= 0)
                        break;
                answer(r->id, type, piece, (size_t)n);
        }
}

static void on_status(struct run *r)
{
        struct box_exit e;

        /* a keeper that was killed kept nothing: end the sandbox, and all processes with it */
        if (read(r->status, &e, sizeof(e)) != sizeof(e))
                _exit(1);
        pass_rest(r, r->out, BOX_OUT);
        pass_rest(r, r->err, BOX_ERR);
        answer(r->id, BOX_EXIT, &e, sizeof(e));
        while (waitpid(r->keeper, NULL, 0) < 0 && errno == EINTR)
                ;
        release_run(r);
}

static void feed(struct run *r)
{
        uint32_t took = 0;

        while (r->in >= 0 && r->input.len > 0) {
                ssize_t n = write(r->in, r->input.data, r->input.len);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        break;
                if (n < 0) { /* it reads no more */
                        took += (uint32_t)r->input.len;
                        bytes_release(&r->input);
                        close_fd(&r->in);
                        break;
                }
                took += (uint32_t)n;
                bytes_consume(&r->input, (size_t)n);
        }
        if (took > 0)
                answer(r->id, BOX_TOOK, &took, sizeof(took));
        if (r->input_ends && r->input.len == 0)
                close_fd(&r->in);
}

/* ---- requests ---- */

static void on_write(struct run *r, const char *data, size_t n)
{
        uint32_t dropped = (uint32_t)n;

        if (r->in >= 0 && !r->input_ends && n <= INPUT_MAX - r->input.len)
                bytes_add(&r->input, data, n);
        else
                answer(r->id, BOX_TOOK, &dropped, sizeof(dropped));
}

static void on_request(const struct box_head *h, char *data)
{
        struct run *r = find_run(h->id);
        uint32_t grace_ms = 0;

        if (h->type == BOX_RUN && !r)
                start_run(h->id, data, h->n);
        if (!r) /* it has ended meanwhile */
                return;
        switch (h->type) {
        case BOX_WRITE:
                on_write(r, data, h->n);
                break;
        case BOX_CLOSE:
                r->input_ends = true;
                break;
        case BOX_STOP:
                if (h->n >= sizeof(grace_ms))
                        memcpy(&grace_ms, data, sizeof(grace_ms));
                keeper_stop(r->keeper, grace_ms);
                break;
        default:
                break;
        }
        feed(r);
}

static bool next_request(void)
{
        struct bytes *b = &server.from;
        struct box_head h;
        char *data;

        if (b->len < sizeof(h))
                return false;
        memcpy(&h, b->data, sizeof(h));
        if (h.n > BOX_REQUEST_MAX)
                _exit(1);
        if (b->len - sizeof(h) < h.n)
                return false;
        data = must(malloc(h.n + 1));
        memcpy(data, b->data + sizeof(h), h.n);
        data[h.n] = '\0';
        bytes_consume(b, sizeof(h) + h.n);
        on_request(&h, data);
        free(data);
        return true;
}

/* False when the daemon is gone. */
static bool read_requests(void)
{
        char piece[65536];
        ssize_t n = read(STDIN_FILENO, piece, sizeof(piece));

        if (n < 0)
                return errno == EAGAIN || errno == EINTR;
        bytes_add(&server.from, piece, (size_t)n);
        while (next_request())
                ;
        return n > 0;
}

static bool write_answers(void)
{
        ssize_t n = write(STDOUT_FILENO, server.to.data, server.to.len);

        if (n > 0)
                bytes_consume(&server.to, (size_t)n);
        return n > 0 || errno == EAGAIN || errno == EINTR;
}

/* ---- the loop ---- */

/* Milliseconds until output may flow again; -1: it may now. */
static int flood_pause(void)
{
        struct timespec t;
        int64_t now;

        clock_gettime(CLOCK_MONOTONIC, &t);
        now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
        if (now - server.window_ms >= WINDOW_MS) {
                server.window_ms = now;
                server.window_bytes = 0;
        }
        return server.window_bytes < WINDOW_BYTES ? -1 : (int)(server.window_ms + WINDOW_MS - now);
}

static void poll_run(const struct run *r, bool flows, struct pollfd *at)
{
        bool room = server.to.len < OUT_HIGH;

        at[0] = (struct pollfd){ r->keeper && room ? r->status : -1, POLLIN, 0 };
        at[1] = (struct pollfd){ r->keeper && room && flows ? r->out : -1, POLLIN, 0 };
        at[2] = (struct pollfd){ r->keeper && room && flows ? r->err : -1, POLLIN, 0 };
        at[3] = (struct pollfd){ r->keeper && r->input.len > 0 ? r->in : -1, POLLOUT, 0 };
}

static void serve_run(struct run *r, const struct pollfd *at)
{
        if (at[1].revents && !pass_output(r, r->out, BOX_OUT))
                close_fd(&r->out);
        if (at[2].revents && !pass_output(r, r->err, BOX_ERR))
                close_fd(&r->err);
        if (at[3].revents)
                feed(r);
        if (at[0].revents)
                on_status(r);
}

static bool serve_once(void)
{
        static struct pollfd fds[FIRST_OF_RUN + PER_COMMAND * BOX_RUNS_MAX];
        int wait_ms = flood_pause();

        fds[0] = (struct pollfd){ STDIN_FILENO, POLLIN, 0 };
        fds[1] = (struct pollfd){ server.to.len > 0 ? STDOUT_FILENO : -1, POLLOUT, 0 };
        for (size_t i = 0; i < BOX_RUNS_MAX; i++)
                poll_run(&server.runs[i], wait_ms < 0, fds + FIRST_OF_RUN + PER_COMMAND * i);
        if (poll(fds, sizeof(fds) / sizeof(fds[0]), wait_ms) < 0)
                return errno == EINTR;
        for (size_t i = 0; i < BOX_RUNS_MAX; i++)
                if (server.runs[i].keeper)
                        serve_run(&server.runs[i], fds + FIRST_OF_RUN + PER_COMMAND * i);
        if (fds[0].revents && !read_requests())
                return false;
        return server.to.len == 0 || write_answers();
}

/* Outside of a pid namespace nothing else ends the commands. */
static void end_runs(void)
{
        for (size_t i = 0; i < BOX_RUNS_MAX; i++)
                if (server.runs[i].keeper)
                        keeper_stop(server.runs[i].keeper, 0);
        while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
                ;
}

/*
 * "egress=FD": listens where commands look for their proxy, and sends the socket to the daemon,
 * which accepts from it. We have no further part in it.
 */
static void open_egress(const char *word)
{
        struct sockaddr_in at = { .sin_family = AF_INET,
                                  .sin_port = htons(3128),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        _Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(int))] = { 0 };
        struct iovec io = { (char[]){ 0 }, 1 };
        struct msghdr m = { .msg_iov = &io,
                            .msg_iovlen = 1,
                            .msg_control = space,
                            .msg_controllen = sizeof(space) };
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
        if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 64) < 0 ||
            sendmsg((int)strtol(word + strlen("egress="), NULL, 10), &m, 0) < 0)
                dprintf(STDERR_FILENO, "box: no network: %s\n", strerror(errno));
        close(fd);
}

int serve(char **argv)
{
        argv = limits_read(argv);
        if (*argv && strncmp(*argv, "egress=", 7) == 0)
                open_egress(*argv);
        /* commands have our uid: keep them out of our memory and descriptors */
        prctl(PR_SET_DUMPABLE, 0);
        close_range(3, ~0U, 0);
        signal(SIGPIPE, SIG_IGN);
        for (int fd = 0; fd <= 1; fd++)
                fcntl(fd, F_SETFL, O_NONBLOCK);
        answer(0, BOX_READY, "", 0);
        while (serve_once())
                ;
        end_runs();
        return 0;
}
