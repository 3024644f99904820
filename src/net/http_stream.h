/*
 * http_stream: answers that do not end, for sse.c.
 *
 * The server pulls: it asks for bytes when the socket takes some, and parks the stream when there
 * are none until http_stream_wake. A client that does not read is therefore never buffered for, and
 * is cut like any other that takes nothing of its answer.
 */
#ifndef NET_HTTP_STREAM_H
#define NET_HTTP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "net/http_server.h"

struct http_stream;

struct http_stream_ops {
        /*
         * Writes at most max bytes. Returns how many; 0: nothing now, park; -1: this was the end.
         */
        ssize_t (*pull)(void *arg, char *out, size_t max);
        /* Once, when the client or the server is gone. The stream must not be used any more. */
        void (*closed)(void *arg);
};

/*
 * Answers 200 with a stream; x is gone for the caller. May call ops->closed before returning when
 * the client is gone.
 */
void http_answer_stream(struct http_exchange *x, const char *content_type,
                        const struct http_stream_ops *ops, void *arg, struct http_stream **out);
/* There is something to pull. Cheap when the stream is not parked. */
void http_stream_wake(struct http_stream *s);
bool http_stream_parked(const struct http_stream *s);
/* Breaks the connection; ops->closed follows from the loop. */
void http_stream_cut(struct http_stream *s);

#endif
