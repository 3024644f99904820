/*
 * POST /v1/chat/completions: agents for clients of OpenAI's protocol.
 *
 * The request becomes a message on the road, so its answer survives a disconnect: the turn
 * continues, and a request with the same Idempotency-Key gets its answer. To stop it, use POST
 * /api/v2/turns/:id/cancel.
 *
 * Streamed pieces are matched by the message that began the turn. They are transient:
 * pieces missing at the turn's end (it began before we listened, or with another message) are sent
 * from the stored answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "api/compat/chat_bridge.h"
#include "api/compat/completion_ask.h"
#include "api/core/reply_waiters.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/map.h"
#include "base/mem.h"
#include "bus/bus.h"

#define PING_MS 15000
#define OUT_MAX (4 * 1024 * 1024) /* unread bytes before a client is dropped */

/* A request being answered; freed after its waiter was called and its stream closed. */
struct completion {
        struct api_job job;      /* until the answer begins */
        struct completions *all; /* NULL once the API has closed */
        LIST_ENTRY(completion) next;
        char *model;
        char trace[ID_TRACE_SIZE];
        char event[BUS_ID_SIZE]; /* of its message */
        int64_t created;
        bool stream, usage;       /* as requested */
        bool waiting, streaming;  /* waiting for the reply; the stream is open */
        bool ended;               /* the last piece was sent */
        struct http_stream *http; /* NULL: none, or closed */
        struct buf out;           /* unread by the client */
        struct buf sent;          /* the text sent so far */
        bool quiet;               /* nothing sent since the last ping */
};

struct completions {
        struct api *api;
        struct timer *ping;
        LIST_HEAD(, completion) list;
        struct map streaming; /* "evt-12" → struct completion */
        struct bus_listener *listener;
};

/* ---- OpenAI's objects ---- */

static void write_head(struct buf *b, const struct completion *c, const char *object)
{
        char *id = mem_printf("chatcmpl-%s-%s", c->trace, c->event);

        jsonw_open(b, '{');
        jsonw_str(b, "id", id);
        jsonw_str(b, "object", object);
        jsonw_int(b, "created", c->created);
        jsonw_str(b, "model", c->model);
        free(id);
}

static void write_usage(struct buf *b, const struct awaited_reply *r)
{
        jsonw_open_member(b, "usage", '{');
        jsonw_int(b, "prompt_tokens", r->tokens_in);
        jsonw_int(b, "completion_tokens", r->tokens_out);
        jsonw_int(b, "total_tokens", r->tokens_in + r->tokens_out);
        if (r->tokens_cached > 0) {
                jsonw_open_member(b, "prompt_tokens_details", '{');
                jsonw_int(b, "cached_tokens", r->tokens_cached);
                jsonw_close(b, '}');
        }
        jsonw_close(b, '}');
}

static void write_whole(struct buf *b, const struct completion *c, const struct awaited_reply *r)
{
        write_head(b, c, "chat.completion");
        jsonw_open_member(b, "choices", '[');
        jsonw_open(b, '{');
        jsonw_int(b, "index", 0);
        jsonw_open_member(b, "message", '{');
        jsonw_str(b, "role", "assistant");
        jsonw_str(b, "content", r->text ? r->text : "");
        jsonw_null(b, "refusal");
        jsonw_close(b, '}');
        jsonw_null(b, "logprobs");
        jsonw_str(b, "finish_reason", "stop");
        jsonw_close(b, '}');
        jsonw_close(b, ']');
        write_usage(b, r);
        jsonw_close(b, '}');
}

/* role with the first, finish with the last. */
struct completion_chunk {
        const char *role, *text, *finish;
        size_t n; /* of text */
};

static void write_chunk(struct buf *b, const struct completion *c, const struct completion_chunk *k)
{
        write_head(b, c, "chat.completion.chunk");
        jsonw_open_member(b, "choices", '[');
        jsonw_open(b, '{');
        jsonw_int(b, "index", 0);
        jsonw_open_member(b, "delta", '{');
        jsonw_opt(b, "role", k->role);
        if (k->text)
                jsonw_strn(b, "content", k->text, k->n);
        jsonw_close(b, '}');
        jsonw_null(b, "logprobs");
        jsonw_str(b, "finish_reason", k->finish);
        jsonw_close(b, '}');
        jsonw_close(b, ']');
        jsonw_close(b, '}');
}

