/* Event streams as the HTML standard reads them, in pieces of any size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "net/sse_reader.h"

/* Events written down as "event|id|data;" so that streams can be compared. */
static void note(void *arg, const char *event, const char *id, const char *data, size_t n)
{
        struct buf *b = arg;

        buf_addf(b, "%s|%s|", event, id);
        buf_add(b, data, n);
        buf_addch(b, ';');
}

/* Feeds text in two pieces, or byte by byte when at is n. */
static void read_split(const char *text, size_t n, size_t at, struct buf *out)
{
        struct sse_reader r;

        sse_reader_init(&r, 1000, note, out);
        if (at < n) {
                assert_int_equal(sse_reader_feed(&r, text, at), 0);
                assert_int_equal(sse_reader_feed(&r, text + at, n - at), 0);
        } else {
                for (size_t i = 0; i < n; i++)
                        assert_int_equal(sse_reader_feed(&r, text + i, 1), 0);
        }
        sse_reader_release(&r);
}

static const struct {
        const char *stream, *events;
} rows[] = {
        { "data: hello\n\n", "||hello;" },
        { "data: a\ndata: b\n\n", "||a\nb;" },
        { "data: a\r\ndata: b\r\n\r\n", "||a\nb;" },
        { "data: a\rdata: b\r\r", "||a\nb;" },
        { "data: a\r\n\rdata: b\n\r\n", "||a;||b;" },
        { "event: ping\nid: 7\ndata: x\n\ndata: y\n\n", "ping|7|x;|7|y;" }, /* the id stays */
        { "id: 7\ndata: x\n\nid\ndata: y\n\n", "|7|x;||y;" },
        { ": comment\n\ndata: x\n: more\n\n", "||x;" },
        { "data\n\n", "||;" },
        { "data:\n\n", "||;" },
        { "data:a\n\ndata:  b\n\n", "||a;|| b;" },
        { "data: a: b\n\n", "||a: b;" },
        { "event: only\n\ndata: x\n\n", "||x;" }, /* no data, no event, no name left over */
        { "retry: 5\nunknown: z\ndata: x\n\n", "||x;" },
        { "DATA: x\n data: y\n\n", "" }, /* names are exact */
        { "data: unfinished", "" },
        { "data: unfinished\n", "" },
        { "\xef\xbb\xbf"
          "data: x\n\n",
          "||x;" },
        { "data: x\n\n\xef\xbb\xbf"
          "data: y\n\n",
          "||x;" }, /* only at the start */
        { "\n\n\n\r\r\n", "" },
        { "data: [DONE]\n\n", "||[DONE];" },
};

static void streams_are_read_as_the_standard_says(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct buf out;

                buf_init(&out, 0);
                read_split(rows[i].stream, strlen(rows[i].stream), 0, &out);
                assert_string_equal(out.data, rows[i].events);
                buf_release(&out);
        }
}

static void a_split_at_any_byte_changes_nothing(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                size_t n = strlen(rows[i].stream);

                for (size_t at = 0; at <= n; at++) {
                        struct buf out;

                        buf_init(&out, 0);
                        read_split(rows[i].stream, n, at, &out);
                        assert_string_equal(out.data, rows[i].events);
                        buf_release(&out);
                }
        }
}

static void a_nul_byte_is_data_but_never_an_id(void **state)
{
        static const char stream[] = "id: a\0b\ndata: x\0y\n\n";
        struct buf out;

        (void)state;
        buf_init(&out, 0);
        read_split(stream, sizeof(stream) - 1, 0, &out);
        assert_int_equal(out.len, 6);
        assert_memory_equal(out.data, "||x\0y;", 6);
        buf_release(&out);
}

static int feed_all(size_t max, const char *text)
{
        struct sse_reader r;
        struct buf out;
        int rc;

        buf_init(&out, 0);
        sse_reader_init(&r, max, note, &out);
        rc = sse_reader_feed(&r, text, strlen(text));
        if (rc)
                assert_int_equal(sse_reader_feed(&r, "\n\ndata: x\n\n", 11), -1);
        sse_reader_release(&r);
        buf_release(&out);
        return rc;
}

static void an_event_over_the_limit_fails_for_good(void **state)
{
        (void)state;
        assert_int_equal(feed_all(20, "data: 0123456789\n\n"), 0);
        assert_int_equal(feed_all(20, "data: 0123456789012345678901234567890\n\n"), -1);
        assert_int_equal(feed_all(20, "data: 0123456789\ndata: 0123456789\n"), -1);
        assert_int_equal(feed_all(20, ": a comment without an end, longer than the limit"), -1);
        assert_int_equal(feed_all(20, "data: 0123456789\n\ndata: 0123456789\n\n"), 0);
}

static void the_wish_to_reconnect_later_is_read(void **state)
{
        static const struct {
                const char *text;
                int64_t ms;
        } wishes[] = { { "retry: 300\n", 300 },    { "data: x\n\n", -1 },
                       { "retry: 3s\n", -1 },      { "retry:\n", -1 },
                       { "retry: 0\nid: 1\n", 0 }, { "retry: 99999999999999\n", -1 } };

        (void)state;
        for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
                struct sse_reader r;
                struct buf out;

                buf_init(&out, 0);
                sse_reader_init(&r, 1000, note, &out);
                assert_int_equal(sse_reader_feed(&r, wishes[i].text, strlen(wishes[i].text)), 0);
                assert_int_equal(r.retry_ms, wishes[i].ms);
                sse_reader_release(&r);
                buf_release(&out);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_wish_to_reconnect_later_is_read),
                cmocka_unit_test(streams_are_read_as_the_standard_says),
                cmocka_unit_test(a_split_at_any_byte_changes_nothing),
                cmocka_unit_test(a_nul_byte_is_data_but_never_an_id),
                cmocka_unit_test(an_event_over_the_limit_fails_for_good),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
