/*
 * outbox: delivery queues and when to send.
 *
 * Deliveries of a chat are sent in order, one at a time; the adapter's rate budget (pace) decides
 * when. While a failed one waits for its next attempt, those of other conversations go ahead.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/outbox/delivery_job.h"
#include "road/road_state.h"
#include "road/turn/turn.h"

#define TYPING_SECONDS 5  /* slow typing must not delay the answer */
#define OVERTAKE_MAX   32 /* failing deliveries of a queue */
#define OVERTAKE_LOOK  256
#define EDIT_LOOK_BACK 32 /* deliveries searched from the end of a queue */
#define READ_FROM_SIZE 100
#define DRAFT_SECONDS  10 /* a draft is not worth a longer search: the answer follows */
#define MARGIN_MS      5000
#define SENDS_LEAST    4
#define YIELD_MS       5000 /* for so long an edit leaves the budget to messages */

/* ---- adapters and queues ---- */

static void update_limits(struct road *r, struct outbox_adapter *a)
{
        struct pace_limits limits = { 0 };

        r->platforms.limits(r->platforms.adapters, a->name, &limits);
        pace_set_limits(a->pace, &limits);
}

struct outbox_adapter *outbox_adapter(struct road *r, const char *name)
{
        struct outbox_adapter *a = map_get(&r->outbox.adapters, name);
        struct pace_limits none = { 0 };

        if (a)
                return a;
        a = mem_zalloc(sizeof(*a));
        a->road = r;
        a->name = mem_strdup(name);
        a->pace = pace_new(&none);
        map_init(&a->queues);
        TAILQ_INIT(&a->held);
        TAILQ_INIT(&a->blocked);
        map_init(&a->exclusive);
        map_put(&r->outbox.adapters, name, a);
        if (r->resumed)
                update_limits(r, a);
        return a;
}

void outbox_update_limits(struct road *r)
{
        void *a;

        for (size_t i = 0; map_each(&r->outbox.adapters, &i, NULL, &a);)
                update_limits(r, a);
}

void outbox_sweep(struct road *r)
{
        void *a;

        for (size_t i = 0; map_each(&r->outbox.adapters, &i, NULL, &a);)
                pace_sweep(((struct outbox_adapter *)a)->pace, loop_now_ms(r->loop));
}

bool outbox_has_room(const struct road *r, const char *adapter)
{
        const struct outbox_adapter *a = map_get(&r->outbox.adapters, adapter);

        return !a || (int64_t)a->stats.open < r->limits.open_deliveries;
}

void outbox_count_journaled(struct road *r, const char *adapter, size_t count, int64_t time_ms)
{
        r->stats.sent += count;
        outbox_adapter(r, adapter)->stats.last_sent_ms = time_ms;
}

static char *queue_key(const struct delivery *d)
{
        return mem_printf("%s%s%s", d->channel, d->thread ? ROAD_KEY_BREAK : "",
                          d->thread ? d->thread : "");
}

static struct delivery_queue *queue_find(const struct outbox_adapter *a, const struct delivery *d)
{
        char *key = queue_key(d);
        struct delivery_queue *q = map_get(&a->queues, key);

        free(key);
        return q;
}

static void on_queue_timer(void *arg)
{
        struct delivery_queue *q = arg;

        outbox_pump(q->adapter->road, q);
}

static struct delivery_queue *queue_get(struct road *r, struct outbox_adapter *a,
                                        const struct delivery *d)
{
        char *key = queue_key(d);
        struct delivery_queue *q = map_get(&a->queues, key);

        if (q) {
                free(key);
                return q;
        }
        q = mem_zalloc(sizeof(*q));
        q->adapter = a;
        q->key = key;
        TAILQ_INIT(&q->jobs);
        q->timer = timer_new(r->loop, on_queue_timer, q);
        map_put(&a->queues, key, q);
        return q;
}

static void leave_lists(struct delivery_queue *q)
{
        if (q->blocked)
                TAILQ_REMOVE(&q->adapter->blocked, q, next_blocked);
        if (q->waits_for)
                TAILQ_REMOVE(&q->waits_for->waiting, q, next_blocked);
        q->blocked = false;
        q->waits_for = NULL;
}

