/* What a confined process cannot do. Each case runs in a child: confinement is permanent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/scratch.h"
#include "base/confine.h"
#include "base/mem.h"
#include "base/spawn_thread.h"

/* Both may be missing: a container's own filter, an old kernel, valgrind. */
static struct confine_report possible;
static char *inside, *outside;

static bool can_write(const char *dir)
{
        char *path = scratch_path(dir, "new"), *second = scratch_path(dir, "second");
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        bool ok = fd >= 0 && write(fd, "x", 1) == 1 && ftruncate(fd, 0) == 0 &&
                  rename(path, second) == 0 && unlink(second) == 0;

        if (fd >= 0)
                close(fd);
        free(path);
        free(second);
        return ok;
}

/* Runs fn in a confined child; it returns 0, or the line that failed. */
static int in_child(int (*fn)(void))
{
        const char *writable[] = { inside, "/dev/null", NULL };
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                struct error err = { 0 };

                if (spawn_thread_start(&err) < 0 || confine_self(writable, &possible, &err) < 0)
                        _exit(255);
                _exit(fn());
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status))
                fail_msg("killed by signal %d", WTERMSIG(status));
        if (WEXITSTATUS(status) == 255)
                fail_msg("it could not be confined");
        return WEXITSTATUS(status);
}

/* The exit status is the line of the failure, modulo 250. */
#define EXPECT(condition)                            \
        do {                                         \
                if (!(condition)) {                  \
                        perror(#condition);          \
                        return 1 + (__LINE__ % 250); \
                }                                    \
        } while (0)

static bool refused(long rc)
{
        return rc < 0 && errno == EPERM;
}

static int try_writing(void)
{
        char *old = scratch_path(outside, "old"), *link = scratch_path(inside, "link");
        char text[8];
        int fd;

        EXPECT(can_write(inside));
        EXPECT(open("/dev/null", O_WRONLY | O_CLOEXEC) >= 0);
        /* reading goes on */
        fd = open(old, O_RDONLY | O_CLOEXEC);
        EXPECT(fd >= 0 && read(fd, text, sizeof(text)) > 0);
        if (!possible.writes)
                return 0;
        EXPECT(!can_write(outside));
        EXPECT(open(old, O_WRONLY | O_CLOEXEC) < 0 && errno == EACCES);
        EXPECT(open(old, O_WRONLY | O_TRUNC | O_CLOEXEC) < 0);
        EXPECT(unlink(old) < 0);
        EXPECT(symlink(old, link) < 0); /* not even where it may write */
        EXPECT(mkfifo(link, 0600) < 0);
        free(old);
        free(link);
        return 0;
}

static void only_the_named_places_are_written(void **state)
{
        (void)state;
        assert_int_equal(in_child(try_writing), 0);
}

static int try_calls(void)
{
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

        if (!possible.calls)
                return 0;
        EXPECT(null >= 0);
        EXPECT(refused(unshare(CLONE_NEWUSER)));
        EXPECT(refused(mount("none", inside, "tmpfs", 0, NULL)));
        EXPECT(refused(chroot(inside)));
        EXPECT(refused(syscall(SYS_bpf, 0, NULL, 0)));
        EXPECT(refused(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0)));
        EXPECT(refused(syscall(SYS_io_uring_setup, 1, NULL)));
        EXPECT(refused(syscall(SYS_keyctl, 0, 0, 0, 0, 0)));
        EXPECT(refused(syscall(SYS_kexec_load, 0, 0, NULL, 0)));
        EXPECT(refused(syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0)));
        EXPECT(refused(syscall(SYS_setuid, getuid()))); /* libc asks every thread, and aborts */
        EXPECT(refused(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL)));
        EXPECT(syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS);
        EXPECT(refused(ioctl(null, TIOCSTI, "x")));
#ifdef __x86_64__
        EXPECT(refused(syscall(0x40000000 | SYS_getpid))); /* by its x32 number */
#endif
        EXPECT(socket(AF_PACKET, SOCK_RAW, 0) < 0 && errno == EAFNOSUPPORT);
        EXPECT(socket(AF_VSOCK, SOCK_STREAM, 0) < 0 && errno == EAFNOSUPPORT);
#if !CONFINE_SANITIZED
        EXPECT(refused(execl("/bin/true", "true", (char *)NULL)));
        EXPECT(refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL)));
#endif
        /* what it needs */
        EXPECT(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
        EXPECT(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0 || errno == EAFNOSUPPORT);
        EXPECT(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0);
        return 0;
}

