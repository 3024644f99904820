/*
 * request: reads a request by the tables of its route. Mistakes are answered here, so handlers only
 * see good input.
 */
#ifndef API_CORE_REQUEST_H
#define API_CORE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "api/core/api_core.h"
#include "api/core/body.h"
#include "api/core/reply.h"
#include "api/core/routes.h"

static inline const struct route *request_route(const struct http_exchange *x)
{
        return http_route_of(x)->more;
}

/*
 * Runs the handler of the route. A body from JSON_OFFLOAD_MIN on is parsed on the pool first; the
 * handler is then skipped for a client that has gone.
 */
void request_run(struct http_exchange *x);
/* The body as the pool has parsed it; NULL: it is small, and http_body has it. */
const struct json_parsed *request_parsed(const struct http_exchange *x);

/* Into `out`. -1: answered with 400 (or 403, by REACH_BODY), and b is released. */
int request_query(struct http_exchange *x, struct body *b, void *out);
int request_body(struct http_exchange *x, struct body *b, void *out);
/* The number in the path's ":id" with this prefix; -1: answered with 404. */
int64_t request_id(struct http_exchange *x, const char *prefix, const char *what);
/* The header Idempotency-Key, NULL when absent; -1: answered with 400. */
int request_key(struct http_exchange *x, const char **key);
/* Does the caller's key reach this adapter? false: answered with 403. */
bool request_reaches(struct http_exchange *x, const char *adapter);
/* Does a relative path stay below where it begins? */
bool request_path_is_inside(const char *path);

#endif
