/* Agents behind foreign protocols: OpenAI's chat completions, and agent-chat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/api_rig.h"
#include "../lib/schema_fit.h"
#include "api/compat/completion_ask.h"
#include "base/json.h"
#include "base/mem.h"

#define COMPLETIONS "/v1/chat/completions"
#define RESPONSES   "tests/data/openai_chat_response.json" /* tests run in the project's folder */
#define REQUESTS    "tests/data/openai_chat_request.json"

static void expect_fits(const char *schema, const json_t *value)
{
        json_t *spec = json_load_file(RESPONSES, 0, NULL);

        assert_non_null(spec);
        if (!schema_named_fits(spec, schema, value))
                fail_msg("no %s: %s", schema, json_dumps(value, 0));
        json_decref(spec);
}

/* The content of a whole answer. */
static const char *content_of(const struct api_answer *a)
{
        const json_t *choice = json_array_get(json_object_get(a->json, "choices"), 0);

        return json_str(json_object_get(choice, "message"), "content", NULL);
}

static void expect_answer(struct api_answer a, const char *content)
{
        if (a.status != 200)
                fail_msg("%s", a.text);
        expect_fits("CreateChatCompletionResponse", a.json);
        assert_string_equal(content_of(&a), content);
        api_answer_release(&a);
}

static void expect_error(struct api_answer a, int status, const char *code, const char *type)
{
        const json_t *e = json_object_get(a.json, "error");

        if (a.status != status || strcmp(json_str(e, "code", ""), code) != 0)
                fail_msg("%s", a.text);
        json_object_del((json_t *)e, "details"); /* our addition */
        expect_fits("ErrorResponse", a.json);
        assert_string_equal(json_str(e, "type", ""), type);
        api_answer_release(&a);
}

static struct api_answer ask(struct api_rig *r, const char *body)
{
        return api_rig_ask(r, "POST", COMPLETIONS, body);
}

/* ---- whole answers ---- */

static void a_completion_is_a_message_on_the_road(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a;
        const json_t *chat;

        expect_answer(ask(r, "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\","
                             "\"content\":\"hello\"}]}"),
                      "re: hello");
        a = api_rig_ask(r, "GET", "/api/v2/events?type=message.received", NULL);
        chat = json_array_get(json_object_get(a.json, "items"), 0);
        assert_string_equal(json_str(chat, "instanceId", ""), "api");
        assert_memory_equal(json_str(chat, "channel", ""), "openai-", 7);
        assert_string_equal(json_str(json_object_get(chat, "payload"), "agent", ""), "echo");
        api_answer_release(&a);
}

static void all_agents_are_models(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = api_rig_ask(r, "GET", "/v1/models", NULL);

        assert_int_equal(a.status, 200);
        expect_fits("ListModelsResponse", a.json);
        assert_int_equal(json_array_size(json_object_get(a.json, "data")), 2);
        api_answer_release(&a);
        a = api_rig_ask(r, "GET", "/v1/models/echo", NULL);
        expect_fits("Model", a.json);
        api_answer_release(&a);
        expect_error(api_rig_ask(r, "GET", "/v1/models/gpt", NULL), 404, "model_not_found",
                     "not_found_error");
}

static void the_rules_choose_when_no_agent_is_named(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a;
        const json_t *payload;

        expect_answer(ask(r, "{\"model\":\"dragoman\",\"messages\":[{\"role\":\"user\","
                             "\"content\":\"hello\"}]}"),
                      "re: hello");
        a = api_rig_ask(r, "GET", "/api/v2/events?type=message.received", NULL);
        payload = json_object_get(json_array_get(json_object_get(a.json, "items"), 0), "payload");
        assert_null(json_object_get(payload, "agent"));
        api_answer_release(&a);
}

