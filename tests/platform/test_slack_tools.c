/* The tools for agents and the API, and the lookups of the road. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "slack_rig.h"
#include "tool_rig.h"

static void every_tool_has_a_schema(void **state)
{
        static const char *const names[] = { "slack_send",          "slack_dm",    "slack_read",
                                             "slack_react",         "slack_edit",  "slack_delete",
                                             "slack_list_channels", "slack_whoami" };

        (void)state;
        assert_tools(sl_tools, names, COUNT(names));
}

static void tools_that_send_make_deliveries(void **state)
{
        static const struct tool_put rows[] = {
                { "slack_send", "{\"channel_id\":\"C7\",\"content\":\"hi\"}", "send", "C7",
                  .text = "hi" },
                { "slack_send",
                  "{\"channel_id\":\"C7\",\"content\":\"hi\",\"thread_ts\":\"1700000000.000100\"}",
                  "send", "C7", .text = "hi", .thread = "1700000000.000100" },
                { "slack_dm", "{\"user_id\":\"U5\",\"content\":\"hi\"}", "send", "user:U5",
                  .text = "hi" },
                { "slack_react",
                  "{\"channel_id\":\"C7\",\"message_id\":\"1700000000.000100\",\"emoji\":\"👍\"}",
                  "react", "C7", "1700000000.000100", .emoji = "👍" },
                { "slack_edit",
                  "{\"channel_id\":\"C7\",\"message_id\":\"1700000000.000100\",\"content\":\"no\"}",
                  "edit", "C7", "1700000000.000100", "no" },
                { "slack_delete", "{\"channel_id\":\"C7\",\"message_id\":\"1700000000.000100\"}",
                  "delete", "C7", "1700000000.000100" },
        };

        assert_tools_put(*state, rows, COUNT(rows));
}

static void wrong_arguments_are_named(void **state)
{
        static const struct tool_mistake rows[] = {
                { "slack_send", "{\"content\":\"hi\"}", "'channel_id' is missing" },
                { "slack_send", "{\"channel_id\":\"C7\"}", "'content' is missing" },
                { "slack_send", "{\"channel_id\":\"#general\",\"content\":\"hi\"}",
                  "'channel_id' must be an id of Slack such as C0123ABCD, not '#general'" },
                { "slack_send", "{\"channel_id\":\"C7\",\"content\":\"hi\",\"thread_ts\":\"soon\"}",
                  "'thread_ts' must be the ts of a message such as 1700000000.000100, not 'soon'" },
                { "slack_react", "{\"channel_id\":\"C7\",\"message_id\":\"9\",\"emoji\":\"x\"}",
                  "'message_id' must be the ts of a message such as 1700000000.000100, not '9'" },
                { "slack_read", "{\"channel_id\":[]}", "'channel_id' must be a string" },
                { "slack_list_channels", "{\"cursor\":[]}", "'cursor' must be a string" },
                { "slack_fly", "{}", "adapter 'sl' has no tool 'slack_fly'" },
        };

        assert_tools_refuse(*state, rows, COUNT(rows));
}

#define ADA                                                                   \
        "{\"ok\":true,\"user\":{\"id\":\"U5\",\"name\":\"ada\",\"profile\":{" \
        "\"display_name\":\"Ada L\"}}}"

static void reading_lists_messages_oldest_first_with_names(void **state)
{
        struct rig *g = *state;

        says(g, 200,
             "{\"ok\":true,\"messages\":["
             "{\"ts\":\"1700000002.000100\",\"bot_id\":\"B9\",\"username\":\"ci\",\"text\":\"ok\","
             "\"files\":[{\"name\":\"a.png\"}]},"
             "{\"ts\":\"1700000001.000100\",\"user\":\"U5\",\"text\":\"1 &lt; 2\","
             "\"thread_ts\":\"1700000001.000100\",\"reply_count\":3}]}");
        says(g, 200, ADA);
        rig_connect(g, "");
        call(g, "slack_read",
             "{\"channel_id\":\"C7\",\"limit\":500,\"before\":\"1700000003.000000\"}");
        await_result(g);
        assert_string_equal(rig_method(g, 0), "conversations.history");
        assert_non_null(strstr(rig_body(g, 0), "channel=C7"));
        assert_non_null(strstr(rig_body(g, 0), "limit=100"));
        assert_non_null(strstr(rig_body(g, 0), "latest=1700000003.000000"));
        assert_string_equal(rig_method(g, 1), "users.info");
        assert_string_equal(
                last.result,
                "{\"messages\":[{\"id\":\"1700000001.000100\","
                "\"time\":\"2023-11-14T22:13:21.000Z\","
                "\"author\":{\"id\":\"U5\",\"username\":\"ada\",\"name\":\"Ada L\",\"bot\":false},"
                "\"text\":\"1 < 2\",\"thread\":\"1700000001.000100\",\"replies\":3},"
                "{\"id\":\"1700000002.000100\",\"time\":\"2023-11-14T22:13:22.000Z\","
                "\"author\":{\"id\":\"B9\",\"username\":\"ci\",\"name\":\"ci\",\"bot\":true},"
                "\"text\":\"ok\",\"files\":[\"a.png\"]}]}");
        /* names are asked for once */
        assert_int_equal(fake_server_requests(g->server), g->greetings + 2);
}

