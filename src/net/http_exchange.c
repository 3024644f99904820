#include "net/http_exchange.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/json.h"
#include "base/mem.h"

struct http_exchange *http_exchange_new(struct http_conn *c, const char *target)
{
        size_t n = strlen(target);
        struct http_exchange *x = mem_alloc(sizeof(*x) + 2 * (n + 1));

        memset(x, 0, sizeof(*x));
        x->server = c->server;
        x->conn = c;
        x->started_ns = uv_hrtime();
        x->target_n = n;
        memcpy(x->target, target, n + 1);
        x->work = x->target + n + 1;
        memcpy(x->work, target, n + 1);
        buf_init(&x->body, 0);
        return x;
}

static void free_extras(struct http_extra *e)
{
        while (e) {
                struct http_extra *next = e->next;

                free(e);
                e = next;
        }
}

/* ---- the body ---- */

bool http_exchange_has_room(const struct http_exchange *x, size_t n)
{
        const struct http_server *s = x->server;

        if (n > s->max_bodies - s->bodies)
                return false;
        /* leave room for callers with a key; one body without a key always fits */
        return !x->match.route->unproven || s->unproven_bodies == 0 ||
               s->unproven_bodies + n <= s->max_bodies / 2;
}

static void uncount_body(struct http_exchange *x)
{
        if (x->server && x->counted > 0) {
                x->server->bodies -= x->counted;
                if (x->match.route->unproven)
                        x->server->unproven_bodies -= x->counted;
        }
        x->counted = 0;
}

void http_exchange_refuse_room(struct http_exchange *x)
{
        http_add_header(x, "Retry-After", "1");
        http_refuse(x, 503, "unavailable",
                    "requests with %zu bytes are being received or answered, and no more than %zu "
                    "may be; try again",
                    x->server->bodies, x->server->max_bodies);
}

bool http_exchange_add_body(struct http_exchange *x, const char *bytes, size_t n)
{
        if (!http_exchange_has_room(x, n)) {
                http_exchange_refuse_room(x);
                return false;
        }
        if (buf_add(&x->body, bytes, n) != 0) {
                http_refuse(x, 413, "too_large", "the body may have %zu bytes", x->body.max);
                return false;
        }
        x->counted += n;
        x->server->bodies += n;
        if (x->match.route->unproven)
                x->server->unproven_bodies += n;
        return true;
}

/* Frees what is needed only until the answer; a stream may live long after. */
static void release_request(struct http_exchange *x)
{
        if (x->free_identity)
                x->free_identity(x->identity);
        x->free_identity = NULL;
        x->identity = NULL;
        free_extras(x->headers);
        x->headers = NULL;
        free_extras(x->cleaned);
        x->cleaned = NULL;
        buf_release(&x->body);
        uncount_body(x);
        free(x->queries);
        x->queries = NULL;
        x->query_count = 0;
}

void http_exchange_free(struct http_exchange *x)
{
        if (!x)
                return;
        release_request(x);
        if (x->response)
                MHD_destroy_response(x->response);
        free(x);
}

void http_exchange_detach(struct http_exchange *x)
{
        const struct http_stream_ops *ops = x->stream.ops;

        x->conn = NULL;
        if (ops)
                ops->closed(x->stream.arg);
        if (x->answered || x->state != HTTP_ASKED)
                http_exchange_free(x);
        else
                LIST_INSERT_HEAD(&x->server->orphans, x, orphan);
}

const char *http_method(const struct http_exchange *x)
{
        return x->method;
}

const char *http_path(const struct http_exchange *x)
{
        return x->target;
}

const struct http_route *http_route_of(const struct http_exchange *x)
{
        return x->match.route;
}

void *http_server_arg(const struct http_exchange *x)
{
        return x->server ? x->server->arg : NULL;
}

const char *http_param(const struct http_exchange *x, const char *name)
{
        size_t n = strlen(name);

        for (size_t i = 0; i < x->match.param_count; i++) {
                const char *at = x->match.params[i].name; /* ends at the next slash */

                if (strncmp(at, name, n) == 0 && (at[n] == '/' || at[n] == '\0'))
                        return x->match.params[i].value;
        }
        return NULL;
}

const char *http_query(const struct http_exchange *x, const char *name)
{
        for (size_t i = 0; i < x->query_count; i++) {
                if (strcmp(x->queries[i].name, name) == 0)
                        return x->queries[i].value;
        }
        return NULL;
}

void http_query_each(const struct http_exchange *x,
                     void (*fn)(void *arg, const char *name, const char *value), void *arg)
{
        for (size_t i = 0; i < x->query_count; i++)
                fn(arg, x->queries[i].name, x->queries[i].value);
}

