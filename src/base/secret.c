#include "base/secret.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spawn_thread.h"

/* enough for a certificate chain */
#define SECRET_MAX_BYTES ((size_t)64 * 1024)
#define COMMAND_MS       10000

struct secret {
        size_t n;
        char bytes[]; /* NUL-terminated */
};

struct secret *secret_new(const char *bytes, size_t n)
{
        struct secret *s = mem_alloc(sizeof(*s) + n + 1);

        s->n = n;
        if (n > 0)
                memcpy(s->bytes, bytes, n);
        s->bytes[n] = '\0';
        log_hide(s->bytes, n);
        return s;
}

struct secret *secret_dup(const struct secret *s)
{
        return s ? secret_new(s->bytes, s->n) : NULL;
}

void secret_free(struct secret *s)
{
        if (!s)
                return;
        log_unhide(s->bytes, s->n);
        explicit_bzero(s->bytes, s->n);
        free(s);
}

const char *secret_reveal(const struct secret *s)
{
        return s->bytes;
}

size_t secret_length(const struct secret *s)
{
        return s->n;
}

bool secret_equals(const struct secret *s, const char *bytes, size_t n)
{
        if (!s || !bytes)
                return !s && !bytes;
        return crypto_equal(s->bytes, s->n, bytes, n);
}

/* NUL is refused: HTTP headers cannot carry it. */
static int make(const char *bytes, size_t n, const char *origin, struct secret **out,
                struct error *err)
{
        if (n == 0)
                return error_set(err, ERR_INVALID, "%s is empty", origin);
        if (memchr(bytes, '\0', n))
                return error_set(err, ERR_INVALID, "%s contains a NUL byte", origin);
        *out = secret_new(bytes, n);
        return 0;
}

static int from_env(const char *name, const char *dir, struct secret **out, struct error *err)
{
        const char *value;
        char *origin;
        int rc;

        (void)dir;
        if (*name == '\0')
                return error_set(err, ERR_INVALID,
                                 "'env:' needs the name of an environment variable");
        value = getenv(name);
        if (!value)
                return error_set(err, ERR_MISSING, "environment variable '%s' is not set", name);
        origin = mem_printf("environment variable '%s'", name);
        rc = make(value, strlen(value), origin, out, err);
        free(origin);
        return rc;
}

/* Without one trailing LF or CRLF. */
static size_t without_newline(const char *text, size_t n)
{
        if (n > 0 && text[n - 1] == '\n')
                n--;
        return n > 0 && text[n - 1] == '\r' ? n - 1 : n;
}

static int from_file(const char *given, const char *dir, struct secret **out, struct error *err)
{
        char *path;
        int fd, rc;

        if (*given == '\0')
                return error_set(err, ERR_INVALID, "'file:' needs a path");
        path = dir && *given != '/' ? mem_printf("%s/%s", dir, given) : mem_strdup(given);
        /* O_NONBLOCK: a FIFO without a writer must not hold up the start */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0) {
                rc = error_set(err, errno == ENOENT ? ERR_MISSING : ERR_IO, "cannot open '%s': %s",
                               path, strerror(errno));
        } else {
                char *origin = mem_printf("'%s'", path);
                struct buf text;

                /* reserve at once: a reallocation would leave a copy behind */
                buf_init(&text, 0);
                buf_reserve(&text, SECRET_MAX_BYTES + FILE_PIECE);
                rc = file_read_fd(fd, path, SECRET_MAX_BYTES, &text, err);
                close(fd);
                if (rc == 0)
                        rc = make(text.data, without_newline(text.data, text.len), origin, out,
                                  err);
                explicit_bzero(text.data, text.len);
                buf_release(&text);
                free(origin);
        }
        free(path);
        return rc;
}

/* net/process cannot be used: secrets are resolved before the loop exists and on worker threads. */

/* Adds the word at *p without its quotes. -1: a quote is left open. */
static int take_word(const char **p, struct buf *word)
{
        while (**p && **p != ' ') {
                char c = *(*p)++;
                const char *end;

                if (c != '\'' && c != '"') {
                        buf_addch(word, c);
                        continue;
                }
                end = strchr(*p, c);
                if (!end)
                        return -1;
                buf_add(word, *p, (size_t)(end - *p));
                *p = end + 1;
        }
        return 0;
}