static void only_an_unnamed_conversation_brings_its_history(void **state)
{
        static const char history[] =
                "[{\"role\":\"system\",\"content\":\"Be "
                "brief.\"},{\"role\":\"user\",\"content\":\"one\",\"name\":\"Ann\"},"
                "{\"role\":\"assistant\",\"content\":\"two\"},{\"role\":\"user\","
                "\"content\":[{\"type\":\"text\",\"text\":\"three\"}]}]";
        struct api_rig *r = *state;
        char *unnamed = mem_printf("{\"model\":\"echo\",\"messages\":%s}", history);
        char *named = mem_printf("{\"model\":\"echo\",\"messages\":%s,\"user\":\"ann\"}", history);

        expect_answer(ask(r, unnamed),
                      "re: system: Be brief.\n\nuser Ann: one\n\nassistant: two\n\nuser: three");
        expect_answer(ask(r, named), "re: three");
        free(unnamed);
        free(named);
}

static void images_by_url_are_attachments(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a;
        const json_t *file;

        expect_answer(ask(r, "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\","
                             "\"content\":[{\"type\":\"text\",\"text\":\"look\"},"
                             "{\"type\":\"image_url\","
                             "\"image_url\":{\"url\":\"https://example.org/a.png\"}}]}]}"),
                      "re: look");
        a = api_rig_ask(r, "GET", "/api/v2/events?type=message.received", NULL);
        file = json_array_get(
                json_object_get(json_object_get(json_array_get(json_object_get(a.json, "items"), 0),
                                                "payload"),
                                "attachments"),
                0);
        assert_string_equal(json_str(file, "url", ""), "https://example.org/a.png");
        api_answer_release(&a);
}

static void asking_again_with_the_same_key_gives_the_same_answer(void **state)
{
        static const char body[] =
                "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}";
        struct api_rig *r = *state;
        char id[100] = "";

        for (int i = 0; i < 2; i++) {
                struct api_answer a;
                struct http_raw c;

                api_rig_send(r, &c, "POST", COMPLETIONS, "Idempotency-Key: once\r\n", body);
                a = api_rig_receive(&c);
                if (i == 1)
                        assert_string_equal(json_str(a.json, "id", ""), id);
                snprintf(id, sizeof(id), "%s", json_str(a.json, "id", ""));
                expect_answer(a, "re: hello");
        }
        assert_int_equal(r->turns, 1);
}

static void failures_have_openais_error_shape(void **state)
{
        static const struct {
                const char *body;
                int status;
                const char *code, *type;
        } rows[] = {
                { "{\"model\":\"gpt-5\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}", 404,
                  "model_not_found", "not_found_error" },
                { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}", 400, "VALIDATION_ERROR",
                  "invalid_request_error" },
                { "{\"model\":\"echo\",\"messages\":[]}", 400, "VALIDATION_ERROR",
                  "invalid_request_error" },
                { "{\"model\":\"echo\",\"messages\":[{\"role\":\"assistant\",\"content\":\"x\"}]}",
                  400, "VALIDATION_ERROR", "invalid_request_error" },
                { "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\",\"content\":\"\"}]}", 400,
                  "VALIDATION_ERROR", "invalid_request_error" },
                { "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\",\"content\":7}]}", 400,
                  "VALIDATION_ERROR", "invalid_request_error" },
                { "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\","
                  "\"content\":[{\"type\":\"input_audio\"}]}]}",
                  400, "VALIDATION_ERROR", "invalid_request_error" },
                { "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\","
                  "\"content\":[{\"type\":\"image_url\","
                  "\"image_url\":{\"url\":\"file:///etc/passwd\"}}]}]}",
                  400, "VALIDATION_ERROR", "invalid_request_error" },
                { "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\","
                  "\"content\":\"x\"}],\"n\":2}",
                  400, "VALIDATION_ERROR", "invalid_request_error" },
                { "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\","
                  "\"content\":\"x\"}],\"stream\":\"yes\"}",
                  400, "VALIDATION_ERROR", "invalid_request_error" },
                { "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\","
                  "\"content\":\"x\"}],\"tools\":[{}]}",
                  400, "VALIDATION_ERROR", "invalid_request_error" },
                { "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\","
                  "\"content\":\"x\"}],\"temprature\":1}",
                  400, "VALIDATION_ERROR", "invalid_request_error" },
                { "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\",\"content\":\"fail\"}]}",
                  502, "agent_error", "server_error" },
                { "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\",\"content\":\"quiet\"}]}",
                  409, "not_answered", "conflict_error" },
        };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++)
                expect_error(ask(r, rows[i].body), rows[i].status, rows[i].code, rows[i].type);
        expect_error(api_rig_ask_as(r, "GET", "/v1/models", "Host: 127.0.0.1\r\n", NULL), 401,
                     "UNAUTHORIZED", "authentication_error");
}

