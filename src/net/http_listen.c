/*
 * The listening socket, and the text of the certificate.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/address.h"
#include "net/http_exchange.h"

static int bind_to(const struct addrinfo *ai)
{
        int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

        if (fd < 0)
                return -1;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (ai->ai_family == AF_INET6)
                setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
        if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, 1024) == 0)
                return fd;
        on = errno;
        close(fd);
        errno = on;
        return -1;
}

int http_listen(const char *address, struct error *err)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                                  .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
        struct addrinfo *list = NULL;
        char *host = NULL, service[16];
        int fd = -1, port, rc;

        if (address_split(address, &host, &port, err) != 0)
                return error_prefix(err, "cannot listen");
        snprintf(service, sizeof(service), "%d", port);
        rc = getaddrinfo(host, service, &hints, &list);
        if (rc != 0)
                error_set(err, ERR_INVALID, "cannot listen at '%s': %s", address, gai_strerror(rc));
        else if ((fd = bind_to(list)) < 0)
                error_set(err, errno == EADDRINUSE ? ERR_BUSY : ERR_NET,
                          "cannot listen at '%s': %s", address, strerror(errno));
        if (list)
                freeaddrinfo(list);
        free(host);
        return fd;
}

char *http_listen_address(int fd)
{
        struct sockaddr_storage ss = { 0 };
        socklen_t n = sizeof(ss);
        char host[NI_MAXHOST], port[NI_MAXSERV];

        if (getsockname(fd, (struct sockaddr *)&ss, &n) != 0 ||
            getnameinfo((struct sockaddr *)&ss, n, host, sizeof(host), port, sizeof(port),
                        NI_NUMERICHOST | NI_NUMERICSERV) != 0)
                return mem_strdup("?");
        return mem_printf(ss.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

char *http_listen_read_pem(const char *path, struct error *err)
{
        char *text = mem_alloc(65536);
        size_t n = 0;
        ssize_t got = -1;
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd >= 0) {
                while (n < 65535 && (got = read(fd, text + n, 65535 - n)) > 0)
                        n += (size_t)got;
                close(fd);
        }
        if (fd < 0 || got != 0) {
                error_set(err, ERR_IO, "cannot read '%s': %s", path,
                          got > 0 ? "it is too large" : strerror(errno));
                free(text);
                return NULL;
        }
        text[n] = '\0';
        return text;
}
