/*
 * sse: server-sent events from one shared ring, with a cursor per client.
 *
 * Publishing copies an event once, for any number of clients. A client that falls behind the ring
 * is asked to return with Last-Event-ID and closed. Pings detect clients that have gone.
 */
#ifndef NET_SSE_H
#define NET_SSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http_server.h"

struct sse_hub;

/* Has a client lost its access? Then it is closed with the next event or ping. */
typedef bool sse_over_fn(const void *filter);

struct sse_options {
        size_t ring_bytes;    /* 0: 1 MiB */
        unsigned max_clients; /* 0: 10000; more are refused with 503 */
        int64_t ping_ms;      /* 0: 15000 */
        sse_over_fn *over;    /* may be NULL */
};

/* Is this event for the client? `filter` is what sse_attach was given. */
typedef bool sse_wants_fn(const void *filter, const char *type, const char *topic);

struct sse_hub *sse_hub_new(struct loop *l, const struct sse_options *options, sse_wants_fn *wants);
unsigned sse_room(const struct sse_hub *h);
/* Ends all clients; before or after the server is freed. */
void sse_hub_free(struct sse_hub *h);

/* id: must grow; 0: transient, cannot be requested again. topic (may be NULL) is for the filter. */
void sse_publish(struct sse_hub *h, int64_t id, const char *type, const char *topic,
                 const char *data, size_t n);
/* The same, but clients see `name` as its id. Such a hub is not asked for events after an id. */
void sse_publish_named(struct sse_hub *h, int64_t id, const char *name, const char *type,
                       const char *topic, const char *data, size_t n);
/*
 * Every event after this id is in the ring; older ones must be read from the journal. INT64_MAX
 * until an event with an id is published.
 */
int64_t sse_oldest_after(const struct sse_hub *h);
/*
 * Answers x with an event stream: `preface` (taken over, may be NULL), events of the journal up to
 * `after`; then events with id > after, including those in the ring. If `after` is older than the
 * ring the client is asked to return. Calls free_filter when the client leaves.
 */
void sse_attach(struct sse_hub *h, struct http_exchange *x, int64_t after, char *preface,
                size_t preface_n, void *filter, void (*free_filter)(void *));
unsigned sse_clients(const struct sse_hub *h);
/* Appends an event in wire format, for prefaces. */
struct buf;
void sse_format(struct buf *out, int64_t id, const char *type, const char *data, size_t n);
/* name: its id, without line breaks; NULL: none. */
void sse_format_named(struct buf *out, const char *name, const char *type, const char *data,
                      size_t n);

#endif
