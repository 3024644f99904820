#include "base/map.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct map_slot {
        char *key; /* NULL: never used; GONE: removed */
        uint64_t hash;
        void *value;
};

static char gone_marker;
#define GONE (&gone_marker)

/* FNV-1a: keys come from the configuration and bounded sets, not from an attacker. */
static uint64_t hash_of(const char *s)
{
        uint64_t h = 14695981039346656037ULL;

        for (; *s; s++)
                h = (h ^ (unsigned char)*s) * 1099511628211ULL;
        return h;
}

void map_init(struct map *m)
{
        *m = (struct map){ 0 };
}

void map_release(struct map *m)
{
        for (size_t i = 0; i < m->cap; i++) {
                if (m->slots[i].key != GONE)
                        free(m->slots[i].key);
        }
        free(m->slots);
        map_init(m);
}

static struct map_slot *find(const struct map *m, const char *key, uint64_t hash)
{
        if (m->cap == 0)
                return NULL;
        for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
                struct map_slot *s = &m->slots[i];

                if (!s->key)
                        return NULL;
                if (s->key != GONE && s->hash == hash && strcmp(s->key, key) == 0)
                        return s;
        }
}

static struct map_slot *free_slot(struct map *m, uint64_t hash)
{
        size_t i = hash & (m->cap - 1);

        while (m->slots[i].key)
                i = (i + 1) & (m->cap - 1);
        return &m->slots[i];
}

/* Drops tombstones and resizes. */
static void rehash(struct map *m)
{
        struct map old = *m;
        size_t cap = 16;

        while (cap < (old.count + 1) * 2)
                cap *= 2;
        m->slots = mem_array(cap, sizeof(*m->slots));
        m->cap = cap;
        m->used = old.count;
        for (size_t i = 0; i < old.cap; i++) {
                struct map_slot *s = &old.slots[i];

                if (s->key && s->key != GONE)
                        *free_slot(m, s->hash) = *s;
        }
        free(old.slots);
}

void *map_get(const struct map *m, const char *key)
{
        struct map_slot *s = find(m, key, hash_of(key));

        return s ? s->value : NULL;
}

void *map_put(struct map *m, const char *key, void *value)
{
        uint64_t hash = hash_of(key);
        struct map_slot *s = find(m, key, hash);

        if (s) {
                void *before = s->value;

                s->value = value;
                return before;
        }
        if ((m->used + 1) * 4 > m->cap * 3)
                rehash(m);
        s = free_slot(m, hash);
        *s = (struct map_slot){ .key = mem_strdup(key), .hash = hash, .value = value };
        m->count++;
        m->used++;
        return NULL;
}

void *map_remove(struct map *m, const char *key)
{
        struct map_slot *s = find(m, key, hash_of(key));
        void *value;

        if (!s)
                return NULL;
        value = s->value;
        free(s->key);
        *s = (struct map_slot){ .key = GONE };
        m->count--;
        return value;
}

int map_each(const struct map *m, size_t *at, const char **key, void **value)
{
        while (*at < m->cap) {
                struct map_slot *s = &m->slots[(*at)++];

                if (!s->key || s->key == GONE)
                        continue;
                if (key)
                        *key = s->key;
                if (value)
                        *value = s->value;
                return 1;
        }
        return 0;
}
