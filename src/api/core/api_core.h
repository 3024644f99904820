/*
 * api_core: the running API, and deferred answers.
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

#define METRICS_STATUSES 12 /* counted per route */

struct route_metrics {
        struct {
                int status; /* 0: free */
                uint64_t count;
        } answers[METRICS_STATUSES];
        uint64_t count;
        uint64_t micros;
};

struct api {
        struct api_env env;
        struct auth auth;
        struct keyring *keys;
        struct key *anonymous; /* caller of requests without a key */
        struct http_server *server;
        struct http_route *routes;     /* in the order of routes_next */
        struct route_metrics *metrics; /* per route; the last for unmatched requests */
        struct event_stream *stream;
        struct session_streams *session_streams;
        struct reply_waiters *waiters;
        struct reply_streams *reply_streams;
        struct a2a_server *a2a;
        struct a2a_cards *cards;
        char *public_url; /* NULL: none */
        struct api_job *jobs;
        /* body of the running handler; NULL: not parsed in advance */
        const struct json_parsed *parsed;
        char *addr_file;
        uint64_t requests; /* counts request ids */
        char run[9];       /* makes them unique across restarts */
        bool closing;      /* no new requests */
        bool closed;       /* nor are admitted requests started */
};

static inline struct api *api_of(const struct http_exchange *x)
{
        return http_server_arg(x);
}

/* Never NULL after the gate. */
static inline struct key *caller_of(const struct http_exchange *x)
{
        return http_identity(x);
}

static inline const char *caller_name(const struct http_exchange *x)
{
        return caller_of(x)->id > 0 ? caller_of(x)->name : "the operator";
}

/*
 * A request answered later; first member of the waiting struct. A closing API answers 503 and
 * clears the job.
 */
struct api_job {
        struct api *api;         /* NULL once the API has closed */
        struct http_exchange *x; /* the same */
        struct api_job *prev, *next;
};
void api_job_begin(struct api_job *j, struct http_exchange *x);
/* The exchange to answer; NULL: the API has closed. Does not free the struct. */
struct http_exchange *api_job_end(struct api_job *j);

/*
 * The server's gate hook, before the body is read: checks origin, key, rate limit, scope, and the
 * adapter of the path. false: answered.
 */
bool gate_admits(void *api, struct http_exchange *x);
/* The server's answered hook; route NULL: none matched. */
void metrics_answered(void *api, const struct http_route *route, int status, int64_t micros);
struct a2a_server *a2a_server_new(struct api *a);
void a2a_server_free(struct a2a_server *s);
struct a2a_cards *a2a_cards_new(const struct cards_conf *conf);
void a2a_cards_free(struct a2a_cards *c);
struct session_streams *session_streams_new(struct api *a, unsigned max_clients);
void session_streams_free(struct session_streams *s);

#endif