static void every_parameter_of_the_protocol_is_known(void **state)
{
        static const char *const schemas[] = { "CreateChatCompletionRequest",
                                               "ModelResponseProperties" };
        json_t *spec = json_load_file(REQUESTS, 0, NULL), *all = json_object();
        const char *name;
        json_t *v;

        (void)state;
        for (size_t i = 0; i < COUNT(schemas); i++) {
                const json_t *s = json_object_get(
                        json_object_get(json_object_get(spec, "components"), "schemas"),
                        schemas[i]);

                json_object_update(all, json_object_get(s, "properties"));
                json_object_update(all,
                                   json_object_get(json_array_get(json_object_get(s, "allOf"), 1),
                                                   "properties"));
        }
        assert_true(json_object_size(all) > 30);
        json_object_foreach(all, name, v) {
                const struct field *f = completion_ask_fields;

                while (f->name && strcmp(f->name, name) != 0)
                        f++;
                if (!f->name)
                        fail_msg("%s is not known", name);
        }
        json_decref(all);
        json_decref(spec);
}

/* ---- streams ---- */

/* The content of all pieces, each of which is checked; yours to free. */
static char *pieces(const char *text, bool *done, bool *usage)
{
        struct buf said;
        const char *p = text;

        buf_init(&said, 0);
        *done = *usage = false;
        while ((p = strstr(p, "data: "))) {
                size_t n = strcspn(p += 6, "\n");
                json_t *chunk = json_loadb(p, n, 0, NULL);
                const json_t *delta = json_object_get(
                        json_array_get(json_object_get(chunk, "choices"), 0), "delta");

                if (n == 6 && memcmp(p, "[DONE]", 6) == 0) {
                        *done = true;
                        continue;
                }
                assert_false(*done);
                assert_non_null(chunk);
                if (!json_object_get(chunk, "error"))
                        expect_fits("CreateChatCompletionStreamResponse", chunk);
                else
                        buf_addf(&said, "error:%s",
                                 json_str(json_object_get(chunk, "error"), "code", "?"));
                if (json_object_get(chunk, "usage"))
                        *usage = true;
                buf_addstr(&said, json_str(delta, "content", ""));
                json_decref(chunk);
        }
        return buf_take(&said);
}

static void expect_stream(struct api_rig *r, const char *body, const char *content, size_t least,
                          bool wants_usage)
{
        struct http_raw c;
        bool done, usage;
        size_t count = 0;
        char *said;

        api_rig_send(r, &c, "POST", COMPLETIONS, "", body);
        assert_true(http_raw_wait_answers(&c, 1));
        assert_int_equal(http_raw_status(&c, 0), 200);
        assert_non_null(strstr(c.in.data, "text/event-stream"));
        said = pieces(c.in.data, &done, &usage);
        assert_string_equal(said, content);
        assert_true(done);
        assert_int_equal(usage, wants_usage);
        for (const char *p = c.in.data; (p = strstr(p, "data: ")); p++)
                count++;
        assert_true(count >= least);
        free(said);
        http_raw_close(&c);
}

static void streamed_pieces_make_the_answer(void **state)
{
        struct api_rig *r = *state;

        /* role, two pieces, the rest, the end, [DONE] */
        expect_stream(r,
                      "{\"model\":\"echo\",\"stream\":true,\"messages\":[{\"role\":\"user\","
                      "\"content\":\"stream "
                      "of words\"}]}",
                      "\nre: stream of words", 6, false);
        /* an agent that does not stream: its answer is one piece */
        expect_stream(r,
                      "{\"model\":\"echo\",\"stream\":true,"
                      "\"stream_options\":{\"include_usage\":true},"
                      "\"messages\":[{\"role\":\"user\",\"content\":\"whole\"}]}",
                      "re: whole", 4, true);
        expect_stream(r,
                      "{\"model\":\"echo\",\"stream\":true,\"messages\":[{\"role\":\"user\","
                      "\"content\":\"fail\"}]}",
                      "error:agent_error", 2, false);
        expect_stream(r,
                      "{\"model\":\"echo\",\"stream\":true,\"messages\":[{\"role\":\"user\","
                      "\"content\":\"quiet\"}]}",
                      "error:not_answered", 2, false);
}

