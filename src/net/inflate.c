#include "net/inflate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"

#define PIECE       ((size_t)32 << 10)
#define WINDOW_LOG  23 /* 8 MiB: enough for the highest ordinary level of zstd */
#define FEED_MAX    ((size_t)1 << 30)
#define SUFFIX      "\x00\x00\xff\xff"
#define SUFFIX_SIZE 4

struct inflate {
        enum inflate_kind kind;
        z_stream zlib;
        ZSTD_DStream *zstd;
};

struct inflate *inflate_new(enum inflate_kind kind)
{
        struct inflate *z = mem_zalloc(sizeof(*z));

        z->kind = kind;
        if (kind == INFLATE_ZLIB) {
                if (inflateInit(&z->zlib) != Z_OK)
                        abort(); /* out of memory */
                return z;
        }
        z->zstd = ZSTD_createDStream();
        if (!z->zstd)
                abort();
        ZSTD_DCtx_setParameter(z->zstd, ZSTD_d_windowLogMax, WINDOW_LOG);
        return z;
}

void inflate_free(struct inflate *z)
{
        if (!z)
                return;
        if (z->kind == INFLATE_ZLIB)
                inflateEnd(&z->zlib);
        else
                ZSTD_freeDStream(z->zstd);
        free(z);
}

struct input {
        const char *bytes;
        size_t n;
};

/* Fills at most `space` bytes and returns how many; -1: the stream is broken. So does pour_zstd. */
static ssize_t pour_zlib(struct inflate *z, struct input *in, char *out, size_t space,
                         struct error *err)
{
        int rc;

        z->zlib.next_in = (Bytef *)(uintptr_t)in->bytes;
        z->zlib.avail_in = (uInt)in->n;
        z->zlib.next_out = (Bytef *)out;
        z->zlib.avail_out = (uInt)space;
        rc = inflate(&z->zlib, Z_SYNC_FLUSH);
        if (rc == Z_STREAM_END)
                return error_set(err, ERR_PROTOCOL, "the compressed stream ended");
        if (rc != Z_OK && rc != Z_BUF_ERROR)
                return error_set(err, ERR_PROTOCOL, "the compressed stream is damaged: %s",
                                 z->zlib.msg ? z->zlib.msg : zError(rc));
        *in = (struct input){ (const char *)z->zlib.next_in, z->zlib.avail_in };
        return (ssize_t)(space - z->zlib.avail_out);
}

/* A frame does not end with the message, so the hint about further input says nothing. */
static ssize_t pour_zstd(struct inflate *z, struct input *in, char *out, size_t space,
                         struct error *err)
{
        ZSTD_inBuffer from = { in->bytes, in->n, 0 };
        ZSTD_outBuffer to = { out, space, 0 };
        size_t rc = ZSTD_decompressStream(z->zstd, &to, &from);

        if (ZSTD_isError(rc))
                return error_set(err, ERR_PROTOCOL, "the compressed stream is damaged: %s",
                                 ZSTD_getErrorName(rc));
        *in = (struct input){ in->bytes + from.pos, in->n - from.pos };
        return (ssize_t)to.pos;
}

static int pour_all(struct inflate *z, struct input in, struct buf *out, struct error *err)
{
        size_t space;
        ssize_t made;

        do {
                char spare, *at = &spare;

                space = PIECE;
                if (out->max && out->max - out->len < PIECE)
                        space = out->max - out->len;
                if (space > 0)
                        at = buf_reserve(out, space);
                else
                        space = 1; /* at the cap: a single byte more is too much */
                made = z->kind == INFLATE_ZLIB ? pour_zlib(z, &in, at, space, err)
                                               : pour_zstd(z, &in, at, space, err);
                if (made < 0)
                        return -1;
                if (made > 0 && at == &spare)
                        return error_set(err, ERR_LIMIT,
                                         "a compressed message becomes larger than %zu bytes",
                                         out->max);
                buf_grew(out, (size_t)made);
        } while ((size_t)made == space || in.n > 0);
        return 0;
}

int inflate_feed(struct inflate *z, const char *bytes, size_t n, struct buf *out, struct error *err)
{
        if (n > FEED_MAX)
                return error_set(err, ERR_LIMIT, "a compressed message has %zu bytes", n);
        if (pour_all(z, (struct input){ bytes, n }, out, err) < 0)
                return -1;
        if (z->kind == INFLATE_ZSTD)
                return 1;
        return n >= SUFFIX_SIZE && memcmp(bytes + n - SUFFIX_SIZE, SUFFIX, SUFFIX_SIZE) == 0;
}
