/*
 * The protocol is one datagram; libsystemd would cost more memory than the daemon's own state.
 */
#include "net/sd_notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void sd_notify_send(const char *state)
{
        const char *path = getenv("NOTIFY_SOCKET");
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        int fd;

        if (!path || strlen(path) >= sizeof(to.sun_path))
                return;
        memcpy(to.sun_path, path, strlen(path));
        if (to.sun_path[0] == '@')
                to.sun_path[0] = '\0';
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return;
        (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&to,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
        close(fd);
}

static void on_watchdog(void *arg)
{
        (void)arg;
        sd_notify_send("WATCHDOG=1");
}

struct timer *sd_notify_watchdog(struct loop *l)
{
        const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
        int64_t every_ms = usec ? strtoll(usec, NULL, 10) / 2000 : 0;
        struct timer *t;

        if (!getenv("NOTIFY_SOCKET") || every_ms <= 0 ||
            (pid && strtoll(pid, NULL, 10) != (long long)getpid()))
                return NULL;
        t = timer_new(l, on_watchdog, NULL);
        timer_repeat(t, every_ms);
        timer_unref(t);
        return t;
}
