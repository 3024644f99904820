/*
 * One trace id from the received event over the call of the agent to the delivery; and secrets that
 * appear in no answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/api_rig.h"
#include "../lib/fake_server.h"
#include "api/core/routes.h"
#include "base/json.h"
#include "base/mem.h"

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define SECRET "sk-do-not-tell-anybody-4711"
#define ANSWER                                                                            \
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 69\r\n\r\n" \
        "{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"Noon.\"}}]}      "

/* The agent is a model behind a fake server, called with a secret. */
struct stage {
        struct api_rig *rig;
        struct fake_server *server;
};

static struct stage stage_new(const struct fake_answer *script, size_t count)
{
        struct stage s = { .rig = api_rig_new() };
        struct agent_conf *agent;
        struct adapter_conf *adapters[2];
        struct error err = { 0 };
        char *url, *json;

        s.server = fake_server_new(s.rig->loop, script, count);
        url = fake_server_url(s.server, "/v1");
        json = mem_printf("{\"baseUrl\":\"%s\",\"model\":\"m\",\"apiKey\":\"env:TEST_SECRET\","
                          "\"stream\":false}",
                          url);
        setenv("TEST_SECRET", SECRET, 1);
        agent = agent_conf_make("model", "openai", json, &err);
        if (!agent || agents_apply(s.rig->agents, &agent, 1, &err) < 0)
                fail_msg("%s", err.text);
        adapters[0] = adapter_conf_make("api", "api",
                                        "{\"callbackSecret\":\"env:TEST_SECRET\","
                                        "\"callbackUrl\":\"http://127.0.0.1:1/none\"}",
                                        &err);
        adapters[1] = adapter_conf_make("terminal", "cli", "{}", &err);
        if (!adapters[0] || !adapters[1] || adapters_apply(s.rig->adapters, adapters, 2, &err) < 0)
                fail_msg("%s", err.text);
        unsetenv("TEST_SECRET");
        s.rig->agent = "model";
        free(json);
        free(url);
        return s;
}

static void stage_free(struct stage *s)
{
        fake_server_free(s->server);
        api_rig_free(s->rig);
}

/* The page has so many items, each with the trace. */
static void expect_trace(struct api_rig *r, const char *path, size_t least)
{
        struct api_answer a = api_rig_ask(r, "GET", path, NULL);
        const json_t *items = json_object_get(a.json, "items"), *item;
        size_t i;

        if (a.status != 200 || json_array_size(items) < least)
                fail_msg("%s: %s", path, a.text);
        json_array_foreach(items, i, item)
                assert_string_equal(json_str(item, "traceId", ""), TRACE);
        api_answer_release(&a);
}

static void one_trace_id_is_everywhere(void **state)
{
        static const struct fake_answer script[] = { { ANSWER } };
        struct stage s = stage_new(script, 1);
        struct api_answer a = api_rig_ask(
                s.rig, "POST", "/api/v2/messages/inbound?wait=15000",
                "{\"instanceId\":\"terminal\",\"text\":\"What is the time?\",\"traceId\":\"" TRACE
                "\"}");
        const json_t *log;

        (void)state;
        if (a.status != 202 || !strstr(a.text, "Noon."))
                fail_msg("%s", a.text);
        api_answer_release(&a);
        assert_non_null(strstr(fake_server_request(s.server, 0), "\r\ntraceparent: 00-" TRACE "-"));
        /* message.received, turn.started, turn.done, message.sent */
        expect_trace(s.rig, "/api/v2/events", 4);
        expect_trace(s.rig, "/api/v2/events?type=message.sent", 1);
        expect_trace(s.rig, "/api/v2/turns", 1);
        expect_trace(s.rig, "/api/v2/deliveries", 1);
        expect_trace(s.rig, "/api/v2/trigger-logs", 1);
        a = api_rig_ask(s.rig, "GET", "/api/v2/trigger-logs", NULL);
        log = json_array_get(json_object_get(a.json, "items"), 0);
        assert_int_equal(json_int(log, "attempt", 0), 1);
        assert_non_null(json_str(log, "firedAt", NULL));
        assert_non_null(json_str(log, "respondedAt", NULL));
        assert_true(json_is_integer(json_object_get(log, "durationMs")));
        api_answer_release(&a);
        stage_free(&s);
}

static struct api_answer ask_with(struct api_rig *r, const char *path, const char *header,
                                  const char *body)
{
        struct http_raw c;

        api_rig_send(r, &c, "POST", path, header, body);
        return api_rig_receive(&c);
}

#define PARENT "traceparent: 00-" TRACE "-b7ad6b7169203331-00\r\n"

