/*
 * rate_limit: buckets of requests, as Discord limits them.
 *
 * A bucket is a route and its top-level id; it allows a number of requests in a window that begins
 * with the first. One more bucket per bot counts everything.
 */
#ifndef SIM_DISCORD_DC_RATE_LIMIT_H
#define SIM_DISCORD_DC_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/discord/dc_spec.h"

struct rate_limits;

struct rate_limit {
        int limit, remaining;
        double reset_after; /* seconds */
        char bucket[33];    /* X-RateLimit-Bucket */
        bool passed;        /* above the limit */
        bool global;
};

struct rate_limits *dc_rate_limit_new(void);
void dc_rate_limit_free(struct rate_limits *r);
/* Counts a request. `who` is the bot's token, `major` the channel, guild or webhook (or ""). */
struct rate_limit dc_rate_limit_count(struct rate_limits *r, const struct dc_spec_op *op,
                                      const char *who, const char *major);

#endif
