/*
 * What people do in the simulated Slack, and the events of it that apps get.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/sim_sl.h"
#include "base/json.h"
#include "base/mem.h"

struct stage {
        struct sim_rig *rig;
        struct sim_sl_link link;
        json_t *envelope; /* of the last event */
        char *made;       /* by the last request: message_id */
};

static int setup(void **state)
{
        struct stage *s = mem_zalloc(sizeof(*s));
        void *rig;

        assert_int_equal(sim_sl_setup(&rig), 0);
        s->rig = rig;
        sim_sl_hello(s->rig, &s->link);
        *state = s;
        return 0;
}

static int teardown(void **state)
{
        struct stage *s = *state;
        void *rig = s->rig;

        sim_sl_disconnect(&s->link);
        json_decref(s->envelope);
        free(s->made);
        free(s);
        return sim_sl_teardown(&rig);
}

/* Acts; %s in the request is what the last one made. */
static void act(struct stage *s, const char *what, const char *request)
{
        const char *mark = strstr(request, "%s");
        char *text =
                mark ? mem_printf("%.*s%s%s", (int)(mark - request), request, s->made, mark + 2)
                     : mem_strdup(request);
        json_t *answer = sim_rig_control(s->rig, what, text);

        if (json_str(answer, "message_id", NULL)) {
                free(s->made);
                s->made = mem_strdup(json_str(answer, "message_id", NULL));
        }
        json_decref(answer);
        free(text);
}

/* The next event of this type. */
static const json_t *hear(struct stage *s, const char *type)
{
        json_decref(s->envelope);
        s->envelope = sim_sl_event(&s->link, type, true);
        return json_object_get(json_object_get(s->envelope, "payload"), "event");
}

static void assert_members(const json_t *event, const char *const *pairs)
{
        for (; pairs[0]; pairs += 2)
                assert_string_equal(json_str(event, pairs[0], "(none)"), pairs[1]);
}

#define ASSERT_MEMBERS(event, ...) assert_members(event, (const char *const[]){ __VA_ARGS__, NULL })

/* ---- messages ---- */

static void each_kind_of_conversation_has_its_type(void **state)
{
        static const struct {
                const char *request, *type;
        } rows[] = {
                { "{\"channel\":\"general\",\"text\":\"x\"}", "channel" },
                { "{\"channel\":\"secret\",\"text\":\"x\"}", "group" },
                { "{\"text\":\"x\"}", "im" },
                { "{\"users\":[\"bob\",\"carol\"],\"text\":\"x\"}", "mpim" },
        };
        struct stage *s = *state;

        act(s, "channels", "{\"name\":\"secret\",\"type\":\"private\"}");
        for (size_t i = 0; i < COUNT(rows); i++) {
                act(s, "send", rows[i].request);
                ASSERT_MEMBERS(hear(s, "message"), "text", "x", "channel_type", rows[i].type,
                               "user", SL_ADA, "ts", s->made);
        }
}

static void people_are_named_by_number_id_or_name(void **state)
{
        struct stage *s = *state;

        act(s, "send", "{\"from\":1000,\"text\":\"x\"}");
        ASSERT_MEMBERS(hear(s, "message"), "user", "U1000");
        act(s, "send", "{\"from\":\"U0NEW\",\"text\":\"x\"}");
        ASSERT_MEMBERS(hear(s, "message"), "user", "U0NEW");
        act(s, "send", "{\"from\":\"user1000\",\"text\":\"x\"}");
        ASSERT_MEMBERS(hear(s, "message"), "user", "U1000");
}

static void names_in_the_text_become_ids(void **state)
{
        struct stage *s = *state;
        const json_t *event;

        act(s, "send", "{\"channel\":\"general\",\"text\":\"<@ada> in <#general>, <!here>\"}");
        event = hear(s, "message");
        ASSERT_MEMBERS(event, "text", "<@" SL_ADA "> in <#" SL_GENERAL "|general>, <!here>");
        assert_int_equal(json_array_size(json_object_get(event, "blocks")), 1);
}