/* From the request over the agent to the report; not sampled stays not sampled. */
static void a_trace_from_outside_is_continued(void **state)
{
        static const struct fake_answer script[] = { { ANSWER } };
        struct stage s = stage_new(script, 1);
        struct api_answer a = ask_with(s.rig, "/api/v2/messages/inbound?wait=15000", PARENT,
                                       "{\"instanceId\":\"terminal\",\"text\":\"hi\"}");
        const char *request, *sent;

        (void)state;
        if (a.status != 202 || !strstr(a.text, "\"traceId\":\"" TRACE "\""))
                fail_msg("%s", a.text);
        api_answer_release(&a);
        request = fake_server_request(s.server, 0);
        sent = strstr(request, "\r\ntraceparent: 00-" TRACE "-");
        assert_non_null(sent);
        assert_memory_equal(strchr(sent + 2, '\r') - 3, "-00", 3);
        assert_null(strstr(request, "b7ad6b7169203331")); /* a span of our own */
        api_rig_expect(s.rig, "GET", "/api/v2/why/" TRACE, NULL, 200,
                       "\"traceparent\":\"00-" TRACE "-b7ad6b7169203331-00\"");
        /* also for deliveries, whatever becomes of them */
        assert_int_equal(api_rig_count(s.rig, "deliveries WHERE unsampled = 1"), 1);
        stage_free(&s);
}

static void sends_and_completions_continue_a_trace_too(void **state)
{
        static const char *const rows[][2] = {
                { "/api/v2/messages/send",
                  "{\"instanceId\":\"terminal\",\"to\":\"c\",\"text\":\"x\"}" },
                { "/v1/chat/completions",
                  "{\"model\":\"dragoman\",\"messages\":[{\"role\":\"user\","
                  "\"content\":\"hi\"}]}" },
        };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct api_answer a = ask_with(r, rows[i][0], PARENT, rows[i][1]);

                if (!strstr(a.text, TRACE))
                        fail_msg("%s: %s", rows[i][0], a.text);
                api_answer_release(&a);
                assert_int_equal(api_rig_count(r, "deliveries WHERE unsampled = 1"), i + 1);
                a = ask_with(r, rows[i][0], "traceparent: 00-" TRACE "-0000000000000000-01\r\n",
                             rows[i][1]);
                if (a.status >= 300 || strstr(a.text, TRACE))
                        fail_msg("%s: %s", rows[i][0], a.text);
                api_answer_release(&a);
        }
}

/* Agents of the registry: "first", whose service is down, fails over to "second". */
static struct api_rig *failover_rig(void)
{
        struct api_rig *r = api_rig_new();
        struct error err = { 0 };
        struct agent_conf *agents[] = {
                agent_conf_make("first", "webhook",
                                "{\"url\":\"http://127.0.0.1:1/\",\"retries\":0,"
                                "\"failover\":[\"second\"]}",
                                &err),
                agent_conf_make("second", "echo", "{}", &err),
        };

        if (!agents[0] || !agents[1] || agents_apply(r->agents, agents, 2, &err) < 0)
                fail_msg("%s", err.text);
        r->agent = "first";
        return r;
}

static void records_name_the_agent_that_answered(void **state)
{
        static const char *const lists[] = { "/api/v2/turns?agent=second",
                                             "/api/v2/trigger-logs?agent=second" };
        struct api_rig *r = failover_rig();
        struct api_answer a;
        const json_t *turn, *failed;

        (void)state;
        api_rig_expect(r, "POST", "/api/v2/messages/inbound?wait=15000",
                       "{\"instanceId\":\"terminal\",\"text\":\"hello\"}", 202, "hello");
        for (size_t i = 0; i < COUNT(lists); i++)
                api_rig_expect(r, "GET", lists[i], NULL, 200, "\"agent\":\"second\"");
        api_rig_expect(r, "GET", "/api/v2/trigger-logs", NULL, 200, "\"chosenAgent\":\"first\"");
        api_rig_expect(r, "GET", "/api/v2/turns?agent=first", NULL, 200, "\"items\":[]");
        a = api_rig_ask(r, "GET", "/api/v2/why/evt-1", NULL);
        turn = json_object_get(json_object_get(a.json, "data"), "turn");
        failed = json_array_get(json_object_get(turn, "failedAgents"), 0);
        assert_string_equal(json_str(turn, "agent", ""), "second");
        assert_string_equal(json_str(failed, "agent", ""), "first");
        assert_non_null(json_str(failed, "error", NULL));
        assert_true(json_is_integer(json_object_get(turn, "waitMs")));
        api_answer_release(&a);
        api_rig_free(r);
}

static void say_in(struct api_rig *r, const char *chat, const char *id)
{
        char *body =
                mem_printf("{\"instanceId\":\"terminal\",\"chatId\":\"%s\",\"externalId\":\"%s\","
                           "\"text\":\"hello\"}",
                           chat, id);

        api_rig_expect(r, "POST", "/api/v2/messages/inbound?wait=15000", body, 202, "stored");
        free(body);
}

