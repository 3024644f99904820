/*
 * inflate: decompresses the messages of one connection, which share one stream (zlib or zstd).
 *
 * Message size and memory are capped. After an error the stream cannot be used again.
 */
#ifndef NET_INFLATE_H
#define NET_INFLATE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

enum inflate_kind {
        /* a message may come in several pieces; it ends with 00 00 ff ff (a sync flush) */
        INFLATE_ZLIB,
        INFLATE_ZSTD, /* each piece is a message */
};

struct inflate;

struct inflate *inflate_new(enum inflate_kind kind);
void inflate_free(struct inflate *z);
/*
 * Decompresses a piece into out, whose `max` is the cap. 1: the message is complete; 0: it
 * continues in the next piece; -1: it is damaged or too large (ERR_LIMIT).
 */
int inflate_feed(struct inflate *z, const char *bytes, size_t n, struct buf *out,
                 struct error *err);

#endif
