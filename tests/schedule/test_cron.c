#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "schedule/cron.h"

static struct cron parsed(const char *text)
{
        struct error err = { 0 };
        struct cron c;

        if (cron_parse(text, &c, &err) < 0)
                fail_msg("%s: %s", text, err.text);
        return c;
}

static struct time_zone *zone_of(const char *name)
{
        struct error err = { 0 };
        struct time_zone *z = timezone_new(name, &err);

        if (!z)
                fail_msg("%s", err.text);
        return z;
}

/* The due times after `after`, in UTC without seconds, separated by spaces. */
static void due(const char *cron, const char *zone, const char *after, int count, struct buf *out)
{
        struct time_zone *z = zone_of(zone);
        struct cron c = parsed(cron);
        char iso[CLOCK_ISO_SIZE];
        int64_t ms;

        assert_int_equal(clock_parse_iso(after, &ms), 0);
        buf_clear(out);
        for (int i = 0; i < count; i++) {
                ms = cron_next(&c, z, ms);
                clock_iso(ms, iso);
                buf_addf(out, "%s%.16s", i ? " " : "", iso);
        }
        timezone_free(z);
}

struct row {
        const char *cron, *zone, *after;
        int count;
        const char *expected;
};

static void assert_rows(const struct row *rows, size_t count)
{
        struct buf got;

        buf_init(&got, 0);
        for (size_t i = 0; i < count; i++) {
                due(rows[i].cron, rows[i].zone, rows[i].after, rows[i].count, &got);
                if (strcmp(got.data, rows[i].expected) != 0)
                        fail_msg("%s in %s: %s, not %s", rows[i].cron, rows[i].zone, got.data,
                                 rows[i].expected);
        }
        buf_release(&got);
}

static void fields_are_lists_ranges_steps_and_names(void **state)
{
        static const struct row rows[] = {
                { "*/20 * * * *", "UTC", "2026-01-01T00:00:00Z", 3,
                  "2026-01-01T00:20 2026-01-01T00:40 2026-01-01T01:00" },
                { "5/30 8-10/2 * * *", "UTC", "2026-01-01T00:00:00Z", 5,
                  "2026-01-01T08:05 2026-01-01T08:35 2026-01-01T10:05 2026-01-01T10:35 "
                  "2026-01-02T08:05" },
                { "0 9 * * mon-fri", "UTC", "2026-01-02T10:00:00Z", 2,
                  "2026-01-05T09:00 2026-01-06T09:00" },
                { "0 9 * * sat-sun", "UTC", "2026-01-02T10:00:00Z", 3,
                  "2026-01-03T09:00 2026-01-04T09:00 2026-01-10T09:00" },
                { "0 9 * * 7", "UTC", "2026-01-02T10:00:00Z", 1, "2026-01-04T09:00" },
                { "0 0 1 JAN,jul ?", "UTC", "2026-01-02T10:00:00Z", 2,
                  "2026-07-01T00:00 2027-01-01T00:00" },
                { "0 0 L * *", "UTC", "2028-01-31T00:00:00Z", 3,
                  "2028-02-29T00:00 2028-03-31T00:00 2028-04-30T00:00" },
                { "0 20 * * tue#2", "UTC", "2026-11-01T00:00:00Z", 2,
                  "2026-11-10T20:00 2026-12-08T20:00" },
                { "0 20 * * fri#L", "UTC", "2026-11-01T00:00:00Z", 2,
                  "2026-11-27T20:00 2026-12-25T20:00" },
                { "0 20 * * 5L", "UTC", "2026-11-01T00:00:00Z", 1, "2026-11-27T20:00" },
                { "@weekly", "UTC", "2026-11-01T00:00:00Z", 1, "2026-11-08T00:00" },
                { "@hourly", "UTC", "2026-11-01T00:00:00.500Z", 1, "2026-11-01T01:00" },
        };

        (void)state;
        assert_rows(rows, COUNT(rows));
}

static void either_day_matches_when_both_are_restricted(void **state)
{
        static const struct row rows[] = {
                { "0 0 13 * fri", "UTC", "2026-11-01T00:00:00Z", 4,
                  "2026-11-06T00:00 2026-11-13T00:00 2026-11-20T00:00 2026-11-27T00:00" },
                { "0 0 13 * *", "UTC", "2026-11-14T00:00:00Z", 1, "2026-12-13T00:00" },
        };

        (void)state;
        assert_rows(rows, COUNT(rows));
}

static void a_sixth_field_in_front_counts_seconds(void **state)
{
        struct time_zone *z = zone_of("UTC");
        struct cron c = parsed("*/2 * * * * *");

        (void)state;
        assert_int_equal(cron_next(&c, z, 0), 2000);
        assert_int_equal(cron_next(&c, z, 1999), 2000);
        assert_int_equal(cron_next(&c, z, 2000), 4000);
        c = parsed("30 59 23 31 12 *");
        assert_int_equal(cron_next(&c, z, 0), INT64_C(31535970000));
        timezone_free(z);
}

