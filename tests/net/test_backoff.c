/* Delays between attempts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>

#include "base/mem.h"
#include "net/backoff.h"

static void the_delay_doubles_up_to_its_cap(void **state)
{
        static const int64_t expected[] = { 500, 1000, 2000, 4000, 8000, 10000, 10000 };

        (void)state;
        for (unsigned i = 0; i < COUNT(expected); i++)
                assert_int_equal(backoff_ms(i, 500, 10000), expected[i]);
        assert_int_equal(backoff_ms(UINT_MAX, 500, 10000), 10000);
        assert_int_equal(backoff_ms(3, 500, 100), 100);
}

/* A base of 0 means no delay, however often it fails. */
static void a_base_of_zero_never_waits(void **state)
{
        (void)state;
        assert_int_equal(backoff_ms(UINT_MAX, 0, 10000), 0);
        assert_int_equal(backoff_half_jitter_ms(5, 0, 10000), 0);
        assert_int_equal(backoff_full_jitter_ms(5, 0, 10000), 0);
}

static void jitter_stays_within_its_bounds(void **state)
{
        (void)state;
        for (int i = 0; i < 1000; i++) {
                assert_in_range(backoff_half_jitter_ms(2, 1000, 60000), 2000, 4000);
                assert_in_range(backoff_full_jitter_ms(2, 1000, 60000), 0, 4000);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_delay_doubles_up_to_its_cap),
                cmocka_unit_test(a_base_of_zero_never_waits),
                cmocka_unit_test(jitter_stays_within_its_bounds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
