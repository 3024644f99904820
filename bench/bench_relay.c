/*
 * bench_relay: the baseline for Dragoman: the same network calls and nothing else.
 *
 *     bench_relay BOT_URL MODEL_URL [--ca FILE] [--slack TOKEN]
 *
 * A bot that asks the model about every message and sends the answer: one streamed completion and
 * one call that sends it. It stores, remembers and retries nothing. On Telegram it polls, and
 * BOT_URL is the address of the API with "/bot" and the token; on Slack it has one connection of
 * Socket Mode, and TOKEN is the bot's. Prints its address as the first line, like the other
 * programs, and runs until it is stopped.
 */
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "net/sse_reader.h"
#include "net/websocket.h"

#define POLL_SECONDS 20

struct relay {
        struct loop *loop;
        struct http_client *bot, *model;
        const char *bot_url, *model_url;
        int64_t offset;
        /* of Slack; NULL: it is Telegram */
        char *bot_header, *app_header;
        struct websocket *socket;
};

/* One message. */
struct message {
        struct relay *relay;
        int64_t chat;
        char *channel; /* of Slack */
        struct sse_reader reader;
        struct buf answer;
};

static const char *const json_headers[] = { "Content-Type: application/json", NULL };

static void fail(const char *what, const char *why)
{
        fprintf(stderr, "bench_relay: %s: %s\n", what, why);
        exit(1);
}

static void check(const char *what, const struct http_result *result)
{
        if (result->kind != ERR_NONE || result->status != 200)
                fail(what, result->kind != ERR_NONE ? result->why : "not 200");
}

/* ---- the answer ---- */

static void message_free(struct message *m)
{
        sse_reader_release(&m->reader);
        buf_release(&m->answer);
        free(m->channel);
        free(m);
}

static void on_sent(void *arg, const struct http_result *result)
{
        check("sending", result);
        message_free(arg);
}

static void send_answer(struct message *m)
{
        static const struct http_handlers handlers = { .on_done = on_sent };
        const struct relay *r = m->relay;
        char *url =
                mem_printf("%s/%s", r->bot_url, m->channel ? "chat.postMessage" : "sendMessage");
        const char *const headers[] = { "Content-Type: application/json; charset=utf-8",
                                        r->bot_header, NULL };
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        if (m->channel)
                jsonw_str(&b, "channel", m->channel);
        else
                jsonw_int(&b, "chat_id", m->chat);
        jsonw_str(&b, "text", m->answer.data);
        jsonw_close(&b, '}');
        http_call_start(r->bot,
                        &(struct http_request){
                                .url = url, .headers = headers, .body = b.data, .body_n = b.len },
                        &handlers, m);
        free(url);
        buf_release(&b);
}

/* ---- the model ---- */

static void on_event(void *arg, const char *event, const char *id, const char *data, size_t n)
{
        struct message *m = arg;
        json_t *chunk = json_loadb(data, n, 0, NULL);
        const json_t *choice = json_array_get(json_object_get(chunk, "choices"), 0);

        (void)event;
        (void)id;
        buf_addstr(&m->answer, json_str(json_object_get(choice, "delta"), "content", ""));
        json_decref(chunk);
}

static void on_data(void *arg, const char *bytes, size_t n)
{
        struct message *m = arg;

        if (sse_reader_feed(&m->reader, bytes, n) < 0)
                fail("the model", "its answer is too long");
}

static void on_model(void *arg, const struct http_result *result)
{
        check("the model", result);
        send_answer(arg);
}

static void ask(struct relay *r, int64_t chat, const char *channel, const char *text)
{
        static const struct http_handlers handlers = { .on_data = on_data, .on_done = on_model };
        struct message *m = mem_zalloc(sizeof(*m));
        char *url = mem_printf("%s/chat/completions", r->model_url);
        struct buf b;

        m->relay = r;
        m->chat = chat;
        m->channel = mem_strdup(channel);
        sse_reader_init(&m->reader, 1u << 20, on_event, m);
        buf_init(&m->answer, 0);
        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "model", "fox");
        jsonw_bool(&b, "stream", true);
        jsonw_open_member(&b, "messages", '[');
        jsonw_open(&b, '{');
        jsonw_str(&b, "role", "user");
        jsonw_str(&b, "content", text);
        jsonw_close(&b, '}');
        jsonw_close(&b, ']');
        jsonw_close(&b, '}');
        http_call_start(
                r->model,
                &(struct http_request){
                        .url = url, .headers = json_headers, .body = b.data, .body_n = b.len },
                &handlers, m);
        free(url);
        buf_release(&b);
}