struct completion_failure {
        int status;
        const char *code, *message;
};

/* false: answered. reply NULL: timeout. */
static bool is_failure(const struct awaited_reply *r, struct completion_failure *f)
{
        if (!r) {
                *f = (struct completion_failure){
                        504, "timeout",
                        "the agent did not answer in time; ask again with the same "
                        "Idempotency-Key for the answer"
                };
                return true;
        }
        if (strcmp(r->status, "done") == 0 || (r->turn == 0 && r->text))
                return false; /* the latter: a command */
        if (r->turn > 0)
                *f = (struct completion_failure){ 502, "agent_error",
                                                  r->text ? r->text : "the agent failed" };
        else
                *f = (struct completion_failure){ 409, "not_answered",
                                                  r->reason ? r->reason : "no agent answers here" };
        return true;
}

/* ---- streams ---- */

static void leave(struct completion *c)
{
        struct completions *all = c->all;

        LIST_REMOVE(c, next);
        if (map_get(&all->streaming, c->event) == c)
                map_remove(&all->streaming, c->event);
        if (LIST_EMPTY(&all->list))
                timer_stop(all->ping);
        c->all = NULL;
}

static void completion_free(struct completion *c)
{
        if (c->all)
                leave(c);
        buf_release(&c->out);
        buf_release(&c->sent);
        free(c->model);
        free(c);
}

static ssize_t on_pull(void *arg, char *out, size_t max)
{
        struct completion *c = arg;
        size_t n = c->out.len < max ? c->out.len : max;

        if (n == 0)
                return c->ended ? -1 : 0;
        memcpy(out, c->out.data, n);
        buf_consume(&c->out, n);
        return (ssize_t)n;
}

static void on_closed(void *arg)
{
        struct completion *c = arg;

        c->http = NULL;
        c->streaming = false;
        if (!c->waiting)
                completion_free(c);
}

static const struct http_stream_ops stream_ops = { on_pull, on_closed };

/* Sends one event; takes the text. */
static void send_event(struct completion *c, struct buf *data)
{
        if (c->http) {
                buf_addstr(&c->out, "data: ");
                buf_add(&c->out, data->data, data->len);
                buf_addstr(&c->out, "\n\n");
                c->quiet = false;
                http_stream_wake(c->http);
        }
        buf_release(data);
}

static void send_chunk(struct completion *c, const struct completion_chunk *k)
{
        struct buf json;

        buf_init(&json, 0);
        write_chunk(&json, c, k);
        send_event(c, &json);
}

static void send_text(struct completion *c, const char *text, size_t n)
{
        if (n == 0 || !c->http)
                return;
        if (c->out.len > OUT_MAX) {
                http_stream_cut(c->http);
                return;
        }
        buf_add(&c->sent, text, n);
        send_chunk(c, &(struct completion_chunk){ .text = text, .n = n });
}

/* The stored answer is trimmed, the streamed one is not. */
static const char *skip_blanks(const char *text)
{
        return text + strspn(text, " \t\r\n");
}

/* If the streamed text is not a prefix of the answer (the agent restarted), sends it whole. */
static void send_rest(struct completion *c, const char *text)
{
        const char *sent = skip_blanks(c->sent.data), *rest = skip_blanks(text);

        while (*sent && *sent == *rest) {
                sent++;
                rest++;
        }
        if (*skip_blanks(sent) != '\0') {
                send_text(c, "\n\n", 2);
                rest = text;
        }
        send_text(c, rest, strlen(rest));
}

