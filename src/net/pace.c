#include "net/pace.h"

#include <math.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

/*
 * A bucket's level may rise one above its capacity. The extra token is never spent; it shows that
 * nothing was sent for a while. Lesser classes need a level of two, so with a capacity of one they
 * get their turn only after a pause in which a final answer could have gone.
 *
 * Long windows are strict: a quarter of the minute's budget may go at once and the rest is refilled
 * evenly. A plain bucket would allow nearly twice the limit in a minute.
 */

#define MINUTE_MS    60000.0
#define AT_ONCE      0.25 /* of a minute's budget */
#define STRICT_RATE  0.75 /* of a second's, and what may go at once; */
#define STRICT_BURST 0.2  /* the rest is for delays on the way, which move calls together */
#define IDLE_EXTRA   1.0
#define FINAL_NEED   1.0
#define LESSER_NEED  2.0
#define ROUNDING     1e-9
#define SWEEP_LEAST  512

struct rate {
        double per_ms; /* 0: no limit */
        double capacity;
};

struct bucket {
        double level;
        int64_t at_ms;
};

struct channel {
        struct bucket second, minute;
        int64_t frozen_until_ms;
};

struct pace {
        struct rate adapter_rate, second_rate, minute_rate;
        struct bucket adapter;
        int64_t frozen_until_ms;
        struct map channels;
        size_t sweep_at; /* drop idle channels when there are so many */
};

static struct rate rate_of_second(double per_second, double burst)
{
        double capacity = burst > 0 ? burst : per_second;

        return (struct rate){ fmax(per_second, 0) / 1000.0, fmax(capacity, 1) };
}

static double full(const struct rate *r)
{
        return r->capacity + IDLE_EXTRA;
}

static void refill(struct bucket *b, const struct rate *r, int64_t now_ms)
{
        if (now_ms > b->at_ms) {
                b->level += (double)(now_ms - b->at_ms) * r->per_ms;
                b->at_ms = now_ms;
        }
        b->level = fmin(b->level, full(r));
}

/* How long until the bucket holds `need`. */
static int64_t wait_for(struct bucket *b, const struct rate *r, double need, int64_t now_ms)
{
        refill(b, r, now_ms);
        if (r->per_ms <= 0 || b->level + ROUNDING >= need)
                return 0;
        return (int64_t)fmax(ceil((need - b->level) / r->per_ms), 1);
}

static void spend(struct bucket *b, const struct rate *r)
{
        if (r->per_ms > 0)
                b->level = fmin(b->level, r->capacity) - 1;
}

unsigned pace_sweep(struct pace *p, int64_t now_ms)
{
        const char *name;
        void *channel;

        for (size_t i = 0; map_each(&p->channels, &i, &name, &channel);) {
                struct channel *c = channel;

                refill(&c->second, &p->second_rate, now_ms);
                refill(&c->minute, &p->minute_rate, now_ms);
                if (c->frozen_until_ms > now_ms ||
                    (p->second_rate.per_ms > 0 && c->second.level < full(&p->second_rate)) ||
                    (p->minute_rate.per_ms > 0 && c->minute.level < full(&p->minute_rate)))
                        continue; /* a new one would differ */
                map_remove(&p->channels, name);
                free(c);
        }
        p->sweep_at = p->channels.count * 2 > SWEEP_LEAST ? p->channels.count * 2 : SWEEP_LEAST;
        return (unsigned)p->channels.count;
}

static struct channel *channel_get(struct pace *p, const char *name, int64_t now_ms)
{
        struct channel *c = map_get(&p->channels, name);

        if (c)
                return c;
        if (p->channels.count >= p->sweep_at)
                pace_sweep(p, now_ms);
        c = mem_zalloc(sizeof(*c));
        c->second = (struct bucket){ full(&p->second_rate), now_ms };
        c->minute = (struct bucket){ full(&p->minute_rate), now_ms };
        map_put(&p->channels, name, c);
        return c;
}

struct pace *pace_new(const struct pace_limits *limits)
{
        struct pace *p = mem_zalloc(sizeof(*p));

        map_init(&p->channels);
        p->sweep_at = SWEEP_LEAST;
        pace_set_limits(p, limits);
        p->adapter.level = full(&p->adapter_rate);
        return p;
}

struct pace_limits pace_strict(double per_second)
{
        return (struct pace_limits){ .per_second = per_second * STRICT_RATE,
                                     .burst = per_second * STRICT_BURST };
}

void pace_free(struct pace *p)
{
        const char *name;
        void *channel;

        if (!p)
                return;
        for (size_t i = 0; map_each(&p->channels, &i, &name, &channel);)
                free(channel);
        map_release(&p->channels);
        free(p);
}

/* Keeps the levels; refill cuts those above the new capacity. */
void pace_set_limits(struct pace *p, const struct pace_limits *limits)
{
        double per_minute = limits->per_channel_minute;
        double at_once = fmax(per_minute * AT_ONCE, 1);
        double spread = per_minute >= 2 ? per_minute - at_once : per_minute;

        p->adapter_rate = rate_of_second(limits->per_second, limits->burst);
        p->second_rate = rate_of_second(limits->per_channel_second, limits->burst);
        p->minute_rate = (struct rate){ fmax(spread, 0) / MINUTE_MS, at_once };
}

static int64_t later(int64_t a, int64_t b)
{
        return a > b ? a : b;
}

int64_t pace_take(struct pace *p, const char *channel, bool group, enum pace_class class,
                  int64_t now_ms)
{
        struct channel *c = channel_get(p, channel, now_ms);
        double need = class <= PACE_APPROVAL ? FINAL_NEED : LESSER_NEED;
        int64_t wait = later(p->frozen_until_ms, c->frozen_until_ms) - now_ms;

        wait = later(wait, wait_for(&p->adapter, &p->adapter_rate, need, now_ms));
        wait = later(wait, wait_for(&c->second, &p->second_rate, need, now_ms));
        if (group)
                wait = later(wait, wait_for(&c->minute, &p->minute_rate, need, now_ms));
        if (wait > 0)
                return wait;
        spend(&p->adapter, &p->adapter_rate);
        spend(&c->second, &p->second_rate);
        if (group)
                spend(&c->minute, &p->minute_rate);
        return 0;
}

void pace_freeze(struct pace *p, const char *channel, int64_t ms, int64_t now_ms)
{
        int64_t *until =
                channel ? &channel_get(p, channel, now_ms)->frozen_until_ms : &p->frozen_until_ms;

        *until = later(*until, now_ms + later(ms, 0));
}

size_t pace_channels(const struct pace *p)
{
        return p->channels.count;
}
