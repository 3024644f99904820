/*
 * OpenClaw's two endpoints, against a fake as strict as the real one: /hooks/agent, which never
 * returns an answer, and /v1/chat/completions, which does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "agent_rig.h"
#include "base/json.h"

#define OK                                                                               \
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" \
        "{\"ok\":true,\"runId\":\"r-1\"}"
#define PLAIN(s, t) "HTTP/1.1 " s "\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" t
#define FORGET                                                      \
        "\"mode\": \"fire-and-forget\", \"format\": \"openclaw\", " \
        "\"apiKey\": \"claw-token\", \"retryMs\": 1"
#define SSE      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define CHUNK(t) "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" t "\"}}]}\n\n"
#define LAST                                                                              \
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n" \
        "data: [DONE]\n\n"

static void talk(struct agent_rig *b, struct fake_turn *t, const char *type, const char *key,
                 const char *path, const char *more, const struct fake_answer *script, size_t count)
{
        struct error err = { 0 };
        char *url, *json;

        b->server = fake_server_new(b->loop, script, count);
        url = fake_server_url(b->server, path);
        json = mem_printf("{\"%s\": \"%s\", %s}", key, url, more);
        if (fake_apply(b->agents, "claw", type, json, &err) < 0)
                fail_msg("%s", err.text);
        free(json);
        free(url);
        fake_turn_init(t, "claw", "turn on the light");
        t->input.platform = "telegram";
        t->run.session = "telegram:7";
        fake_turn_start(t, b->agents);
        fake_turn_await(t, b->loop);
}

static void assert_has(const char *text, const char *part)
{
        if (!strstr(text, part))
                fail_msg("'%s' is not in '%s'", part, text);
}

/*
 * The gateway's checks: method, bearer, JSON, a message, only known fields, and session keys with a
 * prefix.
 */
static json_t *admit(const char *request)
{
        static const char *const known[] = { "message",    "name",        "agentId",
                                             "sessionKey", "sessionMode", "idempotencyKey",
                                             "deliver" };
        json_t *body = json_loads(strstr(request, "\r\n\r\n") + 4, 0, NULL), *value;
        const char *name;

        assert_int_equal(strncmp(request, "POST /hooks/agent HTTP/1.1\r\n", 28), 0);
        assert_has(request, "Authorization: Bearer claw-token\r\n");
        assert_has(request, "Content-Type: application/json\r\n");
        assert_non_null(body);
        assert_true(strlen(json_str(body, "message", "")) > 0);
        json_object_foreach(body, name, value) {
                bool ok = false;

                for (size_t i = 0; i < COUNT(known); i++)
                        ok = ok || strcmp(known[i], name) == 0;
                if (!ok)
                        fail_msg("OpenClaw does not know '%s'", name);
        }
        if (json_object_get(body, "sessionKey"))
                assert_int_equal(strncmp(json_str(body, "sessionKey", ""), "hook:", 5), 0);
        return body;
}

static void a_hook_is_accepted_and_its_receipt_is_not_an_answer(void **state)
{
        static const struct fake_answer script[] = { { OK, .end = FAKE_CLOSE } };
        struct agent_rig *b = *state;
        struct fake_turn t;
        json_t *body;

        talk(b, &t, "webhook", "url", "/hooks/agent", FORGET ", \"agentId\": \"main\"", script, 1);
        assert_int_equal(t.reply.kind, ERR_NONE);
        assert_string_equal(t.text, "");
        body = admit(fake_server_request(b->server, 0));
        assert_has(json_str(body, "message", ""), "turn on the light");
        assert_has(json_str(body, "message", ""), "From Ann on telegram");
        assert_string_equal(json_str(body, "agentId", ""), "main");
        assert_string_equal(json_str(body, "idempotencyKey", ""),
                            "turn-1-0af7651916cd43dd8448eb211c80319c");
        assert_null(json_object_get(body, "sessionKey"));
        assert_true(json_is_false(json_object_get(body, "deliver")));
        json_decref(body);
        fake_turn_release(&t);
}

static void a_session_is_named_only_when_configured(void **state)
{
        static const struct fake_answer script[] = { { OK, .end = FAKE_CLOSE } };
        struct agent_rig *b = *state;
        struct fake_turn t;
        json_t *body;

        talk(b, &t, "webhook", "url", "/hooks/agent", FORGET ", \"sessionKeys\": true", script, 1);
        body = admit(fake_server_request(b->server, 0));
        assert_string_equal(json_str(body, "sessionKey", ""), "hook:telegram:7");
        assert_string_equal(json_str(body, "sessionMode", ""), "persistent");
        json_decref(body);
        fake_turn_release(&t);
}

static void refusals_are_reported_and_only_a_busy_gateway_is_retried(void **state)
{
        static const struct {
                const char *answer;
                enum error_kind kind;
                unsigned requests;
        } rows[] = {
                { PLAIN("401 Unauthorized", "Unauthorized"), ERR_REFUSED, 1 },
                { PLAIN("400 Bad Request", "sessionKey is not allowed"), ERR_INVALID, 1 },
                { PLAIN("409 Conflict", "session busy"), ERR_INVALID, 1 },
                { PLAIN("429 Too Many Requests", "slow down"), ERR_LIMIT, 1 },
                { PLAIN("503 Service Unavailable", "not admitted"), ERR_LIMIT, 2 },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct fake_answer script[] = { { rows[i].answer, .end = FAKE_CLOSE },
                                                { rows[i].answer, .end = FAKE_CLOSE } };
                struct agent_rig *b = *state;
                struct fake_turn t;

                talk(b, &t, "webhook", "url", "/hooks/agent", FORGET, script, 2);
                assert_int_equal(t.reply.kind, rows[i].kind);
                assert_int_equal(fake_server_requests(b->server), rows[i].requests);
                assert_null(strstr(t.error, "claw-token"));
                fake_turn_release(&t);
                teardown(state);
                setup(state);
        }
}

static void chat_completions_get_the_session_as_user(void **state)
{
        static const struct fake_answer script[] = { { SSE CHUNK("The light ") CHUNK("is on.") LAST,
                                                       .end = FAKE_CLOSE, .piece = 11 } };
        struct agent_rig *b = *state;
        struct fake_turn t;
        const char *request;

        talk(b, &t, "openai", "baseUrl", "/v1",
             "\"model\": \"openclaw:main\", \"apiKey\": \"gateway-token\"", script, 1);
        assert_int_equal(t.reply.kind, ERR_NONE);
        assert_string_equal(t.text, "The light is on.");
        request = fake_server_request(b->server, 0);
        assert_has(request, "POST /v1/chat/completions HTTP/1.1");
        assert_has(request, "Authorization: Bearer gateway-token\r\n");
        assert_has(request, "\"model\":\"openclaw:main\"");
        assert_has(request, "\"user\":\"telegram:7\"");
        assert_has(request, "\"stream\":true");
        fake_turn_release(&t);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_hook_is_accepted_and_its_receipt_is_not_an_answer),
                TEST(a_session_is_named_only_when_configured),
                TEST(refusals_are_reported_and_only_a_busy_gateway_is_retried),
                TEST(chat_completions_get_the_session_as_user),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
