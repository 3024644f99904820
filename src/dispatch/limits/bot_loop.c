#include "dispatch/limits/bot_loop.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "rows/chat_key.h"

struct bot_chain {
        int length;
        int64_t last_ms;
};

struct bot_loops {
        struct map by_chat; /* → struct bot_chain; nearly always empty */
        size_t max;
};

struct bot_loops *bot_loops_new(size_t max)
{
        struct bot_loops *l = mem_zalloc(sizeof(*l));

        map_init(&l->by_chat);
        l->max = max;
        return l;
}

void bot_loops_free(struct bot_loops *l)
{
        void *chain;

        if (!l)
                return;
        for (size_t i = 0; map_each(&l->by_chat, &i, NULL, &chain);)
                free(chain);
        map_release(&l->by_chat);
        free(l);
}

static char *key_of(const struct incoming *in)
{
        return chat_key_text(&(struct chat_key){ in->adapter, in->channel, in->thread });
}

static bool is_quiet(const struct bot_chain *chain, int64_t now_ms)
{
        return now_ms - chain->last_ms >= BOT_LOOP_QUIET_MS;
}

int bot_loop_length(const struct bot_loops *l, const struct incoming *in, int64_t now_ms)
{
        const struct bot_chain *chain;
        char *key;

        if (l->by_chat.count == 0)
                return 0;
        key = key_of(in);
        chain = map_get(&l->by_chat, key);
        free(key);
        return chain && !is_quiet(chain, now_ms) ? chain->length : 0;
}

static void evict_quiet(struct bot_loops *l, int64_t now_ms)
{
        const char *key;
        void *chain;

        for (size_t i = 0; map_each(&l->by_chat, &i, &key, &chain);) {
                if (is_quiet(chain, now_ms)) {
                        map_remove(&l->by_chat, key);
                        free(chain);
                }
        }
}

void bot_loop_count(struct bot_loops *l, const struct incoming *in, int64_t now_ms)
{
        char *key = key_of(in);
        struct bot_chain *chain = map_get(&l->by_chat, key);

        if (!chain && l->by_chat.count >= l->max)
                evict_quiet(l, now_ms);
        if (!chain && l->by_chat.count < l->max) {
                chain = mem_zalloc(sizeof(*chain));
                map_put(&l->by_chat, key, chain);
        }
        if (chain) {
                chain->length = is_quiet(chain, now_ms) ? 1 : chain->length + 1;
                chain->last_ms = now_ms;
        }
        free(key);
}

void bot_loop_break(struct bot_loops *l, const struct incoming *in)
{
        char *key;

        if (l->by_chat.count == 0)
                return;
        key = key_of(in);
        free(map_remove(&l->by_chat, key));
        free(key);
}
