/*
 * api_core: the running API, and requests that are answered later. For the files of this room.
 */
#ifndef API_CORE_API_CORE_H
#define API_CORE_API_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "api/core/auth.h"
#include "api/core/key.h"
#include "net/http_server.h"
#include "net/json_offload.h"

struct api {
        struct api_env env;
        struct auth auth;
        struct keyring *keys;
        struct key *anonymous; /* the caller of a request without a key */
        struct http_server *server;
        struct http_route *routes;     /* of the server, in the order of routes_next */
        struct route_metrics *metrics; /* one per route, and one for requests that match none */
        struct event_stream *stream;
        struct reply_waiters *waiters;
        struct completions *completions;
        struct api_job *jobs;
        /* the body of the request whose handler runs; NULL: it was not parsed in advance */
        const struct json_parsed *parsed;
        char *addr_file;
        uint64_t requests; /* counts request ids */
        char run[9];       /* makes them unique across restarts */
        bool closing;      /* no new requests */
        bool closed;       /* admitted requests are not started either */
};

static inline struct api *api_of(const struct http_exchange *x)
{
        return http_server_arg(x);
}

/* The key that a request came with; never NULL behind the gate. */
static inline struct key *caller_of(const struct http_exchange *x)
{
        return http_identity(x);
}

/* Who changes something, for the record. */
static inline const char *caller_name(const struct http_exchange *x)
{
        return caller_of(x)->id > 0 ? caller_of(x)->name : "the operator";
}

/*
 * A request that is answered later; the first member of the struct that waits for the answer. When
 * the API closes first, it answers with 503 and clears the job.
 */
struct api_job {
        struct api *api;         /* NULL once the API has closed */
        struct http_exchange *x; /* NULL once the API has closed */
        struct api_job *prev, *next;
};
void api_job_begin(struct api_job *j, struct http_exchange *x);
/* The exchange to answer; NULL: the API has closed. Does not free the struct. */
struct http_exchange *api_job_end(struct api_job *j);

#endif
