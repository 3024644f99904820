/*
 * outbox: deliveries on their way to the platforms.
 *
 *     QUEUED ── claim committed ──► SENDING ── adapter answers ──► SETTLING ── outcome committed
 *     ──► gone, or QUEUED again
 *
 * A channel's deliveries go one after the other; the adapter's budget (pace) decides when. The
 * claim is stored before the adapter is asked, so that after a crash a row in state sending means:
 * it may have arrived. An answer that may leave at once is claimed by the transaction that makes
 * its row: a commit less on the way of most messages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/road_private.h"

/* a typing sign that takes longer must not hold up the answer behind it */
#define TYPING_SECONDS 5
#define EDIT_LOOK_BACK 32 /* how far from the end of a queue an edit to replace is looked for */

/* ---- adapters and channels ---- */

static void set_limits(struct road *r, struct out_adapter *a)
{
        struct pace_limits limits = { 0 };

        r->platforms.limits(r->platforms.adapters, a->name, &limits);
        pace_set_limits(a->pace, &limits);
}

struct out_adapter *outbox_adapter(struct road *r, const char *name)
{
        struct out_adapter *a = map_get(&r->adapters, name);
        struct pace_limits none = { 0 };

        if (a)
                return a;
        a = mem_zalloc(sizeof(*a));
        a->road = r;
        a->name = mem_strdup(name);
        a->pace = pace_new(&none);
        map_init(&a->channels);
        TAILQ_INIT(&a->held);
        TAILQ_INIT(&a->crowd);
        map_put(&r->adapters, name, a);
        if (r->resumed)
                set_limits(r, a);
        return a;
}

void outbox_set_all_limits(struct road *r)
{
        void *a;

        for (size_t i = 0; map_each(&r->adapters, &i, NULL, &a);)
                set_limits(r, a);
}

bool outbox_has_room(const struct road *r, const char *adapter)
{
        const struct out_adapter *a = map_get(&r->adapters, adapter);

        return !a || (int64_t)a->stats.open < r->limits.open_deliveries;
}

static void on_channel_timer(void *arg)
{
        struct out_channel *c = arg;

        outbox_pump(c->adapter->road, c);
}

static char *channel_key(const char *channel, const char *thread)
{
        return mem_printf("%s%s%s", channel, thread ? ROAD_KEY_BREAK : "", thread ? thread : "");
}

static struct out_channel *channel_get(struct road *r, struct out_adapter *a,
                                       const struct delivery *d)
{
        char *key = channel_key(d->channel, d->thread);
        struct out_channel *c = map_get(&a->channels, key);

        if (c) {
                free(key);
                return c;
        }
        c = mem_zalloc(sizeof(*c));
        c->adapter = a;
        c->key = key;
        TAILQ_INIT(&c->queue);
        c->timer = timer_new(r->loop, on_channel_timer, c);
        map_put(&a->channels, key, c);
        return c;
}

static void channel_free(struct out_channel *c)
{
        if (c->crowded)
                TAILQ_REMOVE(&c->adapter->crowd, c, next_crowded);
        timer_free(c->timer);
        free(c->key);
        free(c);
}

void outbox_move_to_channel(struct road *r, struct out *thread)
{
        struct out_channel *from = thread->channel, *to = NULL;
        struct out *o, *next;

        for (o = TAILQ_FIRST(&from->queue); o; o = next) {
                next = TAILQ_NEXT(o, next);
                if (o->d.turn != thread->d.turn || o->state != OUT_QUEUED)
                        continue;
                TAILQ_REMOVE(&from->queue, o, next);
                free((char *)o->d.thread);
                o->d.thread = NULL;
                to = o->channel = channel_get(r, from->adapter, &o->d);
                TAILQ_INSERT_TAIL(&to->queue, o, next);
        }
        if (to)
                outbox_pump(r, to);
}

/* ---- sends in doubt ---- */

/*
 * After a crash a claimed message may have arrived, and some platforms cannot tell. What matters
 * then is how many were claimed, so no more are than are needed to keep the connections busy; the
 * other channels wait for their turn in the order they came.
 */
static bool leaves_doubt(const struct road *r, const struct out *o)
{
        unsigned can = r->platforms.abilities(r->platforms.adapters, o->d.adapter);

        return !out_is_repeatable(o) && !(can & (ADAPTER_IDEMPOTENT | ADAPTER_READBACK));
}

/* Files take long by nature: they neither wait here nor let others wait. */
static bool is_counted(const struct road *r, const struct out *o)
{
        return o->d.kind == DELIVER_SEND && leaves_doubt(r, o);
}

