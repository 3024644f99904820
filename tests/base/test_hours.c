#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hours.h"
#include "base/mem.h"

static void ranges_are_parsed_and_checked(void **state)
{
        enum { SUN, MON, TUE, WED, THU, FRI, SAT };
        static const struct {
                const char *text;
                struct moment m;
                bool holds;
        } rows[] = {
                { "09:00-17:00", { MON, 540 }, true },
                { "9:00-17:00", { MON, 540 }, true },
                { "09:00-17:00", { MON, 539 }, false },
                { "09:00-17:00", { SUN, 1019 }, true },
                { "09:00-17:00", { SUN, 1020 }, false },
                { "mon-fri 09:00-17:00", { FRI, 600 }, true },
                { "mon-fri 09:00-17:00", { SAT, 600 }, false },
                { "Sat,Sun 00:00-24:00", { SUN, 1439 }, true },
                { "sat,sun 00:00-24:00", { MON, 0 }, false },
                { "fri-mon 10:00-11:00", { SUN, 600 }, true },
                { "fri-mon 10:00-11:00", { WED, 600 }, false },
                { "22:00-06:00", { TUE, 1400 }, true },
                { "22:00-06:00", { TUE, 100 }, true },
                { "22:00-06:00", { TUE, 360 }, false },
                { "fri 22:00-06:00", { SAT, 100 }, true },
                { "fri 22:00-06:00", { FRI, 100 }, false },
                { "fri 22:00-06:00", { FRI, 1400 }, true },
        };
        static const char *const wrong[] = { "",
                                             "9-17",
                                             "009:00-17:00",
                                             "09:00",
                                             "09:00-",
                                             "09:00-25:00",
                                             "09:60-10:00",
                                             "09:00-09:00",
                                             "24:01-10:00",
                                             "xyz 09:00-10:00",
                                             "mon- 09:00-10:00",
                                             "mon09:00-10:00",
                                             "09:00-10:00 ",
                                             "mon,fri",
                                             ", 09:00-10:00" };
        struct hours h;

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                assert_int_equal(hours_parse(rows[i].text, &h), 0);
                assert_int_equal(hours_hold(&h, rows[i].m), rows[i].holds);
        }
        for (size_t i = 0; i < COUNT(wrong); i++)
                assert_int_equal(hours_parse(wrong[i], &h), -1);
}

/* 2026-11-16 is a Monday; summer time ends in Berlin on 2026-10-25, begins on 2027-03-28. */
static void quiet_hours_end_in_their_zone(void **state)
{
        static const struct {
                const char *hours, *zone;
                int64_t at, end; /* seconds; 0: never */
        } rows[] = {
                /* 02:00 UTC: 03:00 in Berlin, 21:00 the day before in New York */
                { "22:00-07:00", "UTC", 1794794400, 1794812400 },
                { "22:00-07:00", "Europe/Berlin", 1794794400, 1794808800 },
                { "22:00-07:00", "America/New_York", 1794794400, 1794794400 },
                { "20:00-07:00", "America/New_York", 1794794400, 1794830400 },
                { "22:00-07:00", "Asia/Kolkata", 1794794400, 1794794400 },
                { "07:00-07:45", "Asia/Kolkata", 1794794400, 1794795300 },
                /* the night in which the clock is put back, and forward */
                { "22:00-07:00", "Europe/Berlin", 1792872000, 1792908000 },
                { "22:00-07:00", "Europe/Berlin", 1806183000, 1806210000 },
                /* the end of one is inside another */
                { "22:00-03:30; 03:00-05:00", "UTC", 1794794400, 1794805200 },
                { "mon 00:00-24:00; tue 00:00-12:00", "UTC", 1794794400, 1794916800 },
                { "00:00-24:00", "UTC", 1794794400, 0 },
                { "off", "UTC", 1794794400, 1794794400 },
        };
        struct hours_list list;
        struct error err;

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct time_zone *zone = timezone_new(rows[i].zone, &err);

                assert_non_null(zone);
                assert_int_equal(hours_list_parse(rows[i].hours, &list), 0);
                assert_int_equal(hours_list_end(&list, zone, rows[i].at * 1000),
                                 rows[i].end ? rows[i].end * 1000 : INT64_MAX);
                timezone_free(zone);
        }
}

static void a_list_of_hours_is_parsed(void **state)
{
        static const char *const wrong[] = { "",
                                             ";",
                                             "22:00-07:00;",
                                             "22:00-07:00,",
                                             "of",
                                             ("1:00-2:00;1:00-2:00;1:00-2:00;1:00-2:00;1:00-2:00;"
                                              "1:00-2:00;1:00-2:00;1:00-2:00;1:00-2:00") };
        struct hours_list list;

        (void)state;
        assert_int_equal(hours_list_parse(" 22:00-7:00 ;sat,sun 22:00-10:00", &list), 0);
        assert_int_equal(list.count, 2);
        assert_int_equal(list.items[1].to, 600);
        assert_int_equal(hours_list_parse("OFF", &list), 0);
        assert_int_equal(list.count, 0);
        for (size_t i = 0; i < COUNT(wrong); i++)
                assert_int_equal(hours_list_parse(wrong[i], &list), -1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ranges_are_parsed_and_checked),
                cmocka_unit_test(quiet_hours_end_in_their_zone),
                cmocka_unit_test(a_list_of_hours_is_parsed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
