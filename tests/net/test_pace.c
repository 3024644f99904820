/* The outbound budget, with a clock that the test owns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/mem.h"
#include "net/pace.h"

#define CHANNELS 4
#define MAX_SENT 20000

static void the_first_go_at_once_and_the_next_waits(void **state)
{
        struct pace *p = pace_new(&(struct pace_limits){ .per_channel_second = 1 });
        int64_t wait;

        (void)state;
        assert_int_equal(pace_take(p, "a", false, PACE_FINAL, 1000), 0);
        wait = pace_take(p, "a", false, PACE_FINAL, 1000);
        assert_int_equal(wait, 1000);
        assert_int_equal(pace_take(p, "b", false, PACE_FINAL, 1000), 0);
        assert_int_equal(pace_take(p, "a", false, PACE_FINAL, 1000 + wait), 0);
        pace_free(p);
}

static void no_limit_means_no_wait(void **state)
{
        struct pace *p = pace_new(&(struct pace_limits){ 0 });

        (void)state;
        for (int i = 0; i < 1000; i++)
                assert_int_equal(pace_take(p, "a", true, (enum pace_class)(i % 4), 0), 0);
        /* and what was sent without a limit does not count against a new one */
        pace_set_limits(p, &(struct pace_limits){ .per_channel_second = 1 });
        assert_int_equal(pace_take(p, "a", true, PACE_FINAL, 0), 0);
        pace_free(p);
}

static void a_burst_goes_at_once_and_no_more(void **state)
{
        struct pace *p = pace_new(&(struct pace_limits){ .per_second = 10, .burst = 5 });

        (void)state;
        for (int i = 0; i < 5; i++)
                assert_int_equal(pace_take(p, "a", false, PACE_FINAL, 0), 0);
        assert_int_equal(pace_take(p, "a", false, PACE_FINAL, 0), 100);
        pace_free(p);
}

static void a_strict_limit_holds_in_any_second(void **state)
{
        const struct pace_limits limits = pace_strict(50);
        struct pace *p = pace_new(&limits);
        int64_t sent[2000];
        size_t count = 0;

        (void)state;
        for (int64_t now = 0; now < 30000; now += now % 7000 == 6000 ? 900 : 1) /* with pauses */
                while (pace_take(p, "a", false, PACE_FINAL, now) == 0)
                        sent[count++] = now;
        assert_true(count > 1000); /* and it is no slower than three quarters of the limit */
        for (size_t i = 50; i < count; i++)
                assert_true(sent[i] - sent[i - 50] >= 1000);
        pace_free(p);
}

static void edits_and_typing_leave_room_for_a_final_answer(void **state)
{
        struct pace *p = pace_new(&(struct pace_limits){ .per_second = 3 });

        (void)state;
        assert_int_equal(pace_take(p, "a", false, PACE_EDIT, 0), 0);
        assert_int_equal(pace_take(p, "a", false, PACE_TYPING, 0), 0);
        assert_true(pace_take(p, "a", false, PACE_EDIT, 0) > 0);
        assert_true(pace_take(p, "a", false, PACE_TYPING, 0) > 0);
        assert_int_equal(pace_take(p, "a", false, PACE_APPROVAL, 0), 0);
        pace_free(p);
}

static void edits_are_sent_even_with_a_burst_of_one(void **state)
{
        struct pace *p = pace_new(&(struct pace_limits){ .per_channel_second = 1 });
        int64_t wait;

        (void)state;
        assert_int_equal(pace_take(p, "a", false, PACE_FINAL, 0), 0);
        wait = pace_take(p, "a", false, PACE_EDIT, 0);
        assert_int_equal(wait, 2000);
        assert_int_equal(pace_take(p, "a", false, PACE_EDIT, wait), 0);
        pace_free(p);
}

