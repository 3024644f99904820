/*
 * dc_rate_limit: rate limits learned from Discord's answers. Pure arithmetic on the caller's
 * clock.
 *
 * A bucket is named by Discord's hash and the top-level id of the path; before the first answer
 * the route stands for the hash. The guard counts the refusals for which Discord bans an address.
 */
#ifndef PLATFORM_DISCORD_DC_RATE_LIMIT_H
#define PLATFORM_DISCORD_DC_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "platform/call_queue.h"
#include "platform/discord/dc_rest.h"

struct dc_bucket {
        struct call_lane lane; /* first */
        char *key;
        bool known;               /* an answer has come */
        int64_t limit, remaining; /* limit 0: the route has none */
        int64_t window;           /* X-RateLimit-Reset in ms; 0: unknown */
        int64_t reset_ms;
        int64_t closed_ms; /* after a 429: no call before this */
        int64_t denied_ms; /* no idle call before this */
        int denied_code;
};

/* -1 or NULL: absent. */
struct dc_rate_limit_headers {
        const char *hash;
        int64_t limit, remaining, reset_after_ms, window;
};

struct dc_rate_limits {
        struct map buckets; /* by key */
        struct map hashes;  /* "METHOD route" to Discord's hash */
        size_t sweep_at;
};

void dc_rate_limits_init(struct dc_rate_limits *l);
void dc_rate_limits_release(struct dc_rate_limits *l);
/* major: the top-level id of the path, or "". */
struct dc_bucket *dc_rate_limits_bucket(struct dc_rate_limits *l, const char *method,
                                        const char *route, const char *major, int64_t now_ms);
/* An answer named the bucket. If it is not b, move what waits there and drop b. */
struct dc_bucket *dc_rate_limits_learn(struct dc_rate_limits *l, struct dc_bucket *b,
                                       const char *method, const char *route, const char *major,
                                       const char *hash);
/* Unless calls are in flight or waiting. */
void dc_rate_limits_drop(struct dc_rate_limits *l, struct dc_bucket *b);

/* 0: one may go; > 0: ask again then; -1: after the next answer. */
int64_t dc_rate_limit_wait(const struct dc_bucket *b, int64_t now_ms);
void dc_rate_limit_update(struct dc_bucket *b, const struct dc_rate_limit_headers *h,
                          int64_t now_ms);
void dc_rate_limit_close(struct dc_bucket *b, int64_t ms, int64_t now_ms);
/* "1.25" is 1250, rounded up; -1: not a number. */
int64_t dc_rate_limit_ms(const char *seconds);

/* ---- bans ---- */

#define DC_GUARD_MINUTES 10

struct dc_ban_guard {
        unsigned minutes[DC_GUARD_MINUTES], sum, max;
        int64_t newest;
        bool closed;
        const char *name; /* of the adapter */
};

/* max 0: the default. */
void dc_rate_limit_guard_init(struct dc_ban_guard *g, const char *name, unsigned max);
/* May a call go? Idle calls stop at half the limit. Logs when the guard opens. */
bool dc_rate_limit_admit(struct dc_ban_guard *g, int64_t now_ms, bool idle);
/* Counts a 401, 403 or 429. */
void dc_rate_limit_count(struct dc_ban_guard *g, int64_t now_ms);

#endif
