/* From the link to the inbox: names first, order, commit, acknowledgement. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_road.h"
#include "fake_slack_api.h"
#include "net/loop.h"
#include "platform/slack/sl_intake.h"
#include "slack_intake_rig.h"

struct acked {
        unsigned count;
        bool stored;
};

static unsigned seen; /* messages, by sl_catchup */
static char seen_last[60];

void sl_catchup_seen(struct slack *sl, const char *ts)
{
        (void)sl;
        seen++;
        snprintf(seen_last, sizeof(seen_last), "%s", ts);
}

static int set_up(void **state)
{
        struct slack_intake_rig *g = mem_zalloc(sizeof(*g));

        fake_api_reset();
        fake_road_reset();
        seen = 0;
        rig_open(g);
        g->adapter.loop = loop_new();
        g->adapter.road = FAKE_ROAD;
        g->sl.api = FAKE_API;
        sl_intake_open(&g->sl);
        *state = g;
        return 0;
}

static int tear_down(void **state)
{
        struct slack_intake_rig *g = *state;

        sl_intake_close(&g->sl);
        for (unsigned i = 0; i < fake_road.received_count; i++)
                if (fake_road.arrivals[i].ack)
                        fake_road_ack(i, ERR_NONE); /* late commits are ignored */
        rig_close(g);
        fake_api_reset();
        loop_free(g->adapter.loop);
        free(g);
        return 0;
}

static void on_stored(void *arg, bool stored, const json_t *response)
{
        struct acked *a = arg;

        assert_null(response);
        a->count++;
        a->stored = stored;
}

static void take(struct slack_intake_rig *g, enum sl_arrival kind, const char *text,
                 struct acked *a)
{
        json_t *payload = parse(text);

        *a = (struct acked){ 0 };
        sl_intake_take(&g->sl, kind, payload, 0, on_stored, a);
        json_decref(payload);
}

static void say(struct slack_intake_rig *g, const char *channel, const char *user, const char *ts,
                struct acked *a)
{
        char *text = mem_printf("{'team_id':'T1','event':{'type':'message','channel':'%s',"
                                "'user':'%s','text':'m%s','ts':'%s'}}",
                                channel, user, ts, ts);

        take(g, SL_EVENT, text, a);
        free(text);
}

static void an_event_is_acknowledged_after_its_commit(void **state)
{
        struct slack_intake_rig *g = *state;
        static struct acked a;

        say(g, "C1", "U1", "1.000100", &a);
        assert_int_equal(fake_road.received_count, 1);
        assert_string_equal(fake_road.arrivals[0].key, "C1:1.000100");
        assert_int_equal(a.count, 0);
        fake_road_ack(0, ERR_NONE);
        assert_int_equal(a.count, 1);
        assert_true(a.stored);
        assert_int_equal(seen, 1);
        assert_string_equal(seen_last, "1.000100");
}

static void a_duplicate_is_acknowledged_too(void **state)
{
        struct slack_intake_rig *g = *state;
        static struct acked a;

        take(g, SL_EVENT,
             "{'event':{'type':'app_mention','channel':'C1','user':'U1','text':'<@U0BOT> x',"
             "'ts':'1.000100'}}",
             &a);
        assert_string_equal(fake_road.arrivals[0].key, "C1:1.000100");
        fake_road_answer(0, INBOX_DUPLICATE, ERR_NONE);
        assert_true(a.count == 1 && a.stored);
}

static void what_is_not_stored_is_acknowledged_at_once(void **state)
{
        struct slack_intake_rig *g = *state;
        static struct acked a;

        take(g, SL_EVENT, "{'event':{'type':'app_home_opened','user':'U1'}}", &a);
        assert_true(a.count == 1 && a.stored);
        take(g, SL_EVENT,
             "{'event':{'type':'message','channel':'C1','user':'U0BOT','text':'me',"
             "'ts':'1.000100'}}",
             &a);
        assert_true(a.count == 1 && a.stored);
        take(g, SL_INTERACTIVE, "{'type':'view_closed','user':{'id':'U1'}}", &a);
        assert_true(a.count == 1 && a.stored);
        assert_int_equal(fake_road.received_count, 0);
}

