#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdlib.h>

static void times_survive_the_round_trip(void **state)
{
        char iso[CLOCK_ISO_SIZE];
        int64_t back;

        (void)state;
        for (int i = 0; i < 1000; i++) {
                /* any instant from 1000 to 9999 */
                int64_t ms = (int64_t)id_random_below(284006476800000ULL) - 30610224000000LL;

                clock_iso(ms, iso);
                assert_int_equal(clock_parse_iso(iso, &back), 0);
                if (back != ms)
                        print_error("%s\n", iso);
                assert_true(back == ms);
        }
}

static void known_times_are_written_and_read(void **state)
{
        static const struct {
                const char *text;
                int64_t ms;
        } rows[] = {
                { "1970-01-01T00:00:00Z", 0 },
                { "1969-12-31T23:59:59.999Z", -1 },
                { "2000-02-29T12:00:00.5+01:00", 951822000500 },
                { "2000-02-29t06:30:00.123456789-0530", 951825600123 },
                { "2016-12-31 23:59:60z", 1483228800000 },
        };
        char iso[CLOCK_ISO_SIZE];
        int64_t ms;

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                assert_int_equal(clock_parse_iso(rows[i].text, &ms), 0);
                assert_true(ms == rows[i].ms);
        }
        assert_string_equal(clock_iso(-1, iso), "1969-12-31T23:59:59.999Z");
        assert_string_equal(clock_iso(INT64_MAX, iso), "9999-12-31T23:59:59.999Z");
}

static void malformed_times_are_rejected(void **state)
{
        static const char *const rows[] = {
                "",
                "now",
                "2024-01-01",
                "2024-01-01T00:00:00",
                "2024-13-01T00:00:00Z",
                "2024-02-30T00:00:00Z",
                "2023-02-29T00:00:00Z",
                "1900-02-29T00:00:00Z",
                "2024-04-31T00:00:00Z",
                "2024-01-00T00:00:00Z",
                "2024-01-01T24:00:00Z",
                "2024-01-01T00:00:00.Z",
                "2024-01-01T00:00:00Zx",
                "2024-01-01T00:00:00+1",
                "2024-01-01T00:00:00+25:00",
        };
        int64_t ms;

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                if (clock_parse_iso(rows[i], &ms) == 0)
                        fail_msg("accepted '%s'", rows[i]);
        }
}

static void spans_are_read(void **state)
{
        static const struct {
                const char *text;
                int64_t ms;
        } rows[] = {
                { "45s", 45000 },
                { "30m", 1800000 },
                { "2h", 7200000 },
                { "90d", 7776000000 },
        };
        static const char *const malformed[] = {
                "", "h", "2", "0h", "-2h", "2h ", "2hh", "1000000d"
        };
        int64_t ms;

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                assert_int_equal(clock_parse_span(rows[i].text, &ms), 0);
                assert_true(ms == rows[i].ms);
        }
        for (size_t i = 0; i < COUNT(malformed); i++)
                assert_int_equal(clock_parse_span(malformed[i], &ms), -1);
}

static void a_traceparent_is_taken_over_only_if_it_is_valid(void **state)
{
#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"
        static const char *const good[] = {
                "00-" TRACE "-" SPAN "-01",
                "00-" TRACE "-" SPAN "-00",
                "cc-" TRACE "-" SPAN "-01",
                "cc-" TRACE "-" SPAN "-01-what-comes-later",
        };
        static const char *const bad[] = {
                "",
                TRACE,
                "00-" TRACE "-" SPAN,
                "00-" TRACE "-" SPAN "-0",
                "00-" TRACE "-" SPAN "-012",
                "00-" TRACE "-" SPAN "-01-more",
                "ff-" TRACE "-" SPAN "-01",
                "0-" TRACE "-" SPAN "-001",
                "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
                "00-00000000000000000000000000000000-" SPAN "-01",
                "00-" TRACE "-0000000000000000-01",
                "00_" TRACE "-" SPAN "-01",
                "cc-" TRACE "-" SPAN "-01x",
        };
        char trace[ID_TRACE_SIZE];

        (void)state;
        for (size_t i = 0; i < COUNT(good); i++) {
                assert_true(id_trace_of_parent(good[i], trace));
                assert_string_equal(trace, TRACE);
        }
        for (size_t i = 0; i < COUNT(bad); i++) {
                if (id_trace_of_parent(bad[i], trace))
                        fail_msg("accepted '%s'", bad[i]);
        }
        assert_false(id_trace_of_parent(NULL, trace));
        assert_true(id_is_trace(TRACE));
        assert_false(id_is_trace("00000000000000000000000000000000"));
        assert_false(id_is_trace(SPAN));
}

