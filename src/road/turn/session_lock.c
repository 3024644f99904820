/*
 * session_lock: runs one turn of a session at a time, across lanes.
 *
 * A thread that grew out of a channel continues the channel's session, and an agent must not run
 * twice at once on one session. The second turn waits here, still first in its lane. Only sessions
 * with a running turn have a lock.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "road/road_state.h"
#include "road/turn/turn.h"

struct session_lock {
        char *key;
        struct turn_list held;
};

static char *lock_key(const char *agent, const char *session)
{
        return mem_printf("%s%s%s", agent, ROAD_KEY_BREAK, session);
}

static struct session_lock *find(const struct road *r, const char *agent, const char *session)
{
        char *key = session ? lock_key(agent, session) : NULL;
        struct session_lock *lock = key ? map_get(&r->turns.session_locks, key) : NULL;

        free(key);
        return lock;
}

bool session_lock_is_free(const struct road *r, const char *agent, const char *session)
{
        return !find(r, agent, session);
}

void session_lock_take(struct turn *t)
{
        struct road *r = t->road;
        struct session_lock *lock;

        /* a turn cancelled or given up while another runs calls no agent and needs no lock */
        if (!t->run.session || find(r, t->run.agent, t->run.session))
                return;
        lock = mem_zalloc(sizeof(*lock));
        lock->key = lock_key(t->run.agent, t->run.session);
        TAILQ_INIT(&lock->held);
        map_put(&r->turns.session_locks, lock->key, lock);
        t->progress.lock = lock;
}

bool session_lock_hold(struct turn *t)
{
        struct session_lock *lock = find(t->road, t->run.agent, t->run.session);

        if (!lock)
                return false;
        lane_hold(t, &lock->held);
        return true;
}

void session_lock_release(struct turn *t)
{
        struct road *r = t->road;
        struct session_lock *lock = t->progress.lock;
        struct turn_list held;
        struct turn *next;

        if (!lock)
                return;
        t->progress.lock = NULL;
        map_remove(&r->turns.session_locks, lock->key);
        TAILQ_INIT(&held);
        TAILQ_CONCAT(&held, &lock->held, in_held);
        TAILQ_FOREACH(next, &held, in_held)
                next->queue.held_in = &held;
        free(lock->key);
        free(lock);
        /* the first takes a new lock, the others wait again */
        while ((next = TAILQ_FIRST(&held))) {
                lane_unhold(next);
                lane_pump(r, next->lane);
        }
}

void session_lock_release_all(struct road *r)
{
        void *lock;

        for (size_t i = 0; map_each(&r->turns.session_locks, &i, NULL, &lock);) {
                free(((struct session_lock *)lock)->key);
                free(lock);
        }
        map_release(&r->turns.session_locks);
}
