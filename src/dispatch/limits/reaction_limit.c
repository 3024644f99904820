#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "dispatch/dispatch_private.h"
#include "rows/trigger_log_row.h"

/* A message and the latest reactions that triggered. */
struct reacted_message {
        char *key;
        struct reaction_turn {
                char *key; /* kind, sender and emoji */
                int64_t time_ms;
        } turns[REACTION_LIMIT_PER_MESSAGE];
        unsigned count;
        TAILQ_ENTRY(reacted_message) next;
};
TAILQ_HEAD(reacted_list, reacted_message);

struct reaction_limits {
        struct map by_key;
        struct reacted_list list; /* by last turn, oldest first */
        size_t max;
};

struct reaction_limits *reaction_limits_new(size_t max)
{
        struct reaction_limits *l = mem_zalloc(sizeof(*l));

        map_init(&l->by_key);
        TAILQ_INIT(&l->list);
        l->max = max;
        return l;
}

static void evict(struct reaction_limits *l, struct reacted_message *m)
{
        map_remove(&l->by_key, m->key);
        TAILQ_REMOVE(&l->list, m, next);
        for (unsigned i = 0; i < m->count; i++)
                free(m->turns[i].key);
        free(m->key);
        free(m);
}

void reaction_limits_free(struct reaction_limits *l)
{
        struct reacted_message *m;

        if (!l)
                return;
        while ((m = TAILQ_FIRST(&l->list)))
                evict(l, m);
        map_release(&l->by_key);
        free(l);
}

size_t reaction_limit_size(const struct reaction_limits *l)
{
        return l->by_key.count;
}

bool reaction_limit_applies(const struct incoming *in)
{
        return in->type && in->id && strncmp(in->type, "reaction.", 9) == 0;
}

static char *key_of(const char *a, const char *b, const char *c)
{
        return mem_printf("%s\n%s\n%s", a ? a : "", b ? b : "", c ? c : "");
}

enum reaction_verdict reaction_limit_check(const struct reaction_limits *l,
                                           const struct incoming *in, int64_t now_ms)
{
        char *message = key_of(in->adapter, in->channel, in->id),
             *reaction = key_of(in->type, in->sender_id, in->emoji);
        const struct reacted_message *m = map_get(&l->by_key, message);
        unsigned counted = 0;
        bool repeated = false;

        for (unsigned i = 0; m && i < m->count; i++) {
                const struct reaction_turn *t = &m->turns[i];
                int64_t age_ms = now_ms - t->time_ms;

                counted += age_ms < REACTION_LIMIT_COUNT_MS;
                if (age_ms < REACTION_LIMIT_SAME_MS && strcmp(t->key, reaction) == 0)
                        repeated = true;
        }
        free(message);
        free(reaction);
        if (repeated)
                return REACTION_REPEATED;
        return counted >= REACTION_LIMIT_PER_MESSAGE ? REACTION_ONE_TOO_MANY : REACTION_NEW;
}

void reaction_limit_count(struct reaction_limits *l, const struct incoming *in, int64_t now_ms)
{
        char *key = key_of(in->adapter, in->channel, in->id);
        struct reacted_message *m = map_get(&l->by_key, key);

        if (m) {
                free(key);
                TAILQ_REMOVE(&l->list, m, next);
        } else {
                if (l->by_key.count >= l->max)
                        evict(l, TAILQ_FIRST(&l->list));
                m = mem_zalloc(sizeof(*m));
                m->key = key;
                map_put(&l->by_key, key, m);
        }
        TAILQ_INSERT_TAIL(&l->list, m, next);
        if (m->count == REACTION_LIMIT_PER_MESSAGE) {
                free(m->turns[0].key);
                m->count--;
                memmove(&m->turns[0], &m->turns[1], m->count * sizeof(m->turns[0]));
        }
        m->turns[m->count++] =
                (struct reaction_turn){ key_of(in->type, in->sender_id, in->emoji), now_ms };
}

bool reaction_limit_guard(struct evaluation *e)
{
        if (!reaction_limit_applies(e->in))
                return true;
        switch (reaction_limit_check(e->d->reactions, e->in, e->now_ms)) {
        case REACTION_NEW:
                return true;
        case REACTION_REPEATED:
                return evaluation_refuse(
                        e, "the same reaction of the sender on this message has triggered already");
        case REACTION_ONE_TOO_MANY:
                return evaluation_refuse(
                        e,
                        "reactions on this message have triggered %d times, more are not allowed",
                        REACTION_LIMIT_PER_MESSAGE);
        }
        return true;
}

int reaction_limit_restore(struct reaction_limits *l, struct store_tx *tx, int64_t now_ms,
                           struct error *err)
{
        struct store_stmt *s = trigger_log_row_list_reactions(tx, now_ms - REACTION_LIMIT_COUNT_MS,
                                                              (int64_t)l->max);
        struct journal_row row;
        int rc;

        while ((rc = trigger_log_row_next_reaction(s, &row, err)) == 1) {
                struct error why;
                struct incoming *in = incoming_from_row(&row, &why);

                if (in)
                        reaction_limit_count(l, in, row.time_ms);
                else
                        log_warn("cannot read a reaction of the journal; it is not counted",
                                 LOG_I("event", row.seq), LOG_S("why", why.text));
                incoming_free(in);
        }
        return rc;
}
