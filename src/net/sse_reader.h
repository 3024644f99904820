/*
 * sse_reader: parses text/event-stream, fed in pieces of any size.
 *
 * Follows the HTML standard: CR, LF or CRLF end a line, data lines are joined with LF, unknown
 * fields and comments are skipped, a UTF-8 byte order mark at the start is ignored.
 */
#ifndef NET_SSE_READER_H
#define NET_SSE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef void sse_event_fn(void *arg, const char *event, const char *id, const char *data, size_t n);

struct sse_reader {
        struct buf line, event, data, id;
        bool after_cr, at_start, has_data;
        int64_t retry_ms; /* how long to wait before connecting again; -1: not told */
        sse_event_fn *on_event;
        void *arg;
};

/* max: bytes of one event. */
void sse_reader_init(struct sse_reader *r, size_t max, sse_event_fn *on_event, void *arg);
void sse_reader_release(struct sse_reader *r);
/* Calls on_event for each complete event ("" stands for "message"). -1: an event is too large. */
int sse_reader_feed(struct sse_reader *r, const char *bytes, size_t n);

#endif
