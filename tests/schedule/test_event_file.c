/* Files of workspace/events: what is read, and what is said about mistakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "schedule/event_file.h"

static struct event_file read_file(const char *text)
{
        struct error err = { 0 };
        struct event_file f;

        if (event_file_parse("events/a.json", text, strlen(text), &f, NULL, &err) < 0)
                fail_msg("%s", err.text);
        return f;
}

static void the_files_of_mom_are_read(void **state)
{
        struct event_file f;

        (void)state;
        f = read_file("{\"type\": \"immediate\", \"channelId\": \"C123ABC\", \"text\": \"New "
                      "GitHub issue opened\"}");
        assert_int_equal(f.kind, SCHEDULE_IMMEDIATE);
        assert_string_equal(f.channel_id, "C123ABC");
        assert_string_equal(f.text, "New GitHub issue opened");
        event_file_release(&f);

        f = read_file("{\"type\": \"one-shot\", \"channelId\": \"C1\", \"text\": \"dentist\", "
                      "\"at\": \"2025-12-15T09:00:00+01:00\"}");
        assert_int_equal(f.kind, SCHEDULE_ONE_SHOT);
        assert_int_equal(f.at_ms, 1765785600000);
        event_file_release(&f);

        f = read_file("{\"type\": \"periodic\", \"channelId\": \"C1\", \"text\": \"inbox\", "
                      "\"schedule\": \"0 9 * * 1-5\", \"timezone\": \"Europe/Vienna\"}");
        assert_int_equal(f.kind, SCHEDULE_PERIODIC);
        assert_string_equal(f.timezone, "Europe/Vienna");
        assert_true(f.enabled && !f.missed && f.max_age_seconds == -1 && !f.check);
        event_file_release(&f);
}

static void times_are_read_with_their_offset(void **state)
{
        static const struct {
                const char *at;
                int64_t ms; /* 0: refused */
        } rows[] = {
                { "2026-12-15T09:00:00Z", 1797325200000 },
                { "2026-12-15T09:00:00.250+05:30", 1797305400250 },
                { "2026-12-15T09:00+01:00", 1797321600000 },
                { "2026-12-15T09:00Z", 1797325200000 },
                { "2126-12-15T09:00:00Z", 4952998800000 },
                { "2026-12-15T09:00:00", 0 },
                { "2026-12-15T09:00", 0 },
                { "2026-12-15", 0 },
                { "2026-02-30T09:00:00Z", 0 },
                { "tomorrow", 0 },
                { "1960-01-01T00:00:00Z", 0 },
                { "99999999999999999:9", 0 },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *text = mem_printf("{\"type\":\"one-shot\",\"text\":\"x\",\"at\":\"%s\"}",
                                        rows[i].at);
                struct error err = { 0 };
                struct event_file f;
                int rc = event_file_parse("a.json", text, strlen(text), &f, NULL, &err);

                if (rows[i].ms == 0) {
                        assert_int_equal(rc, -1);
                        assert_non_null(strstr(err.text, "a.json:1: at: "));
                } else {
                        assert_int_equal(rc, 0);
                        assert_int_equal(f.at_ms, rows[i].ms);
                        event_file_release(&f);
                }
                free(text);
        }
}

static void our_own_keys_become_options(void **state)
{
        struct event_file f;
        char *options;

        (void)state;
        f = read_file("{ // a comment\n"
                      "\"type\": \"periodic\", \"schedule\": \"*/5 * * * *\", \"text\": \"mail?\","
                      "\"thread\": \"9\", \"agent\": \"helper\", \"missed\": \"skip\","
                      "\"maxAgeSeconds\": 60, \"quietHours\": [\"22:00-07:00\"],"
                      "\"timezone\": \"UTC\", \"check\": \"./mail\", \"checkSeconds\": 5,"
                      "\"enabled\": false }");
        assert_null(f.channel_id);
        assert_string_equal(f.thread, "9");
        assert_string_equal(f.missed, "skip");
        assert_int_equal(f.max_age_seconds, 60);
        assert_false(f.enabled);
        options = event_file_options(&f, true, "other");
        assert_string_equal(
                options,
                "{\"chat\":\"dm\",\"agent\":\"helper\",\"check\":\"./mail\","
                "\"checkSeconds\":5,\"checkAgent\":\"other\",\"quietHours\":[\"22:00-07:00\"],"
                "\"quietZone\":\"UTC\"}");
        free(options);
        event_file_release(&f);
}

