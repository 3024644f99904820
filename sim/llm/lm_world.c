#include "sim/llm/lm_world.h"

#include <stdlib.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/call_base.h"
#include "sim/llm/lm_pieces.h"
#include "sim/world_settings.h"

#define KEEP_MESSAGES 8 /* there are none */
#define PIECE_BYTES   24
#define CACHE_MS      300000
#define PER_MINUTE    4000

/* clang-format off */
#define AT(field) offsetof(struct world, field)
static const struct world_setting settings[] = {
        { "piece_bytes",         WORLD_SETTING_SIZE, AT(piece_bytes), 1, 1e6 },
        { "piece_ms",            WORLD_SETTING_INT,  AT(piece_ms),    0, 60000 },
        { "first_ms",            WORLD_SETTING_INT,  AT(first_ms),    0, 600000 },
        { "window",              WORLD_SETTING_INT,  AT(window),      0, 1e9 },
        { "cache_ms",            WORLD_SETTING_INT,  AT(cache_ms),    0, 1e9 },
        { "requests_per_minute", WORLD_SETTING_INT,  AT(per_minute),  0, 1e9 },
        { "defaults",            WORLD_SETTING_FLAG, AT(defaults),    0, 0 },
        { 0 },
};
/* clang-format on */

struct world *lm_world_new(struct loop *l)
{
        struct world *w = mem_zalloc(sizeof(*w));

        world_base_init(&w->base, l, KEEP_MESSAGES, settings);
        map_init(&w->keys);
        map_init(&w->refusals);
        map_init(&w->paused);
        w->cache = lm_cache_new();
        w->rules = json_array();
        LIST_INIT(&w->streams);
        w->piece_bytes = PIECE_BYTES;
        w->cache_ms = CACHE_MS;
        w->per_minute = PER_MINUTE;
        w->defaults = true;
        return w;
}

void lm_world_free(struct world *w)
{
        const char *key;
        void *value;

        call_base_cut_all(&w->base);
        lm_stream_forget_all(w);
        for (size_t i = 0; map_each(&w->refusals, &i, &key, &value);)
                free(value);
        map_release(&w->refusals);
        map_release(&w->keys);
        map_release(&w->paused);
        lm_cache_free(w->cache);
        json_decref(w->rules);
        world_base_release(&w->base);
        free(w);
}

void lm_world_add_key(struct world *w, const char *key)
{
        map_put(&w->keys, key, w);
}

void lm_world_refused(struct world *w, const char *reason)
{
        uint64_t *count = map_get(&w->refusals, reason);

        if (!count) {
                count = mem_zalloc(sizeof(*count));
                map_put(&w->refusals, reason, count);
        }
        (*count)++;
}

void lm_world_write_refusals(const struct world *w, struct buf *b)
{
        const char *key;
        void *value;

        jsonw_open_member(b, "refused", '{');
        for (size_t i = 0; map_each(&w->refusals, &i, &key, &value);)
                jsonw_int(b, key, (int64_t) * (uint64_t *)value);
        jsonw_close(b, '}');
}
