/*
 * compressor: what a gateway connection sends, compressed as one stream.
 *
 * Each message ends in a flush, so that the receiver can read it before the next one comes.
 */
#ifndef SIM_DISCORD_DC_COMPRESS_H
#define SIM_DISCORD_DC_COMPRESS_H

#include <stddef.h>

#include "base/buf.h"

struct compressor;

/* "zlib-stream" or "zstd-stream"; NULL when the name is neither. */
struct compressor *dc_compress_new(const char *name);
void dc_compress_free(struct compressor *s);
/* Adds the next message to out. */
void dc_compress_add(struct compressor *s, const char *bytes, size_t n, struct buf *out);
/* One message by itself in zlib's format, as "compress" in IDENTIFY asks for. */
void dc_compress_alone(const char *bytes, size_t n, struct buf *out);

#endif