static void mistakes_say_where_they_are_and_what_is_accepted(void **state)
{
        static const struct {
                const char *text, *error;
        } rows[] = {
                { "", "a.json:1: " },
                { "{\"type\": \"immediate\",\n\"text\": \"half", "a.json:2: " },
                { "[]", "a.json:1: expected an object" },
                { "{\"text\":\"x\"}", "a.json:1: missing key 'type'" },
                { "{\"type\":\"immediate\"}", "a.json:1: missing key 'text'" },
                { "{\"type\":\"oneshot\",\"text\":\"x\"}", "one-shot" },
                { "{\"type\":\"immediate\",\n\"text\":\"x\",\n\"chanelId\":\"C1\"}",
                  "a.json:3: unknown key 'chanelId' (did you mean 'channelId'?)" },
                { "{\"type\":\"one-shot\",\"text\":\"x\"}", "at: missing; expected a time" },
                { "{\"type\":\"immediate\",\"text\":\"x\",\"at\":\"2026-12-15T09:00:00Z\"}",
                  "at: only an event of type 'one-shot' has it, and this one is 'immediate'" },
                { "{\"type\":\"periodic\",\"text\":\"x\"}", "schedule: missing; expected five" },
                { "{\"type\":\"one-shot\",\"at\":\"2026-12-15T09:00:00Z\",\"text\":\"x\","
                  "\"schedule\":\"0 9 * * *\"}",
                  "schedule: only an event of type 'periodic' has it" },
                { "{\"type\":\"periodic\",\"text\":\"x\",\"schedule\":\"0 25 * * *\"}",
                  "a.json:1: schedule: " },
                { "{\"type\":\"periodic\",\"text\":\"x\",\"schedule\":\"0 9 * * *\","
                  "\"timezone\":\"Europe/Berlim\"}",
                  "a.json:1: timezone: " },
                { "{\"type\":\"immediate\",\"text\":\"x\",\"quietHours\":\"at night\"}",
                  "quietHours: 'at night': expected hours such as '22:00-07:00'" },
                { "{\"type\":\"immediate\",\"text\":\"x\",\"quietHours\":[\"00:00-24:00\"]}",
                  "quietHours: they never end" },
                { "{\"type\":\"immediate\",\"text\":\"x\",\"missed\":\"never\"}", "missed: " },
                { "{\"type\":\"immediate\",\"text\":\"x\",\"checkSeconds\":0}", "1 to 3600" },
                { "{\"type\":\"immediate\",\"text\":\"x\",\"maxAgeSeconds\":-1}",
                  "maxAgeSeconds: -1 is too small (0 to 31622400)" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct error err = { 0 };
                struct event_file f;

                assert_int_equal(event_file_parse("a.json", rows[i].text, strlen(rows[i].text), &f,
                                                  NULL, &err),
                                 -1);
                assert_int_equal(err.kind, ERR_INVALID);
                if (!strstr(err.text, rows[i].error))
                        fail_msg("row %zu: %s", i, err.text);
        }
}

static void all_mistakes_are_told(void **state)
{
        static const char text[] = "{\"type\":\"periodic\",\n\"text\":\"x\",\n\"at\":\"9\",\n"
                                   "\"schedule\":\"never\",\n\"timezone\":\"Nowhere\"}";
        struct error err = { 0 };
        struct event_file f;
        struct buf all;

        (void)state;
        buf_init(&all, 0);
        assert_int_equal(event_file_parse("a.json", text, strlen(text), &f, &all, &err), -1);
        assert_non_null(strstr(err.text, "a.json:3: at: "));
        assert_non_null(strstr(all.data, "a.json:3: at: "));
        assert_non_null(strstr(all.data, "\na.json:4: schedule: "));
        assert_non_null(strstr(all.data, "\na.json:5: timezone: "));
        buf_release(&all);
}

static void only_json_files_are_events(void **state)
{
        char longest[EVENT_FILE_NAME_MAX + 2];

        (void)state;
        memset(longest, 'a', sizeof(longest));
        memcpy(longest + EVENT_FILE_NAME_MAX - 4, ".json", 6);
        assert_true(event_file_is_name("a.json"));
        assert_false(event_file_is_name(".json"));
        assert_false(event_file_is_name(".a.json"));
        assert_false(event_file_is_name("a.json~"));
        assert_false(event_file_is_name("a.json.txt"));
        assert_false(event_file_is_name("broken"));
        assert_false(event_file_is_name(longest));
        assert_true(event_file_is_name(longest + 1));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_files_of_mom_are_read),
                cmocka_unit_test(times_are_read_with_their_offset),
                cmocka_unit_test(our_own_keys_become_options),
                cmocka_unit_test(mistakes_say_where_they_are_and_what_is_accepted),
                cmocka_unit_test(all_mistakes_are_told),
                cmocka_unit_test(only_json_files_are_events),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
