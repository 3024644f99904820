/* Session names for agents with a memory of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/agents_private.h"
#include "agent_rig.h"

/* The session of a turn under these settings; yours to free. */
static char *name_with(const char *settings, const struct turn_run *run)
{
        struct agent_slot in = { 0 };
        struct error err = { 0 };
        char *name;

        in.conf = agent_conf_make("w", "echo", settings, &err);
        if (!in.conf)
                fail_msg("%s", err.text);
        name = agent_session(&in.agent, run);
        agent_conf_free(in.conf);
        return name;
}

static void assert_name(const char *settings, const struct turn_run *run, const char *expected)
{
        char *name = name_with(settings, run);

        assert_string_equal(name, expected);
        free(name);
}

#define PER_USER      "{\"session\": \"perUser\"}"
#define PER_CHAT      "{\"session\": \"perChat\"}"
#define PER_BOTH      "{\"session\": \"perUserPerChat\"}"
#define BARE_USER     "{\"session\": \"perUser\", \"sessionBare\": true}"
#define BARE_CHAT     "{\"session\": \"perChat\", \"sessionBare\": true}"
#define BARE_BOTH     "{\"session\": \"perUserPerChat\", \"sessionBare\": true}"
#define CONVERSATION  "{\"session\": \"conversation\"}"
#define CONVERSATIONS "{\"session\": \"conversation\", \"sessionBare\": true}"

static void init(struct fake_turn *t)
{
        fake_turn_init(t, "w", "hi");
        t->input.platform = "telegram";
        t->run.adapter = "tg";
        t->run.channel = "-100";
        t->run.session = "telegram-channel-5";
}

static void the_session_setting_chooses_the_name(void **state)
{
        static const struct {
                const char *settings, *plain, *in_thread;
        } rows[] = {
                { "{}", "telegram-channel-5", "telegram-channel-5" },
                { CONVERSATION, "telegram-channel-5", "telegram-channel-5" },
                { CONVERSATIONS, "telegram-channel-5", "telegram-channel-5" },
                { PER_USER, "telegram:tg:7", "telegram:tg:7" },
                { PER_CHAT, "telegram:tg:-100", "telegram:tg:-100:12" },
                { PER_BOTH, "telegram:tg:7:-100", "telegram:tg:7:-100:12" },
                { BARE_USER, "7", "7" },
                { BARE_CHAT, "-100", "-100" },
                { BARE_BOTH, "7:-100", "7:-100" },
        };
        struct fake_turn t;

        (void)state;
        init(&t);
        for (size_t i = 0; i < COUNT(rows); i++) {
                t.run.thread = NULL;
                assert_name(rows[i].settings, &t.run, rows[i].plain);
                t.run.thread = "12";
                assert_name(rows[i].settings, &t.run, rows[i].in_thread);
        }
        fake_turn_release(&t);
}

static void a_reset_changes_the_session(void **state)
{
        struct fake_turn t;

        (void)state;
        init(&t);
        t.run.resets = (struct reset_turns){ .person = 41, .chat = 42, .person_in_chat = 43 };
        assert_name(PER_USER, &t.run, "telegram:tg:7#41");
        assert_name(PER_CHAT, &t.run, "telegram:tg:-100#42");
        assert_name(PER_BOTH, &t.run, "telegram:tg:7:-100#43");
        assert_name(BARE_USER, &t.run, "7#41");
        assert_name(BARE_CHAT, &t.run, "-100#42");
        assert_name(BARE_BOTH, &t.run, "7:-100#43");
        fake_turn_release(&t);
}

static void a_turn_of_several_people_is_in_no_persons_session(void **state)
{
        struct incoming other = {
                .adapter = "tg", .platform = "telegram", .sender_id = "8", .text = "me too"
        };
        struct fake_turn t;

        (void)state;
        init(&t);
        t.run.resets = (struct reset_turns){ .person = 41, .chat = 42, .person_in_chat = 43 };
        t.inputs[1] = &other;
        t.run.input_count = 2;
        assert_name(PER_USER, &t.run, "telegram:tg:*:-100#42");
        assert_name(PER_BOTH, &t.run, "telegram:tg:*:-100#42");
        assert_name(BARE_BOTH, &t.run, "*:-100#42");
        other.sender_id = "7";
        assert_name(PER_BOTH, &t.run, "telegram:tg:7:-100#43");
        t.run.mode = MODE_AMBIENT; /* reads every sender */
        assert_name(PER_BOTH, &t.run, "telegram:tg:*:-100#42");
        t.run.mode = MODE_REPLY;
        t.input.sender_id = other.sender_id = ""; /* unknown */
        assert_name(PER_USER, &t.run, "telegram:tg:*:-100#42");
        fake_turn_release(&t);
}

static void different_ids_never_make_the_same_session(void **state)
{
        struct fake_turn t;
        char *one, *two;

        (void)state;
        init(&t);
        t.input.sender_id = "a:b";
        t.run.channel = "c";
        one = name_with(PER_BOTH, &t.run);
        t.input.sender_id = "a";
        t.run.channel = "b:c";
        two = name_with(PER_BOTH, &t.run);
        assert_string_not_equal(one, two);
        free(one);
        free(two);
        t.input.sender_id = "*";
        t.run.channel = "c#4%";
        assert_name(PER_BOTH, &t.run, "telegram:tg:%2A:c%234%25");
        fake_turn_release(&t);
}

