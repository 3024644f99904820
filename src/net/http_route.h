/*
 * http_route: matches a request target to a row of the route table.
 *
 * The path is split first and decoded afterwards, so an encoded slash stays inside its parameter.
 */
#ifndef NET_HTTP_ROUTE_H
#define NET_HTTP_ROUTE_H

#include <stddef.h>

#include "base/buf.h"
#include "net/http_server.h"

#define HTTP_MAX_SEGMENTS 16
#define HTTP_MAX_PARAMS   6

struct http_pair {
        const char *name, *value;
};

/* Points into the text given to http_route_split. */
struct http_segments {
        const char *part[HTTP_MAX_SEGMENTS];
        size_t count;
};

struct http_match {
        const struct http_route *route;
        struct http_pair params[HTTP_MAX_PARAMS];
        size_t param_count;
};

/* Splits "/a/b%20c" in place. 1; 0: too many segments; -1: bad percent-encoding. */
int http_route_split(struct http_segments *s, char *path);
/*
 * Finds the row for method and path; a literal segment wins over a parameter. 1: found; 0: no row
 * has this path; -1: the path has no such method, `allow` (cleared first) lists those it has.
 */
int http_route_find(const struct http_route *routes, size_t count, const char *method,
                    const struct http_segments *s, struct http_match *m, struct buf *allow);
/*
 * Splits "a=1&b", a query or a form, in place; *pairs (yours to free) points into it. -1: bad
 * percent-encoding.
 */
int http_route_parse_query(char *query, struct http_pair **pairs, size_t *count);

#endif
