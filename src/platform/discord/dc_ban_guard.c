#include "platform/discord/dc_ban_guard.h"

#include "base/log.h"

#define MAX_DEFAULT 9000
#define MINUTE_MS   60000

void dc_ban_guard_init(struct dc_ban_guard *g, const char *name, unsigned max)
{
        *g = (struct dc_ban_guard){ .name = name, .max = max ? max : MAX_DEFAULT };
}

/* Empties the minutes that are older than ten. */
static void age(struct dc_ban_guard *g, int64_t now_ms)
{
        int64_t minute = now_ms / MINUTE_MS;

        for (int i = 0; g->newest < minute; i++) {
                g->newest = i < DC_BAN_GUARD_MINUTES ? g->newest + 1 : minute;
                g->sum -= g->minutes[g->newest % DC_BAN_GUARD_MINUTES];
                g->minutes[g->newest % DC_BAN_GUARD_MINUTES] = 0;
        }
}

bool dc_ban_guard_admit(struct dc_ban_guard *g, int64_t now_ms, bool idle)
{
        age(g, now_ms);
        if (g->closed && g->sum < g->max) {
                g->closed = false;
                log_info("calls to Discord resumed", LOG_S("adapter", g->name));
        }
        return g->sum < (idle ? (g->max + 1) / 2 : g->max);
}

void dc_ban_guard_count(struct dc_ban_guard *g, int64_t now_ms)
{
        age(g, now_ms);
        g->minutes[g->newest % DC_BAN_GUARD_MINUTES]++;
        g->sum++;
        if (g->sum < g->max || g->closed)
                return;
        g->closed = true;
        log_error("Discord refused too many calls in ten minutes; calls suspended to avoid a ban "
                  "of our address",
                  LOG_S("adapter", g->name), LOG_I("refused", g->sum), LOG_I("limit", g->max));
}