static bool has_room_for_doubt(const struct road *r, const struct out_adapter *a)
{
        return a->in_doubt < r->limits.sends_in_doubt;
}

static void join_crowd(struct out_channel *c)
{
        if (c->crowded)
                return;
        c->crowded = true;
        TAILQ_INSERT_TAIL(&c->adapter->crowd, c, next_crowded);
}

void outbox_decided(struct road *r, struct out *o)
{
        struct out_adapter *a = o->channel->adapter;
        struct out_channel *c;

        if (!o->counted)
                return;
        o->counted = false;
        a->in_doubt--;
        while (has_room_for_doubt(r, a) && (c = TAILQ_FIRST(&a->crowd))) {
                TAILQ_REMOVE(&a->crowd, c, next_crowded);
                c->crowded = false;
                outbox_pump(r, c);
        }
}

/* ---- in and out of memory ---- */

void outbox_leave(struct road *r, struct out *o)
{
        struct out_channel *c = o->channel;
        struct out_adapter *a = c->adapter;
        struct out *follower = o->follower;
        char key[TURN_KEY_SIZE];

        o->follower = NULL;
        outbox_decided(r, o);
        TAILQ_REMOVE(&c->queue, o, next);
        map_remove(&r->outs, road_key("dlv", o->d.id, key));
        r->out_count--;
        a->stats.open--;
        out_free(o);
        if (TAILQ_EMPTY(&c->queue)) {
                map_remove(&a->channels, c->key);
                channel_free(c);
        } else {
                outbox_pump(r, c);
        }
        if (follower)
                outbox_enqueue(r, follower);
        lane_release_held(r, a);
}

static void enter(struct road *r, struct out *o)
{
        struct out_adapter *a = outbox_adapter(r, o->d.adapter);
        char key[TURN_KEY_SIZE];

        o->channel = channel_get(r, a, &o->d);
        TAILQ_INSERT_TAIL(&o->channel->queue, o, next);
        map_put(&r->outs, road_key("dlv", o->d.id, key), o);
        r->out_count++;
        a->stats.open++;
}

void outbox_enqueue(struct road *r, struct out *o)
{
        enter(r, o);
        outbox_pump(r, o->channel);
}

static void follow(struct out *leader, struct out *o)
{
        while (leader->follower)
                leader = leader->follower;
        leader->follower = o;
}

void outbox_enqueue_next(struct road *r, struct out *o, struct out **answer)
{
        if (mark_follows(o, *answer)) {
                follow(*answer, o);
                return;
        }
        if (o->d.turn > 0 && o->d.kind == DELIVER_SEND)
                *answer = o;
        outbox_enqueue(r, o);
}

struct out *outbox_find(const struct road *r, int64_t delivery)
{
        char key[TURN_KEY_SIZE];

        return map_get(&r->outs, road_key("dlv", delivery, key));
}

struct out *outbox_waiting_edit(struct road *r, const char *adapter, const char *channel,
                                const char *thread, int64_t ref, const char *message_id)
{
        struct out_adapter *a = map_get(&r->adapters, adapter);
        char *key = channel_key(channel, thread);
        struct out_channel *c = a ? map_get(&a->channels, key) : NULL;
        struct out *o, *found = NULL;
        struct buf member;
        int looked = 0;

        free(key);
        if (!c)
                return NULL;
        buf_init(&member, 0);
        if (message_id)
                jsonw_str(&member, "messageId", message_id);
        for (o = TAILQ_LAST(&c->queue, out_list); o && !found && looked < EDIT_LOOK_BACK;
             o = TAILQ_PREV(o, out_list, next), looked++) {
                if (o->state != OUT_QUEUED || o->d.kind != DELIVER_EDIT)
                        continue;
                if (message_id ? strstr(o->d.payload, member.data) != NULL : o->ref == ref)
                        found = o;
        }
        buf_release(&member);
        return found;
}

/* ---- claiming and sending ---- */

struct claim {
        struct road *road;
        struct out *out;
        int64_t old_fence;
        bool lost;
        bool anew;    /* the draft it edits never became a message: this is a new one */
        char *target; /* where the draft is that this edits */
        /* a sign that all went well reads like this if it did not; NULL: it is none */
        char *cross;
        bool crossed; /* it did not */
};

/* An edit of a draft goes to the message the draft became. */
static int find_draft(struct store_tx *tx, struct claim *c, struct error *err)
{
        struct store_stmt *s;
        int rc;

        free(c->target);
        c->target = NULL;
        c->anew = false;
        if (c->out->ref == 0)
                return 0;
        s = store_prepare(tx,
                          "SELECT platform_id FROM deliveries WHERE id = ?1 AND state = 'sent'");
        store_bind_int(s, 1, c->out->ref);
        rc = store_step(s, err);
        if (rc == 1) {
                c->target = mem_strdup(store_col_text(s, 0));
                store_reset(s);
        }
        c->anew = !c->target && c->out->d.class == PACE_FINAL;
        return rc < 0 ? -1 : 0;
}