static void a_disconnect_stops_nothing_and_the_client_can_return(void **state)
{
        static const char body[] =
                "{\"model\":\"echo\",\"stream\":true,\"messages\":[{\"role\":\"user\","
                "\"content\":\"hang\"}]}";
        struct api_rig *r = *state;
        struct http_raw c;
        bool done, usage;
        char *said;

        api_rig_send(r, &c, "POST", COMPLETIONS, "Idempotency-Key: k\r\n", body);
        assert_true(http_raw_wait_for(&c, "\"role\":\"assistant\""));
        api_rig_until(r, &r->hanging_count, 1);
        http_raw_reset(&c);
        http_raw_close(&c);
        api_rig_release(r);
        api_rig_send(r, &c, "POST", COMPLETIONS, "Idempotency-Key: k\r\n", body);
        assert_true(http_raw_wait_answers(&c, 1));
        said = pieces(c.in.data, &done, &usage);
        assert_string_equal(said, "re: hang");
        assert_int_equal(r->turns, 1);
        free(said);
        http_raw_close(&c);
}

/* Another question, another agent or another conversation is another request. */
static void an_idempotency_key_of_another_request_is_a_conflict(void **state)
{
        static const struct {
                const char *path, *chat, *body;
                int status;
        } rows[] = {
                { COMPLETIONS, "",
                  "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
                  200 },
                { COMPLETIONS, "",
                  "{\"messages\":[{\"content\":\"a\",\"role\":\"user\"}],\"model\":\"echo\"}",
                  200 },
                { COMPLETIONS, "",
                  "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}",
                  409 },
                { COMPLETIONS, "",
                  "{\"model\":\"dragoman\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
                  409 },
                { COMPLETIONS, "X-Dragoman-Chat: x\r\n",
                  "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
                  409 },
                { "/api/agent/chat", "", "{\"messages\":[{\"type\":\"human\",\"content\":\"a\"}]}",
                  200 },
                { "/api/agent/chat", "", "{\"messages\":[{\"type\":\"human\",\"content\":\"b\"}]}",
                  409 },
                { "/api/agent/chat", "", "{\"messages\":[{\"type\":\"human\",\"content\":\"a\"}]}",
                  200 },
        };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                char *headers = mem_printf("Idempotency-Key: k\r\n%s", rows[i].chat);
                struct api_answer a;
                struct http_raw c;

                api_rig_send(r, &c, "POST", rows[i].path, headers, rows[i].body);
                a = api_rig_receive(&c);
                if (a.status != rows[i].status)
                        fail_msg("row %zu: %s", i, a.text);
                api_answer_release(&a);
                free(headers);
        }
        assert_int_equal(r->turns, 2);
}

static void two_requests_with_one_key_get_one_answer(void **state)
{
        static const char body[] =
                "{\"model\":\"echo\",\"stream\":true,\"messages\":[{\"role\":\"user\","
                "\"content\":\"hang\"}]}";
        struct api_rig *r = *state;
        struct http_raw c[2];

        for (int i = 0; i < 2; i++) {
                api_rig_send(r, &c[i], "POST", COMPLETIONS, "Idempotency-Key: k\r\n", body);
                assert_true(http_raw_wait_for(&c[i], "\"role\":\"assistant\""));
                api_rig_until(r, &r->hanging_count, 1);
        }
        api_rig_release(r);
        for (int i = 0; i < 2; i++) {
                bool done, usage;
                char *said;

                assert_true(http_raw_wait_answers(&c[i], 1));
                said = pieces(c[i].in.data, &done, &usage);
                assert_string_equal(said, "re: hang");
                free(said);
                http_raw_close(&c[i]);
        }
        assert_int_equal(r->turns, 1);
}

