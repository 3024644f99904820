/*
 * journal: reads and prunes the journal inside store functions. For the bus alone; bus_append,
 * bus_read and the cursors are in bus.h.
 */
#ifndef BUS_JOURNAL_H
#define BUS_JOURNAL_H

#include "base/buf.h"
#include "bus/bus.h"

/* Where the journal begins and ends. */
struct journal_extent {
        int64_t head; /* the last sequence number that was assigned, as far as we know */
        int64_t tail; /* the first event that is still there; head + 1 if there is none */
};
int journal_extent(struct store_tx *tx, struct journal_extent *out, struct error *err);

/* Up to `limit` events after `after`, of some streams. */
struct journal_page {
        int64_t after;
        unsigned streams;
        unsigned limit;
        struct bus_batch events;
        int64_t scanned_to; /* every event up to here has been looked at */
        bool at_end;        /* there was nothing after it */
};
int journal_page(struct store_tx *tx, struct journal_page *page, struct error *err);

/*
 * One step of pruning, over the next thousand numbers after `at`. Deletes events that are older
 * than their stream's cutoff and that every cursor seen since that cutoff has passed: an active
 * reader holds an event as long as it needs, an absent one no longer than the retention.
 */
struct journal_sweep {
        int64_t cutoff_ms[STREAM_COUNT]; /* INT64_MIN: keep for ever */
        int64_t future_ms;               /* later events have a wrong time; look past them */
        int64_t keys_ms;                 /* keep the keys of events since then */
        int64_t at;                      /* start after this number */
        int64_t next;                    /* where to go on; 0: from the beginning */
        int64_t deleted;                 /* events that can no longer be read */
        bool more;                       /* there may be old events after `next` */
        struct buf lapsed;               /* cursors that lost events for the first time: names */
        struct journal_extent extent;
};
int journal_sweep(struct store_tx *tx, struct journal_sweep *sweep, struct error *err);

#endif
