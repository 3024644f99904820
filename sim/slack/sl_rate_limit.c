#include "sim/slack/sl_rate_limit.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"

struct slack_bucket {
        double tokens;
        int64_t at_ms;
};

struct slack_rates {
        struct map buckets; /* -> struct slack_bucket */
};

struct slack_rates *sl_rate_limit_new(void)
{
        struct slack_rates *r = mem_zalloc(sizeof(*r));

        map_init(&r->buckets);
        return r;
}

void sl_rate_limit_free(struct slack_rates *r)
{
        const char *key;
        void *value;

        for (size_t i = 0; map_each(&r->buckets, &i, &key, &value);)
                free(value);
        map_release(&r->buckets);
        free(r);
}

double sl_rate_limit_count(struct slack_rates *r, const char *key, double per_second, double burst)
{
        struct slack_bucket *b = map_get(&r->buckets, key);
        int64_t now = clock_mono_ms();

        if (!b) {
                b = mem_zalloc(sizeof(*b));
                *b = (struct slack_bucket){ .tokens = burst, .at_ms = now };
                map_put(&r->buckets, key, b);
        }
        b->tokens += (double)(now - b->at_ms) / 1000 * per_second;
        if (b->tokens > burst)
                b->tokens = burst;
        b->at_ms = now;
        if (b->tokens < 1)
                return (1 - b->tokens) / per_second;
        b->tokens--;
        return 0;
}
