/*
 * bench_open: posts distinct messages and measures how long each takes to be on disk.
 *
 *     bench_open ADDRESS KEY RUN TOTAL RATE CONNECTIONS
 *
 * RATE > 0 is an open loop: message i is due at i / RATE seconds, answered or not, and its latency
 * counts from then. So a stalled server is charged for everything that queued up (wrk, a closed
 * loop, just sends less). RATE 0 is a closed loop over all connections.
 *
 * Prints: RESULT answered errors seconds p50 p99 p99.9 max (microseconds)
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/mem.h"

#define CHATS       1000
#define REQUEST_MAX 1200
#define ANSWER_MAX  4096

struct run {
        const char *address, *key, *name;
        int64_t total, rate;
        uint64_t start_ns;
        int64_t sent, answered, errors;
        uint32_t *micros; /* one per message */
        struct conn *idle;
};

struct conn {
        struct run *run;
        uv_tcp_t tcp;
        uv_write_t write;
        struct conn *next; /* among the idle ones */
        uint64_t due_ns;
        int64_t message;
        char request[REQUEST_MAX];
        char answer[ANSWER_MAX];
        size_t have;
};

static void fail(const char *what, int rc)
{
        fprintf(stderr, "bench_open: %s: %s\n", what, uv_strerror(rc));
        exit(1);
}

/* ---- one message ---- */

static size_t write_request(struct conn *c)
{
        const struct run *r = c->run;
        char body[600];
        long long i = (long long)c->message;
        int n = snprintf(
                body, sizeof(body),
                "{\"instanceId\":\"bench\",\"chatId\":\"chat-%lld\",\"externalId\":\"%s-%lld\","
                "\"sender\":{\"id\":\"user-%lld\",\"displayName\":\"Ann\"},\"text\":\"%lld "
                "The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the "
                "lazy dog. The quick brown fox jumps over the lazy dog. The quick brown fox "
                "jumps over the lazy dog. \"}",
                i % CHATS, r->name, i, i % CHATS, i);

        n = snprintf(c->request, sizeof(c->request),
                     "POST /api/v2/messages/inbound HTTP/1.1\r\n"
                     "Host: %s\r\n"
                     "Authorization: Bearer %s\r\n"
                     "Content-Type: application/json\r\n"
                     "Content-Length: %d\r\n"
                     "\r\n"
                     "%s",
                     r->address, r->key, n, body);
        if (n <= 0 || (size_t)n >= sizeof(c->request))
                fail("request", UV_E2BIG);
        return (size_t)n;
}

static void on_written(uv_write_t *w, int status)
{
        (void)w;
        if (status < 0)
                fail("write", status);
}

static uint64_t due_ns(const struct run *r, int64_t message)
{
        return r->start_ns + (uint64_t)(message * INT64_C(1000000000) / r->rate);
}

static void post(struct conn *c, uint64_t now_ns)
{
        struct run *r = c->run;
        uv_buf_t buf;

        c->message = r->sent++;
        c->due_ns = r->rate > 0 ? due_ns(r, c->message) : now_ns;
        buf = uv_buf_init(c->request, (unsigned)write_request(c));
        uv_write(&c->write, (uv_stream_t *)&c->tcp, &buf, 1, on_written);
}

/* Sends what is due while connections are free; the latency of the rest grows. */
static void post_due(struct run *r)
{
        uint64_t now = clock_mono_ns();
        struct conn *c;

        while ((c = r->idle) && r->sent < r->total && (r->rate == 0 || due_ns(r, r->sent) <= now)) {
                r->idle = c->next;
                post(c, now);
        }
}

/* ---- answers ---- */

/* The length of the complete answer at the front of the buffer, 0 when there is none yet. */
static size_t answer_length(struct conn *c)
{
        char *end, *length;
        size_t head, n;

        c->answer[c->have] = '\0';
        end = strstr(c->answer, "\r\n\r\n");
        if (!end)
                return 0;
        head = (size_t)(end + 4 - c->answer);
        length = strcasestr(c->answer, "content-length:");
        n = head + (length ? strtoul(length + 15, NULL, 10) : 0);
        return c->have >= n ? n : 0;
}