static void queue_free(struct delivery_queue *q)
{
        leave_lists(q);
        timer_free(q->timer);
        free(q->key);
        free(q);
}

void outbox_release(struct road *r)
{
        void *adapter, *queue;

        for (size_t i = 0; map_each(&r->outbox.adapters, &i, NULL, &adapter);) {
                struct outbox_adapter *a = adapter;

                for (size_t k = 0; map_each(&a->queues, &k, NULL, &queue);) {
                        struct delivery_queue *q = queue;
                        struct delivery_job *j;

                        while ((j = TAILQ_FIRST(&q->jobs))) {
                                outbox_leave_channel(j);
                                TAILQ_REMOVE(&q->jobs, j, next);
                                delivery_free(j);
                        }
                        queue_free(q);
                }
                map_release(&a->queues);
                map_release(&a->exclusive);
                pace_free(a->pace);
                free(a->name);
                free(a);
        }
        map_release(&r->outbox.adapters);
        map_release(&r->outbox.jobs);
        map_release(&r->outbox.edits);
}

/* ---- unconfirmed sends ---- */

/* After a crash it may have arrived. */
static bool is_unconfirmable(const struct road *r, const struct delivery_job *j)
{
        unsigned can = r->platforms.abilities(r->platforms.adapters, j->d.adapter);

        return !delivery_is_repeatable(j) && !(can & ADAPTER_IDEMPOTENT);
}

static bool is_read_back(const struct road *r, const struct delivery_job *j)
{
        unsigned can = r->platforms.abilities(r->platforms.adapters, j->d.adapter);

        return !delivery_is_repeatable(j) && (can & ADAPTER_READBACK);
}

/* It may have arrived, and the platform cannot be asked. */
static bool is_undecidable(const struct road *r, const struct delivery_job *j)
{
        return is_unconfirmable(r, j) && !is_read_back(r, j);
}

/*
 * Limit how many are claimed at once to what keeps the connections busy: a crash leaves each of
 * them to be looked for, or unknown. Other queues wait in FIFO order. Uploads are slow by nature:
 * they neither wait nor block others. What an earlier run has sent is not sent now.
 */
static bool is_counted(const struct road *r, const struct delivery_job *j)
{
        return j->d.kind == DELIVER_SEND && is_unconfirmable(r, j) &&
               !(j->unconfirmed && is_read_back(r, j));
}

/*
 * Sends that are looked for leave fewer places, so that their number does not grow with every
 * crash, but some: it takes a later message to find out about them. Uploads and final edits under
 * way are counted with them.
 */
static int64_t send_limit(const struct outbox_adapter *a)
{
        int64_t limit = a->road->limits.unconfirmed_sends;
        int64_t sought = (int64_t)a->exclusive.count - a->unconfirmed;
        int64_t least = limit < SENDS_LEAST ? limit : SENDS_LEAST;

        return limit - sought > least && sought >= 0 ? limit - sought : sought > 0 ? least : limit;
}

static bool may_claim(const struct road *r, const struct outbox_adapter *a,
                      const struct delivery_job *j)
{
        return !is_counted(r, j) || a->unconfirmed < send_limit(a);
}

/* Must it be alone in its channel? An edit whose draft was never sent becomes a send. */
static bool is_exclusive(const struct road *r, const struct delivery_job *j)
{
        unsigned can = r->platforms.abilities(r->platforms.adapters, j->d.adapter);

        return (can & ADAPTER_READBACK) &&
               (!delivery_is_repeatable(j) || delivery_may_become_send(j));
}

/* Another send of its channel that is under way, or not yet found or lost; NULL: none. */
static struct delivery_job *excluded_by(const struct road *r, const struct outbox_adapter *a,
                                        const struct delivery_job *j)
{
        struct delivery_job *other = map_get(&a->exclusive, j->d.channel);

        return other != j && is_exclusive(r, j) ? other : NULL;
}

static void enter_channel(struct outbox_adapter *a, struct delivery_job *j)
{
        if (map_get(&a->exclusive, j->d.channel))
                return;
        map_put(&a->exclusive, j->d.channel, j);
        j->exclusive = true;
}

