/*
 * squeeze: what a gateway connection sends, compressed as one stream.
 *
 * Each message ends in a flush, so that the receiver can read it before the next one comes.
 */
#ifndef SIM_DISCORD_DC_COMPRESS_H
#define SIM_DISCORD_DC_COMPRESS_H

#include <stddef.h>

#include "base/buf.h"

struct squeeze;

/* "zlib-stream" or "zstd-stream"; NULL when the name is neither. */
struct squeeze *squeeze_new(const char *name);
void squeeze_free(struct squeeze *s);
/* Adds the next message to out. */
void squeeze_add(struct squeeze *s, const char *bytes, size_t n, struct buf *out);
/* One message by itself in zlib's format, as "compress" in IDENTIFY asks for. */
void squeeze_alone(const char *bytes, size_t n, struct buf *out);

#endif
