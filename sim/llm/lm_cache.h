/*
 * cache: the prompt caches of the services.
 *
 * A prompt is a list of blocks (tools, system, messages); a cache entry is the digest of all blocks
 * up to one of them. Anthropic writes entries at marks and, reading, looks back from each mark over
 * a few blocks. OpenAI caches prefixes by itself, in steps of 128 tokens.
 */
#ifndef SIM_LLM_LM_CACHE_H
#define SIM_LLM_LM_CACHE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define LM_CACHE_LOOK_BACK 20 /* blocks */
#define LM_CACHE_STEP      128
#define LM_BYTES_PER_TOKEN 4
#define LM_IMAGE_TOKENS    1600

enum lm_mark { LM_UNMARKED, LM_MARK_5M, LM_MARK_1H };

struct lm_block {
        char *text; /* canonical, without the mark */
        int64_t tokens;
        enum lm_mark mark;
};

struct lm_blocks {
        struct lm_block *list;
        size_t count, room;
        int64_t tokens;
};

struct lm_cached {
        int64_t read, written_5m, written_1h; /* tokens */
};

struct lm_cache;

struct lm_cache *lm_cache_new(void);
void lm_cache_free(struct lm_cache *c);
void lm_cache_clear(struct lm_cache *c);

/* Copies the value without its cache_control, which gives the mark. */
void lm_blocks_add(struct lm_blocks *b, const char *where, const json_t *value);
void lm_blocks_release(struct lm_blocks *b);
int64_t lm_tokens_of(const char *text, size_t n);

/* `scope`: what must be equal besides the prompt. Reads, then writes. */
struct lm_cached lm_cache_marked(struct lm_cache *c, const char *scope, const struct lm_blocks *b,
                                 int64_t from, int64_t keep_ms);
struct lm_cached lm_cache_auto(struct lm_cache *c, const char *scope, const struct lm_blocks *b,
                               int64_t from, int64_t keep_ms);

#endif
