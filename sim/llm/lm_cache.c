#include "sim/llm/lm_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"

#define MAX_ENTRIES 100000
#define HOUR_FACTOR 12 /* an hour in units of five minutes */

struct lm_cache {
        struct map entries; /* digest -> int64_t, when it expires */
};

struct lm_cache *lm_cache_new(void)
{
        struct lm_cache *c = mem_zalloc(sizeof(*c));

        map_init(&c->entries);
        return c;
}

void lm_cache_clear(struct lm_cache *c)
{
        const char *key;
        void *value;

        for (size_t i = 0; map_each(&c->entries, &i, &key, &value);)
                free(value);
        map_release(&c->entries);
        map_init(&c->entries);
}

void lm_cache_free(struct lm_cache *c)
{
        if (!c)
                return;
        lm_cache_clear(c);
        map_release(&c->entries);
        free(c);
}

int64_t lm_tokens_of(const char *text, size_t n)
{
        (void)text;
        return (int64_t)(n + LM_BYTES_PER_TOKEN - 1) / LM_BYTES_PER_TOKEN;
}

/* ---- blocks ---- */

static bool is_picture(const json_t *value)
{
        const char *type = json_str(value, "type", "");

        return strcmp(type, "image") == 0 || strcmp(type, "image_url") == 0 ||
               strcmp(type, "input_image") == 0;
}

/* Pictures inside, as in tool results, count as pictures and not as text. */
static int64_t count_tokens(const json_t *value, const char *text)
{
        const json_t *content = json_object_get(value, "content"), *part;
        int64_t tokens = lm_tokens_of(text, strlen(text));
        size_t i;

        if (is_picture(value))
                return LM_IMAGE_TOKENS;
        json_array_foreach(content, i, part) {
                char *inner;

                if (!is_picture(part))
                        continue;
                inner = json_text(part);
                tokens += LM_IMAGE_TOKENS - lm_tokens_of(inner, strlen(inner));
                free(inner);
        }
        return tokens > 0 ? tokens : 1;
}

static enum lm_mark mark_of(const json_t *value)
{
        const json_t *control = json_object_get(value, "cache_control");

        if (!json_is_object(control))
                return LM_UNMARKED;
        return strcmp(json_str(control, "ttl", "5m"), "1h") == 0 ? LM_MARK_1H : LM_MARK_5M;
}

void lm_blocks_add(struct lm_blocks *b, const char *where, const json_t *value)
{
        json_t *plain = json_copy((json_t *)value);
        struct lm_block *block;
        char *text;

        if (json_is_object(plain))
                json_object_del(plain, "cache_control");
        text = json_is_string(plain) ? mem_strdup(json_string_value(plain)) : json_text(plain);
        if (b->count == b->room) {
                b->room = b->room ? b->room * 2 : 16;
                b->list = mem_realloc(b->list, b->room * sizeof(*b->list));
        }
        block = &b->list[b->count++];
        *block = (struct lm_block){ .text = mem_printf("%s\n%s\n", where, text),
                                    .tokens = count_tokens(plain, text),
                                    .mark = mark_of(value) };
        b->tokens += block->tokens;
        free(text);
        json_decref(plain);
}

void lm_blocks_release(struct lm_blocks *b)
{
        for (size_t i = 0; i < b->count; i++)
                free(b->list[i].text);
        free(b->list);
        *b = (struct lm_blocks){ 0 };
}

/* ---- entries ---- */

struct chain {
        char digest[SHA256_HEX_SIZE]; /* of everything so far */
};

static void chain_add(struct chain *ch, const char *text, size_t n)
{
        struct buf b;

        buf_init(&b, 0);
        buf_addstr(&b, ch->digest);
        buf_add(&b, text, n);
        crypto_sha256_hex(b.data, b.len, ch->digest);
        buf_release(&b);
}

static bool is_alive(const struct lm_cache *c, const char *digest, int64_t now)
{
        const int64_t *until = map_get(&c->entries, digest);

        return until && *until > now;
}

static void keep(struct lm_cache *c, const char *digest, int64_t until)
{
        int64_t *at = map_get(&c->entries, digest);

        if (!at) {
                if (c->entries.count >= MAX_ENTRIES)
                        lm_cache_clear(c);
                at = mem_zalloc(sizeof(*at));
                map_put(&c->entries, digest, at);
        }
        if (*at < until)
                *at = until;
}

/* Marks what is read as used; returns the block it ends with, or -1. */
static ssize_t find_entry(struct lm_cache *c, const struct lm_blocks *b, const struct chain *chains,
                          int64_t now, int64_t keep_ms)
{
        for (ssize_t m = (ssize_t)b->count - 1; m >= 0; m--) {
                if (b->list[m].mark == LM_UNMARKED)
                        continue;
                for (ssize_t i = m; i >= 0 && i >= m - LM_CACHE_LOOK_BACK; i--) {
                        if (is_alive(c, chains[i].digest, now)) {
                                keep(c, chains[i].digest, now + keep_ms);
                                return i;
                        }
                }
        }
        return -1;
}

struct lm_cached lm_cache_marked(struct lm_cache *c, const char *scope, const struct lm_blocks *b,
                                 int64_t from, int64_t keep_ms)
{
        struct chain *chains = mem_array(b->count + 1, sizeof(*chains));
        struct chain at = { 0 };
        struct lm_cached got = { 0 };
        int64_t now = clock_mono_ms(), tokens = 0, pending = 0;
        ssize_t hit;

        chain_add(&at, scope, strlen(scope));
        for (size_t i = 0; i < b->count; i++) {
                chain_add(&at, b->list[i].text, strlen(b->list[i].text));
                chains[i] = at;
        }
        hit = find_entry(c, b, chains, now, keep_ms);
        for (size_t i = 0; i < b->count; i++) {
                const struct lm_block *block = &b->list[i];

                tokens += block->tokens;
                if ((ssize_t)i <= hit)
                        got.read += block->tokens;
                else
                        pending += block->tokens;
                if (block->mark == LM_UNMARKED || tokens < from)
                        continue;
                if (block->mark == LM_MARK_1H)
                        got.written_1h += pending;
                else
                        got.written_5m += pending;
                pending = 0;
                keep(c, chains[i].digest,
                     now + (block->mark == LM_MARK_1H ? HOUR_FACTOR * keep_ms : keep_ms));
        }
        free(chains);
        return got;
}

struct lm_cached lm_cache_auto(struct lm_cache *c, const char *scope, const struct lm_blocks *b,
                               int64_t from, int64_t keep_ms)
{
        const size_t step = (size_t)LM_CACHE_STEP * LM_BYTES_PER_TOKEN;
        struct lm_cached got = { 0 };
        struct chain at = { 0 };
        int64_t now = clock_mono_ms();
        bool reading = true;
        struct buf all;

        buf_init(&all, 0);
        for (size_t i = 0; i < b->count; i++)
                buf_addstr(&all, b->list[i].text);
        chain_add(&at, scope, strlen(scope));
        for (size_t end = step; end <= all.len; end += step) {
                int64_t tokens = (int64_t)(end / LM_BYTES_PER_TOKEN);

                chain_add(&at, all.data + end - step, step);
                if (tokens < from)
                        continue;
                reading = reading && is_alive(c, at.digest, now);
                if (reading)
                        got.read = tokens;
                else
                        got.written_5m = tokens - got.read;
                keep(c, at.digest, now + keep_ms);
        }
        buf_release(&all);
        if (got.read > b->tokens) /* pictures are fewer tokens than bytes */
                got.read = b->tokens / LM_CACHE_STEP * LM_CACHE_STEP;
        return got;
}
