/*
 * sse: one shared ring of events and a cursor per client.
 *
 * Publishing costs one copy into the ring, whatever the number of clients; a client that falls
 * behind the ring is told to come back with Last-Event-ID and closed, so a stalled reader costs
 * nothing. Every 15 s of silence a comment line is sent, which is how a gone client is noticed.
 */
#ifndef NET_SSE_H
#define NET_SSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http_server.h"

struct sse_hub;

/*
 * Has a client lost its right to be here? Then it is cut: with the next event, or when it has its
 * turn to be pinged.
 */
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
/* How many more clients may be attached. */
unsigned sse_room(const struct sse_hub *h);
/* Ends all clients; before or after the server is freed. */
void sse_hub_free(struct sse_hub *h);

/*
 * Adds an event. id > 0 is sent as "id:" and must grow; 0 is for transient events that nobody can
 * ask for again. topic is only for the filter (an adapter or channel name; may be NULL).
 */
void sse_publish(struct sse_hub *h, int64_t id, const char *type, const char *topic,
                 const char *data, size_t n);
/*
 * The smallest id such that everything after it is still in the ring; what is older must be read
 * from the journal. INT64_MAX as long as nothing with an id has been published: then the ring knows
 * nothing and the journal everything.
 */
int64_t sse_oldest_after(const struct sse_hub *h);
/*
 * Answers x with an event stream. `preface` (may be NULL, taken over) is sent first: already
 * formatted events from the journal up to `after`; live events with id > after follow, those in the
 * ring included. When `after` is older than the ring the client is told to come back. filter is
 * freed with free_filter when the client goes.
 */
void sse_attach(struct sse_hub *h, struct http_exchange *x, int64_t after, char *preface,
                size_t preface_n, void *filter, void (*free_filter)(void *));
unsigned sse_clients(const struct sse_hub *h);
/* Formats one event as it goes over the wire, appended to out: for prefaces. */
struct buf;
void sse_format(struct buf *out, int64_t id, const char *type, const char *data, size_t n);

#endif
