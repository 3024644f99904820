/* People over the API: found, linked, merged and unlinked, and written to by who they are. */
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

#define PERSONS "/api/v2/persons"

/* "api" and "terminal" as adapters of two platforms that trust nobody but let everyone write. */
static int setup(void **state)
{
        struct api_rig *r = api_rig_new();
        struct dispatch_adapter *a = mem_array(2, sizeof(*a));
        char *entry = (char *)"everyone";
        struct setting_list list = { &entry, 1, true };
        struct access_lists lists = { .dm = &list };

        a[0] = (struct dispatch_adapter){ .name = mem_strdup("api"),
                                          .platform = mem_strdup("api"),
                                          .access = access_new(&lists),
                                          .max_hops = 3 };
        a[1] = (struct dispatch_adapter){ .name = mem_strdup("terminal"),
                                          .platform = mem_strdup("cli"),
                                          .access = access_new(&lists),
                                          .max_hops = 3 };
        dispatch_set(r->dispatch, a, 2, NULL, 0, "echo");
        r->dispatches = true;
        *state = r;
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

static void say(struct api_rig *r, const char *adapter, const char *sender, const char *name,
                const char *text, const char *part)
{
        char *body = mem_printf(
                "{\"instanceId\":\"%s\",\"chatId\":\"chat-%s\",\"text\":\"%s\",\"sender\":{\"id\":\"%s\",\"displayName\":\"%s\",\"username\":\"u%s\"}}",
                adapter, sender, text, sender, name, sender);

        expect(r, "POST", "/api/v2/messages/inbound?wait=15000", body, 202, part);
        free(body);
}

static void people_are_recorded_and_found(void **state)
{
        struct api_rig *r = *state;

        say(r, "api", "7", "Ann", "hi", "re: hi");
        say(r, "terminal", "9", "Bob 100%", "hi", "re: hi");
        expect(r, "GET", PERSONS, NULL, 200,
               "\"items\":[{\"id\":\"per-2\",\"displayName\":\"Bob 100%\"");
        expect(r, "GET", PERSONS "?search=AN", NULL, 200,
               "\"items\":[{\"id\":\"per-1\",\"displayName\":\"Ann\"");
        expect(r, "GET", PERSONS "?search=0%25", NULL, 200, "\"items\":[{\"id\":\"per-2\"");
        expect(r, "GET", PERSONS "?search=u7", NULL, 200, "\"username\":\"u7\"");
        expect(r, "GET", PERSONS "?search=9", NULL, 200, "\"id\":\"cli:9\"");
        expect(r, "GET", PERSONS "?search=nobody", NULL, 200, "\"items\":[]");
        expect(r, "GET", PERSONS "?limit=1", NULL, 200, "\"hasMore\":true,\"cursor\":\"per-2\"");
        expect(r, "GET", PERSONS "?limit=1&cursor=per-2", NULL, 200,
               "\"hasMore\":false,\"cursor\":\"per-1\"");
        expect(r, "PATCH", PERSONS "/per-1", "{\"displayName\":\"Ann from sales\"}", 200,
               "Ann from sales");
        expect(r, "GET", PERSONS "/per-1", NULL, 200,
               "\"chats\":[{\"instanceId\":\"api\",\"channel\":\"chat-7\"}]");
        expect(r, "GET", PERSONS "/per-9", NULL, 404, "NOT_FOUND");
        expect(r, "PATCH", PERSONS "/per-9", "{\"displayName\":\"x\"}", 404, "NOT_FOUND");
}

static void a_merge_keeps_rules_and_history(void **state)
{
        struct api_rig *r = *state;

        say(r, "api", "7", "Ann", "hi", "re: hi");
        say(r, "terminal", "9", "Ann", "hi", "re: hi");
        expect(r, "POST", "/api/v2/access/rules",
               "{\"ruleType\":\"deny\",\"personId\":\"per-2\",\"instanceId\":\"api\"}", 201,
               "\"personId\":\"per-2\"");
        expect(r, "POST", PERSONS "/merge",
               "{\"sourcePersonId\":\"per-2\",\"targetPersonId\":\"per-1\",\"reason\":\"asked\"}",
               200, "\"id\":\"per-1\",\"displayName\":\"Ann\"");
        say(r, "api", "7", "Ann", "hi", "access rule 'acr-1' keeps person 'per-2' out");
        say(r, "terminal", "9", "Ann", "hi", "re: hi");
        expect(r, "GET", PERSONS "/per-2", NULL, 200, "\"id\":\"per-1\"");
        expect(r, "GET", PERSONS "/per-2", NULL, 200, "\"aliases\":[\"per-2\"]");
        expect(r, "GET", "/api/v2/events?type=identity.*", NULL, 200,
               "\"payload\":{\"personId\":\"per-1\",\"otherPersonId\":\"per-2\",\"identities\":[\"api:7\",\"cli:9\"],\"by\":\"the "
               "operator\",\"reason\":\"asked\"}");
        expect(r, "GET", "/api/v2/trigger-logs", NULL, 200, "\"senderId\":\"9\"");
        expect(r, "POST", PERSONS "/unlink", "{\"identity\":\"cli:9\"}", 200, "\"id\":\"per-2\"");
        say(r, "api", "7", "Ann", "hi", "re: hi");
        expect(r, "POST", PERSONS "/link", "{\"identityA\":\"cli:9\",\"identityB\":\"api:7\"}", 200,
               "\"id\":\"per-2\"");
        expect(r, "POST", PERSONS "/link", "{\"identityA\":\"cli:9\",\"identityB\":\"api:7\"}", 409,
               "CONFLICT");
        expect(r, "POST", PERSONS "/link", "{\"identityA\":\"cli:9\",\"identityB\":\"api:8\"}", 404,
               "has never written");
        expect(r, "POST", PERSONS "/link", "{\"identityA\":\"cli\",\"identityB\":\"api:8\"}", 400,
               "\"identityA\":[");
        expect(r, "POST", PERSONS "/merge",
               "{\"sourcePersonId\":\"per-8\",\"targetPersonId\":\"per-1\"}", 404, NULL);
}

static void a_message_to_a_person_goes_to_their_direct_chat(void **state)
{
        struct api_rig *r = *state;

        say(r, "api", "7", "Ann", "hi", "re: hi");
        say(r, "terminal", "9", "Ann", "hi", "re: hi");
        expect(r, "POST", "/api/v2/messages/send",
               "{\"instanceId\":\"api\",\"to\":\"per-1\",\"text\":\"news\"}", 202,
               "\"status\":\"queued\"");
        expect(r, "GET", "/api/v2/deliveries/dlv-3", NULL, 200, "\"channel\":\"chat-7\"");
        expect(r, "POST", "/api/v2/messages/send",
               "{\"instanceId\":\"terminal\",\"to\":\"per-1\",\"text\":\"news\"}", 409,
               "RECIPIENT_NOT_ON_CHANNEL");
        expect(r, "POST", "/api/v2/messages/send",
               "{\"instanceId\":\"api\",\"to\":\"per-77\",\"text\":\"news\"}", 404,
               "\"resourceType\":\"person\"");
        expect(r, "POST", PERSONS "/link", "{\"identityA\":\"api:7\",\"identityB\":\"cli:9\"}", 200,
               NULL);
        expect(r, "POST", "/api/v2/messages/send",
               "{\"instanceId\":\"terminal\",\"to\":\"per-2\",\"text\":\"news\"}", 202, NULL);
        expect(r, "GET", "/api/v2/deliveries/dlv-4", NULL, 200, "\"channel\":\"chat-9\"");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(people_are_recorded_and_found, setup, teardown),
                cmocka_unit_test_setup_teardown(a_merge_keeps_rules_and_history, setup, teardown),
                cmocka_unit_test_setup_teardown(a_message_to_a_person_goes_to_their_direct_chat,
                                                setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
