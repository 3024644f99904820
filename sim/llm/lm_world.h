/*
 * world: the simulated model services: keys, cache, scenario, streams under way.
 */
#ifndef SIM_LLM_LM_WORLD_H
#define SIM_LLM_LM_WORLD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/map.h"
#include "net/loop.h"
#include "sim/control.h"
#include "sim/llm/lm_cache.h"
#include "sim/world_base.h"

struct lm_stream;

struct world {
        struct world_base base; /* first */
        struct map keys;        /* accepted API keys, as a set */
        struct map refusals;    /* reason -> uint64_t */
        struct map paused;      /* digests of answers that ended with pause_turn, as a set */
        struct lm_cache *cache;
        json_t *rules; /* of the scenario, an array */
        LIST_HEAD(, lm_stream) streams;
        /* settings */
        size_t piece_bytes; /* of text in one event */
        int64_t piece_ms;   /* between two events */
        int64_t first_ms;   /* before the first byte */
        int64_t window;     /* of all models, in tokens; 0: the model's own */
        int64_t cache_ms;   /* five minutes */
        int64_t per_minute; /* requests of one key; 0: no limit */
        bool defaults;      /* without a rule that fits, the default scenario answers */
        /* the requests of this minute */
        int64_t minute, minute_count;
        uint64_t answer_count, aborted_count;
};

struct world *lm_world_new(struct loop *l);
void lm_world_free(struct world *w);
void lm_world_add_key(struct world *w, const char *key);
/* Counts a refused request. */
void lm_world_refused(struct world *w, const char *reason);
/* Writes a member "refused": {"reason": count}. */
void lm_world_write_refusals(const struct world *w, struct buf *b);

#endif
