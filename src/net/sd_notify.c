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
