#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "agent_rig.h"
#include "base/json.h"

#define JSON(body) \
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" body

static void serve(struct agent_rig *b, const char *more, const struct fake_answer *script,
                  size_t count)
{
        struct error err = { 0 };
        char *url, *json;

        b->server = fake_server_new(b->loop, script, count);
        url = fake_server_url(b->server, "/base/");
        json = mem_printf("{\"url\": \"%s\", \"apiKey\": \"chat-key-1\"%s}", url, more);
        if (fake_apply(b->agents, "c", "agent-chat", json, &err) < 0)
                fail_msg("%s", err.text);
        free(json);
        free(url);
}

static void assert_has(const char *text, const char *part)
{
        if (!strstr(text, part))
                fail_msg("'%s' is not in '%s'", part, text);
}

/* Channel history: people are named by id, our own messages are the agent's. */
static void channel_history_names_people_by_platform_id(void **state)
{
        static const struct fake_answer script[] = {
                { JSON("{\"content\":\"Want to lock in a time?\"}"), .end = FAKE_CLOSE }
        };
        static const struct transcript_line history[] = {
                { .role = "user",
                  .name = "discord:1",
                  .display = "Zoe",
                  .text = "too old to be shown" },
                { .role = "user",
                  .name = "discord:80351110224678912",
                  .display = "Ben",
                  .text = "we should play Catan" },
                { .role = "assistant", .name = "discord:99", .display = "Bot", .text = "nice" },
        };
        static const char expected[] =
                "{\"messages\":[{\"type\":\"system\",\"content\":\"Read the "
                "room.\"},{\"type\":\"human\",\"content\":\"we should play "
                "Catan\",\"name\":\"discord:80351110224678912\"},{\"type\":\"ai\","
                "\"content\":\"nice\"},{\"type\":\"human\",\"content\":\"yes!\","
                "\"name\":\"discord:7\"}],\"source\":\"discord\","
                "\"conversationId\":\"discord-channel-5\"}";
        struct agent_rig *b = *state;
        struct fake_turn t;
        const char *request;

        serve(b, ", \"historyLimit\": 3", script, 1);
        fake_turn_init(&t, "c", "yes!");
        t.input.platform = "discord";
        t.run.history = history;
        t.run.history_count = COUNT(history);
        t.run.mode = MODE_AMBIENT;
        t.run.prompt = "Read the room.";
        t.run.session = "discord-channel-5";
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        assert_string_equal(t.text, "Want to lock in a time?");
        request = fake_server_request(b->server, 0);
        assert_has(request, "POST /base/api/agent/chat HTTP/1.1");
        assert_has(request, "X-API-Key: chat-key-1\r\n");
        assert_has(request, "traceparent: 00-0af7651916cd43dd8448eb211c80319c-");
        assert_string_equal(strstr(request, "\r\n\r\n") + 4, expected);
        fake_turn_release(&t);
}

static void common_reply_shapes_are_read(void **state)
{
        static const struct {
                const char *answer, *text;
                enum error_kind kind;
        } rows[] = {
                { JSON("{\"type\":\"ai\",\"content\":\"one\",\"reply\":\"one\"}"), "one",
                  ERR_NONE },
                { JSON("{\"response\":\"two\"}"), "two", ERR_NONE },
                { JSON("{\"message\":\"three\"}"), "three", ERR_NONE },
                { JSON("{\"messages\":[{\"type\":\"human\",\"content\":\"q\"},{\"type\":\"ai\","
                       "\"content\":\"four\"}]}"),
                  "four", ERR_NONE },
                { JSON("{\"content\":\"[SILENT]\"}"), "", ERR_NONE },
                { JSON("{\"content\":\"\"}"), "", ERR_NONE },
                { JSON("{\"messages\":[{\"type\":\"human\",\"content\":\"q\"}]}"),
                  "The agent's answer could not be understood. Please tell the operator.",
                  ERR_PROTOCOL },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct fake_answer script = { rows[i].answer, .end = FAKE_CLOSE };
                struct agent_rig *b = *state;
                struct fake_turn t;

                serve(b, "", &script, 1);
                fake_turn_init(&t, "c", "hi");
                fake_turn_start(&t, b->agents);
                fake_turn_await(&t, b->loop);
                assert_int_equal(t.reply.kind, rows[i].kind);
                assert_string_equal(t.text, rows[i].text);
                fake_turn_release(&t);
                teardown(state);
                setup(state);
        }
}

static void it_uses_history_and_is_not_repeatable(void **state)
{
        struct agent_rig *b = *state;

        serve(b, "", NULL, 0);
        assert_true(agents_abilities(b->agents, "c") & AGENT_HISTORY);
        assert_false(agents_abilities(b->agents, "c") & AGENT_REPEATABLE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(channel_history_names_people_by_platform_id),
                TEST(common_reply_shapes_are_read),
                TEST(it_uses_history_and_is_not_repeatable),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
