/* The rate limit and patterns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dispatch/limits/limits.h"
#include "dispatch/rules/pattern.h"

static const struct rate_key ann = { "tg", "c", "ann" };
static const struct turn_rate two_a_minute = { 2, 60 };

static bool take(struct rate_limits *l, const struct rate_key *who, struct turn_rate rate,
                 int64_t now_ms)
{
        if (rate_limit_wait_ms(l, who, rate, now_ms) > 0)
                return false;
        rate_limit_count(l, who, rate, now_ms);
        return true;
}

static void a_turn_is_free_when_the_oldest_leaves_the_window(void **state)
{
        struct rate_limits *l = rate_limits_new(10);

        (void)state;
        assert_true(take(l, &ann, two_a_minute, 1000));
        assert_true(take(l, &ann, two_a_minute, 31000));
        assert_int_equal(rate_limit_wait_ms(l, &ann, two_a_minute, 41000), 20000);
        assert_false(take(l, &ann, two_a_minute, 60999));
        assert_true(take(l, &ann, two_a_minute, 61000));
        assert_int_equal(rate_limit_wait_ms(l, &ann, two_a_minute, 61000), 30000);
        rate_limits_free(l);
}

static void no_limit_counts_nothing(void **state)
{
        struct rate_limits *l = rate_limits_new(10);
        struct turn_rate none = { 0, 60 };

        (void)state;
        for (int i = 0; i < 1000; i++)
                assert_true(take(l, &ann, none, 1000));
        assert_int_equal(rate_limit_size(l), 0);
        rate_limits_free(l);
}

static void a_clock_set_back_blocks_no_one(void **state)
{
        struct rate_limits *l = rate_limits_new(10);

        (void)state;
        assert_true(take(l, &ann, two_a_minute, 5000000));
        assert_true(take(l, &ann, two_a_minute, 5000000));
        assert_true(take(l, &ann, two_a_minute, 1000));
        rate_limits_free(l);
}

static void a_notice_is_due_once_in_a_window(void **state)
{
        struct rate_limits *l = rate_limits_new(10);

        (void)state;
        assert_true(rate_limit_claim_notice(l, &ann, two_a_minute, 1000));
        assert_false(rate_limit_claim_notice(l, &ann, two_a_minute, 60999));
        assert_true(rate_limit_claim_notice(l, &ann, two_a_minute, 61000));
        rate_limits_free(l);
}

static void a_short_window_keeps_times_for_a_long_one(void **state)
{
        struct rate_limits *l = rate_limits_new(10);
        struct turn_rate hour = { 3, 3600 }, second = { 100, 1 };

        (void)state;
        assert_true(take(l, &ann, hour, 1000));
        assert_true(take(l, &ann, second, 10000));
        assert_true(take(l, &ann, second, 20000));
        assert_false(take(l, &ann, hour, 30000));
        rate_limits_free(l);
}

static void the_quietest_sender_is_evicted(void **state)
{
        struct rate_limits *l = rate_limits_new(100);
        struct turn_rate one = { 1, 60 };
        char name[32];

        (void)state;
        for (int i = 0; i < 5000; i++) {
                struct rate_key who = { "tg", "c", name };

                snprintf(name, sizeof(name), "%d", i);
                assert_true(take(l, &who, one, 1000 + i));
                assert_true(rate_limit_size(l) <= 100);
        }
        assert_false(take(l, &(struct rate_key){ "tg", "c", "4999" }, one, 7000));
        assert_true(take(l, &(struct rate_key){ "tg", "c", "1" }, one, 7000));
        rate_limits_free(l);
}

static void a_sender_quiet_for_a_window_is_evicted(void **state)
{
        struct rate_limits *l = rate_limits_new(100);

        (void)state;
        assert_true(take(l, &ann, two_a_minute, 1000));
        assert_true(take(l, &(struct rate_key){ "tg", "c", NULL }, two_a_minute, 61000));
        assert_int_equal(rate_limit_size(l), 1);
        rate_limits_free(l);
}

static void the_times_of_one_sender_are_bounded(void **state)
{
        struct rate_limits *l = rate_limits_new(100);
        struct turn_rate many = { 1000, 86400 };
        int64_t now;

        (void)state;
        for (now = 1000; now < 3000; now++)
                rate_limit_count(l, &ann, many, now);
        assert_int_equal(rate_limit_wait_ms(l, &ann, many, now), 2000 + 86400000 - now);
        many.turns++;
        assert_int_equal(rate_limit_wait_ms(l, &ann, many, now), 0);
        rate_limits_free(l);
}

static void a_pattern_is_found_or_not(void **state)
{
        struct error err;
        struct pattern *p = pattern_new("\\bgrüße\\b", &err);

        (void)state;
        assert_non_null(p);
        assert_int_equal(pattern_find(p, "Viele GRÜSSE"), 0);
        assert_int_equal(pattern_find(p, "Viele GRÜßE!"), 1);
        assert_int_equal(pattern_find(p, "bad \xff bytes grüße"), 1);
        assert_int_equal(pattern_find(p, ""), 0);
        pattern_free(p);
}

static void an_exploding_pattern_is_given_up(void **state)
{
        static const char *const bombs[] = { "(a+)+$", "(a|aa)+$", "(?:a?){64}a{64}", "(a*)*b",
                                             "(?=(a+))*b" };
        char text[4001];
        struct error err;

        (void)state;
        memset(text, 'a', sizeof(text) - 2);
        text[sizeof(text) - 2] = '!';
        text[sizeof(text) - 1] = '\0';
        for (size_t i = 0; i < COUNT(bombs); i++) {
                struct pattern *p = pattern_new(bombs[i], &err);

                assert_non_null(p);
                (void)pattern_find(p, text); /* must return */
                pattern_free(p);
        }
}

static void a_pattern_has_few_steps(void **state)
{
        struct error err;
        struct pattern *p = pattern_new("(a+)+$", &err);

        (void)state;
        assert_int_equal(pattern_find(p, "aaaaaaaa!"), 0);
        /* a million steps are not tried */
        assert_int_equal(pattern_find(p, "aaaaaaaaaaaaaaaaaaaa!"), -1);
        pattern_free(p);
}

static void a_bad_pattern_is_reported_with_its_position(void **state)
{
        char *longest = mem_alloc(PATTERN_MAX_BYTES + 2);
        struct error err;

        (void)state;
        assert_null(pattern_new("a(b", &err));
        assert_string_equal(err.text, "missing closing parenthesis at offset 3");
        memset(longest, 'a', PATTERN_MAX_BYTES + 1);
        longest[PATTERN_MAX_BYTES + 1] = '\0';
        assert_null(pattern_new(longest, &err));
        assert_non_null(strstr(err.text, "longer than"));
        free(longest);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_turn_is_free_when_the_oldest_leaves_the_window),
                cmocka_unit_test(no_limit_counts_nothing),
                cmocka_unit_test(a_clock_set_back_blocks_no_one),
                cmocka_unit_test(a_notice_is_due_once_in_a_window),
                cmocka_unit_test(a_short_window_keeps_times_for_a_long_one),
                cmocka_unit_test(the_quietest_sender_is_evicted),
                cmocka_unit_test(a_sender_quiet_for_a_window_is_evicted),
                cmocka_unit_test(the_times_of_one_sender_are_bounded),
                cmocka_unit_test(a_pattern_is_found_or_not),
                cmocka_unit_test(an_exploding_pattern_is_given_up),
                cmocka_unit_test(a_pattern_has_few_steps),
                cmocka_unit_test(a_bad_pattern_is_reported_with_its_position),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
