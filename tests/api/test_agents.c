/* Failing agents over the API: circuits, queues, failover. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/api_rig.h"
#include "../lib/fake_server.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

static void apply(struct api_rig *r, const char *first, const char *second)
{
        struct error err = { 0 };
        struct agent_conf *confs[] = { agent_conf_make("hook", "webhook", first, &err),
                                       agent_conf_make("echo", "echo", second, &err) };

        if (!confs[0] || !confs[1] || agents_apply(r->agents, confs, 2, &err) < 0)
                fail_msg("%s", err.text);
        r->agent = "hook";
}

/* Posts a message; the reply, yours to free. */
static char *say(struct api_rig *r, const char *text)
{
        char *body = mem_printf("{\"instanceId\":\"api\",\"chatId\":\"c\",\"text\":\"%s\","
                                "\"sender\":{\"id\":\"ann\"}}",
                                text);
        struct api_answer a = api_rig_ask(r, "POST", "/api/v2/messages/inbound?wait=10000", body);
        const json_t *reply = json_object_get(json_object_get(a.json, "data"), "reply");
        char *said = mem_strdup(json_str(reply, "text", ""));

        assert_int_equal(a.status, 202);
        assert_non_null(reply);
        api_answer_release(&a);
        free(body);
        return said;
}

static void assert_shows(struct api_rig *r, const char *path, const char *part)
{
        struct api_answer a = api_rig_ask(r, "GET", path, NULL);

        if (!strstr(a.text, part))
                fail_msg("%s does not show '%s': %s", path, part, a.text);
        api_answer_release(&a);
}

static void an_open_circuit_is_shown_everywhere(void **state)
{
        struct api_rig *r = api_rig_new();
        char *said;

        (void)state;
        apply(r, "{\"url\": \"http://127.0.0.1:1/\", \"retries\": 0, \"breakerFailures\": 1}",
              "{}");
        said = say(r, "hello");
        assert_non_null(strstr(said, "cannot be reached"));
        free(said);
        said = say(r, "again");
        assert_non_null(strstr(said, "not available"));
        free(said);
        assert_shows(r, "/api/v2/agents",
                     "\"circuit\":{\"state\":\"open\",\"failuresInARow\":1,\"opened\":1");
        assert_shows(r, "/api/v2/agents",
                     "\"lastFailure\":\"webhook at http://127.0.0.1:1/: no answer");
        assert_shows(r, "/api/v2/status", "\"status\":\"degraded\"");
        assert_shows(r, "/api/v2/status", "\"circuitsOpen\":1");
        assert_shows(r, "/metrics",
                     "dragoman_agent_circuit_open{agent=\"hook\",type=\"webhook\"} 1\n");
        assert_shows(r, "/metrics",
                     "dragoman_agent_failures_total{agent=\"hook\",type=\"webhook\"} 1\n");
        assert_shows(r, "/api/v2/events?type=agent.circuit_opened", "\"agent\":\"hook\"");
        api_rig_free(r);
}

static void a_failover_is_journaled_with_the_turns_trace(void **state)
{
        struct api_rig *r = api_rig_new();
        char *said;

        (void)state;
        apply(r, "{\"url\": \"http://127.0.0.1:1/\", \"retries\": 0, \"failover\": \"echo\"}",
              "{}");
        said = say(r, "hello");
        assert_string_equal(said, "hello");
        free(said);
        assert_shows(r, "/api/v2/events?type=turn.failover", "\"from\":\"hook\",\"to\":\"echo\"");
        assert_shows(r, "/api/v2/events?type=turn.failover", "\"instanceId\":\"api\"");
        api_rig_free(r);
}

/* A failure may quote a chat of another adapter. */
static void a_restricted_key_does_not_see_why_an_agent_failed(void **state)
{
        static const struct fake_answer script[] = {
                { "HTTP/1.1 400 No\r\nContent-Type: text/plain\r\nContent-Length: "
                  "11\r\n\r\nhidden word" }
        };
        struct api_rig *r = api_rig_new();
        struct fake_server *server = fake_server_new(r->loop, script, 1);
        char *url = fake_server_url(server, "/hook"), *conf = mem_printf("{\"url\": \"%s\"}", url),
             *headers;
        struct api_answer a;

        (void)state;
        apply(r, conf, "{}");
        free(say(r, "hello"));
        assert_shows(r, "/api/v2/agents", "hidden word");
        headers = api_rig_key_headers(
                r, "{\"name\":\"k\",\"scopes\":[\"read\"],\"adapters\":[\"api\"]}");
        a = api_rig_ask_as(r, "GET", "/api/v2/agents", headers, NULL);
        assert_int_equal(a.status, 200);
        assert_null(strstr(a.text, "hidden"));
        assert_null(strstr(a.text, "/hook"));
        api_answer_release(&a);
        free(headers);
        free(conf);
        free(url);
        fake_server_free(server);
        api_rig_free(r);
}

static void closing_answers_a_pending_health_check(void **state)
{
        struct api_rig *r = api_rig_new();
        struct fake_server *silent = fake_server_new(r->loop, NULL, 0);
        char *url = fake_server_url(silent, "/"), *conf = mem_printf("{\"url\": \"%s\"}", url);
        struct http_raw c;

        (void)state;
        apply(r, conf, "{}");
        api_rig_send(r, &c, "POST", "/api/v2/agents/hook/health", "", "");
        while (fake_server_requests(silent) == 0)
                loop_step(r->loop, true);
        http_raw_close(&c);
        fake_server_free(silent);
        api_rig_free(r);
        free(conf);
        free(url);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_open_circuit_is_shown_everywhere),
                cmocka_unit_test(a_failover_is_journaled_with_the_turns_trace),
                cmocka_unit_test(a_restricted_key_does_not_see_why_an_agent_failed),
                cmocka_unit_test(closing_answers_a_pending_health_check),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
