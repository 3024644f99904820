/*
 * child_pool: the children of an agent, and who may run.
 */
#include <stdlib.h>

#include "agent/child/child_private.h"
#include "base/mem.h"

/* ---- children ---- */

void child_free(struct child *c)
{
        struct child_turn *t;

        while ((t = TAILQ_FIRST(&c->turns))) {
                TAILQ_REMOVE(&c->turns, t, next);
                child_turn_free(t);
        }
        child_turn_free(c->turn);
        child_forget_writes(c);
        child_process_free(c->process);
        child_place_release(&c->place);
        timer_free(c->timer);
        timer_free(c->limit);
        map_remove(&c->owner->by_name, c->name);
        LIST_REMOVE(c, all);
        free(c->dialect);
        free(c->session);
        free(c->name);
        free(c);
}

static struct child *child_new(struct child_agent *o, char *name)
{
        struct child *c = mem_zalloc(sizeof(*c));

        c->owner = o;
        c->name = name;
        c->number = ++o->last_number;
        c->session = mem_strdup("");
        TAILQ_INIT(&c->turns);
        child_make_timers(c);
        map_put(&o->by_name, name, c);
        LIST_INSERT_HEAD(&o->children, c, all);
        return c;
}

void child_remember(struct child *c, const char *session)
{
        char *copy = mem_strdup(session ? session : "");

        free(c->session);
        c->session = copy;
}

void child_queue(struct child_agent *o, struct child_turn *t, char *name, const char *session)
{
        struct child *c = map_get(&o->by_name, name);

        if (c)
                free(name);
        else
                c = child_new(o, name);
        if (!c->process) /* a running one knows better */
                child_remember(c, session);
        t->child = c;
        TAILQ_INSERT_TAIL(&c->turns, t, next);
        child_pump(c);
}

/* ---- places ---- */

bool child_has_place(const struct child_agent *o)
{
        return (int64_t)o->running < o->conf->processes;
}

void child_make_room(struct child_agent *o)
{
        struct child *c, *oldest = NULL;
        int64_t soonest = INT64_MAX;

        LIST_FOREACH(c, &o->children, all) {
                int64_t works = child_works_for_ms(c);

                if (c->state == CHILD_ENDING)
                        return; /* its place will be free */
                if (c->state != CHILD_IDLE)
                        continue;
                if (works > 0)
                        soonest = works < soonest ? works : soonest;
                else if (!oldest || c->used_ms < oldest->used_ms)
                        oldest = c;
        }
        if (oldest)
                child_end_process(oldest);
        else if (soonest < INT64_MAX && !timer_active(o->sweep))
                timer_start(o->sweep, soonest);
}

static void start_queued(struct child_agent *o)
{
        struct child *c, *first = NULL;

        while (child_has_place(o)) {
                first = NULL;
                LIST_FOREACH(c, &o->children, all)
                        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed ones left the list */
                        if (c->state == CHILD_QUEUED && !TAILQ_EMPTY(&c->turns) &&
                            (!first || c->number < first->number))
                                first = c;
                if (!first)
                        return;
                child_begin(first);
        }
        LIST_FOREACH(c, &o->children, all)
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the same */
                if (c->state == CHILD_QUEUED && !TAILQ_EMPTY(&c->turns)) {
                        child_make_room(o);
                        return;
                }
}

/* From a timer, so that no caller loses its child. */
void child_sweep(void *arg)
{
        struct child_agent *o = arg;
        struct child *c, *next;

        for (c = LIST_FIRST(&o->children); c; c = next) {
                next = LIST_NEXT(c, all);
                if ((c->state == CHILD_ABSENT || c->state == CHILD_QUEUED) &&
                    TAILQ_EMPTY(&c->turns) && !c->mark && !c->steering)
                        child_free(c);
        }
        start_queued(o);
}