static void note_answer(struct conn *c, uint64_t now)
{
        struct run *r = c->run;

        if (strncmp(c->answer, "HTTP/1.1 202", 12) != 0 && r->errors++ == 0)
                fprintf(stderr, "bench_open: %.300s\n", c->answer);
        r->micros[r->answered++] = (uint32_t)((now - c->due_ns) / 1000);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
        struct conn *c = s->data;
        struct run *r = c->run;

        (void)buf;
        if (n < 0)
                fail("read", (int)n);
        c->have += (size_t)n;
        if (answer_length(c) == 0)
                return;
        note_answer(c, clock_mono_ns());
        c->have = 0;
        c->next = r->idle;
        r->idle = c;
        if (r->answered == r->total)
                uv_stop(s->loop);
        else
                post_due(r);
}

static void on_room(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
        struct conn *c = h->data;

        (void)suggested;
        *buf = uv_buf_init(c->answer + c->have, (unsigned)(sizeof(c->answer) - 1 - c->have));
}

/* ---- connections ---- */

static unsigned connecting;

static void on_connected(uv_connect_t *req, int status)
{
        struct conn *c = req->handle->data;

        if (status < 0)
                fail("connect", status);
        uv_read_start((uv_stream_t *)&c->tcp, on_room, on_read);
        c->next = c->run->idle;
        c->run->idle = c;
        free(req);
        if (--connecting == 0)
                uv_stop(c->tcp.loop);
}

static void conn_open(struct run *r, const struct sockaddr_in *to)
{
        struct conn *c = mem_zalloc(sizeof(*c));

        c->run = r;
        uv_tcp_init(uv_default_loop(), &c->tcp);
        uv_tcp_nodelay(&c->tcp, 1);
        c->tcp.data = c;
        connecting++;
        uv_tcp_connect(mem_zalloc(sizeof(uv_connect_t)), &c->tcp, (const struct sockaddr *)to,
                       on_connected);
}

static void parse_address(const char *address, struct sockaddr_in *out)
{
        const char *colon = strrchr(address, ':');
        char host[64];

        snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - address) : 0, address);
        if (!colon || uv_ip4_addr(host, (int)strtol(colon + 1, NULL, 10), out) != 0)
                fail(address, UV_EINVAL);
}

/* ---- clock: a timerfd every millisecond, because timers of the loop are late by up to one ---- */

static void on_tick(uv_poll_t *poll, int status, int events)
{
        uint64_t times;

        (void)status;
        (void)events;
        if (read(*(int *)poll->data, &times, sizeof(times)) > 0)
                post_due(poll->loop->data);
}

static void start_ticking(void)
{
        static uv_poll_t poll;
        static int fd;
        struct itimerspec every = { .it_interval.tv_nsec = 1000000, .it_value.tv_nsec = 1000000 };

        fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        timerfd_settime(fd, 0, &every, NULL);
        poll.data = &fd;
        uv_poll_init(uv_default_loop(), &poll, fd);
        uv_poll_start(&poll, UV_READABLE, on_tick);
}

static int ascending(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return x < y ? -1 : x > y;
}

static uint32_t percentile(const struct run *r, double p)
{
        return r->micros[(size_t)((double)(r->answered - 1) * p / 100)];
}

int main(int argc, char **argv)
{
        struct sockaddr_in to;
        struct run r = { 0 };
        double seconds;

        if (argc != 7) {
                fprintf(stderr, "usage: bench_open ADDRESS KEY RUN TOTAL RATE CONNECTIONS\n");
                return 64;
        }
        r.address = argv[1];
        r.key = argv[2];
        r.name = argv[3];
        r.total = strtoll(argv[4], NULL, 10);
        r.rate = strtoll(argv[5], NULL, 10);
        r.micros = mem_array((size_t)r.total, sizeof(*r.micros));
        parse_address(r.address, &to);
        uv_default_loop()->data = &r;
        for (long i = strtol(argv[6], NULL, 10); i > 0; i--)
                conn_open(&r, &to);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        r.start_ns = clock_mono_ns();
        if (r.rate > 0)
                start_ticking();
        post_due(&r);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        seconds = (double)(clock_mono_ns() - r.start_ns) / 1e9;
        qsort(r.micros, (size_t)r.answered, sizeof(*r.micros), ascending);
        printf("RESULT %" PRId64 " %" PRId64 " %.3f %u %u %u %u\n", r.answered, r.errors, seconds,
               percentile(&r, 50), percentile(&r, 99), percentile(&r, 99.9), percentile(&r, 100));
        return 0;
}
