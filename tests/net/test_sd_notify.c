/*
 * Notifies the service manager by a path or an abstract name; a missing listener is no failure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../lib/scratch.h"
#include "net/sd_notify.h"

/* name: as in NOTIFY_SOCKET. */
static int listen_at(const char *name)
{
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        snprintf(at.sun_path, sizeof(at.sun_path), "%s", name);
        if (at.sun_path[0] == '@')
                at.sun_path[0] = '\0';
        assert_int_equal(bind(fd, (struct sockaddr *)&at,
                              (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
                         0);
        setenv("NOTIFY_SOCKET", name, 1);
        return fd;
}

static void expect(int fd, const char *state)
{
        char got[40] = "";

        sd_notify_send(state);
        assert_int_equal(recv(fd, got, sizeof(got) - 1, 0), strlen(state));
        assert_string_equal(got, state);
        close(fd);
}

static void a_state_is_one_datagram(void **state)
{
        char *dir = scratch_new(), *path = scratch_path(dir, "notify"), name[60];

        (void)state;
        expect(listen_at(path), "READY=1");
        snprintf(name, sizeof(name), "@dragoman-test-%d", (int)getpid());
        expect(listen_at(name), "STOPPING=1");
        free(path);
        scratch_free(dir);
}

static void a_missing_listener_is_fine(void **state)
{
        char *dir = scratch_new(), *path = scratch_path(dir, "nobody"), large[300];

        (void)state;
        unsetenv("NOTIFY_SOCKET");
        sd_notify_send("READY=1");
        setenv("NOTIFY_SOCKET", path, 1);
        sd_notify_send("READY=1");
        memset(large, 'x', sizeof(large) - 1);
        large[sizeof(large) - 1] = '\0';
        setenv("NOTIFY_SOCKET", large, 1);
        sd_notify_send("READY=1");
        free(path);
        scratch_free(dir);
}

static void await_state(struct loop *l, int fd, const char *state)
{
        char got[40] = "";
        ssize_t n;

        while ((n = recv(fd, got, sizeof(got) - 1, 0)) < 0)
                loop_step(l, true);
        got[n] = '\0';
        assert_string_equal(got, state);
}

static void on_keep(void *arg)
{
        (void)arg;
}

/* Reports come from the loop: one that does not turn sends none. */
static void a_running_loop_feeds_the_watchdog(void **state)
{
        char *dir = scratch_new(), *path = scratch_path(dir, "notify"), got[40];
        struct loop *l = loop_new();
        struct timer *keep = timer_new(l, on_keep, NULL), *watchdog;
        int fd = listen_at(path);

        (void)state;
        timer_start(keep, 3600000);
        setenv("WATCHDOG_USEC", "100000", 1);
        unsetenv("WATCHDOG_PID");
        watchdog = sd_notify_watchdog(l);
        assert_non_null(watchdog);
        await_state(l, fd, "WATCHDOG=1");
        usleep(150000); /* longer than allowed, and the loop stands still */
        assert_int_equal(recv(fd, got, sizeof(got), 0), -1);
        await_state(l, fd, "WATCHDOG=1");
        timer_free(watchdog);
        timer_free(keep);
        loop_free(l);
        close(fd);
        free(path);
        scratch_free(dir);
}

static void no_watchdog_runs_unless_it_is_for_this_process(void **state)
{
        static const struct {
                const char *usec, *pid;
        } rows[] = { { NULL, NULL }, { "0", NULL }, { "junk", NULL }, { "100000", "1" } };
        struct loop *l = loop_new();

        (void)state;
        setenv("NOTIFY_SOCKET", "@nobody", 1);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                unsetenv("WATCHDOG_USEC");
                unsetenv("WATCHDOG_PID");
                if (rows[i].usec)
                        setenv("WATCHDOG_USEC", rows[i].usec, 1);
                if (rows[i].pid)
                        setenv("WATCHDOG_PID", rows[i].pid, 1);
                assert_null(sd_notify_watchdog(l));
        }
        loop_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_state_is_one_datagram),
                cmocka_unit_test(a_missing_listener_is_fine),
                cmocka_unit_test(a_running_loop_feeds_the_watchdog),
                cmocka_unit_test(no_watchdog_runs_unless_it_is_for_this_process),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
