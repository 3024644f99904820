/*
 * What the files of the bus share:
 *
 *      bus.c            publishing and listening
 *      bus_event.c      events as values
 *      journal.c        appending, reading and deleting rows
 *      bus_consumer.c   durable consumers and their cursors
 *      bus_prune.c      retention
 */
#ifndef BUS_BUS_PRIVATE_H
#define BUS_BUS_PRIVATE_H

#include <sys/queue.h>

#include "base/buf.h"
#include "bus/bus.h"

/*
 * How events reach other processes. The front end delivers to the listeners of this process itself,
 * and the journal's rows are the record with every driver. A driver relays the journal outward,
 * best as a durable consumer of its own (bus_consume), which resumes after a crash and whose
 * sequence numbers serve as message ids; inward it hands events to bus_deliver. Live events are
 * sent once and may be lost. Every slot but `scheme` may be NULL.
 */
struct bus_driver {
        const char *scheme; /* "local", "nats": what bus.url starts with */
        struct bus_link *(*open)(struct bus *b, const char *url, struct error *err);
        void (*close)(struct bus_link *l);
        /* Sends a live event to other processes; borrowed. */
        void (*publish_live)(struct bus_link *l, const struct bus_event *e);
        /* False while events do not get through; then *why (borrowed) says so. */
        bool (*is_up)(const struct bus_link *l, const char **why);
};

/* The driver's connection begins with this. */
struct bus_link {
        const struct bus_driver *driver;
        struct bus *bus;
};

/* Hands an event to the listeners of this process. On the loop; the event is borrowed. */
void bus_deliver(struct bus *b, const struct bus_event *e);

/* --- journal.c --- */

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
 * One step of pruning, over the next thousand numbers after `at`. Deletes events older than their
 * stream's cutoff that every cursor seen since that cutoff has passed: an active reader holds an
 * event as long as it needs, an absent one no longer than the retention.
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

/* --- bus.c --- */

struct bus_listener {
        unsigned streams; /* journaled events of these */
        bool live;        /* live events */
        int64_t after;    /* events up to here were published before it came */
        bus_listener_fn *fn;
        void *arg;
        bool gone; /* left during a call; swept afterwards */
        TAILQ_ENTRY(bus_listener) next;
};

TAILQ_HEAD(bus_listeners, bus_listener);
TAILQ_HEAD(bus_consumers, bus_consumer);

struct bus {
        struct loop *loop;
        struct store *store;
        struct bus_link *link; /* NULL: the driver connects to nothing */
        struct journal_extent extent;

        struct bus_listeners listeners;
        struct bus_batch waiting; /* published by listeners during a publication */
        bool publishing;

        struct bus_consumers consumers;
        char **held; /* cursors that others move, see bus_cursor_hold */
        unsigned held_count;
        int64_t retention_ms[STREAM_COUNT];
        struct timer *prune_timer;
        struct bus_prune *prune; /* the round that is running */
        int64_t prune_at;        /* where the next round goes on */
};

/* --- bus_consumer.c --- */

/* The journal has grown. */
void bus_consumers_wake(struct bus *b);

/* The readers that are running, and how far each has come. */
struct bus_position {
        char *name;
        int64_t seq;
};
struct bus_positions {
        struct bus_position *items;
        unsigned count;
};
/* The names are yours to free. */
void bus_positions_take(const struct bus *b, struct bus_positions *out);

/* --- bus_prune.c --- */

/* Starts a round; a timer callback. */
void bus_prune(void *bus);
/* Lets the store call under way end without the bus. */
void bus_prune_abandon(struct bus *b);

#endif
