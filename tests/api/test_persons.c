/* Persons over the API: found, linked, merged, unlinked, and addressed as persons. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../lib/api_rig.h"
#include "../lib/rows.h"
#include "base/json.h"
#include "base/mem.h"

#define PERSONS "/api/v2/persons"

static int setup(void **state)
{
        api_rig_setup(state);
        api_rig_dispatch(*state, "everyone", NULL);
        return 0;
}

static void say(struct api_rig *r, const char *adapter, const char *sender, const char *name,
                const char *text, const char *part)
{
        char *body = mem_printf(
                "{\"instanceId\":\"%s\",\"chatId\":\"chat-%s\",\"text\":\"%s\","
                "\"sender\":{\"id\":\"%s\",\"displayName\":\"%s\",\"username\":\"u%s\"}}",
                adapter, sender, text, sender, name, sender);

        api_rig_expect(r, "POST", "/api/v2/messages/inbound?wait=15000", body, 202, part);
        free(body);
}

static void people_are_recorded_and_found(void **state)
{
        struct api_rig *r = *state;

        say(r, "api", "7", "Ann", "hi", "re: hi");
        say(r, "terminal", "9", "Bob 100%", "hi", "re: hi");
        api_rig_expect(r, "GET", PERSONS, NULL, 200,
                       "\"items\":[{\"id\":\"per-2\",\"displayName\":\"Bob 100%\"");
        api_rig_expect(r, "GET", PERSONS "?search=AN", NULL, 200,
                       "\"items\":[{\"id\":\"per-1\",\"displayName\":\"Ann\"");
        api_rig_expect(r, "GET", PERSONS "?search=0%25", NULL, 200, "\"items\":[{\"id\":\"per-2\"");
        api_rig_expect(r, "GET", PERSONS "?search=u7", NULL, 200, "\"username\":\"u7\"");
        api_rig_expect(r, "GET", PERSONS "?search=9", NULL, 200, "\"id\":\"cli:9\"");
        api_rig_expect(r, "GET", PERSONS "?search=nobody", NULL, 200, "\"items\":[]");
        api_rig_expect(r, "GET", PERSONS "?limit=1", NULL, 200,
                       "\"hasMore\":true,\"cursor\":\"per-2\"");
        api_rig_expect(r, "GET", PERSONS "?limit=1&cursor=per-2", NULL, 200,
                       "\"hasMore\":false,\"cursor\":\"per-1\"");
        api_rig_expect(r, "PATCH", PERSONS "/per-1", "{\"displayName\":\"Ann from sales\"}", 200,
                       "Ann from sales");
        api_rig_expect(r, "GET", PERSONS "/per-1", NULL, 200,
                       "\"chats\":[{\"instanceId\":\"api\",\"channel\":\"chat-7\"}]");
        api_rig_expect(r, "GET", PERSONS "/per-9", NULL, 404, "NOT_FOUND");
        api_rig_expect(r, "PATCH", PERSONS "/per-9", "{\"displayName\":\"x\"}", 404, "NOT_FOUND");
}

static void a_person_says_when_and_where_they_are_reached(void **state)
{
        static const struct {
                const char *body, *part;
        } wrong[] = {
                { "{\"timezone\":\"Mars/Olympus\"}", "\"timezone\":[" },
                { "{\"quietHours\":\"late\"}", "expected hours such as '22:00-07:00'" },
                { "{\"quietHours\":\"00:00-24:00\"}", "never end" },
                { "{\"dailyCap\":-2}", "\"dailyCap\":[" },
                { "{\"reachAt\":\"nowhere/4\"}", "there is no adapter 'nowhere'" },
        };
        struct api_rig *r = *state;

        say(r, "api", "7", "Ann", "hi", "re: hi");
        api_rig_expect(r, "GET", PERSONS "/per-1", NULL, 200,
                       "\"timezone\":null,\"quietHours\":null,\"dailyCap\":null,"
                       "\"reachAt\":null");
        api_rig_expect(r, "PATCH", PERSONS "/per-1",
                       "{\"timezone\":\"Europe/Berlin\",\"quietHours\":\"22:00-7:00\","
                       "\"dailyCap\":5,\"reachAt\":\"api/chat-7\"}",
                       200,
                       "\"timezone\":\"Europe/Berlin\",\"quietHours\":\"22:00-7:00\","
                       "\"dailyCap\":5,\"reachAt\":\"api/chat-7\"");
        for (size_t i = 0; i < COUNT(wrong); i++)
                api_rig_expect(r, "PATCH", PERSONS "/per-1", wrong[i].body, 400, wrong[i].part);
        /* what is not named stays */
        api_rig_expect(r, "PATCH", PERSONS "/per-1",
                       "{\"displayName\":\"Ann A.\",\"timezone\":\"\",\"dailyCap\":-1}", 200,
                       "\"timezone\":null,\"quietHours\":\"22:00-7:00\",\"dailyCap\":null,"
                       "\"reachAt\":\"api/chat-7\"");
        api_rig_expect(r, "PATCH", PERSONS "/per-1", "{}", 200, "\"displayName\":\"Ann A.\"");
        api_rig_expect(r, "PATCH", PERSONS "/per-9", "{\"dailyCap\":1}", 404, "NOT_FOUND");
}

