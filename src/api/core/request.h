/*
 * request: reads a request by its route's tables and answers mistakes.
 */
#ifndef API_CORE_REQUEST_H
#define API_CORE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "api/core/api_core.h"
#include "api/core/body.h"
#include "api/core/reply.h"
#include "api/core/routes.h"
#include "base/crypto.h"

static inline const struct route *request_route(const struct http_exchange *x)
{
        return http_route_of(x)->more;
}

/*
 * Runs the route's handler. Parses bodies of JSON_OFFLOAD_MIN or more in the pool first, and skips
 * the handler if the client has gone.
 */
void request_run(struct http_exchange *x);
/* The body parsed by the pool; NULL: small, use http_body. */
const struct json_parsed *request_parsed(const struct http_exchange *x);

/* -1: answered with 400 (or 403, by REACH_BODY), and b is released. */
int request_query(struct http_exchange *x, struct body *b, void *out);
int request_body(struct http_exchange *x, struct body *b, void *out);
/* The number in ":id" after this prefix; -1: answered with 404. */
int64_t request_id(struct http_exchange *x, const char *prefix, const char *what);
/* The Idempotency-Key as stored: each caller has its own. Yours to free. */
char *request_own_key(const struct http_exchange *x, const char *key);
/* Identifies a request by what it asks for and its body: the same key for another is a conflict. */
void request_hash(const char *what, const json_t *body, char hash[SHA256_HEX_SIZE]);
/* The header Idempotency-Key, NULL when absent; -1: answered with 400. */
int request_key(struct http_exchange *x, const char **key);
/* false: answered with 403. */
bool request_reaches(struct http_exchange *x, const char *adapter);
/* Does it certainly come from this machine, without a proxy that forwards those of others? */
bool request_is_local(const struct http_exchange *x);
/* Is a relative path free of ".."? */
bool request_path_is_inside(const char *path);

#endif
