#include "http_raw_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "patience.h"

static void fatal(const char *what)
{
        perror(what);
        abort();
}

static int try_connect(const char *address)
{
        struct sockaddr_in sa = { .sin_family = AF_INET };
        const char *colon = strrchr(address, ':');
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        sa.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
        sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
                return fd;
        if (fd >= 0)
                close(fd);
        return -1;
}

bool http_raw_refused(const char *address)
{
        int fd = try_connect(address);

        if (fd >= 0)
                close(fd);
        return fd < 0;
}

void http_raw_open(struct http_raw *c, struct loop *l, const char *address)
{
        c->loop = l;
        c->closed = false;
        buf_init(&c->in, 0);
        c->fd = try_connect(address);
        if (c->fd < 0)
                fatal("connect");
        if (fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0)
                fatal("fcntl");
}

void http_raw_close(struct http_raw *c)
{
        if (c->fd >= 0)
                close(c->fd);
        c->fd = -1;
        buf_release(&c->in);
}

void http_raw_reset(struct http_raw *c)
{
        struct linger now = { 1, 0 };

        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        http_raw_close(c);
}

void http_raw_half_close(struct http_raw *c)
{
        shutdown(c->fd, SHUT_WR);
}

static void turn(struct loop *l)
{
        loop_step(l, false);
}

static void receive(struct http_raw *c)
{
        char bytes[16384];
        ssize_t n;

        while (!c->closed) {
                n = recv(c->fd, bytes, sizeof(bytes), 0);
                if (n > 0)
                        buf_add(&c->in, bytes, (size_t)n);
                else if (n == 0 || (errno != EAGAIN && errno != EINTR))
                        c->closed = true;
                else
                        return;
        }
}

/* One round of everything; waits a moment when nothing is happening. */
static void round_of(struct http_raw *c)
{
        http_raw_pause(c, 1);
}

void http_raw_pause(struct http_raw *c, int ms)
{
        struct pollfd p = { .fd = c->fd, .events = POLLIN };

        turn(c->loop);
        poll(&p, 1, ms);
        receive(c);
}

bool http_raw_until(struct loop *l, bool (*done)(void *arg), void *arg)
{
        int64_t end = clock_mono_ms() + PATIENCE_MS;

        while (!done(arg)) {
                if (clock_mono_ms() > end)
                        return false;
                turn(l);
                poll(NULL, 0, 1);
        }
        return true;
}

bool http_raw_send(struct http_raw *c, const void *bytes, size_t n)
{
        const char *p = bytes;
        int64_t end = clock_mono_ms() + PATIENCE_MS;

        while (n > 0 && clock_mono_ms() < end) {
                ssize_t sent = send(c->fd, p, n, MSG_NOSIGNAL);

                if (sent > 0) {
                        p += sent;
                        n -= (size_t)sent;
                } else if (errno != EAGAIN && errno != EINTR) {
                        return false;
                }
                turn(c->loop);
        }
        return n == 0;
}

bool http_raw_say(struct http_raw *c, const char *text)
{
        return http_raw_send(c, text, strlen(text));
}

/* Where the answer that begins at p ends; NULL when it is not complete. */
static const char *answer_end(const struct http_raw *c, const char *p)
{
        const char *limit = c->in.data + c->in.len, *head = strstr(p, "\r\n\r\n"), *field;
        size_t length = 0;

        if (!head)
                return NULL;
        head += 4;
        if (memcmp(p, "HTTP/1.1 1", 10) == 0)
                return head;
        field = strcasestr(p, "\r\nTransfer-Encoding: chunked");
        if (field && field < head) {
                const char *end = strstr(head - 2, "\r\n0\r\n\r\n");

                return end ? end + 7 : NULL;
        }
        field = strcasestr(p, "\r\nContent-Length: ");
        if (field && field < head)
                length = strtoul(field + 18, NULL, 10);
        return (size_t)(limit - head) < length ? NULL : head + length;
}

/* Calls with each answer that has begun; returns the number of complete final ones. */
static size_t walk(const struct http_raw *c, size_t wanted, int *status)
{
        const char *p = c->in.data;
        size_t count = 0;

        while (strncmp(p, "HTTP/1.1 ", 9) == 0) {
                bool interim = p[9] == '1';
                const char *end = answer_end(c, p);

                if (!interim && count == wanted)
                        *status = (int)strtol(p + 9, NULL, 10);
                if (!end)
                        break;
                if (!interim)
                        count++;
                p = end;
        }
        return count;
}

size_t http_raw_answers(const struct http_raw *c)
{
        int status;

        return walk(c, (size_t)-1, &status);
}

int http_raw_status(const struct http_raw *c, size_t i)
{
        int status = 0;

        walk(c, i, &status);
        return status;
}

bool http_raw_wait_for(struct http_raw *c, const char *text)
{
        int64_t end = clock_mono_ms() + PATIENCE_MS;

        while (!memmem(c->in.data, c->in.len, text, strlen(text))) {
                if (c->closed || clock_mono_ms() > end)
                        return false;
                round_of(c);
        }
        return true;
}

bool http_raw_wait_answers(struct http_raw *c, size_t n)
{
        int64_t end = clock_mono_ms() + PATIENCE_MS;

        while (http_raw_answers(c) < n) {
                if (c->closed || clock_mono_ms() > end)
                        return false;
                round_of(c);
        }
        return true;
}

bool http_raw_wait_closed(struct http_raw *c)
{
        int64_t end = clock_mono_ms() + PATIENCE_MS;

        while (!c->closed) {
                if (clock_mono_ms() > end)
                        return false;
                round_of(c);
        }
        return true;
}