static void a_merge_keeps_rules_and_history(void **state)
{
        struct api_rig *r = *state;

        say(r, "api", "7", "Ann", "hi", "re: hi");
        say(r, "terminal", "9", "Ann", "hi", "re: hi");
        api_rig_expect(r, "POST", "/api/v2/access/rules",
                       "{\"ruleType\":\"deny\",\"personId\":\"per-2\",\"instanceId\":\"api\"}", 201,
                       "\"personId\":\"per-2\"");
        api_rig_expect(
                r, "POST", PERSONS "/merge",
                "{\"sourcePersonId\":\"per-2\",\"targetPersonId\":\"per-1\",\"reason\":\"asked\"}",
                200, "\"id\":\"per-1\",\"displayName\":\"Ann\"");
        say(r, "api", "7", "Ann", "hi", "access rule 'acr-1' denies person 'per-2'");
        say(r, "terminal", "9", "Ann", "hi", "re: hi");
        api_rig_expect(r, "GET", PERSONS "/per-2", NULL, 200, "\"id\":\"per-1\"");
        api_rig_expect(r, "GET", PERSONS "/per-2", NULL, 200, "\"aliases\":[\"per-2\"]");
        api_rig_expect(r, "GET", "/api/v2/events?type=identity.*", NULL, 200,
                       "\"payload\":{\"personId\":\"per-1\",\"otherPersonId\":\"per-2\","
                       "\"identities\":[\"api:7\",\"cli:9\"],\"by\":\"the "
                       "operator\",\"reason\":\"asked\"}");
        api_rig_expect(r, "GET", "/api/v2/trigger-logs", NULL, 200, "\"senderId\":\"9\"");
        api_rig_expect(r, "POST", PERSONS "/unlink", "{\"identity\":\"cli:9\"}", 200,
                       "\"id\":\"per-2\"");
        say(r, "api", "7", "Ann", "hi", "re: hi");
        api_rig_expect(r, "POST", PERSONS "/link",
                       "{\"identityA\":\"cli:9\",\"identityB\":\"api:7\"}", 200,
                       "\"id\":\"per-2\"");
        api_rig_expect(r, "POST", PERSONS "/link",
                       "{\"identityA\":\"cli:9\",\"identityB\":\"api:7\"}", 409, "CONFLICT");
        api_rig_expect(r, "POST", PERSONS "/link",
                       "{\"identityA\":\"cli:9\",\"identityB\":\"api:8\"}", 404,
                       "has never written");
        api_rig_expect(r, "POST", PERSONS "/link",
                       "{\"identityA\":\"cli\",\"identityB\":\"api:8\"}", 400, "\"identityA\":[");
        api_rig_expect(r, "POST", PERSONS "/merge",
                       "{\"sourcePersonId\":\"per-8\",\"targetPersonId\":\"per-1\"}", 404, NULL);
}

