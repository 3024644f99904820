/*
 * journal: the rows of the bus. Inside the bus room; the rest of it is declared in bus.h
 * (bus_append, bus_read, cursors).
 */
#ifndef BUS_JOURNAL_H
#define BUS_JOURNAL_H

#include "base/buf.h"
#include "bus/bus.h"

/* Where the journal begins and ends. */
struct journal_extent {
        int64_t head; /* the last sequence number ever given out that we know of */
        int64_t tail; /* the first event that is still there; head + 1 when none is */
};
int journal_extent(struct store_tx *tx, struct journal_extent *out, struct error *err);

/*
 * One step of pruning: looks at the next thousand numbers after `at` and deletes those of their
 * events that are older than their stream's cutoff and that every durable cursor has passed, of
 * those that were seen since that cutoff: nobody holds an event for longer than it is kept for
 * somebody who is there.
 */
struct journal_sweep {
        int64_t cutoff_ms[STREAM_COUNT]; /* INT64_MIN: for ever */
        /* later events carry a wrong clock's time: they are passed over */
        int64_t future_ms;
        /* of later events the key stays: (adapter, key) is unique at least so long */
        int64_t keys_ms;
        int64_t at;        /* where to look */
        int64_t next;      /* where to look next time; 0: from the beginning */
        int64_t deleted;   /* events that can no longer be read */
        bool more;         /* there may be old events after `next` */
        struct buf lapsed; /* who was not waited for, for the first time: names joined by commas */
        struct journal_extent extent;
};
int journal_sweep(struct store_tx *tx, struct journal_sweep *sweep, struct error *err);

/* Events after `after` for a consumer: up to `limit` of its streams. */
struct journal_page {
        int64_t after;
        unsigned streams;
        unsigned limit;
        struct bus_batch events;
        int64_t scanned_to; /* everything up to here has been seen */
        bool to_the_end;    /* there was nothing more */
};
int journal_page(struct store_tx *tx, struct journal_page *page, struct error *err);

void journal_batch_add(struct bus_batch *b, const struct bus_event *e);

/* --- cursor.c --- */

struct cursor_list {
        struct bus_cursor *items; /* the names are the list's */
        size_t count, cap;
};
void cursor_list_release(struct cursor_list *l);
/* 1, or 0 when the name is unknown: all of it 0. */
int cursor_find(struct store_tx *tx, const char *name, struct bus_cursor *out, struct error *err);
/* Those that have not come as far as `seq`. */
int cursors_behind(struct store_tx *tx, int64_t seq, struct cursor_list *out, struct error *err);
/* How far all have come who were seen since then; INT64_MAX when nobody was. */
int cursors_passed(struct store_tx *tx, int64_t seen_since_ms, int64_t *out, struct error *err);
/*
 * Its owner is there, and has come at least so far. Where that is no news it is noted only when the
 * last note is older than stale_ms: an idle program does not write. A name that is unknown stays
 * so.
 */
int cursor_seen(struct store_tx *tx, const char *name, int64_t seq, int64_t stale_ms,
                struct error *err);
/* So many more events were deleted before it read them. */
int cursor_missed(struct store_tx *tx, const char *name, int64_t events, struct error *err);

#endif
