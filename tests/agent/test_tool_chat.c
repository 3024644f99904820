#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/road_rig.h"
#include "tool_rig.h"

static struct rig *g;

/* The tools on a road of their own, in the chat "c1" of the adapter "tools". */
static int setup_road(void **state)
{
        struct tool_rig *b;

        setup(state);
        b = *state;
        loop_free(b->loop);
        g = rig_new();
        b->loop = b->scope.loop = g->loop;
        b->scope.road = g->road;
        b->scope.store = g->store;
        b->run.adapter = "tools";
        return 0;
}

static int teardown_road(void **state)
{
        struct tool_rig *b = *state;

        rig_free(g);
        b->loop = loop_new();
        return teardown(state);
}

/* ---- attach ---- */

static void a_file_goes_through_the_outbox_once(void **state)
{
        struct tool_rig *b = *state;

        put(b, "report.pdf", "some pages");
        g->auto_send = true;
        b->run.thread = "t9";
        rig_call(b, "attach",
                 json_pack("{s:s, s:s}", "path", "report.pdf", "title", "Here *it* is"));
        expect_text(b, "Attached report.pdf (10 bytes) to the chat.");
        assert_int_equal(rig_count(g, "deliveries"), 1);
        assert_string_equal(rig_text(g, "kind FROM deliveries"), "upload");
        assert_string_equal(rig_members(g, "payload FROM deliveries", "path"),
                            "channels/test/c1/attachments/7-74196fe7-report.pdf");
        expect_file(b, "attachments/7-74196fe7-report.pdf", "some pages");
        assert_string_equal(rig_members(g, "payload FROM deliveries", "name"), "report.pdf");
        rig_until(g, &g->sent_count, 1);
        rig_settle(g);
        assert_string_equal(g->sent[0].channel, "c1");
        assert_string_equal(g->sent[0].thread, "t9");
        assert_string_equal(g->sent[0].text, "Here *it* is");
        /* the call is repeated after a crash */
        rig_call(b, "attach",
                 json_pack("{s:s, s:s}", "path", "report.pdf", "title", "Here *it* is"));
        expect_text(b, "Attached report.pdf (10 bytes) to the chat.");
        rig_settle(g);
        assert_int_equal(rig_count(g, "deliveries"), 1);
        assert_int_equal(g->sent_count, 1);
}

static void what_is_attached_may_be_deleted_then(void **state)
{
        struct tool_rig *b = *state;
        char *path = mem_printf("%s/a.txt", b->folder);
        struct stat st;
        char *copy;

        put(b, "a.txt", "words");
        rig_call(b, "attach", json_pack("{s:s, s:s}", "path", "a.txt", "name", "../b/c.txt"));
        expect_text(b, "Attached c.txt (5 bytes) to the chat.");
        assert_int_equal(unlink(path), 0);
        copy = mem_printf("%s/workspace/%s", b->dir,
                          rig_members(g, "payload FROM deliveries", "path"));
        assert_int_equal(stat(copy, &st), 0);
        assert_int_equal(st.st_size, 5);
        assert_int_equal(st.st_uid, workspace_uid());
        free(copy);
        free(path);
}

static void what_cannot_be_attached_is_explained(void **state)
{
        struct tool_rig *b = *state;
        char *large = mem_zalloc(1002), *link = mem_printf("%s/link", b->folder);
        struct tool_set *set;

        memset(large, 'x', 1001);
        put(b, "large", large);
        put(b, "empty", "");
        assert_int_equal(symlink("/etc/passwd", link), 0);
        rig_call(b, "attach", json_pack("{s:s}", "path", "large"));
        expect_error(b, "large was not attached: 'large' has 1001 bytes, more than the 1000");
        rig_call(b, "attach", json_pack("{s:s}", "path", "empty"));
        expect_error(b, "the file is empty");
        rig_call(b, "attach", json_pack("{s:s}", "path", "link"));
        expect_error(b, "links are not followed");
        rig_call(b, "attach", json_pack("{s:s}", "path", "/workspace/channels/test/c2/secret"));
        expect_error(b, "outside of what this tool reaches");
        rig_call(b, "attach", json_pack("{s:s}", "path", "missing"));
        expect_error(b, "there is no file 'missing'");
        b->run.adapter = "j";
        rig_call(b, "attach", json_pack("{s:s}", "path", "large"));
        expect_error(b, "this chat takes no files");
        set = tool_set_new(&b->scope, NULL);
        assert_null(tool_set_find(set, "attach"));
        tool_set_free(set);
        assert_int_equal(rig_count(g, "deliveries"), 0);
        free(large);
        free(link);
}

