/*
 * http_stream: answers without an end.
 *
 * The server pulls bytes when the socket can take some, and parks the stream when there are none,
 * until http_stream_wake. So nothing is buffered for a client that does not read; it is closed by
 * the deadline for answers.
 */
#ifndef NET_HTTP_STREAM_H
#define NET_HTTP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "net/http_server.h"

struct http_stream;

struct http_stream_ops {
        /* Writes at most max bytes and returns how many; 0: none now, park; -1: the end. */
        ssize_t (*pull)(void *arg, char *out, size_t max);
        /* Once, when the client or the server has gone. Frees the stream. */
        void (*closed)(void *arg);
};

/* Answers 200 with a stream, like http_answer. Calls ops->closed at once if the client has gone. */
void http_answer_stream(struct http_exchange *x, const char *content_type,
                        const struct http_stream_ops *ops, void *arg, struct http_stream **out);
/* There are bytes to pull. Cheap when the stream is not parked. */
void http_stream_wake(struct http_stream *s);
bool http_stream_parked(const struct http_stream *s);
/* Breaks the connection; ops->closed follows from the loop. */
void http_stream_cut(struct http_stream *s);

#endif
