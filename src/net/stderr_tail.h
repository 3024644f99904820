/*
 * stderr_tail: the end of what a program wrote to stderr, for the error that tells of its end.
 */
#ifndef NET_STDERR_TAIL_H
#define NET_STDERR_TAIL_H

#include <stddef.h>

#include "base/buf.h"

struct stderr_tail {
        struct buf text;
};

void stderr_tail_init(struct stderr_tail *t);
void stderr_tail_release(struct stderr_tail *t);
void stderr_tail_add(struct stderr_tail *t, const char *bytes, size_t n);
/* The last line that says something, without secrets, at most 200 bytes; "": none. Yours to free.
 */
char *stderr_tail_line(struct stderr_tail *t);

#endif
