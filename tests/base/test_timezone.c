#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
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
                cmocka_unit_test(a_zone_file_without_changes_uses_its_rule),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