char **secret_split_command(const char *line, struct error *err)
{
        char **words = mem_array(strlen(line) / 2 + 2, sizeof(*words));
        size_t count = 0;
        const char *p = line;

        for (;;) {
                struct buf word;

                p += strspn(p, " ");
                if (*p == '\0')
                        break;
                buf_init(&word, 0);
                if (take_word(&p, &word) < 0) {
                        buf_release(&word);
                        secret_free_words(words);
                        error_set(err, ERR_INVALID, "'cmd:' has a quote that is not closed");
                        return NULL;
                }
                words[count++] = buf_take(&word);
        }
        if (count > 0)
                return words;
        free(words);
        error_set(err, ERR_INVALID, "'cmd:' needs a program to run");
        return NULL;
}

void secret_free_words(char **words)
{
        for (size_t i = 0; words && words[i]; i++)
                free(words[i]);
        free(words);
}

/* Prepared before fork: until exec only async-signal-safe calls are allowed. */
struct secret_child {
        char **words;
        char *environment[3];
        const char *dir;
        int out;    /* its standard output */
        int failed; /* receives errno when exec fails */
        pid_t pid;  /* as seen by the parent; -1: fork failed */
        int why;    /* its errno */
};

static void run_child(const struct secret_child *c)
{
        struct sigaction normal = { .sa_handler = SIG_DFL };
        sigset_t none;
        int null, e;

        setpgid(0, 0);
        for (int sig = 1; sig < NSIG; sig++)
                sigaction(sig, &normal, NULL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        /* another thread may have made a descriptor since spawn_thread_run marked them */
        close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0 &&
            dup2(c->out, STDOUT_FILENO) >= 0 && (!c->dir || chdir(c->dir) == 0))
                execvpe(c->words[0], c->words, c->environment);
        e = errno;
        if (write(c->failed, &e, sizeof(e)) < 0)
                _exit(126);
        _exit(127);
}

static void fork_child(void *arg)
{
        struct secret_child *c = arg;

        c->pid = fork();
        c->why = errno;
        if (c->pid == 0)
                run_child(c);
        if (c->pid > 0) /* in both processes: the group must exist before it is killed */
                setpgid(c->pid, c->pid);
}

static int collect(int fd, int64_t deadline, struct buf *out, struct error *err)
{
        char chunk[1024];
        int rc = 1;

        while (rc > 0) {
                struct pollfd p = { .fd = fd, .events = POLLIN };
                int64_t left = deadline - clock_mono_ms();
                int ready = left > 0 ? poll(&p, 1, (int)left) : 0;
                ssize_t n = ready <= 0 ? -1 : read(fd, chunk, sizeof(chunk));

                if (ready == 0)
                        rc = error_set(err, ERR_TIMEOUT, "it did not end within %d s",
                                       COMMAND_MS / 1000);
                else if (n < 0 && errno != EINTR)
                        rc = error_set(err, ERR_IO, "cannot read its output: %s", strerror(errno));
                else if (n == 0)
                        rc = 0;
                else if (n > 0 && buf_add(out, chunk, (size_t)n) < 0)
                        rc = error_set(err, ERR_INVALID, "it writes more than %zu bytes", out->max);
        }
        explicit_bzero(chunk, sizeof(chunk));
        return rc;
}

/*
 * Kills the process group at the deadline: a program may close its output and keep running. Polls,
 * because no wait with a deadline leaves SIGCHLD alone.
 */
static int reap(pid_t pid, int64_t deadline)
{
        siginfo_t info = { 0 };
        int status = -1;

        /* WNOWAIT keeps the process id reserved until the group is killed */
        while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               info.si_pid == 0 && clock_mono_ms() < deadline)
                poll(NULL, 0, 5);
        kill(-pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                continue;
        return status;
}

