/*
 * Any bytes sent to a real server on a real connection, then the sending side closed: the
 * connection ends, nothing crashes or leaks, and no route is asked more often than there are
 * request lines.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/http_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static unsigned asked;

static void run_any(struct http_exchange *x)
{
        size_t n;
        const char *body = http_body(x, &n);

        asked++;
        http_header(x, "x-key");
        http_answer(x, 200, "text/plain", body, n);
}

static const struct http_route routes[] = {
        { "GET", "/", run_any, 0, NULL },
        { "POST", "/", run_any, 100, NULL },
        { "GET", "/things/:id/:part", run_any, 0, NULL },
};

static int call(const char *address)
{
        struct sockaddr_in sa = { .sin_family = AF_INET };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        sa.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
        sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
                abort();
        return fd;
}

/* Reads what there is. Has the server closed? */
static bool ended(int fd)
{
        char bytes[4096];
        ssize_t n;

        do {
                n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        } while (n > 0);
        return n == 0 || errno != EAGAIN;
}

static unsigned request_lines(const uint8_t *data, size_t n)
{
        unsigned count = 0;

        for (size_t i = 0; i + 8 <= n; i++)
                count += memcmp(data + i, " HTTP/1.", 8) == 0;
        return count;
}

static void step(struct loop *loop, unsigned long *steps)
{
        loop_step(loop, false);
        if (++*steps > 1000000)
                abort(); /* it hangs */
}

/* The sending side closes first; the server has to end what it began. */
static void leave_politely(struct loop *loop, struct http_server *server, int fd)
{
        unsigned long steps = 0;

        shutdown(fd, SHUT_WR);
        while (!ended(fd) || http_server_connections(server) > 0)
                step(loop, &steps);
        close(fd);
}

/*
 * A reset. Most inputs end so, because a polite end leaves a port in TIME_WAIT for a minute, and
 * there are not enough ports for as many inputs as a fast machine tries in that time.
 */
static void leave_at_once(struct loop *loop, struct http_server *server, int fd)
{
        struct linger now = { 1, 0 };
        unsigned long steps = 0;

        while (http_server_connections(server) == 0 && !ended(fd))
                /* one that was never accepted would be served within the next input */
                step(loop, &steps);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        close(fd);
        while (http_server_connections(server) > 0)
                step(loop, &steps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static struct loop *loop;
        static struct http_server *server;
        struct http_server_options o = { .listen = "127.0.0.1:0" };
        int fd;

        if (!loop) {
                loop = loop_new();
                server = http_server_new(loop, &o, routes, COUNT(routes), NULL, NULL, NULL);
        }
        if (n > 32768)
                return 0;
        fd = call(http_server_address(server));
        asked = 0;
        if (send(fd, data, n, MSG_NOSIGNAL) != (ssize_t)n)
                abort();
        for (int i = 0; i < 4; i++)
                loop_step(loop, false);
        if (n % 16 == 0)
                leave_politely(loop, server, fd);
        else
                leave_at_once(loop, server, fd);
        if (asked > request_lines(data, n))
                abort();
        return 0;
}
