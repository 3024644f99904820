#include "dispatch/limits/bot_loop.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

struct bot_chain {
        int length;
        int64_t last_ms;
};

struct bot_loops {
        struct map by_place;
        size_t max;
};

struct bot_loops *bot_loops_new(size_t max)
{
        struct bot_loops *c = mem_zalloc(sizeof(*c));

        map_init(&c->by_place);
        c->max = max;
        return c;
}

void bot_loops_free(struct bot_loops *c)
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

static bool is_quiet(const struct bot_chain *chain, int64_t now_ms)
{
        return now_ms - chain->last_ms >= BOT_LOOP_QUIET_MS;
}

int bot_loop_length(const struct bot_loops *c, const struct incoming *in, int64_t now_ms)
{
        char *place;
        const struct bot_chain *chain;

        if (c->by_place.count == 0) /* as nearly always */
                return 0;
        place = place_of(in);
        chain = map_get(&c->by_place, place);
        free(place);
        return chain && !is_quiet(chain, now_ms) ? chain->length : 0;
}

static void forget_quiet(struct bot_loops *c, int64_t now_ms)
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

void bot_loop_count(struct bot_loops *c, const struct incoming *in, int64_t now_ms)
{
        char *place = place_of(in);
        struct bot_chain *chain = map_get(&c->by_place, place);

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

void bot_loop_break(struct bot_loops *c, const struct incoming *in)
{
        char *place;

        if (c->by_place.count == 0)
                return;
        place = place_of(in);
        free(map_remove(&c->by_place, place));
        free(place);
}