void outbox_leave_channel(struct delivery_job *j)
{
        struct delivery_queue *q;

        if (!j->exclusive)
                return;
        j->exclusive = false;
        map_remove(&j->queue->adapter->exclusive, j->d.channel);
        while ((q = TAILQ_FIRST(&j->waiting))) {
                leave_lists(q);
                timer_start(q->timer, 0); /* pumps it, after this one is gone */
        }
}

void outbox_confirm(struct road *r, struct delivery_job *j)
{
        struct outbox_adapter *a = j->queue->adapter;
        struct delivery_queue *q;

        a->unconfirmed -= j->counted;
        j->counted = false;
        while (a->unconfirmed < send_limit(a) && (q = TAILQ_FIRST(&a->blocked))) {
                TAILQ_REMOVE(&a->blocked, q, next_blocked);
                q->blocked = false;
                outbox_pump(r, q);
        }
}

/* ---- adding and removing ---- */

/* A step of a turn, in the thread of its main message. */
static bool is_detail(const struct delivery_job *j)
{
        return j->edits > 0 && j->d.turn > 0 && j->d.kind == DELIVER_SEND;
}

/* Does it go before a detail that waits? Messages and what a main message says do. */
static bool precedes(const struct delivery_job *j, const struct delivery_job *detail)
{
        return is_detail(detail) && delivery_is_unseen(detail) &&
               (j->d.class == PACE_FINAL ||
                (j->d.kind == DELIVER_EDIT && j->edits == detail->edits));
}

static void add(struct road *r, struct delivery_job *j)
{
        struct outbox_adapter *a = outbox_adapter(r, j->d.adapter);
        struct delivery_job *last;
        char key[ROAD_KEY_SIZE];

        j->queue = queue_get(r, a, &j->d);
        last = TAILQ_LAST(&j->queue->jobs, delivery_list);
        while (last && precedes(j, last))
                last = TAILQ_PREV(last, delivery_list, next);
        if (last)
                TAILQ_INSERT_AFTER(&j->queue->jobs, last, j, next);
        else
                TAILQ_INSERT_HEAD(&j->queue->jobs, j, next);
        if (j->unconfirmed && !delivery_is_repeatable(j))
                enter_channel(a, j);
        map_put(&r->outbox.jobs, road_key("dlv", j->d.id, key), j);
        if (j->d.kind == DELIVER_EDIT && j->edits > 0)
                map_put(&r->outbox.edits, road_key("dlv", j->edits, key), j);
        r->outbox.open++;
        a->stats.open++;
}

void outbox_enqueue(struct road *r, struct delivery_job *j)
{
        add(r, j);
        outbox_pump(r, j->queue);
}

void outbox_enqueue_next(struct road *r, struct delivery_job *j, struct delivery_job **answer)
{
        struct delivery_job *leader = *answer;

        if (leader && progress_reaction_follows(j, leader)) {
                while (leader->follower)
                        leader = leader->follower;
                leader->follower = j;
                return;
        }
        if (j->d.turn > 0 && j->d.kind == DELIVER_SEND)
                *answer = j;
        outbox_enqueue(r, j);
}

void outbox_remove(struct road *r, struct delivery_job *j)
{
        struct delivery_queue *q = j->queue;
        struct outbox_adapter *a = q->adapter;
        struct delivery_job *follower = j->follower;
        char key[ROAD_KEY_SIZE];

        j->follower = NULL;
        outbox_leave_channel(j);
        outbox_confirm(r, j);
        if (q->active == j)
                q->active = NULL;
        TAILQ_REMOVE(&q->jobs, j, next);
        outbox_forget_edit(r, j);
        map_remove(&r->outbox.jobs, road_key("dlv", j->d.id, key));
        r->outbox.open--;
        a->stats.open--;
        delivery_free(j);
        if (TAILQ_EMPTY(&q->jobs)) {
                map_remove(&a->queues, q->key);
                queue_free(q);
        } else {
                outbox_pump(r, q);
        }
        if (follower)
                outbox_enqueue(r, follower);
        lane_release_held(r, a);
}