static void a_mention_is_told_twice_under_two_event_ids(void **state)
{
        struct stage *s = *state;
        char *ts, *id;

        act(s, "send", "{\"channel\":\"general\",\"text\":\"<@dragoman> hello\"}");
        ts = mem_strdup(json_str(hear(s, "app_mention"), "ts", ""));
        id = mem_strdup(json_str(json_object_get(s->envelope, "payload"), "event_id", ""));
        ASSERT_MEMBERS(hear(s, "message"), "ts", ts);
        assert_string_not_equal(json_str(json_object_get(s->envelope, "payload"), "event_id", ""),
                                id);
        free(ts);
        free(id);
}

static void a_mention_reaches_an_app_outside_of_the_channel(void **state)
{
        struct stage *s = *state;

        act(s, "channels", "{\"name\":\"elsewhere\",\"without_app\":true}");
        act(s, "send", "{\"channel\":\"elsewhere\",\"text\":\"<@dragoman> hello\"}");
        hear(s, "app_mention");
        act(s, "send", "{\"channel\":\"elsewhere\",\"text\":\"hello\"}");
        act(s, "send", "{\"text\":\"next\"}");
        ASSERT_MEMBERS(hear(s, "message"), "text", "next");
}

static void threads_and_broadcasts(void **state)
{
        struct stage *s = *state;
        char *root;

        act(s, "send", "{\"channel\":\"general\",\"text\":\"root\"}");
        root = mem_strdup(s->made);
        hear(s, "message");
        act(s, "send", "{\"channel\":\"general\",\"text\":\"reply\",\"thread\":\"%s\"}");
        ASSERT_MEMBERS(hear(s, "message"), "text", "reply", "thread_ts", root);
        free(s->made);
        s->made = root;
        act(s, "send",
            "{\"channel\":\"general\",\"text\":\"all\",\"thread\":\"%s\",\"broadcast\":true}");
        ASSERT_MEMBERS(hear(s, "message"), "subtype", "thread_broadcast");
}

static void one_gesture_under_two_timestamps(void **state)
{
        struct stage *s = *state;
        const json_t *event;
        char *id, *ts;

        act(s, "send", "{\"text\":\"stutter\",\"twice\":true}");
        event = hear(s, "message");
        id = mem_strdup(json_str(event, "client_msg_id", ""));
        ts = mem_strdup(json_str(event, "ts", ""));
        event = hear(s, "message");
        ASSERT_MEMBERS(event, "text", "stutter", "client_msg_id", id);
        assert_string_not_equal(json_str(event, "ts", ""), ts);
        free(id);
        free(ts);
}

static void edits_previews_and_deletions(void **state)
{
        struct stage *s = *state;
        const json_t *event;

        act(s, "send", "{\"channel\":\"general\",\"text\":\"tpyo\"}");
        hear(s, "message");
        act(s, "edit", "{\"message_id\":\"%s\",\"text\":\"typo\"}");
        event = hear(s, "message");
        ASSERT_MEMBERS(event, "subtype", "message_changed");
        ASSERT_MEMBERS(json_object_get(event, "message"), "text", "typo");
        ASSERT_MEMBERS(json_object_get(event, "previous_message"), "text", "tpyo");
        assert_non_null(json_object_get(json_object_get(event, "message"), "edited"));
        act(s, "edit", "{\"message_id\":\"%s\",\"unfurl\":\"https://example.org/\"}");
        event = json_object_get(hear(s, "message"), "message");
        assert_int_equal(json_array_size(json_object_get(event, "attachments")), 1);
        act(s, "delete", "{\"message_id\":\"%s\"}");
        ASSERT_MEMBERS(hear(s, "message"), "subtype", "message_deleted", "deleted_ts", s->made);
}