static void an_event_waits_for_names_and_later_ones_of_its_channel_wait_for_it(void **state)
{
        struct slack_intake_rig *g = *state;
        static struct acked first, second, other;

        say(g, "C1", "U5", "1.000100", &first); /* unknown */
        say(g, "C1", "U1", "2.000100", &second);
        say(g, "G1", "U1", "3.000100", &other);
        assert_int_equal(fake_road.received_count, 1);
        assert_string_equal(fake_road.arrivals[0].key, "G1:3.000100");
        assert_int_equal(fake_api.count, 1);
        fake_api_answer(0, NULL, parse("{'user':{'id':'U5','name':'cem'}}"));
        assert_int_equal(fake_road.received_count, 3);
        assert_string_equal(fake_road.arrivals[1].key, "C1:1.000100");
        assert_string_equal(fake_road.arrivals[2].key, "C1:2.000100");
}

static void the_name_of_an_unknown_channel_is_looked_up(void **state)
{
        struct slack_intake_rig *g = *state;
        static struct acked a;

        say(g, "C5", "U1", "1.000100", &a);
        assert_string_equal(fake_api.calls[0].method, "conversations.info");
        assert_int_equal(fake_road.received_count, 0);
        fake_api_answer(0, "missing_scope", NULL);
        assert_int_equal(fake_road.received_count, 1); /* it is not waited for in vain */
}

static void a_refusal_over_a_socket_is_kept_and_over_http_given_back(void **state)
{
        struct slack_intake_rig *g = *state;
        static struct acked a;

        say(g, "C1", "U1", "1.000100", &a);
        fake_road_ack(0, ERR_LIMIT);
        assert_int_equal(a.count, 0);
        while (fake_road.received_count == 1)
                loop_step(g->adapter.loop, true);
        fake_road_ack(1, ERR_NONE);
        assert_true(a.count == 1 && a.stored);
        g->conf.mode = (char *)(uintptr_t) "http";
        say(g, "C1", "U1", "2.000100", &a);
        fake_road_ack(2, ERR_LIMIT);
        assert_true(a.count == 1 && !a.stored);
}

static void closing_gives_everything_back_once(void **state)
{
        struct slack_intake_rig *g = *state;
        static struct acked named, unnamed, late;

        say(g, "C1", "U1", "1.000100", &named);
        say(g, "C1", "U5", "2.000100", &unnamed);
        sl_intake_close(&g->sl);
        assert_true(named.count == 1 && !named.stored);
        assert_true(unnamed.count == 1 && !unnamed.stored);
        say(g, "C1", "U1", "3.000100", &late);
        assert_true(late.count == 1 && !late.stored);
        fake_api_answer(0, NULL, parse("{'user':{'id':'U5','name':'cem'}}"));
        fake_road_ack(0, ERR_NONE);
        assert_int_equal(named.count, 1);
}

static void a_missed_message_goes_before_held_ones(void **state)
{
        struct slack_intake_rig *g = *state;
        json_t *missed = parse("{'type':'message','user':'U1','text':'old','ts':'1.000100'}");
        static struct acked a;

        intake_hold(&g->sl.intake->window, "C1");
        say(g, "C1", "U1", "2.000100", &a);
        sl_intake_missed(&g->sl, "C1", missed);
        assert_int_equal(fake_road.received_count, 1);
        assert_string_equal(fake_road.arrivals[0].key, "C1:1.000100");
        assert_null(json_object_get(missed, "channel")); /* it is not ours */
        intake_release(&g->sl.intake->window, "C1");
        assert_string_equal(fake_road.arrivals[1].key, "C1:2.000100");
        json_decref(missed);
}

