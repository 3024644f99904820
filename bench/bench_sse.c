/*
 * bench_sse: holds many clients of GET /api/v2/events/stream.
 *
 *     bench_sse ADDRESS KEY CLIENTS
 *
 * Opens the clients, a few at a time, prints "OPEN n seconds" when all have their head, and then
 * reads commands from standard input:
 *     post     posts one message; prints "FANOUT clients first p50 last" in microseconds since the
 *              message was sent (durable commit and fan-out together), and "ACK n" for its own
 *              answer
 *     quit     closes everything and ends
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

#include "base/clock.h"
#include "base/mem.h"

#define AT_ONCE 100 /* connections being made at the same time */

struct client {
        uv_tcp_t tcp;
        uv_connect_t connect;
        uv_write_t write;
        bool open, poster;
        unsigned heard; /* rounds */
};

static struct {
        const char *address, *key;
        struct sockaddr_in to;
        struct client *clients;
        long count, begun, opened;
        uint64_t start_ns;
        /* a round of fan-out */
        struct client poster;
        unsigned round;
        uint64_t posted_ns;
        long heard;
        uint32_t *micros;
} all;

static char request[600], shared[65536];

static void fail(const char *what, int rc)
{
        fprintf(stderr, "bench_sse: %s: %s\n", what, uv_strerror(rc));
        exit(1);
}

static void begin_next(void);

static uint32_t since_posted(void)
{
        return (uint32_t)((clock_mono_ns() - all.posted_ns) / 1000);
}

static int ascending(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return x < y ? -1 : x > y;
}

static void on_head(struct client *c)
{
        if (strncmp(shared, "HTTP/1.1 200", 12) != 0) {
                fprintf(stderr, "bench_sse: %.300s\n", shared);
                exit(1);
        }
        c->open = true;
        if (++all.opened == all.count) {
                printf("OPEN %ld %.3f\n", all.opened,
                       (double)(clock_mono_ns() - all.start_ns) / 1e9);
                fflush(stdout);
        }
        begin_next();
}

static void on_event(struct client *c)
{
        if (c->heard == all.round)
                return;
        c->heard = all.round;
        all.micros[all.heard++] = since_posted();
        if (all.heard < all.count)
                return;
        qsort(all.micros, (size_t)all.heard, sizeof(*all.micros), ascending);
        printf("FANOUT %ld %u %u %u\n", all.heard, all.micros[0], all.micros[all.heard / 2],
               all.micros[all.heard - 1]);
        fflush(stdout);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
        struct client *c = s->data;

        (void)buf;
        if (n < 0)
                fail("read", (int)n);
        shared[n] = '\0';
        if (c->poster)
                printf("ACK %u\n", since_posted());
        else if (!c->open)
                on_head(c);
        else if (all.round > 0 && strstr(shared, "data:"))
                on_event(c);
}

/* One buffer for all: data is used before the next read. */
static void on_room(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
        (void)h;
        (void)suggested;
        *buf = uv_buf_init(shared, sizeof(shared) - 1);
}

static void on_written(uv_write_t *w, int status)
{
        (void)w;
        if (status < 0)
                fail("write", status);
}

static void send_text(struct client *c, char *text)
{
        uv_buf_t buf = uv_buf_init(text, (unsigned)strlen(text));

        uv_write(&c->write, (uv_stream_t *)&c->tcp, &buf, 1, on_written);
}

static void on_connected(uv_connect_t *req, int status)
{
        struct client *c = req->handle->data;

        if (status < 0)
                fail("connect", status);
        uv_read_start((uv_stream_t *)&c->tcp, on_room, on_read);
        if (!c->poster)
                send_text(c, request);
}

static void begin(struct client *c)
{
        uv_tcp_init(uv_default_loop(), &c->tcp);
        c->tcp.data = c;
        uv_tcp_connect(&c->connect, &c->tcp, (const struct sockaddr *)&all.to, on_connected);
}

static void begin_next(void)
{
        if (all.begun < all.count)
                begin(&all.clients[all.begun++]);
}

static void post(void)
{
        static char text[900];
        char body[200];
        int n;

        all.round++;
        all.heard = 0;
        n = snprintf(body, sizeof(body),
                     "{\"instanceId\":\"bench\",\"chatId\":\"fan\",\"text\":\"round %u\"}",
                     all.round);
        snprintf(text, sizeof(text),
                 "POST /api/v2/messages/inbound HTTP/1.1\r\n"
                 "Host: %s\r\n"
                 "Authorization: Bearer %s\r\n"
                 "Content-Type: application/json\r\n"
                 "Content-Length: %d\r\n"
                 "\r\n"
                 "%s",
                 all.address, all.key, n, body);
        all.posted_ns = clock_mono_ns();
        send_text(&all.poster, text);
}

static void on_command(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
        (void)s;
        (void)buf;
        if (n <= 0 || strncmp(shared, "quit", 4) == 0)
                uv_stop(uv_default_loop());
        else if (strncmp(shared, "post", 4) == 0)
                post();
}

static void parse_address(const char *address)
{
        const char *colon = strrchr(address, ':');
        char host[64];

        snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - address) : 0, address);
        if (!colon || uv_ip4_addr(host, (int)strtol(colon + 1, NULL, 10), &all.to) != 0)
                fail(address, UV_EINVAL);
}

int main(int argc, char **argv)
{
        struct rlimit files;
        uv_pipe_t commands;

        if (argc != 4) {
                fprintf(stderr, "usage: bench_sse ADDRESS KEY CLIENTS\n");
                return 64;
        }
        getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        all.address = argv[1];
        all.key = argv[2];
        all.count = strtol(argv[3], NULL, 10);
        all.clients = mem_array((size_t)all.count, sizeof(*all.clients));
        all.micros = mem_array((size_t)all.count, sizeof(*all.micros));
        parse_address(all.address);
        snprintf(request, sizeof(request),
                 "GET /api/v2/events/stream HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"
                 "\r\n",
                 all.address, all.key);
        uv_pipe_init(uv_default_loop(), &commands, 0);
        uv_pipe_open(&commands, 0);
        uv_read_start((uv_stream_t *)&commands, on_room, on_command);
        all.start_ns = clock_mono_ns();
        all.poster.poster = true;
        begin(&all.poster);
        for (int i = 0; i < AT_ONCE; i++)
                begin_next();
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        return 0;
}
