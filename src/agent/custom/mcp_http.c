/*
 * MCP over streamable HTTP: each message is a POST, answered by JSON or by a stream of events. The
 * older era also has sessions, and a GET stream for what the server says by itself; its headers may
 * come only with its first event, so it has no deadline.
 *
 * An answer whose stream broke is asked for again by GET with Last-Event-ID. The server may be
 * silent at first, so this repeats until the call's own deadline.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/custom/mcp_private.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/backoff.h"
#include "net/sse_reader.h"

#define CONNECT_MS   10000
#define GOODBYE_MS   2000
#define REOPEN_MS    1000
#define REOPEN_CAP   30000
#define RESUME_MS    500
#define RESUME_CAP   5000
#define HEADERS_MAX  48
#define RETRY_MAX_MS 60000
#define WHY_SIZE     300

/* One POST or GET. */
struct exchange {
        struct mcp_server *server;
        int64_t id;      /* of the request whose answer is awaited; 0: none */
        bool stream;     /* the GET stream */
        bool in_session; /* the request named one */
        struct http_call *call;
        struct timer *again; /* waits before a GET */
        bool is_events, busy, dead;
        int status;
        struct sse_reader events;
        struct buf body;
        char *last_event; /* its id; NULL: none */
        int64_t retry_ms; /* as the server wishes; -1: it did not say */
        unsigned tries;
        LIST_ENTRY(exchange) next;
};

struct mcp_http_link {
        char *session;
        bool no_stream; /* the server has none */
        LIST_HEAD(, exchange) exchanges;
};

struct header_list {
        char *items[HEADERS_MAX + 1];
        size_t count;
};

/* ---- exchanges ---- */

static void exchange_free(struct exchange *e)
{
        sse_reader_release(&e->events);
        buf_release(&e->body);
        timer_free(e->again);
        free(e->last_event);
        free(e);
}

/* Allowed inside its own callbacks. */
static void exchange_close(struct exchange *e)
{
        LIST_REMOVE(e, next);
        http_call_abort(e->call);
        e->call = NULL;
        timer_stop(e->again);
        e->dead = true;
        if (!e->busy)
                exchange_free(e);
}

static void on_event(void *arg, const char *event, const char *id, const char *data, size_t n)
{
        struct exchange *e = arg;

        (void)event;
        if (e->dead)
                return;
        if (*id) {
                free(e->last_event);
                e->last_event = mem_strdup(id);
        }
        e->tries = 0;
        if (n > 0) /* an empty event only tells its id */
                mcp_received(e->server, data, n);
}

static void on_again(void *arg);

static struct exchange *exchange_new(struct mcp_server *s, int64_t id)
{
        struct mcp_http_link *k = s->link;
        struct exchange *e = mem_zalloc(sizeof(*e));

        e->server = s;
        e->id = id;
        e->retry_ms = -1;
        e->again = timer_new(custom_options(s->base.all)->loop, on_again, e);
        sse_reader_init(&e->events, MCP_MESSAGE_MAX, on_event, e);
        buf_init(&e->body, MCP_MESSAGE_MAX);
        LIST_INSERT_HEAD(&k->exchanges, e, next);
        return e;
}

/* ---- headers ---- */

static void add_header(struct header_list *h, const char *name, const char *value)
{
        if (h->count < HEADERS_MAX)
                h->items[h->count++] = mem_printf("%s: %s", name, value);
}

static void release_headers(struct header_list *h)
{
        for (size_t i = 0; i < h->count; i++) {
                explicit_bzero(h->items[i], strlen(h->items[i]));
                free(h->items[i]);
        }
}

static void add_common(const struct mcp_server *s, struct header_list *h)
{
        const struct mcp_http_link *k = s->link;

        for (size_t i = 0; i < s->conf->headers.count; i++)
                add_header(h, s->conf->headers.names[i], secret_reveal(s->conf->headers.values[i]));
        if (s->conf->token && h->count < HEADERS_MAX)
                h->items[h->count++] =
                        mem_printf("Authorization: Bearer %s", secret_reveal(s->conf->token));
        if (k->session)
                add_header(h, "Mcp-Session-Id", k->session);
}