static void calls_that_the_daemon_never_needs_are_refused(void **state)
{
        (void)state;
        assert_int_equal(in_child(try_calls), 0);
}

static void *write_on_thread(void *arg)
{
        *(bool *)arg = can_write(outside);
        return NULL;
}

static int try_threads(void)
{
        bool wrote = true;
        pthread_t t;

        EXPECT(pthread_create(&t, NULL, write_on_thread, &wrote) == 0);
        EXPECT(pthread_join(t, NULL) == 0);
        EXPECT(!wrote || !possible.writes);
        return 0;
}

static void threads_made_later_are_confined_too(void **state)
{
        (void)state;
        assert_int_equal(in_child(try_threads), 0);
}

struct child {
        char *path;
        int status;
};

static void run_shell(void *arg)
{
        struct child *c = arg;
        pid_t pid = fork();

        if (pid == 0) {
                execl("/bin/sh", "sh", "-c", "echo mine >\"$0\"", c->path, (char *)NULL);
                _exit(127);
        }
        waitpid(pid, &c->status, 0);
}

static int try_children(void)
{
        struct child c = { scratch_path(outside, "of-a-child"), -1 };

        spawn_thread_run(run_shell, &c);
        EXPECT(WIFEXITED(c.status) && WEXITSTATUS(c.status) == 0);
        EXPECT(access(c.path, F_OK) == 0);
        free(c.path);
        spawn_thread_stop();
        return 0;
}

static void children_are_not_confined(void **state)
{
        (void)state;
        assert_int_equal(in_child(try_children), 0);
}

/* As a sandbox for tools would: a user namespace with a mount of its own. */
static void run_sandbox(void *arg)
{
        struct child *c = arg;
        pid_t pid = fork();

        if (pid == 0) {
                if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                        _exit(77); /* the machine has none */
                _exit(mount("none", inside, "tmpfs", 0, NULL) == 0 ? 0 : 1);
        }
        waitpid(pid, &c->status, 0);
}

static int try_sandbox(void)
{
        struct child c = { NULL, -1 };

        spawn_thread_run(run_sandbox, &c);
        EXPECT(WIFEXITED(c.status));
        EXPECT(WEXITSTATUS(c.status) == 0 || WEXITSTATUS(c.status) == 77);
        return 0;
}

static void children_may_make_sandboxes(void **state)
{
        (void)state;
        assert_int_equal(in_child(try_sandbox), 0);
}

static int try_memory(void)
{
        struct confine_report r = { 0 };
        struct rlimit cores;

        confine_memory(false, false, &r);
        EXPECT(r.dumps || prctl(PR_GET_DUMPABLE) == 0);
        confine_memory(true, false, &r);
        EXPECT(prctl(PR_GET_DUMPABLE) == 1 && r.dumps);
        confine_memory(false, true, &r);
        if (r.dumps) /* a sanitizer */
                return 0;
        EXPECT(prctl(PR_GET_DUMPABLE) == 0);
        EXPECT(getrlimit(RLIMIT_CORE, &cores) == 0 && cores.rlim_max == 0);
        return 0;
}

static void memory_is_neither_dumped_nor_debugged(void **state)
{
        (void)state;
        assert_int_equal(in_child(try_memory), 0);
}

static void a_missing_place_is_an_error(void **state)
{
        const char *writable[] = { "/no/such/place", NULL };
        struct confine_report r = { 0 };
        struct error err = { 0 };
        int status;
        pid_t pid = fork();

        (void)state;
        if (pid == 0) {
                int rc = confine_self(writable, &r, &err);

                /* without Landlock there is nothing to open */
                _exit(r.writes_why[0] ? 0 : rc == -1 && strstr(err.text, writable[0]) ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static int set_up(void **state)
{
        char *old;
        FILE *f;

        (void)state;
        inside = scratch_new();
        outside = scratch_new();
        old = scratch_path(outside, "old");
        f = fopen(old, "w");
        if (!f || fputs("text", f) < 0 || fclose(f) != 0)
                return -1;
        free(old);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        scratch_free(inside);
        scratch_free(outside);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_the_named_places_are_written),
                cmocka_unit_test(calls_that_the_daemon_never_needs_are_refused),
                cmocka_unit_test(threads_made_later_are_confined_too),
                cmocka_unit_test(children_are_not_confined),
                cmocka_unit_test(children_may_make_sandboxes),
                cmocka_unit_test(memory_is_neither_dumped_nor_debugged),
                cmocka_unit_test(a_missing_place_is_an_error),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
