/*
 * POST /v1/chat/completions: agents for clients of OpenAI's protocol.
 *
 * The request becomes a message on the road, so its answer survives a disconnect: the turn
 * continues, and a request with the same Idempotency-Key gets its answer. To stop it, use POST
 * /api/v2/turns/:id/cancel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/compat/chat_bridge.h"
#include "api/compat/completion_ask.h"
#include "api/core/reply_stream.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "bus/bus.h"

/* A request being answered. */
struct completion {
        struct api_job job; /* until the answer begins */
        char *model;
        char trace[ID_TRACE_SIZE];
        char event[BUS_ID_SIZE]; /* of its message */
        int64_t created;
        bool stream, usage; /* as requested */
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

static void completion_free(void *arg)
{
        struct completion *c = arg;

        free(c->model);
        free(c);
}

/* ---- streams ---- */

static void send_chunk(struct reply_stream *s, const struct completion *c,
                       const struct completion_chunk *k)
{
        struct buf json;

        buf_init(&json, 0);
        write_chunk(&json, c, k);
        reply_stream_send(s, &json);
}

static void on_begin(struct reply_stream *s, void *arg)
{
        send_chunk(s, arg, &(struct completion_chunk){ .role = "assistant", .text = "" });
}

static void on_piece(struct reply_stream *s, void *arg, const char *text, size_t n)
{
        send_chunk(s, arg, &(struct completion_chunk){ .text = text, .n = n });
}

static void on_aside(struct reply_stream *s, void *arg)
{
        on_piece(s, arg, "\n\n", 2);
}

static void on_end(struct reply_stream *s, void *arg, const struct awaited_reply *r)
{
        struct completion *c = arg;
        struct completion_failure f;
        struct buf json;

        buf_init(&json, 0);
        if (is_failure(r, &f)) {
                reply_write_error(&json, "/v1/", f.status, f.code, NULL, f.message);
                reply_stream_send(s, &json);
        } else {
                send_chunk(s, c, &(struct completion_chunk){ .finish = "stop" });
                if (c->usage) {
                        write_head(&json, c, "chat.completion.chunk");
                        jsonw_raw(&json, "choices", "[]");
                        write_usage(&json, r);
                        jsonw_close(&json, '}');
                        reply_stream_send(s, &json);
                }
        }
        buf_init(&json, 0);
        buf_addstr(&json, "[DONE]");
        reply_stream_send(s, &json);
}

static bool has_failed(const struct awaited_reply *r)
{
        struct completion_failure f;

        return is_failure(r, &f);
}

/* ---- sending the answer ---- */

static void on_reply(void *arg, const struct awaited_reply *r)
{
        struct completion *c = arg;
        struct completion_failure f;
        struct http_exchange *x = api_job_end(&c->job);
        struct buf json;

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
        static const struct reply_stream_ops ops = { .begin = on_begin,
                                                     .piece = on_piece,
                                                     .aside = on_aside,
                                                     .end = on_end,
                                                     .is_failure = has_failed,
                                                     .free = completion_free };
        struct completion *c = arg;
        bool known = r->outcome == INBOX_DUPLICATE;
        struct api *api = c->job.api;
        struct http_exchange *x;

        if (!api || r->outcome == INBOX_FAILED) {
                x = api_job_end(&c->job);
                if (x)
                        reply_failed(x, &r->error);
                completion_free(c);
                return;
        }
        snprintf(c->trace, sizeof(c->trace), "%s", r->trace);
        bus_event_id(r->event, c->event);
        if (c->stream)
                reply_stream_open(api_job_end(&c->job), r->event, !known, known,
                                  CHAT_BRIDGE_WAIT_MS, &ops, c);
        else
                reply_waiters_add(api->waiters, r->event, known, CHAT_BRIDGE_WAIT_MS, on_reply, c);
}

/* ---- reading the request ---- */

static void submit(struct http_exchange *x, struct adapter *adapter,
                   const struct completion_ask *ask, const struct completion_lines *lines,
                   const char *agent, const char *chat, const char *key)
{
        struct completion *c = mem_zalloc(sizeof(*c));
        struct chat_bridge_ask out = { .protocol = "openai",
                                       .agent = agent,
                                       .conversation = chat,
                                       .sender = ask->user ? ask->user : caller_of(x)->name,
                                       .caller = caller_of(x)->id,
                                       .external_id = key,
                                       .traceparent = http_header(x, "traceparent"),
                                       .lines = lines->lines,
                                       .line_count = ask->messages.count,
                                       .attachments = lines->images,
                                       .attachment_count = lines->image_count };

        c->model = mem_strdup(ask->model);
        c->created = clock_wall_ms() / 1000;
        c->stream = ask->stream;
        c->usage = ask->options.usage;
        api_job_begin(&c->job, x);
        chat_bridge_submit(api_of(x), adapter, &out, on_receipt, c);
}

static void create(struct http_exchange *x)
{
        struct completion_ask ask = { .n = 1 };
        struct completion_lines lines = { 0 };
        const char *agent, *chat, *key;
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
        else if (chat_bridge_chat(x, ask.user, &chat) && (adapter = chat_bridge_choose(x)) &&
                 chat_bridge_check_agent(x, adapter, agent))
                submit(x, adapter, &ask, &lines, agent, chat, key);
        body_release(&b);
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
