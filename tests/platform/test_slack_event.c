/* What Slack sends in the shape all platforms share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "slack_intake_rig.h"

static int set_up(void **state)
{
        struct slack_intake_rig *g = mem_zalloc(sizeof(*g));

        rig_open(g);
        *state = g;
        return 0;
}

static int tear_down(void **state)
{
        rig_close(*state);
        free(*state);
        return 0;
}

static struct incoming *read_kind(struct slack_intake_rig *g, enum sl_arrival kind,
                                  const char *payload)
{
        rig_forget(g);
        g->payload = parse(payload);
        sl_event_read(&g->item, &g->context, kind, g->payload, 0);
        if (g->item.event_count == 0) {
                assert_non_null(g->item.ignored);
                return NULL;
        }
        assert_int_equal(g->item.event_count, 1);
        assert_non_null(g->item.events->key);
        return g->item.events;
}

/* An event_callback of this inner event. */
static struct incoming *read_event(struct slack_intake_rig *g, const char *event)
{
        char *payload = mem_printf("{'type':'event_callback','team_id':'T1','event_id':'Ev1',"
                                   "'event':%s}",
                                   event);
        struct incoming *in = read_kind(g, SL_EVENT, payload);

        free(payload);
        return in;
}

static void expect_ignored(struct slack_intake_rig *g, const char *event, const char *why)
{
        assert_null(read_event(g, event));
        assert_string_equal(g->item.ignored, why);
}

static const char *type_of(const struct incoming *in)
{
        return in->type ? in->type : EVENT_MESSAGE_RECEIVED;
}

/* ---- messages ---- */

static void a_message_of_a_channel_has_its_place_and_sender(void **state)
{
        struct slack_intake_rig *g = *state;
        const struct incoming *in =
                read_event(g, "{'type':'message','channel':'C1','channel_type':'channel',"
                              "'user':'U1','text':'hi','ts':'1700000000.000100',"
                              "'client_msg_id':'abc-1'}");

        assert_string_equal(in->key, "C1:1700000000.000100");
        assert_string_equal(in->id, "1700000000.000100");
        assert_string_equal(in->channel, "C1");
        assert_string_equal(in->chat_name, "general");
        assert_string_equal(in->guild, TEAM);
        assert_int_equal(in->chat, CHAT_GROUP);
        assert_string_equal(in->sender_id, "U1");
        assert_string_equal(in->sender_username, "anna.k");
        assert_string_equal(in->sender_name, "Anna");
        assert_string_equal(in->text, "hi");
        assert_null(in->raw_text);
        assert_null(in->thread);
        assert_int_equal(in->time_ms, 1700000000000);
        assert_false(in->is_mention || in->is_reply || in->sender_is_bot || in->is_own);
        assert_int_equal(in->part_count, 1);
        assert_string_equal(in->parts[0].key, "client:abc-1");
        assert_string_equal(json_str(g->item.metadata, "eventId", ""), "Ev1");
}

static void a_mention_reads_the_same_from_both_events(void **state)
{
        static const char rest[] = "'channel':'C1','user':'U1','text':'<@U0BOT> hi',"
                                   "'ts':'1700000000.000100','client_msg_id':'abc-1'}";
        static const char *const types[] = { "{'type':'app_mention',", "{'type':'message'," };

        for (size_t i = 0; i < COUNT(types); i++) {
                char *event = mem_printf("%s%s", types[i], rest);
                const struct incoming *in = read_event(*state, event);

                assert_string_equal(in->key, "C1:1700000000.000100");
                assert_string_equal(in->parts[0].key, "client:abc-1");
                assert_true(in->is_mention);
                assert_string_equal(in->text, "hi");
                assert_string_equal(in->raw_text, "<@U0BOT> hi");
                assert_string_equal(type_of(in), EVENT_MESSAGE_RECEIVED);
                free(event);
        }
}

