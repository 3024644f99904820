/*
 * lane: conversations with open turns, and when the next turn may start.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "road/road_state.h"
#include "road/turn/turn.h"

char *lane_key(const struct lane_name *n)
{
        return mem_printf("%s/%s%s%s|%s%s%s", n->adapter, n->channel,
                          n->thread ? ROAD_KEY_BREAK : "", n->thread ? n->thread : "", n->agent,
                          n->person ? ROAD_KEY_BREAK : "", n->person ? n->person : "");
}

static char *group_key(const struct lane_name *n)
{
        struct lane_name group = *n;

        group.agent = "";
        return lane_key(&group);
}

const struct lane_group *lane_group_find(const struct road *r, const struct lane_name *n)
{
        char *key = group_key(n);
        const struct lane_group *group = map_get(&r->turns.lane_groups, key);

        free(key);
        return group;
}

struct lane *lane_get(struct road *r, const struct lane_name *n)
{
        char *key = lane_key(n);
        struct lane *lane = map_get(&r->turns.lanes, key);
        struct lane_group *group;

        if (lane) {
                free(key);
                return lane;
        }
        lane = mem_zalloc(sizeof(*lane));
        lane->key = key;
        TAILQ_INIT(&lane->waiting);
        map_put(&r->turns.lanes, key, lane);
        key = group_key(n);
        group = map_get(&r->turns.lane_groups, key);
        if (group) {
                free(key);
        } else {
                group = mem_zalloc(sizeof(*group));
                group->key = key;
                LIST_INIT(&group->lanes);
                map_put(&r->turns.lane_groups, key, group);
        }
        lane->group = group;
        LIST_INSERT_HEAD(&group->lanes, lane, in_group);
        return lane;
}

static void lane_free(struct road *r, struct lane *lane)
{
        struct lane_group *group = lane->group;

        LIST_REMOVE(lane, in_group);
        if (LIST_EMPTY(&group->lanes)) {
                map_remove(&r->turns.lane_groups, group->key);
                free(group->key);
                free(group);
        }
        map_remove(&r->turns.lanes, lane->key);
        free(lane->key);
        free(lane);
}

void lane_free_if_idle(struct road *r, struct lane *lane)
{
        if (!lane->running && lane->cancelling == 0 && TAILQ_EMPTY(&lane->waiting))
                lane_free(r, lane);
}

void lane_release_all(struct road *r)
{
        void *lane;

        for (size_t i = 0; map_each(&r->turns.lanes, &i, NULL, &lane);)
                lane_free(r, lane);
        map_release(&r->turns.lanes);
        map_release(&r->turns.lane_groups);
}

/* ---- a lane's turns ---- */

void lane_append(struct lane *lane, struct turn *t)
{
        TAILQ_INSERT_TAIL(&lane->waiting, t, in_lane);
        lane->mailbox += t->run.input_count;
}

void lane_set_running(struct turn *t)
{
        t->lane->running = t;
        t->road->turns.running++;
        session_lock_take(t);
}

void lane_take(struct turn *t)
{
        struct lane *lane = t->lane;

        TAILQ_REMOVE(&lane->waiting, t, in_lane);
        lane->mailbox -= t->run.input_count;
        if (lane->running)
                lane->cancelling++;
        else
                lane_set_running(t);
}

void lane_give_back(struct turn *t)
{
        struct lane *lane = t->lane;

        if (lane->running == t) {
                lane->running = NULL;
                t->road->turns.running--;
                session_lock_release(t);
        } else {
                lane->cancelling--;
        }
}

void lane_hold(struct turn *t, struct turn_list *list)
{
        t->queue.held_in = list;
        TAILQ_INSERT_TAIL(list, t, in_held);
}

void lane_unhold(struct turn *t)
{
        if (!t->queue.held_in)
                return;
        TAILQ_REMOVE(t->queue.held_in, t, in_held);
        t->queue.held_in = NULL;
}

/* ---- starting the next turn ---- */

static void on_due(void *arg)
{
        struct turn *t = arg;

        lane_pump(t->road, t->lane);
}

/*
 * The first queued turn that does not wait for files, without changing the order of a person's own
 * messages. A turn behind its sender's files has one sender (decide.c). NULL: none.
 */
static struct turn *next_turn(const struct lane *lane)
{
        struct turn *t, *earlier;

        TAILQ_FOREACH(t, &lane->waiting, in_lane) {
                if (t->files.pending > 0)
                        continue;
                TAILQ_FOREACH(earlier, &lane->waiting, in_lane)
                        if (earlier == t || turn_has_sender(earlier, turn_last_input(t)->sender_id))
                                break;
                if (earlier == t)
                        return t;
        }
        return NULL;
}

/* Starts t, the next turn of its lane, as soon as it may. */
static void start_next(struct road *r, struct turn *t)
{
        const char *adapter = t->run.adapter;
        int64_t wait;

        if (t->lane->running || t->phase != PHASE_QUEUED || t->queue.held_in ||
            t->queue.changes > 0 || t->files.pending > 0)
                return;
        wait = t->queue.due_mono - loop_now_ms(r->loop);
        if (wait > 0) {
                if (!t->timer)
                        t->timer = timer_new(r->loop, on_due, t);
                timer_start(t->timer, wait);
                return;
        }
        if (session_lock_hold(t))
                return;
        if (!outbox_has_room(r, adapter))
                lane_hold(t, &outbox_adapter(r, adapter)->held);
        else if (!turn_may_start(r, adapter))
                lane_hold(t, &r->turns.ready);
        else
                turn_claim(t);
}

/* Messages wait behind a running turn, which may take them before it ends. */
static void offer_waiting(struct road *r, struct turn *running)
{
        const struct road_agents *a = &r->agents;

        if (running->phase == PHASE_RUNNING && a->waiting &&
            (a->abilities(a->agents, turn_agent(running)) & AGENT_STEERS))
                a->waiting(a->agents, &running->run);
}

void lane_pump(struct road *r, struct lane *lane)
{
        struct turn *t = next_turn(lane);

        if (t && lane->running)
                offer_waiting(r, lane->running);
        else if (t)
                start_next(r, t);
        else
                lane_free_if_idle(r, lane);
}

void lane_pump_ready(struct road *r)
{
        struct turn *t;

        while (!r->draining && (int64_t)r->turns.running < r->limits.running_turns &&
               (t = TAILQ_FIRST(&r->turns.ready))) {
                lane_unhold(t);
                start_next(r, t);
        }
}

void lane_release_held(struct road *r, struct outbox_adapter *a)
{
        struct turn *t;

        while (!r->draining && (t = TAILQ_FIRST(&a->held)) && outbox_has_room(r, a->name)) {
                lane_unhold(t);
                start_next(r, t); /* if all places are taken, it waits in turns.ready */
        }
}