static void closing_ends_waiting_requests(void **state)
{
        struct api_rig *r = *state;
        struct http_raw whole, stream, early;

        api_rig_send(
                r, &whole, "POST", COMPLETIONS, "",
                "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\",\"content\":\"hang\"}]}");
        api_rig_send(r, &stream, "POST", COMPLETIONS, "",
                     "{\"model\":\"echo\",\"stream\":true,\"messages\":[{\"role\":\"user\","
                     "\"content\":\"hang\"}]}");
        api_rig_until(r, &r->hanging_count, 2);
        api_rig_send(r, &early, "POST", COMPLETIONS, "",
                     "{\"model\":\"echo\",\"stream\":true,\"messages\":[{\"role\":\"user\","
                     "\"content\":\"hang\"}]}");
        api_rig_restart(r);
        http_raw_close(&whole);
        http_raw_close(&stream);
        http_raw_close(&early);
}

/* ---- agent-chat ---- */

static void agent_chat_answers_the_last_messages_of_people(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a =
                api_rig_ask(r, "POST", "/api/agent/chat",
                            "{\"messages\":[{\"type\":\"human\",\"content\":\"Catan?\","
                            "\"name\":\"discord:1\"},{\"type\":\"ai\",\"content\":\"When?\"},"
                            "{\"type\":\"human\",\"content\":\"Tonight.\",\"name\":\"2\"}],"
                            "\"source\":\"discord\"}");
        const json_t *event;

        assert_int_equal(a.status, 200);
        assert_string_equal(json_str(a.json, "type", ""), "ai");
        assert_string_equal(json_str(a.json, "content", ""),
                            "re: user discord:1: Catan?\n\nassistant: When?\n\nuser 2: Tonight.");
        assert_string_equal(json_str(a.json, "reply", ""), json_str(a.json, "content", "?"));
        api_answer_release(&a);
        a = api_rig_ask(r, "GET", "/api/v2/events?type=message.received", NULL);
        event = json_array_get(json_object_get(a.json, "items"), 0);
        assert_string_equal(
                json_str(json_object_get(json_object_get(event, "payload"), "sender"), "id", ""),
                "discord:2");
        api_answer_release(&a);
        a = api_rig_ask(r, "POST", "/api/agent/chat",
                        "{\"messages\":[{\"type\":\"human\",\"content\":\"a\"},{\"type\":\"ai\","
                        "\"content\":\"b\"},{\"type\":\"human\",\"content\":\"c\"},"
                        "{\"type\":\"human\",\"content\":\"d\"}],\"conversationId\":\"room\"}");
        assert_string_equal(json_str(a.json, "content", ""), "re: c\n\nd");
        api_answer_release(&a);
}

static void agent_chat_refuses_invalid_requests(void **state)
{
        static const struct {
                const char *body;
                int status;
        } rows[] = {
                { "{}", 400 },
                { "{\"messages\":[]}", 400 },
                { "{\"messages\":[{\"type\":\"ai\",\"content\":\"x\"}]}", 400 },
                { "{\"messages\":[{\"type\":\"robot\",\"content\":\"x\"}]}", 400 },
                { "{\"messages\":[{\"type\":\"human\",\"content\":\"x\"}],\"sauce\":\"discord\"}",
                  400 },
                { "{\"messages\":[{\"type\":\"human\",\"content\":\"x\"}],\"agent\":\"nobody\"}",
                  404 },
                { "{\"messages\":[{\"type\":\"human\",\"content\":\"quiet\"}]}", 409 },
                { "{\"messages\":[{\"type\":\"human\",\"content\":\"fail\"}]}", 502 },
        };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct api_answer a = api_rig_ask(r, "POST", "/api/agent/chat", rows[i].body);

                if (a.status != rows[i].status)
                        fail_msg("%s: %s", rows[i].body, a.text);
                api_answer_release(&a);
        }
}

/* ---- a test question ---- */