void outbox_leave_thread(struct road *r, struct delivery_job *thread)
{
        struct delivery_queue *from = thread->queue, *to = NULL;
        struct delivery_job *j, *next;

        for (j = TAILQ_FIRST(&from->jobs); j; j = next) {
                next = TAILQ_NEXT(j, next);
                if (j->d.turn != thread->d.turn || j->phase != JOB_QUEUED)
                        continue;
                TAILQ_REMOVE(&from->jobs, j, next);
                j->d.thread = NULL;
                to = j->queue = queue_get(r, from->adapter, &j->d);
                TAILQ_INSERT_TAIL(&to->jobs, j, next);
        }
        if (to)
                outbox_pump(r, to);
}

struct delivery_job *outbox_find(const struct road *r, int64_t delivery)
{
        char key[ROAD_KEY_SIZE];

        return map_get(&r->outbox.jobs, road_key("dlv", delivery, key));
}

struct delivery_job *outbox_find_edit(const struct road *r, int64_t edits)
{
        char key[ROAD_KEY_SIZE];
        struct delivery_job *j = map_get(&r->outbox.edits, road_key("dlv", edits, key));

        return j && j->phase == JOB_QUEUED ? j : NULL;
}

void outbox_forget_edit(struct road *r, const struct delivery_job *j)
{
        char key[ROAD_KEY_SIZE];

        if (j->edits > 0 && map_get(&r->outbox.edits, road_key("dlv", j->edits, key)) == j)
                map_remove(&r->outbox.edits, key);
}

struct delivery_job *outbox_find_edit_of(struct road *r, const struct delivery *d,
                                         const char *message_id)
{
        struct outbox_adapter *a = map_get(&r->outbox.adapters, d->adapter);
        struct delivery_queue *q = a ? queue_find(a, d) : NULL;
        struct delivery_job *j, *found = NULL;
        struct buf member;
        int looked = 0;

        if (!q)
                return NULL;
        buf_init(&member, 0);
        jsonw_str(&member, "messageId", message_id);
        for (j = TAILQ_LAST(&q->jobs, delivery_list); j && !found && looked < EDIT_LOOK_BACK;
             j = TAILQ_PREV(j, delivery_list, next), looked++) {
                if (j->phase == JOB_QUEUED && j->d.kind == DELIVER_EDIT &&
                    strstr(j->d.payload, member.data))
                        found = j;
        }
        buf_release(&member);
        return found;
}

bool outbox_has_details(const struct delivery_job *j)
{
        const struct delivery_job *other;

        TAILQ_FOREACH(other, &j->queue->jobs, next) {
                if (is_detail(other) && other->edits == j->d.id)
                        return true;
        }
        return false;
}

/* ---- claiming and sending ---- */

struct delivery_claim {
        struct road *road;
        struct delivery_job *job;
        int64_t old_fence;
        char *failed_payload; /* of a ✅ whose answer did not arrive; else NULL */
        /* results */
        bool lost;                     /* the row was claimed elsewhere */
        bool becomes_send;             /* its draft was never sent */
        bool answer_lost;              /* failed_payload is stored */
        struct delivery_target target; /* of `edits` */
};

static int write_claim(struct store_tx *tx, void *arg, struct error *err)
{
        struct delivery_claim *c = arg;
        const struct delivery_job *j = c->job;
        struct delivery_row row = { .id = j->d.id,
                                    .attempt = j->d.attempt,
                                    .fence = j->d.fence,
                                    .owner = c->road->owner,
                                    .lease_ms = j->lease_ms,
                                    .kind = j->d.kind,
                                    .edits = j->edits,
                                    .read_from = j->d.read_from,
                                    .read_seq = j->d.read_seq };
        int rc;

        delivery_target_release(&c->target);
        c->becomes_send = c->answer_lost = false;
        if (j->edits > 0) {
                if (delivery_row_get_target(tx, j->edits, &c->target, err) < 0)
                        return -1;
                c->becomes_send = !c->target.message && delivery_may_become_send(j);
        }
        if (c->becomes_send) {
                row.kind = DELIVER_SEND;
                row.edits = 0;
        }
        if (c->failed_payload) {
                int64_t lost;

                if (delivery_row_count_lost(tx, j->d.turn, PACE_FINAL, &lost, err) < 0)
                        return -1;
                c->answer_lost = lost > 0;
                if (lost > 0 && delivery_row_set_payload(tx, j->d.id, c->failed_payload, err) < 0)
                        return -1;
        }
        rc = delivery_row_claim(tx, &row, c->old_fence, err);
        c->lost = rc == 0;
        return rc < 0 ? -1 : 0;
}

