/*
 * a2a_call: one JSON-RPC request, answered by an object, or by a stream of them.
 *
 * The content type of the response decides: agents that stream may answer at once, and refusals
 * never stream. Objects with another id than the request's belong to somebody else.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/a2a/a2a.h"
#include "agent/http/call_headers.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "net/http_text.h"
#include "net/json_queue.h"
#include "net/sse_reader.h"

#define EVENT_MAX  ((size_t)24 << 20) /* a task with its files */
#define STREAM_MAX ((size_t)256 << 20)
#define QUEUE_MAX  ((size_t)48 << 20) /* that waits while a large object is parsed */
#define QUOTE_MAX  300
#define CANCEL_MS  10000
#define REQUEST_ID 1                  /* a response answers one request */
#define BODY_MAX   ((size_t)64 << 10) /* of a refusal that is parsed */

struct a2a_call {
        struct a2a_call_handlers on;
        void *arg;
        struct http_call *http;
        struct json_queue *queue;
        struct sse_reader events;
        struct buf body;
        int status;
        bool streams;
        bool answered; /* an object of ours came */
        bool ended;    /* the response has come to its end; the queue may be busy */
        bool over;     /* on_end was called, or must not be */
        bool freed;
        unsigned depth;         /* > 0: a callback of the call is on the stack */
        int64_t retry_after_ms; /* of a refusal; -1: not told */
        char why[QUOTE_MAX + 200];
};

/* ---- the end ---- */

static void destroy(struct a2a_call *c)
{
        sse_reader_release(&c->events);
        buf_release(&c->body);
        free(c);
}

static void leave(struct a2a_call *c)
{
        if (--c->depth == 0 && c->freed)
                destroy(c);
}

/* Nothing is called any more. */
static void abandon(struct a2a_call *c)
{
        c->freed = c->over = true;
        http_call_abort(c->http);
        c->http = NULL;
        json_queue_free(c->queue);
        c->queue = NULL;
}

void a2a_call_free(struct a2a_call *c)
{
        if (!c || c->freed)
                return;
        abandon(c);
        if (c->depth == 0)
                destroy(c);
}

/* Of a callback that leaves the call after it. why: copied. */
static void end(struct a2a_call *c, struct a2a_outcome o, const char *why)
{
        if (c->over)
                return;
        c->over = true;
        snprintf(c->why, sizeof(c->why), "%.*s",
                 (int)utf8_prefix(why, strlen(why), UTF8_BYTES, sizeof(c->why) - 1), why);
        log_redact(c->why);
        o.status = c->status;
        o.why = c->why;
        c->on.on_end(c->arg, &o);
        if (!c->freed)
                abandon(c);
}

static void end_broken(struct a2a_call *c, enum error_kind kind, const char *why)
{
        end(c,
            (struct a2a_outcome){ .end = A2A_END_BROKEN,
                                  .kind = kind,
                                  .reach = HTTP_ANSWERED,
                                  .retry_after_ms = -1 },
            why);
}

/* ---- objects ---- */

static bool is_ours(const json_t *id)
{
        char number[24];

        snprintf(number, sizeof(number), "%d", REQUEST_ID);
        return json_is_string(id) ? strcmp(json_string_value(id), number) == 0
                                  : json_is_integer(id) && json_integer_value(id) == REQUEST_ID;
}

static enum error_kind kind_of(int64_t code, int status)
{
        if (code == A2A_TASK_NOT_FOUND)
                return ERR_MISSING;
        if (code == A2A_INTERNAL_ERROR || status >= 500)
                return ERR_NET;
        return ERR_INVALID;
}

static void end_error(struct a2a_call *c, const json_t *error)
{
        int64_t code = json_int(error, "code", 0);
        char *why = mem_printf("%s (%" PRId64 ")", json_str(error, "message", "error"), code);

        end(c,
            (struct a2a_outcome){ .end = A2A_END_ERROR,
                                  .code = code,
                                  .kind = kind_of(code, c->status),
                                  .reach = HTTP_ANSWERED,
                                  .retry_after_ms = c->retry_after_ms },
            why);
        free(why);
}