static void direct_private_and_group_chats_differ(void **state)
{
        struct slack_intake_rig *g = *state;
        const struct incoming *in = read_event(
                g, "{'type':'message','channel':'D1','user':'U1','text':'hi','ts':'1.000100'}");

        assert_int_equal(in->chat, CHAT_DM);
        assert_string_equal(json_str(g->item.metadata, "channelType", ""), "im");
        in = read_event(
                g, "{'type':'message','channel':'G1','user':'U1','text':'hi','ts':'1.000100'}");
        assert_int_equal(in->chat, CHAT_GROUP);
        assert_string_equal(in->chat_name, "secret");
        assert_string_equal(json_str(g->item.metadata, "channelType", ""), "group");
        know_channel(g, "{'id':'C7','name':'mpdm-a--b-1','is_mpim':true}");
        in = read_event(
                g, "{'type':'message','channel':'C7','user':'U1','text':'hi','ts':'1.000100'}");
        assert_int_equal(in->chat, CHAT_GROUP);
        assert_string_equal(json_str(g->item.metadata, "channelType", ""), "mpim");
}

static void a_reply_belongs_to_its_thread_and_a_root_does_not(void **state)
{
        struct slack_intake_rig *g = *state;
        const struct incoming *in =
                read_event(g, "{'type':'message','channel':'C1','user':'U1','text':'yes',"
                              "'ts':'2.000100','thread_ts':'1.000100','parent_user_id':'U0BOT'}");

        assert_string_equal(in->thread, "1.000100");
        assert_string_equal(in->reply_to, "1.000100");
        assert_true(in->is_reply);
        in = read_event(g, "{'type':'message','channel':'C1','user':'U1','text':'yes',"
                           "'ts':'2.000100','thread_ts':'1.000100','parent_user_id':'U1'}");
        assert_string_equal(in->thread, "1.000100");
        assert_false(in->is_reply);
        in = read_event(g, "{'type':'message','channel':'C1','user':'U1','text':'root',"
                           "'ts':'1.000100','thread_ts':'1.000100'}");
        assert_null(in->thread);
        in = read_event(g, "{'type':'message','subtype':'thread_broadcast','channel':'C1',"
                           "'user':'U1','text':'all','ts':'3.000100','thread_ts':'1.000100'}");
        assert_string_equal(in->thread, "1.000100");
        assert_string_equal(type_of(in), EVENT_MESSAGE_RECEIVED);
}

static void a_mention_begins_a_thread_if_so_configured(void **state)
{
        struct slack_intake_rig *g = *state;
        const struct incoming *in;

        g->context.reply_in_thread = true;
        in = read_event(g, "{'type':'message','channel':'C1','user':'U1','text':'<@U0BOT> hi',"
                           "'ts':'2.000100'}");
        assert_string_equal(in->thread, "2.000100");
        assert_null(in->reply_to);
        in = read_event(g, "{'type':'message','channel':'C1','user':'U1','text':'hi',"
                           "'ts':'2.000100'}");
        assert_null(in->thread);
        in = read_event(g, "{'type':'message','channel':'D1','user':'U1','text':'<@U0BOT> hi',"
                           "'ts':'2.000100'}");
        assert_null(in->thread);
}

static void bots_are_bots_and_we_are_ourselves(void **state)
{
        struct slack_intake_rig *g = *state;
        const struct incoming *in =
                read_event(g, "{'type':'message','subtype':'bot_message','channel':'C1',"
                              "'bot_id':'B9','username':'build','text':'failed','ts':'1.000100'}");

        assert_true(in->sender_is_bot);
        assert_false(in->is_own);
        assert_string_equal(in->sender_id, "B9");
        assert_string_equal(in->sender_name, "build");
        in = read_event(g, "{'type':'message','channel':'C1','user':'U8','bot_id':'B8','text':'x',"
                           "'bot_profile':{'name':'Helper'},'ts':'1.000100'}");
        assert_true(in->sender_is_bot);
        assert_string_equal(in->sender_id, "U8");
        assert_string_equal(in->sender_name, "Helper");
        in = read_event(g, "{'type':'message','channel':'C1','user':'U0BOT','bot_id':'B0BOT',"
                           "'text':'me','ts':'1.000100'}");
        assert_true(in->is_own);
        in = read_event(g, "{'type':'message','channel':'C1','subtype':'bot_message',"
                           "'bot_id':'B0BOT','text':'me','ts':'1.000100'}");
        assert_true(in->is_own);
}