static int finish(pid_t pid, int out_fd, int failed_fd, struct buf *out, struct error *err)
{
        int64_t deadline = clock_mono_ms() + COMMAND_MS;
        int e = 0, rc, status;
        ssize_t n;

        do { /* the errno of a failed exec, or the end */
                n = read(failed_fd, &e, sizeof(e));
        } while (n < 0 && errno == EINTR);
        rc = n == (ssize_t)sizeof(e)
                     ? error_set(err, e == ENOENT ? ERR_MISSING : ERR_IO, "%s", strerror(e))
                     : collect(out_fd, deadline, out, err);
        status = reap(pid, rc < 0 ? 0 : deadline);
        if (rc < 0)
                return -1;
        if (WIFSIGNALED(status))
                return error_set(err, ERR_IO, "it was killed by signal %d", WTERMSIG(status));
        if (WEXITSTATUS(status) != 0)
                return error_set(err, ERR_IO, "it ended with status %d", WEXITSTATUS(status));
        return 0;
}

static char *inherited(const char *name, const char *fallback)
{
        const char *value = getenv(name);

        return mem_printf("%s=%s", name, value ? value : fallback);
}

static int run_words(char **words, const char *dir, struct buf *out, struct error *err)
{
        int output[2] = { -1, -1 }, failure[2] = { -1, -1 };
        struct secret_child c = { .words = words, .dir = dir, .pid = -1 };
        int rc = -1;

        c.environment[0] = inherited("PATH", "/usr/local/bin:/usr/bin:/bin");
        c.environment[1] = inherited("HOME", "/");
        if (pipe2(output, O_CLOEXEC) == 0 && pipe2(failure, O_CLOEXEC) == 0) {
                c.out = output[1];
                c.failed = failure[1];
                spawn_thread_run(fork_child, &c);
        } else {
                c.why = errno;
        }
        if (c.pid < 0) {
                error_set(err, ERR_IO, "%s", strerror(c.why));
        } else {
                close(output[1]);
                close(failure[1]);
                output[1] = failure[1] = -1;
                rc = finish(c.pid, output[0], failure[0], out, err);
        }
        for (int i = 0; i < 2; i++) {
                if (output[i] >= 0)
                        close(output[i]);
                if (failure[i] >= 0)
                        close(failure[i]);
                free(c.environment[i]);
        }
        return rc;
}

static int run_command(const char *line, const char *dir, struct buf *out, struct error *err)
{
        char **words = secret_split_command(line, err);
        int rc;

        if (!words)
                return -1;
        rc = run_words(words, dir, out, err);
        if (rc < 0)
                error_prefix(err, "cannot get a secret from command '%s'", words[0]);
        secret_free_words(words);
        return rc;
}

static int from_command(const char *line, const char *dir, struct secret **out, struct error *err)
{
        struct buf text;
        int rc;

        buf_init(&text, SECRET_MAX_BYTES);
        buf_reserve(&text, SECRET_MAX_BYTES);
        rc = run_command(line, dir, &text, err);
        if (rc == 0) {
                const char *end = memchr(text.data, '\n', text.len);
                size_t n = end ? (size_t)(end - text.data) + 1 : text.len;

                rc = make(text.data, without_newline(text.data, n),
                          "the command's first line of output", out, err);
        }
        explicit_bzero(text.data, text.len);
        buf_release(&text);
        return rc;
}

int secret_resolve(const char *handle, const char *dir, struct secret **out, bool *literal,
                   struct error *err)
{
        static const struct {
                const char *prefix;
                int (*resolve)(const char *rest, const char *dir, struct secret **out,
                               struct error *err);
        } kinds[] = {
                { "env:", from_env },
                { "file:", from_file },
                { "cmd:", from_command },
        };

        *out = NULL;
        if (literal)
                *literal = false;
        for (size_t i = 0; i < COUNT(kinds); i++) {
                size_t n = strlen(kinds[i].prefix);

                if (strncmp(handle, kinds[i].prefix, n) == 0)
                        return kinds[i].resolve(handle + n, dir, out, err);
        }
        if (literal)
                *literal = true;
        return make(handle, strlen(handle), "the secret", out, err);
}
