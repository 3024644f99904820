#include "base/secret_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

/* Adds the word at *p without its quotes and moves *p past it. -1: a quote is left open. */
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

char **secret_command_split(const char *line, struct error *err)
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
                        secret_command_free(words);
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

void secret_command_free(char **words)
{
        for (size_t i = 0; words && words[i]; i++)
                free(words[i]);
        free(words);
}

/*
 * Prepared before fork, because only async-signal-safe calls are allowed between fork and exec.
 */
struct secret_child {
        char **words;
        char *environment[3];
        const char *dir;
        int out;    /* its standard output */
        int failed; /* receives errno when exec fails; closed by a successful exec */
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
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0 &&
            dup2(c->out, STDOUT_FILENO) >= 0 && (!c->dir || chdir(c->dir) == 0))
                execvpe(c->words[0], c->words, c->environment);
        e = errno;
        if (write(c->failed, &e, sizeof(e)) < 0)
                _exit(126);
        _exit(127);
}

/* The errno of a failed exec, or 0. */
static int start_failure(int fd)
{
        int e = 0;
        ssize_t n;

        do {
                n = read(fd, &e, sizeof(e));
        } while (n < 0 && errno == EINTR);
        return n == (ssize_t)sizeof(e) ? e : 0;
}

/* Reads the output to its end; -1 at the deadline or when it is too long. */
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
                                       SECRET_COMMAND_MS / 1000);
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
 * Waits until the deadline, then kills the process group: a program may close its output and go on.
 * Polls, because no wait with a deadline leaves SIGCHLD alone.
 */
static int reap(pid_t pid, int64_t deadline)
{
        siginfo_t info = { 0 };
        int status = -1;

        /* WNOWAIT keeps the process id reserved until the group has been killed */
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
        int64_t deadline = clock_mono_ms() + SECRET_COMMAND_MS;
        int e = start_failure(failed_fd);
        int rc = e ? error_set(err, e == ENOENT ? ERR_MISSING : ERR_IO, "%s", strerror(e))
                   : collect(out_fd, deadline, out, err);
        int status = reap(pid, rc < 0 ? 0 : deadline);

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
        struct secret_child c = { .words = words, .dir = dir };
        pid_t pid = -1;
        int rc = -1;

        c.environment[0] = inherited("PATH", "/usr/local/bin:/usr/bin:/bin");
        c.environment[1] = inherited("HOME", "/");
        if (pipe2(output, O_CLOEXEC) == 0 && pipe2(failure, O_CLOEXEC) == 0) {
                c.out = output[1];
                c.failed = failure[1];
                pid = fork();
                if (pid == 0)
                        run_child(&c);
                if (pid > 0) /* in both processes: the group must exist before it is killed */
                        setpgid(pid, pid);
        }
        if (pid < 0) {
                error_set(err, ERR_IO, "%s", strerror(errno));
        } else {
                close(output[1]);
                close(failure[1]);
                output[1] = failure[1] = -1;
                rc = finish(pid, output[0], failure[0], out, err);
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

int secret_command_run(const char *line, const char *dir, struct buf *out, struct error *err)
{
        char **words = secret_command_split(line, err);
        int rc;

        if (!words)
                return -1;
        rc = run_words(words, dir, out, err);
        if (rc < 0)
                error_prefix(err, "cannot get a secret from command '%s'", words[0]);
        secret_command_free(words);
        return rc;
}
