/*
 * POST /v1/chat/completions: agents for software that speaks OpenAI's protocol.
 *
 * The request is a message on the road like any other, so its answer is not lost when the client
 * goes away: the turn goes on, is in the journal, and whoever asks again with the same
 * Idempotency-Key gets it. That is why a client that disconnects stops nothing; POST
 * /api/v2/turns/:id/cancel does.
 *
 * Streamed pieces are found by the trace of the message that began the turn. They are transient:
 * what is missing when the turn has ended (the turn began before we listened, or another message
 * began it) is sent from the stored answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "api/compat/chat_bridge.h"
#include "api/compat/completion_ask.h"
#include "api/core/api_private.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/http_stream.h"

#define PING_MS 15000
#define OUT_MAX (4 * 1024 * 1024) /* unread by a client before it is dropped */

/*
 * One request that is being answered. It lives until its waiter has been told and its stream, if it
 * is one, has closed.
 */
struct completion {
        struct api_job job;      /* until the answer has begun */
        struct completions *all; /* NULL once the API is gone */
        LIST_ENTRY(completion) next;
        char *model;
        char trace[ID_TRACE_SIZE];
        int64_t created;
        bool stream, usage;
        bool waiting, streaming, ended;
        struct http_stream *http; /* NULL: none, or gone */
        struct buf out, said;     /* what the client has not read yet; the text sent so far */
        bool quiet;               /* nothing was sent since the last ping */
};

struct completions {
        struct api *api;
        struct timer *ping;
        LIST_HEAD(, completion) list;
        struct map streaming; /* trace → struct completion */
        struct bus_listener *listener;
};

/* ---- what it looks like ---- */

static void write_head(struct buf *b, const struct completion *c, const char *object)
{
        char *id = mem_printf("chatcmpl-%s", c->trace);

        jsonw_open(b, '{');
        jsonw_str(b, "id", id);
        jsonw_str(b, "object", object);
        jsonw_int(b, "created", c->created);
        jsonw_str(b, "model", c->model);
        free(id);
}

static void write_usage(struct buf *b, const struct awaited_reply *o)
{
        jsonw_open_member(b, "usage", '{');
        jsonw_int(b, "prompt_tokens", o->tokens_in);
        jsonw_int(b, "completion_tokens", o->tokens_out);
        jsonw_int(b, "total_tokens", o->tokens_in + o->tokens_out);
        jsonw_close(b, '}');
}

static void write_whole(struct buf *b, const struct completion *c, const struct awaited_reply *o)
{
        write_head(b, c, "chat.completion");
        jsonw_open_member(b, "choices", '[');
        jsonw_open(b, '{');
        jsonw_int(b, "index", 0);
        jsonw_open_member(b, "message", '{');
        jsonw_str(b, "role", "assistant");
        jsonw_str(b, "content", o->text ? o->text : "");
        jsonw_null(b, "refusal");
        jsonw_close(b, '}');
        jsonw_null(b, "logprobs");
        jsonw_str(b, "finish_reason", "stop");
        jsonw_close(b, '}');
        jsonw_close(b, ']');
        write_usage(b, o);
        jsonw_close(b, '}');
}

/* A piece: role with the first, text with those that have some, finish with the last. */
struct piece {
        const char *role, *text, *finish;
        size_t n;
};

static void write_piece(struct buf *b, const struct completion *c, const struct piece *p)
{
        write_head(b, c, "chat.completion.chunk");
        jsonw_open_member(b, "choices", '[');
        jsonw_open(b, '{');
        jsonw_int(b, "index", 0);
        jsonw_open_member(b, "delta", '{');
        jsonw_opt(b, "role", p->role);
        if (p->text)
                jsonw_strn(b, "content", p->text, p->n);
        jsonw_close(b, '}');
        jsonw_null(b, "logprobs");
        jsonw_str(b, "finish_reason", p->finish);
        jsonw_close(b, '}');
        jsonw_close(b, ']');
        jsonw_close(b, '}');
}

/* How an event that was not answered is told: NULL when it was. */
struct trouble {
        int status;
        const char *code, *message;
};

