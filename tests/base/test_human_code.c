#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/human_code.h"

static void a_code_is_read_as_people_type_it(void **state)
{
        char code[HUMAN_CODE_SIZE], shown[HUMAN_CODE_TEXT_SIZE], read[HUMAN_CODE_SIZE];

        (void)state;
        for (int i = 0; i < 100; i++) {
                human_code_new(code);
                assert_int_equal(strlen(code), 8);
                assert_int_equal(strspn(code, "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"), 8);
                assert_true(human_code_parse(human_code_format(code, shown), read));
                assert_string_equal(read, code);
        }
        assert_true(human_code_parse(" ab-cd 23 45 ", read));
        assert_string_equal(read, "ABCD2345");
}

static void malformed_codes_are_rejected(void **state)
{
        static const char *const wrong[] = { "",
                                             "ABCD-234",
                                             "ABCD-23456",
                                             "ABCD-2340",
                                             "ABCD-234I",
                                             "ABCD_2345",
                                             ("\xc3\x84"
                                              "BCD-2345") };
        char read[HUMAN_CODE_SIZE];

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                assert_false(human_code_parse(wrong[i], read));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_code_is_read_as_people_type_it),
                cmocka_unit_test(malformed_codes_are_rejected),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