static void a_message_to_a_person_goes_to_their_direct_chat(void **state)
{
        struct api_rig *r = *state;

        say(r, "api", "7", "Ann", "hi", "re: hi");
        say(r, "terminal", "9", "Ann", "hi", "re: hi");
        api_rig_expect(r, "POST", "/api/v2/messages/send",
                       "{\"instanceId\":\"api\",\"to\":\"per-1\",\"text\":\"news\"}", 202,
                       "\"status\":\"queued\"");
        api_rig_expect(r, "GET", "/api/v2/deliveries/dlv-3", NULL, 200, "\"channel\":\"chat-7\"");
        api_rig_expect(r, "POST", "/api/v2/messages/send",
                       "{\"instanceId\":\"terminal\",\"to\":\"per-1\",\"text\":\"news\"}", 409,
                       "RECIPIENT_NOT_ON_CHANNEL");
        api_rig_expect(r, "POST", "/api/v2/messages/send",
                       "{\"instanceId\":\"api\",\"to\":\"per-77\",\"text\":\"news\"}", 404,
                       "\"resourceType\":\"person\"");
        api_rig_expect(r, "POST", PERSONS "/link",
                       "{\"identityA\":\"api:7\",\"identityB\":\"cli:9\"}", 200, NULL);
        api_rig_expect(r, "POST", "/api/v2/messages/send",
                       "{\"instanceId\":\"terminal\",\"to\":\"per-2\",\"text\":\"news\"}", 202,
                       NULL);
        api_rig_expect(r, "GET", "/api/v2/deliveries/dlv-4", NULL, 200, "\"channel\":\"chat-9\"");
}

#define SEND "/api/v2/messages/send"

static void a_message_to_a_person_finds_its_chat(void **state)
{
        static const struct {
                const char *body;
                int status;
                const char *part;
        } rows[] = {
                { "{\"person\":\"per-1\",\"text\":\"one\"}", 202,
                  "{\"data\":{\"scheduleId\":\"sch-1\",\"personId\":\"per-1\","
                  "\"status\":\"queued\",\"traceId\":" },
                { "{\"person\":\"api:7\",\"text\":\"two\"}", 202, "\"personId\":\"per-1\"" },
                { "{\"person\":\"@ann\",\"text\":\"three\",\"buttons\":[{\"text\":\"OK\","
                  "\"data\":\"ok\"}]}",
                  202, "\"scheduleId\":\"sch-3\"" },
                { "{\"person\":\"ann\",\"text\":\"four\"}", 429,
                  "'per-1' gets no more than 3 unasked messages a day (their dailyCap)" },
                { "{\"person\":\"bob\",\"text\":\"x\"}", 404, "there is no person 'bob'" },
                { "{\"person\":\"per-1\",\"to\":\"c\",\"text\":\"x\"}", 400,
                  "cannot be combined with instanceId" },
                { "{\"text\":\"x\"}", 400, "is required, unless person is given" },
                { "{\"person\":\"per-1\",\"text\":\"x\",\"buttons\":[{\"text\":\"OK\"}]}", 400,
                  "needs either data or url" },
                { "{\"person\":\"per-1\"}", 400, "\"text\":[" },
        };
        struct api_rig *r = *state;
        char noon[60]; /* in this zone: no day ends during the test */

        snprintf(noon, sizeof(noon), "{\"timezone\":\"Etc/GMT%+d\",\"dailyCap\":3}",
                 (int)(time(NULL) / 3600 % 24) - 12);
        say(r, "api", "7", "Ann", "hi", "re: hi");
        api_rig_expect(r, "PATCH", PERSONS "/per-1", noon, 200, NULL);
        for (size_t i = 0; i < COUNT(rows); i++)
                api_rig_expect(r, "POST", SEND, rows[i].body, rows[i].status, rows[i].part);
        assert_int_equal(rows_count(r->store, "schedules WHERE source = 'notice'"), 3);
        assert_string_equal(rows_text(r->store, "options FROM schedules WHERE id = 3"),
                            "{\"buttons\":[[{\"text\":\"OK\",\"data\":\"ok\"}]]}");
        assert_string_equal(rows_text(r->store, "created_by FROM schedules WHERE id = 1"),
                            "the operator");
        say(r, "terminal", "9", "Ann", "hi", "re: hi");
        api_rig_expect(r, "POST", SEND, "{\"person\":\"Ann\",\"text\":\"x\"}", 409,
                       "several persons are named 'Ann': 'per-2' (Ann, cli:9), 'per-1' (Ann, "
                       "api:7)");
}