static void reports_are_found_by_chat_and_id_and_listed(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a;

        say_in(r, "-100/a", "77");
        say_in(r, "b", "78");
        api_rig_expect(r, "GET", "/api/v2/why/terminal%2F-100%2Fa%2F77", NULL, 200,
                       "\"event\":{\"id\":\"evt-1\"");
        api_rig_expect(r, "GET", "/api/v2/why/78", NULL, 200, "\"messageId\":\"78\"");
        api_rig_expect(r, "GET", "/api/v2/why/evt-01", NULL, 404, "nothing is known");
        api_rig_expect(r, "GET", "/api/v2/why/terminal%2Fb%2F77", NULL, 404, "nothing is known");
        api_rig_expect(r, "GET", "/api/v2/why/terminal%2Fb", NULL, 200, "\"messageId\":\"78\"");
        a = api_rig_ask(r, "GET", "/api/v2/why?limit=1", NULL);
        if (!strstr(a.text, "\"messageId\":\"78\"") ||
            !strstr(a.text, "\"summary\":\"answered in ") || !strstr(a.text, "\"hasMore\":true"))
                fail_msg("%s", a.text);
        api_answer_release(&a);
        api_rig_expect(r, "GET", "/api/v2/why?instanceId=terminal&channel=-100%2Fa", NULL, 200,
                       "\"messageId\":\"77\"");
        api_rig_expect(r, "GET", "/api/v2/why?channel=none", NULL, 200, "\"items\":[]");
}

static void a_report_lists_the_rules_tried(void **state)
{
        struct api_rig *r = *state;

        api_rig_dispatch(r, NULL,
                         "[{\"name\":\"ops\",\"when\":{\"channel\":\"ops\"},\"agent\":\"a\"}]");
        say_in(r, "lounge", "1");
        api_rig_expect(r, "GET", "/api/v2/why/1", NULL, 200,
                       "\"rules\":[{\"name\":\"ops\",\"matched\":false,"
                       "\"why\":\"channel 'lounge' is not 'ops'\"}]");
}

static void inbound_of_trace(struct api_rig *r, const char *text, const char *part)
{
        char *body = mem_printf("{\"instanceId\":\"terminal\",\"chatId\":\"c\",\"traceId\":\"" TRACE
                                "\",\"text\":\"%s\"}",
                                text);

        api_rig_expect(r, "POST", "/api/v2/messages/inbound?wait=15000", body, 202, part);
        free(body);
}

static void a_notice_of_an_earlier_message_with_the_trace_is_no_reply(void **state)
{
        struct api_rig *r = *state;

        api_rig_dispatch(r, NULL,
                         "[{\"name\":\"off\",\"when\":{\"text\":\"quiet\"},\"mode\":\"off\"},"
                         "{\"name\":\"slow\",\"rateLimit\":{\"turns\":1,\"seconds\":600}}]");
        inbound_of_trace(r, "one", "\"text\":\"re: one\"");
        inbound_of_trace(r, "two", "\"text\":\"Too many messages");
        api_rig_update(r, "deliveries SET created_ms = created_ms - ?1", 5000, 0);
        inbound_of_trace(r, "quiet", "\"text\":null");
}

/* Reads every route, with an agent and an adapter that have secrets, after a failure of one. */
static void no_answer_contains_a_secret(void **state)
{
        static const struct fake_answer script[] = {
                { "HTTP/1.1 401 Unauthorized\r\nContent-Length: "
                  "53\r\n\r\n{\"error\":{\"message\":\"wrong "
                  "key " SECRET "\"}}" },
        };
        struct stage s = stage_new(script, 1);
        struct api_answer a = api_rig_ask(s.rig, "POST", "/api/v2/messages/inbound?wait=15000",
                                          "{\"instanceId\":\"terminal\",\"text\":\"hi\"}");
        size_t asked = 0;

        (void)state;
        assert_null(strstr(a.text, SECRET));
        api_answer_release(&a);
        assert_non_null(strstr(fake_server_request(s.server, 0), SECRET));
        ROUTES_FOREACH(route) {
                static const char *const ids[] = { "evt-1", "trn-1", "dlv-1", "model", "api" };

                if (strcmp(route->method, "GET") != 0 || route->content_type)
                        continue;
                for (size_t k = 0; k < COUNT(ids); k++) {
                        const char *colon = strchr(route->path, ':');
                        char *path = colon ? mem_printf("%.*s%s", (int)(colon - route->path),
                                                        route->path, ids[k])
                                           : mem_strdup(route->path);

                        a = api_rig_ask(s.rig, "GET", path, NULL);
                        asked += a.status == 200;
                        if (strstr(a.text, SECRET) || strstr(a.text, s.rig->key))
                                fail_msg("%s: %s", path, a.text);
                        api_answer_release(&a);
                        free(path);
                }
        }
        assert_true(asked > 50);
        stage_free(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(one_trace_id_is_everywhere),
                cmocka_unit_test(records_name_the_agent_that_answered),
                cmocka_unit_test(a_trace_from_outside_is_continued),
                API_RIG_CASE(sends_and_completions_continue_a_trace_too),
                API_RIG_CASE(reports_are_found_by_chat_and_id_and_listed),
                API_RIG_CASE(a_report_lists_the_rules_tried),
                API_RIG_CASE(a_notice_of_an_earlier_message_with_the_trace_is_no_reply),
                cmocka_unit_test(no_answer_contains_a_secret),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
