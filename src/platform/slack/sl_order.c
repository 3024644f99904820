#include "platform/slack/sl_order.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/slack/sl_ts.h"

#define AHEAD_MAX 128 /* events of one connection */
/* After a pause Slack's side has to fill the connection again, so events wait longer for a while.
 */
#define BURST_ROUNDS 100
#define BURST_FACTOR 5
#define FULL_MS      10 /* how often a full owner is asked again */
#define ROUNDS       2  /* of the timer: between two of them every connection is read */

struct ordered_event {
        struct sl_order_source *source; /* NULL: it has ended */
        int64_t ts_us;
        uint64_t round;
        json_t *payload;
        int retry;
        sl_stored_fn *stored;
        void *stored_arg;
        TAILQ_ENTRY(ordered_event) next;
};

struct sl_order {
        int64_t wait_ms;
        struct sl_order_handlers on;
        void *arg;
        TAILQ_HEAD(order_queue, ordered_event) queue; /* oldest ts first */
        LIST_HEAD(, sl_order_source) sources;
        size_t count;
        struct timer *timer; /* while events wait */
        uint64_t round;
        unsigned burst; /* rounds since a pause, backwards */
        unsigned refs;  /* the owner, handlers on the stack */
        bool freed;
};

static void unref(struct sl_order *o)
{
        if (--o->refs == 0)
                free(o);
}

/* What a paused connection has not shown yet may be older than anything after its newest event. */
static int64_t newest_safe_us(const struct sl_order *o)
{
        const struct sl_order_source *s;
        int64_t safe_us = INT64_MAX;

        LIST_FOREACH(s, &o->sources, next)
                if (s->paused && s->newest_us < safe_us)
                        safe_us = s->newest_us;
        return safe_us;
}

static void start_round(struct sl_order *o)
{
        timer_start(o->timer, o->wait_ms / ROUNDS * (o->burst > 0 ? BURST_FACTOR : 1));
        if (o->burst > 0)
                o->burst--;
}

static void resume_sources(struct sl_order *o)
{
        struct sl_order_source *s;

        LIST_FOREACH(s, &o->sources, next) {
                if (!s->paused || s->waiting > AHEAD_MAX / 2)
                        continue;
                s->paused = false;
                o->on.pause(o->arg, s, false);
        }
}

/* Connections pause while the owner is full: what they have not shown may be older. */
static void wait_for_room(struct sl_order *o)
{
        struct ordered_event *e;

        TAILQ_FOREACH(e, &o->queue, next)
                e->round = o->round;
        timer_start(o->timer, FULL_MS);
}

/* Delivers everything up to the newest event that has waited long enough. */
static void on_timer(void *arg)
{
        struct sl_order *o = arg;
        int64_t safe_us = newest_safe_us(o);
        struct ordered_event *e, *last = TAILQ_LAST(&o->queue, order_queue);

        o->round++;
        while (last && (last->ts_us > safe_us || o->round - last->round < ROUNDS))
                last = TAILQ_PREV(last, order_queue, next);
        o->refs++;
        while (last && !o->freed && !o->on.is_full(o->arg)) {
                e = TAILQ_FIRST(&o->queue);
                if (e == last)
                        last = NULL;
                TAILQ_REMOVE(&o->queue, e, next);
                o->count--;
                if (e->source)
                        e->source->waiting--;
                o->on.deliver(o->arg, e->payload, e->retry, e->stored, e->stored_arg);
                json_decref(e->payload);
                free(e);
        }
        if (!o->freed) {
                resume_sources(o);
                if (o->on.is_full(o->arg))
                        wait_for_room(o);
                else if (o->count > 0)
                        start_round(o);
        }
        unref(o);
}

void sl_order_add(struct sl_order *o, struct sl_order_source *source, json_t *payload, int retry,
                  sl_stored_fn *stored, void *stored_arg)
{
        const json_t *event = json_object_get(payload, "event");
        struct ordered_event *e = mem_zalloc(sizeof(*e)), *before;

        e->ts_us = sl_ts_us(json_str(event, "event_ts", json_str(event, "ts", NULL)));
        if (e->ts_us == 0)
                e->ts_us = source->newest_us;
        else if (e->ts_us > source->newest_us)
                source->newest_us = e->ts_us;
        if (!source->known)
                LIST_INSERT_HEAD(&o->sources, source, next);
        source->known = true;
        source->waiting++;
        e->source = source;
        e->round = o->round;
        e->payload = json_incref(payload);
        e->retry = retry;
        e->stored = stored;
        e->stored_arg = stored_arg;
        before = TAILQ_LAST(&o->queue, order_queue);
        while (before && before->ts_us > e->ts_us)
                before = TAILQ_PREV(before, order_queue, next);
        if (before)
                TAILQ_INSERT_AFTER(&o->queue, before, e, next);
        else
                TAILQ_INSERT_HEAD(&o->queue, e, next);
        o->count++;
        if (!timer_active(o->timer))
                start_round(o);
        if (source->waiting >= AHEAD_MAX && !source->paused) {
                source->paused = true;
                o->burst = BURST_ROUNDS;
                o->on.pause(o->arg, source, true);
        }
}

void sl_order_forget(struct sl_order *o, struct sl_order_source *source)
{
        struct ordered_event *e;

        if (!source->known)
                return;
        LIST_REMOVE(source, next);
        source->known = false;
        TAILQ_FOREACH(e, &o->queue, next)
                if (e->source == source)
                        e->source = NULL;
}

size_t sl_order_waiting(const struct sl_order *o)
{
        return o->count;
}

struct sl_order *sl_order_new(struct loop *l, int64_t wait_ms,
                              const struct sl_order_handlers *handlers, void *arg)
{
        struct sl_order *o = mem_zalloc(sizeof(*o));

        o->wait_ms = wait_ms;
        o->on = *handlers;
        o->arg = arg;
        o->refs = 1;
        o->timer = timer_new(l, on_timer, o);
        TAILQ_INIT(&o->queue);
        LIST_INIT(&o->sources);
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
