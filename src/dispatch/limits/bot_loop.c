#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "dispatch/dispatch_private.h"
#include "rows/rows.h"

#define QUIET_MS 120000

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
        return now_ms - chain->last_ms >= QUIET_MS;
}

void bot_loop_count(struct bot_loops *l, const struct incoming *in, int64_t now_ms)
{
        char *key = key_of(in);
        struct bot_chain *chain = map_get(&l->by_chat, key);
        const char *other;
        void *value;

        for (size_t i = 0;
             !chain && l->by_chat.count >= l->max && map_each(&l->by_chat, &i, &other, &value);) {
                if (is_quiet(value, now_ms))
                        free(map_remove(&l->by_chat, other));
        }
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

/* The message carries its hops, or they are counted by chat. */
bool bot_loop_guard(struct evaluation *e)
{
        const struct dispatch_adapter *a = e->adapter;
        const struct bot_chain *chain = NULL;
        char *key;

        if (e->in->sender_is_bot && e->d->loops->by_chat.count > 0) {
                key = key_of(e->in);
                chain = map_get(&e->d->loops->by_chat, key);
                free(key);
        }
        if (e->in->hops > a->max_hops)
                return evaluation_refuse(
                        e, "it has passed through %d bots, adapter '%s' allows %lld (maxHops)",
                        e->in->hops, a->name, (long long)a->max_hops);
        if (chain && !is_quiet(chain, e->now_ms) && chain->length >= a->max_hops)
                return evaluation_refuse(e,
                                         "%d messages of bots in a row were answered here, adapter "
                                         "'%s' allows no more until a person writes (maxHops)",
                                         chain->length, a->name);
        return true;
}