/* Berlin: 2026-03-29 02:00 becomes 03:00 at 01:00 UTC. */
static void a_skipped_time_is_due_once_after_the_gap(void **state)
{
        static const struct row rows[] = {
                { "30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 3,
                  "2026-03-28T01:30 2026-03-29T01:00 2026-03-30T00:30" },
                { "*/10 2 * * *", "Europe/Berlin", "2026-03-29T00:59:00Z", 2,
                  "2026-03-29T01:00 2026-03-30T00:00" },
                /* 03:00 is due as well, and it is one moment */
                { "0 2,3 * * *", "Europe/Berlin", "2026-03-29T00:59:00Z", 2,
                  "2026-03-29T01:00 2026-03-30T00:00" },
                /* half an hour is skipped */
                { "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", 2,
                  "2026-10-03T15:30 2026-10-04T15:15" },
                /* a whole day: there was no 30 December 2011 in Samoa */
                { "0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", 2,
                  "2011-12-30T10:00 2012-12-29T22:00" },
        };

        (void)state;
        assert_rows(rows, COUNT(rows));
}

/* Berlin: 2026-10-25 03:00 becomes 02:00 at 01:00 UTC. */
static void a_doubled_time_is_due_once(void **state)
{
        static const struct row rows[] = {
                { "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2,
                  "2026-10-25T00:30 2026-10-26T01:30" },
                { "30 2 * * *", "Europe/Berlin", "2026-10-25T01:00:00Z", 1, "2026-10-26T01:30" },
                { "0 2,3 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2,
                  "2026-10-25T00:00 2026-10-25T02:00" },
                { "30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z", 2,
                  "2026-11-01T05:30 2026-11-02T06:30" },
                { "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", 2,
                  "2026-04-04T14:45 2026-04-05T15:15" },
        };

        (void)state;
        assert_rows(rows, COUNT(rows));
}

static void a_schedule_for_every_hour_follows_elapsed_time(void **state)
{
        static const struct row rows[] = {
                { "30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", 4,
                  "2026-10-25T00:30 2026-10-25T01:30 2026-10-25T02:30 2026-10-25T03:30" },
                { "30 * * * *", "Europe/Berlin", "2026-03-28T23:45:00Z", 3,
                  "2026-03-29T00:30 2026-03-29T01:30 2026-03-29T02:30" },
                /* Beirut goes back from 00:00 to 23:00 of the day before */
                { "30 * 24 10 *", "Asia/Beirut", "2026-10-24T19:45:00Z", 3,
                  "2026-10-24T20:30 2026-10-24T21:30 2027-10-23T21:30" },
        };

        (void)state;
        assert_rows(rows, COUNT(rows));
}

static void leap_days_and_far_years_are_found(void **state)
{
        static const struct row rows[] = {
                { "0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1, "2104-02-29T00:00" },
                { "0 12 * * *", "Europe/Berlin", "2099-06-30T12:00:00Z", 1, "2099-07-01T10:00" },
        };

        (void)state;
        assert_rows(rows, COUNT(rows));
}

static void mistakes_name_the_field_and_what_it_takes(void **state)
{
        static const struct {
                const char *cron, *says;
        } rows[] = {
                { "", "five fields" },
                { "* * * *", "five fields" },
                { "* * * * * * *", "five fields" },
                { "@reboot", "@daily" },
                { "60 * * * *", "minute '60'" },
                { "* 24 * * *", "0 to 23" },
                { "* * 0 * *", "day of month '0'" },
                { "* * 32 * *", "1 to 31 or L" },
                { "* * * 13 *", "jan to dec" },
                { "* * * * 8", "day of week '8'" },
                { "* * * * mon#6", "mon#2" },
                { "5-1 * * * *", "minute '5-1'" },
                { "*/0 * * * *", "minute '*/0'" },
                { "*/90 * * * *", "minute '*/90'" },
                { "1,,2 * * * *", "minute '1,,2'" },
                { "1, * * * *", "minute '1,'" },
                { "a * * * *", "minute 'a'" },
                { "1x * * * *", "minute '1x'" },
                { "-1 * * * *", "minute '-1'" },
                { "99999999999 * * * *", "minute '9999" },
                { "60 * * * * *", "second '60'" },
                { "0 0 30 2 *", "never due" },
                { "0 0 31 4,6,9,11 *", "never due" },
        };
        struct error err;
        struct cron c;

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                assert_int_equal(cron_parse(rows[i].cron, &c, &err), -1);
                assert_int_equal(err.kind, ERR_INVALID);
                if (!strstr(err.text, rows[i].says))
                        fail_msg("'%s' says: %s", rows[i].cron, err.text);
        }
}

/* ---- random patterns against the C library's zones, minute by minute ---- */

static uint64_t seed = 12;

static int pick(int n)
{
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        return (int)(seed >> 33) % n;
}