static void a_reaction_to_a_reply_belongs_to_its_thread(void **state)
{
        struct slack_intake_rig *g = *state;
        static struct acked a;

        take(g, SL_EVENT, /* our own answer */
             "{'event':{'type':'message','channel':'C1','user':'U0BOT','text':'me',"
             "'ts':'2.000100','thread_ts':'1.000100'}}",
             &a);
        take(g, SL_EVENT,
             "{'event_id':'Ev2','event':{'type':'reaction_added','user':'U1','reaction':'eyes',"
             "'item':{'type':'message','channel':'C1','ts':'2.000100'}}}",
             &a);
        assert_string_equal(fake_road.arrivals[0].key, "reaction:Ev2");
        assert_string_equal(fake_road.received.thread, "1.000100");
}

static void a_full_window_says_so(void **state)
{
        struct slack_intake_rig *g = *state;
        static struct acked a[1000];

        assert_false(sl_intake_is_full(&g->sl));
        for (unsigned i = 0; i < COUNT(a); i++) {
                char ts[30];

                snprintf(ts, sizeof(ts), "%u.000100", i + 1);
                say(g, "C1", "U1", ts, &a[i]);
        }
        assert_true(sl_intake_is_full(&g->sl));
        fake_road_ack(0, ERR_NONE);
        assert_false(sl_intake_is_full(&g->sl));
}

static void changes_of_people_and_channels_reach_the_cache(void **state)
{
        struct slack_intake_rig *g = *state;
        static struct acked a;

        take(g, SL_EVENT,
             "{'event':{'type':'user_change','user':{'id':'U1','name':'anna.new',"
             "'team_id':'T1'}}}",
             &a);
        assert_true(a.stored);
        assert_string_equal(sl_cache_user(g->sl.cache, "U1")->username, "anna.new");
        take(g, SL_EVENT, "{'event':{'type':'user_change','user':{'id':'U77','name':'x'}}}", &a);
        assert_null(sl_cache_user(g->sl.cache, "U77")); /* does not displace others */
        take(g, SL_EVENT, "{'event':{'type':'member_joined_channel','user':'U1','channel':'C1'}}",
             &a);
        say(g, "C1", "U1", "0.000100", &a);
        assert_int_equal(fake_api.count, 0);
        take(g, SL_EVENT,
             "{'event':{'type':'channel_rename','channel':{'id':'C1','name':'lobby'}}}", &a);
        say(g, "C1", "U1", "1.000100", &a);
        assert_string_equal(fake_api.calls[0].method, "conversations.info");
        fake_api_answer(0, NULL, parse("{'channel':{'id':'C1','name':'lobby'}}"));
        assert_int_equal(fake_road.received_count, 2);
}

static void events_of_another_workspace_are_not_ours(void **state)
{
        struct slack_intake_rig *g = *state;
        static struct acked a;

        take(g, SL_EVENT,
             "{'team_id':'T9','authorizations':[{'team_id':'T9'}],'event':{'type':'message',"
             "'channel':'C1','user':'U1','text':'x','ts':'1.000100'}}",
             &a);
        assert_true(a.count == 1 && a.stored);
        assert_int_equal(fake_road.received_count, 0);
        /* Slack Connect: sent in another workspace, seen in ours */
        take(g, SL_EVENT,
             "{'team_id':'T9','authorizations':[{'team_id':'T1'}],'event':{'type':'message',"
             "'channel':'C1','user':'U2','text':'x','ts':'1.000100'}}",
             &a);
        assert_int_equal(fake_road.received_count, 1);
}

#define COMMAND                                                                                   \
        "{'command':'/dragoman','text':'status','user_id':'U1','channel_id':'C1','team_id':'T1'," \
        "'trigger_id':'%s','response_url':'%s'}"

