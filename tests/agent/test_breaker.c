#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/breaker.h"

static const struct breaker_limits limits = { .failures = 3, .pause_ms = 1000 };

static enum breaker_change tell(struct breaker *b, enum error_kind kind, int64_t now_ms)
{
        enum breaker_pass pass = breaker_admit(b, now_ms);

        assert_true(pass != BREAKER_REFUSED);
        return breaker_record(b, &limits, pass, kind, now_ms);
}

static void it_opens_after_failures_in_a_row_and_not_before(void **state)
{
        struct breaker b = { 0 };

        (void)state;
        tell(&b, ERR_NET, 0);
        tell(&b, ERR_NET, 0);
        tell(&b, ERR_NONE, 0);
        tell(&b, ERR_NET, 0);
        tell(&b, ERR_TIMEOUT, 0);
        assert_false(breaker_blocks(&b, 0));
        assert_int_equal(tell(&b, ERR_PROTOCOL, 0), BREAKER_OPENED);
        assert_true(breaker_blocks(&b, 999));
        assert_int_equal(breaker_admit(&b, 999), BREAKER_REFUSED);
}

static void mistakes_of_the_request_do_not_count(void **state)
{
        struct breaker b = { 0 };

        (void)state;
        for (int i = 0; i < 20; i++)
                assert_int_equal(tell(&b, i % 2 ? ERR_INVALID : ERR_CANCELLED, 0), BREAKER_SAME);
        assert_false(breaker_blocks(&b, 0));
}

static void after_the_pause_one_probe_is_let_through(void **state)
{
        struct breaker b = { 0 };

        (void)state;
        for (int i = 0; i < 3; i++)
                tell(&b, ERR_NET, 0);
        assert_true(b.until_ms >= 1000 && b.until_ms <= 1250);
        assert_int_equal(breaker_admit(&b, 1250), BREAKER_PROBES);
        assert_int_equal(breaker_admit(&b, 1250), BREAKER_REFUSED);
        assert_int_equal(breaker_record(&b, &limits, BREAKER_PROBES, ERR_NONE, 1300),
                         BREAKER_RECOVERED);
        assert_int_equal(breaker_admit(&b, 1300), BREAKER_PASSED);
        assert_int_equal(breaker_admit(&b, 1300), BREAKER_PASSED);
}

static void a_probe_that_fails_makes_the_pause_longer_up_to_eight_times(void **state)
{
        struct breaker b = { 0 };
        int64_t now_ms = 0;

        (void)state;
        for (int i = 0; i < 3; i++)
                tell(&b, ERR_NET, 0);
        for (int i = 1; i < 10; i++) {
                int64_t pause = 1000 * (i < 3 ? 1 << i : 8);

                now_ms = b.until_ms;
                assert_int_equal(tell(&b, ERR_NET, now_ms), BREAKER_SAME);
                assert_true(b.until_ms - now_ms >= pause &&
                            b.until_ms - now_ms <= pause + pause / 4);
        }
}

static void a_probe_that_was_cancelled_lets_the_next_one_through(void **state)
{
        struct breaker b = { 0 };

        (void)state;
        for (int i = 0; i < 3; i++)
                tell(&b, ERR_NET, 0);
        assert_int_equal(breaker_admit(&b, 2000), BREAKER_PROBES);
        breaker_forget(&b, BREAKER_PROBES);
        assert_int_equal(breaker_admit(&b, 2000), BREAKER_PROBES);
}

static void who_was_under_way_when_it_opened_does_not_speak_for_the_probe(void **state)
{
        struct breaker b = { 0 };
        int64_t until_ms;

        (void)state;
        for (int i = 0; i < 3; i++)
                tell(&b, ERR_NET, 0);
        assert_int_equal(breaker_admit(&b, 2000), BREAKER_PROBES);
        until_ms = b.until_ms;
        breaker_forget(&b, BREAKER_PASSED);
        assert_int_equal(breaker_record(&b, &limits, BREAKER_PASSED, ERR_CANCELLED, 2000),
                         BREAKER_SAME);
        assert_int_equal(breaker_record(&b, &limits, BREAKER_PASSED, ERR_NET, 2000), BREAKER_SAME);
        /* the probe is still on its way */
        assert_int_equal(breaker_admit(&b, 2000), BREAKER_REFUSED);
        assert_int_equal(b.until_ms, until_ms);
        assert_int_equal(breaker_record(&b, &limits, BREAKER_PASSED, ERR_NONE, 2000),
                         BREAKER_RECOVERED);
        assert_int_equal(breaker_admit(&b, 2000), BREAKER_PASSED);
}

static void zero_failures_mean_never(void **state)
{
        static const struct breaker_limits never = { 0 };
        struct breaker b = { 0 };

        (void)state;
        for (int i = 0; i < 100; i++)
                breaker_record(&b, &never, BREAKER_PASSED, ERR_NET, i);
        assert_false(breaker_blocks(&b, 100));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_opens_after_failures_in_a_row_and_not_before),
                cmocka_unit_test(mistakes_of_the_request_do_not_count),
                cmocka_unit_test(after_the_pause_one_probe_is_let_through),
                cmocka_unit_test(a_probe_that_fails_makes_the_pause_longer_up_to_eight_times),
                cmocka_unit_test(a_probe_that_was_cancelled_lets_the_next_one_through),
                cmocka_unit_test(who_was_under_way_when_it_opened_does_not_speak_for_the_probe),
                cmocka_unit_test(zero_failures_mean_never),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
