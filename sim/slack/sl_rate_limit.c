#include "sim/slack/sl_rate_limit.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "sim/token_bucket.h"

struct slack_rates {
        struct map buckets; /* -> struct token_bucket */
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
        struct token_bucket *b = map_get(&r->buckets, key);
        double wait;

        if (!b) {
                b = mem_zalloc(sizeof(*b));
                map_put(&r->buckets, key, b);
        }
        wait = token_bucket_wait(b, per_second, burst, 1, clock_mono_ms());
        if (wait <= 0)
                b->tokens--;
        return wait;
}
