/*
 * event_stream: the journal as server-sent events, without gaps or repetitions.
 *
 * The hub's ring holds only events published while a client was connected, so that an idle daemon
 * formats nothing; it is complete after `complete_from`. A client further behind first reads the
 * journal; it may see rows that are committed but not yet published, so the hub skips events that a
 * client already has. One too far behind gets a slice of the journal as a response that ends, and
 * continues with Last-Event-ID.
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
 * NULL members mean all. types: comma-separated, a final "*" matches anything. NULL: malformed.
 */
struct stream_filter *event_stream_filter_new(const char *types, const char *adapter,
                                              const char *channel, struct key *caller);
void event_stream_filter_free(void *filter);

/* Sends the events after this one (-1: from now on). Takes the filter. */
void event_stream_serve(struct event_stream *s, struct http_exchange *x, struct stream_filter *f,
                        int64_t after);

#endif
