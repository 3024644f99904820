#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/mem.h"
#include "base/utf8.h"

/* Grapheme clusters; all but the first four have several code points. */
static const char *const clusters[] = {
        "a",
        "\xc3\xa9",         /* e with acute */
        "\xe2\x82\xac",     /* euro */
        "\xf0\x9f\x90\x89", /* dragon */
        "e\xcc\x81\xcc\xa3",
        "\r\n",
        "\xe2\x9d\xa4\xef\xb8\x8f",                         /* heart, variation selector */
        "\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd",                 /* thumb, skin tone */
        "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb",     /* woman, joiner, computer */
        "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa",                 /* flag of Germany */
        "1\xef\xb8\x8f\xe2\x83\xa3",                        /* keycap */
        "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab",             /* Hangul syllable from jamo */
        "\xe0\xa4\x95\xe0\xa5\x8d\xe2\x80\x8d\xe0\xa4\xb7", /* Devanagari conjunct */
};

static void lengths_differ_by_unit(void **state)
{
        static const struct {
                const char *text;
                size_t bytes, points, utf16;
        } rows[] = {
                { "", 0, 0, 0 },
                { "abc", 3, 3, 3 },
                { "\xc3\xa9", 2, 1, 1 },
                { "\xe2\x82\xac", 3, 1, 1 },
                { "\xf0\x9f\x90\x89", 4, 1, 2 },
                { "\xff\xf0\x9f", 3, 3, 3 },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                size_t n = strlen(rows[i].text);

                assert_int_equal(utf8_length(rows[i].text, n, UTF8_BYTES), rows[i].bytes);
                assert_int_equal(utf8_length(rows[i].text, n, UTF8_CODE_POINTS), rows[i].points);
                assert_int_equal(utf8_length(rows[i].text, n, UTF8_UTF16), rows[i].utf16);
        }
}

static void every_code_point_survives_the_round_trip(void **state)
{
        (void)state;
        for (uint32_t cp = 0; cp <= 0x110000; cp++) {
                bool good = cp <= 0x10ffff && (cp < 0xd800 || cp > 0xdfff);
                uint32_t back;
                char bytes[4];
                size_t n = utf8_encode(cp, bytes);

                assert_int_equal(utf8_decode(bytes, n, &back), n);
                assert_int_equal(back, good ? cp : 0xfffd);
                assert_true(n == 1 || !utf8_valid(bytes, n - 1));
        }
}

static void bad_sequences_are_invalid_byte_by_byte(void **state)
{
        static const char *const rows[] = {
                "\x80",
                "\xc0\x80",
                "\xc1\xbf",
                "\xe0\x80\x80",
                "\xed\xa0\x80",
                "\xf0\x80\x80\x80",
                "\xf4\x90\x80\x80",
                "\xf5\x80\x80\x80",
                "\xff",
                "\xc3",
                "\xe2\x82",
                "\xf0\x9f\x90",
        };
        uint32_t cp;

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                assert_false(utf8_valid(rows[i], strlen(rows[i])));
                assert_int_equal(utf8_decode(rows[i], strlen(rows[i]), &cp), 1);
                assert_int_equal(cp, 0xfffd);
        }
}

static void cleaning_replaces_bad_bytes_and_nul(void **state)
{
        char *clean = utf8_clean("a\0\xff\xc3\xa9\xe2", 6);

        (void)state;
        assert_string_equal(clean, "a\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd");
        free(clean);
        clean = utf8_clean("", 0);
        assert_string_equal(clean, "");
        free(clean);
}

static void one_cluster_is_kept_or_cut_at_a_code_point(void **state)
{
        const char *family = "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb";

        (void)state;
        assert_int_equal(utf8_prefix(family, 11, UTF8_UTF16, 5), 11);
        assert_int_equal(utf8_prefix(family, 11, UTF8_UTF16, 4), 7);
        assert_int_equal(utf8_prefix(family, 11, UTF8_UTF16, 1), 0);
        assert_int_equal(utf8_prefix(family, 11, UTF8_BYTES, 10), 7);
        assert_int_equal(utf8_prefix("abc", 3, UTF8_BYTES, 0), 0);
        assert_int_equal(utf8_prefix("abc", 3, UTF8_BYTES, SIZE_MAX), 3);
}

static void flags_are_cut_between_pairs(void **state)
{
        const char *flags = "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa\xf0\x9f\x87\xab\xf0\x9f\x87\xb7";

        (void)state;
        assert_int_equal(utf8_prefix(flags, 16, UTF8_CODE_POINTS, 3), 8);
        assert_int_equal(utf8_prefix(flags, 16, UTF8_CODE_POINTS, 2), 8);
        assert_int_equal(utf8_prefix(flags, 16, UTF8_CODE_POINTS, 4), 16);
}

static bool is_flag(size_t which)
{
        return strncmp(clusters[which], "\xf0\x9f\x87", 3) == 0;
}

/* Makes a text of whole clusters; ends[i]: one ends before byte i. */
static void random_text(struct buf *text, bool *ends)
{
        size_t count = 1 + (size_t)random() % 12, before = 0;

        for (size_t i = 0; i < count; i++) {
                size_t which = (size_t)random() % COUNT(clusters);

                /* jamo after jamo could join into one syllable; flags come in pairs */
                if (which == before && !is_flag(which))
                        which = 0;
                buf_addstr(text, clusters[which]);
                ends[text->len] = true;
                before = which;
        }
}

static void a_prefix_never_splits_a_cluster_and_is_the_longest(void **state)
{
        unsigned seed = (unsigned)id_random_below(UINT32_MAX);

        (void)state;
        print_message("seed %u\n", seed);
        srandom(seed);
        for (int round = 0; round < 3000; round++) {
                enum utf8_unit unit = (enum utf8_unit)(random() % 3);
                bool ends[256] = { true };
                struct buf text;
                size_t units, cut, longest = 0;

                buf_init(&text, 0);
                random_text(&text, ends);
                units = 12 + (size_t)random() % 40; /* the longest cluster fits */
                cut = utf8_prefix(text.data, text.len, unit, units);
                for (size_t i = 0; i <= text.len; i++) {
                        if (ends[i] && utf8_length(text.data, i, unit) <= units)
                                longest = i;
                }
                assert_int_equal(cut, longest);
                buf_release(&text);
        }
}

static void any_bytes_are_cut_within_the_limit(void **state)
{
        unsigned seed = (unsigned)id_random_below(UINT32_MAX);

        (void)state;
        print_message("seed %u\n", seed);
        srandom(seed);
        for (int round = 0; round < 3000; round++) {
                enum utf8_unit unit = (enum utf8_unit)(random() % 3);
                size_t n = (size_t)random() % 64, units = (size_t)random() % 40, cut;
                char bytes[64];

                id_random_bytes(bytes, n);
                cut = utf8_prefix(bytes, n, unit, units);
                assert_true(cut <= n);
                assert_true(utf8_length(bytes, cut, unit) <= units);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lengths_differ_by_unit),
                cmocka_unit_test(every_code_point_survives_the_round_trip),
                cmocka_unit_test(bad_sequences_are_invalid_byte_by_byte),
                cmocka_unit_test(cleaning_replaces_bad_bytes_and_nul),
                cmocka_unit_test(one_cluster_is_kept_or_cut_at_a_code_point),
                cmocka_unit_test(flags_are_cut_between_pairs),
                cmocka_unit_test(a_prefix_never_splits_a_cluster_and_is_the_longest),
                cmocka_unit_test(any_bytes_are_cut_within_the_limit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
