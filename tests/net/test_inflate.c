/* Streams as Discord compresses them: one context for a connection, many messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "net/inflate.h"

#define CAP ((size_t)1 << 20)

/* The sender's side of either kind. */
struct packer {
        z_stream zlib;
        ZSTD_CStream *zstd;
        unsigned char out[(size_t)2 << 20];
        size_t n;
};

static void pack(struct packer *p, enum inflate_kind kind, const char *text, size_t n)
{
        if (kind == INFLATE_ZLIB) {
                p->zlib.next_in = (Bytef *)(uintptr_t)text;
                p->zlib.avail_in = (uInt)n;
                p->zlib.next_out = p->out;
                p->zlib.avail_out = sizeof(p->out);
                assert_int_equal(deflate(&p->zlib, Z_SYNC_FLUSH), Z_OK);
                p->n = sizeof(p->out) - p->zlib.avail_out;
        } else {
                ZSTD_inBuffer in = { text, n, 0 };
                ZSTD_outBuffer out = { p->out, sizeof(p->out), 0 };

                assert_int_equal(ZSTD_compressStream2(p->zstd, &out, &in, ZSTD_e_flush), 0);
                p->n = out.pos;
        }
}

static struct packer *packer_new(void)
{
        struct packer *p = mem_zalloc(sizeof(*p));

        deflateInit(&p->zlib, Z_DEFAULT_COMPRESSION);
        p->zstd = ZSTD_createCStream();
        return p;
}

static void packer_free(struct packer *p)
{
        deflateEnd(&p->zlib);
        ZSTD_freeCStream(p->zstd);
        free(p);
}

static const enum inflate_kind kinds[] = { INFLATE_ZLIB, INFLATE_ZSTD };

static void messages_of_one_stream_are_separated(void **state)
{
        (void)state;
        for (size_t k = 0; k < COUNT(kinds); k++) {
                struct packer *p = packer_new();
                struct inflate *z = inflate_new(kinds[k]);
                struct buf out;

                buf_init(&out, CAP);
                for (int i = 0; i < 50; i++) {
                        char *text = mem_printf(
                                "{\"op\":0,\"s\":%d,\"t\":\"MESSAGE_CREATE\",\"d\":{}}", i);

                        pack(p, kinds[k], text, strlen(text));
                        buf_clear(&out);
                        assert_int_equal(inflate_feed(z, (char *)p->out, p->n, &out, NULL), 1);
                        assert_string_equal(out.data, text);
                        free(text);
                }
                buf_release(&out);
                inflate_free(z);
                packer_free(p);
        }
}

static void a_zlib_message_may_come_in_pieces(void **state)
{
        struct packer *p = packer_new();
        struct inflate *z = inflate_new(INFLATE_ZLIB);
        struct buf out;

        (void)state;
        buf_init(&out, CAP);
        pack(p, INFLATE_ZLIB, "hello hello hello", 17);
        for (size_t i = 0; i + 4 < p->n; i++)
                assert_int_equal(inflate_feed(z, (char *)p->out + i, 1, &out, NULL), 0);
        assert_int_equal(inflate_feed(z, (char *)p->out + p->n - 4, 4, &out, NULL), 1);
        assert_string_equal(out.data, "hello hello hello");
        buf_release(&out);
        inflate_free(z);
        packer_free(p);
}

/* A few kilobytes that become more than the cap are refused; exactly the cap is fine. */
static void the_cap_is_exact(void **state)
{
        char *zeros = mem_zalloc(CAP + 1);

        (void)state;
        for (size_t k = 0; k < COUNT(kinds); k++) {
                for (size_t more = 0; more < 2; more++) {
                        struct packer *p = packer_new();
                        struct inflate *z = inflate_new(kinds[k]);
                        struct error err = { 0 };
                        struct buf out;

                        buf_init(&out, CAP);
                        pack(p, kinds[k], zeros, CAP + more);
                        assert_int_equal(inflate_feed(z, (char *)p->out, p->n, &out, &err),
                                         more ? -1 : 1);
                        assert_int_equal(err.kind, more ? ERR_LIMIT : ERR_NONE);
                        assert_int_equal(out.len, CAP);
                        buf_release(&out);
                        inflate_free(z);
                        packer_free(p);
                }
        }
        free(zeros);
}

static void damaged_streams_are_errors(void **state)
{
        (void)state;
        for (size_t k = 0; k < COUNT(kinds); k++) {
                struct inflate *z = inflate_new(kinds[k]);
                struct error err = { 0 };
                struct buf out;

                buf_init(&out, CAP);
                assert_int_equal(inflate_feed(z, "this is no stream", 17, &out, &err), -1);
                assert_int_equal(err.kind, ERR_PROTOCOL);
                buf_release(&out);
                inflate_free(z);
        }
}

static void a_zstd_window_beyond_the_cap_is_refused(void **state)
{
        struct packer *p = packer_new();
        struct inflate *z = inflate_new(INFLATE_ZSTD);
        struct error err = { 0 };
        struct buf out;

        (void)state;
        ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_windowLog, 26);
        pack(p, INFLATE_ZSTD, "hello", 5);
        buf_init(&out, CAP);
        assert_int_equal(inflate_feed(z, (char *)p->out, p->n, &out, &err), -1);
        buf_release(&out);
        inflate_free(z);
        packer_free(p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(messages_of_one_stream_are_separated),
                cmocka_unit_test(a_zlib_message_may_come_in_pieces),
                cmocka_unit_test(the_cap_is_exact),
                cmocka_unit_test(damaged_streams_are_errors),
                cmocka_unit_test(a_zstd_window_beyond_the_cap_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
