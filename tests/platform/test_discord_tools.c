/* The tools for agents and the API. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "discord_rig.h"
#include "tool_rig.h"

static void every_tool_has_a_schema(void **state)
{
        static const char *const names[] = { "discord_send",          "discord_dm",
                                             "discord_read",          "discord_react",
                                             "discord_edit",          "discord_delete",
                                             "discord_create_thread", "discord_list_guilds",
                                             "discord_list_channels", "discord_whoami" };

        (void)state;
        assert_tools(dc_tools, names, COUNT(names));
}

static void tools_that_send_make_deliveries(void **state)
{
        static const struct tool_put rows[] = {
                { "discord_send", "{\"channel_id\":\"7\",\"content\":\"hi\"}", "send", "7",
                  .text = "hi" },
                { "discord_send", "{\"channel_id\":7,\"content\":\"hi\"}", "send", "7",
                  .text = "hi" },
                { "discord_dm", "{\"user_id\":\"5\",\"content\":\"hi\"}", "send", "user:5",
                  .text = "hi" },
                { "discord_react", "{\"channel_id\":\"7\",\"message_id\":\"9\",\"emoji\":\"👍\"}",
                  "react", "7", "9", .emoji = "👍" },
                { "discord_edit", "{\"channel_id\":\"7\",\"message_id\":\"9\",\"content\":\"no\"}",
                  "edit", "7", "9", "no" },
                { "discord_delete", "{\"channel_id\":\"7\",\"message_id\":\"9\"}", "delete", "7",
                  "9" },
                { "discord_create_thread",
                  "{\"channel_id\":\"7\",\"message_id\":\"9\",\"name\":\"plan\"}", "thread", "7",
                  "9", .name = "plan" },
        };

        assert_tools_put(*state, rows, COUNT(rows));
}

static void wrong_arguments_are_named(void **state)
{
        static const struct tool_mistake rows[] = {
                { "discord_send", "{\"content\":\"hi\"}", "'channel_id' is missing" },
                { "discord_send", "{\"channel_id\":\"7\"}", "'content' is missing" },
                { "discord_send", "{\"channel_id\":\"#general\",\"content\":\"hi\"}",
                  "'channel_id' must be an id of Discord: digits, not '#general'" },
                { "discord_send", "{\"channel\":\"7\",\"content\":\"hi\"}",
                  "'discord_send' has no argument 'channel' (did you mean 'channel_id'?); it takes "
                  "'channel_id', 'content', 'reply_to'" },
                { "discord_whoami", "{\"verbose\":1}",
                  "'discord_whoami' has no argument 'verbose'" },
                { "discord_dm", "{\"content\":\"hi\"}", "'user_id' is missing" },
                { "discord_read", "{\"channel_id\":[]}", "'channel_id' must be a string" },
                { "discord_react", "{\"channel_id\":\"7\",\"message_id\":\"9\",\"emoji\":\"\"}",
                  "'emoji' is missing" },
                { "discord_list_channels", "{\"guild_id\":\"here\"}",
                  "'guild_id' must be an id of Discord: digits, not 'here'" },
                { "discord_fly", "{}", "adapter 'dc' has no tool 'discord_fly'" },
        };

        assert_tools_refuse(*state, rows, COUNT(rows));
}

static void reading_lists_messages_oldest_first(void **state)
{
        struct rig *g = *state;

        says(g, 200,
             "[{\"id\":\"175928847299117064\",\"content\":\"two\",\"author\":{\"id\":\"6\","
             "\"username\":\"bob\"},\"message_reference\":{\"message_id\":\"175928847299117063\"},"
             "\"attachments\":[{\"filename\":\"a.png\"}]},{\"id\":\"175928847299117063\","
             "\"content\":\"one\",\"author\":{\"id\":\"5\",\"username\":\"ada\","
             "\"global_name\":\"Ada "
             "L\"}}]");
        rig_connect(g, "");
        call(g, "discord_read", "{\"channel_id\":\"7\",\"limit\":500,\"before\":\"99\"}");
        await_result(g);
        assert_string_equal(rig_line(g, 0), "GET /channels/7/messages?limit=100&before=99");
        assert_string_equal(last.result,
                            "{\"messages\":[{\"id\":\"175928847299117063\","
                            "\"time\":\"2016-04-30T11:18:25.796Z\",\"author\":{\"id\":\"5\","
                            "\"username\":\"ada\",\"name\":\"Ada "
                            "L\",\"bot\":false},\"text\":\"one\"},{\"id\":\"175928847299117064\","
                            "\"time\":\"2016-04-30T11:18:25.796Z\",\"author\":{\"id\":\"6\","
                            "\"username\":\"bob\",\"name\":\"bob\",\"bot\":false},\"text\":\"two\","
                            "\"replyTo\":\"175928847299117063\",\"files\":[\"a.png\"]}]}");
}

static void channels_are_listed_with_threads(void **state)
{
        struct rig *g = *state;

        says(g, 200, "[{\"id\":\"1\",\"name\":\"Home\"}]");
        says(g, 200,
             "[{\"id\":\"7\",\"name\":\"general\",\"type\":0,\"topic\":\"all\"},{\"id\":\"8\","
             "\"name\":\"f\",\"type\":15}]");
        says(g, 200,
             "{\"threads\":[{\"id\":\"70\",\"name\":\"plan\",\"type\":11,\"parent_id\":\"7\"}]}");
        rig_connect(g, "");
        call(g, "discord_list_channels", "{}");
        await_result(g);
        assert_string_equal(rig_line(g, 1), "GET /guilds/1/channels");
        assert_string_equal(rig_line(g, 2), "GET /guilds/1/threads/active");
        assert_string_equal(
                last.result,
                "{\"guildId\":\"1\",\"channels\":[{\"id\":\"7\",\"name\":\"general\","
                "\"type\":\"text\",\"topic\":\"all\"},{\"id\":\"8\",\"name\":\"f\","
                "\"type\":\"forum\"},{\"id\":\"70\",\"name\":\"plan\",\"type\":\"thread\","
                "\"parent\":\"7\"}]}");
}

static void one_of_several_servers_must_be_named(void **state)
{
        struct rig *g = *state;

        says(g, 200, "[{\"id\":\"1\",\"name\":\"Home\"},{\"id\":\"2\",\"name\":\"Work\"}]");
        rig_connect(g, "");
        call(g, "discord_list_channels", "{}");
        await_result(g);
        assert_string_equal(last.why,
                            "'guild_id' must say which server is meant: 1 (Home), 2 (Work)");
}

static void servers_and_the_bot_are_shown(void **state)
{
        struct rig *g = *state;

        says(g, 200, "[{\"id\":\"1\",\"name\":\"Home\"}]");
        says(g, 200, ME);
        rig_connect(g, ",\"admins\":[\"10\"]");
        fake_intake.hooks.dm(fake_intake.hooks.ctx, "10", "100");
        call(g, "discord_list_guilds", "{}");
        await_result(g);
        assert_string_equal(last.result, "{\"guilds\":[{\"id\":\"1\",\"name\":\"Home\"}]}");
        call(g, "discord_whoami", "{}");
        await_result(g);
        assert_string_equal(last.result,
                            "{\"id\":\"42\",\"username\":\"testbot\",\"applicationId\":\"43\","
                            "\"operators\":[\"10\"],\"operatorDm\":\"100\"}");
}

static void refusals_come_with_advice(void **state)
{
        struct rig *g = *state;

        says(g, 403, "{\"code\":50001,\"message\":\"Missing Access\"}");
        rig_connect(g, "");
        call(g, "discord_read", "{\"channel_id\":\"7\"}");
        await_result(g);
        assert_int_equal(last.kind, ERR_REFUSED);
        assert_string_equal(
                last.why, "Discord says: Missing Access (50001): give the bot View Channel there");
}

static void tools_without_a_token_say_where_to_put_it(void **state)
{
        struct rig *g = *state;
        struct error err = { 0 };
        struct adapter_conf *c = adapter_conf_make("dc", "discord", "{}", &err);

        assert_int_equal(adapters_apply(g->adapters, &c, 1, &err), 0);
        call(g, "discord_send", "{\"channel_id\":\"7\",\"content\":\"hi\"}");
        await_result(g);
        assert_int_equal(last.kind, ERR_CONFLICT);
        assert_string_equal(last.why,
                            "there is no bot token: set DISCORD_BOT_TOKEN in the environment, or "
                            "adapters.dc.botToken");
}

static void tools_in_flight_end_with_the_adapter(void **state)
{
        struct rig *g = *state;
        struct error err = { 0 };

        says(g, 200, NULL);
        rig_connect(g, "");
        call(g, "discord_whoami", "{}");
        rig_requests(g, 1);
        assert_int_equal(adapters_apply(g->adapters, NULL, 0, &err), 0);
        assert_int_equal(last.calls, 1);
        assert_string_equal(last.why, "the adapter was stopped");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tool_rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                TEST(every_tool_has_a_schema),
                TEST(tools_that_send_make_deliveries),
                TEST(wrong_arguments_are_named),
                TEST(reading_lists_messages_oldest_first),
                TEST(channels_are_listed_with_threads),
                TEST(one_of_several_servers_must_be_named),
                TEST(servers_and_the_bot_are_shown),
                TEST(refusals_come_with_advice),
                TEST(tools_without_a_token_say_where_to_put_it),
                TEST(tools_in_flight_end_with_the_adapter),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