static int write_claim(struct store_tx *tx, void *arg, struct error *err)
{
        struct claim *c = arg;
        struct store_stmt *s;

        if (find_draft(tx, c, err) < 0)
                return -1;
        c->crossed = false;
        if (c->cross && mark_cross_out(tx, c->out, c->cross, &c->crossed, err) < 0)
                return -1;
        s = store_prepare(
                tx, "UPDATE deliveries SET state = 'sending', attempt = ?2, fence = ?3, owner = ?4,"
                    " lease_ms = ?5, kind = CASE ?7 WHEN 1 THEN 'send' ELSE kind END,"
                    " edits = CASE ?7 WHEN 1 THEN 0 ELSE edits END"
                    " WHERE id = ?1 AND fence = ?6 AND state IN ('queued', 'sending')");
        store_bind_int(s, 1, c->out->d.id);
        store_bind_int(s, 2, c->out->d.attempt);
        store_bind_int(s, 3, c->out->d.fence);
        store_bind_text(s, 4, c->road->owner);
        store_bind_int(s, 5, c->out->lease_ms);
        store_bind_int(s, 6, c->old_fence);
        store_bind_int(s, 7, c->anew ? 1 : 0);
        if (store_run(s, err) < 0)
                return -1;
        c->lost = store_changes(tx) == 0;
        return 0;
}

static void on_deadline(void *arg)
{
        struct out *o = arg;
        struct send_result result = {
                .outcome = SEND_UNSURE,
                .kind = ERR_TIMEOUT,
                .why = "the adapter gave no answer in time (limits.deliverySeconds)",
                .retry_after_ms = -1
        };

        settle_result(o->channel->adapter->road, o, &result);
}

static void hand_over(struct road *r, struct out *o)
{
        int64_t seconds = out_is_fleeting(o) && r->limits.delivery_seconds > TYPING_SECONDS
                                  ? TYPING_SECONDS
                                  : r->limits.delivery_seconds;

        o->deadline = timer_new(r->loop, on_deadline, o);
        timer_start(o->deadline, seconds * 1000);
        if (o->unsure && !out_is_repeatable(o) &&
            (r->platforms.abilities(r->platforms.adapters, o->d.adapter) & ADAPTER_READBACK)) {
                o->reconciling = true;
                r->platforms.reconcile(r->platforms.adapters, &o->d);
        } else {
                r->platforms.send(r->platforms.adapters, &o->d);
        }
}

/* Its row says so: the adapter may be asked. */
static void is_claimed(struct road *r, struct out *o)
{
        o->state = OUT_SENDING;
        if (r->draining)
                settle_unclaim(r, o); /* nobody would be there for the answer */
        else if (o->ref > 0 && !o->d.target)
                settle_expired(r, o, "the message it changes was never sent");
        else
                hand_over(r, o);
}

/* Somebody else has it, or its row was never made. */
static void is_lost(struct road *r, struct out *o)
{
        r->sending_count--;
        outbox_leave(r, o);
        road_check_drained(r);
}

static void on_claimed(void *arg)
{
        struct claim *c = arg;
        struct road *r = c->road;
        struct out *o = c->out;
        bool lost = c->lost;

        fault_point("outbox.claimed");
        if (c->anew)
                out_becomes_send(o);
        free((char *)o->d.target);
        o->d.target = c->target;
        if (c->crossed)
                out_set_payload(o, c->cross);
        free(c->cross);
        free(c);
        if (lost)
                is_lost(r, o);
        else
                is_claimed(r, o);
}

/* What changes in memory when a claim is on its way to the disk. */
static void take_up(struct road *r, struct out *o)
{
        o->d.fence++;
        o->d.attempt++;
        o->lease_ms = clock_wall_ms() + r->limits.delivery_seconds * 1000;
        o->state = OUT_CLAIMING;
        o->counted = is_counted(r, o);
        o->channel->adapter->in_doubt += o->counted;
        r->sending_count++;
}

static void claim(struct road *r, struct out *o)
{
        struct claim *c = mem_zalloc(sizeof(*c));

        c->road = r;
        c->out = o;
        c->old_fence = o->d.fence;
        c->cross = mark_cross(o);
        take_up(r, o);
        fault_point("outbox.before_claim");
        road_write(r, "delivery claim", write_claim, on_claimed, c);
}