static void a_thread_is_read_to_its_end(void **state)
{
        struct rig *g = *state;

        says(g, 200,
             "{\"ok\":true,\"messages\":[{\"ts\":\"1700000001.000100\",\"bot_id\":\"B9\","
             "\"text\":\"one\"}],\"response_metadata\":{\"next_cursor\":\"more\"}}");
        says(g, 200,
             "{\"ok\":true,\"messages\":[{\"ts\":\"1700000002.000100\",\"bot_id\":\"B9\","
             "\"text\":\"two\"},{\"ts\":\"1700000003.000100\",\"bot_id\":\"B9\",\"text\":"
             "\"three\"}]}");
        rig_connect(g, "");
        call(g, "slack_read",
             "{\"channel_id\":\"C7\",\"limit\":2,\"thread_ts\":\"1700000001.000100\"}");
        await_result(g);
        assert_string_equal(rig_method(g, 0), "conversations.replies");
        assert_non_null(strstr(rig_body(g, 0), "ts=1700000001.000100"));
        assert_non_null(strstr(rig_body(g, 1), "cursor=more"));
        assert_null(strstr(last.result, "one"));
        assert_true(strstr(last.result, "two") < strstr(last.result, "three"));
}

static void channels_are_listed_page_by_page(void **state)
{
        struct rig *g = *state;

        says(g, 200,
             "{\"ok\":true,\"channels\":[{\"id\":\"C7\",\"name\":\"general\",\"is_member\":true,"
             "\"topic\":{\"value\":\"all\"}},{\"id\":\"G8\",\"name\":\"secret\",\"is_private\":true"
             "}],\"response_metadata\":{\"next_cursor\":\"dGVhbQ==\"}}");
        says(g, 200, "{\"ok\":true,\"channels\":[]}");
        rig_connect(g, "");
        call(g, "slack_list_channels", "{}");
        await_result(g);
        assert_string_equal(rig_method(g, 0), "conversations.list");
        assert_non_null(strstr(rig_body(g, 0), "exclude_archived=true"));
        assert_string_equal(last.result,
                            "{\"channels\":[{\"id\":\"C7\",\"name\":\"general\",\"type\":"
                            "\"public\",\"member\":true,\"topic\":\"all\"},{\"id\":\"G8\",\"name\":"
                            "\"secret\",\"type\":\"private\",\"member\":false}],\"nextCursor\":"
                            "\"dGVhbQ==\"}");
        call(g, "slack_list_channels", "{\"cursor\":\"dGVhbQ==\"}");
        await_result(g);
        assert_non_null(strstr(rig_body(g, 1), "cursor=dGVhbQ%3D%3D"));
        assert_string_equal(last.result, "{\"channels\":[]}");
}

