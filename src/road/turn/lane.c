/*
 * lane: conversations while something is going on in them, and when their next turn may start.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "road/road_private.h"

char *lane_key(const struct lane_name *n)
{
        return mem_printf("%s/%s%s%s|%s%s%s", n->adapter, n->channel,
                          n->thread ? ROAD_KEY_BREAK : "", n->thread ? n->thread : "", n->agent,
                          n->person ? ROAD_KEY_BREAK : "", n->person ? n->person : "");
}

static char *place_key(const struct lane_name *n)
{
        struct lane_name place = *n;

        place.agent = "";
        return lane_key(&place);
}

const struct place *lane_place(const struct road *r, const struct lane_name *n)
{
        char *key = place_key(n);
        const struct place *place = map_get(&r->places, key);

        free(key);
        return place;
}

static void enter_place(struct road *r, struct lane *lane, const struct lane_name *n)
{
        char *key = place_key(n);
        struct place *place = map_get(&r->places, key);

        if (!place) {
                place = mem_zalloc(sizeof(*place));
                place->key = key;
                LIST_INIT(&place->lanes);
                map_put(&r->places, key, place);
        } else {
                free(key);
        }
        lane->place = place;
        LIST_INSERT_HEAD(&place->lanes, lane, in_place);
}

static void leave_place(struct road *r, struct lane *lane)
{
        struct place *place = lane->place;

        LIST_REMOVE(lane, in_place);
        if (!LIST_EMPTY(&place->lanes))
                return;
        map_remove(&r->places, place->key);
        free(place->key);
        free(place);
}

struct lane *lane_get(struct road *r, const struct lane_name *n)
{
        char *key = lane_key(n);
        struct lane *lane = map_get(&r->lanes, key);

        if (lane) {
                free(key);
                return lane;
        }
        lane = mem_zalloc(sizeof(*lane));
        lane->key = key;
        TAILQ_INIT(&lane->waiting);
        map_put(&r->lanes, key, lane);
        enter_place(r, lane, n);
        return lane;
}

void lane_free(struct road *r, struct lane *lane)
{
        leave_place(r, lane);
        map_remove(&r->lanes, lane->key);
        free(lane->key);
        free(lane);
}

void lane_free_if_idle(struct road *r, struct lane *lane)
{
        if (lane->running || lane->leaving > 0 || !TAILQ_EMPTY(&lane->waiting))
                return;
        lane_free(r, lane);
}

void lane_append(struct lane *lane, struct turn *t)
{
        TAILQ_INSERT_TAIL(&lane->waiting, t, in_lane);
        lane->mailbox += t->input_count;
}

void lane_take(struct turn *t)
{
        struct lane *lane = t->lane;

        TAILQ_REMOVE(&lane->waiting, t, in_lane);
        lane->mailbox -= t->input_count;
        if (lane->running) {
                lane->leaving++;
        } else {
                lane_run(t);
        }
}

void lane_run(struct turn *t)
{
        t->lane->running = t;
        t->road->running_count++;
        flight_begin(t);
}

void lane_give_back(struct turn *t)
{
        struct lane *lane = t->lane;

        if (lane->running == t) {
                lane->running = NULL;
                t->road->running_count--;
                flight_end(t);
        } else {
                lane->leaving--;
        }
}

static void on_due(void *arg)
{
        struct turn *t = arg;

        lane_pump(t->road, t->lane);
}

static void wait_until_due(struct turn *t, int64_t ms)
{
        if (!t->timer)
                t->timer = timer_new(t->road->loop, on_due, t);
        timer_start(t->timer, ms);
}

void lane_hold(struct turn *t, struct turn_list *list)
{
        t->held_in = list;
        TAILQ_INSERT_TAIL(list, t, in_held);
}

void lane_unhold(struct turn *t)
{
        if (!t->held_in)
                return;
        TAILQ_REMOVE(t->held_in, t, in_held);
        t->held_in = NULL;
}

/* Starts the turn, the first that waits in its lane, as soon as it may. */
static void pump_first(struct road *r, struct turn *t)
{
        int64_t wait;

        if (t->lane->running || t->phase != PHASE_QUEUED || t->held_in || t->joining > 0)
                return;
        wait = t->due_mono - loop_now_ms(r->loop);
        if (wait > 0) {
                wait_until_due(t, wait);
                return;
        }
        if (flight_holds(t))
                return;
        if (!outbox_has_room(r, t->adapter))
                lane_hold(t, &outbox_adapter(r, t->adapter)->held);
        else if (!turn_may_start(r, t->adapter))
                lane_hold(t, &r->ready);
        else
                turn_claim(t);
}

void lane_pump(struct road *r, struct lane *lane)
{
        struct turn *t = TAILQ_FIRST(&lane->waiting);

        if (t)
                pump_first(r, t);
        else
                lane_free_if_idle(r, lane);
}

void lane_pump_ready(struct road *r)
{
        struct turn *t;

        while (!r->draining && (int64_t)r->running_count < r->limits.running_turns &&
               (t = TAILQ_FIRST(&r->ready))) {
                lane_unhold(t);
                pump_first(r, t);
        }
}

void lane_release_held(struct road *r, struct out_adapter *a)
{
        struct turn *t;

        while (!r->draining && (t = TAILQ_FIRST(&a->held)) && outbox_has_room(r, a->name)) {
                lane_unhold(t);
                pump_first(r, t);
                if (t->held_in == &r->ready)
                        break; /* there was room, but no place: it waits with the others now */
        }
}

/* ---- its row ---- */

/* 1, its number and where it began anew; 0 when there is no such row yet, or -1. */
static int find_row(struct store_tx *tx, const char *key, int64_t now_ms, int64_t *conversation,
                    int64_t *begun, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "SELECT id, history_turn FROM conversations WHERE lane = ?1");
        int rc;

        store_bind_text(s, 1, key);
        rc = store_step(s, err);
        if (rc != 1)
                return rc;
        *conversation = store_col_int(s, 0);
        *begun = store_col_int(s, 1);
        store_reset(s);
        s = store_prepare(tx, "UPDATE conversations SET active_ms = ?2 WHERE id = ?1");
        store_bind_int(s, 1, *conversation);
        store_bind_int(s, 2, now_ms);
        return store_run(s, err) < 0 ? -1 : 1;
}

int lane_row(struct store_tx *tx, const char *key, const struct lane_name *n, int64_t now_ms,
             int64_t *conversation, int64_t *begun, struct error *err)
{
        struct store_stmt *s;
        int rc;

        *begun = 0;
        rc = find_row(tx, key, now_ms, conversation, begun, err);

        if (rc != 0)
                return rc < 0 ? -1 : 0;
        s = store_prepare(tx,
                          "INSERT INTO conversations(lane, adapter, channel, thread, agent, person,"
                          " created_ms, active_ms) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)");
        store_bind_text(s, 1, key);
        store_bind_text(s, 2, n->adapter);
        store_bind_text(s, 3, n->channel);
        store_bind_text(s, 4, n->thread);
        store_bind_text(s, 5, n->agent);
        store_bind_text(s, 6, n->person);
        store_bind_int(s, 7, now_ms);
        return store_insert(s, conversation, err) < 0 ? -1 : 0;
}