static void a_deleted_root_with_replies_changes_to_a_tombstone(void **state)
{
        struct stage *s = *state;
        const json_t *event;
        char *reply, *root;

        act(s, "send", "{\"channel\":\"general\",\"text\":\"why?\"}");
        hear(s, "message");
        root = mem_strdup(s->made);
        reply = mem_printf("{\"channel\":\"general\",\"text\":\"so\",\"thread\":\"%s\"}", root);
        sim_rig_control_ok(s->rig, "send", reply);
        hear(s, "message");
        act(s, "delete", "{\"message_id\":\"%s\"}");
        event = hear(s, "message");
        ASSERT_MEMBERS(event, "subtype", "message_changed");
        ASSERT_MEMBERS(json_object_get(event, "message"), "subtype", "tombstone", "user",
                       "USLACKBOT", "ts", root, "client_msg_id", "(none)");
        ASSERT_MEMBERS(json_object_get(event, "previous_message"), "text", "why?");
        free(reply);
        free(root);
}

static void reactions(void **state)
{
        struct stage *s = *state;
        const json_t *event;

        act(s, "send", "{\"channel\":\"general\",\"text\":\"nice\"}");
        act(s, "react", "{\"from\":\"bob\",\"message_id\":\"%s\",\"emoji\":\":tada:\"}");
        event = hear(s, "reaction_added");
        ASSERT_MEMBERS(event, "reaction", "tada", "item_user", SL_ADA);
        ASSERT_MEMBERS(json_object_get(event, "item"), "ts", s->made, "channel", SL_GENERAL);
        act(s, "unreact", "{\"from\":\"bob\",\"message_id\":\"%s\",\"emoji\":\"tada\"}");
        hear(s, "reaction_removed");
}

static void another_bot_speaks(void **state)
{
        struct stage *s = *state;
        const json_t *event;

        act(s, "apps", "{\"token\":\"xoxb-other\"}");
        act(s, "send", "{\"channel\":\"general\",\"bot\":\"xoxb-other\",\"text\":\"beep\"}");
        event = hear(s, "message");
        ASSERT_MEMBERS(event, "text", "beep");
        assert_non_null(json_str(event, "bot_id", NULL));
        act(s, "send",
            "{\"channel\":\"general\",\"bot\":\"xoxb-other\",\"text\":\"boop\",\"classic\":true}");
        ASSERT_MEMBERS(hear(s, "message"), "subtype", "bot_message");
}

static void a_stranger_of_slack_connect(void **state)
{
        struct stage *s = *state;

        act(s, "teams", "{\"id\":\"T0OTHER\",\"name\":\"Other\"}");
        act(s, "channels", "{\"name\":\"shared\",\"shared\":true}");
        act(s, "users", "{\"name\":\"eve\",\"team\":\"T0OTHER\"}");
        act(s, "send", "{\"from\":\"eve\",\"channel\":\"shared\",\"text\":\"hello\"}");
        ASSERT_MEMBERS(hear(s, "message"), "team", "T0OTHER", "user_team", "T0OTHER", "source_team",
                       "T0OTHER");
        assert_true(
                json_flag(json_object_get(s->envelope, "payload"), "is_ext_shared_channel", false));
}

static void files_are_shared_with_a_message(void **state)
{
        struct stage *s = *state;
        const json_t *event, *file;

        act(s, "send",
            "{\"text\":\"look\",\"files\":[{\"content\":\"abc\",\"file_name\":\"a.txt\"}]}");
        event = hear(s, "message");
        file = json_array_get(json_object_get(event, "files"), 0);
        ASSERT_MEMBERS(event, "subtype", "file_share");
        ASSERT_MEMBERS(file, "name", "a.txt");
        assert_int_equal(json_int(file, "size", 0), 3);
        assert_non_null(json_str(file, "url_private_download", NULL));
}

/* ---- channels and the app's own places ---- */