static void the_bot_knows_itself_and_its_operators(void **state)
{
        struct rig *g = *state;

        says(g, 200, ME);
        rig_connect(g, ",\"admins\":[\"U10\"]");
        call(g, "slack_whoami", "{}");
        await_result(g);
        assert_string_equal(last.result,
                            "{\"id\":\"U0BOT\",\"username\":\"testbot\",\"teamId\":\"T1\","
                            "\"team\":\"Work\",\"operators\":[\"U10\"]}");
}

static void refusals_say_what_is_wrong(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"ok\":false,\"error\":\"channel_not_found\"}");
        says(g, 200,
             "{\"ok\":false,\"error\":\"missing_scope\",\"needed\":\"channels:history\","
             "\"provided\":\"chat:write\"}");
        rig_connect(g, "");
        call(g, "slack_read", "{\"channel_id\":\"C7\"}");
        await_result(g);
        assert_int_equal(last.kind, ERR_MISSING);
        assert_non_null(strstr(last.why, "channel_not_found"));
        call(g, "slack_read", "{\"channel_id\":\"C7\"}");
        await_result(g);
        assert_int_equal(last.kind, ERR_REFUSED);
        assert_non_null(strstr(last.why, "channels:history"));
}

static void tools_in_flight_end_with_the_adapter(void **state)
{
        struct rig *g = *state;
        struct error err = { 0 };

        says(g, 200, "{\"ok\":true,\"messages\":[{\"ts\":\"1700000001.000100\",\"user\":\"U5\"}]}");
        says(g, 200, NULL); /* the name never comes */
        rig_connect(g, "");
        call(g, "slack_read", "{\"channel_id\":\"C7\"}");
        rig_requests(g, 2);
        assert_int_equal(adapters_apply(g->adapters, NULL, 0, &err), 0);
        assert_int_equal(last.calls, 1);
        assert_non_null(strstr(last.result, "\"username\":\"U5\""));
}

/* ---- lookups ---- */

static char lines[600]; /* of the messages read last */

static void on_history(void *arg, const struct channel_message *messages, size_t count,
                       const struct error *err)
{
        (void)arg;
        last.calls++;
        last.kind = err ? err->kind : ERR_NONE;
        lines[0] = '\0';
        for (size_t i = 0; i < count; i++) {
                const struct channel_message *m = &messages[i];
                size_t n = strlen(lines);

                snprintf(lines + n, sizeof(lines) - n, "%s %s %s%s%s: %s\n", m->id, m->sender_id,
                         m->sender_name, m->is_own ? " own" : "", m->is_bot ? " bot" : "", m->text);
        }
}

static void the_road_reads_a_channel(void **state)
{
        struct rig *g = *state;

        says(g, 200,
             "{\"ok\":true,\"messages\":[{\"ts\":\"1700000002.000100\",\"user\":\"U0BOT\","
             "\"bot_id\":\"B0BOT\",\"bot_profile\":{\"name\":\"Helper\"},\"text\":\"re\"},"
             "{\"ts\":\"1700000001.000100\",\"user\":\"U5\",\"text\":\"hi\"}]}");
        says(g, 200, ADA); /* our own name is known */
        rig_connect(g, "");
        adapters_channel_history(g->adapters, "sl", "C7", NULL, 10, on_history, NULL);
        await_result(g);
        assert_string_equal(lines, "1700000001.000100 U5 Ada L: hi\n"
                                   "1700000002.000100 U0BOT Helper own bot: re\n");
}

static void the_road_reads_one_message(void **state)
{
        static const char answer[] =
                "{\"ok\":true,\"messages\":[{\"ts\":\"1700000001.000100\",\"bot_id\":\"B9\","
                "\"text\":\"first\"},{\"ts\":\"1700000002.000100\",\"bot_id\":\"B9\",\"text\":"
                "\"that one\"}]}";
        struct rig *g = *state;

        says(g, 200, answer);
        says(g, 200, "{\"ok\":true,\"messages\":[]}");
        rig_connect(g, "");
        adapters_message(g->adapters, "sl", "C7", "1700000001.000100", "1700000002.000100",
                         on_history, NULL);
        await_result(g);
        assert_string_equal(rig_method(g, 0), "conversations.replies");
        assert_string_equal(lines, "1700000002.000100 B9 B9 bot: that one\n");
        last.calls = 0;
        adapters_message(g->adapters, "sl", "C7", NULL, "1700000009.000100", on_history, NULL);
        await_result(g);
        assert_non_null(strstr(rig_body(g, 1), "inclusive=true"));
        assert_int_equal(last.kind, ERR_MISSING);
}

