#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"

#include <stdlib.h>

static void a_new_buf_is_an_empty_string(void **state)
{
        struct buf b;

        (void)state;
        buf_init(&b, 0);
        assert_string_equal(b.data, "");
        buf_clear(&b);
        buf_truncate(&b, 0);
        buf_consume(&b, 5);
        assert_int_equal(b.len, 0);
        buf_release(&b);
}

static void text_is_added_and_stays_terminated(void **state)
{
        struct buf b;

        (void)state;
        buf_init(&b, 0);
        for (int i = 0; i < 1000; i++)
                assert_int_equal(buf_addf(&b, "%d,", i % 10), 0);
        assert_int_equal(b.len, 2000);
        assert_int_equal(b.data[2000], '\0');
        assert_memory_equal(b.data + 1990, "5,6,7,8,9,", 10);
        buf_consume(&b, 1998);
        assert_string_equal(b.data, "9,");
        buf_truncate(&b, 1);
        assert_string_equal(b.data, "9");
        buf_release(&b);
}

static void numbers_are_written_in_full(void **state)
{
        struct buf b;

        (void)state;
        buf_init(&b, 0);
        buf_addint(&b, 0);
        buf_addch(&b, ' ');
        buf_addint(&b, -7);
        buf_addch(&b, ' ');
        buf_addint(&b, INT64_MAX);
        buf_addch(&b, ' ');
        buf_addint(&b, INT64_MIN);
        assert_string_equal(b.data, "0 -7 9223372036854775807 -9223372036854775808");
        buf_release(&b);
}

static void formatted_text_beyond_the_maximum_adds_nothing(void **state)
{
        struct buf b;

        (void)state;
        buf_init(&b, 10);
        buf_addstr(&b, "before");
        assert_int_equal(buf_addf(&b, "%s", "longer than four"), -1);
        assert_string_equal(b.data, "before");
        assert_int_equal(buf_addf(&b, "%d", 1234), 0);
        assert_string_equal(b.data, "before1234");
        buf_release(&b);
}

static void text_beyond_the_maximum_is_not_added(void **state)
{
        struct buf b;

        (void)state;
        buf_init(&b, 8);
        assert_int_equal(buf_addstr(&b, "12345678"), 0);
        assert_false(b.overflow);
        assert_int_equal(buf_addch(&b, '9'), -1);
        assert_int_equal(buf_addf(&b, "%s", "9"), -1);
        assert_null(buf_reserve(&b, SIZE_MAX));
        assert_true(b.overflow);
        assert_string_equal(b.data, "12345678");
        buf_clear(&b);
        assert_false(b.overflow);
        assert_int_equal(buf_addstr(&b, "123"), 0);
        buf_release(&b);
}

static void taken_text_belongs_to_the_caller(void **state)
{
        struct buf b;
        char *text;

        (void)state;
        buf_init(&b, 0);
        text = buf_take(&b);
        assert_string_equal(text, "");
        free(text);
        buf_add(&b, "a\0b", 3);
        text = buf_take(&b);
        assert_memory_equal(text, "a\0b", 4);
        assert_int_equal(b.len, 0);
        free(text);
        buf_release(&b);
}

static void slices_compare_by_bytes_and_length(void **state)
{
        (void)state;
        assert_true(slice_is(slice_of("abc"), "abc"));
        assert_false(slice_is(slice_of("abc"), "ab"));
        assert_false(slice_is((struct slice){ "abc", 2 }, "abc"));
        assert_int_equal(slice_of(NULL).n, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_new_buf_is_an_empty_string),
                cmocka_unit_test(text_is_added_and_stays_terminated),
                cmocka_unit_test(numbers_are_written_in_full),
                cmocka_unit_test(formatted_text_beyond_the_maximum_adds_nothing),
                cmocka_unit_test(text_beyond_the_maximum_is_not_added),
                cmocka_unit_test(taken_text_belongs_to_the_caller),
                cmocka_unit_test(slices_compare_by_bytes_and_length),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