static void a_cancelled_attach_is_not_answered(void **state)
{
        struct tool_rig *b = *state;

        put(b, "a", "x");
        rig_start(b, tool_find("attach"), json_pack("{s:s}", "path", "a"));
        b->call.tool->cancel(&b->call);
        rig_settle(g);
        assert_int_equal(b->done, 0);
        assert_int_equal(rig_count(g, "deliveries"), 0);
}

/* ---- search_history ---- */

static void hear(const char *text, const char *name, const char *id)
{
        rig_receive(g, &(struct incoming){ .adapter = "tools",
                                           .channel = "c1",
                                           .text = text,
                                           .id = id,
                                           .sender_id = name,
                                           .sender_name = name });
        rig_until(g, &g->acks, g->received);
}

static void words_are_found_in_any_case_newest_first(void **state)
{
        struct tool_rig *b = *state;
        const char *text, *first, *second;

        hear("skip The BUDGET of Gr\xc3\xbc\xc3\x9f"
             "e is 10",
             "Ann", "1");
        hear("skip no money here", "Bob", "2");
        hear("skip new budget: gr\xc3\xbc\xc3\x9f"
             "e 20",
             "Bob", "3");
        rig_receive(g, &(struct incoming){ .adapter = "tools",
                                           .channel = "c2",
                                           .text = "skip budget of GR\xc3\x9c\xc3\x9f"
                                                   "E elsewhere",
                                           .sender_id = "9" });
        rig_until(g, &g->acks, g->received);
        text = rig_call(b, "search_history",
                        json_pack("{s:s}", "query",
                                  "budget GR\xc3\x9c\xc3\x9f"
                                  "E"));
        assert_false(b->result.is_error);
        assert_true(b->result.untrusted);
        first = strstr(text, "[Bob] (evt-");
        second = strstr(text, "[Ann] (evt-");
        assert_true(first && second && first < second);
        assert_non_null(strstr(first, "): skip new budget: gr\xc3\xbc\xc3\x9f"
                                      "e 20\n"));
        assert_null(strstr(text, "elsewhere"));
        assert_null(strstr(text, "no money"));
        text = rig_call(b, "search_history",
                        json_pack("{s:s, s:s}", "query", "budget", "from", "ann"));
        assert_non_null(strstr(text, "[Ann]"));
        assert_null(strstr(text, "[Bob]"));
        rig_call(b, "search_history", json_pack("{s:s}", "query", "nowhere"));
        expect_text(b, "Nothing was found.\n");
}

static void the_last_text_of_a_message_counts(void **state)
{
        struct tool_rig *b = *state;
        const char *text;

        hear("skip the old plan", "Ann", "m1");
        hear("skip a secret plan", "Ann", "m2");
        rig_receive(g, &(struct incoming){ .type = EVENT_MESSAGE_EDITED,
                                           .adapter = "tools",
                                           .channel = "c1",
                                           .id = "m1",
                                           .text = "skip the new plan",
                                           .sender_id = "Ann",
                                           .sender_name = "Ann" });
        rig_receive(g, &(struct incoming){ .type = EVENT_MESSAGE_DELETED,
                                           .adapter = "tools",
                                           .channel = "c1",
                                           .id = "m2" });
        rig_until(g, &g->acks, g->received);
        text = rig_call(b, "search_history", json_pack("{s:s}", "query", "plan"));
        assert_non_null(strstr(text, "the new plan"));
        assert_null(strstr(text, "the old plan"));
        assert_null(strstr(text, "secret"));
}

static void threads_of_others_are_not_searched(void **state)
{
        struct tool_rig *b = *state;
        const char *text;

        rig_receive(g, &(struct incoming){ .adapter = "tools",
                                           .channel = "c1",
                                           .thread = "private",
                                           .text = "skip word of others" });
        rig_receive(g, &(struct incoming){ .adapter = "tools",
                                           .channel = "c1",
                                           .thread = "mine",
                                           .text = "skip word of ours" });
        hear("skip word for all", "Ann", "1");
        text = rig_call(b, "search_history", json_pack("{s:s}", "query", "word"));
        assert_non_null(strstr(text, "for all"));
        assert_null(strstr(text, "of ours"));
        b->run.thread = "mine";
        text = rig_call(b, "search_history", json_pack("{s:s}", "query", "word"));
        assert_non_null(strstr(text, "for all"));
        assert_non_null(strstr(text, "of ours"));
        assert_null(strstr(text, "of others"));
}