static bool find_trouble(const struct awaited_reply *o, struct trouble *t)
{
        if (!o)
                *t = (struct trouble){
                        504, "timeout",
                        "the agent has not answered in time; the answer can still be had with "
                        "the same Idempotency-Key"
                };
        else if (strcmp(o->status, "done") == 0)
                return false;
        else if (o->turn == 0 && o->text)
                return false; /* a command was answered */
        else if (o->turn > 0)
                *t = (struct trouble){ 502, "agent_error", o->text ? o->text : "the agent failed" };
        else
                *t = (struct trouble){ 409, "not_answered",
                                       o->reason ? o->reason : "nobody answers here" };
        return true;
}

/* ---- streams ---- */

static void leave(struct completion *c)
{
        struct completions *all = c->all;

        LIST_REMOVE(c, next);
        if (map_get(&all->streaming, c->trace) == c)
                map_remove(&all->streaming, c->trace);
        if (LIST_EMPTY(&all->list))
                timer_stop(all->ping);
        c->all = NULL;
}

static void completion_free(struct completion *c)
{
        if (c->all)
                leave(c);
        buf_release(&c->out);
        buf_release(&c->said);
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

static void send_data(struct completion *c, const char *data, size_t n)
{
        if (!c->http)
                return;
        buf_addstr(&c->out, "data: ");
        buf_add(&c->out, data, n);
        buf_addstr(&c->out, "\n\n");
        c->quiet = false;
        http_stream_wake(c->http);
}

static void send_piece(struct completion *c, const struct piece *p)
{
        struct buf json;

        buf_init(&json, 0);
        write_piece(&json, c, p);
        send_data(c, json.data, json.len);
        buf_release(&json);
}

static void send_text(struct completion *c, const char *text, size_t n)
{
        if (n == 0 || !c->http)
                return;
        if (c->out.len > OUT_MAX) {
                http_stream_cut(c->http);
                return;
        }
        buf_add(&c->said, text, n);
        send_piece(c, &(struct piece){ .text = text, .n = n });
}

/* The answer is stored without the blanks around it that were streamed. */
static const char *skip_blanks(const char *text)
{
        return text + strspn(text, " \t\r\n");
}

/*
 * What was streamed is the answer or its beginning; or (an agent that began anew) it is not, and
 * the answer follows whole.
 */
static void send_rest(struct completion *c, const char *text)
{
        const char *said = skip_blanks(c->said.data), *rest = skip_blanks(text);

        while (*said && *said == *rest) {
                said++;
                rest++;
        }
        if (*skip_blanks(said) != '\0') {
                send_text(c, "\n\n", 2);
                rest = text;
        }
        send_text(c, rest, strlen(rest));
}

static void send_usage(struct completion *c, const struct awaited_reply *o)
{
        struct buf json;

        buf_init(&json, 0);
        write_head(&json, c, "chat.completion.chunk");
        jsonw_raw(&json, "choices", "[]");
        write_usage(&json, o);
        jsonw_close(&json, '}');
        send_data(c, json.data, json.len);
        buf_release(&json);
}

static void send_trouble(struct completion *c, const struct trouble *t)
{
        struct buf json;

        buf_init(&json, 0);
        reply_write_error(&json, "/v1/", t->status, t->code, NULL, t->message);
        send_data(c, json.data, json.len);
        buf_release(&json);
}

static void end_stream(struct completion *c, const struct awaited_reply *o)
{
        struct trouble t;

        if (find_trouble(o, &t)) {
                send_trouble(c, &t);
        } else {
                send_rest(c, o->text ? o->text : "");
                send_piece(c, &(struct piece){ .finish = "stop" });
                if (c->usage)
                        send_usage(c, o);
        }
        send_data(c, "[DONE]", 6);
        c->ended = true;
        if (c->http)
                http_stream_wake(c->http);
        else
                completion_free(c);
}

/* live: the turn has not begun yet, so that all of its pieces will be ours. */
static void begin_stream(struct completion *c, bool live)
{
        struct http_exchange *x = api_job_end(&c->job);

        c->streaming = true;
        if (live)
                map_put(&c->all->streaming, c->trace, c);
        http_add_header(x, "Cache-Control", "no-store");
        http_add_header(x, "X-Accel-Buffering", "no");
        http_answer_stream(x, "text/event-stream", &stream_ops, c, &c->http);
        if (!c->streaming)
                c->http = NULL; /* the client was gone already */
        send_piece(c, &(struct piece){ .role = "assistant", .text = "", .n = 0 });
}

static void on_live_event(void *arg, const struct bus_event *e)
{
        struct completions *all = arg;
        struct completion *c;
        const char *text;
        json_t *delta;

        if (all->streaming.count == 0 || strcmp(e->type, "turn.delta") != 0)
                return;
        c = e->trace ? map_get(&all->streaming, e->trace) : NULL;
        if (!c || c->ended)
                return;
        delta = json_loads(e->payload, 0, NULL);
        text = json_str(delta, "text", "");
        send_text(c, text, strlen(text));
        json_decref(delta);
}

/* A client that has gone is noticed by writing to it. */
static void on_ping(void *arg)
{
        struct completions *all = arg;
        struct completion *c;

        LIST_FOREACH(c, &all->list, next) {
                if (c->http && c->quiet) {
                        buf_addstr(&c->out, ": still at it\n\n");
                        http_stream_wake(c->http);
                }
                c->quiet = true;
        }
}

/* ---- the answer ---- */

static void answer_whole(struct completion *c, const struct awaited_reply *o)
{
        struct http_exchange *x = api_job_end(&c->job);
        struct trouble t;
        struct buf json;

        if (x && find_trouble(o, &t)) {
                reply_error(x, t.status, t.code, NULL, "%s", t.message);
        } else if (x) {
                buf_init(&json, 0);
                write_whole(&json, c, o);
                reply_json(x, 200, &json);
        }
        completion_free(c);
}

static void on_outcome(void *arg, const struct awaited_reply *o)
{
        struct completion *c = arg;

        c->waiting = false;
        if (c->stream)
                end_stream(c, o);
        else
                answer_whole(c, o);
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
        c->waiting = true;
        if (c->stream)
                begin_stream(c, r->outcome == INBOX_STORED);
        reply_waiters_add(c->all->api->waiters, r->event, r->outcome == INBOX_DUPLICATE,
                          CHAT_BRIDGE_WAIT_MS, on_outcome, c);
}

/* ---- the request ---- */

static void hand_over(struct http_exchange *x, struct adapter *adapter,
                      const struct completion_ask *ask, const struct completion_lines *said,
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
                                       .lines = said->lines,
                                       .line_count = ask->messages.count,
                                       .attachments = said->images,
                                       .attachment_count = said->image_count };

        c->all = all;
        c->model = mem_strdup(ask->model);
        c->created = clock_wall_ms() / 1000;
        c->stream = ask->stream;
        c->usage = ask->options.usage;
        buf_init(&c->out, 0);
        buf_init(&c->said, 0);
        if (LIST_EMPTY(&all->list))
                timer_repeat(all->ping, PING_MS);
        LIST_INSERT_HEAD(&all->list, c, next);
        api_job_begin(&c->job, x);
        chat_bridge_submit(api_of(x), adapter, &out, on_receipt, c);
}

void completions_create(struct http_exchange *x)
{
        struct completion_ask ask = { .n = 1 };
        struct adapter *adapter;
        struct body b;
        struct completion_lines said = { 0 };
        const char *agent, *key;

        if (request_key(x, &key) < 0 || !reply_waiters_check(x) || request_body(x, &b, &ask) < 0)
                return;
        agent = ask.model;
        if (completion_ask_read(&b, &ask, &said) < 0)
                reply_mistakes(x, &b);
        else if (!chat_bridge_agent(x, &agent))
                reply_error(x, 404, "model_not_found", NULL,
                            "there is no agent '%.100s'; see /v1/models", ask.model);
        else if (chat_bridge_check_chat(x) && (adapter = chat_bridge_choose(x)))
                hand_over(x, adapter, &ask, &said, agent, key);
        body_release(&b);
}

/* ---- all of them ---- */

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
        /* those whose message is still on its way to the disk end when it is there */
        while (!LIST_EMPTY(&all->list))
                leave(LIST_FIRST(&all->list));
        bus_unlisten(all->api->env.bus, all->listener);
        timer_free(all->ping);
        map_release(&all->streaming);
        free(all);
}
