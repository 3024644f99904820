/*
 * bus: the journal. Everything that happens is an event in a typed stream, in one order.
 *
 * Events are rows of the store, appended inside a caller's transaction, so "it happened" and "it is
 * in the journal" are the same commit. After the commit the caller publishes its batch to
 * listeners, in order. A durable consumer has a name and a cursor and gets every event of its
 * streams at least once, also those from while it was away. Live events (streamed text) are not
 * stored.
 */
#ifndef BUS_BUS_H
#define BUS_BUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/loop.h"
#include "store/store.h"

struct buf;

enum bus_stream {
        STREAM_MESSAGE,
        STREAM_REACTION,
        STREAM_TURN,
        STREAM_DELIVERY,
        STREAM_SESSION,
        STREAM_ADAPTER,
        STREAM_SCHEDULE,
        STREAM_CUSTOM,
        STREAM_IDENTITY,
        STREAM_COUNT
};

#define BUS_ALL_STREAMS ((1u << STREAM_COUNT) - 1)
#define BUS_ID_SIZE     24 /* "evt-" and the sequence number */

/* Strings belong to the owner of the struct; see bus_event_dup. */
struct bus_event {
        int64_t seq;         /* place in the journal; 0 before it is appended */
        const char *type;    /* "message.received"; its first word names the stream */
        int64_t time_ms;     /* 0: the time of bus_append */
        const char *adapter; /* NULL if it concerns none */
        const char *channel;
        const char *thread;
        const char *trace;
        const char *key;     /* the platform's id of it, unique per adapter; NULL for our events */
        const char *payload; /* JSON object; "{}" when only the key is still kept */
};

/* The stream of an event type: "turn.started" → STREAM_TURN; -1: none. */
int bus_stream_of(const char *type);
const char *bus_stream_name(enum bus_stream s); /* "MESSAGE" */
char *bus_event_id(int64_t seq, char out[BUS_ID_SIZE]);
/* "evt-42" or "42" → 42; -1: not an event id. */
int64_t bus_event_seq(const char *id);
struct bus_event *bus_event_dup(const struct bus_event *e); /* one block: free() it */
/* Appends the envelope that clients see. */
void bus_event_json(const struct bus_event *e, struct buf *out);

struct bus;

struct bus_options {
        const char *url; /* "local"; later "nats://..." */
        /* 0: 7 days; -1: for ever. Keys are kept for two days at least. */
        int64_t retention_ms[STREAM_COUNT];
        int64_t prune_every_ms; /* 0: one minute */
};

/* Blocks. */
struct bus *bus_open(struct loop *l, struct store *s, const struct bus_options *options,
                     struct error *err);
/* Before store_close. Drops remaining listeners and consumers. NULL is fine. */
void bus_close(struct bus *b);
/* Takes effect at the next pruning. */
void bus_set_retention(struct bus *b, const int64_t retention_ms[STREAM_COUNT]);

/* --- appending and publishing --- */

/*
 * Events of one transaction: the store function fills the batch (after bus_batch_reset, because it
 * may be repeated), its completion publishes it.
 */
struct bus_batch {
        struct bus_event **events; /* owned copies, seq filled in */
        unsigned count, cap;
};
void bus_batch_reset(struct bus_batch *b);
void bus_batch_release(struct bus_batch *b);
/*
 * Inside a store function. 1: appended, *seq set, copied into batch (may be NULL); 0: the journal
 * has an event with this adapter and key, *seq is its number; -1.
 */
int bus_append(struct store_tx *tx, struct bus_batch *batch, const struct bus_event *e,
               int64_t *seq, struct error *err);
/* After the commit: calls listeners, wakes consumers, empties the batch. */
void bus_publish(struct bus *b, struct bus_batch *batch);
/*
 * For several batches of one transaction: what is published between the two waits, and then comes
 * in the order of the journal.
 */
void bus_defer(struct bus *b);
void bus_flush(struct bus *b);
/* Hands an event to live listeners without storing it. */
void bus_publish_live(struct bus *b, const struct bus_event *e);

/* Listeners run on the loop. Leaving during a call is fine. */
typedef void bus_listener_fn(void *arg, const struct bus_event *e);
struct bus_listener;
struct bus_listener *bus_listen(struct bus *b, unsigned streams, bus_listener_fn *fn, void *arg);
struct bus_listener *bus_listen_live(struct bus *b, bus_listener_fn *fn, void *arg);
void bus_unlisten(struct bus *b, struct bus_listener *l);

/* --- durable consumers --- */

/*
 * fn gets events in order, a batch at a time, valid until bus_consumer_ack makes the cursor
 * durable; then the next batch comes. fn may acknowledge or stop inside the call. A new name starts
 * after `from` (0: the beginning; -1: now).
 */
typedef void bus_consumer_fn(void *arg, const struct bus_event *const *events, unsigned count);
struct bus_consumer;
struct bus_consumer *bus_consume(struct bus *b, const char *name, unsigned streams, int64_t from,
                                 bus_consumer_fn *fn, void *arg);
void bus_consumer_ack(struct bus_consumer *c);
/*
 * Stops; the cursor stays. Events wait for the consumer's return as long as their retention, no
 * longer: else an abandoned name would keep the journal for ever.
 */
void bus_consumer_stop(struct bus_consumer *c);
/* Events deleted while the consumer was away; known in the first call of fn, 0 after its ack. */
int64_t bus_consumer_missed(const struct bus_consumer *c);

/* For owners that move a cursor in their own transaction: pruning waits for it. */
void bus_cursor_hold(struct bus *b, const char *name);
/* 1; 0: unknown, *seq = 0; -1. */
int bus_cursor_get(struct store_tx *tx, const char *name, int64_t *seq, struct error *err);
/* Never moves back. */
int bus_cursor_set(struct store_tx *tx, const char *name, int64_t seq, struct error *err);

struct bus_cursor {
        const char *name; /* borrowed */
        int64_t seq;      /* processed up to here */
        int64_t lag;      /* numbers assigned after that, including deleted events */
        int64_t seen_ms;  /* when its owner last ran, to the hour */
        int64_t missed;   /* see bus_consumer_missed */
};
typedef void bus_cursor_fn(void *arg, const struct bus_cursor *c);
/* Inside a store function: lists all cursors by name. 0 or -1. */
int bus_cursors(struct store_tx *tx, bus_cursor_fn *each, void *arg, struct error *err);

/* --- reading pages --- */

/* Members that are NULL or 0 match all. Newest first if before > 0, else oldest first. */
struct bus_filter {
        int64_t after, before;
        unsigned streams;
        const char *type; /* exact, or a prefix ending in '*' */
        const char *adapter;
        const char *channel;
        const char *trace;
        int64_t since_ms, until_ms; /* since <= time < until */
        /* Is the caller allowed to see this adapter's events (NULL: of none)? On a store thread. */
        bool (*may)(const void *may_arg, const char *adapter);
        const void *may_arg;
};
/*
 * Inside a store function: calls each() for up to `limit` events; returns how many, or -1. Looks at
 * no more than 50 * limit rows (at least 5000); *scanned_to (may be NULL) is the last one.
 */
int bus_read(struct store_tx *tx, const struct bus_filter *f, unsigned limit, bus_listener_fn *each,
             void *arg, int64_t *scanned_to, struct error *err);

/* Do events reach other processes? If not, *why (borrowed) gives the reason. */
bool bus_is_up(const struct bus *b, const char **why);
int64_t bus_head(const struct bus *b); /* last published sequence number */
/* Earlier events were pruned. */
int64_t bus_tail(const struct bus *b);

#endif
