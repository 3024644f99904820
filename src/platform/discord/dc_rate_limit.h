/*
 * dc_limit: how many calls Discord permits now, as far as its answers have told.
 *
 * Pure arithmetic over a clock the caller passes in. A bucket is named by Discord's hash and the
 * top-level id of the path; before a route's first answer the hash is unknown, and the route stands
 * for it. Calls that wait hang at their bucket; who may go is decided by dc_rest.c.
 */
#ifndef PLATFORM_DISCORD_DC_LIMIT_H
#define PLATFORM_DISCORD_DC_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/map.h"
#include "platform/discord/dc_rest.h"

TAILQ_HEAD(dc_calls, dc_call);

struct dc_bucket {
        char *key;
        bool told;                /* an answer has come: the numbers below mean something */
        int64_t limit, remaining; /* limit 0: this route has none */
        /* X-RateLimit-Reset in ms, names the window the numbers are of; 0: not told */
        int64_t window;
        int64_t reset_ms;  /* when the window ends, our clock */
        int64_t closed_ms; /* a 429: nothing goes before */
        /* we may not do this here: unimportant calls are not even tried before */
        int64_t denied_ms;
        int denied_code;
        unsigned flying;
        unsigned waiting;
        struct dc_calls queues[DC_PRIORITIES];
        LIST_ENTRY(dc_bucket) busy; /* while calls wait */
};
LIST_HEAD(dc_buckets, dc_bucket);

/* What the headers of one answer say; -1 or NULL: nothing. */
struct dc_told {
        const char *hash;
        int64_t limit, remaining, reset_after_ms, window;
};

struct dc_limits {
        struct map buckets; /* by key */
        struct map hashes;  /* "METHOD route" to the hash Discord gave */
        size_t sweep_at;
};

void dc_limits_init(struct dc_limits *l);
/* No call may be waiting any more. */
void dc_limits_release(struct dc_limits *l);
/* The bucket of a route with this top-level id ("" for none); made when it is new. */
struct dc_bucket *dc_limits_bucket(struct dc_limits *l, const char *method, const char *route,
                                   const char *major, int64_t now_ms);
/*
 * An answer of this route told its bucket: returns the one it is from now on. When that is another,
 * the caller moves what waits there and then calls dc_limits_drop for the old one.
 */
struct dc_bucket *dc_limits_learn(struct dc_limits *l, struct dc_bucket *b, const char *method,
                                  const char *route, const char *major, const char *hash);
/* Frees a bucket nobody uses; does nothing while calls fly or wait. */
void dc_limits_drop(struct dc_limits *l, struct dc_bucket *b);

/*
 * 0: one may go now; > 0: ask again in so many ms; -1: when a call that is flying has been
 * answered.
 */
int64_t dc_bucket_wait(const struct dc_bucket *b, int64_t now_ms);
void dc_bucket_told(struct dc_bucket *b, const struct dc_told *told, int64_t now_ms);
/* Nothing goes for so long. The later end wins. */
void dc_bucket_close(struct dc_bucket *b, int64_t ms, int64_t now_ms);
/* "1.25" is 1250, independent of the locale, rounded up; -1 when it is no such number. */
int64_t dc_seconds_ms(const char *decimal);

#endif
