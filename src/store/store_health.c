/*
 * Trouble passes: the next successful commit clears it. Damage does not: whatever is written into a
 * damaged database is lost with it, so the first statement that finds damage ends all writing, and
 * every refused write says why.
 */
#include <stdio.h>

#include "base/log.h"
#include "store/store_private.h"

/* With the lock held. */
static void set_trouble(struct store *s, const struct error *err)
{
        s->health.ok = false;
        snprintf(s->health.why, sizeof(s->health.why), "%.*s", (int)sizeof(s->health.why) - 1,
                 err->text);
}

void store_health_committed(struct store *s, size_t writes, int64_t took_us)
{
        pthread_mutex_lock(&s->lock);
        if (s->damage.kind == ERR_NONE) {
                s->health.ok = true;
                s->health.why[0] = '\0';
        }
        s->health.writes += writes;
        s->health.commits++;
        s->health.last_commit_us = took_us;
        pthread_mutex_unlock(&s->lock);
}

void store_health_failed(struct store *s, const struct error *err)
{
        pthread_mutex_lock(&s->lock);
        set_trouble(s, err);
        s->health.failures++;
        pthread_mutex_unlock(&s->lock);
}

void store_health_damaged(struct store *s, const struct error *err)
{
        bool first;

        pthread_mutex_lock(&s->lock);
        first = s->damage.kind == ERR_NONE;
        if (first)
                s->damage = *err;
        set_trouble(s, err);
        pthread_mutex_unlock(&s->lock);
        if (first)
                log_error("store is damaged; refusing all writes", LOG_S("why", err->text));
}

bool store_health_is_damaged(struct store *s, struct error *err)
{
        bool damaged;

        pthread_mutex_lock(&s->lock);
        damaged = s->damage.kind != ERR_NONE;
        if (damaged)
                *err = s->damage;
        pthread_mutex_unlock(&s->lock);
        return damaged;
}

void store_health(const struct store *s, struct store_health *out)
{
        struct store *shared = (struct store *)(uintptr_t)s; /* only takes the locks */

        pthread_mutex_lock(&shared->lock);
        *out = s->health;
        pthread_mutex_unlock(&shared->lock);
        pthread_mutex_lock(&shared->writer.lock);
        out->queued = s->writer.unfinished;
        pthread_mutex_unlock(&shared->writer.lock);
        out->pending = s->pending;
}
