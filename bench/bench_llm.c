/*
 * bench_llm: a fake language model for benchmarks.
 *
 *     bench_llm [--port N] [--delay-ms N]
 *
 * Answers POST /v1/chat/completions as OpenAI does, streamed or whole, always with the same text:
 * at once, or after the delay, for any number of calls at a time. POST /hook is a webhook agent
 * with the same answer. Prints its address as the first line.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/http_server.h"
#include "net/loop.h"

#define WORDS "The quick brown fox jumps over the lazy dog, and says what it has seen on the way."
#define USAGE "\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":18,\"total_tokens\":58}"
#define CHUNK \
        "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"fox\",\"choices\":"

static const char whole[] =
        "{\"id\":\"c1\",\"object\":\"chat.completion\",\"model\":\"fox\",\"choices\":[{\"index\":0,"
        "\"message\":{\"role\":\"assistant\",\"content\":\"" WORDS
        "\"},\"finish_reason\":\"stop\"}]," USAGE "}";

static const char reply[] = "{\"reply\":\"" WORDS "\"}";

static const char streamed[] =
        CHUNK "[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"" WORDS "\"},"
              "\"finish_reason\":null}]}\n\n"                                //
        CHUNK "[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n" //
        CHUNK "[]," USAGE "}\n"
              "\n"
              "data: [DONE]\n"
              "\n";

struct bench_llm {
        struct loop *loop;
        int64_t delay_ms;
        uv_signal_t term;
};

struct delayed_answer {
        struct http_exchange *x;
        struct timer *timer;
};

static void answer(struct http_exchange *x)
{
        size_t n;
        const char *body = http_body(x, &n);

        if (strcmp(http_route_of(x)->path, "/hook") == 0)
                http_answer(x, 200, "application/json", reply, sizeof(reply) - 1);
        else if (memmem(body, n, "\"stream\":true", 13))
                http_answer(x, 200, "text/event-stream", streamed, sizeof(streamed) - 1);
        else
                http_answer(x, 200, "application/json", whole, sizeof(whole) - 1);
}

static void on_delay(void *arg)
{
        struct delayed_answer *d = arg;

        answer(d->x);
        timer_free(d->timer);
        free(d);
}

static void run_completion(struct http_exchange *x)
{
        struct bench_llm *m = http_server_arg(x);
        struct delayed_answer *d;

        if (m->delay_ms == 0) {
                answer(x);
                return;
        }
        d = mem_zalloc(sizeof(*d));
        d->x = x;
        d->timer = timer_new(m->loop, on_delay, d);
        timer_start(d->timer, m->delay_ms);
}

static void run_models(struct http_exchange *x)
{
        static const char list[] =
                "{\"object\":\"list\",\"data\":[{\"id\":\"fox\",\"object\":\"model\"}]}";

        http_answer(x, 200, "application/json", list, sizeof(list) - 1);
}

static const struct http_route routes[] = {
        { "POST", "/v1/chat/completions", run_completion, 4u << 20, NULL },
        { "POST", "/hook", run_completion, 4u << 20, NULL },
        { "GET", "/v1/models", run_models, 0, NULL },
};

static void on_term(uv_signal_t *handle, int number)
{
        struct bench_llm *m = handle->data;

        (void)number;
        loop_stop(m->loop);
}

static void read_options(int argc, char **argv, struct bench_llm *m, char *listen, size_t size)
{
        static const struct option longs[] = { { "port", required_argument, NULL, 'p' },
                                               { "delay-ms", required_argument, NULL, 'd' },
                                               { NULL, 0, NULL, 0 } };
        int c;

        snprintf(listen, size, "127.0.0.1:0");
        while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
                if (c == 'p')
                        snprintf(listen, size, "127.0.0.1:%s", optarg);
                else if (c == 'd')
                        m->delay_ms = strtoll(optarg, NULL, 10);
                else
                        exit(64);
        }
}

int main(int argc, char **argv)
{
        struct bench_llm m = { 0 };
        struct error err = { 0 };
        struct http_server *server;
        char listen[64];

        read_options(argc, argv, &m, listen, sizeof(listen));
        signal(SIGPIPE, SIG_IGN);
        m.loop = loop_new();
        server = http_server_new(m.loop, &(struct http_server_options){ .listen = listen }, routes,
                                 COUNT(routes), NULL, &m, &err);
        if (!server) {
                fprintf(stderr, "bench_llm: %s\n", err.text);
                return 1;
        }
        uv_signal_init(loop_uv(m.loop), &m.term);
        m.term.data = &m;
        uv_signal_start(&m.term, on_term, SIGTERM);
        printf("http://%s/v1\n", http_server_address(server));
        fflush(stdout);
        loop_run(m.loop);
        return 0;
}
