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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_state_is_one_datagram),
                cmocka_unit_test(a_missing_listener_is_fine),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
