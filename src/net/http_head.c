/*
 * The head of a request, as libmicrohttpd 0.9.75 leaves it in its receive buffer.
 *
 * The library parses leniently: it ends values at the first NUL, accepts a bare LF as a line end,
 * takes a line that begins with NUL for the end of the head, and appends the continuation of a
 * folded header to its *name*, in other memory. None of this is visible in its list of headers. But
 * it copies nothing as long as a line is well-formed: the request line and the headers lie in the
 * buffer as received, with NUL in place of colon, CR and LF. So the pointers must follow each other
 * exactly:
 *
 *     method target SP version CR LF  name : OWS value CR LF  name : ...  CR LF
 *     ^method  ^url     ^version      ^name      ^value                        ^method + header
 *              size
 *
 * Any gap, overlap or other memory means that the library understood something else than what was
 * sent: the request is refused. If another version of the library copies headers, every request is
 * refused and the first test fails.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "net/http_exchange.h"
#include "net/http_guard.h"

#define MAX_HEADERS 100
#define RESERVED    ((size_t)16 * 1024) /* of a body before it arrives */

struct head {
        struct http_guard_header headers[MAX_HEADERS];
        size_t count;
        bool too_many;
};

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                 size_t name_n, const char *value, size_t value_n)
{
        struct head *h = cls;

        (void)kind;
        if (h->count == MAX_HEADERS) {
                h->too_many = true;
                return MHD_NO;
        }
        h->headers[h->count++] = (struct http_guard_header){
                .name = name, .name_n = name_n, .value = value ? value : "", .value_n = value_n
        };
        return MHD_YES;
}

/*
 * Marks the first header whose memory is not what the client sent. Compares addresses as numbers,
 * because the pointers may belong to different objects.
 */
static void find_folds(struct head *h, const char *first, const char *end)
{
        uintptr_t expected = (uintptr_t)first, limit = (uintptr_t)end;

        for (size_t i = 0; i < h->count; i++) {
                struct http_guard_header *g = &h->headers[i];
                uintptr_t name = (uintptr_t)g->name, value = (uintptr_t)g->value;
                const char *colon = g->name + g->name_n; /* now NUL; only blanks may follow */

                if (name != expected || value < name || value + g->value_n > limit ||
                    g->value <= colon ||
                    strspn(colon + 1, " \t") < (size_t)(g->value - colon - 1)) {
                        g->folded = true;
                        return;
                }
                expected = value + g->value_n + 2;
        }
        if (h->count > 0 && expected + 2 != limit)
                h->headers[h->count - 1].folded = true;
}

/* NULL, or why the request must be refused. */
static const char *read_head(struct head *h, struct http_exchange *x, const char *method,
                             const char *url, const char *version)
{
        struct MHD_Connection *mhd = x->conn->mhd;
        const union MHD_ConnectionInfo *info;
        const char *end;

        MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, on_header, h);
        info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
        if (!info)
                return "the head of the request is malformed";
        end = method + info->header_size;
        /* exactly one blank between method, target and version, and no NUL inside the target */
        if (url != method + strlen(method) + 1 || version != url + x->target_n + 1)
                return "the request line is malformed";
        find_folds(h, version + strlen(version) + 2, end);
        if (h->count == 0 && version + strlen(version) + 4 != end)
                return "the head of the request is malformed";
        return http_guard_check(method, x->target, version, h->headers, h->count);
}

/* After the guard: at most one of the two headers, and a plain number. */
static uint64_t announced_body(const struct head *h, bool *chunked)
{
        uint64_t length = 0;

        *chunked = false;
        for (size_t i = 0; i < h->count; i++) {
                if (http_guard_is_named(&h->headers[i], "content-length"))
                        length = strtoull(h->headers[i].value, NULL, 10);
                else if (http_guard_is_named(&h->headers[i], "transfer-encoding"))
                        *chunked = true;
        }
        return length;
}

/* Splits target and query, finds the route. False when x has been answered. */
static bool route(struct http_exchange *x)
{
        struct http_server *s = x->server;
        char *query = strchr(x->work, '?');
        struct http_segments segments;
        struct buf allow;
        int found;

        x->target[strcspn(x->target, "?")] = '\0';
        if (query)
                *query++ = '\0';
        found = http_route_split(&segments, x->work);
        if (found < 0 || http_route_parse_query(query, &x->queries, &x->query_count) != 0) {
                http_refuse(x, 400, "bad_request",
                            "the percent-encoding of the request target is broken");
                return false;
        }
        buf_init(&allow, 0);
        if (found > 0)
                found = http_route_find(s->routes, s->route_count, x->method, &segments, &x->match,
                                        &allow);
        if (found < 0) {
                http_add_header(x, "Allow", allow.data);
                http_refuse(x, 405, "method_not_allowed", "'%s' does not answer %s; it answers %s",
                            x->target, x->method, allow.data);
        } else if (found == 0) {
                http_refuse(x, 404, "not_found", "there is nothing at '%s'", x->target);
        }
        buf_release(&allow);
        return found > 0;
}

void http_head_accept(struct http_exchange *x, const char *method, const char *url,
                      const char *version)
{
        struct http_server *s = x->server;
        struct head h; /* not cleared as a whole: that would cost more than the rest */
        const char *why;
        uint64_t length;
        size_t limit, n = strlen(method);

        h.count = 0;
        h.too_many = false;
        if (n >= sizeof(x->method))
                n = sizeof(x->method) - 1; /* no such method: 405 with its first letters */
        memcpy(x->method, method, n);
        x->method[n] = '\0';
        x->old = strcmp(version, "HTTP/1.0") == 0;
        why = read_head(&h, x, method, url, version);
        if (why || h.too_many) {
                x->close = true;
                x->body_to_come = true; /* what follows is unknown: answer and close at once */
                if (h.too_many)
                        http_refuse(x, 431, "too_many_headers", "a request may have %d headers",
                                    MAX_HEADERS);
                else
                        http_refuse(x, 400, "bad_request", "%s", why);
                return;
        }
        length = announced_body(&h, &x->chunked);
        x->body_to_come = length > 0 || x->chunked;
        /* trailers are read as leniently: trust nothing that follows a chunked body */
        if (x->chunked)
                x->close = true;
        if (!route(x))
                return;
        if (s->hooks.gate && !s->hooks.gate(s->arg, x))
                return;
        limit = x->match.route->max_body ? x->match.route->max_body : s->max_body;
        buf_init(&x->body, limit);
        if (length > limit) {
                http_refuse(x, 413, "too_large", "the body may have %zu bytes", limit);
                return;
        }
        if (x->body_to_come && !http_exchange_has_room(x, (size_t)length)) {
                http_exchange_refuse_room(x);
                return;
        }
        /* no more than a little on the word of the client */
        if (length > 0)
                buf_reserve(&x->body, length < RESERVED ? (size_t)length : RESERVED);
        x->state = HTTP_BODY;
}