static void on_channel(void *arg, const struct channel_info *info, const struct error *err)
{
        (void)arg;
        last.calls++;
        last.kind = err ? err->kind : ERR_NONE;
        if (info)
                snprintf(last.result, sizeof(last.result), "%s %s %s %d %d", info->id, info->name,
                         info->topic ? info->topic : "-", info->kind == CHAT_DM,
                         (int)info->members);
}

static void on_user(void *arg, const struct user_info *info, const struct error *err)
{
        (void)arg;
        last.calls++;
        last.kind = err ? err->kind : ERR_NONE;
        if (info)
                snprintf(last.result, sizeof(last.result), "%s %s %s", info->id, info->username,
                         info->name);
}

static void channels_and_users_are_looked_up(void **state)
{
        struct rig *g = *state;
        struct error err = { 0 };

        says(g, 200,
             "{\"ok\":true,\"channel\":{\"id\":\"C7\",\"name\":\"general\",\"topic\":{\"value\":"
             "\"all\"},\"num_members\":3}}");
        says(g, 200, ADA);
        says(g, 200, "{\"ok\":true,\"channel\":{\"id\":\"D5\",\"is_im\":true,\"user\":\"U5\"}}");
        says(g, 200, "{\"ok\":false,\"error\":\"user_not_found\"}");
        rig_connect(g, "");
        assert_int_equal(adapters_channel_info(g->adapters, "sl", "C7", on_channel, NULL, &err), 0);
        await_result(g);
        assert_string_equal(last.result, "C7 general all 0 3");
        last.calls = 0;
        assert_int_equal(adapters_user_info(g->adapters, "sl", "U5", on_user, NULL, &err), 0);
        await_result(g);
        assert_string_equal(last.result, "U5 ada Ada L");
        last.calls = 0;
        adapters_channel_info(g->adapters, "sl", "D5", on_channel, NULL, &err);
        await_result(g);
        assert_string_equal(last.result, "D5 ada - 1 -1");
        last.calls = 0;
        adapters_user_info(g->adapters, "sl", "U6", on_user, NULL, &err);
        await_result(g);
        assert_int_equal(last.kind, ERR_MISSING);
        assert_int_equal(adapters_user_info(g->adapters, "sl", "me", on_user, NULL, &err), -1);
        assert_string_equal(err.text, "'me' is not a Slack user id");
}

static void a_reply_may_be_shown_in_the_channel(void **state)
{
        static const char arguments[] = "{\"channel_id\":\"C7\",\"content\":\"hi\","
                                        "\"thread_ts\":\"1700000000.000100\",\"broadcast\":true}";
        const struct outbox_receipt receipt = { .delivery = 12, .count = 1 };
        struct rig *g = *state;

        rig_connect(g, "");
        call(g, "slack_send", arguments);
        assert_true(fake_road.put.broadcast);
        fake_road.put.ack(fake_road.put.arg, &receipt);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tool_rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                TEST(every_tool_has_a_schema),
                TEST(tools_that_send_make_deliveries),
                TEST(a_reply_may_be_shown_in_the_channel),
                TEST(wrong_arguments_are_named),
                TEST(reading_lists_messages_oldest_first_with_names),
                TEST(a_thread_is_read_to_its_end),
                TEST(channels_are_listed_page_by_page),
                TEST(the_bot_knows_itself_and_its_operators),
                TEST(refusals_say_what_is_wrong),
                TEST(tools_in_flight_end_with_the_adapter),
                TEST(the_road_reads_a_channel),
                TEST(the_road_reads_one_message),
                TEST(channels_and_users_are_looked_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