/* Values that are not plain ASCII, or look like an encoded one, travel in base64. */
static void add_encoded(struct header_list *h, const char *name, const char *value)
{
        size_t n = strlen(value), i = 0;
        char *text, *coded;

        while (i < n && value[i] >= ' ' && value[i] <= '~')
                i++;
        if (i == n && n > 0 && value[0] != ' ' && value[n - 1] != ' ' &&
            strncmp(value, "=?base64?", 9) != 0) {
                add_header(h, name, value);
                return;
        }
        coded = crypto_base64(value, n);
        text = mem_printf("=?base64?%s?=", coded);
        add_header(h, name, text);
        free(text);
        free(coded);
}

static void add_param(void *arg, const char *header, const char *value)
{
        char *name = mem_printf("Mcp-Param-%s", header);

        add_encoded(arg, name, value);
        free(name);
}

static void add_modern(const struct mcp_server *s, const struct mcp_message *m,
                       struct header_list *h)
{
        const struct mcp_request *q = m->request;
        const struct custom_tool *t;

        add_header(h, "MCP-Protocol-Version", MCP_MODERN_VERSION);
        if (m->method)
                add_header(h, "Mcp-Method", m->method);
        if (!q || q->kind != MCP_CALL)
                return;
        add_encoded(h, "Mcp-Name",
                    strcmp(q->call->tool, MCP_READ_RESOURCE) == 0
                            ? json_str(q->call->args, "uri", "")
                            : q->call->tool);
        t = custom_find(s->base.all, q->call->key);
        if (t)
                mcp_tools_headers(t->schema, q->call->args, add_param, h);
}

/* ---- GET ---- */

static void on_head(void *arg, struct http_call *call, int status)
{
        struct exchange *e = arg;
        struct mcp_http_link *k = e->server->link;
        const char *type = http_call_header(call, "content-type");
        const char *session = http_call_header(call, "mcp-session-id");

        e->status = status;
        e->is_events = type && strncasecmp(type, "text/event-stream", 17) == 0;
        if (session && *session && !k->session && status == 200)
                k->session = mem_strdup(session);
}

static void on_data(void *arg, const char *bytes, size_t n)
{
        struct exchange *e = arg;

        e->busy = true;
        if (!e->is_events) {
                buf_add(&e->body, bytes, n);
        } else if (sse_reader_feed(&e->events, bytes, n) < 0 && !e->dead) {
                struct mcp_request *q = e->id ? mcp_request_find(e->server, e->id) : NULL;

                exchange_close(e);
                if (q)
                        mcp_request_failed(q, true, "it sent an event over 16 MiB");
        }
        if (e->events.retry_ms >= 0)
                e->retry_ms = e->events.retry_ms;
        e->busy = false;
        if (e->dead)
                exchange_free(e);
}

static void on_done(void *arg, const struct http_result *r);

static const struct http_handlers handlers = { on_head, on_data, on_done };

static void get(struct exchange *e)
{
        struct header_list h = { 0 };
        struct http_request q = {
                .url = e->server->conf->url,
                .headers = (const char *const *)h.items,
                .connect_ms = CONNECT_MS,
                .max_body = SIZE_MAX,
        };

        add_common(e->server, &h);
        add_header(&h, "Accept", "text/event-stream");
        add_header(&h, "MCP-Protocol-Version", e->server->version);
        if (e->last_event)
                add_header(&h, "Last-Event-ID", e->last_event);
        e->in_session = ((struct mcp_http_link *)e->server->link)->session != NULL;
        sse_reader_release(&e->events);
        sse_reader_init(&e->events, MCP_MESSAGE_MAX, on_event, e);
        e->is_events = false;
        e->status = 0;
        e->call = http_call_start(custom_options(e->server->base.all)->http, &q, &handlers, e);
        release_headers(&h);
}

static void on_again(void *arg)
{
        get(arg);
}

/* ---- the end of an exchange ---- */

static bool says_session(const json_t *error)
{
        int64_t code = json_int(error, "code", 0);

        return (code == -32000 || code == -32001 || code == -32600 || code == 32600) &&
               strcasestr(json_str(error, "message", ""), "session") != NULL;
}

