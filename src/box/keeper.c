#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "box/box.h"
#include "box/frame.h"

/*
 * A program's children can leave its process group and session, and lose their parent. They cannot
 * leave the tree below a process that adopts orphans (a subreaper). So each command gets a keeper:
 * it adopts, and when the command ends it kills whatever is left below.
 */

#define PROCESSES_MAX  4096
#define KILL_ROUNDS    4000
#define KILL_NOW       SIGUSR1
#define STOP_GENTLY    SIGTERM
#define ROUND_PAUSE_NS 500000

struct entry {
        pid_t pid, parent;
        bool below;
};

pid_t process_parent(const char *pid)
{
        char path[64], text[512];
        const char *after_name;
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -1;
        n = read(fd, text, sizeof(text) - 1);
        close(fd);
        if (n <= 0)
                return -1;
        text[n] = '\0';
        after_name = strrchr(text, ')'); /* the name may contain anything */
        if (!after_name || strlen(after_name) < 5)
                return -1;
        return (pid_t)strtol(after_name + 4, NULL, 10);
}

static size_t list_processes(struct entry *list)
{
        DIR *dir = opendir("/proc");
        struct dirent *e;
        size_t n = 0;

        while (dir && n < PROCESSES_MAX && (e = readdir(dir)))
                if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
                        list[n++] = (struct entry){ (pid_t)strtol(e->d_name, NULL, 10),
                                                    process_parent(e->d_name), false };
        if (dir)
                closedir(dir);
        return n;
}

/* Kills everything below this process that it finds in one look. Returns how many. */
static int kill_round(void)
{
        static struct entry list[PROCESSES_MAX];
        size_t n = list_processes(list);
        bool more = true;
        int killed = 0;

        while (more) {
                more = false;
                for (size_t i = 0; i < n; i++) {
                        if (list[i].below)
                                continue;
                        list[i].below = list[i].parent == getpid();
                        for (size_t k = 0; k < n && !list[i].below; k++)
                                list[i].below = list[k].below && list[k].pid == list[i].parent;
                        more = more || list[i].below;
                }
        }
        for (size_t i = 0; i < n; i++)
                if (list[i].below && kill(list[i].pid, SIGKILL) == 0)
                        killed++;
        return killed;
}

/* Reaps what has ended. True while children are left. */
static bool reap(pid_t program, int *status, bool *ended)
{
        for (;;) {
                int s;
                pid_t pid = waitpid(-1, &s, WNOHANG);

                if (pid == program) {
                        *status = s;
                        *ended = true;
                }
                if (pid == 0)
                        return true;
                if (pid < 0 && errno != EINTR)
                        return false;
        }
}

/* Kills all descendants; they may fork meanwhile, so again until none is left. */
static int kill_all(pid_t program, int *status, bool *ended)
{
        const struct timespec between = { .tv_nsec = ROUND_PAUSE_NS };
        int killed = 0;

        for (int round = 0; round < KILL_ROUNDS; round++) {
                int now;

                if (!reap(program, status, ended))
                        return killed;
                now = kill_round();
                if (round == 0)
                        killed = now;
                nanosleep(&between, NULL);
        }
        _exit(1); /* without a status: the whole sandbox has to end */
}

static void report(int fd, int status, int killed)
{
        struct box_exit e = { .code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                              .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                              .killed = killed };

        _exit(write(fd, &e, sizeof(e)) == sizeof(e) ? 0 : 1);
}

static void keep(pid_t program, int status_fd, const sigset_t *signals)
{
        bool ended = false;
        int status = 0;

        for (;;) {
                siginfo_t info;
                int signal = sigwaitinfo(signals, &info);
                bool now = signal == KILL_NOW || signal == SIGALRM;

                if (signal == STOP_GENTLY) {
                        struct itimerval grace = { .it_value.tv_sec =
                                                           info.si_value.sival_int / 1000,
                                                   .it_value.tv_usec =
                                                           info.si_value.sival_int % 1000 * 1000 };

                        if (kill(-program, SIGTERM) < 0)
                                kill(program, SIGTERM); /* it leads no group yet */
                        setitimer(ITIMER_REAL, &grace, NULL);
                }
                reap(program, &status, &ended);
                if (ended || now)
                        report(status_fd, status, kill_all(program, &status, &ended));
        }
}

/* ---- the program ---- */

static void complain(const char *what, const char *name)
{
        dprintf(STDERR_FILENO, "cannot %s '%s': %s\n", what, name, strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
}

static void become(const char *cwd, char **argv, unsigned flags, const int std[3],
                   const sigset_t *mask)
{
        for (int i = 0; i < 3; i++)
                if (dup2(std[i], i) < 0)
                        _exit(126);
        close_range(3, ~0U, 0);
        setsid();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int s = 1; s < NSIG; s++)
                signal(s, SIG_DFL);
        sigprocmask(SIG_SETMASK, mask, NULL);
        limits_apply((flags & BOX_NO_WRITES) != 0);
        if (chdir(cwd) < 0)
                complain("enter", cwd);
        execvp(argv[0], argv);
        if (errno == ENOENT && strcmp(argv[0], "bash") == 0)
                execvp("sh", argv); /* small containers have no bash */
        complain("run", argv[0]);
}

pid_t keeper_start(const char *cwd, char **argv, unsigned flags, const int std[3], int status)
{
        sigset_t all, signals, before;
        pid_t keeper, program;

        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &before);
        keeper = fork();
        if (keeper != 0) {
                sigprocmask(SIG_SETMASK, &before, NULL);
                return keeper;
        }
        /* the server may be killed: then everything of this command is, too */
        prctl(PR_SET_PDEATHSIG, KILL_NOW);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        setsid();
        sigemptyset(&before);
        program = fork();
        if (program == 0)
                become(cwd, argv, flags, std, &before);
        if (program < 0) {
                dprintf(std[2], "cannot start a process: %s\n", strerror(errno));
                report(status, 126 << 8, 0);
        }
        if (dup2(status, 3) < 0)
                _exit(1);
        close_range(4, ~0U, 0);
        for (int i = 0; i < 3; i++)
                close(i);
        sigemptyset(&signals);
        sigaddset(&signals, SIGCHLD);
        sigaddset(&signals, SIGALRM);
        sigaddset(&signals, STOP_GENTLY);
        sigaddset(&signals, KILL_NOW);
        keep(program, 3, &signals);
        return -1;
}

void keeper_stop(pid_t keeper, unsigned grace_ms)
{
        if (grace_ms > 0)
                sigqueue(keeper, STOP_GENTLY, (union sigval){ .sival_int = (int)grace_ms });
        else
                kill(keeper, KILL_NOW);
}