static void on_object(void *arg, json_t *root)
{
        struct a2a_call *c = arg;
        const json_t *error = json_object_get(root, "error");
        const json_t *result = json_object_get(root, "result"), *id = json_object_get(root, "id");

        if (c->over)
                return;
        c->depth++;
        if (!json_is_object(root)) {
                end_broken(c, ERR_PROTOCOL, "the response is not a JSON object");
        } else if (json_is_object(error)) {
                /* of a request that the agent could not read, it does not know the id */
                if (is_ours(id) || !id || json_is_null(id))
                        end_error(c, error);
        } else if (is_ours(id) && result) {
                c->answered = true;
                c->on.on_result(c->arg, result);
        }
        leave(c);
}

static void finish(struct a2a_call *c)
{
        if (c->answered)
                end(c, (struct a2a_outcome){ .reach = HTTP_ANSWERED, .retry_after_ms = -1 }, "");
        else
                end_broken(c, ERR_PROTOCOL, "the response answers nothing that was asked");
}

static void on_busy(void *arg, bool busy)
{
        struct a2a_call *c = arg;

        c->depth++;
        if (!busy && c->ended)
                finish(c);
        leave(c);
}

static void parse(struct a2a_call *c, const char *text, size_t n)
{
        if (c->queue && json_queue_add(c->queue, text, n) < 0)
                end_broken(c, ERR_LIMIT, "the agent sends more than can be read");
}

static void on_event(void *arg, const char *event, const char *id, const char *data, size_t n)
{
        struct a2a_call *c = arg;

        (void)event; /* "error" has the same form */
        (void)id;
        if (!c->over && n > 0)
                parse(c, data, n);
}

/* ---- the response ---- */

static void on_head(void *arg, struct http_call *call, int status)
{
        struct a2a_call *c = arg;
        const char *type = http_call_header(call, "content-type");

        c->status = status;
        c->streams = type && strncasecmp(type, "text/event-stream", 17) == 0;
}

static void on_data(void *arg, const char *bytes, size_t n)
{
        struct a2a_call *c = arg;

        if (c->status >= 300)
                return;
        c->depth++;
        if (c->streams && sse_reader_feed(&c->events, bytes, n) < 0)
                end_broken(c, ERR_LIMIT, "an event of the agent is too large");
        else if (!c->streams && buf_add(&c->body, bytes, n) < 0)
                end_broken(c, ERR_LIMIT, "the agent's response is too large");
        leave(c);
}

/* A refusal may have JSON-RPC's error in it. */
static void on_refused(struct a2a_call *c, const struct http_result *r)
{
        const char *body = r->body ? r->body : "";
        size_t n = r->body ? r->body_n : 0;
        json_t *root = n > 0 && n < BODY_MAX ? json_read_lenient(body, n, NULL) : NULL;
        const json_t *error = json_object_get(root, "error");
        char *quote = utf8_clean(body, utf8_prefix(body, n, UTF8_BYTES, QUOTE_MAX));

        c->retry_after_ms = r->retry_after_ms;
        if (json_is_integer(json_object_get(error, "code")))
                end_error(c, error);
        else
                end(c,
                    (struct a2a_outcome){ .end = A2A_END_REFUSED,
                                          .kind = http_text_status_kind(r->status),
                                          .reach = HTTP_ANSWERED,
                                          .retry_after_ms = r->retry_after_ms },
                    *quote ? quote : "empty response");
        free(quote);
        json_decref(root);
}

static void on_done(void *arg, const struct http_result *r)
{
        struct a2a_call *c = arg;

        c->http = NULL;
        c->depth++;
        if (r->kind == ERR_NONE && r->status >= 300) {
                on_refused(c, r);
                leave(c);
                return;
        }
        if (r->kind != ERR_NONE) {
                end(c,
                    (struct a2a_outcome){ .end = A2A_END_BROKEN,
                                          .kind = r->kind,
                                          .reach = r->reach,
                                          .retry_after_ms = r->retry_after_ms },
                    r->why ? r->why : error_kind_name(r->kind));
                leave(c);
                return;
        }
        c->ended = true;
        if (!c->streams)
                parse(c, c->body.data, c->body.len);
        if (!c->over && !json_queue_busy(c->queue))
                finish(c);
        leave(c);
}