static void push_extra(struct http_extra **list, const char *name, const char *value,
                       size_t value_n)
{
        size_t name_n = strlen(name);
        struct http_extra *e = mem_alloc(sizeof(*e) + name_n + 1 + value_n + 1);
        char *copy = e->name + name_n + 1;

        memcpy(e->name, name, name_n + 1);
        memcpy(copy, value, value_n);
        copy[value_n] = '\0';
        e->value = copy;
        e->next = *list;
        *list = e;
}

const char *http_header(const struct http_exchange *x, const char *name)
{
        const char *value = NULL;
        size_t n = 0, trimmed;

        if (!x->conn)
                return NULL;
        if (MHD_lookup_connection_value_n(x->conn->mhd, MHD_HEADER_KIND, name, strlen(name), &value,
                                          &n) != MHD_YES ||
            !value)
                return NULL;
        trimmed = n;
        while (trimmed > 0 && (value[trimmed - 1] == ' ' || value[trimmed - 1] == '\t'))
                trimmed--;
        if (trimmed == n)
                return value;
        /* MHD leaves blanks at the end, which are not part of the value */
        push_extra(&((struct http_exchange *)x)->cleaned, name, value, trimmed);
        return x->cleaned->value;
}

const char *http_body(const struct http_exchange *x, size_t *n)
{
        if (n)
                *n = x->body.len;
        return x->body.data;
}

char *http_take_body(struct http_exchange *x, size_t *n)
{
        *n = x->body.len;
        return buf_take(&x->body);
}

bool http_is_gone(const struct http_exchange *x)
{
        return !x->conn;
}

