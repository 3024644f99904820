/*
 * What the files of the bus share:
 *
 *      bus.c        publishing and listening
 *      event.c      events as values
 *      journal.c    appending, reading and deleting rows
 *      consumer.c   durable consumers and their cursors
 *      prune.c      retention
 */
#ifndef BUS_BUS_PRIVATE_H
#define BUS_BUS_PRIVATE_H

#include <sys/queue.h>

#include "bus/bus_driver.h"
#include "bus/journal.h"

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

/* --- consumer.c --- */

/* The journal has grown. */
void bus_consumers_wake(struct bus *b);
void bus_consumers_stop(struct bus *b);

/* The readers that are running, and how far each has come. */
struct bus_position {
        char *name;
        int64_t seq;
};
struct bus_positions {
        struct bus_position *items;
        unsigned count;
};
void bus_positions_take(const struct bus *b, struct bus_positions *out);
void bus_positions_release(struct bus_positions *p);

/* --- prune.c --- */

/* Starts a round; a timer callback. */
void bus_prune(void *bus);
/* Lets the store call under way end without the bus. */
void bus_prune_abandon(struct bus *b);

#endif
