/* Access rules and pairing over the API: a change counts when it is answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/api_rig.h"
#include "base/json.h"
#include "base/mem.h"

#define RULES "/api/v2/access/rules"

/* The adapter "api" as one of a platform that lets in only allowed senders. */
static int setup(void **state)
{
        api_rig_setup(state);
        api_rig_dispatch(*state, "none", NULL);
        return 0;
}

static void say(struct api_rig *r, const char *sender, const char *part)
{
        char *body = mem_printf("{\"instanceId\":\"api\",\"chatId\":\"%s\",\"text\":\"hi\","
                                "\"sender\":{\"id\":\"%s\",\"displayName\":\"Bob\"}}",
                                sender, sender);

        api_rig_expect(r, "POST", "/api/v2/messages/inbound?wait=15000", body, 202, part);
        free(body);
}

static void rules_about_what_does_not_exist_are_refused(void **state)
{
        static const struct {
                const char *body, *why;
        } rows[] = {
                { "\"platformUserId\":\"telegarm:7\"",
                  "there is no platform 'telegarm' (did you mean 'telegram'?)" },
                { "\"platformUserId\":\"nonsense:7\"", "there is no platform 'nonsense'" },
                { "\"platformUserId\":\"telegram:@ada\"", "nobody called '@ada' has written yet" },
                { "\"platformUserId\":\"discord:general\"", "nobody called 'general'" },
                { "\"personId\":\"per-99\"", "there is no person 'per-99'" },
                { "\"platformUserId\":\"*\"", "'*' allows everyone" },
                { "\"platformUserId\":\"telegram:*\"", "'telegram:*' allows everyone" },
        };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                char *plain = mem_printf("{\"ruleType\":\"allow\",%s}", rows[i].body);
                char *force =
                        mem_printf("{\"ruleType\":\"allow\",\"force\":true,%s}", rows[i].body);

                api_rig_expect(r, "POST", RULES, plain, 400, rows[i].why);
                api_rig_expect(r, "POST", RULES, force, 201, "\"ruleType\":\"allow\"");
                free(plain);
                free(force);
        }
        /* what was stored by force can be changed without it */
        api_rig_expect(r, "PATCH", RULES "/acr-6", "{\"enabled\":false}", 200, "false");
        api_rig_expect(r, "PATCH", RULES "/acr-1", "{\"platformUserId\":\"telegrm:8\"}", 400,
                       "did you mean 'telegram'?");
        api_rig_expect(r, "POST", RULES, "{\"ruleType\":\"deny\",\"platformUserId\":\"*\"}", 201,
                       "\"deny\"");
}

static void an_access_change_takes_effect_at_once(void **state)
{
        struct api_rig *r = *state;

        say(r, "7", "'allow' does not name the sender '7'");
        api_rig_expect(
                r, "POST", RULES,
                "{\"ruleType\":\"allow\",\"platformUserId\":\"api:7\",\"reason\":\"a tester\"}",
                201,
                "\"id\":\"acr-1\",\"ruleType\":\"allow\",\"instanceId\":null,"
                "\"platformUserId\":\"api:7\"");
        say(r, "7", "re: hi");
        api_rig_expect(r, "POST", "/api/v2/access/check",
                       "{\"instanceId\":\"api\",\"platformUserId\":\"7\"}", 200,
                       "\"allowed\":true,\"reason\":null,\"rule\":{\"id\":\"acr-1\"");
        api_rig_expect(r, "POST", RULES,
                       "{\"ruleType\":\"deny\",\"platformUserId\":\"7\",\"instanceId\":\"api\"}",
                       201, "\"by\":\"the operator\"");
        say(r, "7", "access rule 'acr-2' denies '7'");
        api_rig_expect(r, "PATCH", RULES "/acr-2", "{\"enabled\":false}", 200, "\"enabled\":false");
        say(r, "7", "re: hi");
        api_rig_expect(r, "PATCH", RULES "/acr-1", "{\"expiresAt\":\"2001-01-01T00:00:00Z\"}", 200,
                       "\"expired\":true");
        say(r, "7", "'allow' does not name the sender '7'");
        api_rig_expect(r, "PATCH", RULES "/acr-1",
                       "{\"expiresAt\":\"2099-01-01T00:00:00Z\",\"reason\":\"\"}", 200,
                       "\"reason\":null");
        say(r, "7", "re: hi");
        api_rig_expect(r, "DELETE", RULES "/acr-1", NULL, 200, "deleted");
        say(r, "7", "'allow' does not name the sender '7'");
        api_rig_expect(r, "POST", "/api/v2/access/check",
                       "{\"instanceId\":\"api\",\"platformUserId\":\"7\",\"chatType\":\"group\","
                       "\"channel\":\"g\"}",
                       200, "\"allowed\":false,\"reason\":\"channel 'g' is not in 'channels'");
        api_rig_expect(r, "GET", RULES, NULL, 200, "\"items\":[{\"id\":\"acr-2\"");
        api_rig_expect(r, "GET", RULES "/acr-2", NULL, 200, "\"ruleType\":\"deny\"");
}

