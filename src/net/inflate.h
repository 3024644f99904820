/*
 * inflate: compressed messages of one connection, which share one stream (zlib or zstd).
 *
 * The state is as long-lived as the connection: a new connection needs a new one. What a message
 * becomes is capped, and so is the memory of the stream itself. After an error the stream is of no
 * use any more.
 */
#ifndef NET_INFLATE_H
#define NET_INFLATE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

enum inflate_kind {
        /*
         * a message ends where its bytes end in 00 00 ff ff (a sync flush); it may come in several
         * pieces
         */
        INFLATE_ZLIB,
        INFLATE_ZSTD, /* each piece is a message */
};

struct inflate;

struct inflate *inflate_new(enum inflate_kind kind);
/* NULL is fine. */
void inflate_free(struct inflate *z);
/*
 * Feeds a piece; what it becomes is added to out, whose `max` is the cap. 1: the message is whole;
 * 0: it goes on in the next piece; -1: it cannot be read, or is too large (ERR_LIMIT).
 */
int inflate_feed(struct inflate *z, const char *bytes, size_t n, struct buf *out,
                 struct error *err);

#endif
