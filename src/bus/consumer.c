/*
 * Durable consumers: a name, a cursor, a page at a time.
 *
 * A consumer always reads its events back from the store, also those just published: what is
 * committed and in order is known there and nowhere else (a batch may be published late, or never
 * when the process died in between).
 *
 *      STARTING ──► IDLE ◄──► READING ──► WORKING ──► ACKING ──► READING
 *
 * One store call is under way in STARTING, READING and ACKING; a consumer that is stopped meanwhile
 * is freed by its completion.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "bus/bus_private.h"

#define PAGE_EVENTS 64
#define RETRY_MS    1000 /* when the store could not */

enum consumer_state { STARTING, IDLE, READING, WORKING, ACKING };

struct bus_consumer {
        struct bus *bus; /* NULL: stopped */
        char *name;
        bus_consumer_fn *fn;
        void *arg;
        enum consumer_state state;
        bool calling; /* a store call is under way and will come back to us */
        /* everything up to here has been handed over and acknowledged, or is of no concern */
        int64_t seq;
        int64_t missed; /* see bus_consumer_missed */
        int64_t seen;   /* bus_head when the page was asked for */
        struct journal_page page;
        struct timer *retry;
        TAILQ_ENTRY(bus_consumer) next;
};

static void enter(struct bus_consumer *c, enum consumer_state state);

static void consumer_free(struct bus_consumer *c)
{
        bus_batch_release(&c->page.events);
        free(c->name);
        free(c);
}

/* The common end of every store call. True when the consumer should go on. */
static bool came_back(struct bus_consumer *c, const struct error *err)
{
        c->calling = false;
        if (!c->bus) {
                consumer_free(c);
                return false;
        }
        if (!err)
                return true;
        if (err->kind != ERR_CANCELLED) {
                log_warn("a consumer waits for the store", LOG_S("consumer", c->name),
                         LOG_S("error", err->text), LOG_I("retry_ms", RETRY_MS));
                timer_start(c->retry, RETRY_MS);
        }
        return false;
}

static void on_retry(void *arg)
{
        struct bus_consumer *c = arg;

        enter(c, c->state);
}

static void call_store(struct bus_consumer *c,
                       void (*ask)(struct store *, store_fn *, store_done_fn *, void *),
                       store_fn *fn, store_done_fn *done)
{
        c->calling = true;
        ask(c->bus->store, fn, done, c);
}

/*
 * --- starting: the cursor is made durable before the first event, so that pruning waits for us ---
 */

static int start_cursor(struct store_tx *tx, void *arg, struct error *err)
{
        struct bus_consumer *c = arg;
        struct bus_cursor known;
        int rc = cursor_find(tx, c->name, &known, err);

        if (rc == 0)
                return bus_cursor_set(tx, c->name, c->page.after, err);
        if (rc < 0)
                return -1;
        c->page.after = known.seq;
        c->missed = known.missed;
        return cursor_seen(tx, c->name, known.seq, INT64_MAX, err);
}

static void on_started(void *arg, const struct error *err)
{
        struct bus_consumer *c = arg;

        if (!came_back(c, err))
                return;
        c->seq = c->page.after;
        if (c->missed > 0)
                log_warn("a consumer was away for longer than events are kept; some are missing",
                         LOG_S("consumer", c->name), LOG_I("missed", c->missed));
        enter(c, READING);
}

/* --- reading --- */

static int read_page(struct store_tx *tx, void *arg, struct error *err)
{
        struct bus_consumer *c = arg;

        return journal_page(tx, &c->page, err);
}

static void on_page(void *arg, const struct error *err)
{
        struct bus_consumer *c = arg;

        if (!came_back(c, err))
                return;
        if (c->page.events.count > 0) {
                enter(c, WORKING);
                return;
        }
        c->seq = c->page.scanned_to;
        if (c->page.to_the_end && c->seen > c->seq)
                c->seq = c->seen; /* numbers after the last row belong to rows that are gone */
        enter(c, c->seq < bus_head(c->bus) ? READING : IDLE);
}

/* --- working and acknowledging --- */

