/*
 * A consumer always reads its events from the store, also those just published: a batch may be
 * published late, or never if the process died before.
 *
 *      STARTING ──► IDLE ◄──► READING ──► WORKING ──► ACKING ──► READING
 *
 * One store call is under way in STARTING, READING and ACKING; a consumer that is stopped meanwhile
 * is freed by its completion.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "bus/bus_private.h"
#include "rows/journal_row.h"

#define PAGE_EVENTS 64
#define RETRY_MS    1000 /* after an error of the store */

enum consumer_state { STARTING, IDLE, READING, WORKING, ACKING };

struct bus_consumer {
        struct bus *bus; /* NULL: stopped */
        char *name;
        bus_consumer_fn *fn;
        void *arg;
        enum consumer_state state;
        bool calling; /* a store call is under way and will complete to us */
        /* every event up to here is acknowledged or of another stream */
        int64_t seq;
        int64_t missed;         /* see bus_consumer_missed */
        int64_t head_when_read; /* bus_head when the page was asked for */
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

/* Ends every store call. False: the consumer is gone or has to retry. */
static bool end_call(struct bus_consumer *c, const struct error *err)
{
        c->calling = false;
        if (!c->bus) {
                consumer_free(c);
                return false;
        }
        if (!err)
                return true;
        if (err->kind != ERR_CANCELLED) {
                log_warn("consumer cannot use the store; retrying", LOG_S("consumer", c->name),
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

/* The cursor is durable before the first event, so that pruning waits for it. */
static int start_cursor(struct store_tx *tx, void *arg, struct error *err)
{
        struct bus_consumer *c = arg;
        struct cursor_row known;
        int64_t now_ms = clock_wall_ms();
        int rc = cursor_row_get(tx, c->name, &known, err);

        if (rc < 0)
                return -1;
        if (rc == 0)
                return cursor_row_move(tx, c->name, c->page.after, now_ms, err);
        c->page.after = known.seq;
        c->missed = known.missed;
        return cursor_row_touch(tx, c->name, known.seq, now_ms, INT64_MAX, err);
}

static void on_started(void *arg, const struct error *err)
{
        struct bus_consumer *c = arg;

        if (!end_call(c, err))
                return;
        c->seq = c->page.after;
        if (c->missed > 0)
                log_warn("consumer was away for longer than events are kept; some are missing",
                         LOG_S("consumer", c->name), LOG_I("missed", c->missed));
        enter(c, READING);
}

static int read_page(struct store_tx *tx, void *arg, struct error *err)
{
        return journal_page(tx, &((struct bus_consumer *)arg)->page, err);
}

static void on_page(void *arg, const struct error *err)
{
        struct bus_consumer *c = arg;

        if (!end_call(c, err))
                return;
        if (c->page.events.count > 0) {
                enter(c, WORKING);
                return;
        }
        c->seq = c->page.scanned_to;
        if (c->page.at_end && c->head_when_read > c->seq)
                c->seq = c->head_when_read; /* the rows up to there were deleted */
        enter(c, c->seq < bus_head(c->bus) ? READING : IDLE);
}

static int move_cursor(struct store_tx *tx, void *arg, struct error *err)
{
        struct bus_consumer *c = arg;

        return cursor_row_move(tx, c->name, c->page.scanned_to, clock_wall_ms(), err);
}

static void on_acked(void *arg, const struct error *err)
{
        struct bus_consumer *c = arg;

        if (!end_call(c, err))
                return;
        c->seq = c->page.scanned_to;
        c->missed = 0;
        bus_batch_reset(&c->page.events);
        enter(c, READING);
}

static void enter(struct bus_consumer *c, enum consumer_state state)
{
        struct store *store = c->bus->store;

        c->state = state;
        c->calling = state == STARTING || state == READING || state == ACKING;
        switch (state) {
        case STARTING:
                store_write(store, start_cursor, on_started, c);
                break;
        case IDLE:
                break;
        case READING:
                c->page.after = c->seq;
                c->head_when_read = bus_head(c->bus);
                store_read(store, read_page, on_page, c);
                break;
        case WORKING: /* may stop the consumer: nothing after this */
                c->fn(c->arg, (const struct bus_event *const *)c->page.events.events,
                      c->page.events.count);
                break;
        case ACKING:
                store_write(store, move_cursor, on_acked, c);
                break;
        }
}

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

/* --- cursors --- */

int bus_cursor_get(struct store_tx *tx, const char *name, int64_t *seq, struct error *err)
{
        struct cursor_row row;
        int rc = cursor_row_get(tx, name, &row, err);

        *seq = row.seq;
        return rc;
}

int bus_cursor_set(struct store_tx *tx, const char *name, int64_t seq, struct error *err)
{
        return cursor_row_move(tx, name, seq, clock_wall_ms(), err);
}

void bus_cursor_hold(struct bus *b, const char *name)
{
        b->held = mem_realloc(b->held, (b->held_count + 1) * sizeof(*b->held));
        b->held[b->held_count++] = mem_strdup(name);
}

struct cursor_lag {
        int64_t head;
        bus_cursor_fn *each;
        void *arg;
};

static void add_lag(void *arg, const struct cursor_row *row)
{
        const struct cursor_lag *l = arg;

        l->each(l->arg, &(struct bus_cursor){ .name = row->name,
                                              .seq = row->seq,
                                              .lag = l->head > row->seq ? l->head - row->seq : 0,
                                              .seen_ms = row->seen_ms,
                                              .missed = row->missed });
}

int bus_cursors(struct store_tx *tx, bus_cursor_fn *each, void *arg, struct error *err)
{
        struct cursor_lag lag = { .each = each, .arg = arg };
        struct journal_extent extent;

        if (journal_extent(tx, &extent, err) != 0)
                return -1;
        lag.head = extent.head;
        return cursor_row_each(tx, INT64_MAX, add_lag, &lag, err);
}

/*
 * Events of other streams move a consumer on in memory only. Its cursor follows with every pruning,
 * so that a quiet stream does not hold back the others.
 */
void bus_positions_take(const struct bus *b, struct bus_positions *out)
{
        const struct bus_consumer *c;
        unsigned n = b->held_count;

        TAILQ_FOREACH(c, &b->consumers, next)
                n++;
        *out = (struct bus_positions){ .items = mem_array(n, sizeof(*out->items)) };
        for (unsigned i = 0; i < b->held_count; i++)
                out->items[out->count++].name = mem_strdup(b->held[i]);
        TAILQ_FOREACH(c, &b->consumers, next)
                out->items[out->count++] =
                        (struct bus_position){ .name = mem_strdup(c->name), .seq = c->seq };
}