/* ---- polling ---- */

static void poll_on(struct relay *r);

static void on_updates(void *arg, const struct http_result *result)
{
        struct relay *r = arg;
        json_t *answer;
        const json_t *update;
        size_t i;

        check("getUpdates", result);
        answer = json_loads(result->body, 0, NULL);
        json_array_foreach(json_object_get(answer, "result"), i, update) {
                const json_t *message = json_object_get(update, "message");

                r->offset = json_int(update, "update_id", 0) + 1;
                if (message)
                        ask(r, json_int(json_object_get(message, "chat"), "id", 0), NULL,
                            json_str(message, "text", ""));
        }
        json_decref(answer);
        poll_on(r);
}

static void poll_on(struct relay *r)
{
        static const struct http_handlers handlers = { .on_done = on_updates };
        char *url = mem_printf("%s/getUpdates?timeout=%d&offset=%" PRId64, r->bot_url, POLL_SECONDS,
                               r->offset);

        http_call_start(r->bot, &(struct http_request){ .url = url, .repeatable = true }, &handlers,
                        r);
        free(url);
}

/* ---- Socket Mode ---- */

static void on_frame(void *arg, bool binary, const char *bytes, size_t n)
{
        struct relay *r = arg;
        json_t *frame = json_loadb(bytes, n, 0, NULL);
        const json_t *event = json_object_get(json_object_get(frame, "payload"), "event");
        const char *envelope = json_str(frame, "envelope_id", NULL);
        struct error err = { 0 };

        (void)binary;
        if (envelope) {
                char *ack = mem_printf("{\"envelope_id\":\"%s\"}", envelope);

                if (websocket_send(r->socket, false, ack, strlen(ack), &err) != 0)
                        fail("acknowledging", err.text);
                free(ack);
        }
        if (strcmp(json_str(event, "type", ""), "message") == 0 && !json_str(event, "bot_id", NULL))
                ask(r, 0, json_str(event, "channel", ""), json_str(event, "text", ""));
        json_decref(frame);
}

static void on_socket_closed(void *arg, const struct websocket_end *end)
{
        (void)arg;
        fail("Socket Mode", end->why);
}

static void on_ticket(void *arg, const struct http_result *result)
{
        static const struct websocket_handlers handlers = { .on_message = on_frame,
                                                            .on_closed = on_socket_closed };
        struct relay *r = arg;
        json_t *answer;

        check("apps.connections.open", result);
        answer = json_loads(result->body, 0, NULL);
        r->socket = websocket_open(
                r->loop, r->bot, &(struct websocket_options){ .url = json_str(answer, "url", "") },
                &handlers, r);
        json_decref(answer);
}

static void connect_socket(struct relay *r, const char *token)
{
        static const struct http_handlers handlers = { .on_done = on_ticket };
        const char *const headers[] = {
                "Content-Type: application/x-www-form-urlencoded",
                r->app_header = mem_printf("Authorization: Bearer xapp-%s", token + 5), NULL
        };
        char *url = mem_printf("%s/apps.connections.open", r->bot_url);

        r->bot_header = mem_printf("Authorization: Bearer %s", token);
        http_call_start(
                r->bot,
                &(struct http_request){ .url = url, .headers = headers, .body = "", .body_n = 0 },
                &handlers, r);
        free(url);
}

int main(int argc, char **argv)
{
        static const struct option longs[] = { { "ca", required_argument, NULL, 'a' },
                                               { "slack", required_argument, NULL, 's' },
                                               { NULL, 0, NULL, 0 } };
        const char *slack = NULL;
        struct http_client_options options = { 0 };
        struct relay r = { 0 };
        struct error err = { 0 };
        int c;

        while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
                if (c != 'a' && (c != 's' || strncmp(optarg, "xoxb-", 5) != 0))
                        exit(64);
                *(c == 'a' ? &options.ca_file : &slack) = optarg;
        }
        if (optind + 2 != argc)
                fail("usage", "bench_relay BOT_URL MODEL_URL [--ca FILE] [--slack TOKEN]");
        r.bot_url = argv[optind];
        r.model_url = argv[optind + 1];
        r.loop = loop_new();
        r.bot = http_client_new(r.loop, &options, &err);
        r.model = http_client_new(r.loop, &(struct http_client_options){ 0 }, &err);
        if (!r.bot || !r.model)
                fail("start", err.text);
        printf("relay://ready\n");
        fflush(stdout);
        if (slack)
                connect_socket(&r, slack);
        else
                poll_on(&r);
        loop_run(r.loop);
        return 0;
}
