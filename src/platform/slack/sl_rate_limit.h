/*
 * sl_rate_limit: how often a method may be called. Pure arithmetic on the caller's clock.
 *
 * A tier is a number of calls a minute; Slack forgives some more, and says so by not answering 429.
 * A 429 closes the method for Retry-After, or ever longer if there is none.
 */
#ifndef PLATFORM_SLACK_SL_RATE_LIMIT_H
#define PLATFORM_SLACK_SL_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "net/pace.h"
#include "platform/call_queue.h"
#include "platform/slack/sl_api.h"

/* The calls of one method. */
struct sl_lane {
        struct call_lane lane; /* first */
        const struct sl_method *method;
        struct pace *pace; /* of its tier */
        unsigned refusals; /* for its rate, in a row */
};

struct sl_rate_limits {
        struct pace *tiers[4]; /* the first has no limit */
        struct map lanes;      /* by the method's name */
};

/* tiers false: only 429s count. */
void sl_rate_limits_init(struct sl_rate_limits *l, bool tiers);
void sl_rate_limits_release(struct sl_rate_limits *l);
struct sl_lane *sl_rate_limits_lane(struct sl_rate_limits *l, const struct sl_method *method);
/* 0: a call may go now and is counted; > 0: ask again then. idle: leaves some for others. */
int64_t sl_rate_limit_take(struct sl_lane *lane, bool idle, int64_t now_ms);
/* Slack refused a call for its rate. Returns how long the method is closed. */
int64_t sl_rate_limit_close(struct sl_lane *lane, int64_t retry_after_ms, int64_t now_ms);

#endif
