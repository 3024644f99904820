#include "platform/slack/sl_order.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/slack/sl_ts.h"

#define WAITING_MAX 1000 /* then they go on at once */

struct ordered_event {
        int64_t ts_us;
        int64_t until_ms;
        json_t *payload;
        int retry;
        sl_stored_fn *stored;
        void *stored_arg;
        TAILQ_ENTRY(ordered_event) next;
};

struct sl_order {
        struct loop *loop;
        int64_t wait_ms;
        sl_order_fn *deliver;
        void *arg;
        TAILQ_HEAD(order_queue, ordered_event) queue; /* oldest ts first */
        size_t count;
        struct timer *timer;
        unsigned refs; /* the owner, deliver on the stack */
        bool freed;
};

static void unref(struct sl_order *o)
{
        if (--o->refs == 0)
                free(o);
}

/* Hands over everything up to the newest event that has waited long enough. */
static void pass(struct sl_order *o, bool all)
{
        int64_t now = loop_now_ms(o->loop);
        struct ordered_event *e, *last = TAILQ_LAST(&o->queue, order_queue);

        while (last && !all && last->until_ms > now)
                last = TAILQ_PREV(last, order_queue, next);
        o->refs++;
        while (last && !o->freed) {
                e = TAILQ_FIRST(&o->queue);
                if (e == last)
                        last = NULL;
                TAILQ_REMOVE(&o->queue, e, next);
                o->count--;
                o->deliver(o->arg, e->payload, e->retry, e->stored, e->stored_arg);
                json_decref(e->payload);
                free(e);
        }
        if (!o->freed && o->count > 0)
                timer_start(o->timer, o->wait_ms);
        unref(o);
}

static void on_timer(void *arg)
{
        pass(arg, false);
}

void sl_order_add(struct sl_order *o, json_t *payload, int retry, sl_stored_fn *stored,
                  void *stored_arg)
{
        const json_t *event = json_object_get(payload, "event");
        struct ordered_event *e = mem_zalloc(sizeof(*e)), *before;

        e->ts_us = sl_ts_us(json_str(event, "event_ts", json_str(event, "ts", NULL)));
        e->until_ms = loop_now_ms(o->loop) + o->wait_ms;
        e->payload = json_incref(payload);
        e->retry = retry;
        e->stored = stored;
        e->stored_arg = stored_arg;
        before = TAILQ_LAST(&o->queue, order_queue);
        while (before && e->ts_us > 0 && before->ts_us > e->ts_us)
                before = TAILQ_PREV(before, order_queue, next);
        if (before)
                TAILQ_INSERT_AFTER(&o->queue, before, e, next);
        else
                TAILQ_INSERT_HEAD(&o->queue, e, next);
        if (++o->count >= WAITING_MAX)
                pass(o, true);
        else if (!timer_active(o->timer))
                timer_start(o->timer, o->wait_ms);
}

size_t sl_order_waiting(const struct sl_order *o)
{
        return o->count;
}

struct sl_order *sl_order_new(struct loop *l, int64_t wait_ms, sl_order_fn *deliver, void *arg)
{
        struct sl_order *o = mem_zalloc(sizeof(*o));

        o->loop = l;
        o->wait_ms = wait_ms;
        o->deliver = deliver;
        o->arg = arg;
        o->refs = 1;
        o->timer = timer_new(l, on_timer, o);
        TAILQ_INIT(&o->queue);
        return o;
}

void sl_order_free(struct sl_order *o)
{
        struct ordered_event *e;

        if (!o || o->freed)
                return;
        o->freed = true;
        while ((e = TAILQ_FIRST(&o->queue))) {
                TAILQ_REMOVE(&o->queue, e, next);
                e->stored(e->stored_arg, false, NULL);
                json_decref(e->payload);
                free(e);
        }
        timer_free(o->timer);
        unref(o);
}