static void joining_leaving_and_renaming(void **state)
{
        struct stage *s = *state;

        act(s, "members", "{\"from\":\"bob\",\"channel\":\"general\"}");
        ASSERT_MEMBERS(hear(s, "member_joined_channel"), "channel", SL_GENERAL);
        ASSERT_MEMBERS(hear(s, "message"), "subtype", "channel_join");
        act(s, "members", "{\"from\":\"bob\",\"channel\":\"general\",\"leave\":true}");
        hear(s, "member_left_channel");
        act(s, "rename", "{\"channel\":\"general\",\"name\":\"lobby\"}");
        ASSERT_MEMBERS(json_object_get(hear(s, "channel_rename"), "channel"), "name", "lobby");
}

static void only_subscribed_events_come(void **state)
{
        struct stage *s = *state;

        act(s, "apps", "{\"events\":[\"message.im\"]}");
        act(s, "send", "{\"channel\":\"general\",\"text\":\"<@dragoman> public\"}");
        act(s, "send", "{\"text\":\"direct\"}");
        ASSERT_MEMBERS(hear(s, "message"), "text", "direct");
}

static void events_need_their_scope(void **state)
{
        struct stage *s = *state;

        act(s, "apps", "{\"without_scopes\":[\"channels:history\",\"app_mentions:read\"]}");
        act(s, "send", "{\"channel\":\"general\",\"text\":\"<@dragoman> public\"}");
        act(s, "send", "{\"text\":\"direct\"}");
        ASSERT_MEMBERS(hear(s, "message"), "text", "direct");
}

static void the_assistant_opens_a_thread(void **state)
{
        struct stage *s = *state;
        const json_t *thread;

        act(s, "assistant", "{\"context\":\"general\"}");
        thread = json_object_get(hear(s, "assistant_thread_started"), "assistant_thread");
        ASSERT_MEMBERS(thread, "user_id", SL_ADA, "thread_ts", s->made);
        ASSERT_MEMBERS(json_object_get(thread, "context"), "channel_id", SL_GENERAL);
        act(s, "assistant", "{\"thread\":\"%s\"}");
        hear(s, "assistant_thread_context_changed");
        act(s, "home", "{\"tab\":\"messages\"}");
        ASSERT_MEMBERS(hear(s, "app_home_opened"), "tab", "messages");
        act(s, "context", "{\"context\":\"general\"}");
        thread = json_object_get(hear(s, "app_context_changed"), "context");
        ASSERT_MEMBERS(json_array_get(json_object_get(thread, "entities"), 0), "value", SL_GENERAL);
}

/* ---- buttons and modals ---- */

static void a_button_gives_a_trigger_and_a_response_url(void **state)
{
        struct stage *s = *state;
        struct slack_world *w = sim_sl_world(s->rig);
        struct slack_message *m =
                sl_message_new(sl_channel_find(w, SL_GENERAL), w->apps->user, "choose");
        const json_t *payload, *action;

        m->app = w->apps;
        m->blocks = json_pack("[{s:s,s:s,s:[{s:s,s:s,s:s}]}]", "type", "actions", "block_id", "b",
                              "elements", "type", "button", "action_id", "yes", "value", "1");
        sl_message_post(w, m);
        s->made = mem_strdup(m->ts);
        act(s, "press", "{\"from\":\"bob\",\"message_id\":\"%s\",\"value\":\"1\"}");
        json_decref(s->envelope);
        s->envelope = sim_sl_event(&s->link, "block_actions", true);
        assert_string_equal(json_str(s->envelope, "type", ""), "interactive");
        payload = json_object_get(s->envelope, "payload");
        action = json_array_get(json_object_get(payload, "actions"), 0);
        ASSERT_MEMBERS(action, "action_id", "yes", "block_id", "b", "value", "1");
        ASSERT_MEMBERS(json_object_get(payload, "container"), "message_ts", m->ts);
        assert_non_null(json_str(payload, "trigger_id", NULL));
        assert_non_null(strstr(json_str(payload, "response_url", ""), "/actions/"));
}

