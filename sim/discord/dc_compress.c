#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "sim/discord/dc_session.h"

#define PIECE 65536

struct compressor {
        bool zstd;
        z_stream z;
        ZSTD_CCtx *cctx;
};

struct compressor *dc_compress_new(const char *name)
{
        struct compressor *s;

        if (strcmp(name, "zlib-stream") != 0 && strcmp(name, "zstd-stream") != 0)
                return NULL;
        s = mem_zalloc(sizeof(*s));
        s->zstd = strcmp(name, "zstd-stream") == 0;
        if (s->zstd)
                s->cctx = ZSTD_createCCtx();
        else
                deflateInit(&s->z, Z_DEFAULT_COMPRESSION);
        return s;
}

void dc_compress_free(struct compressor *s)
{
        if (!s)
                return;
        if (s->zstd)
                ZSTD_freeCCtx(s->cctx);
        else
                deflateEnd(&s->z);
        free(s);
}

static void add_zstd(struct compressor *s, const char *bytes, size_t n, struct buf *out)
{
        ZSTD_inBuffer in = { bytes, n, 0 };
        size_t left;

        do {
                ZSTD_outBuffer room = { buf_reserve(out, PIECE), PIECE, 0 };

                left = ZSTD_compressStream2(s->cctx, &room, &in, ZSTD_e_flush);
                buf_grew(out, room.pos);
        } while (left > 0 && !ZSTD_isError(left));
}

static void run_deflate(z_stream *z, const char *bytes, size_t n, int flush, struct buf *out)
{
        z->next_in = (Bytef *)(uintptr_t)bytes;
        z->avail_in = (uInt)n;
        do {
                z->next_out = (Bytef *)buf_reserve(out, PIECE);
                z->avail_out = PIECE;
                deflate(z, flush);
                buf_grew(out, PIECE - z->avail_out);
        } while (z->avail_out == 0);
}

void dc_compress_add(struct compressor *s, const char *bytes, size_t n, struct buf *out)
{
        if (s->zstd)
                add_zstd(s, bytes, n, out);
        else
                run_deflate(&s->z, bytes, n, Z_SYNC_FLUSH, out);
}

void dc_compress_alone(const char *bytes, size_t n, struct buf *out)
{
        z_stream z = { 0 };

        deflateInit(&z, Z_DEFAULT_COMPRESSION);
        run_deflate(&z, bytes, n, Z_FINISH, out);
        deflateEnd(&z);
}