static void end_stream(struct completion *c, const struct awaited_reply *r)
{
        struct completion_failure f;
        struct buf json;

        buf_init(&json, 0);
        if (is_failure(r, &f)) {
                reply_write_error(&json, "/v1/", f.status, f.code, NULL, f.message);
                send_event(c, &json);
        } else {
                send_rest(c, r->text ? r->text : "");
                send_chunk(c, &(struct completion_chunk){ .finish = "stop" });
                if (c->usage) {
                        write_head(&json, c, "chat.completion.chunk");
                        jsonw_raw(&json, "choices", "[]");
                        write_usage(&json, r);
                        jsonw_close(&json, '}');
                        send_event(c, &json);
                }
        }
        buf_init(&json, 0);
        buf_addstr(&json, "[DONE]");
        send_event(c, &json);
        c->ended = true;
        if (c->http)
                http_stream_wake(c->http);
        else
                completion_free(c);
}

/* live: the turn has not begun, so all its pieces will arrive here. */
static void begin_stream(struct completion *c, bool live)
{
        struct http_exchange *x = api_job_end(&c->job);

        c->streaming = true;
        if (live)
                map_put(&c->all->streaming, c->event, c);
        http_add_header(x, "X-Accel-Buffering", "no");
        http_answer_stream(x, "text/event-stream", &stream_ops, c, &c->http);
        if (!c->streaming)
                c->http = NULL; /* the client has gone */
        send_chunk(c, &(struct completion_chunk){ .role = "assistant", .text = "", .n = 0 });
}

static void on_live_event(void *arg, const struct bus_event *e)
{
        struct completions *all = arg;
        struct completion *c;
        const char *text;
        json_t *delta;

        bool aside = strcmp(e->type, "turn.aside") == 0;

        if (all->streaming.count == 0 || (!aside && strcmp(e->type, "turn.delta") != 0))
                return;
        delta = json_loads(e->payload, 0, NULL);
        text = json_str(delta, "text", "");
        /* not by the trace, which other requests may share */
        c = map_get(&all->streaming, json_str(delta, "eventId", ""));
        if (c && !c->ended && aside && c->sent.len > 0) {
                send_text(c, "\n\n", 2);
                buf_clear(&c->sent); /* not part of the answer */
        } else if (c && !c->ended) {
                send_text(c, text, strlen(text));
        }
        json_decref(delta);
}

/* A failed write reveals that a client has gone. */
static void on_ping(void *arg)
{
        struct completions *all = arg;
        struct completion *c;

        LIST_FOREACH(c, &all->list, next) {
                if (c->http && c->quiet) {
                        buf_addstr(&c->out, ": still working\n\n");
                        http_stream_wake(c->http);
                }
                c->quiet = true;
        }
}

/* ---- sending the answer ---- */

static void on_reply(void *arg, const struct awaited_reply *r)
{
        struct completion *c = arg;
        struct completion_failure f;
        struct http_exchange *x;
        struct buf json;

        c->waiting = false;
        if (c->stream) {
                end_stream(c, r);
                return;
        }
        x = api_job_end(&c->job);
        if (x && is_failure(r, &f)) {
                reply_error(x, f.status, f.code, NULL, "%s", f.message);
        } else if (x) {
                buf_init(&json, 0);
                write_whole(&json, c, r);
                reply_json(x, 200, &json);
        }
        completion_free(c);
}

static void on_receipt(void *arg, const struct inbox_receipt *r)
{
        struct completion *c = arg;
        struct http_exchange *x;

        if (!c->job.api || r->outcome == INBOX_FAILED) {
                x = api_job_end(&c->job);
                if (x)
                        reply_failed(x, &r->error);
                completion_free(c);
                return;
        }
        snprintf(c->trace, sizeof(c->trace), "%s", r->trace);
        bus_event_id(r->event, c->event);
        c->waiting = true;
        if (c->stream)
                begin_stream(c, r->outcome == INBOX_STORED);
        reply_waiters_add(c->all->api->waiters, r->event, r->outcome == INBOX_DUPLICATE,
                          CHAT_BRIDGE_WAIT_MS, on_reply, c);
}

/* ---- reading the request ---- */

