#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "schedule/cron.h"
#include "schedule/when.h"

#define NOW "2026-11-16T17:00:00Z" /* Monday; 18:00 in Berlin */

static struct time_zone *berlin;
static int64_t now_ms;

static int set_up(void **state)
{
        struct error err;

        (void)state;
        berlin = timezone_new("Europe/Berlin", &err);
        return berlin && clock_parse_iso(NOW, &now_ms) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
        (void)state;
        timezone_free(berlin);
        return 0;
}

static struct when parsed(const char *text)
{
        struct error err = { 0 };
        struct when w;

        if (when_parse(text, berlin, now_ms, &w, &err) < 0)
                fail_msg("'%s': %s", text, err.text);
        return w;
}

static void times_of_people_are_understood(void **state)
{
        static const struct {
                const char *text, *at, *rest;
        } rows[] = {
                { "30m tea", "2026-11-16T17:30:00", "tea" },
                { "30 m tea", "2026-11-16T17:30:00", "tea" },
                { "in 2 hours call Ann", "2026-11-16T19:00:00", "call Ann" },
                { "1h30m", "2026-11-16T18:30:00", "" },
                { "1h 30m, stretch", "2026-11-16T18:30:00", "stretch" },
                { "1 hour and 5 minutes: eggs", "2026-11-16T18:05:00", "eggs" },
                { "1.5h eggs", "2026-11-16T18:30:00", "eggs" },
                { "in an hour", "2026-11-16T18:00:00", "" },
                { "in half an hour x", "2026-11-16T17:30:00", "x" },
                { "90s", "2026-11-16T17:01:30", "" },
                { "30m 2 eggs", "2026-11-16T17:30:00", "2 eggs" },
                { "2 days buy 3 h-bombs", "2026-11-18T17:00:00", "buy 3 h-bombs" },
                { "in 1 week", "2026-11-23T17:00:00", "" },
                { "in 3 months", "2027-02-16T17:00:00", "" },
                { "in 150 days", "2027-04-15T16:00:00", "" },
                { "18:30 dinner", "2026-11-16T17:30:00", "dinner" },
                { "18:00 dinner", "2026-11-17T17:00:00", "dinner" },
                { "9:00", "2026-11-17T08:00:00", "" },
                { "at 6:30pm", "2026-11-16T17:30:00", "" },
                { "6:30 p.m. x", "2026-11-16T17:30:00", "x" },
                { "at 19", "2026-11-16T18:00:00", "" },
                { "12am", "2026-11-16T23:00:00", "" },
                { "noon", "2026-11-17T11:00:00", "" },
                { "tonight movie", "2026-11-16T19:00:00", "movie" },
                { "9pm tonight", "2026-11-16T20:00:00", "" },
                { "tonight at 8 movie", "2026-11-16T19:00:00", "movie" },
                { "at 8 tonight", "2026-11-16T19:00:00", "" },
                { "this evening movie", "2026-11-16T19:00:00", "movie" },
                { "tomorrow evening call", "2026-11-17T19:00:00", "call" },
                { "tomorrow in the afternoon", "2026-11-17T14:00:00", "" },
                { "tomorrow morning at 8 run", "2026-11-17T07:00:00", "run" },
                { "friday night at 9:30", "2026-11-20T20:30:00", "" },
                { "tomorrow at 9 o'clock call", "2026-11-17T08:00:00", "call" },
                { "2h30 eggs", "2026-11-16T19:30:00", "eggs" },
                { "in five minutes", "2026-11-16T17:05:00", "" },
                { "two hours ten minutes", "2026-11-16T19:10:00", "" },
                { "tomorrow 9:00 x", "2026-11-17T08:00:00", "x" },
                { "tomorrow at 8am: x", "2026-11-17T07:00:00", "x" },
                { "tomorrow buy milk", "2026-11-17T08:00:00", "buy milk" },
                { "8pm tomorrow", "2026-11-17T19:00:00", "" },
                { "the day after tomorrow 7:00", "2026-11-18T06:00:00", "" },
                { "friday 20:00 game night", "2026-11-20T19:00:00", "game night" },
                { "on Fri, 8pm", "2026-11-20T19:00:00", "" },
                { "monday 17:00", "2026-11-23T16:00:00", "" },
                { "monday 19:00", "2026-11-16T18:00:00", "" },
                { "next monday 19:00", "2026-11-23T18:00:00", "" },
                { "at 20:00 on friday beer", "2026-11-20T19:00:00", "beer" },
                { "18:30 on the roof", "2026-11-16T17:30:00", "on the roof" },
                { "2026-11-20 18:00", "2026-11-20T17:00:00", "" },
                { "2026-11-20T18:00:00+02:00 x", "2026-11-20T16:00:00", "x" },
                { "2026-11-20T18:00Z", "2026-11-20T18:00:00", "" },
                { "2026-11-20T18:00 x", "2026-11-20T17:00:00", "x" },
                { "2026-11-20", "2026-11-20T08:00:00", "" },
                { "20.11. 18:00 x", "2026-11-20T17:00:00", "x" },
                { "1.2. 18:00", "2027-02-01T17:00:00", "" },
                { "20.11.2027 18:00", "2027-11-20T17:00:00", "" },
                { "nov 20 18:00", "2026-11-20T17:00:00", "" },
                { "November 20th, 2027 at 6pm x", "2027-11-20T17:00:00", "x" },
                { "20 nov 18:00", "2026-11-20T17:00:00", "" },
                { "20. july", "2027-07-20T07:00:00", "" },
                { "feb 29 12:00", "2028-02-29T11:00:00", "" },
                /* skipped, doubled */
                { "2027-03-28 02:30", "2027-03-28T01:00:00", "" },
                { "2027-10-31 02:30", "2027-10-31T00:30:00", "" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct when w = parsed(rows[i].text);
                char iso[CLOCK_ISO_SIZE];

                clock_iso(w.at_ms, iso);
                if (strncmp(iso, rows[i].at, 19) != 0 ||
                    strcmp(rows[i].text + w.used, rows[i].rest) != 0 || w.cron[0])
                        fail_msg("'%s': %s, then '%s'", rows[i].text, iso, rows[i].text + w.used);
        }
}

static void what_happens_again_becomes_a_cron_schedule(void **state)
{
        static const struct {
                const char *text, *cron, *rest;
        } rows[] = {
                { "every day 9:00 stand up", "0 9 * * *", "stand up" },
                { "daily at 9:30", "30 9 * * *", "" },
                { "every day", "0 9 * * *", "" },
                { "every friday evening x", "0 20 * * 5", "x" },
                { "every monday 20:00", "0 20 * * 1", "" },
                { "every mon, wed and fri at 8pm x", "0 20 * * 1,3,5", "x" },
                { "every weekday at 8am", "0 8 * * 1-5", "" },
                { "every weekend at noon rest", "0 12 * * 0,6", "rest" },
                { "every week on tuesday 7:00", "0 7 * * 2", "" },
                { "every week", "0 9 * * 1", "" },
                { "every month on the 1st at 8:00 rent", "0 8 1 * *", "rent" },
                { "every month on the last day", "0 9 L * *", "" },
                { "every month", "0 9 16 * *", "" },
                { "every year on nov 20 8:00", "0 8 20 11 *", "" },
                { "every 2 hours drink", "0 0/2 * * *", "drink" },
                { "every 15 minutes", "0/15 * * * *", "" },
                { "every hour", "0 * * * *", "" },
                { "every minute", "* * * * *", "" },
                { "at 20:00 every friday x", "0 20 * * 5", "x" },
                { "cron 0 9 * * 1-5 stand up", "0 9 * * 1-5", "stand up" },
                { "cron \"30 0 9 * * 1-5\" 5 apples", "30 0 9 * * 1-5", "5 apples" },
                { "cron @daily x", "@daily", "x" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct when w = parsed(rows[i].text);
                struct error err;
                struct cron c;

                if (strcmp(w.cron, rows[i].cron) != 0 || w.at_ms != 0 ||
                    strcmp(rows[i].text + w.used, rows[i].rest) != 0)
                        fail_msg("'%s': '%s', then '%s'", rows[i].text, w.cron,
                                 rows[i].text + w.used);
                assert_int_equal(cron_parse(w.cron, &c, &err), 0);
        }
}

static void a_cron_schedule_is_shown_in_words(void **state)
{
        static const struct {
                const char *cron, *words;
        } rows[] = {
                { "0 20 * * 1", "every Monday 20:00" },
                { "30 9 * * *", "every day 09:30" },
                { "0 8 * * 1-5", "every weekday 08:00" },
                { "0 12 * * 0,6", "every Sunday, Saturday 12:00" },
                { "0 8 1 * *", "every month on day 1 08:00" },
                { "0 9 1 * 1", "`0 9 1 * 1`" },
                { "0 9 * * 1-3", "`0 9 * * 1-3`" },
                { "0 9 1,15 * *", "`0 9 1,15 * *`" },
                { "0 8 20 11 *", "`0 8 20 11 *`" },
                { "0/15 * * * *", "`0/15 * * * *`" },
                { "0 9-17 * * *", "`0 9-17 * * *`" },
                { "30 0 9 * * 1-5", "`30 0 9 * * 1-5`" },
                { "@daily", "`@daily`" },
        };
        struct buf b;

        (void)state;
        buf_init(&b, 0);
        for (size_t i = 0; i < COUNT(rows); i++) {
                buf_clear(&b);
                when_describe_cron(rows[i].cron, &b);
                assert_string_equal(b.data, rows[i].words);
        }
        buf_release(&b);
}

/* An interval counts from now: at 18:37, every two hours begins at 20:37. */
static void an_interval_begins_one_interval_ahead(void **state)
{
        static const struct {
                const char *text;
                int64_t minutes;
        } rows[] = { { "every 2 hours", 120 },
                     { "every 3 hours", 180 },
                     { "every 15 minutes", 15 },
                     { "every 12 hours", 720 },
                     { "every hour", 60 } };
        int64_t later_ms = now_ms + INT64_C(37) * 60000;

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct error err;
                struct when w;
                struct cron c;

                assert_int_equal(when_parse(rows[i].text, berlin, later_ms, &w, &err), 0);
                assert_int_equal(cron_parse(w.cron, &c, &err), 0);
                assert_int_equal(cron_next(&c, berlin, later_ms),
                                 later_ms + rows[i].minutes * 60000);
        }
}

static void mistakes_say_what_is_understood(void **state)
{
        static const struct {
                const char *text, *says;
        } rows[] = {
                { "", "30m, in 2 hours" },
                { "buy milk", "tomorrow 9:00" },
                { "5", "30m" },
                { "in a while", "'in' needs a duration" },
                { "25:00", "no such time of day" },
                { "18:77", "no such time of day" },
                { "13pm", "no such time of day" },
                { "30.2. 9:00", "no such day" },
                { "2026-13-01", "no such day" },
                { "feb 30", "no such day" },
                { "2020-01-01 9:00", "in the past" },
                { "today 9:00", "today 09:00 is in the past" },
                { "2026-11-16T16:00:00Z", "in the past" },
                { "in 900 years", "too far ahead" },
                { "9999-01-01", "too far ahead" },
                { "in 1.5 days", "whole numbers" },
                { "every 7 minutes", "divide an hour" },
                { "every 2 days", "divide an hour" },
                { "every second", "divide an hour" },
                { "every blue moon", "days of the week" },
                { "every year", "needs a day" },
                { "every month on the 45th", "1 to 31" },
                { "every monday at 25:00", "no such time of day" },
                { "cron 1 2 3", "five fields" },
                { "cron 99 * * * *", "minute '99'" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct error err = { 0 };
                struct when w;

                if (when_parse(rows[i].text, berlin, now_ms, &w, &err) == 0)
                        fail_msg("'%s' is understood", rows[i].text);
                assert_int_equal(err.kind, ERR_INVALID);
                if (!strstr(err.text, rows[i].says))
                        fail_msg("'%s' says: %s", rows[i].text, err.text);
        }
}

static void times_are_described_as_seen_from_now(void **state)
{
        static const struct {
                const char *at, *text;
        } rows[] = {
                { "2026-11-16T17:30:00Z", "today 18:30" },
                { "2026-11-16T23:30:00Z", "tomorrow 00:30" },
                { "2026-11-15T13:30:00Z", "yesterday 14:30" },
                { "2026-11-20T17:00:00Z", "Fri 20 Nov 18:00" },
                { "2027-01-01T00:00:00Z", "Fri 1 Jan 2027 01:00" },
        };
        struct buf out;
        int64_t ms;

        (void)state;
        buf_init(&out, 0);
        for (size_t i = 0; i < COUNT(rows); i++) {
                buf_clear(&out);
                assert_int_equal(clock_parse_iso(rows[i].at, &ms), 0);
                when_describe(ms, berlin, now_ms, &out);
                assert_string_equal(out.data, rows[i].text);
        }
        buf_release(&out);
}

static void spans_are_rounded_to_one_unit(void **state)
{
        static const struct {
                int64_t ms;
                const char *text;
        } rows[] = {
                { 0, "0 seconds" },      { 1000, "1 second" },     { 59400, "59 seconds" },
                { 59600, "1 minute" },   { 180000, "3 minutes" },  { 3590000, "1 hour" },
                { 7200000, "2 hours" },  { 86400000, "24 hours" }, { 172800000, "2 days" },
                { 432000000, "5 days" },
        };
        struct buf out;

        (void)state;
        buf_init(&out, 0);
        for (size_t i = 0; i < COUNT(rows); i++) {
                buf_clear(&out);
                when_describe_span(rows[i].ms, &out);
                assert_string_equal(out.data, rows[i].text);
        }
        buf_release(&out);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(times_of_people_are_understood),
                cmocka_unit_test(what_happens_again_becomes_a_cron_schedule),
                cmocka_unit_test(a_cron_schedule_is_shown_in_words),
                cmocka_unit_test(an_interval_begins_one_interval_ahead),
                cmocka_unit_test(mistakes_say_what_is_understood),
                cmocka_unit_test(times_are_described_as_seen_from_now),
                cmocka_unit_test(spans_are_rounded_to_one_unit),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
