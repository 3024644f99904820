#include "platform/call_queue.h"

#define LATE_LOOK_MS 200 /* how often to look for late calls */

void call_lane_init(struct call_lane *lane)
{
        lane->waiting = lane->flying = 0;
        for (unsigned i = 0; i < CALL_PRIORITIES; i++)
                TAILQ_INIT(&lane->queues[i]);
}

static void enqueue(struct call_queue *q, struct call_lane *lane, struct queued_call *c, bool first)
{
        struct queued_calls *queue = &lane->queues[c->priority];

        c->state = QUEUED_WAITING;
        c->lane = lane;
        if (first)
                TAILQ_INSERT_HEAD(queue, c, next);
        else
                TAILQ_INSERT_TAIL(queue, c, next);
        if (lane->waiting++ == 0)
                LIST_INSERT_HEAD(&q->busy, lane, busy);
        q->waiting++;
}

void call_queue_leave(struct call_queue *q, struct queued_call *c)
{
        struct call_lane *lane = c->lane;

        if (c->state == QUEUED_WAITING) {
                TAILQ_REMOVE(&lane->queues[c->priority], c, next);
                if (--lane->waiting == 0)
                        LIST_REMOVE(lane, busy);
                q->waiting--;
        } else if (c->state == QUEUED_REFUSED) {
                TAILQ_REMOVE(&q->refused, c, next);
        } else if (c->state == QUEUED_FLYING) {
                TAILQ_REMOVE(&q->flying, c, next);
                q->flying_count--;
                lane->flying--;
                if (!LIST_EMPTY(&q->busy)) /* another one may go */
                        timer_start(q->timer, 0);
        }
        c->state = QUEUED_OUTSIDE;
}

void call_queue_refuse(struct call_queue *q, struct queued_call *c, enum error_kind kind,
                       int64_t retry_ms, const char *why)
{
        call_queue_leave(q, c);
        error_set(&c->refusal, kind, "%s", why);
        c->state = QUEUED_REFUSED;
        c->refusal_ms = retry_ms;
        TAILQ_INSERT_TAIL(&q->refused, c, next);
        timer_start(q->timer, 0);
}

void call_queue_refuse_waiting(struct call_queue *q, bool (*which)(const struct queued_call *c),
                               enum error_kind kind, const char *why)
{
        struct call_lane *lane, *next_lane;
        struct queued_call *c, *after;

        for (lane = LIST_FIRST(&q->busy); lane; lane = next_lane) {
                next_lane = LIST_NEXT(lane, busy);
                for (unsigned i = 0; i < CALL_PRIORITIES; i++) {
                        for (c = TAILQ_FIRST(&lane->queues[i]); c; c = after) {
                                after = TAILQ_NEXT(c, next);
                                if (which(c))
                                        call_queue_refuse(q, c, kind, -1, why);
                        }
                }
        }
}

/* Only calls refused before this round: callbacks may add or abort some. */
static void answer_refused(struct call_queue *q)
{
        struct queued_call *c, *last = TAILQ_LAST(&q->refused, queued_calls);

        while ((c = TAILQ_FIRST(&q->refused))) {
                bool was_last = c == last;

                call_queue_leave(q, c);
                q->ops->refused(c);
                if (was_last)
                        break;
        }
}

/* Returns when to look again, or -1. */
static int64_t pump_lane(struct call_queue *q, struct call_lane *lane)
{
        for (;;) {
                struct queued_call *c = NULL;
                int64_t wait;

                for (unsigned i = 0; i < CALL_PRIORITIES && !c; i++)
                        c = TAILQ_FIRST(&lane->queues[i]);
                if (!c)
                        return -1;
                wait = q->ops->wait(q, c, loop_now_ms(q->loop));
                if (wait != 0)
                        return wait;
                call_queue_leave(q, c);
                c->state = QUEUED_FLYING;
                lane->flying++;
                q->flying_count++;
                TAILQ_INSERT_TAIL(&q->flying, c, next);
                q->ops->start(c);
        }
}

/* Refuses late calls; returns the nearest deadline of the others, or -1. */
static int64_t end_late(struct call_queue *q, struct call_lane *lane, int64_t wait)
{
        int64_t now = loop_now_ms(q->loop), nearest = -1;

        for (unsigned i = 0; i < CALL_PRIORITIES; i++) {
                struct queued_call *c, *after;

                for (c = TAILQ_FIRST(&lane->queues[i]); c; c = after) {
                        after = TAILQ_NEXT(c, next);
                        if (now + (wait > 0 ? wait : 0) >= c->deadline_ms)
                                call_queue_refuse(q, c, ERR_LIMIT,
                                                  wait > 0 ? wait : CALL_LIMITED_MS, q->ops->late);
                        else if (nearest < 0 || c->deadline_ms - now < nearest)
                                nearest = c->deadline_ms - now;
                }
        }
        return nearest;
}

static int64_t earlier(int64_t a, int64_t b)
{
        if (a < 0 || b < 0)
                return a < 0 ? b : a;
        return a < b ? a : b;
}

/* Stops when all connections are busy, so that an answer does not scan every lane. */
void call_queue_pump(struct call_queue *q)
{
        struct call_lane *lane, *after;
        int64_t next = LIST_EMPTY(&q->busy) ? -1 : LATE_LOOK_MS;

        for (lane = LIST_FIRST(&q->busy); lane && q->flying_count < CALL_FLYING_MAX; lane = after) {
                int64_t wait;

                after = LIST_NEXT(lane, busy);
                wait = pump_lane(q, lane);
                next = earlier(next, wait);
                if (wait > 0)
                        next = earlier(next, end_late(q, lane, wait));
        }
        if (!TAILQ_EMPTY(&q->refused))
                next = 0;
        if (next >= 0 && (!timer_active(q->timer) || next < LATE_LOOK_MS))
                timer_start(q->timer, next);
}

static void on_timer(void *arg)
{
        struct call_queue *q = arg;
        struct call_lane *lane, *after;

        if (q->ops->tick)
                q->ops->tick(q, loop_now_ms(q->loop));
        for (lane = LIST_FIRST(&q->busy); lane; lane = after) {
                after = LIST_NEXT(lane, busy);
                end_late(q, lane, -1);
        }
        answer_refused(q);
        call_queue_pump(q);
}

void call_queue_add(struct call_queue *q, struct call_lane *lane, struct queued_call *c)
{
        enqueue(q, lane, c, false);
        if (c->priority == 0) /* even when all connections are busy */
                pump_lane(q, lane);
        call_queue_pump(q);
}

void call_queue_again(struct call_queue *q, struct call_lane *lane, struct queued_call *c)
{
        call_queue_leave(q, c);
        enqueue(q, lane, c, true);
}

void call_queue_move(struct call_queue *q, struct call_lane *from, struct call_lane *to)
{
        struct queued_call *c;

        for (unsigned i = 0; from != to && i < CALL_PRIORITIES; i++) {
                while ((c = TAILQ_FIRST(&from->queues[i]))) {
                        call_queue_leave(q, c);
                        enqueue(q, to, c, false);
                }
        }
}

void call_queue_open(struct call_queue *q, struct loop *l, const struct call_queue_ops *ops,
                     void *arg)
{
        *q = (struct call_queue){ .loop = l, .ops = ops, .arg = arg };
        LIST_INIT(&q->busy);
        TAILQ_INIT(&q->flying);
        TAILQ_INIT(&q->refused);
        q->timer = timer_new(l, on_timer, q);
}

void call_queue_close(struct call_queue *q)
{
        timer_free(q->timer);
}
