/* Approvals over the API: listed, shown, decided once, and the rules they leave behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/api_rig.h"
#include "base/json.h"
#include "base/mem.h"
#include "road/turn/approval.h"

#define INBOUND "/api/v2/messages/inbound"

static struct {
        unsigned count;
        enum approval_state state;
        char by[60], note[60];
} got;

static void on_decided(void *arg, const struct approval_decision *d)
{
        (void)arg;
        got.count++;
        got.state = d->state;
        snprintf(got.by, sizeof(got.by), "%s", d->by ? d->by : "");
        snprintf(got.note, sizeof(got.note), "%s", d->note ? d->note : "");
}

/* A turn that waits for an approval; its path, yours to free. */
static char *ask(struct api_rig *r, const char *call, const char *rule)
{
        unsigned before = r->hanging_count;
        int64_t asked = api_rig_count(r, "approvals");

        memset(&got, 0, sizeof(got));
        api_rig_expect(r, "POST", INBOUND, "{\"text\":\"hang on\",\"chatId\":\"room\"}", 202, NULL);
        api_rig_until(r, &r->hanging_count, before + 1);
        turn_ask_approval(r->hanging[before],
                          &(struct approval_request){ .call = call,
                                                      .tool = "bash",
                                                      .title = "run a command",
                                                      .detail = "make install",
                                                      .subject = "{\"command\":\"make install\"}",
                                                      .reason = "it runs on the host",
                                                      .rule = rule,
                                                      .rule_label = "make *",
                                                      .approvers = APPROVERS_ADMINS,
                                                      .expires_ms = 3600000 },
                          on_decided, NULL);
        for (int i = 0; i < 10000 && api_rig_count(r, "approvals") == asked; i++)
                loop_step(r->loop, true);
        return mem_printf("/api/v2/approvals/apr-%lld",
                          (long long)api_rig_number(r, "max(id) FROM approvals"));
}

static void expect_at(struct api_rig *r, const char *method, const char *path, const char *verb,
                      const char *body, int status, const char *part)
{
        char *whole = mem_printf("%s%s", path, verb);

        api_rig_expect(r, method, whole, body, status, part);
        free(whole);
}

static void one_decision_counts(void **state)
{
        struct api_rig *r = *state;
        char *path = ask(r, "c", NULL);

        expect_at(r, "GET", "/api/v2/approvals", "?state=open", NULL, 200, "make install");
        expect_at(r, "GET", path, "", NULL, 200, "\"subject\":{\"command\":\"make install\"}");
        expect_at(r, "POST", path, "/approve", "{\"always\":true}", 400, "offers no rule");
        expect_at(r, "POST", path, "/approve", "{\"note\":\"go\"}", 200, "\"state\":\"approved\"");
        api_rig_until(r, &got.count, 1);
        assert_int_equal(got.state, APPROVAL_APPROVED);
        assert_string_equal(got.by, "the operator");
        assert_string_equal(got.note, "go");
        expect_at(r, "POST", path, "/refuse", "{}", 409, "was approved by the operator: go");
        expect_at(r, "GET", "/api/v2/approvals", "?state=open", NULL, 200, "\"items\":[]");
        expect_at(r, "GET", "/api/v2/approvals", "?state=approved&limit=1", NULL, 200, "apr-");
        expect_at(r, "GET", "/api/v2/approvals/apr-999", "", NULL, 404, "NOT_FOUND");
        expect_at(r, "POST", "/api/v2/approvals/apr-999", "/approve", "{}", 404, "NOT_FOUND");
        expect_at(r, "POST", path, "/approve", "{\"forever\":true}", 400, "forever");
        free(path);
}

static void refusing_tells_the_agent_why(void **state)
{
        struct api_rig *r = *state;
        char *path = ask(r, "c", NULL);

        expect_at(r, "POST", path, "/refuse", "{\"note\":\"not here\"}", 200,
                  "\"state\":\"refused\"");
        api_rig_until(r, &got.count, 1);
        assert_int_equal(got.state, APPROVAL_REFUSED);
        assert_string_equal(got.note, "not here");
        free(path);
}

static void always_leaves_a_rule_that_can_be_removed(void **state)
{
        struct api_rig *r = *state;
        char *path = ask(r, "c", "{\"tool\":\"bash\",\"command\":\"make *\"}");
        size_t count;

        expect_at(r, "POST", path, "/approve", "{\"always\":true}", 200, "\"always\":true");
        api_rig_until(r, &got.count, 1);
        expect_at(r, "GET", "/api/v2/approval-rules", "", NULL, 200, "\"command\":\"make *\"");
        turn_approval_rules(r->hanging[0], &count);
        assert_int_equal(count, 1);
        expect_at(r, "DELETE", "/api/v2/approval-rules/apl-1", "", NULL, 200, "removed");
        turn_approval_rules(r->hanging[0], &count);
        assert_int_equal(count, 0);
        expect_at(r, "DELETE", "/api/v2/approval-rules/apl-1", "", NULL, 404, "NOT_FOUND");
        expect_at(r, "GET", "/api/v2/approval-rules", "", NULL, 200, "\"items\":[]");
        free(path);
}

/* Whoever holds a key can write in the chat, but only the operator's terminal is an admin there. */
static void a_message_over_the_api_is_no_admin(void **state)
{
        struct api_rig *r = *state;
        char *path = ask(r, "c", NULL), *body;

        api_rig_dispatch(r, NULL, NULL);
        body = mem_printf("{\"chatId\":\"room\",\"text\":\"/approve %s\"}", strstr(path, "apr-"));
        api_rig_expect(r, "POST", INBOUND "?wait=15000", body, 202, NULL);
        expect_at(r, "GET", path, "", NULL, 200, "\"state\":\"open\"");
        assert_int_equal(got.count, 0);
        free(body);
        free(path);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                API_RIG_CASE(one_decision_counts),
                API_RIG_CASE(refusing_tells_the_agent_why),
                API_RIG_CASE(always_leaves_a_rule_that_can_be_removed),
                API_RIG_CASE(a_message_over_the_api_is_no_admin),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