static void an_agent_can_be_tested_with_a_question(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = api_rig_ask(r, "POST", "/api/v2/agents/echo/test", "{}");
        const json_t *d = json_object_get(a.json, "data");

        assert_int_equal(a.status, 200);
        assert_true(json_flag(d, "ok", false));
        assert_string_equal(json_str(d, "text", ""), "re: Are you there?");
        api_answer_release(&a);
        a = api_rig_ask(r, "POST", "/api/v2/agents/echo/test", "{\"text\":\"fail\"}");
        assert_int_equal(a.status, 200);
        assert_false(json_flag(json_object_get(a.json, "data"), "ok", true));
        api_answer_release(&a);
        a = api_rig_ask(r, "POST", "/api/v2/agents/nobody/test", "{}");
        assert_int_equal(a.status, 404);
        api_answer_release(&a);
}

/* Requests of one trace run at the same time: each gets its own pieces. */
static void streams_of_one_trace_are_kept_apart(void **state)
{
        static const char headers[] =
                "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n";
        static const char body[] =
                "{\"model\":\"echo\",\"stream\":true,\"messages\":[{\"role\":\"user\","
                "\"content\":\"hang\"}]}";
        static const char *const expected[] = { "zz\n\nre: hang", "re: hang" };
        struct api_rig *r = *state;
        struct http_raw c[2];

        for (unsigned i = 0; i < 2; i++) {
                api_rig_send(r, &c[i], "POST", COMPLETIONS, headers, body);
                assert_true(http_raw_wait_for(&c[i], "\"role\":\"assistant\""));
                api_rig_until(r, &r->hanging_count, i + 1);
        }
        turn_delta(r->hanging[0], "zz", 2);
        api_rig_release(r);
        for (unsigned i = 0; i < 2; i++) {
                bool done, usage;
                char *said;

                assert_true(http_raw_wait_answers(&c[i], 1));
                said = pieces(c[i].in.data, &done, &usage);
                assert_string_equal(said, expected[i]);
                http_raw_close(&c[i]);
                free(said);
        }
}

/* A client cannot take text back, but must not get the answer twice because of it. */
static void what_was_said_before_tools_is_streamed_once(void **state)
{
        static const char body[] =
                "{\"model\":\"echo\",\"stream\":true,\"messages\":[{\"role\":\"user\","
                "\"content\":\"hang\"}]}";
        struct api_rig *r = *state;
        struct http_raw c;
        bool done, usage;
        char *said;

        api_rig_send(r, &c, "POST", COMPLETIONS, "", body);
        assert_true(http_raw_wait_for(&c, "\"role\":\"assistant\""));
        api_rig_until(r, &r->hanging_count, 1);
        turn_delta(r->hanging[0], "let me look", 11);
        turn_goes_on(r->hanging[0]);
        turn_delta(r->hanging[0], "re: ", 4);
        api_rig_release(r);
        assert_true(http_raw_wait_answers(&c, 1));
        said = pieces(c.in.data, &done, &usage);
        assert_string_equal(said, "let me look\n\nre: hang");
        http_raw_close(&c);
        free(said);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                API_RIG_CASE(what_was_said_before_tools_is_streamed_once),
                API_RIG_CASE(a_completion_is_a_message_on_the_road),
                API_RIG_CASE(all_agents_are_models),
                API_RIG_CASE(the_rules_choose_when_no_agent_is_named),
                API_RIG_CASE(only_an_unnamed_conversation_brings_its_history),
                API_RIG_CASE(images_by_url_are_attachments),
                API_RIG_CASE(asking_again_with_the_same_key_gives_the_same_answer),
                API_RIG_CASE(failures_have_openais_error_shape),
                cmocka_unit_test(every_parameter_of_the_protocol_is_known),
                API_RIG_CASE(streamed_pieces_make_the_answer),
                API_RIG_CASE(streams_of_one_trace_are_kept_apart),
                API_RIG_CASE(a_disconnect_stops_nothing_and_the_client_can_return),
                API_RIG_CASE(an_idempotency_key_of_another_request_is_a_conflict),
                API_RIG_CASE(two_requests_with_one_key_get_one_answer),
                API_RIG_CASE(closing_ends_waiting_requests),
                API_RIG_CASE(agent_chat_answers_the_last_messages_of_people),
                API_RIG_CASE(agent_chat_refuses_invalid_requests),
                API_RIG_CASE(an_agent_can_be_tested_with_a_question),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
