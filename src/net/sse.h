/*
 * sse: server-sent events from one shared ring, with a cursor per client.
 *
 * Publishing copies an event into the ring once, for any number of clients. A client that falls
 * behind the ring is asked to return with Last-Event-ID and closed, so a stalled reader costs
 * nothing. After 15 s of silence a comment line is sent, by which a gone client is noticed.
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

/* Decides per client whether an event is for it; `filter` is what sse_attach was given. */
typedef bool sse_wants_fn(const void *filter, const char *type, const char *topic);

struct sse_hub *sse_hub_new(struct loop *l, const struct sse_options *options, sse_wants_fn *wants);
/* How many more clients can be attached. */
unsigned sse_room(const struct sse_hub *h);
/* Ends all clients; before or after the server is freed. */
void sse_hub_free(struct sse_hub *h);

/*
 * Adds an event. id > 0 is sent as "id:" and must grow; 0 is for transient events, which cannot be
 * requested again. topic (may be NULL) is only for the filter.
 */
void sse_publish(struct sse_hub *h, int64_t id, const char *type, const char *topic,
                 const char *data, size_t n);
/*
 * The smallest id after which every event is still in the ring; older events must be read from the
 * journal. INT64_MAX until an event with an id is published.
 */
int64_t sse_oldest_after(const struct sse_hub *h);
/*
 * Answers x with an event stream. Sends `preface` (taken over, may be NULL) first: formatted events
 * from the journal up to `after`. Events with id > after follow, including those in the ring. If
 * `after` is older than the ring the client is asked to return. filter is freed with free_filter
 * when the client leaves.
 */
void sse_attach(struct sse_hub *h, struct http_exchange *x, int64_t after, char *preface,
                size_t preface_n, void *filter, void (*free_filter)(void *));
unsigned sse_clients(const struct sse_hub *h);
/* Appends an event in wire format to out: for prefaces. */
struct buf;
void sse_format(struct buf *out, int64_t id, const char *type, const char *data, size_t n);

#endif