static const char *pick_field(char *out, size_t size, int min, int max)
{
        int a = min + pick(max - min + 1), b = min + pick(max - min + 1);

        switch (pick(4)) {
        case 0:
                snprintf(out, size, "*");
                break;
        case 1:
                snprintf(out, size, "%d", a);
                break;
        case 2:
                snprintf(out, size, "%d,%d", a, b);
                break;
        default:
                snprintf(out, size, "%d-%d/%d", a < b ? a : b, a < b ? b : a, 1 + pick(3));
        }
        return out;
}

static bool matches(const struct cron *c, const struct tm *tm)
{
        bool day = c->days >> tm->tm_mday & 1, weekday = c->weekdays >> tm->tm_wday & 1;

        if (!(c->minutes >> tm->tm_min & 1) || !(c->hours >> tm->tm_hour & 1) ||
            !(c->months >> (tm->tm_mon + 1) & 1))
                return false;
        return c->any_day || c->any_weekday ? day && weekday : day || weekday;
}

/*
 * Walks over a few days with the C library's clock. At each minute the local times that have passed
 * since the highest one are due; in every-hour schedules, the one shown.
 */
static void check_walk(const struct cron *c, const char *text, const struct time_zone *z,
                       const char *zone, time_t from, int minutes)
{
        bool elapsed = c->hours == (1u << 24) - 1;
        int64_t next = cron_next(c, z, (int64_t)from * 1000) / 1000;
        time_t highest = INT64_MIN;

        for (time_t t = from - 26 * 3600; t <= from + minutes * 60; t += 60) {
                bool is_due = false;
                time_t shown;
                struct tm tm;

                localtime_r(&t, &tm);
                shown = t + tm.tm_gmtoff;
                if (elapsed) {
                        is_due = matches(c, &tm);
                } else {
                        for (time_t l = highest == INT64_MIN ? shown : highest + 60;
                             l <= shown && !is_due; l += 60) {
                                gmtime_r(&l, &tm);
                                is_due = matches(c, &tm);
                        }
                }
                if (shown > highest)
                        highest = shown;
                if (t <= from)
                        continue;
                if (is_due != (t == next))
                        fail_msg("'%s' in %s after %lld: %lld, but due at %lld is %d", text, zone,
                                 (long long)from, (long long)next, (long long)t, is_due);
                if (is_due)
                        next = cron_next(c, z, (int64_t)t * 1000) / 1000;
        }
}

static void random_schedules_match_the_clock_minute_by_minute(void **state)
{
        static const struct {
                const char *zone;
                time_t change; /* near it */
        } changes[] = {
                { "Europe/Berlin", 1774746000 },       { "Europe/Berlin", 1792890000 },
                { "America/New_York", 1772953200 },    { "America/New_York", 1793512800 },
                { "Australia/Sydney", 1775318400 },    { "Australia/Sydney", 1791043200 },
                { "Australia/Lord_Howe", 1775314800 }, { "Australia/Lord_Howe", 1791041400 },
                { "Asia/Kathmandu", 1775318400 },      { "Pacific/Apia", 1325239200 },
                { "Asia/Beirut", 1792875600 },         { "America/Sao_Paulo", 1541300400 },
                { "Africa/Casablanca", 1771120800 },   { "Europe/Dublin", 1792890000 },
                { "America/St_Johns", 1793505600 },    { "Pacific/Chatham", 1790431200 },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(changes); i++) {
                struct time_zone *z = zone_of(changes[i].zone);

                setenv("TZ", changes[i].zone, 1);
                tzset();
                for (int n = 0; n < 40; n++) {
                        char f[5][32], text[200];
                        struct error err;
                        struct cron c;
                        time_t from = changes[i].change - pick(2 * 1440) * 60;

                        snprintf(text, sizeof(text), "%s %s %s %s %s", pick_field(f[0], 32, 0, 59),
                                 pick_field(f[1], 32, 0, 4),
                                 n % 3 ? "*" : pick_field(f[2], 32, 1, 31),
                                 n % 5 ? "*" : pick_field(f[3], 32, 1, 12),
                                 n % 4 ? "*" : pick_field(f[4], 32, 0, 6));
                        if (cron_parse(text, &c, &err) == 0)
                                check_walk(&c, text, z, changes[i].zone, from, 4 * 1440);
                        else if (!strstr(err.text, "never due"))
                                fail_msg("'%s': %s", text, err.text);
                }
                timezone_free(z);
        }
        unsetenv("TZ");
        tzset();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(fields_are_lists_ranges_steps_and_names),
                cmocka_unit_test(either_day_matches_when_both_are_restricted),
                cmocka_unit_test(a_sixth_field_in_front_counts_seconds),
                cmocka_unit_test(a_skipped_time_is_due_once_after_the_gap),
                cmocka_unit_test(a_doubled_time_is_due_once),
                cmocka_unit_test(a_schedule_for_every_hour_follows_elapsed_time),
                cmocka_unit_test(leap_days_and_far_years_are_found),
                cmocka_unit_test(mistakes_name_the_field_and_what_it_takes),
                cmocka_unit_test(random_schedules_match_the_clock_minute_by_minute),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