static void a_command_can_be_answered_five_times_by_its_url(void **state)
{
        static const char url[] = "https://hooks.slack.com/commands/T1/secret";
        struct slack_intake_rig *g = *state;
        char *text = mem_printf(COMMAND, "1.1", url);
        static struct acked a;

        take(g, SL_COMMAND, text, &a);
        free(text);
        assert_string_equal(fake_road.arrivals[0].key, "command:1.1");
        assert_null(strstr(fake_road.arrivals[0].metadata, "secret"));
        for (int i = 0; i < 5; i++)
                assert_string_equal(sl_interaction_url(&g->sl, "command:1.1", 0), url);
        assert_null(sl_interaction_url(&g->sl, "command:1.1", 0));
        assert_null(sl_interaction_url(&g->sl, "1.000100", 0));
        assert_null(sl_interaction_url(&g->sl, NULL, 0));
        text = mem_printf(COMMAND, "1.2", "https://evil.example/");
        take(g, SL_COMMAND, text, &a);
        free(text);
        assert_null(sl_interaction_url(&g->sl, "command:1.2", 0));
}

static void a_command_does_not_wait_for_its_channel(void **state)
{
        struct slack_intake_rig *g = *state;
        char *text = mem_printf(COMMAND, "1.1", "");
        static struct acked a, waits;

        say(g, "C1", "U5", "1.000100", &waits); /* unknown */
        take(g, SL_COMMAND, text, &a);
        free(text);
        assert_int_equal(fake_road.received_count, 1);
        assert_string_equal(fake_road.arrivals[0].key, "command:1.1");
}

static void a_button_that_asks_opens_a_form_after_its_commit(void **state)
{
        struct slack_intake_rig *g = *state;
        static struct acked a;
        const json_t *view;

        take(g, SL_INTERACTIVE,
             "{'type':'block_actions','user':{'id':'U1'},'trigger_id':'7.8','channel':{'id':'C1'},"
             "'container':{'message_ts':'4.000100','channel_id':'C1'},'actions':[{'type':'button',"
             "'text':{'type':'plain_text','text':'Refuse with a reason for everybody'},"
             "'value':'ask:/refuse apr-1','action_ts':'6.000100'}]}",
             &a);
        assert_int_equal(fake_api.count, 0);
        fake_road_ack(0, ERR_NONE);
        assert_true(a.stored);
        assert_string_equal(fake_api.calls[0].method, "views.open");
        assert_string_equal(json_str(fake_api.calls[0].args, "trigger_id", ""), "7.8");
        view = json_object_get(fake_api.calls[0].args, "view");
        assert_string_equal(json_str(json_object_get(view, "title"), "text", ""),
                            "Refuse with a reason for");
        assert_string_equal(json_str(view, "private_metadata", ""),
                            "{\"channel\":\"C1\",\"message\":\"4.000100\","
                            "\"begins\":\"/refuse apr-1\"}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(an_event_is_acknowledged_after_its_commit),
                TEST(a_duplicate_is_acknowledged_too),
                TEST(what_is_not_stored_is_acknowledged_at_once),
                TEST(an_event_waits_for_names_and_later_ones_of_its_channel_wait_for_it),
                TEST(the_name_of_an_unknown_channel_is_looked_up),
                TEST(a_refusal_over_a_socket_is_kept_and_over_http_given_back),
                TEST(closing_gives_everything_back_once),
                TEST(a_missed_message_goes_before_held_ones),
                TEST(a_reaction_to_a_reply_belongs_to_its_thread),
                TEST(a_full_window_says_so),
                TEST(changes_of_people_and_channels_reach_the_cache),
                TEST(events_of_another_workspace_are_not_ours),
                TEST(a_command_can_be_answered_five_times_by_its_url),
                TEST(a_command_does_not_wait_for_its_channel),
                TEST(a_button_that_asks_opens_a_form_after_its_commit),
        };

        return cmocka_run_group_tests_name("slack_intake", tests, NULL, NULL);
}
