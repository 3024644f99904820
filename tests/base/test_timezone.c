#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/timezone.h"

static int64_t hours_ahead(const char *zone, const char *when)
{
        struct error err;
        struct time_zone *z = timezone_new(zone, &err);
        int64_t ms, offset;

        assert_non_null(z);
        assert_int_equal(clock_parse_iso(when, &ms), 0);
        offset = timezone_offset(z, ms / 1000);
        timezone_free(z);
        return offset / 3600;
}

static void a_zone_has_summer_and_winter_offsets(void **state)
{
        (void)state;
        assert_int_equal(hours_ahead("UTC", "2026-07-01T00:00:00Z"), 0);
        assert_int_equal(hours_ahead("Europe/Berlin", "2026-01-01T00:00:00Z"), 1);
        assert_int_equal(hours_ahead("Europe/Berlin", "2026-07-01T00:00:00Z"), 2);
        assert_int_equal(hours_ahead("Europe/Berlin", "2026-03-29T00:59:59Z"), 1);
        assert_int_equal(hours_ahead("Europe/Berlin", "2026-03-29T01:00:00Z"), 2);
        assert_int_equal(hours_ahead("Europe/Berlin", "2026-10-25T00:59:59Z"), 2);
        assert_int_equal(hours_ahead("Europe/Berlin", "2026-10-25T01:00:00Z"), 1);
        assert_int_equal(hours_ahead("America/New_York", "2026-07-01T00:00:00Z"), -4);
        assert_int_equal(hours_ahead("Asia/Tokyo", "2026-07-01T00:00:00Z"), 9);
}

/* Summer in the south spans the turn of the year. */
static void the_footer_rule_applies_after_the_last_change(void **state)
{
        (void)state;
        assert_int_equal(hours_ahead("Europe/Berlin", "2100-01-01T00:00:00Z"), 1);
        assert_int_equal(hours_ahead("Europe/Berlin", "2100-07-01T00:00:00Z"), 2);
        assert_int_equal(hours_ahead("Australia/Sydney", "2100-01-01T00:00:00Z"), 11);
        assert_int_equal(hours_ahead("Australia/Sydney", "2100-07-01T00:00:00Z"), 10);
        assert_int_equal(hours_ahead("Asia/Tokyo", "2100-07-01T00:00:00Z"), 9);
}

static void an_unknown_zone_is_an_error(void **state)
{
        static const char *const names[] = { "Mars/Base",        "",       "/etc/passwd",
                                             "../../etc/passwd", "Europe", "Europe/Berlin/" };
        struct error err;

        (void)state;
        for (size_t i = 0; i < COUNT(names); i++) {
                assert_null(timezone_new(names[i], &err));
                assert_int_equal(err.kind, ERR_INVALID);
        }
}

static void an_unknown_zone_names_the_nearest_one(void **state)
{
        static const struct {
                const char *name, *says;
        } rows[] = {
                { "Europe/Berln", "'Europe/Berlin'" }, { "europe/berlin", "'Europe/Berlin'" },
                { "Berlin", "'Europe/Berlin'" },       { "new york", "'America/New_York'" },
                { "Q", "such as 'Europe/Berlin'" },
        };
        struct error err;

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                assert_null(timezone_new(rows[i].name, &err));
                if (!strstr(err.text, rows[i].says))
                        fail_msg("%s: %s", rows[i].name, err.text);
        }
}

static void the_systems_zone_has_a_name(void **state)
{
        static const struct {
                const char *tz, *name;
        } rows[] = { { "Asia/Tokyo", "Asia/Tokyo" },
                     { ":Asia/Tokyo", "Asia/Tokyo" },
                     { "../../etc/passwd", "UTC" },
                     { "CET-1CEST,M3.5.0,M10.5.0/3", "UTC" } };
        struct time_zone *z;
        char *name;

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                setenv("TZ", rows[i].tz, 1);
                name = timezone_system_name();
                assert_string_equal(name, rows[i].name);
                free(name);
        }
        unsetenv("TZ");
        name = timezone_system_name();
        z = timezone_new(name, NULL);
        assert_non_null(z);
        timezone_free(z);
        free(name);
}