/* 404, or one of the ways servers say it instead. */
static bool is_session_lost(const struct exchange *e, const json_t *body, int status)
{
        return e->in_session && e->id && !e->stream &&
               (status == 404 || (status == 400 && says_session(json_object_get(body, "error"))));
}

/* The server refused it: its error is the answer, whatever id it bears. */
static void answer_with_error(struct mcp_server *s, int64_t id, const json_t *error)
{
        json_t *message = json_pack("{s:I, s:O}", "id", (json_int_t)id, "error", error);

        mcp_received_json(s, message);
        json_decref(message);
}

static void describe(const struct http_result *r, const json_t *body, char why[WHY_SIZE])
{
        const char *message = json_str(json_object_get(body, "error"), "message",
                                       json_str(body, "error_description", ""));

        if (r->kind != ERR_NONE)
                snprintf(why, WHY_SIZE, "%.250s", r->why ? r->why : error_kind_name(r->kind));
        else if (r->status == 401 || r->status == 403)
                snprintf(why, WHY_SIZE,
                         "it refuses the request with status %d; set 'token' or 'headers' of the "
                         "server%s%.100s",
                         r->status, *message ? ": " : "", message);
        else if (r->status >= 400)
                snprintf(why, WHY_SIZE, "status %d%s%.200s", r->status, *message ? ": " : "",
                         message);
        else
                snprintf(why, WHY_SIZE, "the connection ended before the answer");
}

static bool may_resume(const struct exchange *e, const struct http_result *r)
{
        const struct mcp_server *s = e->server;

        if (s->modern || !e->last_event || s->state != MCP_READY)
                return false;
        return r->status == 200 || r->status == 0 || r->status >= 500 || r->status == 409;
}

/* The server's wish counts for the first try after an event. */
static void get_later(struct exchange *e, int64_t base_ms, int64_t cap_ms)
{
        unsigned tries = e->tries++;

        if (tries == 0 && e->retry_ms >= 0)
                timer_start(e->again, e->retry_ms < RETRY_MAX_MS ? e->retry_ms : RETRY_MAX_MS);
        else
                timer_start(e->again, backoff_half_jitter_ms(tries, base_ms, cap_ms));
}

/* An answer is still awaited: ask for it again, or give up. */
static void answer_missing(struct exchange *e, const struct http_result *r, const json_t *body)
{
        struct mcp_server *s = e->server;
        struct mcp_request *q = mcp_request_find(s, e->id);
        bool refused = r->kind == ERR_NONE && r->status >= 400 && r->status < 500;
        const json_t *error = json_object_get(body, "error");
        char why[WHY_SIZE];

        if (q && may_resume(e, r)) {
                get_later(e, RESUME_MS, RESUME_CAP);
                return;
        }
        exchange_close(e);
        if (!q)
                return;
        if (refused && r->status != 401 && r->status != 403 && json_is_object(error)) {
                answer_with_error(s, q->id, error);
                return;
        }
        /* a server of the newer era, or none at all, may refuse initialize without saying why */
        if (refused && (q->kind == MCP_INITIALIZE || q->kind == MCP_DISCOVER) &&
            (r->status == 400 || r->status == 404 || r->status == 405)) {
                json_t *made = json_pack("{s:i, s:s}", "code", -r->status, "message",
                                         "the server refused the request");

                answer_with_error(s, q->id, made);
                json_decref(made);
                return;
        }
        describe(r, body, why);
        mcp_request_failed(q, r->reach != HTTP_NOT_SENT && !refused, why);
}

/* The GET stream ended: open it again, unless the server has none. */
static void stream_ended(struct exchange *e, const struct http_result *r)
{
        struct mcp_http_link *k = e->server->link;

        if (r->kind == ERR_NONE && r->status >= 400 && r->status < 500 && r->status != 409 &&
            r->status != 429) {
                k->no_stream = true;
                exchange_close(e);
                return;
        }
        get_later(e, REOPEN_MS, REOPEN_CAP);
}