static void submit(struct http_exchange *x, struct adapter *adapter,
                   const struct completion_ask *ask, const struct completion_lines *lines,
                   const char *agent, const char *key)
{
        struct completions *all = api_of(x)->completions;
        struct completion *c = mem_zalloc(sizeof(*c));
        const char *chat = http_header(x, "X-Dragoman-Chat");
        struct chat_bridge_ask out = { .protocol = "openai",
                                       .agent = agent,
                                       .conversation = chat ? chat : ask->user,
                                       .sender = ask->user ? ask->user : caller_of(x)->name,
                                       .caller = caller_of(x)->id,
                                       .external_id = key,
                                       .traceparent = http_header(x, "traceparent"),
                                       .lines = lines->lines,
                                       .line_count = ask->messages.count,
                                       .attachments = lines->images,
                                       .attachment_count = lines->image_count };

        c->all = all;
        c->model = mem_strdup(ask->model);
        c->created = clock_wall_ms() / 1000;
        c->stream = ask->stream;
        c->usage = ask->options.usage;
        buf_init(&c->out, 0);
        buf_init(&c->sent, 0);
        if (LIST_EMPTY(&all->list))
                timer_repeat(all->ping, PING_MS);
        LIST_INSERT_HEAD(&all->list, c, next);
        api_job_begin(&c->job, x);
        chat_bridge_submit(api_of(x), adapter, &out, on_receipt, c);
}

static void create(struct http_exchange *x)
{
        struct completion_ask ask = { .n = 1 };
        struct completion_lines lines = { 0 };
        const char *agent, *key;
        struct adapter *adapter;
        struct body b;

        if (request_key(x, &key) < 0 || !reply_waiters_check(x) || request_body(x, &b, &ask) < 0)
                return;
        agent = ask.model;
        if (completion_ask_read(&b, &ask, &lines) < 0)
                reply_mistakes(x, &b);
        else if (!chat_bridge_agent(x, &agent))
                reply_error(x, 404, "model_not_found", NULL,
                            "there is no agent '%.100s'; see /v1/models", ask.model);
        else if (chat_bridge_check_chat(x) && (adapter = chat_bridge_choose(x)) &&
                 chat_bridge_check_agent(x, adapter, agent))
                submit(x, adapter, &ask, &lines, agent, key);
        body_release(&b);
}

/* ---- opening and closing ---- */

struct completions *completions_new(struct api *a)
{
        struct completions *all = mem_zalloc(sizeof(*all));

        all->api = a;
        all->ping = timer_new(a->env.loop, on_ping, all);
        timer_unref(all->ping);
        map_init(&all->streaming);
        LIST_INIT(&all->list);
        all->listener = bus_listen_live(a->env.bus, on_live_event, all);
        return all;
}

void completions_free(struct completions *all)
{
        if (!all)
                return;
        /* those whose message is being stored end after that */
        while (!LIST_EMPTY(&all->list))
                leave(LIST_FIRST(&all->list));
        bus_unlisten(all->api->env.bus, all->listener);
        timer_free(all->ping);
        map_release(&all->streaming);
        free(all);
}

const struct route completions_routes[] = {
        { "POST", "/v1/chat/completions", SCOPE_WRITE, create, REACH_HANDLER,
          .summary = "Ask an agent in OpenAI's protocol. The request is stored before it is "
                     "answered; with the header Idempotency-Key asking again gives the same "
                     "answer. With stream an event stream of chunks.",
          .body = completion_ask_fields, .status = 200, .answer = "OpenAI's chat completion.",
          .example = ROUTE_JSON({
                  "model" : "echo",
                  "messages" : [ { "role" : "user", "content" : "What is the time?" } ]
          }),
          .example_answer = ROUTE_JSON({
                  "id" : "chatcmpl-0198c0ffee00aabbccddeeff00112233-evt-42",
                  "object" : "chat.completion",
                  "created" : 1763200000,
                  "model" : "echo",
                  "choices" : [ {
                          "index" : 0,
                          "message" :
                                  { "role" : "assistant", "content" : "Noon.", "refusal" : null },
                          "logprobs" : null,
                          "finish_reason" : "stop"
                  } ],
                  "usage" : { "prompt_tokens" : 0, "completion_tokens" : 0, "total_tokens" : 0 }
          }) },
        ROUTE_END,
};