static void the_monotonic_clock_never_goes_back(void **state)
{
        uint64_t before = clock_mono_ns();

        (void)state;
        for (int i = 0; i < 1000; i++) {
                uint64_t now = clock_mono_ns();

                assert_true(now >= before);
                before = now;
        }
}

static void trace_ids_are_unique_hex_in_time_order(void **state)
{
        char a[ID_TRACE_SIZE], b[ID_TRACE_SIZE], span[ID_SPAN_SIZE];

        (void)state;
        id_trace(a);
        id_trace(b);
        assert_int_equal(strlen(a), 32);
        assert_int_equal(strspn(a, "0123456789abcdef"), 32);
        assert_string_not_equal(a, b);
        assert_true(strncmp(a, b, 12) <= 0);
        assert_int_equal(strspn(id_span(span), "0123456789abcdef"), 16);
}

static void random_numbers_stay_below_their_limit(void **state)
{
        char text[41];

        (void)state;
        for (uint64_t below = 1; below < 200; below++)
                assert_true(id_random_below(below) < below);
        assert_true(id_random_below(UINT64_MAX) < UINT64_MAX);
        id_random_text(text, 40);
        assert_int_equal(
                strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"), 40);
}

static void an_error_is_a_kind_and_a_sentence(void **state)
{
        struct error err = { 0 };

        (void)state;
        assert_int_equal(error_set(&err, ERR_NET, "cannot reach '%s'", "host"), -1);
        assert_int_equal(error_prefix(&err, "adapter '%s'", "tg"), -1);
        assert_int_equal(err.kind, ERR_NET);
        assert_string_equal(err.text, "adapter 'tg': cannot reach 'host'");
        assert_string_equal(error_kind_name(err.kind), "net");
        error_clear(&err);
        assert_int_equal(err.kind, ERR_NONE);
        assert_string_equal(err.text, "");
        assert_int_equal(error_set(NULL, ERR_IO, "nobody listens"), -1);
        assert_int_equal(error_prefix(NULL, "nobody"), -1);
}

static void a_long_error_ends_at_a_whole_character(void **state)
{
        struct error err;
        char text[2001];

        (void)state;
        for (size_t i = 0; i < 2000; i += 4)
                memcpy(text + i, "\xf0\x9f\x90\x89", 4);
        text[2000] = '\0';
        for (int shift = 0; shift < 4; shift++) {
                error_set(&err, ERR_IO, "%.*s%s", shift, "abc", text);
                assert_true(utf8_valid(err.text, strlen(err.text)));
                assert_true(strlen(err.text) > sizeof(err.text) - 10);
                error_prefix(&err, "%.*s%s", shift, "abc", text);
                assert_true(utf8_valid(err.text, strlen(err.text)));
        }
}

static void allocation_gives_usable_memory(void **state)
{
        char *p = mem_zalloc(16), *q = mem_alloc(0), *s = mem_printf("%d-%s", 7, "x");
        int *a = mem_array(4, sizeof(*a)), *d = mem_dup(a, 4 * sizeof(*a));

        (void)state;
        assert_int_equal(p[15], 0);
        assert_non_null(q);
        assert_string_equal(s, "7-x");
        assert_int_equal(d[3], 0);
        assert_null(mem_strdup(NULL));
        free(p);
        free(q);
        free(s);
        free(a);
        free(d);
}

static void a_struct_is_copied_with_its_strings(void **state)
{
        struct pair {
                const char *name, *none;
                int n;
        } pair = { .name = "x", .n = 7 }, *copy;
        const size_t offsets[] = { offsetof(struct pair, name), offsetof(struct pair, none) };

        (void)state;
        copy = mem_dup_struct(&pair, sizeof(pair), offsets, COUNT(offsets));
        assert_string_equal(copy->name, "x");
        assert_ptr_not_equal(copy->name, pair.name);
        assert_null(copy->none);
        assert_int_equal(copy->n, 7);
        free(copy);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(times_survive_the_round_trip),
                cmocka_unit_test(known_times_are_written_and_read),
                cmocka_unit_test(malformed_times_are_rejected),
                cmocka_unit_test(spans_are_read),
                cmocka_unit_test(a_traceparent_is_taken_over_only_if_it_is_valid),
                cmocka_unit_test(the_monotonic_clock_never_goes_back),
                cmocka_unit_test(trace_ids_are_unique_hex_in_time_order),
                cmocka_unit_test(random_numbers_stay_below_their_limit),
                cmocka_unit_test(an_error_is_a_kind_and_a_sentence),
                cmocka_unit_test(a_long_error_ends_at_a_whole_character),
                cmocka_unit_test(allocation_gives_usable_memory),
                cmocka_unit_test(a_struct_is_copied_with_its_strings),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