/* The C library reads the same files, with code of its own. */
static void offsets_and_instants_are_those_of_the_c_library(void **state)
{
        static const char *const zones[] = {
                "UTC",           "Europe/Berlin",       "Europe/London",     "America/New_York",
                "Asia/Kolkata",  "Australia/Lord_Howe", "Australia/Sydney",  "America/St_Johns",
                "Pacific/Apia",  "Asia/Kathmandu",      "America/Sao_Paulo", "Africa/Casablanca",
                "Europe/Dublin", "Asia/Gaza",           "Pacific/Chatham",   "America/Nuuk",
        };
        const time_t last = INT64_C(4102444800); /* 2100 */

        (void)state;
        for (size_t i = 0; i < COUNT(zones); i++) {
                struct time_zone *z = timezone_new(zones[i], NULL);

                assert_non_null(z);
                setenv("TZ", zones[i], 1);
                tzset();
                for (time_t t = 7; t < last; t += 86400 * 3 + 3571) {
                        int64_t instant;
                        struct tm tm;

                        localtime_r(&t, &tm);
                        if (timezone_offset(z, t) != tm.tm_gmtoff)
                                fail_msg("%s at %lld: %lld, not %ld", zones[i], (long long)t,
                                         (long long)timezone_offset(z, t), tm.tm_gmtoff);
                        /* the same, or the first of two */
                        instant = timezone_instant(z, t + tm.tm_gmtoff);
                        if (instant != t)
                                assert_true(instant < t && instant + timezone_offset(z, instant) ==
                                                                   t + tm.tm_gmtoff);
                }
                timezone_free(z);
        }
        unsetenv("TZ");
        tzset();
}

static void a_skipped_time_is_the_moment_of_the_jump(void **state)
{
        struct time_zone *z = timezone_new("Europe/Berlin", NULL);
        int64_t local, at;

        (void)state;
        assert_int_equal(clock_parse_iso("2026-03-29T02:30:00Z", &local), 0);
        assert_int_equal(clock_parse_iso("2026-03-29T01:00:00Z", &at), 0);
        assert_int_equal(timezone_instant(z, local / 1000), at / 1000);
        assert_int_equal(timezone_change(z, at / 1000 - 7200, at / 1000 + 7200), at / 1000);
        assert_int_equal(timezone_change(z, at / 1000, at / 1000 + 7200), 0);
        assert_int_equal(clock_parse_iso("2026-10-25T02:30:00Z", &local), 0);
        assert_int_equal(clock_parse_iso("2026-10-25T00:30:00Z", &at), 0);
        assert_int_equal(timezone_instant(z, local / 1000), at / 1000);
        timezone_free(z);
}

/* A file with a rule and no changes. Truncated anywhere, it is rejected or still usable. */
static void a_zone_file_without_changes_uses_its_rule(void **state)
{
        static const char rule[] = "\nCET-1CEST,M3.5.0,M10.5.0/3\n";
        unsigned char file[44 + 6 + 4 + 44 + 6 + 4 + sizeof(rule)] = { 0 };
        struct time_zone *z;

        (void)state;
        for (size_t at = 0; at <= 54; at += 54) {
                memcpy(file + at, "TZif2", 5);
                file[at + 39] = 1; /* one type */
                file[at + 43] = 4; /* "CET" */
        }
        memcpy(file + 108, rule, sizeof(rule) - 1);
        z = timezone_parse(file, sizeof(file) - 1);
        assert_non_null(z);
        assert_int_equal(timezone_offset(z, 1767225600), 3600);
        assert_int_equal(timezone_offset(z, 1782864000), 7200);
        timezone_free(z);
        for (size_t n = 0; n < sizeof(file); n++) {
                z = timezone_parse(file, n);
                if (z)
                        (void)timezone_offset(z, 1767225600);
                timezone_free(z);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_zone_has_summer_and_winter_offsets),
                cmocka_unit_test(the_footer_rule_applies_after_the_last_change),
                cmocka_unit_test(an_unknown_zone_is_an_error),
                cmocka_unit_test(an_unknown_zone_names_the_nearest_one),
                cmocka_unit_test(the_systems_zone_has_a_name),
                cmocka_unit_test(offsets_and_instants_are_those_of_the_c_library),
                cmocka_unit_test(a_skipped_time_is_the_moment_of_the_jump),
                cmocka_unit_test(a_zone_file_without_changes_uses_its_rule),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