static void on_deadline(void *arg)
{
        struct delivery_job *j = arg;
        struct send_result result = {
                .outcome = SEND_UNSURE,
                .kind = ERR_TIMEOUT,
                .why = "the adapter did not answer in time (limits.deliverySeconds)",
                .retry_after_ms = -1
        };

        delivery_result(j->queue->adapter->road, j->d.id, j->d.fence, &result);
}

void outbox_reconcile(struct road *r, struct delivery_job *j)
{
        int64_t seconds = r->limits.reconcile_seconds;

        if (j->d.class > PACE_APPROVAL && seconds > DRAFT_SECONDS)
                seconds = DRAFT_SECONDS;
        j->d.reconcile_until_ms = loop_now_ms(r->loop) + seconds * 1000;
        timer_start(j->deadline, seconds * 1000 + MARGIN_MS);
        j->reconciling = true;
        r->outbox.sending--; /* it is not being sent: a stop need not wait for it */
        outbox_confirm(r, j);
        r->platforms.reconcile(r->platforms.adapters, &j->d);
        road_check_drained(r);
}

static const char *why_no_target(const struct delivery_job *j)
{
        if (j->target_state == TARGET_UNKNOWN)
                return "the message it belongs to may have arrived, but its id is not known";
        return delivery_has_place(j->d.kind) ? "the message with its thread was never sent"
                                             : "the message it changes was never sent";
}

void outbox_on_stored(struct road *r, struct delivery_job *j, bool stored)
{
        int64_t seconds = r->limits.delivery_seconds;

        if (!stored) {
                r->outbox.sending--;
                outbox_remove(r, j);
                road_check_drained(r);
                return;
        }
        delivery_enter(j, JOB_SENDING);
        if (r->draining) {
                delivery_result_unclaim(r, j); /* its result could not be stored */
                return;
        }
        if (j->edits > 0 && j->target_state != TARGET_SENT) {
                delivery_result_give_up(r, j, DELIVERY_EXPIRED, why_no_target(j));
                return;
        }
        if (delivery_is_typing(j) && seconds > TYPING_SECONDS)
                seconds = TYPING_SECONDS;
        j->deadline = timer_new(r->loop, on_deadline, j);
        timer_start(j->deadline, seconds * 1000);
        if (j->unconfirmed && is_read_back(r, j))
                outbox_reconcile(r, j);
        else
                r->platforms.send(r->platforms.adapters, &j->d);
}

static void claim_free(struct delivery_claim *c)
{
        delivery_target_release(&c->target);
        free(c->failed_payload);
        free(c);
}

/* What `edits` means to the platform. Leaves *t without a message. */
static void set_target(struct delivery_job *j, struct delivery_target *t)
{
        bool has_place = delivery_has_place(j->d.kind);

        j->target_state = t->message                     ? TARGET_SENT
                          : t->state == DELIVERY_UNKNOWN ? TARGET_UNKNOWN
                                                         : TARGET_NOT_SENT;
        if (j->edits > 0 && !j->d.thread)
                delivery_set_thread(j, has_place ? t->message : t->thread);
        free(j->target);
        j->target = has_place && t->kind == DELIVER_THREAD ? NULL : mem_strdup(t->message);
        j->d.target = j->target;
}

static void on_claimed(void *arg, const struct error *err)
{
        struct delivery_claim *c = arg;
        struct road *r = c->road;
        struct delivery_job *j = c->job;
        bool stored = !c->lost;

        if (err) {
                claim_free(c);
                return;
        }
        fault_point("outbox.claimed");
        if (c->becomes_send)
                delivery_become_send(j);
        set_target(j, &c->target);
        if (c->answer_lost)
                delivery_set_payload(j, c->failed_payload);
        claim_free(c);
        outbox_on_stored(r, j, stored);
}