static void a_modal_is_submitted_and_may_be_refused(void **state)
{
        struct stage *s = *state;
        struct slack_world *w = sim_sl_world(s->rig);
        json_t *view = json_pack("{s:s,s:[{s:s,s:s,s:{s:s,s:s}}]}", "type", "modal", "blocks",
                                 "type", "input", "block_id", "who", "element", "type",
                                 "plain_text_input", "action_id", "name");
        const json_t *values;
        json_t *page;

        sl_view_open(w, w->apps, sl_user_find(w, SL_ADA), view, NULL);
        json_decref(view);
        act(s, "modal", "{\"values\":{\"name\":\"Ada\"}}");
        s->envelope = sim_sl_event(&s->link, "view_submission", false);
        values = json_object_get(
                json_object_get(json_object_get(json_object_get(s->envelope, "payload"), "view"),
                                "state"),
                "values");
        ASSERT_MEMBERS(json_object_get(json_object_get(values, "who"), "name"), "value", "Ada");
        sim_sl_ack(&s->link, s->envelope,
                   "{\"response_action\":\"errors\",\"errors\":{\"who\":\"no\"}}");
        page = sim_rig_control(s->rig, "messages?kind=view_response&wait=60000", NULL);
        ASSERT_MEMBERS(json_array_get(json_object_get(page, "items"), 0), "action", "errors");
        json_decref(page);
        assert_non_null(sl_view_top(w, sl_user_find(w, SL_ADA)));
        act(s, "modal", "{\"close\":true}");
        assert_null(sl_view_top(w, sl_user_find(w, SL_ADA)));
}

static void mistakes_are_named(void **state)
{
        static const struct {
                const char *path, *request, *error;
        } rows[] = {
                { "/sim/send", "{\"channel\":\"nowhere\"}", "no channel 'nowhere'" },
                { "/sim/send", "{\"thread\":\"soon\"}", "'thread' must be the ts of a message" },
                { "/sim/edit", "{\"message_id\":\"1.0\"}", "no message '1.0'" },
                { "/sim/modal", "{}", "'ada' sees no modal" },
                { "/sim/gateway", "{\"action\":\"forge\"}", "the app has no request URL" },
        };
        struct stage *s = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct sim_answer a = sim_rig_ask(s->rig, rows[i].path, rows[i].request);

                assert_true(a.status >= 400);
                assert_string_equal(json_str(a.body, "error", ""), rows[i].error);
                json_decref(a.body);
        }
}

int main(void)
{
#define PEOPLE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                PEOPLE_TEST(each_kind_of_conversation_has_its_type),
                PEOPLE_TEST(people_are_named_by_number_id_or_name),
                PEOPLE_TEST(names_in_the_text_become_ids),
                PEOPLE_TEST(a_mention_is_told_twice_under_two_event_ids),
                PEOPLE_TEST(a_mention_reaches_an_app_outside_of_the_channel),
                PEOPLE_TEST(threads_and_broadcasts),
                PEOPLE_TEST(one_gesture_under_two_timestamps),
                PEOPLE_TEST(edits_previews_and_deletions),
                PEOPLE_TEST(a_deleted_root_with_replies_changes_to_a_tombstone),
                PEOPLE_TEST(reactions),
                PEOPLE_TEST(another_bot_speaks),
                PEOPLE_TEST(a_stranger_of_slack_connect),
                PEOPLE_TEST(files_are_shared_with_a_message),
                PEOPLE_TEST(joining_leaving_and_renaming),
                PEOPLE_TEST(only_subscribed_events_come),
                PEOPLE_TEST(events_need_their_scope),
                PEOPLE_TEST(the_assistant_opens_a_thread),
                PEOPLE_TEST(a_button_gives_a_trigger_and_a_response_url),
                PEOPLE_TEST(a_modal_is_submitted_and_may_be_refused),
                PEOPLE_TEST(mistakes_are_named),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
