#include <stdlib.h>
#include <sys/queue.h>

#include "base/map.h"
#include "base/mem.h"
#include "dispatch/people/persons_private.h"

struct seen {
        char *key;
        uint64_t digest;
        int64_t time_ms;
        TAILQ_ENTRY(seen) next;
};
TAILQ_HEAD(seen_list, seen);

struct seen_cache {
        struct map by_key;
        struct seen_list list; /* oldest first */
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

static void evict(struct seen_cache *s, struct seen *one)
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
                evict(s, one);
        map_release(&s->by_key);
        free(s);
}

size_t seen_cache_count(const struct seen_cache *s)
{
        return s->by_key.count;
}

bool seen_cache_update(struct seen_cache *s, const char *platform, const char *user,
                       uint64_t digest, int64_t now_ms)
{
        char *key = mem_printf("%s:%s", platform, user);
        struct seen *one = map_get(&s->by_key, key);

        if (one) {
                free(key);
                /* entries from the future (the clock was set back) are not fresh */
                if (one->digest == digest && now_ms >= one->time_ms &&
                    now_ms - one->time_ms < s->fresh_ms)
                        return false;
                TAILQ_REMOVE(&s->list, one, next);
        } else {
                if (s->by_key.count >= s->max)
                        evict(s, TAILQ_FIRST(&s->list));
                one = mem_zalloc(sizeof(*one));
                one->key = key;
                map_put(&s->by_key, key, one);
        }
        TAILQ_INSERT_TAIL(&s->list, one, next);
        one->digest = digest;
        one->time_ms = now_ms;
        return true;
}
