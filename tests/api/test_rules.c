/* Rules over the API: the same JSON as in the file, in force when it is answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/api_rig.h"
#include "base/json.h"
#include "base/mem.h"

static const char file_rules[] =
        "[{\"name\":\"file\",\"when\":{\"text\":\"file\"},\"debounceMs\":5}]";

static int setup(void **state)
{
        api_rig_setup(state);
        api_rig_dispatch(*state, NULL, file_rules);
        return 0;
}

static void say(struct api_rig *r, const char *text, const char *part)
{
        char *body = mem_printf("{\"instanceId\":\"api\",\"chatId\":\"room\",\"text\":\"%s\","
                                "\"sender\":{\"id\":\"7\"}}",
                                text);

        api_rig_expect(r, "POST", "/api/v2/messages/inbound?wait=15000", body, 202, part);
        free(body);
}

static void a_stored_rule_decides_the_next_message(void **state)
{
        struct api_rig *r = *state;

        say(r, "stored", "no rule matched");
        api_rig_expect(r, "POST", "/api/v2/rules",
                       "{\"rule\":{\"name\":\"mine\",\"when\":{\"text\":\"stored\"}}}", 201,
                       "\"source\":\"stored\",\"position\":0,\"enabled\":true,\"inForce\":true,"
                       "\"overridden\":false");
        say(r, "stored", "re: stored");
        api_rig_dispatch(r, NULL, file_rules); /* a reload */
        say(r, "stored", "re: stored");
        api_rig_expect(r, "PATCH", "/api/v2/rules/mine", "{\"enabled\":false}", 200,
                       "\"inForce\":false");
        say(r, "stored", "no rule matched");
        api_rig_expect(r, "PATCH", "/api/v2/rules/mine", "{\"enabled\":true,\"position\":-3}", 200,
                       "\"position\":-3");
        api_rig_expect(r, "PUT", "/api/v2/rules/mine",
                       "{\"rule\":{\"when\":{\"text\":\"file\"},\"mode\":\"off\"}}", 200,
                       "\"position\":-3");
        say(r, "file", "rule 'mine' says off");
        api_rig_expect(r, "DELETE", "/api/v2/rules/mine", NULL, 200, "deleted");
        say(r, "file", "re: file");
        api_rig_expect(r, "DELETE", "/api/v2/rules/mine", NULL, 404, "NOT_FOUND");
}

static void the_list_shows_where_each_rule_comes_from(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a;
        const json_t *items;

        api_rig_expect(r, "PUT", "/api/v2/rules/first%20one", "{\"rule\":{},\"position\":-1}", 200,
                       NULL);
        api_rig_expect(r, "PUT", "/api/v2/rules/last", "{\"rule\":{}}", 200, NULL);
        api_rig_expect(r, "PUT", "/api/v2/rules/file", "{\"rule\":{\"mode\":\"off\"}}", 200,
                       "\"inForce\":false,\"overridden\":true,\"why\":\"the file has a rule of "
                       "this name\"");
        a = api_rig_ask(r, "GET", "/api/v2/rules", NULL);
        items = json_object_get(a.json, "items");
        assert_int_equal(json_array_size(items), 4);
        assert_string_equal(json_str(json_array_get(items, 0), "name", ""), "first one");
        assert_string_equal(json_str(json_array_get(items, 1), "source", ""), "file");
        assert_string_equal(json_str(json_array_get(items, 2), "name", ""), "last");
        assert_true(json_flag(json_array_get(items, 3), "overridden", false));
        api_answer_release(&a);
        api_rig_expect(r, "GET", "/api/v2/rules/file", NULL, 200,
                       "\"source\":\"file\",\"position\":null,\"enabled\":true,\"inForce\":true,"
                       "\"overridden\":false,\"why\":null,\"rule\":{\"name\":\"file\","
                       "\"when\":{\"text\":[\"file\"]},\"debounceMs\":5}");
        api_rig_expect(r, "GET", "/api/v2/rules/first%20one", NULL, 200, "\"rule\":{}");
        api_rig_expect(r, "GET", "/api/v2/rules/nobody", NULL, 404, "NOT_FOUND");
}

static void mistakes_name_their_field(void **state)
{
        struct api_rig *r = *state;

        api_rig_expect(r, "POST", "/api/v2/rules", "{\"rule\":{\"when\":{}}}", 400,
                       "\"rule.name\":[");
        api_rig_expect(r, "POST", "/api/v2/rules",
                       "{\"rule\":{\"name\":\"x\",\"when\":{\"txt\":\"a\"}}}", 400,
                       "\"rule.when\":[\"unknown key 'txt' (did you mean 'text'?)\"]");
        api_rig_expect(r, "POST", "/api/v2/rules",
                       "{\"rule\":{\"name\":\"x\",\"when\":{\"text\":[\"a\",\"(\"]}}}", 400,
                       "\"rule.when.text[1]\":[");
        api_rig_expect(r, "POST", "/api/v2/rules",
                       "{\"rule\":{\"name\":\"x\",\"agent\":\"nobody\"}}", 400,
                       "\"rule.agent\":[\"there is no agent 'nobody'\"]");
        api_rig_expect(r, "PUT", "/api/v2/rules/x", "{\"rule\":{\"name\":\"y\"}}", 400,
                       "\"rule.name\":[");
        api_rig_expect(r, "PUT", "/api/v2/rules/x", "{\"position\":1}", 400, "\"rule\":[");
        api_rig_expect(r, "PATCH", "/api/v2/rules/x", "{}", 404, NULL);
        api_rig_expect(r, "POST", "/api/v2/rules", "{\"rule\":{\"name\":\"x\"}}", 201, NULL);
        api_rig_expect(r, "POST", "/api/v2/rules", "{\"rule\":{\"name\":\"x\"}}", 409, "CONFLICT");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_stored_rule_decides_the_next_message, setup,
                                                api_rig_teardown),
                cmocka_unit_test_setup_teardown(the_list_shows_where_each_rule_comes_from, setup,
                                                api_rig_teardown),
                cmocka_unit_test_setup_teardown(mistakes_name_their_field, setup, api_rig_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
