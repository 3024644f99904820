#include "dispatch/people/seen_cache.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/map.h"
#include "base/mem.h"

struct seen {
        char *key;
        uint64_t look;
        int64_t noted_ms;
        TAILQ_ENTRY(seen) next;
};
TAILQ_HEAD(seen_list, seen);

struct seen_cache {
        struct map by_key;
        struct seen_list list; /* the oldest first */
        size_t max;
        int64_t fresh_ms;
};

struct seen_cache *seen_cache_new(size_t max, int64_t fresh_ms)
{
        struct seen_cache *s = mem_zalloc(sizeof(*s));

        map_init(&s->by_key);
        TAILQ_INIT(&s->list);
        s->max = max;
        s->fresh_ms = fresh_ms;
        return s;
}

static void forget(struct seen_cache *s, struct seen *one)
{
        TAILQ_REMOVE(&s->list, one, next);
        map_remove(&s->by_key, one->key);
        free(one->key);
        free(one);
}

void seen_cache_free(struct seen_cache *s)
{
        struct seen *one;

        if (!s)
                return;
        while ((one = TAILQ_FIRST(&s->list)))
                forget(s, one);
        map_release(&s->by_key);
        free(s);
}

size_t seen_cache_count(const struct seen_cache *s)
{
        return s->by_key.count;
}

/* A clock that was set back must not keep anybody from being seen. */
static bool is_fresh(const struct seen_cache *s, const struct seen *one, int64_t now_ms)
{
        return now_ms >= one->noted_ms && now_ms - one->noted_ms < s->fresh_ms;
}

static struct seen *add(struct seen_cache *s, char *key)
{
        struct seen *one = mem_zalloc(sizeof(*one));

        if (s->by_key.count >= s->max)
                forget(s, TAILQ_FIRST(&s->list));
        one->key = key;
        map_put(&s->by_key, key, one);
        TAILQ_INSERT_TAIL(&s->list, one, next);
        return one;
}

bool seen_cache_update(struct seen_cache *s, const char *platform, const char *user, uint64_t look,
                       int64_t now_ms)
{
        char *key = mem_printf("%s:%s", platform, user);
        struct seen *one = map_get(&s->by_key, key);

        if (one && one->look == look && is_fresh(s, one, now_ms)) {
                free(key);
                return false;
        }
        if (one) {
                free(key);
                TAILQ_REMOVE(&s->list, one, next);
                TAILQ_INSERT_TAIL(&s->list, one, next);
        } else {
                one = add(s, key);
        }
        one->look = look;
        one->noted_ms = now_ms;
        return true;
}
