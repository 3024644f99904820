#include "platform/discord/dc_ban_guard.h"

#include "base/log.h"

#define MAX_DEFAULT 9000
#define MINUTE_MS   60000

void dc_guard_init(struct dc_guard *g, const char *name, unsigned max)
{
        *g = (struct dc_guard){ .name = name, .max = max ? max : MAX_DEFAULT };
}

/* Slots older than ten minutes are emptied. */
static void age(struct dc_guard *g, int64_t now_ms)
{
        int64_t minute = now_ms / MINUTE_MS;

        for (int i = 0; g->minute < minute; i++) {
                g->minute = i < DC_GUARD_SLOTS ? g->minute + 1 : minute;
                g->sum -= g->slots[g->minute % DC_GUARD_SLOTS];
                g->slots[g->minute % DC_GUARD_SLOTS] = 0;
        }
}

bool dc_guard_is_open(struct dc_guard *g, int64_t now_ms)
{
        age(g, now_ms);
        if (g->closed && g->sum < g->max) {
                g->closed = false;
                log_info("calls of Discord go on", LOG_S("adapter", g->name));
        }
        return g->sum < g->max;
}

bool dc_guard_is_wide_open(struct dc_guard *g, int64_t now_ms)
{
        return dc_guard_is_open(g, now_ms) && g->sum < (g->max + 1) / 2;
}

void dc_guard_count(struct dc_guard *g, int64_t now_ms)
{
        age(g, now_ms);
        g->slots[g->minute % DC_GUARD_SLOTS]++;
        g->sum++;
        if (g->sum < g->max || g->closed)
                return;
        g->closed = true;
        log_error("Discord has refused so many calls that it would soon ban our address; nothing "
                  "is sent until fewer than the limit lie within ten minutes",
                  LOG_S("adapter", g->name), LOG_I("refused", g->sum), LOG_I("limit", g->max));
}
