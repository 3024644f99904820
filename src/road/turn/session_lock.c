/*
 * flight: one turn of a session at a time, also where a session spans lanes.
 *
 * A thread that grew out of a channel continues the channel's session, and an agent must not be
 * asked twice at once on one session. The turn that comes second waits here, first in its own lane,
 * until the other has ended. Only sessions with a running turn are known.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "road/road_private.h"

struct flight {
        char *key;
        struct turn *running;
        struct turn_list held;
};

static char *flight_key(const char *agent, const char *session)
{
        return mem_printf("%s%s%s", agent, ROAD_KEY_BREAK, session);
}

static struct flight *find(const struct road *r, const char *agent, const char *session)
{
        char *key = session ? flight_key(agent, session) : NULL;
        struct flight *f = key ? map_get(&r->flights, key) : NULL;

        free(key);
        return f;
}

bool flight_is_free(const struct road *r, const char *agent, const char *session)
{
        return !find(r, agent, session);
}

void flight_begin(struct turn *t)
{
        struct road *r = t->road;
        struct flight *f;

        if (!t->session || !flight_is_free(r, t->agent, t->session))
                return; /* given up or cancelled while another one runs: no agent is asked */
        f = mem_zalloc(sizeof(*f));
        f->key = flight_key(t->agent, t->session);
        f->running = t;
        TAILQ_INIT(&f->held);
        map_put(&r->flights, f->key, f);
        t->flight = f;
}

bool flight_holds(struct turn *t)
{
        struct flight *f = find(t->road, t->agent, t->session);

        if (!f)
                return false;
        lane_hold(t, &f->held);
        return true;
}

void flight_end(struct turn *t)
{
        struct road *r = t->road;
        struct flight *f = t->flight;
        struct turn_list held;
        struct turn *next;

        if (!f)
                return;
        t->flight = NULL;
        map_remove(&r->flights, f->key);
        TAILQ_INIT(&held);
        TAILQ_CONCAT(&held, &f->held, in_held);
        TAILQ_FOREACH(next, &held, in_held)
                next->held_in = &held;
        free(f->key);
        free(f);
        /* the first of them takes off, the others find its flight and wait for that */
        while ((next = TAILQ_FIRST(&held))) {
                lane_unhold(next);
                lane_pump(r, next->lane);
        }
}

void flight_release_all(struct road *r)
{
        void *flight;

        for (size_t i = 0; map_each(&r->flights, &i, NULL, &flight);) {
                free(((struct flight *)flight)->key);
                free(flight);
        }
        map_release(&r->flights);
}
