/* Which ticks a schedule gets for the times that have passed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "schedule/missed.h"

#define MINUTE_MS 60000LL
#define HOUR_MS   (60 * MINUTE_MS)

static int64_t at(const char *iso)
{
        int64_t ms;

        assert_int_equal(clock_parse_iso(iso, &ms), 0);
        return ms;
}

static struct schedule_row hourly(enum schedule_missed missed)
{
        return (struct schedule_row){ .id = 7,
                                      .name = "report",
                                      .kind = SCHEDULE_PERIODIC,
                                      .cron = "0 * * * *",
                                      .timezone = "UTC",
                                      .missed = missed,
                                      .next_ms = at("2026-11-16T10:00:00Z") };
}

/* "10:00 pending, 12:00 skipped x3 → 13:00" */
static const char *plan(const struct schedule_row *row, const char *now)
{
        static char text[8192];
        struct missed_plan p;
        char iso[CLOCK_ISO_SIZE];
        struct buf b;

        missed_plan_make(row, "UTC", at(now), &p);
        buf_init(&b, 0);
        for (size_t i = 0; i < p.count; i++) {
                const struct tick_row *t = &p.ticks[i];

                assert_int_equal(t->schedule, 7);
                assert_int_equal(t->not_before_ms, t->due_ms);
                assert_int_equal(t->state != TICK_PENDING, t->ended_ms > 0);
                assert_int_equal(t->state != TICK_PENDING, t->note != NULL);
                buf_addf(&b, "%s%.5s %s", i ? ", " : "", clock_iso(t->due_ms, iso) + 11,
                         tick_state_name(t->state));
                if (t->runs != 1)
                        buf_addf(&b, " x%lld", (long long)t->runs);
        }
        if (p.next_ms > 0)
                buf_addf(&b, " → %.5s", clock_iso(p.next_ms, iso) + 11);
        snprintf(text, sizeof(text), "%s", b.data);
        buf_release(&b);
        return text;
}

static void a_time_that_has_come_is_one_tick(void **state)
{
        static const enum schedule_missed policies[] = { MISSED_ONCE, MISSED_ALL, MISSED_SKIP };

        (void)state;
        for (size_t i = 0; i < 3; i++) {
                struct schedule_row row = hourly(policies[i]);

                assert_string_equal(plan(&row, "2026-11-16T10:00:00Z"), "10:00 pending → 11:00");
                assert_string_equal(plan(&row, "2026-11-16T10:00:40Z"), "10:00 pending → 11:00");
                row.kind = SCHEDULE_ONE_SHOT;
                assert_string_equal(plan(&row, "2026-11-16T10:00:40Z"), "10:00 pending");
        }
}

static void once_runs_once_for_all_missed_times(void **state)
{
        struct schedule_row row = hourly(MISSED_ONCE);

        (void)state;
        assert_string_equal(plan(&row, "2026-11-16T14:30:00Z"), "14:00 pending x5 → 15:00");
        row.max_age_ms = 40 * MINUTE_MS;
        assert_string_equal(plan(&row, "2026-11-16T14:30:00Z"), "14:00 pending x5 → 15:00");
        row.max_age_ms = 20 * MINUTE_MS;
        assert_string_equal(plan(&row, "2026-11-16T14:30:00Z"), "14:00 skipped x5 → 15:00");
}

static void all_runs_each_missed_time(void **state)
{
        struct schedule_row row = hourly(MISSED_ALL);

        (void)state;
        assert_string_equal(plan(&row, "2026-11-16T12:30:00Z"),
                            "10:00 pending, 11:00 pending, 12:00 pending → 13:00");
        row.max_age_ms = 2 * HOUR_MS;
        assert_string_equal(plan(&row, "2026-11-16T12:30:00Z"),
                            "10:00 skipped, 11:00 pending, 12:00 pending → 13:00");
        row.max_age_ms = 10 * MINUTE_MS;
        assert_string_equal(plan(&row, "2026-11-16T12:30:00Z"),
                            "10:00 skipped x2, 12:00 skipped → 13:00");
}

static void skip_runs_none_that_is_late(void **state)
{
        struct schedule_row row = hourly(MISSED_SKIP);

        (void)state;
        assert_string_equal(plan(&row, "2026-11-16T12:30:00Z"),
                            "10:00 skipped x2, 12:00 skipped → 13:00");
        assert_string_equal(plan(&row, "2026-11-16T12:00:30Z"),
                            "10:00 skipped x2, 12:00 pending → 13:00");
        row.kind = SCHEDULE_ONE_SHOT;
        assert_string_equal(plan(&row, "2026-11-16T12:30:00Z"), "10:00 skipped");
}