static void on_done(void *arg, const struct http_result *r)
{
        struct exchange *e = arg;
        struct mcp_server *s = e->server;
        json_t *body = NULL;

        e->call = NULL;
        e->busy = true;
        if (r->body_n > 0)
                body = json_read_lenient(r->body, r->body_n, NULL);
        if (r->kind == ERR_NONE && is_session_lost(e, body, r->status)) {
                struct mcp_request *q = mcp_request_find(s, e->id);

                if (q)
                        q->refused = true;
                mcp_lost(s, "the session is gone");
        } else {
                if (e->body.len > 0 && r->kind == ERR_NONE && r->status < 400)
                        mcp_received(s, e->body.data, e->body.len);
                if (e->dead)
                        ;
                else if (e->stream)
                        stream_ended(e, r);
                else if (e->id)
                        answer_missing(e, r, body);
                else
                        exchange_close(e);
        }
        json_decref(body);
        e->busy = false;
        if (e->dead)
                exchange_free(e);
}

/* ---- as a wire ---- */

static int wire_open(struct mcp_server *s, struct error *err)
{
        struct mcp_http_link *k = mem_zalloc(sizeof(*k));

        (void)err;
        LIST_INIT(&k->exchanges);
        s->link = k;
        return 0;
}

static int wire_send(struct mcp_server *s, const struct mcp_message *m, struct error *err)
{
        struct header_list h = { 0 };
        bool modern = s->modern || (m->request && m->request->kind == MCP_DISCOVER);
        struct http_request q = {
                .method = "POST",
                .url = s->conf->url,
                .headers = (const char *const *)h.items,
                .body = m->text,
                .body_n = m->n,
                .connect_ms = CONNECT_MS,
                .max_body = SIZE_MAX,
        };
        struct mcp_http_link *k = s->link;
        struct exchange *e;

        if (m->n >= MCP_MESSAGE_MAX)
                return error_set(err, ERR_LIMIT, "the message has more than 16 MiB");
        e = exchange_new(s, m->request ? m->request->id : 0);
        e->in_session = k->session != NULL;
        add_common(s, &h);
        add_header(&h, "Content-Type", "application/json");
        add_header(&h, "Accept", "application/json, text/event-stream");
        if (modern)
                add_modern(s, m, &h);
        else if (s->version[0])
                add_header(&h, "MCP-Protocol-Version", s->version);
        e->call = http_call_start(custom_options(s->base.all)->http, &q, &handlers, e);
        release_headers(&h);
        return 0;
}

static void wire_ready(struct mcp_server *s)
{
        struct exchange *e;

        if (s->modern)
                return;
        e = exchange_new(s, 0);
        e->stream = true;
        get(e);
}

static void wire_forget(struct mcp_server *s, const struct mcp_request *q)
{
        struct mcp_http_link *k = s->link;
        struct exchange *e;

        LIST_FOREACH(e, &k->exchanges, next)
                if (e->id == q->id) {
                        exchange_close(e);
                        return;
                }
}

static void on_goodbye(void *arg, const struct http_result *r)
{
        (void)arg;
        (void)r; /* 405 is fine, and so is silence */
}

static void say_goodbye(struct mcp_server *s)
{
        static const struct http_handlers h = { .on_done = on_goodbye };
        struct header_list list = { 0 };
        struct http_request q = {
                .method = "DELETE",
                .url = s->conf->url,
                .headers = (const char *const *)list.items,
                .connect_ms = GOODBYE_MS,
                .total_ms = GOODBYE_MS,
        };

        add_common(s, &list);
        add_header(&list, "MCP-Protocol-Version", s->version);
        http_call_start(custom_options(s->base.all)->http, &q, &h, NULL);
        release_headers(&list);
}

static void wire_close(struct mcp_server *s, bool lost)
{
        struct mcp_http_link *k = s->link;
        struct exchange *e;

        if (!lost && k->session)
                say_goodbye(s);
        while ((e = LIST_FIRST(&k->exchanges)))
                exchange_close(e);
        s->link = NULL;
        free(k->session);
        free(k);
}

const struct mcp_wire mcp_http = {
        .name = "http",
        .open = wire_open,
        .send = wire_send,
        .ready = wire_ready,
        .forget = wire_forget,
        .close = wire_close,
};