static void mistakes_are_reported(void **state)
{
        struct api_rig *r = *state;

        api_rig_expect(r, "POST", RULES, "{\"ruleType\":\"allow\"}", 400,
                       "\"platformUserId\":[\"a rule names either");
        api_rig_expect(r, "POST", RULES, "{\"platformUserId\":\"7\"}", 400, "\"ruleType\":[");
        api_rig_expect(r, "POST", RULES, "{\"ruleType\":\"maybe\",\"platformUserId\":\"7\"}", 400,
                       "\"ruleType\":[");
        api_rig_expect(r, "POST", RULES,
                       "{\"ruleType\":\"allow\",\"platformUserId\":\"7\",\"instanceId\":\"no\"}",
                       400, "there is no adapter 'no'");
        api_rig_expect(r, "POST", RULES,
                       "{\"ruleType\":\"allow\",\"platformUserId\":\"7\",\"blockMessage\":\"x\"}",
                       400, "\"blockMessage\":[");
        api_rig_expect(r, "GET", RULES "/acr-9", NULL, 404, "NOT_FOUND");
        api_rig_expect(r, "PATCH", RULES "/acr-9", "{}", 404, "NOT_FOUND");
        api_rig_expect(r, "DELETE", RULES "/acr-9", NULL, 404, "NOT_FOUND");
        api_rig_expect(r, "POST", "/api/v2/access/check",
                       "{\"instanceId\":\"no\",\"platformUserId\":\"7\"}", 404, NULL);
        api_rig_expect(r, "POST", "/api/v2/pairing/approve", "{\"code\":\"ABCD-2345\"}", 404,
                       "no such code is waiting");
        api_rig_expect(r, "POST", "/api/v2/pairing/approve", "{\"code\":\"ABCD-0000\"}", 404,
                       "no such code is waiting");
        api_rig_expect(r, "DELETE", "/api/v2/pairing/pair-3", NULL, 404, "NOT_FOUND");
}

/* The code of the newest waiting pairing; yours to free. */
static char *waiting_code(struct api_rig *r)
{
        struct api_answer a = api_rig_ask(r, "GET", "/api/v2/pairing", NULL);
        char *code = mem_strdup(
                json_str(json_array_get(json_object_get(a.json, "items"), 0), "code", "?"));

        assert_int_equal(a.status, 200);
        api_answer_release(&a);
        return code;
}

static void a_stranger_is_admitted_by_a_code(void **state)
{
        struct api_rig *r = *state;
        char *code, *body;

        api_rig_dispatch(r, "pairing", NULL);
        say(r, "7", "a code was sent (pairing)");
        code = waiting_code(r);
        body = mem_printf("{\"code\":\"%s\"}", code);
        api_rig_expect(r, "GET", "/api/v2/events?type=message.sent", NULL, 200, code);
        api_rig_expect(r, "POST", "/api/v2/pairing/approve", body, 200, "\"state\":\"approved\"");
        say(r, "7", "re: hi");
        api_rig_expect(r, "GET", RULES, NULL, 200, "\"place\":\"dm\"");
        api_rig_expect(r, "GET", "/api/v2/pairing", NULL, 200, "\"ruleId\":\"acr-1\"");
        api_rig_expect(r, "DELETE", "/api/v2/pairing/pair-1", NULL, 200, "revoked");
        api_rig_expect(r, "GET", RULES, NULL, 200, "\"items\":[]");
        free(body);
        free(code);
        say(r, "7", "a code was sent (pairing)");
        code = waiting_code(r);
        body = mem_printf("{\"code\":\"%s\"}", code);
        api_rig_expect(r, "POST", "/api/v2/pairing/deny", body, 200, "\"state\":\"denied\"");
        say(r, "7", "denies 'api:7': pairing of Bob");
        free(body);
        free(code);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(an_access_change_takes_effect_at_once, setup,
                                                api_rig_teardown),
                cmocka_unit_test_setup_teardown(rules_about_what_does_not_exist_are_refused, setup,
                                                api_rig_teardown),
                cmocka_unit_test_setup_teardown(mistakes_are_reported, setup, api_rig_teardown),
                cmocka_unit_test_setup_teardown(a_stranger_is_admitted_by_a_code, setup,
                                                api_rig_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