static void a_freeze_lasts_until_the_later_end(void **state)
{
        struct pace *p = pace_new(&(struct pace_limits){ 0 });

        (void)state;
        pace_freeze(p, "a", 5000, 0);
        pace_freeze(p, "a", 1000, 0);
        assert_int_equal(pace_take(p, "a", false, PACE_FINAL, 0), 5000);
        assert_int_equal(pace_take(p, "b", false, PACE_FINAL, 0), 0);
        pace_freeze(p, NULL, 7000, 0);
        assert_int_equal(pace_take(p, "a", false, PACE_FINAL, 100), 6900);
        assert_int_equal(pace_take(p, "b", false, PACE_FINAL, 100), 6900);
        assert_int_equal(pace_take(p, "b", false, PACE_FINAL, 7000), 0);
        pace_free(p);
}

static void sweeping_drops_only_idle_channels(void **state)
{
        struct pace *p = pace_new(
                &(struct pace_limits){ .per_channel_second = 1, .per_channel_minute = 20 });

        (void)state;
        for (int i = 0; i < 100; i++) {
                char name[16];

                snprintf(name, sizeof(name), "c%d", i);
                assert_int_equal(pace_take(p, name, i % 2, PACE_FINAL, 0), 0);
        }
        pace_freeze(p, "frozen", 600000, 0);
        assert_int_equal(pace_sweep(p, 0), 101);
        assert_int_equal(pace_sweep(p, 3000), 51); /* groups need longer */
        assert_int_equal(pace_sweep(p, 60000), 1);
        assert_int_equal(pace_sweep(p, 600000), 0);
        pace_free(p);
}

static void a_hundred_thousand_idle_channels_are_dropped(void **state)
{
        struct pace *p = pace_new(
                &(struct pace_limits){ .per_channel_second = 1, .per_channel_minute = 20 });

        (void)state;
        for (int i = 0; i < 100000; i++) {
                char name[16];

                snprintf(name, sizeof(name), "c%d", i);
                assert_int_equal(pace_take(p, name, false, PACE_FINAL, i * 10), 0);
                assert_true(pace_channels(p) < 2000);
        }
        pace_free(p);
}

static void a_clock_set_back_grants_nothing(void **state)
{
        struct pace *p = pace_new(&(struct pace_limits){ .per_second = 1 });

        (void)state;
        assert_int_equal(pace_take(p, "a", false, PACE_FINAL, 10000), 0);
        assert_true(pace_take(p, "a", false, PACE_FINAL, 5000) > 0);
        assert_int_equal(pace_take(p, "a", false, PACE_FINAL, 11000), 0);
        pace_free(p);
}

/* --- random arrivals --- */

struct sent {
        int64_t at_ms;
        int channel;
};

struct run {
        struct pace_limits limits;
        struct sent sent[MAX_SENT];
        size_t count;
        unsigned seed;
};

static double real_below(struct run *r, double below)
{
        return below * rand_r(&r->seed) / ((double)RAND_MAX + 1);
}

static int below(struct run *r, int n)
{
        return (int)real_below(r, n);
}

static bool is_group(int channel)
{
        return channel % 2 == 1;
}

/* No window between two sends holds more than the bucket and what was refilled meanwhile. */
static void check_windows(const struct run *r, int channel, double per_second, double burst)
{
        double capacity = fmax(burst > 0 ? burst : per_second, 1);

        for (size_t i = 0; i < r->count && per_second > 0; i++) {
                double n = 0;

                if (channel >= 0 && r->sent[i].channel != channel)
                        continue;
                for (size_t j = i; j < r->count && r->sent[j].at_ms <= r->sent[i].at_ms + 90000;
                     j++) {
                        double seconds = (double)(r->sent[j].at_ms - r->sent[i].at_ms) / 1000;

                        n += channel < 0 || r->sent[j].channel == channel;
                        assert_true(n <= capacity + per_second * seconds + 1e-6);
                }
        }
}

static void check_minutes(const struct run *r, int channel)
{
        for (size_t i = 0; i < r->count && r->limits.per_channel_minute >= 2; i++) {
                double n = 0;

                if (r->sent[i].channel != channel)
                        continue;
                for (size_t j = i; j < r->count && r->sent[j].at_ms < r->sent[i].at_ms + 60000; j++)
                        n += r->sent[j].channel == channel;
                assert_true(n <= floor(r->limits.per_channel_minute) + 1e-6);
        }
}

