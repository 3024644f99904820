#include "dispatch/limits/bot_loop.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

struct chain {
        int length;
        int64_t last_ms;
};

struct chains {
        struct map by_place;
        size_t max;
};

struct chains *chains_new(size_t max)
{
        struct chains *c = mem_zalloc(sizeof(*c));

        map_init(&c->by_place);
        c->max = max;
        return c;
}

void chains_free(struct chains *c)
{
        const char *key;
        void *chain;

        if (!c)
                return;
        for (size_t i = 0; map_each(&c->by_place, &i, &key, &chain);)
                free(chain);
        map_release(&c->by_place);
        free(c);
}

static char *place_of(const struct incoming *in)
{
        return mem_printf("%s\n%s\n%s", in->adapter ? in->adapter : "",
                          in->channel ? in->channel : "", in->thread ? in->thread : "");
}

static bool is_quiet(const struct chain *chain, int64_t now_ms)
{
        return now_ms - chain->last_ms >= CHAIN_QUIET_MS;
}

int chains_length(const struct chains *c, const struct incoming *in, int64_t now_ms)
{
        char *place;
        const struct chain *chain;

        if (c->by_place.count == 0) /* as nearly always */
                return 0;
        place = place_of(in);
        chain = map_get(&c->by_place, place);
        free(place);
        return chain && !is_quiet(chain, now_ms) ? chain->length : 0;
}

static void forget_quiet(struct chains *c, int64_t now_ms)
{
        const char *key;
        void *chain;

        for (size_t i = 0; map_each(&c->by_place, &i, &key, &chain);) {
                if (is_quiet(chain, now_ms)) {
                        map_remove(&c->by_place, key);
                        free(chain);
                }
        }
}

void chains_add(struct chains *c, const struct incoming *in, int64_t now_ms)
{
        char *place = place_of(in);
        struct chain *chain = map_get(&c->by_place, place);

        if (!chain && c->by_place.count >= c->max)
                forget_quiet(c, now_ms);
        if (!chain && c->by_place.count < c->max) {
                chain = mem_zalloc(sizeof(*chain));
                map_put(&c->by_place, place, chain);
        }
        if (chain) {
                chain->length = is_quiet(chain, now_ms) ? 1 : chain->length + 1;
                chain->last_ms = now_ms;
        }
        free(place);
}

void chains_break(struct chains *c, const struct incoming *in)
{
        char *place;

        if (c->by_place.count == 0)
                return;
        place = place_of(in);
        free(map_remove(&c->by_place, place));
        free(place);
}