/* The folder of a turn's session under these settings; yours to free. */
static char *folder_with(const char *settings, const struct turn_run *run)
{
        struct agent_slot in = { 0 };
        char *name;

        in.conf = agent_conf_make("w", "echo", settings, NULL);
        assert_non_null(in.conf);
        name = agent_session_folder(&in.agent, run);
        agent_conf_free(in.conf);
        return name;
}

/* Agents take the folder's path for a part of a URL, or paste it into a command. */
static void folders_have_plain_names_that_differ(void **state)
{
        static const char *const channels[] = { "a:b",   "a-b",   "a%3Ab",
                                                "a/b",   "../..", "\xc3\xa4\xc3\xb6",
                                                "a b$'", ".",     "a\\b" };
        char *names[COUNT(channels)];
        struct fake_turn t;

        (void)state;
        init(&t);
        for (size_t i = 0; i < COUNT(channels); i++) {
                t.run.channel = channels[i];
                names[i] = folder_with(BARE_CHAT, &t.run);
                assert_int_equal(strspn(names[i], "abcdefghijklmnopqrstuvwxyzABCDEF0123456789-_"),
                                 strlen(names[i]));
                for (size_t k = 0; k < i; k++)
                        assert_string_not_equal(names[i], names[k]);
        }
        for (size_t i = 0; i < COUNT(channels); i++)
                free(names[i]);
        t.run.resets.chat = 42; /* after /new */
        t.run.channel = channels[0];
        names[0] = folder_with(BARE_CHAT, &t.run);
        t.run.resets.chat = 0;
        names[1] = folder_with(BARE_CHAT, &t.run);
        assert_string_equal(names[0], names[1]);
        free(names[0]);
        free(names[1]);
        t.run.session = NULL;
        t.run.conversation = 5;
        names[0] = folder_with(CONVERSATION, &t.run);
        assert_string_equal(names[0], "conv-5");
        free(names[0]);
        fake_turn_release(&t);
}

/* ---- every kind of agent ---- */

#define REFUSED "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

static void every_kind_of_agent_sends_the_configured_session(void **state)
{
        static const struct {
                const char *type, *address, *more, *expected;
        } rows[] = {
                { "webhook", "url", "", "\"sessionId\":\"telegram:tg:7:-100\"" },
                { "webhook", "url",
                  ", \"mode\": \"fire-and-forget\", \"format\": \"openclaw\", "
                  "\"sessionKeys\": true",
                  "\"sessionKey\":\"hook:telegram:tg:7:-100\"" },
                { "agent-chat", "url", "", "\"conversationId\":\"telegram:tg:7:-100\"" },
                { "agno", "url", ", \"id\": \"a\"", "session_id=telegram%3Atg%3A7%3A-100&" },
                { "openai", "baseUrl", ", \"model\": \"m\"", "\"user\":\"telegram:tg:7:-100\"" },
                { "anthropic", "baseUrl", ", \"model\": \"m\"",
                  "\"user_id\":\"telegram:tg:7:-100\"" },
        };
        struct fake_answer script[COUNT(rows)];
        struct agent_rig *b = *state;

        for (size_t i = 0; i < COUNT(rows); i++)
                script[i] = (struct fake_answer){ REFUSED, .end = FAKE_CLOSE };
        b->server = fake_server_new(b->loop, script, COUNT(rows));
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *url = fake_server_url(b->server, "/");
                char *json = mem_printf(
                        "{\"%s\": \"%s\", \"apiKey\": \"k-1\", \"session\": \"perUserPerChat\"%s}",
                        rows[i].address, url, rows[i].more);
                struct error err = { 0 };
                struct fake_turn t;

                if (fake_apply(b->agents, "w", rows[i].type, json, &err) < 0)
                        fail_msg("%s", err.text);
                init(&t);
                fake_turn_start(&t, b->agents);
                fake_turn_await(&t, b->loop);
                if (!strstr(fake_server_request(b->server, (unsigned)i), rows[i].expected))
                        fail_msg("'%s' is not in '%s'", rows[i].expected,
                                 fake_server_request(b->server, (unsigned)i));
                fake_turn_release(&t);
                free(json);
                free(url);
        }
}

static void an_unknown_session_setting_is_refused(void **state)
{
        struct error err = { 0 };

        (void)state;
        assert_null(agent_conf_make("w", "echo", "{\"session\": \"always\"}", &err));
        assert_non_null(strstr(err.text, "session"));
        for (const char *const *word = (const char *const[]){ "conversation", "perUser", "perChat",
                                                              "perUserPerChat", NULL };
             *word; word++)
                assert_non_null(strstr(err.text, *word));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_session_setting_chooses_the_name),
                cmocka_unit_test(a_reset_changes_the_session),
                cmocka_unit_test(a_turn_of_several_people_is_in_no_persons_session),
                cmocka_unit_test(different_ids_never_make_the_same_session),
                cmocka_unit_test(folders_have_plain_names_that_differ),
                cmocka_unit_test_setup_teardown(every_kind_of_agent_sends_the_configured_session,
                                                setup, teardown),
                cmocka_unit_test(an_unknown_session_setting_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
