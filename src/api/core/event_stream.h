/*
 * event_stream: the journal as server-sent events.
 *
 * A client gets what the journal has after its place, then live events, without a gap and without a
 * repetition. The hub's ring only holds events that were published while a client was connected (an
 * idle daemon formats nothing); `complete_from` says after which event it is complete. A client
 * whose place lies before that, or before the ring's oldest event, is brought forward by reading
 * the journal. The reader sees committed rows, perhaps some that are not published yet; the hub
 * skips for each client the events it already has.
 *
 * A client too far behind gets a slice of the journal as an answer that ends. It comes back with
 * Last-Event-ID, as every reader of event streams does, and gets the next slice.
 */
#ifndef API_CORE_EVENT_STREAM_H
#define API_CORE_EVENT_STREAM_H

#include "api/core/api_core.h"

struct event_stream;
struct stream_filter;

struct event_stream *event_stream_new(struct api *a, unsigned max_clients);
void event_stream_free(struct event_stream *s);
unsigned event_stream_clients(const struct event_stream *s);

#define EVENT_STREAM_TYPES_MAX 16

/*
 * The events a client wants; NULL members mean all. types: separated by commas, a "*" at the end
 * stands for anything. NULL when the types make no sense.
 */
struct stream_filter *event_stream_filter_new(const char *types, const char *adapter,
                                              const char *channel, struct key *caller);
/* NULL is fine. */
void event_stream_filter_free(void *filter);

/* Answers with the events after this one (-1: from now on). Takes the filter over. */
void event_stream_serve(struct event_stream *s, struct http_exchange *x, struct stream_filter *f,
                        int64_t after);

#endif