/* What the adapter knows before the send. A send that may have arrived keeps what was known. */
static void note_read_from(struct road *r, struct delivery_job *j)
{
        char text[READ_FROM_SIZE] = "";

        if (r->platforms.read_from)
                r->platforms.read_from(r->platforms.adapters, &j->d, text, sizeof(text));
        free(j->read_from);
        j->d.read_from = j->read_from = text[0] ? mem_strdup(text) : NULL;
        j->d.read_seq = bus_head(r->bus);
}

static void begin_claim(struct road *r, struct delivery_job *j)
{
        bool asks = j->unconfirmed && is_read_back(r, j); /* which is no attempt */

        j->d.fence++;
        j->d.attempt += !asks;
        if (is_exclusive(r, j)) {
                enter_channel(j->queue->adapter, j);
                if (!asks)
                        note_read_from(r, j);
        } else if (!delivery_is_repeatable(j)) {
                note_read_from(r, j);
        }
        j->lease_ms = clock_wall_ms() + r->limits.delivery_seconds * 1000;
        delivery_enter(j, JOB_CLAIMING);
        j->counted = is_counted(r, j);
        j->queue->adapter->unconfirmed += j->counted;
        r->outbox.sending++;
}

static void claim(struct road *r, struct delivery_job *j)
{
        struct delivery_claim *c = mem_zalloc(sizeof(*c));

        c->road = r;
        c->job = j;
        c->old_fence = j->d.fence;
        c->failed_payload = progress_reaction_failed_payload(j);
        begin_claim(r, j);
        fault_point("outbox.before_claim");
        road_write(r, "delivery claim", write_claim, on_claimed, c);
}

/*
 * An edit yields to messages, but others wait behind it, and perhaps for its end: a busy chat would
 * keep it for ever. A draft holds up nobody, and its text comes with the answer.
 */
static bool yields(const struct delivery_job *j)
{
        return j->d.class == PACE_EDIT && j->d.turn == 0;
}

/* Milliseconds until it may be sent. 0: now; takes it from the budget. */
static int64_t take_budget(struct road *r, struct outbox_adapter *a, struct delivery_job *j)
{
        int64_t now = loop_now_ms(r->loop), wait, patience;
        bool group = r->platforms.channel_is_group(r->platforms.adapters, a->name, j->d.channel);

        if (j->due_mono > now)
                return j->due_mono - now;
        if (j->yields_until == 0)
                j->yields_until = now + YIELD_MS;
        patience = j->yields_until - now;
        wait = pace_take(a->pace, j->d.channel, group,
                         yields(j) && patience <= 0 ? PACE_FINAL : j->d.class, now);
        return yields(j) && patience > 0 && patience < wait ? patience : wait;
}

/*
 * Must a wait for b? A late reply belongs to no turn, but has its trace. A thread's name may have
 * to wait for minutes, and its messages arrive whatever it is called.
 */
static bool is_related(const struct delivery_job *a, const struct delivery_job *b)
{
        if (b->d.kind == DELIVER_CHANGE_THREAD && a->d.kind != DELIVER_CHANGE_THREAD)
                return false;
        return a->d.conversation == b->d.conversation || a->edits == b->d.id ||
               (a->d.trace && b->d.trace && strcmp(a->d.trace, b->d.trace) == 0);
}

/*
 * The one to send next: the first, or while that is failing, the first of another conversation.
 * NULL: none now. *wait: until one that was passed over is due; -1: there is none.
 */
static struct delivery_job *choose(const struct delivery_queue *q, int64_t now, int64_t *wait)
{
        struct delivery_job *failing[OVERTAKE_MAX], *j;
        size_t count = 0, looked = 0;

        *wait = -1;
        if (q->active)
                return NULL;
        TAILQ_FOREACH(j, &q->jobs, next) {
                /* it failed, and its next attempt is not due */
                bool fails = j->d.attempt > 0 && j->due_mono > now && !j->unconfirmed;
                bool waits = fails;

                if (j->phase != JOB_QUEUED) /* withdrawn: its end is being stored */
                        continue;
                for (size_t i = 0; i < count && !waits; i++)
                        waits = is_related(j, failing[i]);
                if (!waits)
                        return j;
                if (fails && (*wait < 0 || j->due_mono - now < *wait))
                        *wait = j->due_mono - now;
                if (fails && count < OVERTAKE_MAX)
                        failing[count++] = j;
                if (count == OVERTAKE_MAX || ++looked == OVERTAKE_LOOK)
                        break;
        }
        return NULL;
}

