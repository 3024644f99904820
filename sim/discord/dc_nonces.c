#include "sim/discord/dc_world.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

struct remembered {
        uint64_t message_id;
        int64_t until_ms;
};

static char *key_of(const struct channel *c, const char *nonce)
{
        return mem_printf("%llu %s", (unsigned long long)c->id, nonce);
}

struct message *dc_nonce_find(struct bot *b, const struct channel *c, const char *nonce)
{
        char *key = key_of(c, nonce);
        struct remembered *r = map_get(&b->nonces, key);

        if (r && r->until_ms < clock_mono_ms()) {
                free(map_remove(&b->nonces, key));
                r = NULL;
        }
        free(key);
        return r ? dc_message_find(c, r->message_id) : NULL;
}

void dc_nonce_remember(struct bot *b, const struct message *m, const char *nonce)
{
        struct remembered *r = mem_zalloc(sizeof(*r));
        char *key = key_of(m->channel, nonce);

        r->message_id = m->id;
        r->until_ms = clock_mono_ms() + b->world->settings.nonce_ms;
        free(map_put(&b->nonces, key, r));
        free(key);
}

void dc_nonces_release(struct bot *b)
{
        const char *key;
        void *value;

        for (size_t i = 0; map_each(&b->nonces, &i, &key, &value);)
                free(value);
        map_release(&b->nonces);
}
