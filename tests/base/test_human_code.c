/* Codes that people read aloud and type. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/human_code.h"

static void a_code_is_read_as_people_write_it(void **state)
{
        char code[CODE_SIZE], shown[CODE_SHOWN_SIZE], read[CODE_SIZE];

        (void)state;
        for (int i = 0; i < 100; i++) {
                code_new(code);
                assert_int_equal(strlen(code), 8);
                assert_int_equal(strspn(code, "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"), 8);
                assert_true(code_read(code_show(code, shown), read));
                assert_string_equal(read, code);
        }
        assert_true(code_read(" ab-cd 23 45 ", read));
        assert_string_equal(read, "ABCD2345");
}

static void what_can_be_no_code_is_refused(void **state)
{
        static const char *const wrong[] = { "",
                                             "ABCD-234",
                                             "ABCD-23456",
                                             "ABCD-2340",
                                             "ABCD-234I",
                                             "ABCD_2345",
                                             "\xc3\x84"
                                             "BCD-2345" };
        char read[CODE_SIZE];

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                assert_false(code_read(wrong[i], read));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_code_is_read_as_people_write_it),
                cmocka_unit_test(what_can_be_no_code_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