/* One of the queue that an earlier run has sent, overtaking others; else j. */
static struct delivery_job *unconfirmed_first(const struct road *r, const struct delivery_queue *q,
                                              struct delivery_job *j)
{
        struct delivery_job *sent = excluded_by(r, q->adapter, j);

        return sent && sent->queue == q && sent->phase == JOB_QUEUED ? sent : j;
}

void outbox_pump(struct road *r, struct delivery_queue *q)
{
        int64_t wait, retry_ms;
        struct delivery_job *j, *other;

        if (r->draining || !r->resumed)
                return;
        j = choose(q, loop_now_ms(r->loop), &retry_ms);
        if (retry_ms >= 0)
                timer_start(q->timer, retry_ms);
        if (!j)
                return;
        j = unconfirmed_first(r, q, j);
        if (!j->unconfirmed && j->expires_ms > 0 && clock_boot_ms() > j->expires_boot) {
                delivery_result_give_up(
                        r, j, DELIVERY_EXPIRED,
                        "it expired before it could be sent (limits.deliveryExpirySeconds)");
                return;
        }
        if (!r->platforms.ready(r->platforms.adapters, q->adapter->name))
                return;
        if (j->unconfirmed && is_undecidable(r, j)) {
                delivery_result_give_up(
                        r, j, DELIVERY_UNKNOWN,
                        "the process ended during the send; it may have arrived, and the "
                        "platform cannot be asked");
                return;
        }
        other = excluded_by(r, q->adapter, j);
        if (other || !may_claim(r, q->adapter, j)) {
                leave_lists(q); /* it waits for the other, or for fewer unconfirmed sends */
                q->waits_for = other;
                q->blocked = !other;
                TAILQ_INSERT_TAIL(other ? &other->waiting : &q->adapter->blocked, q, next_blocked);
                return;
        }
        wait = take_budget(r, q->adapter, j);
        if (wait <= 0)
                claim(r, j);
        else if (delivery_is_typing(j))
                delivery_result_give_up(r, j, DELIVERY_EXPIRED, "the rate budget is used up");
        else
                timer_start(q->timer, retry_ms >= 0 && retry_ms < wait ? retry_ms : wait);
}

bool outbox_claim_new(struct road *r, struct delivery_job *j)
{
        struct outbox_adapter *a = outbox_adapter(r, j->d.adapter);

        if (j->journaled || !r->resumed || r->draining || j->edits > 0 || queue_find(a, &j->d) ||
            !r->platforms.ready(r->platforms.adapters, a->name) || excluded_by(r, a, j) ||
            !may_claim(r, a, j) || take_budget(r, a, j) > 0)
                return false;
        add(r, j);
        begin_claim(r, j);
        return true;
}

bool outbox_withdraw(struct road *r, int64_t delivery, const char *why)
{
        struct delivery_job *j = outbox_find(r, delivery), *active;
        struct delivery_queue *q;

        if (!j || !j->queue || j->phase != JOB_QUEUED || j->unconfirmed)
                return false;
        q = j->queue;
        active = q->active;
        delivery_result_give_up(r, j, DELIVERY_EXPIRED, why);
        if (active) /* another one of the chat stays on its way */
                q->active = active;
        return true;
}

static void pump_adapter(struct road *r, struct outbox_adapter *a)
{
        struct delivery_queue **all = mem_array(a->queues.count + 1, sizeof(*all));
        size_t n = 0;
        void *queue;

        /* pumping changes the map: iterate over a copy */
        for (size_t i = 0; map_each(&a->queues, &i, NULL, &queue);)
                all[n++] = queue;
        for (size_t i = 0; i < n; i++)
                outbox_pump(r, all[i]);
        free(all);
}

void outbox_wake(struct road *r, const char *adapter)
{
        struct outbox_adapter *a = map_get(&r->outbox.adapters, adapter);

        if (!a)
                return;
        update_limits(r, a);
        pump_adapter(r, a);
}

void outbox_pump_all(struct road *r)
{
        void *a;

        for (size_t i = 0; map_each(&r->outbox.adapters, &i, NULL, &a);)
                pump_adapter(r, a);
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