static void expect_repeated(struct api_rig *r, const char *body, int status, const char *part)
{
        struct api_answer a;
        struct http_raw c;

        api_rig_send(r, &c, "POST", SEND, "Idempotency-Key: k1\r\n", body);
        a = api_rig_receive(&c);
        if (a.status != status || !strstr(a.text, part))
                fail_msg("%s", a.text);
        api_answer_release(&a);
}

static void a_repeated_request_is_one_notice(void **state)
{
        static const char body[] = "{\"person\":\"per-1\",\"text\":\"one\"}";
        struct api_rig *r = *state;

        say(r, "api", "7", "Ann", "hi", "re: hi");
        expect_repeated(r, body, 202, "\"status\":\"queued\"");
        expect_repeated(r, body, 202,
                        "{\"scheduleId\":\"sch-1\",\"personId\":\"per-1\","
                        "\"status\":\"duplicate\"}");
        expect_repeated(r, "{\"person\":\"per-1\",\"text\":\"two\"}", 409,
                        "this idempotency key was used for another request");
        assert_int_equal(rows_count(r->store, "schedules"), 1);
        assert_int_equal(rows_number(r->store, "notice_count FROM persons"), 1);
}

static void quiet_hours_defer_a_message_to_a_person(void **state)
{
        struct api_rig *r = *state;

        say(r, "api", "7", "Ann", "hi", "re: hi");
        /* it is quiet but for a minute about twelve hours from now */
        api_rig_expect(r, "PATCH", PERSONS "/per-1",
                       time(NULL) / 43200 % 2 ? "{\"timezone\":\"UTC\",\"quietHours\":"
                                                "\"00:00-06:00; 06:01-24:00\"}"
                                              : "{\"timezone\":\"UTC\",\"quietHours\":"
                                                "\"00:00-18:00; 18:01-24:00\"}",
                       200, NULL);
        api_rig_expect(r, "POST", SEND, "{\"person\":\"per-1\",\"text\":\"one\"}", 202,
                       "\"status\":\"deferred\",\"notBefore\":\"20");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(people_are_recorded_and_found, setup,
                                                api_rig_teardown),
                cmocka_unit_test_setup_teardown(a_person_says_when_and_where_they_are_reached,
                                                setup, api_rig_teardown),
                cmocka_unit_test_setup_teardown(a_merge_keeps_rules_and_history, setup,
                                                api_rig_teardown),
                cmocka_unit_test_setup_teardown(a_message_to_a_person_goes_to_their_direct_chat,
                                                setup, api_rig_teardown),
                cmocka_unit_test_setup_teardown(a_message_to_a_person_finds_its_chat, setup,
                                                api_rig_teardown),
                cmocka_unit_test_setup_teardown(a_repeated_request_is_one_notice, setup,
                                                api_rig_teardown),
                cmocka_unit_test_setup_teardown(quiet_hours_defer_a_message_to_a_person, setup,
                                                api_rig_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