static void at_most_a_hundred_are_made_up_for(void **state)
{
        struct schedule_row row = hourly(MISSED_ALL);
        struct missed_plan p;

        (void)state;
        /* five days and an hour: 122 times */
        missed_plan_make(&row, "UTC", at("2026-11-21T11:00:00Z"), &p);
        assert_int_equal(p.count, 101);
        assert_int_equal(p.ticks[0].state, TICK_SKIPPED);
        assert_int_equal(p.ticks[0].runs, 22);
        assert_int_equal(p.ticks[0].due_ms, row.next_ms);
        for (size_t i = 1; i <= 100; i++)
                assert_int_equal(p.ticks[i].due_ms, row.next_ms + (int64_t)(21 + i) * HOUR_MS);
        assert_int_equal(p.next_ms, at("2026-11-21T12:00:00Z"));
}

/* A schedule of every second and a year's downtime: found without walking over each. */
static void a_long_downtime_is_not_walked_through(void **state)
{
        struct schedule_row row = hourly(MISSED_ALL);
        int64_t now_ms = at("2027-11-16T10:00:00Z");
        struct missed_plan p;

        (void)state;
        row.cron = "* * * * * *";
        missed_plan_make(&row, "UTC", now_ms, &p);
        assert_int_equal(p.count, 101);
        for (size_t i = 1; i <= 100; i++)
                assert_int_equal(p.ticks[i].due_ms, now_ms - (int64_t)(100 - i) * 1000);
        row.missed = MISSED_ONCE;
        missed_plan_make(&row, "UTC", now_ms, &p);
        assert_int_equal(p.count, 1);
        assert_int_equal(p.ticks[0].due_ms, now_ms);
        assert_int_equal(p.ticks[0].runs, MISSED_COUNTED);
        /* every second of January, seen in November */
        row.cron = "* * * * jan *";
        row.next_ms = at("2027-01-01T00:00:00Z");
        missed_plan_make(&row, "UTC", now_ms, &p);
        assert_int_equal(p.ticks[0].due_ms, at("2027-01-31T23:59:59Z"));
        assert_int_equal(p.next_ms, at("2028-01-01T00:00:00Z"));
}

static void a_zone_that_is_gone_ends_the_schedule(void **state)
{
        struct schedule_row row = hourly(MISSED_ONCE);

        (void)state;
        row.timezone = "Mars/Olympus";
        assert_string_equal(plan(&row, "2026-11-16T10:00:00Z"), "10:00 failed");
        row.timezone = NULL; /* the configured one */
        assert_string_equal(plan(&row, "2026-11-16T10:00:00Z"), "10:00 pending → 11:00");
}

/* The clock was set back from 14:30, when 15:00 was next, to 9:30. */
static void times_before_a_clock_was_set_back_are_not_missed(void **state)
{
        struct schedule_row row = hourly(MISSED_ALL);

        (void)state;
        row.ahead_ms = at("2026-11-16T15:00:00Z");
        assert_string_equal(plan(&row, "2026-11-16T10:00:05Z"), "10:00 pending → 11:00");
        assert_string_equal(plan(&row, "2026-11-16T11:30:00Z"),
                            "10:00 pending, 11:00 pending → 12:00");
        /* it was set ahead again */
        assert_string_equal(plan(&row, "2026-11-16T14:40:00Z"), " → 15:00");
        assert_string_equal(plan(&row, "2026-11-16T16:10:00Z"),
                            "15:00 pending, 16:00 pending → 17:00");
        /* it was not, and the last time before comes */
        row.next_ms = at("2026-11-16T14:00:00Z");
        assert_string_equal(plan(&row, "2026-11-16T14:00:05Z"), "14:00 pending → 15:00");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_time_that_has_come_is_one_tick),
                cmocka_unit_test(once_runs_once_for_all_missed_times),
                cmocka_unit_test(all_runs_each_missed_time),
                cmocka_unit_test(skip_runs_none_that_is_late),
                cmocka_unit_test(at_most_a_hundred_are_made_up_for),
                cmocka_unit_test(a_long_downtime_is_not_walked_through),
                cmocka_unit_test(a_zone_that_is_gone_ends_the_schedule),
                cmocka_unit_test(times_before_a_clock_was_set_back_are_not_missed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