static void send_at_random(struct run *r)
{
        static const char *const names[CHANNELS] = { "a", "b", "c", "d" };
        struct pace *p = pace_new(&r->limits);
        int64_t now = 0, frozen_until[CHANNELS] = { 0 };

        while (now < 180000 && r->count < MAX_SENT) {
                int channel = below(r, CHANNELS);
                enum pace_class class = (enum pace_class)below(r, 4);
                int64_t wait = pace_take(p, names[channel], is_group(channel), class, now);

                assert_true(wait >= 0);
                if (wait == 0) {
                        assert_true(now >= frozen_until[channel]);
                        r->sent[r->count++] = (struct sent){ now, channel };
                }
                if (below(r, 500) == 0) {
                        int64_t ms = below(r, 5000);

                        pace_freeze(p, names[channel], ms, now);
                        if (now + ms > frozen_until[channel])
                                frozen_until[channel] = now + ms;
                }
                if (below(r, 200) == 0)
                        pace_sweep(p, now);
                now += below(r, 10) == 0 ? below(r, 3000) : below(r, 30);
        }
        pace_free(p);
}

static void no_window_exceeds_the_limit(void **state)
{
        const char *given = getenv("PACE_SEED");
        unsigned seed =
                given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)id_random_below(1u << 30);
        struct run *r = mem_zalloc(sizeof(*r));

        (void)state;
        print_message("PACE_SEED=%u\n", seed);
        for (unsigned round = 0; round < 25; round++) {
                memset(r, 0, sizeof(*r));
                r->seed = seed + round;
                r->limits = (struct pace_limits){ .per_second = below(r, 4) ? real_below(r, 30) : 0,
                                                  .per_channel_second =
                                                          below(r, 4) ? real_below(r, 5) : 0,
                                                  .per_channel_minute =
                                                          below(r, 4) ? real_below(r, 60) : 0,
                                                  .burst = below(r, 2) ? real_below(r, 10) : 0 };
                send_at_random(r);
                check_windows(r, -1, r->limits.per_second, r->limits.burst);
                for (int channel = 0; channel < CHANNELS; channel++) {
                        check_windows(r, channel, r->limits.per_channel_second, r->limits.burst);
                        if (is_group(channel))
                                check_minutes(r, channel);
                }
        }
        free(r);
}

/*
 * Edits and typing ask every millisecond; now and then a final answer comes. It never waits longer
 * than one token.
 */
static void final_answers_are_not_starved_by_edits_and_typing(void **state)
{
        unsigned seed = (unsigned)id_random_below(1u << 30);
        struct pace *p = pace_new(&(struct pace_limits){ .per_channel_second = 1 });
        struct run r = { .seed = seed };
        int64_t final_at = 5000, final_since = -1;
        int finals = 0, lesser = 0;

        (void)state;
        print_message("seed %u\n", seed);
        for (int64_t now = 0; now < 120000; now++) {
                lesser +=
                        pace_take(p, "a", false, below(&r, 2) ? PACE_EDIT : PACE_TYPING, now) == 0;
                if (now < final_at)
                        continue;
                final_since = final_since < 0 ? now : final_since;
                if (pace_take(p, "a", false, PACE_FINAL, now) != 0)
                        continue;
                assert_true(now - final_since <= 1000);
                finals++;
                final_since = -1;
                final_at = now + 3000 + below(&r, 3000);
        }
        assert_true(finals >= 15);
        assert_true(lesser >= 20);
        pace_free(p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_first_go_at_once_and_the_next_waits),
                cmocka_unit_test(no_limit_means_no_wait),
                cmocka_unit_test(a_burst_goes_at_once_and_no_more),
                cmocka_unit_test(a_strict_limit_holds_in_any_second),
                cmocka_unit_test(edits_and_typing_leave_room_for_a_final_answer),
                cmocka_unit_test(edits_are_sent_even_with_a_burst_of_one),
                cmocka_unit_test(a_freeze_lasts_until_the_later_end),
                cmocka_unit_test(sweeping_drops_only_idle_channels),
                cmocka_unit_test(a_hundred_thousand_idle_channels_are_dropped),
                cmocka_unit_test(a_clock_set_back_grants_nothing),
                cmocka_unit_test(no_window_exceeds_the_limit),
                cmocka_unit_test(final_answers_are_not_starved_by_edits_and_typing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