static void people_of_other_workspaces_and_guests_have_roles(void **state)
{
        struct slack_intake_rig *g = *state;

        read_event(g, "{'type':'message','channel':'C1','user':'U2','text':'x','ts':'1.000100'}");
        assert_string_equal(
                json_string_value(json_array_get(json_object_get(g->item.metadata, "roles"), 0)),
                "external");
        assert_string_equal(json_str(g->item.metadata, "senderTeam", ""), "T2");
        know_user(g, "{'id':'U3','name':'guest','team_id':'T1','is_ultra_restricted':true}");
        read_event(g, "{'type':'message','channel':'C1','user':'U3','text':'x','ts':'1.000100'}");
        assert_string_equal(
                json_string_value(json_array_get(json_object_get(g->item.metadata, "roles"), 0)),
                "guest");
        read_event(g, "{'type':'message','channel':'C1','user':'U1','text':'x','ts':'1.000100'}");
        assert_int_equal(json_array_size(json_object_get(g->item.metadata, "roles")), 0);
        /* Slack does not tell who it is */
        read_event(g, "{'type':'message','channel':'C1','user':'U9','text':'x','ts':'1.000100'}");
        assert_true(json_flag(g->item.metadata, "rolesUnknown", false));
}

static void files_come_as_attachments(void **state)
{
        struct slack_intake_rig *g = *state;
        const struct incoming *in = read_event(
                g, "{'type':'message','subtype':'file_share','channel':'C1','user':'U1','text':'',"
                   "'ts':'1.000100','files':[{'id':'F1','name':'a.png','mimetype':'image/png',"
                   "'url_private':'https://files.slack.com/a','url_private_download':"
                   "'https://files.slack.com/d/a','size':10},{'id':'F2','mode':'tombstone'},"
                   "{'id':'F3','file_access':'check_file_info','mode':'hosted'},{'id':'F4',"
                   "'mode':'external','title':'Doc','url_private':'https://docs.example/x'},"
                   "{'id':'F5','subtype':'slack_audio','mimetype':'audio/mp4',"
                   "'url_private':'https://files.slack.com/v'},{'id':'../x','name':'bad'}]}");
        const struct attachment *a = in->attachments;

        assert_int_equal(in->attachment_count, 4);
        assert_string_equal(a[0].kind, "image");
        assert_string_equal(a[0].name, "a.png");
        assert_string_equal(a[0].source, "https://files.slack.com/d/a");
        assert_int_equal(a[0].size, 10);
        assert_string_equal(a[1].source, "file:F3");
        assert_null(a[2].source);
        assert_string_equal(a[2].url, "https://docs.example/x");
        assert_string_equal(a[3].kind, "voice");
        assert_int_equal(json_array_size(json_object_get(g->item.metadata, "files")), 4);
}

static void joins_and_topics_are_events_for_rules(void **state)
{
        const struct incoming *in =
                read_event(*state, "{'type':'message','subtype':'channel_join','channel':'C1',"
                                   "'user':'U1','text':'<@U1> has joined the channel',"
                                   "'ts':'1.000100'}");

        assert_string_equal(in->type, "custom.slack.channel_join");
        assert_string_equal(in->text, "@anna.k has joined the channel");
        assert_string_equal(in->key, "C1:1.000100");
        in = read_event(*state, "{'type':'message','subtype':'channel_topic','channel':'C1',"
                                "'user':'U1','text':'<@U0BOT> set','ts':'1.000100'}");
        assert_string_equal(in->type, "custom.slack.channel_topic");
        assert_false(in->is_mention);
        expect_ignored(*state,
                       "{'type':'message','subtype':'message_replied','channel':'C1',"
                       "'hidden':true,'ts':'1.000100'}",
                       "the reply comes as a message of its own");
        expect_ignored(*state,
                       "{'type':'message','subtype':'Bad Type','channel':'C1','ts':'1.000100'}",
                       "a notice of Slack that is not shown");
}

static void what_says_nothing_is_ignored(void **state)
{
        expect_ignored(*state,
                       "{'type':'message','channel':'C1','user':'U1','text':'','ts':'1.000100'}",
                       "empty");
        expect_ignored(*state, "{'type':'message','channel':'C1','user':'U1','text':'x'}",
                       "names no message");
        expect_ignored(*state, "{'type':'message','user':'U1','text':'x','ts':'1.000100'}",
                       "names no channel");
        expect_ignored(*state, "{'type':'app_home_opened','channel':'D1'}",
                       "not an event that is stored");
        /* nobody but us was mentioned, and nothing was said: still a mention */
        assert_true(read_event(*state, "{'type':'message','channel':'C1','user':'U1','text':"
                                       "'<@U0BOT>','ts':'1.000100'}")
                            ->is_mention);
}