static int move_cursor(struct store_tx *tx, void *arg, struct error *err)
{
        struct bus_consumer *c = arg;

        return bus_cursor_set(tx, c->name, c->page.scanned_to, err);
}

static void on_acked(void *arg, const struct error *err)
{
        struct bus_consumer *c = arg;

        if (!came_back(c, err))
                return;
        c->seq = c->page.scanned_to;
        c->missed = 0;
        bus_batch_reset(&c->page.events);
        enter(c, READING);
}

static void hand_over(struct bus_consumer *c)
{
        c->fn(c->arg, (const struct bus_event *const *)c->page.events.events, c->page.events.count);
}

static void enter(struct bus_consumer *c, enum consumer_state state)
{
        c->state = state;
        switch (state) {
        case STARTING:
                call_store(c, store_write, start_cursor, on_started);
                break;
        case IDLE:
                break;
        case READING:
                c->page.after = c->seq;
                c->seen = bus_head(c->bus);
                call_store(c, store_read, read_page, on_page);
                break;
        case WORKING:
                hand_over(c); /* may have stopped the consumer: nothing after this */
                break;
        case ACKING:
                call_store(c, store_write, move_cursor, on_acked);
                break;
        }
}

/* --- the public side --- */

struct bus_consumer *bus_consume(struct bus *b, const char *name, unsigned streams, int64_t from,
                                 bus_consumer_fn *fn, void *arg)
{
        struct bus_consumer *c = mem_zalloc(sizeof(*c));

        c->bus = b;
        c->name = mem_strdup(name);
        c->fn = fn;
        c->arg = arg;
        c->page.streams = streams;
        c->page.limit = PAGE_EVENTS;
        c->page.after = from < 0 ? bus_head(b) : from;
        c->retry = timer_new(b->loop, on_retry, c);
        TAILQ_INSERT_TAIL(&b->consumers, c, next);
        enter(c, STARTING);
        return c;
}

void bus_consumer_ack(struct bus_consumer *c)
{
        if (c->state == WORKING)
                enter(c, ACKING);
}

void bus_consumer_stop(struct bus_consumer *c)
{
        if (!c)
                return;
        TAILQ_REMOVE(&c->bus->consumers, c, next);
        timer_free(c->retry);
        c->bus = NULL;
        if (!c->calling)
                consumer_free(c);
}

int64_t bus_consumer_missed(const struct bus_consumer *c)
{
        return c->missed;
}

void bus_consumers_wake(struct bus *b)
{
        struct bus_consumer *c;

        TAILQ_FOREACH(c, &b->consumers, next)
                if (c->state == IDLE)
                        enter(c, READING);
}

void bus_consumers_drop(struct bus *b)
{
        struct bus_consumer *c, *next;

        for (c = TAILQ_FIRST(&b->consumers); c; c = next) {
                next = TAILQ_NEXT(c, next);
                bus_consumer_stop(c);
        }
}

/* --- who is there --- */

void bus_cursor_hold(struct bus *b, const char *name)
{
        b->held = mem_realloc(b->held, (b->held_count + 1) * sizeof(*b->held));
        b->held[b->held_count++] = mem_strdup(name);
}

static void add_position(struct bus_positions *p, const char *name, int64_t seq)
{
        p->items[p->count++] = (struct bus_position){ .name = mem_strdup(name), .seq = seq };
}

/*
 * What is of no concern to a consumer moves it on in memory only; its cursor follows here, so that
 * a quiet stream does not hold back the others.
 */
void bus_positions_take(const struct bus *b, struct bus_positions *out)
{
        const struct bus_consumer *c;
        unsigned n = b->held_count;

        TAILQ_FOREACH(c, &b->consumers, next)
                n++;
        *out = (struct bus_positions){ .items = mem_array(n, sizeof(*out->items)) };
        for (unsigned i = 0; i < b->held_count; i++)
                add_position(out, b->held[i], 0);
        TAILQ_FOREACH(c, &b->consumers, next)
                add_position(out, c->name, c->seq);
}

void bus_positions_release(struct bus_positions *p)
{
        for (unsigned i = 0; i < p->count; i++)
                free(p->items[i].name);
        free(p->items);
        *p = (struct bus_positions){ 0 };
}