static void a_long_search_is_continued(void **state)
{
        struct tool_rig *b = *state;
        char *before, *text;

        for (int i = 0; i < 5; i++)
                hear("skip again", "Ann", NULL);
        rig_call(b, "search_history", json_pack("{s:s, s:i}", "query", "again", "limit", 3));
        before = strstr(b->text, "Use before=\"evt-");
        assert_non_null(before);
        before = mem_strndup(before + 12, strcspn(before + 12, "\""));
        rig_call(b, "search_history",
                 json_pack("{s:s, s:s, s:i}", "query", "again", "before", before, "limit", 3));
        text = strstr(b->text, "[Ann]");
        assert_non_null(text);
        text = strstr(text + 1, "[Ann]");
        assert_non_null(text);
        assert_null(strstr(text + 1, "[Ann]"));
        assert_null(strstr(b->text, "before="));
        free(before);
        rig_call(b, "search_history", json_pack("{s:s}", "since", "2099-01-01"));
        expect_text(b, "Nothing was found.\n");
        rig_call(b, "search_history", json_pack("{s:s}", "until", "1999-01-01"));
        expect_text(b, "Nothing was found.\n");
        rig_call(b, "search_history", json_pack("{s:s}", "since", "yesterday"));
        expect_error(b, "'since' is 'yesterday', but must be a day such as");
}

static void what_a_search_finds_is_bounded(void **state)
{
        struct tool_rig *b = *state;
        char *text = mem_zalloc(3001);

        memset(text, 'x', 3000);
        memcpy(text, "skip", 4);
        for (int i = 0; i < 100; i++)
                rig_receive(
                        g, &(struct incoming){ .adapter = "tools", .channel = "c1", .text = text });
        rig_until(g, &g->acks, g->received);
        rig_call(b, "search_history", json_pack("{s:i}", "limit", 100));
        assert_false(b->result.is_error);
        assert_in_range(strlen(b->text), 40 << 10, TOOL_BYTES_MAX);
        assert_non_null(strstr(b->text, "[Searched back to "));
        free(text);
}

/* ---- the platform's ---- */

static void the_platforms_tools_are_offered_for_this_chat(void **state)
{
        struct tool_rig *b = *state;
        struct tool_set *set = tool_set_new(&b->scope, NULL);
        const struct tool *read = tool_set_find(set, "test_read");
        const struct tool *send = tool_set_find(set, "test_send");

        assert_null(tool_set_find(set, "test_dm"));
        assert_int_equal(tool_flags(read, &b->scope, NULL), TOOL_READ_ONLY | TOOL_UNTRUSTED);
        assert_int_equal(tool_flags(send, &b->scope, NULL), TOOL_RISKY);
        rig_start(b, send, json_pack("{s:s}", "channel_id", "c1"));
        rig_await(b);
        expect_text(b, "{\n \"ok\": true\n}");
        assert_string_equal(g->tool_name, "test_send");
        assert_string_equal(g->tool_arguments, "{\"channel_id\":\"c1\"}"); /* no label */
        assert_string_equal(g->tool_key, "agent:turn-7:call_1");
        rig_start(b, read, json_pack("{s:s}", "channel_id", "c2"));
        expect_error(b, "'test_read' reaches only this chat: channel_id must be \"c1\"");
        assert_int_equal(g->tool_calls, 1);
        error_set(&g->tool_error, ERR_NET, "the platform is away");
        rig_start(b, read, json_pack("{s:s}", "channel_id", "c1"));
        rig_await(b);
        expect_error(b, "the platform is away");
        rig_start(b, read, json_pack("{s:s}", "channel_id", "c1"));
        read->cancel(&b->call);
        rig_settle(g);
        assert_int_equal(b->done, 0);
        tool_set_free(set);
}

static void an_agent_may_be_let_reach_everything(void **state)
{
        struct tool_rig *b = *state;
        struct tool_set *set;

        b->scope.everywhere = true;
        set = tool_set_new(&b->scope, NULL);
        assert_non_null(tool_set_find(set, "test_dm"));
        rig_start(b, tool_set_find(set, "test_read"), json_pack("{s:s}", "channel_id", "c2"));
        rig_await(b);
        assert_false(b->result.is_error);
        tool_set_free(set);
        b->run.adapter = "j";
        set = tool_set_new(&b->scope, NULL);
        assert_null(tool_set_find(set, "test_read"));
        tool_set_free(set);
}

/* ---- the schedule's ---- */