/* ---- edits and deletions ---- */

#define CHANGED "{'type':'message','subtype':'message_changed','channel':'C1','ts':'9.000100',"

static void an_edit_has_a_key_of_its_own(void **state)
{
        const struct incoming *in =
                read_event(*state, CHANGED "'message':{'user':'U1','text':'new <@U0BOT>',"
                                           "'ts':'1.000100','edited':{'user':'U1','ts':'5.000000'}"
                                           "},'previous_message':{'text':'old','ts':'1.000100'}}");

        assert_string_equal(in->type, EVENT_MESSAGE_EDITED);
        assert_string_equal(in->id, "1.000100");
        assert_string_equal(in->key, "edit:C1:1.000100:5.000000");
        assert_string_equal(in->text, "new");
        assert_string_equal(in->sender_id, "U1");
        assert_true(in->is_mention);
        assert_int_equal(in->time_ms, 5000);
}

static void previews_and_streams_are_no_edits(void **state)
{
        static const char why[] = "not an edit by a person";

        expect_ignored(*state,
                       CHANGED "'message':{'user':'U1','text':'a','ts':'1.000100'},"
                               "'previous_message':{'text':'b','ts':'1.000100'}}",
                       why);
        expect_ignored(*state,
                       CHANGED "'message':{'user':'U1','text':'a','ts':'1.000100',"
                               "'edited':{'ts':'5.000000'}},'previous_message':{'text':'a'}}",
                       why);
        expect_ignored(*state,
                       CHANGED "'message':{'user':'U1','text':'a','ts':'1.000100',"
                               "'edited':{'ts':'5.000000'}},'previous_message':{'text':'b',"
                               "'edited':{'ts':'5.000000'}}}",
                       why);
}

static void a_deletion_names_its_message(void **state)
{
        const struct incoming *in =
                read_event(*state, "{'type':'message','subtype':'message_deleted','channel':'C1',"
                                   "'ts':'9.000100','deleted_ts':'1.000100','event_ts':"
                                   "'9.000100','previous_message':{'user':'U1','text':'x',"
                                   "'ts':'1.000100','thread_ts':'0.500000'}}");

        assert_string_equal(in->type, EVENT_MESSAGE_DELETED);
        assert_string_equal(in->id, "1.000100");
        assert_string_equal(in->key, "delete:C1:1.000100");
        assert_string_equal(in->thread, "0.500000");
        assert_string_equal(in->sender_id, "U1");
        assert_int_equal(in->time_ms, 9000);
        /* a root with replies leaves a tombstone */
        in = read_event(*state, CHANGED "'message':{'subtype':'tombstone','user':'USLACKBOT',"
                                        "'ts':'1.000100'},'previous_message':{'user':'U1',"
                                        "'text':'x','ts':'1.000100'}}");
        assert_string_equal(in->key, "delete:C1:1.000100");
        assert_string_equal(in->sender_id, "U1");
}

/* ---- reactions ---- */

static void a_reaction_is_unicode_and_keeps_its_name(void **state)
{
        const struct incoming *in =
                read_event(*state, "{'type':'reaction_added','user':'U1','reaction':"
                                   "'thumbsup::skin-tone-3','item':{'type':'message',"
                                   "'channel':'C1','ts':'1.000100'},'item_user':'U0BOT',"
                                   "'event_ts':'3.000100'}");

        assert_string_equal(in->type, EVENT_REACTION_RECEIVED);
        assert_string_equal(in->key, "reaction:Ev1");
        assert_string_equal(in->id, "1.000100");
        assert_string_equal(in->channel, "C1");
        assert_string_equal(in->emoji, "\xf0\x9f\x91\x8d");
        assert_null(in->emoji_name);
        assert_false(in->emoji_custom);
        assert_true(in->is_reply);
        assert_int_equal(in->time_ms, 3000);
        in = read_event(*state, "{'type':'reaction_removed','user':'U1','reaction':'ourlogo',"
                                "'item':{'type':'message','channel':'C1','ts':'1.000100'}}");
        assert_string_equal(in->type, EVENT_REACTION_REMOVED);
        assert_true(in->emoji_custom);
        assert_string_equal(in->emoji, "ourlogo");
        expect_ignored(*state,
                       "{'type':'reaction_added','user':'U1','reaction':'x','item':"
                       "{'type':'file','file':'F1'}}",
                       "names no message, person or emoji");
}

