#include "platform/discord/dc_rate_limit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MS_MAX    INT64_C(1000000000000000) /* far beyond any date */
#define SWEEP_MIN 512

void dc_limits_init(struct dc_limits *l)
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

void dc_limits_release(struct dc_limits *l)
{
        void *value;

        for (size_t i = 0; map_each(&l->buckets, &i, NULL, &value);)
                bucket_free(value);
        for (size_t i = 0; map_each(&l->hashes, &i, NULL, &value);)
                free(value);
        map_release(&l->buckets);
        map_release(&l->hashes);
}

/* Nothing is known of it that a fresh one would not know soon. */
static bool is_idle(const struct dc_bucket *b, int64_t now_ms)
{
        return b->flying == 0 && b->waiting == 0 && b->reset_ms <= now_ms &&
               b->closed_ms <= now_ms && b->denied_ms <= now_ms;
}

/* Interaction tokens come and go: what is idle is forgotten when there are many. */
static void sweep(struct dc_limits *l, int64_t now_ms)
{
        void *value;

        for (size_t i = 0; map_each(&l->buckets, &i, NULL, &value);) {
                struct dc_bucket *b = value;

                if (!is_idle(b, now_ms))
                        continue;
                map_remove(&l->buckets, b->key);
                bucket_free(b);
        }
        l->sweep_at = l->buckets.count * 2 > SWEEP_MIN ? l->buckets.count * 2 : SWEEP_MIN;
}

static struct dc_bucket *bucket_at(struct dc_limits *l, const char *key)
{
        struct dc_bucket *b = map_get(&l->buckets, key);

        if (b)
                return b;
        b = mem_zalloc(sizeof(*b));
        b->key = mem_strdup(key);
        for (int i = 0; i < DC_PRIORITIES; i++)
                TAILQ_INIT(&b->queues[i]);
        map_put(&l->buckets, key, b);
        return b;
}

struct dc_bucket *dc_limits_bucket(struct dc_limits *l, const char *method, const char *route,
                                   const char *major, int64_t now_ms)
{
        char *name = mem_printf("%s %s", method, route);
        const char *hash = map_get(&l->hashes, name);
        char *key = mem_printf("%s %s", hash ? hash : name, major);
        struct dc_bucket *b;

        if (l->buckets.count >= l->sweep_at)
                sweep(l, now_ms);
        b = bucket_at(l, key);
        free(key);
        free(name);
        return b;
}

struct dc_bucket *dc_limits_learn(struct dc_limits *l, struct dc_bucket *b, const char *method,
                                  const char *route, const char *major, const char *hash)
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

void dc_limits_drop(struct dc_limits *l, struct dc_bucket *b)
{
        if (b->flying > 0 || b->waiting > 0)
                return;
        map_remove(&l->buckets, b->key);
        bucket_free(b);
}

int64_t dc_bucket_wait(const struct dc_bucket *b, int64_t now_ms)
{
        if (b->closed_ms > now_ms)
                return b->closed_ms - now_ms;
        if (!b->told)
                return b->flying == 0 ? 0 : -1; /* one asks, the others learn */
        if (b->limit == 0)
                return 0;
        if (b->reset_ms <= now_ms)
                return b->limit > b->flying ? 0 : -1;
        if (b->remaining > b->flying)
                return 0;
        return b->remaining > 0 ? -1 : b->reset_ms - now_ms;
}

/* Answers may overtake each other: within a window the smallest number counts. */
void dc_bucket_told(struct dc_bucket *b, const struct dc_told *told, int64_t now_ms)
{
        bool same = b->told && b->window > 0 && b->window == told->window && b->reset_ms > now_ms;

        b->told = true;
        if (told->limit < 0 || told->remaining < 0)
                return;
        b->limit = told->limit;
        b->remaining = same && b->remaining < told->remaining ? b->remaining : told->remaining;
        if (!same)
                b->reset_ms = now_ms + (told->reset_after_ms > 0 ? told->reset_after_ms : 0);
        b->window = told->window;
}

void dc_bucket_close(struct dc_bucket *b, int64_t ms, int64_t now_ms)
{
        if (now_ms + ms > b->closed_ms)
                b->closed_ms = now_ms + ms;
}

int64_t dc_seconds_ms(const char *decimal)
{
        int64_t ms = 0, unit = 100;

        if (!decimal || !isdigit((unsigned char)*decimal))
                return -1;
        for (; isdigit((unsigned char)*decimal) && ms < MS_MAX; decimal++)
                ms = ms * 10 + (*decimal - '0') * 1000;
        if (*decimal == '.') {
                for (decimal++; isdigit((unsigned char)*decimal) && unit > 0; decimal++, unit /= 10)
                        ms += (*decimal - '0') * unit;
                for (; *decimal == '0'; decimal++) {
                }
                if (isdigit((unsigned char)*decimal))
                        ms++;
        }
        return ms < MS_MAX ? ms : MS_MAX;
}