static struct {
        unsigned calls;
        char tool[32], arguments[100], key[40], who[120];
        platform_tool_fn *done;
        void *arg;
} asked;

static const struct road_tool *fake_tool_at(struct schedule *s, size_t i)
{
        static const struct road_tool list[] = {
                { .name = "remind", .help = "Reminds.", .parameters = "{}" },
                { .name = "schedule_cancel",
                  .help = "Cancels.",
                  .parameters = "{}",
                  .writes = true },
                { .name = "far", .help = "Far.", .parameters = "{}", .everywhere = true },
        };

        (void)s;
        return i < COUNT(list) ? &list[i] : NULL;
}

static void fake_call_tool(struct schedule *s, const struct chat_caller *by, const char *tool,
                           const struct tool_request *q, platform_tool_fn *done, void *arg)
{
        char *text = json_dumps(q->arguments, JSON_COMPACT);

        (void)s;
        asked.calls++;
        snprintf(asked.tool, sizeof(asked.tool), "%s", tool);
        snprintf(asked.arguments, sizeof(asked.arguments), "%s", text);
        snprintf(asked.key, sizeof(asked.key), "%s", q->request_key);
        snprintf(asked.who, sizeof(asked.who), "%s/%s %s:%s (%s) by %s", by->adapter, by->channel,
                 by->platform, by->sender_id, by->sender_name, by->agent);
        asked.done = done;
        asked.arg = arg;
        free(text);
}

static void the_schedules_tools_know_who_asks(void **state)
{
        const struct incoming said = { .platform = "telegram",
                                       .sender_id = "42",
                                       .sender_name = "Ann" };
        const struct incoming *inputs[] = { &said };
        struct tool_rig *b = *state;
        struct tool_set *set;
        const struct tool *remind;
        json_t *wake = json_pack("{s:b}", "wake", true);

        memset(&asked, 0, sizeof(asked));
        road_set_schedule(g->road, &(struct road_schedule){ .schedule = (struct schedule *)&asked,
                                                            .tool_at = fake_tool_at,
                                                            .call_tool = fake_call_tool });
        b->run.agent = "helper";
        b->run.inputs = inputs;
        b->run.input_count = 1;
        set = tool_set_new(&b->scope, NULL);
        remind = tool_set_find(set, "remind");
        assert_non_null(remind);
        assert_null(tool_set_find(set, "far"));
        assert_int_equal(tool_flags(remind, &b->scope, NULL), TOOL_READ_ONLY);
        assert_int_equal(tool_flags(remind, &b->scope, wake), TOOL_RISKY);
        assert_int_equal(tool_flags(tool_set_find(set, "schedule_cancel"), &b->scope, NULL),
                         TOOL_RISKY);
        rig_start(b, remind, json_pack("{s:s}", "when", "30m"));
        assert_int_equal(asked.calls, 1);
        assert_string_equal(asked.tool, "remind");
        assert_string_equal(asked.arguments, "{\"when\":\"30m\"}"); /* no label */
        assert_string_equal(asked.key, "agent:turn-7:call_1");
        assert_string_equal(asked.who, "tools/c1 telegram:42 (Ann) by helper");
        asked.done(asked.arg, "{\"id\":\"sch-1\"}", NULL);
        expect_text(b, "{\n \"id\": \"sch-1\"\n}");
        /* its answer comes after the turn was stopped */
        rig_start(b, remind, json_pack("{s:s}", "when", "30m"));
        remind->cancel(&b->call);
        asked.done(asked.arg, "{}", NULL);
        assert_int_equal(b->done, 0);
        road_set_schedule(g->road, NULL);
        rig_start(b, remind, json_pack("{s:s}", "when", "30m"));
        expect_error(b, "not available");
        tool_set_free(set);
        json_decref(wake);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_road, teardown_road)
        const struct CMUnitTest tests[] = {
                TEST(a_file_goes_through_the_outbox_once),
                TEST(what_is_attached_may_be_deleted_then),
                TEST(what_cannot_be_attached_is_explained),
                TEST(a_cancelled_attach_is_not_answered),
                TEST(words_are_found_in_any_case_newest_first),
                TEST(the_last_text_of_a_message_counts),
                TEST(threads_of_others_are_not_searched),
                TEST(a_long_search_is_continued),
                TEST(what_a_search_finds_is_bounded),
                TEST(the_platforms_tools_are_offered_for_this_chat),
                TEST(an_agent_may_be_let_reach_everything),
                TEST(the_schedules_tools_know_who_asks),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