const char *http_peer(const struct http_exchange *x)
{
        struct http_exchange *mine = (struct http_exchange *)x;
        const union MHD_ConnectionInfo *info;
        const struct sockaddr *sa;
        const void *address = NULL;
        int family = AF_UNSPEC;

        if (x->peer[0] || !x->conn)
                return x->peer;
        info = MHD_get_connection_info(x->conn->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        sa = info ? info->client_addr : NULL;
        if (sa)
                family = sa->sa_family;
        if (family == AF_INET) {
                address = &((const struct sockaddr_in *)(const void *)sa)->sin_addr;
        } else if (family == AF_INET6) {
                const struct in6_addr *a =
                        &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;

                address = a;
                if (IN6_IS_ADDR_V4MAPPED(a)) {
                        family = AF_INET;
                        address = &a->s6_addr[12];
                }
        }
        if (!address || !inet_ntop(family, address, mine->peer, sizeof(mine->peer)))
                mine->peer[0] = '\0';
        return x->peer;
}

void http_set_identity(struct http_exchange *x, void *identity, void (*free_fn)(void *))
{
        if (x->free_identity)
                x->free_identity(x->identity);
        x->identity = identity;
        x->free_identity = free_fn;
}

void *http_identity(const struct http_exchange *x)
{
        return x->identity;
}

void http_add_header(struct http_exchange *x, const char *name, const char *value)
{
        push_extra(&x->headers, name, value, strlen(value));
}

enum MHD_Result http_exchange_queue(struct http_exchange *x)
{
        enum MHD_Result queued;

        x->state = HTTP_QUEUED;
        if (!x->response)
                return MHD_NO;
        queued = MHD_queue_response(x->conn->mhd, (unsigned)x->status, x->response);
        MHD_destroy_response(x->response); /* MHD keeps its own reference */
        x->response = NULL;
        if (queued == MHD_YES)
                http_server_set_phase(x->conn, HTTP_WRITING);
        return queued;
}

static void finish(struct http_exchange *x, int status, const char *content_type,
                   struct MHD_Response *response)
{
        struct http_server *s = x->server;

        x->answered = true;
        x->status = status;
        x->response = response;
        if (response && content_type)
                MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
        for (struct http_extra *e = x->headers; response && e; e = e->next)
                MHD_add_response_header(response, e->name, e->value);
        if (response && x->close)
                MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
        if (s && s->hooks.answered)
                s->hooks.answered(s->arg, x->match.route, status,
                                  (int64_t)((uv_hrtime() - x->started_ns) / 1000));
        if (!x->conn) {
                if (s)
                        LIST_REMOVE(x, orphan);
                http_exchange_free(x);
                return;
        }
        release_request(x);
        if (x->conn->parked) {
                x->conn->parked = false;
                MHD_resume_connection(x->conn->mhd);
                http_server_kick(s);
        }
}

void http_answer(struct http_exchange *x, int status, const char *content_type, const void *body,
                 size_t n)
{
        struct buf b;
        ssize_t sent;

        if (!x->conn || x->state != HTTP_BODY) {
                finish(x, status, content_type,
                       x->conn ? MHD_create_response_from_buffer(n, (void *)body,
                                                                 MHD_RESPMEM_MUST_COPY)
                               : NULL);
                return;
        }
        /*
         * MHD takes no answer while it receives a body. If a chunked body turns out to be too
         * large, write the refusal to the socket directly (not possible inside TLS) and close.
         */
        if (x->conn->server->tls) {
                finish(x, status, NULL, NULL);
                return;
        }
        buf_init(&b, 0);
        buf_addf(&b, "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\nConnection: close\r\n", status,
                 MHD_get_reason_phrase_for((unsigned)status), n);
        if (content_type)
                buf_addf(&b, "Content-Type: %s\r\n", content_type);
        for (const struct http_extra *e = x->headers; e; e = e->next)
                buf_addf(&b, "%s: %s\r\n", e->name, e->value);
        buf_addstr(&b, "\r\n");
        buf_add(&b, body, n);
        sent = send(x->conn->fd, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)sent; /* the connection ends either way */
        buf_release(&b);
        finish(x, status, NULL, NULL);
}

void http_answer_take(struct http_exchange *x, int status, const char *content_type, char *body,
                      size_t n)
{
        struct MHD_Response *r;

        if (!x->conn || x->state == HTTP_BODY) {
                http_answer(x, status, content_type, body, n);
                free(body);
                return;
        }
        r = MHD_create_response_from_buffer(n, body, MHD_RESPMEM_MUST_FREE);
        finish(x, status, content_type, r);
}

void http_cut(struct http_exchange *x)
{
        finish(x, 0, NULL, NULL); /* without a response MHD closes */
}

void http_answer_json(struct http_exchange *x, int status, json_t *value)
{
        char *text = json_text(value);

        json_decref(value);
        http_answer_take(x, status, "application/json", text, strlen(text));
}

void http_refuse(struct http_exchange *x, int status, const char *code, const char *fmt, ...)
{
        struct http_server *s = x->server;
        char message[512];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(message, sizeof(message), fmt, ap);
        va_end(ap);
        if (s && s->hooks.refuse) {
                s->hooks.refuse(s->arg, x, status, code, message);
                return;
        }
        http_answer(x, status, "text/plain; charset=utf-8", message, strlen(message));
}

static ssize_t on_pull(void *cls, uint64_t position, char *out, size_t max)
{
        struct http_exchange *x = cls;
        ssize_t n;

        (void)position;
        x->server->calls++;
        n = x->stream.ops->pull(x->stream.arg, out, max);
        if (n < 0)
                return MHD_CONTENT_READER_END_OF_STREAM;
        if (n == 0) {
                x->stream.parked = true;
                x->conn->parked = true;
                http_server_set_phase(x->conn, HTTP_UNTIMED);
                MHD_suspend_connection(x->conn->mhd);
        }
        return n;
}

void http_answer_stream(struct http_exchange *x, const char *content_type,
                        const struct http_stream_ops *ops, void *arg, struct http_stream **out)
{
        const int kernel_bytes = 64 * 1024; /* buffered for a client that does not read */
        struct MHD_Response *r;

        *out = NULL;
        if (!x->conn) {
                ops->closed(arg);
                finish(x, 200, NULL, NULL);
                return;
        }
        setsockopt(x->conn->fd, SOL_SOCKET, SO_SNDBUF, &kernel_bytes, sizeof(kernel_bytes));
        x->close = true;
        x->stream = (struct http_stream){ .ops = ops, .arg = arg };
        *out = &x->stream;
        /* for chunks MHD uses the connection's own buffer; this one serves only HTTP/1.0 */
        r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, x->old ? 1024 : 16, on_pull, x,
                                              NULL);
        finish(x, 200, content_type, r);
}

static struct http_exchange *exchange_of(const struct http_stream *s)
{
        return (struct http_exchange *)(void *)((char *)s - offsetof(struct http_exchange, stream));
}

bool http_stream_parked(const struct http_stream *s)
{
        return s->parked;
}

bool http_stream_is_gone(const struct http_stream *s)
{
        struct pollfd p = { .fd = exchange_of(s)->conn->fd, .events = POLLRDHUP };

        return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void http_stream_wake(struct http_stream *s)
{
        struct http_exchange *x = exchange_of(s);

        if (!s->parked)
                return;
        s->parked = false;
        x->conn->parked = false;
        http_server_set_phase(x->conn, HTTP_WRITING);
        MHD_resume_connection(x->conn->mhd);
        http_server_kick(x->server);
}

void http_stream_cut(struct http_stream *s)
{
        shutdown(exchange_of(s)->conn->fd, SHUT_RDWR);
        http_stream_wake(s);
}
