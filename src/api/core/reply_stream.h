/*
 * reply_stream: an event stream that follows a message until its turn has ended: pieces of the
 * answer as they come, then what is missing of the stored answer.
 *
 * Live pieces are matched by the message that began the turn, not by the trace, which requests may
 * share. They are transient: those that were missed (the turn began before we listened, or with
 * another message) are sent from the stored answer at the end.
 */
#ifndef API_CORE_REPLY_STREAM_H
#define API_CORE_REPLY_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "api/core/reply_waiters.h"

struct reply_stream;
struct reply_streams;

struct reply_stream_ops {
        /* The stream is open. */
        void (*begin)(struct reply_stream *s, void *arg);
        void (*piece)(struct reply_stream *s, void *arg, const char *text, size_t n);
        /* The pieces so far are not the answer. */
        void (*aside)(struct reply_stream *s, void *arg);
        void (*progress)(struct reply_stream *s, void *arg, const char *label); /* may be NULL */
        /* The last events. reply NULL: time is up. */
        void (*end)(struct reply_stream *s, void *arg, const struct awaited_reply *reply);
        /* Its text is a notice, not the answer, and is not sent. */
        bool (*is_failure)(const struct awaited_reply *reply);
        void (*free)(void *arg);
};

struct reply_streams *reply_streams_new(struct api *a);
/* After the server, whose end closes the streams. */
void reply_streams_free(struct reply_streams *all);

/*
 * Answers x with the stream of a stored message. live: the turn has not begun, so all its pieces
 * will arrive here; now: it may have ended already.
 */
void reply_stream_open(struct http_exchange *x, int64_t event, bool live, bool now, int64_t ms,
                       const struct reply_stream_ops *ops, void *arg);
/* One event. Takes the text. */
void reply_stream_send(struct reply_stream *s, struct buf *data);
/* Nothing follows; what was sent last is delivered. `end` is not called any more. */
void reply_stream_close(struct reply_stream *s);

#endif
