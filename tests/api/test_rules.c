/* Rules over the API: the same JSON as in the file, in force when the answer comes. */
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
        "{\"rules\":[{\"name\":\"file\",\"when\":{\"text\":\"file\"},\"debounceMs\":5}]}";

/* The configuration, as a reload would tell it. */
static void tell(struct api_rig *r)
{
        struct dispatch_adapter *a = mem_array(1, sizeof(*a));
        struct rule *rules = mem_array(1, sizeof(*rules));
        struct error err;
        struct settings_source *src =
                settings_source_new("config.json", NULL, file_rules, strlen(file_rules), &err);
        const json_t *list = json_object_get(settings_source_root(src), "rules");

        assert_int_equal(rule_read(src, 0, json_array_get(list, 0), rules, &err), 0);
        settings_source_free(src);
        a[0] = (struct dispatch_adapter){ .name = mem_strdup("api"),
                                          .platform = mem_strdup("api"),
                                          .trusted = true,
                                          .max_hops = 3 };
        dispatch_set(r->dispatch, a, 1, rules, 1, "echo");
        r->dispatches = true;
}

static int setup(void **state)
{
        *state = api_rig_new();
        tell(*state);
        return 0;
}

static int teardown(void **state)
{
        api_rig_free(*state);
        return 0;
}

static void expect(struct api_rig *r, const char *method, const char *path, const char *body,
                   int status, const char *part)
{
        struct api_answer a = api_rig_ask(r, method, path, body);

        if (a.status != status || (part && !strstr(a.text, part)))
                fail_msg("%s %s: wanted %d and '%s', got %s", method, path, status,
                         part ? part : "", a.text);
        api_answer_release(&a);
}

static void say(struct api_rig *r, const char *text, const char *part)
{
        char *body = mem_printf(
                "{\"instanceId\":\"api\",\"chatId\":\"room\",\"text\":\"%s\",\"sender\":{\"id\":\"7\"}}",
                text);

        expect(r, "POST", "/api/v2/messages/inbound?wait=15000", body, 202, part);
        free(body);
}

static void a_stored_rule_decides_the_next_message(void **state)
{
        struct api_rig *r = *state;

        say(r, "stored", "no rule matched");
        expect(r, "POST", "/api/v2/rules",
               "{\"rule\":{\"name\":\"mine\",\"when\":{\"text\":\"stored\"}}}", 201,
               "\"source\":\"stored\",\"position\":0,\"enabled\":true,\"inForce\":true,\"overridden\":false");
        say(r, "stored", "re: stored");
        tell(r); /* a reload */
        say(r, "stored", "re: stored");
        expect(r, "PATCH", "/api/v2/rules/mine", "{\"enabled\":false}", 200, "\"inForce\":false");
        say(r, "stored", "no rule matched");
        expect(r, "PATCH", "/api/v2/rules/mine", "{\"enabled\":true,\"position\":-3}", 200,
               "\"position\":-3");
        expect(r, "PUT", "/api/v2/rules/mine",
               "{\"rule\":{\"when\":{\"text\":\"file\"},\"mode\":\"off\"}}", 200,
               "\"position\":-3");
        say(r, "file", "rule 'mine' says off");
        expect(r, "DELETE", "/api/v2/rules/mine", NULL, 200, "deleted");
        say(r, "file", "re: file");
        expect(r, "DELETE", "/api/v2/rules/mine", NULL, 404, "NOT_FOUND");
}

static void the_list_shows_where_each_rule_comes_from(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a;
        const json_t *items;

        expect(r, "PUT", "/api/v2/rules/first%20one", "{\"rule\":{},\"position\":-1}", 200, NULL);
        expect(r, "PUT", "/api/v2/rules/last", "{\"rule\":{}}", 200, NULL);
        expect(r, "PUT", "/api/v2/rules/file", "{\"rule\":{\"mode\":\"off\"}}", 200,
               "\"inForce\":false,\"overridden\":true,\"why\":\"the file has a rule of this name\"");
        a = api_rig_ask(r, "GET", "/api/v2/rules", NULL);
        items = json_object_get(a.json, "items");
        assert_int_equal(json_array_size(items), 4);
        assert_string_equal(json_str(json_array_get(items, 0), "name", ""), "first one");
        assert_string_equal(json_str(json_array_get(items, 1), "source", ""), "file");
        assert_string_equal(json_str(json_array_get(items, 2), "name", ""), "last");
        assert_true(json_flag(json_array_get(items, 3), "overridden", false));
        api_answer_release(&a);
        expect(r, "GET", "/api/v2/rules/file", NULL, 200,
               "\"source\":\"file\",\"position\":null,\"enabled\":true,\"inForce\":true,\"overridden\":false,\"why\":null,\"rule\":{\"name\":\"file\",\"when\":{\"text\":[\"file\"]},\"debounceMs\":5}");
        expect(r, "GET", "/api/v2/rules/first%20one", NULL, 200, "\"rule\":{}");
        expect(r, "GET", "/api/v2/rules/nobody", NULL, 404, "NOT_FOUND");
}

static void mistakes_name_their_field(void **state)
{
        struct api_rig *r = *state;

        expect(r, "POST", "/api/v2/rules", "{\"rule\":{\"when\":{}}}", 400, "\"rule.name\":[");
        expect(r, "POST", "/api/v2/rules", "{\"rule\":{\"name\":\"x\",\"when\":{\"txt\":\"a\"}}}",
               400, "\"rule.when\":[\"unknown key 'txt' (did you mean 'text'?)\"]");
        expect(r, "POST", "/api/v2/rules",
               "{\"rule\":{\"name\":\"x\",\"when\":{\"text\":[\"a\",\"(\"]}}}", 400,
               "\"rule.when.text[1]\":[");
        expect(r, "POST", "/api/v2/rules", "{\"rule\":{\"name\":\"x\",\"agent\":\"nobody\"}}", 400,
               "\"rule.agent\":[\"there is no agent 'nobody'\"]");
        expect(r, "PUT", "/api/v2/rules/x", "{\"rule\":{\"name\":\"y\"}}", 400, "\"rule.name\":[");
        expect(r, "PUT", "/api/v2/rules/x", "{\"position\":1}", 400, "\"rule\":[");
        expect(r, "PATCH", "/api/v2/rules/x", "{}", 404, NULL);
        expect(r, "POST", "/api/v2/rules", "{\"rule\":{\"name\":\"x\"}}", 201, NULL);
        expect(r, "POST", "/api/v2/rules", "{\"rule\":{\"name\":\"x\"}}", 409, "CONFLICT");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_stored_rule_decides_the_next_message, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(the_list_shows_where_each_rule_comes_from, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(mistakes_name_their_field, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
