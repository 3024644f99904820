/*
 * bench_chat: people who write to a bot on dragoman-sim and wait for its answers.
 *
 *     bench_chat URL [--ca FILE] [--mark TEXT] --chats N [--seconds S | --messages M] [--rate R]
 *     [--window W]
 *
 * Each chat is a closed loop: it writes its next message when the last one is answered. Messages
 * that are due are sent as one list, the next list when the simulator has taken the last. --rate R
 * limits all chats together to R messages a second, --window W the unanswered messages. --mark TEXT
 * precedes the number of the person in the simulator's record of an answer.
 *
 * Latency is the time from handing a message to the simulator until its answer is seen there:
 * Dragoman, the agent and the simulator together.
 *
 * Prints: RESULT answered lost unexpected seconds p50 p99 max (microseconds)
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "net/http_client.h"
#include "net/loop.h"

#define FIRST_USER 1000
#define LIST_MAX   500 /* messages in one request */
#define WAIT_MS    20000
#define TICK_MS    5
#define QUIET_NS   UINT64_C(60000000000) /* without any answer, before waiting is given up */

struct run {
        struct loop *loop;
        struct http_client *http;
        struct timer *tick;
        const char *url, *mark;
        int64_t chats, seconds, messages, rate, window;

        uint64_t *since_ns; /* per chat: when its message left; 0: it is idle */
        int64_t *idle;      /* a ring of idle chats */
        int64_t idle_first, idle_count;
        bool posting;
        uint64_t start_ns, last_answer_ns;
        int64_t sent, answered, unexpected;
        uint64_t after; /* the last entry of the simulator's journal we have seen */
        uint32_t *micros;
        size_t micros_size;
};

static void fail(const char *what, const char *why)
{
        fprintf(stderr, "bench_chat: %s: %s\n", what, why);
        exit(1);
}

/* ---- writing ---- */

static void put_idle(struct run *r, int64_t chat)
{
        r->since_ns[chat] = 0;
        r->idle[(r->idle_first + r->idle_count++) % r->chats] = chat;
}

static int64_t take_idle(struct run *r)
{
        int64_t chat = r->idle[r->idle_first];

        r->idle_first = (r->idle_first + 1) % r->chats;
        r->idle_count--;
        return chat;
}

static bool is_over(const struct run *r, uint64_t now)
{
        if (r->messages)
                return r->sent >= r->messages;
        return now - r->start_ns >= (uint64_t)r->seconds * 1000000000u;
}

/* How many messages may be written now. */
static int64_t due(const struct run *r, uint64_t now)
{
        int64_t n = r->idle_count < LIST_MAX ? r->idle_count : LIST_MAX;
        int64_t open = r->sent - r->answered;

        if (r->messages && n > r->messages - r->sent)
                n = r->messages - r->sent;
        if (n > r->window - open)
                n = r->window - open;
        if (r->rate) {
                int64_t planned =
                        (int64_t)((now - r->start_ns) / 1000 * (uint64_t)r->rate / 1000000);

                if (n > planned - r->sent)
                        n = planned - r->sent;
        }
        return is_over(r, now) ? 0 : n;
}

static void write_some(struct run *r);

static void on_posted(void *arg, const struct http_result *result)
{
        struct run *r = arg;

        if (result->kind != ERR_NONE || result->status != 200)
                fail("writing", result->kind != ERR_NONE ? result->why : result->body);
        r->posting = false;
        write_some(r);
}

static void add_message(struct run *r, struct buf *b, uint64_t now)
{
        int64_t chat = take_idle(r);
        char text[160];

        snprintf(text, sizeof(text),
                 "%" PRId64
                 " What does the quick brown fox say today, and when will it jump again?",
                 r->sent);
        jsonw_open(b, '{');
        jsonw_int(b, "from", FIRST_USER + chat);
        jsonw_str(b, "text", text);
        jsonw_close(b, '}');
        r->since_ns[chat] = now;
        r->sent++;
}

static void write_some(struct run *r)
{
        static const struct http_handlers handlers = { .on_done = on_posted };
        static const char *const headers[] = { "Content-Type: application/json", NULL };
        uint64_t now = clock_mono_ns();
        int64_t n = due(r, now);
        struct buf b;
        char *url;

        if (r->posting || n <= 0)
                return;
        buf_init(&b, 0);
        jsonw_open(&b, '[');
        for (int64_t i = 0; i < n; i++)
                add_message(r, &b, now);
        jsonw_close(&b, ']');
        url = mem_printf("%s/sim/send", r->url);
        r->posting = true;
        http_call_start(r->http,
                        &(struct http_request){
                                .url = url, .headers = headers, .body = b.data, .body_n = b.len },
                        &handlers, r);
        free(url);
        buf_release(&b);
}

/* ---- reading ---- */

static void note_latency(struct run *r, uint64_t ns)
{
        if ((size_t)r->answered == r->micros_size) {
                r->micros_size = r->micros_size ? r->micros_size * 2 : 65536;
                r->micros = mem_realloc(r->micros, r->micros_size * sizeof(*r->micros));
        }
        r->micros[r->answered++] = (uint32_t)(ns / 1000);
}

static void on_answer(struct run *r, int64_t chat, uint64_t now)
{
        if (chat < 0 || chat >= r->chats || r->since_ns[chat] == 0) {
                r->unexpected++;
                return;
        }
        note_latency(r, now - r->since_ns[chat]);
        put_idle(r, chat);
        r->last_answer_ns = now;
}

/*
 * {"items":[{"seq":1,"kind":"message","bot":1,"chat":1000,...},...],"last":1,"missed":false}.
 * Quotes inside texts are escaped, so a plain search finds members only; a parser would take more
 * time than the rest of this program.
 */
