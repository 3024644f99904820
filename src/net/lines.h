/*
 * lines: the bytes of a stream as lines.
 *
 * A line ends at LF alone; a CR before it belongs to the end. U+2028 and the like are ordinary
 * characters.
 */
#ifndef NET_LINES_H
#define NET_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct lines {
        struct buf part; /* of a line whose end has not come */
};

/* Borrowed, not terminated. False: stop; the rest is dropped, and the lines may be released. */
typedef bool lines_fn(void *arg, const char *line, size_t n);

/* max: bytes of a line. */
void lines_init(struct lines *l, size_t max);
void lines_release(struct lines *l);
/* Calls fn for each complete line. -1: a line is longer than max; the rest is dropped. */
int lines_add(struct lines *l, const char *bytes, size_t n, lines_fn *fn, void *arg);

#endif
