#include "dispatch/limits/rate_limit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/map.h"
#include "base/mem.h"

#define STARTS_MAX 1000 /* per person; no setting asks for more turns in a window */

struct person {
        char *key;
        int64_t *starts; /* oldest first */
        size_t count, cap;
        int64_t seconds;  /* the longest window asked for: rules may have their own */
        int64_t told_ms;  /* 0: never */
        int64_t quiet_ms; /* from then on there is nothing worth remembering */
        TAILQ_ENTRY(person) next;
};
TAILQ_HEAD(people, person);

struct rate_limits {
        struct map by_key;
        struct people people; /* who was quiet longest comes first */
        size_t max;
};

struct rate_limits *rate_limits_new(size_t max)
{
        struct rate_limits *l = mem_zalloc(sizeof(*l));

        map_init(&l->by_key);
        TAILQ_INIT(&l->people);
        l->max = max;
        return l;
}

static void forget(struct rate_limits *l, struct person *p)
{
        TAILQ_REMOVE(&l->people, p, next);
        map_remove(&l->by_key, p->key);
        free(p->key);
        free(p->starts);
        free(p);
}

void rate_limits_free(struct rate_limits *l)
{
        struct person *p;

        if (!l)
                return;
        while ((p = TAILQ_FIRST(&l->people)))
                forget(l, p);
        map_release(&l->by_key);
        free(l);
}

size_t rate_limit_size(const struct rate_limits *l)
{
        return l->by_key.count;
}

/*
 * Ids of platforms have no line breaks; where a foreign one has, two people at worst share a limit.
 */
static char *key_of(const struct rate_key *who)
{
        return mem_printf("%s\n%s\n%s\n%s", who->adapter ? who->adapter : "",
                          who->channel ? who->channel : "", who->sender ? who->sender : "",
                          who->what ? who->what : "");
}

static struct person *find(const struct rate_limits *l, const struct rate_key *who)
{
        char *key = key_of(who);
        struct person *p = map_get(&l->by_key, key);

        free(key);
        return p;
}

static void make_room(struct rate_limits *l, int64_t now_ms)
{
        struct person *p;

        while ((p = TAILQ_FIRST(&l->people)) &&
               (p->quiet_ms <= now_ms || l->by_key.count >= l->max))
                forget(l, p);
}

/* Found or made, and the last of the row. */
static struct person *touch(struct rate_limits *l, const struct rate_key *who,
                            struct turn_rate rate, int64_t now_ms)
{
        struct person *p = find(l, who);

        if (p) {
                TAILQ_REMOVE(&l->people, p, next);
        } else {
                make_room(l, now_ms);
                p = mem_zalloc(sizeof(*p));
                p->key = key_of(who);
                map_put(&l->by_key, p->key, p);
        }
        TAILQ_INSERT_TAIL(&l->people, p, next);
        if (p->seconds < rate.seconds)
                p->seconds = rate.seconds;
        p->quiet_ms = now_ms + p->seconds * 1000;
        return p;
}

static bool counts(int64_t start, int64_t seconds, int64_t now_ms)
{
        return start <= now_ms && now_ms - start < seconds * 1000;
}

int64_t rate_limit_wait_ms(const struct rate_limits *l, const struct rate_key *who,
                           struct turn_rate rate, int64_t now_ms)
{
        const struct person *p = rate.turns > 0 ? find(l, who) : NULL;
        int64_t used = 0;

        /* from the newest back: the one that makes it full has to grow old */
        for (size_t i = p ? p->count : 0; i > 0; i--) {
                if (!counts(p->starts[i - 1], rate.seconds, now_ms))
                        continue;
                if (++used == rate.turns)
                        return p->starts[i - 1] + rate.seconds * 1000 - now_ms;
        }
        return 0;
}

static void drop_old(struct person *p, int64_t now_ms)
{
        size_t kept = 0;

        for (size_t i = p->count >= STARTS_MAX; i < p->count; i++) {
                if (counts(p->starts[i], p->seconds, now_ms))
                        p->starts[kept++] = p->starts[i];
        }
        p->count = kept;
}

void rate_limit_count(struct rate_limits *l, const struct rate_key *who, struct turn_rate rate,
                      int64_t now_ms)
{
        struct person *p;

        if (rate.turns <= 0)
                return;
        p = touch(l, who, rate, now_ms);
        drop_old(p, now_ms);
        if (p->count == p->cap) {
                p->cap = p->cap ? p->cap * 2 : 4;
                p->starts = mem_realloc(p->starts, p->cap * sizeof(*p->starts));
        }
        p->starts[p->count++] = now_ms;
}

bool rate_limit_claim_notice(struct rate_limits *l, const struct rate_key *who,
                             struct turn_rate rate, int64_t now_ms)
{
        struct person *p = touch(l, who, rate, now_ms);

        if (p->told_ms > 0 && counts(p->told_ms, rate.seconds, now_ms))
                return false;
        p->told_ms = now_ms;
        return true;
}