/* ---- commands, buttons, forms ---- */

static const struct incoming *read_command(struct slack_intake_rig *g, const char *command,
                                           const char *text)
{
        char *payload = mem_printf("{'command':'%s','text':'%s','user_id':'U1','user_name':'a',"
                                   "'channel_id':'C9','channel_name':'ops','team_id':'T1',"
                                   "'trigger_id':'1.2.x','response_url':'https://x.example/'}",
                                   command, text);
        const struct incoming *in = read_kind(g, SL_COMMAND, payload);

        free(payload);
        return in;
}

static void a_slash_command_is_a_chat_command_or_a_question(void **state)
{
        const struct incoming *in = read_command(*state, "/dragoman", "status");

        assert_string_equal(in->text, "/status");
        assert_string_equal(in->key, "command:1.2.x");
        assert_string_equal(in->id, "command:1.2.x");
        assert_string_equal(in->chat_name, "ops");
        assert_string_equal(in->sender_name, "Anna");
        assert_true(in->is_command && in->is_mention && in->is_awaited);
        assert_string_equal(read_command(*state, "/stop", "")->text, "/stop");
        assert_string_equal(read_command(*state, "/dragoman", "")->text, "/help");
        assert_string_equal(read_command(*state, "/dragoman", " pause 30")->text, "/pause 30");
        assert_string_equal(read_command(*state, "/dragoman", "Status")->text, "/Status");
        assert_string_equal(read_command(*state, "/dragoman", "approve apr-3 always")->text,
                            "/approve apr-3 always");
        assert_string_equal(read_command(*state, "/dragoman", "refuse sap-3 why")->text,
                            "/refuse sap-3 why");
        assert_string_equal(read_command(*state, "/dragoman", "approve the plan")->text,
                            "approve the plan");
        assert_string_equal(
                read_command(*state, "/dragoman", "remind me in 5m to ask <@U1|anna> &amp; go")
                        ->text,
                "/remind me in 5m to ask @anna.k & go");
        assert_string_equal(read_command(*state, "/remind", "30m tea")->text, "/remind 30m tea");
        assert_string_equal(read_command(*state, "/dragoman", "event yes cal-3")->text,
                            "/event yes cal-3");
        assert_string_equal(read_command(*state, "/dragoman", "status of the build?")->text,
                            "status of the build?");
        assert_string_equal(read_command(*state, "/ask", "is <@U1|anna> here &amp; well?")->text,
                            "is @anna.k here & well?");
        assert_string_equal(read_command(*state, "/ask", "a < b > c")->text, "a < b > c");
        assert_null(
                strstr(json_str(((struct slack_intake_rig *)*state)->item.metadata, "command", ""),
                       "https"));
}

#define PRESSED                                                                                    \
        "{'type':'block_actions','user':{'id':'U1','username':'anna.k'},'team':{'id':'T1'},"       \
        "'trigger_id':'7.8','channel':{'id':'C1','name':'general'},'container':{'type':'message'," \
        "'message_ts':'4.000100','channel_id':'C1','thread_ts':'1.000100'},"                       \
        "'message':{'ts':'4.000100','thread_ts':'1.000100'},"

static void a_button_says_its_text_or_is_an_event(void **state)
{
        struct slack_intake_rig *g = *state;
        const struct incoming *in = read_kind(
                g, SL_INTERACTIVE,
                PRESSED "'actions':[{'type':'button','action_id':'b0','value':'say:/approve apr-1',"
                        "'action_ts':'6.000100'}]}");

        assert_string_equal(type_of(in), EVENT_MESSAGE_RECEIVED);
        assert_string_equal(in->text, "/approve apr-1");
        assert_string_equal(in->key, "action:C1:4.000100:U1:6.000100");
        assert_string_equal(in->reply_to, "4.000100");
        assert_string_equal(in->thread, "1.000100");
        assert_true(in->is_command && in->is_mention && in->is_reply);
        in = read_kind(g, SL_INTERACTIVE,
                       PRESSED "'actions':[{'type':'static_select','action_id':'m',"
                               "'selected_option':{'value':'blue'},'action_ts':'6.000200'}]}");
        assert_string_equal(in->type, "custom.slack.action");
        assert_string_equal(json_str(json_object_get(g->item.metadata, "action"), "data", ""),
                            "blue");
        assert_null(read_kind(g, SL_INTERACTIVE, PRESSED "'actions':[]}"));
        assert_null(read_kind(g, SL_INTERACTIVE, "{'type':'view_closed'}"));
}