/*
 * A row of an earlier life that may have arrived, on a platform that can neither repeat nor look.
 */
static bool is_undecidable(const struct road *r, const struct out *o)
{
        return o->unsure && leaves_doubt(r, o);
}

/* Milliseconds until the budget lets it go; 0: now, and it is counted. */
static int64_t wait_for_budget(struct road *r, struct out_adapter *a, const struct out *o)
{
        int64_t now = loop_now_ms(r->loop);
        bool group = r->platforms.channel_is_group(r->platforms.adapters, a->name, o->d.channel);

        if (o->due_mono > now)
                return o->due_mono - now;
        return pace_take(a->pace, o->d.channel, group, o->d.class, now);
}

void outbox_pump(struct road *r, struct out_channel *c)
{
        struct out *o = TAILQ_FIRST(&c->queue);
        int64_t wait;

        if (!o || o->state != OUT_QUEUED || r->draining || !r->resumed)
                return;
        if (!o->unsure && o->expires_ms > 0 && clock_boot_ms() > o->expires_boot) {
                settle_expired(r, o,
                               "it waited longer than it was worth (limits.deliveryExpirySeconds)");
                return;
        }
        if (!r->platforms.ready(r->platforms.adapters, c->adapter->name))
                return;
        if (is_undecidable(r, o)) {
                settle_unknown(
                        r, o,
                        "the process ended while this was being sent; it may have arrived, and "
                        "the platform offers no way to find out");
                return;
        }
        if (is_counted(r, o) && !has_room_for_doubt(r, c->adapter)) {
                join_crowd(c);
                return;
        }
        wait = wait_for_budget(r, c->adapter, o);
        if (wait <= 0)
                claim(r, o);
        else if (out_is_fleeting(o))
                settle_expired(r, o, "no room in the budget for it now");
        else
                timer_start(c->timer, wait);
}

static bool is_first_in_channel(const struct out_adapter *a, const struct out *o)
{
        char *key = channel_key(o->d.channel, o->d.thread);
        bool first = !map_get(&a->channels, key);

        free(key);
        return first;
}

bool outbox_claim_with_row(struct road *r, struct out *o)
{
        struct out_adapter *a = outbox_adapter(r, o->d.adapter);

        if (!r->resumed || r->draining || o->ref > 0 || !is_first_in_channel(a, o) ||
            !r->platforms.ready(r->platforms.adapters, a->name) ||
            (is_counted(r, o) && !has_room_for_doubt(r, a)) || wait_for_budget(r, a, o) > 0)
                return false;
        enter(r, o);
        take_up(r, o);
        return true;
}

void outbox_row_stored(struct road *r, struct out *o, bool stored)
{
        if (stored)
                is_claimed(r, o);
        else
                is_lost(r, o);
}

static void pump_adapter(struct road *r, struct out_adapter *a)
{
        void *channel;
        struct out_channel **all = mem_array(a->channels.count + 1, sizeof(*all));
        size_t n = 0;

        /* pumping changes the map: look at a copy */
        for (size_t i = 0; map_each(&a->channels, &i, NULL, &channel);)
                all[n++] = channel;
        for (size_t i = 0; i < n; i++)
                outbox_pump(r, all[i]);
        free(all);
}

void outbox_wake(struct road *r, const char *adapter)
{
        struct out_adapter *a = map_get(&r->adapters, adapter);

        if (!a)
                return;
        set_limits(r, a);
        pump_adapter(r, a);
}

void outbox_pump_all(struct road *r)
{
        void *a;

        for (size_t i = 0; map_each(&r->adapters, &i, NULL, &a);)
                pump_adapter(r, a);
}

void outbox_release(struct road *r)
{
        void *adapter, *channel;

        for (size_t i = 0; map_each(&r->adapters, &i, NULL, &adapter);) {
                struct out_adapter *a = adapter;

                for (size_t j = 0; map_each(&a->channels, &j, NULL, &channel);) {
                        struct out_channel *c = channel;
                        struct out *o;

                        while ((o = TAILQ_FIRST(&c->queue))) {
                                TAILQ_REMOVE(&c->queue, o, next);
                                out_free(o);
                        }
                        channel_free(c);
                }
                map_release(&a->channels);
                pace_free(a->pace);
                free(a->name);
                free(a);
        }
        map_release(&r->adapters);
        map_release(&r->outs);
}

void rendered_release(struct rendered *r)
{
        for (size_t i = 0; i < r->count; i++) {
                free(r->parts[i].text);
                free(r->parts[i].plain);
        }
        free(r->parts);
        *r = (struct rendered){ 0 };
}