/* ---- the request ---- */

void a2a_add_credentials(const struct a2a_agent *o, struct call_headers *h)
{
        call_headers_secret(h, "Authorization: Bearer ", o->conf->key);
        for (size_t i = 0; i < o->conf->headers.count; i++)
                call_headers_add(h, "%s", o->conf->headers.items[i]);
}

static struct http_call *post(const struct a2a_agent *o, const struct a2a_request *q,
                              const struct http_handlers *handlers, void *arg)
{
        struct http_call *http;
        struct call_headers h;
        struct buf body;

        call_headers_init(&h);
        call_headers_add(&h, "Content-Type: application/json");
        call_headers_add(&h, "Accept: %s",
                         q->stream ? "text/event-stream, application/json" : "application/json");
        call_headers_add(&h, A2A_VERSION_HEADER ": %s", a2a_version_name(q->card->version));
        if (q->card->trust == A2A_OURS)
                a2a_add_credentials(o, &h);
        call_headers_run(&h, q->run);
        buf_init(&body, 0);
        jsonw_open(&body, '{');
        jsonw_str(&body, "jsonrpc", "2.0");
        jsonw_int(&body, "id", REQUEST_ID);
        jsonw_str(&body, "method", a2a_method_name(q->card->version, q->method));
        jsonw_raw(&body, "params", q->params);
        jsonw_close(&body, '}');
        http = http_call_start(o->agent->http,
                               &(struct http_request){
                                       .method = "POST",
                                       .url = q->card->url,
                                       .headers = h.list,
                                       .body = body.data,
                                       .body_n = body.len,
                                       .total_ms = q->total_ms,
                                       .first_byte_ms = q->first_byte_ms,
                                       .silence_ms = q->silence_ms,
                                       .max_body = q->stream ? STREAM_MAX : EVENT_MAX,
                                       .public_only = q->card->trust != A2A_OURS,
                               },
                               handlers, arg);
        call_headers_release(&h);
        buf_release(&body);
        return http;
}

struct a2a_call *a2a_call_start(const struct a2a_agent *o, const struct a2a_request *q,
                                const struct a2a_call_handlers *on, void *arg)
{
        static const struct http_handlers handlers = { on_head, on_data, on_done };
        static const struct json_queue_handlers objects = { on_object, on_busy };
        struct a2a_call *c = mem_zalloc(sizeof(*c));

        c->on = *on;
        c->arg = arg;
        c->retry_after_ms = -1;
        c->queue = json_queue_new(o->agent->loop, QUEUE_MAX, &objects, c);
        sse_reader_init(&c->events, EVENT_MAX, on_event, c);
        buf_init(&c->body, EVENT_MAX);
        c->http = post(o, q, &handlers, c);
        return c;
}

/* ---- cancelling ---- */

static void on_canceled(void *arg, const struct http_result *result)
{
        (void)arg;
        (void)result;
}

void a2a_cancel_task(const struct a2a_agent *o, const struct a2a_card *card, const char *task,
                     const struct turn_run *run)
{
        static const struct http_handlers handlers = { .on_done = on_canceled };
        struct buf params;

        buf_init(&params, 0);
        jsonw_open(&params, '{');
        jsonw_str(&params, "id", task);
        jsonw_opt(&params, "tenant", card->tenant);
        jsonw_close(&params, '}');
        post(o,
             &(struct a2a_request){ .card = card,
                                    .method = A2A_CANCEL,
                                    .params = params.data,
                                    .run = run,
                                    .total_ms = CANCEL_MS },
             &handlers, NULL);
        buf_release(&params);
}