static void read_answers(struct run *r, const char *body)
{
        static const char item[] = "\"kind\":\"message\",", last[] = "],\"last\":";
        uint64_t now = clock_mono_ns();
        const char *at = body;

        for (const char *next; (next = strstr(at, item)); at = next + sizeof(item)) {
                const char *id = strstr(next, r->mark);

                if (id)
                        on_answer(r, strtoll(id + strlen(r->mark), NULL, 10) - FIRST_USER, now);
        }
        at = strstr(at, last);
        if (!at || !strstr(at, "\"missed\":false"))
                fail("reading", "the simulator has forgotten what we have not seen");
        r->after = strtoull(at + sizeof(last) - 1, NULL, 10);
}

static void look(struct run *r);

static void on_looked(void *arg, const struct http_result *result)
{
        struct run *r = arg;

        if (result->kind != ERR_NONE || result->status != 200)
                fail("reading", result->kind != ERR_NONE ? result->why : result->body);
        read_answers(r, result->body);
        look(r);
        write_some(r);
}

static void look(struct run *r)
{
        static const struct http_handlers handlers = { .on_done = on_looked };
        char *url = mem_printf("%s/sim/messages?kind=message&wait=%d&after=%" PRIu64, r->url,
                               WAIT_MS, r->after);

        http_call_start(
                r->http,
                &(struct http_request){ .url = url, .repeatable = true, .max_body = 64u << 20 },
                &handlers, r);
        free(url);
}

/* ---- the run ---- */

static void on_tick(void *arg)
{
        struct run *r = arg;
        uint64_t now = clock_mono_ns();

        write_some(r);
        if (r->posting || !is_over(r, now))
                return;
        if (r->answered == r->sent || now - r->last_answer_ns > QUIET_NS)
                loop_stop(r->loop);
}

static void begin(struct run *r)
{
        r->start_ns = r->last_answer_ns = clock_mono_ns();
        for (int64_t i = 0; i < r->chats; i++)
                put_idle(r, i);
        timer_repeat(r->tick, TICK_MS);
        look(r);
        write_some(r);
}

/* Skips answers from before this run. */
static void on_found(void *arg, const struct http_result *result)
{
        struct run *r = arg;

        if (result->kind != ERR_NONE || result->status != 200)
                fail(r->url, result->kind != ERR_NONE ? result->why : result->body);
        r->after = UINT64_MAX / 4;
        read_answers(r, result->body);
        begin(r);
}

static int by_size(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

static void print_result(struct run *r)
{
        size_t n = (size_t)r->answered;
        uint32_t p50 = 0, p99 = 0, most = 0;

        if (n) {
                qsort(r->micros, n, sizeof(*r->micros), by_size);
                p50 = r->micros[n / 2];
                p99 = r->micros[n * 99 / 100];
                most = r->micros[n - 1];
        }
        printf("RESULT %" PRId64 " %" PRId64 " %" PRId64 " %.3f %u %u %u\n", r->answered,
               r->sent - r->answered, r->unexpected,
               (double)(r->last_answer_ns - r->start_ns) / 1e9, p50, p99, most);
}

static const char *read_options(struct run *r, int argc, char **argv)
{
        static const struct option longs[] = {
                { "ca", required_argument, NULL, 'a' },
                { "mark", required_argument, NULL, 'k' },
                { "chats", required_argument, NULL, 'c' },
                { "seconds", required_argument, NULL, 's' },
                { "messages", required_argument, NULL, 'm' },
                { "rate", required_argument, NULL, 'r' },
                { "window", required_argument, NULL, 'w' },
                { NULL, 0, NULL, 0 },
        };
        const char *ca = NULL;
        int c;

        r->mark = "\"chat\":";
        while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
                int64_t n = optarg ? strtoll(optarg, NULL, 10) : 0;

                switch (c) {
                case 'a':
                        ca = optarg;
                        break;
                case 'k':
                        r->mark = optarg;
                        break;
                case 'c':
                        r->chats = n;
                        break;
                case 's':
                        r->seconds = n;
                        break;
                case 'm':
                        r->messages = n;
                        break;
                case 'r':
                        r->rate = n;
                        break;
                case 'w':
                        r->window = n;
                        break;
                default:
                        exit(64);
                }
        }
        if (optind + 1 != argc || r->chats < 1 || (r->seconds < 1 && r->messages < 1))
                fail("usage", "bench_chat URL [--ca FILE] [--mark TEXT] --chats N [--seconds S | "
                              "--messages M] [--rate R] [--window W]");
        r->url = argv[optind];
        if (r->window < 1)
                r->window = r->chats;
        return ca;
}

int main(int argc, char **argv)
{
        static const struct http_handlers handlers = { .on_done = on_found };
        struct run r = { 0 };
        struct http_client_options options = { .ca_file = read_options(&r, argc, argv) };
        struct error err = { 0 };
        char *url = mem_printf("%s/sim/messages?after=%" PRIu64, r.url, UINT64_MAX / 4);

        r.loop = loop_new();
        r.http = http_client_new(r.loop, &options, &err);
        if (!r.http)
                fail("certificates", err.text);
        r.since_ns = mem_array((size_t)r.chats, sizeof(*r.since_ns));
        r.idle = mem_array((size_t)r.chats, sizeof(*r.idle));
        r.tick = timer_new(r.loop, on_tick, &r);
        http_call_start(r.http, &(struct http_request){ .url = url }, &handlers, &r);
        loop_run(r.loop);
        print_result(&r);
        return r.answered == r.sent && r.unexpected == 0 ? 0 : 2;
}
