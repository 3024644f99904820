#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/breaker.h"

static const struct breaker_limits limits = { .failures = 3, .pause_ms = 1000 };

static enum breaker_change record(struct breaker *b, enum error_kind kind, int64_t now_ms)
{
        enum breaker_pass pass = breaker_admit(b, now_ms);

        assert_true(pass != BREAKER_REFUSED);
        return breaker_record(b, &limits, pass, kind, now_ms);
}

static void the_circuit_opens_after_failures_in_a_row(void **state)
{
        struct breaker b = { 0 };

        (void)state;
        record(&b, ERR_NET, 0);
        record(&b, ERR_NET, 0);
        record(&b, ERR_NONE, 0);
        record(&b, ERR_NET, 0);
        record(&b, ERR_TIMEOUT, 0);
        assert_false(breaker_blocks(&b, 0));
        assert_int_equal(record(&b, ERR_PROTOCOL, 0), BREAKER_OPENED);
        assert_true(breaker_blocks(&b, 999));
        assert_int_equal(breaker_admit(&b, 999), BREAKER_REFUSED);
}

static void bad_requests_do_not_count_as_failures(void **state)
{
        struct breaker b = { 0 };

        (void)state;
        for (int i = 0; i < 20; i++)
                assert_int_equal(record(&b, i % 2 ? ERR_INVALID : ERR_CANCELLED, 0), BREAKER_SAME);
        assert_false(breaker_blocks(&b, 0));
}

static void one_probe_is_admitted_after_the_pause(void **state)
{
        struct breaker b = { 0 };

        (void)state;
        for (int i = 0; i < 3; i++)
                record(&b, ERR_NET, 0);
        assert_true(b.until_ms >= 1000 && b.until_ms <= 1250);
        assert_int_equal(breaker_admit(&b, 1250), BREAKER_PROBES);
        assert_int_equal(breaker_admit(&b, 1250), BREAKER_REFUSED);
        assert_int_equal(breaker_record(&b, &limits, BREAKER_PROBES, ERR_NONE, 1300),
                         BREAKER_RECOVERED);
        assert_int_equal(breaker_admit(&b, 1300), BREAKER_PASSED);
        assert_int_equal(breaker_admit(&b, 1300), BREAKER_PASSED);
}

static void failed_probes_double_the_pause_up_to_eight_times(void **state)
{
        struct breaker b = { 0 };
        int64_t now_ms = 0;

        (void)state;
        for (int i = 0; i < 3; i++)
                record(&b, ERR_NET, 0);
        for (int i = 1; i < 10; i++) {
                int64_t pause = 1000 * (i < 3 ? 1 << i : 8);

                now_ms = b.until_ms;
                assert_int_equal(record(&b, ERR_NET, now_ms), BREAKER_SAME);
                assert_true(b.until_ms - now_ms >= pause &&
                            b.until_ms - now_ms <= pause + pause / 4);
        }
        now_ms = b.until_ms;
        assert_int_equal(record(&b, ERR_NONE, now_ms), BREAKER_RECOVERED);
        for (int i = 0; i < 3; i++)
                record(&b, ERR_NET, now_ms);
        assert_true(b.until_ms - now_ms <= 1250); /* from the beginning */
}

static void a_cancelled_probe_admits_the_next_one(void **state)
{
        struct breaker b = { 0 };

        (void)state;
        for (int i = 0; i < 3; i++)
                record(&b, ERR_NET, 0);
        assert_int_equal(breaker_admit(&b, 2000), BREAKER_PROBES);
        breaker_forget(&b, BREAKER_PROBES);
        assert_int_equal(breaker_admit(&b, 2000), BREAKER_PROBES);
}

static void turns_admitted_before_it_opened_do_not_settle_the_probe(void **state)
{
        struct breaker b = { 0 };
        int64_t until_ms;

        (void)state;
        for (int i = 0; i < 3; i++)
                record(&b, ERR_NET, 0);
        assert_int_equal(breaker_admit(&b, 2000), BREAKER_PROBES);
        until_ms = b.until_ms;
        breaker_forget(&b, BREAKER_PASSED);
        assert_int_equal(breaker_record(&b, &limits, BREAKER_PASSED, ERR_CANCELLED, 2000),
                         BREAKER_SAME);
        assert_int_equal(breaker_record(&b, &limits, BREAKER_PASSED, ERR_NET, 2000), BREAKER_SAME);
        /* the probe is still under way */
        assert_int_equal(breaker_admit(&b, 2000), BREAKER_REFUSED);
        assert_int_equal(b.until_ms, until_ms);
        assert_int_equal(breaker_record(&b, &limits, BREAKER_PASSED, ERR_NONE, 2000),
                         BREAKER_RECOVERED);
        assert_int_equal(breaker_admit(&b, 2000), BREAKER_PASSED);
}

static void a_limit_of_zero_never_opens_the_circuit(void **state)
{
        static const struct breaker_limits never = { .pause_ms = 1000 };
        struct breaker b = { 0 };

        (void)state;
        for (int i = 0; i < 100; i++)
                breaker_record(&b, &never, BREAKER_PASSED, ERR_NET, i);
        assert_false(breaker_blocks(&b, 100));
        assert_int_equal(b.opened, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_circuit_opens_after_failures_in_a_row),
                cmocka_unit_test(bad_requests_do_not_count_as_failures),
                cmocka_unit_test(one_probe_is_admitted_after_the_pause),
                cmocka_unit_test(failed_probes_double_the_pause_up_to_eight_times),
                cmocka_unit_test(a_cancelled_probe_admits_the_next_one),
                cmocka_unit_test(turns_admitted_before_it_opened_do_not_settle_the_probe),
                cmocka_unit_test(a_limit_of_zero_never_opens_the_circuit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
