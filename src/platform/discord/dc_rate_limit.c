#include "platform/discord/dc_rate_limit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

#define MS_MAX    INT64_C(1000000000000000) /* far beyond any date */
#define SWEEP_MIN 512
#define BAN_LIMIT 9000
#define MINUTE_MS 60000

void dc_rate_limits_init(struct dc_rate_limits *l)
{
        map_init(&l->buckets);
        map_init(&l->hashes);
        l->sweep_at = SWEEP_MIN;
}

static void bucket_free(struct dc_bucket *b)
{
        free(b->key);
        free(b);
}

void dc_rate_limits_release(struct dc_rate_limits *l)
{
        void *value;

        for (size_t i = 0; map_each(&l->buckets, &i, NULL, &value);)
                bucket_free(value);
        for (size_t i = 0; map_each(&l->hashes, &i, NULL, &value);)
                free(value);
        map_release(&l->buckets);
        map_release(&l->hashes);
}

static struct dc_bucket *bucket_at(struct dc_rate_limits *l, const char *key)
{
        struct dc_bucket *b = map_get(&l->buckets, key);

        if (b)
                return b;
        b = mem_zalloc(sizeof(*b));
        b->key = mem_strdup(key);
        call_lane_init(&b->lane);
        map_put(&l->buckets, key, b);
        return b;
}

struct dc_bucket *dc_rate_limits_bucket(struct dc_rate_limits *l, const char *method,
                                        const char *route, const char *major, int64_t now_ms)
{
        char *name = mem_printf("%s %s", method, route);
        const char *hash = map_get(&l->hashes, name);
        char *key = mem_printf("%s %s", hash ? hash : name, major);
        bool full = l->buckets.count >= l->sweep_at;
        struct dc_bucket *b;
        void *value;

        /* forget idle buckets: interaction tokens come and go */
        for (size_t i = 0; full && map_each(&l->buckets, &i, NULL, &value);) {
                b = value;
                if (b->lane.flying > 0 || b->lane.waiting > 0 || b->reset_ms > now_ms ||
                    b->closed_ms > now_ms || b->denied_ms > now_ms)
                        continue;
                map_remove(&l->buckets, b->key);
                bucket_free(b);
        }
        if (full)
                l->sweep_at = l->buckets.count * 2 > SWEEP_MIN ? l->buckets.count * 2 : SWEEP_MIN;
        b = bucket_at(l, key);
        free(key);
        free(name);
        return b;
}

struct dc_bucket *dc_rate_limits_learn(struct dc_rate_limits *l, struct dc_bucket *b,
                                       const char *method, const char *route, const char *major,
                                       const char *hash)
{
        char *name = mem_printf("%s %s", method, route), *key = mem_printf("%s %s", hash, major);
        const char *known = map_get(&l->hashes, name);

        if (!known || strcmp(known, hash) != 0)
                free(map_put(&l->hashes, name, mem_strdup(hash)));
        if (strcmp(b->key, key) != 0)
                b = bucket_at(l, key);
        free(key);
        free(name);
        return b;
}

void dc_rate_limits_drop(struct dc_rate_limits *l, struct dc_bucket *b)
{
        if (b->lane.flying > 0 || b->lane.waiting > 0)
                return;
        map_remove(&l->buckets, b->key);
        bucket_free(b);
}

int64_t dc_rate_limit_wait(const struct dc_bucket *b, int64_t now_ms)
{
        if (b->closed_ms > now_ms)
                return b->closed_ms - now_ms;
        if (!b->known)
                return b->lane.flying == 0 ? 0 : -1; /* the first call discovers the limit */
        if (b->limit == 0)
                return 0;
        if (b->reset_ms <= now_ms)
                return b->limit > b->lane.flying ? 0 : -1;
        if (b->remaining > b->lane.flying)
                return 0;
        return b->remaining > 0 ? -1 : b->reset_ms - now_ms;
}

/* Answers may overtake each other: the smallest remaining counts. */
void dc_rate_limit_update(struct dc_bucket *b, const struct dc_rate_limit_headers *h,
                          int64_t now_ms)
{
        bool same = b->known && b->window > 0 && b->window == h->window && b->reset_ms > now_ms;

        b->known = true;
        if (h->limit < 0 || h->remaining < 0)
                return;
        b->limit = h->limit;
        b->remaining = same && b->remaining < h->remaining ? b->remaining : h->remaining;
        if (!same)
                b->reset_ms = now_ms + (h->reset_after_ms > 0 ? h->reset_after_ms : 0);
        b->window = h->window;
}

void dc_rate_limit_close(struct dc_bucket *b, int64_t ms, int64_t now_ms)
{
        if (now_ms + ms > b->closed_ms)
                b->closed_ms = now_ms + ms;
}

int64_t dc_rate_limit_ms(const char *seconds)
{
        int64_t ms = 0, unit = 100;

        if (!seconds || !isdigit((unsigned char)*seconds))
                return -1;
        for (; isdigit((unsigned char)*seconds) && ms < MS_MAX; seconds++)
                ms = ms * 10 + (*seconds - '0') * 1000;
        if (*seconds == '.') {
                for (seconds++; isdigit((unsigned char)*seconds) && unit > 0; seconds++, unit /= 10)
                        ms += (*seconds - '0') * unit;
                for (; *seconds == '0'; seconds++) {
                }
                if (isdigit((unsigned char)*seconds))
                        ms++;
        }
        return ms < MS_MAX ? ms : MS_MAX;
}

/* ---- bans ---- */

void dc_rate_limit_guard_init(struct dc_ban_guard *g, const char *name, unsigned max)
{
        *g = (struct dc_ban_guard){ .name = name, .max = max ? max : BAN_LIMIT };
}

static void age(struct dc_ban_guard *g, int64_t now_ms)
{
        int64_t minute = now_ms / MINUTE_MS;

        for (int i = 0; g->newest < minute; i++) {
                g->newest = i < DC_GUARD_MINUTES ? g->newest + 1 : minute;
                g->sum -= g->minutes[g->newest % DC_GUARD_MINUTES];
                g->minutes[g->newest % DC_GUARD_MINUTES] = 0;
        }
}

bool dc_rate_limit_admit(struct dc_ban_guard *g, int64_t now_ms, bool idle)
{
        age(g, now_ms);
        if (g->closed && g->sum < g->max) {
                g->closed = false;
                log_info("calls to Discord resumed", LOG_S("adapter", g->name));
        }
        return g->sum < (idle ? (g->max + 1) / 2 : g->max);
}

void dc_rate_limit_count(struct dc_ban_guard *g, int64_t now_ms)
{
        age(g, now_ms);
        g->minutes[g->newest % DC_GUARD_MINUTES]++;
        g->sum++;
        if (g->sum < g->max || g->closed)
                return;
        g->closed = true;
        log_error("Discord refused too many calls in ten minutes; calls suspended to avoid a ban "
                  "of our address",
                  LOG_S("adapter", g->name), LOG_I("refused", g->sum), LOG_I("limit", g->max));
}
