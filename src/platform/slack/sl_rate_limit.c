#include "platform/slack/sl_rate_limit.h"

#include <stdlib.h>

#include "base/mem.h"

#define REFUSED_MS     1000 /* after a 429 without Retry-After; doubles each time */
#define REFUSED_MAX_MS 60000
#define RETRY_MAX_MS   ((int64_t)86400 * 1000)

static const int calls_a_minute[] = { 0, 20, 50, 100 };

void sl_rate_limits_init(struct sl_rate_limits *l, bool tiers)
{
        map_init(&l->lanes);
        for (size_t i = 0; i < COUNT(l->tiers); i++)
                l->tiers[i] = pace_new(&(struct pace_limits){
                        .per_channel_minute = tiers ? calls_a_minute[i] : 0 });
}

void sl_rate_limits_release(struct sl_rate_limits *l)
{
        const char *name;
        void *lane;

        for (size_t i = 0; map_each(&l->lanes, &i, &name, &lane);)
                free(lane);
        map_release(&l->lanes);
        for (size_t i = 0; i < COUNT(l->tiers); i++)
                pace_free(l->tiers[i]);
}

struct sl_lane *sl_rate_limits_lane(struct sl_rate_limits *l, const struct sl_method *method)
{
        struct sl_lane *lane = map_get(&l->lanes, method->name);
        size_t tier = 0;

        if (lane)
                return lane;
        for (size_t i = 0; i < COUNT(l->tiers); i++) {
                if (method->tier == calls_a_minute[i])
                        tier = i;
        }
        lane = mem_zalloc(sizeof(*lane));
        call_lane_init(&lane->lane);
        lane->method = method;
        lane->pace = l->tiers[tier];
        map_put(&l->lanes, method->name, lane);
        return lane;
}

int64_t sl_rate_limit_take(struct sl_lane *lane, bool idle, int64_t now_ms)
{
        return pace_take(lane->pace, lane->method->name, true, idle ? PACE_EDIT : PACE_FINAL,
                         now_ms);
}

int64_t sl_rate_limit_close(struct sl_lane *lane, int64_t retry_after_ms, int64_t now_ms)
{
        int64_t ms = retry_after_ms;

        if (ms <= 0) {
                unsigned doublings = lane->refusals < 6 ? lane->refusals : 6;

                ms = (int64_t)REFUSED_MS << doublings;
                ms = ms < REFUSED_MAX_MS ? ms : REFUSED_MAX_MS;
        }
        ms = ms < RETRY_MAX_MS ? ms : RETRY_MAX_MS;
        lane->refusals++;
        pace_freeze(lane->pace, lane->method->name, ms, now_ms);
        return ms;
}