static void a_form_is_said_where_its_button_stands(void **state)
{
        struct slack_intake_rig *g = *state;
        const struct incoming *in = read_kind(
                g, SL_INTERACTIVE,
                "{'type':'view_submission','user':{'id':'U1'},'view':{'id':'V1','callback_id':"
                "'dragoman_ask','private_metadata':'{\\\"channel\\\":\\\"C1\\\",\\\"thread\\\":"
                "\\\"1.000100\\\",\\\"message\\\":\\\"4.000100\\\",\\\"begins\\\":"
                "\\\"/refuse apr-1\\\"}','state':{'values':{'answer':{'answer':{'type':"
                "'plain_text_input','value':'too risky'}}}}}}");

        assert_string_equal(in->text, "/refuse apr-1 too risky");
        assert_string_equal(in->key, "form:V1");
        assert_string_equal(in->channel, "C1");
        assert_string_equal(in->thread, "1.000100");
        assert_string_equal(in->reply_to, "4.000100");
        assert_null(read_kind(g, SL_INTERACTIVE,
                              "{'type':'view_submission','user':{'id':'U1'},'view':{'id':'V1',"
                              "'callback_id':'other','private_metadata':'{}'}}"));
}

static void a_shortcut_is_about_its_message(void **state)
{
        const struct incoming *in = read_kind(
                *state, SL_INTERACTIVE,
                "{'type':'message_action','callback_id':'translate','trigger_id':'7.9','user':"
                "{'id':'U1'},'channel':{'id':'C1'},'message':{'ts':'4.000100','text':'a &lt; b'}}");

        assert_string_equal(in->text, "/translate a < b");
        assert_string_equal(in->reply_to, "4.000100");
}

/* ---- what must be looked up ---- */

static void senders_and_mentioned_people_are_looked_up_once(void **state)
{
        char users[SL_USERS_MAX][SL_ID_SIZE];
        json_t *p = parse("{'event':{'type':'message','user':'U1','text':"
                          "'<@U2> <@U1> <@W3|x> <@bad> <@U2>','channel':'C1'}}");

        (void)state;
        assert_int_equal(sl_event_users(SL_EVENT, p, users), 3);
        assert_string_equal(users[0], "U1");
        assert_string_equal(users[1], "U2");
        assert_string_equal(users[2], "W3");
        assert_string_equal(sl_event_channel(SL_EVENT, p), "C1");
        json_decref(p);
        p = parse("{'event':{'type':'reaction_added','user':'U1','item':{'channel':'C2'}}}");
        assert_string_equal(sl_event_channel(SL_EVENT, p), "C2");
        json_decref(p);
        p = parse("{'event':{'type':'channel_rename','channel':{'id':'C2'}}}");
        assert_null(sl_event_channel(SL_EVENT, p));
        json_decref(p);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_message_of_a_channel_has_its_place_and_sender),
                TEST(a_mention_reads_the_same_from_both_events),
                TEST(direct_private_and_group_chats_differ),
                TEST(a_reply_belongs_to_its_thread_and_a_root_does_not),
                TEST(a_mention_begins_a_thread_if_so_configured),
                TEST(bots_are_bots_and_we_are_ourselves),
                TEST(people_of_other_workspaces_and_guests_have_roles),
                TEST(files_come_as_attachments),
                TEST(joins_and_topics_are_events_for_rules),
                TEST(what_says_nothing_is_ignored),
                TEST(an_edit_has_a_key_of_its_own),
                TEST(previews_and_streams_are_no_edits),
                TEST(a_deletion_names_its_message),
                TEST(a_reaction_is_unicode_and_keeps_its_name),
                TEST(a_slash_command_is_a_chat_command_or_a_question),
                TEST(a_button_says_its_text_or_is_an_event),
                TEST(a_form_is_said_where_its_button_stands),
                TEST(a_shortcut_is_about_its_message),
                TEST(senders_and_mentioned_people_are_looked_up_once),
        };

        return cmocka_run_group_tests_name("slack_event", tests, NULL, NULL);
}
