/* Names of Slack's users and channels: bounded, asked for once, never waited for in vain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_slack_api.h"
#include "slack_intake_rig.h"

struct told {
        unsigned count;
        bool known, is_bot, is_stranger;
        char name[60], username[60];
};

static int set_up(void **state)
{
        struct slack_intake_rig *g = mem_zalloc(sizeof(*g));

        fake_api_reset();
        rig_open(g);
        g->sl.api = FAKE_API;
        *state = g;
        return 0;
}

static int tear_down(void **state)
{
        rig_close(*state);
        fake_api_reset();
        free(*state);
        return 0;
}

static void on_user(void *arg, const struct sl_user *u)
{
        struct told *t = arg;

        t->count++;
        t->known = u->known;
        t->is_bot = u->is_bot;
        t->is_stranger = u->is_stranger;
        snprintf(t->name, sizeof(t->name), "%s", u->name);
        snprintf(t->username, sizeof(t->username), "%s", u->username);
}

static void on_channel(void *arg, const struct sl_channel *ch)
{
        struct told *t = arg;

        t->count++;
        snprintf(t->name, sizeof(t->name), "%s", ch->name ? ch->name : "(none)");
}

static void several_who_ask_share_one_call(void **state)
{
        struct slack_intake_rig *g = *state;
        struct told a = { 0 }, b = { 0 };

        sl_cache_find_user(g->sl.cache, "U5", on_user, &a);
        sl_cache_find_user(g->sl.cache, "U5", on_user, &b);
        assert_int_equal(a.count + b.count, 0);
        assert_int_equal(fake_api.count, 1);
        assert_string_equal(fake_api.calls[0].method, "users.info");
        assert_string_equal(json_str(fake_api.calls[0].args, "user", ""), "U5");
        assert_null(sl_cache_user(g->sl.cache, "U5"));
        fake_api_answer(0, NULL,
                        parse("{'user':{'id':'U5','name':'cem','team_id':'T1','profile':"
                              "{'display_name':'','real_name':'Cem A'}}}"));
        assert_int_equal(a.count, 1);
        assert_int_equal(b.count, 1);
        assert_string_equal(a.name, "Cem A");
        assert_string_equal(a.username, "cem");
        assert_true(a.known && !a.is_stranger && !a.is_bot);
        sl_cache_find_user(g->sl.cache, "U5", on_user, &a);
        assert_int_equal(a.count, 2); /* at once */
        assert_int_equal(fake_api.count, 1);
}

static void a_failed_lookup_gives_the_id_and_is_not_repeated_at_once(void **state)
{
        struct slack_intake_rig *g = *state;
        struct told t = { .known = true };

        sl_cache_find_user(g->sl.cache, "U6", on_user, &t);
        fake_api_answer(0, "user_not_found", NULL);
        assert_int_equal(t.count, 1);
        assert_false(t.known);
        assert_string_equal(t.name, "U6");
        sl_cache_find_user(g->sl.cache, "U6", on_user, &t);
        assert_int_equal(t.count, 2);
        assert_int_equal(fake_api.count, 1);
        assert_null(sl_cache_user_named(g->sl.cache, "u6", 2));
}

static void a_known_name_survives_a_failed_refresh(void **state)
{
        struct slack_intake_rig *g = *state;
        struct told t = { 0 };

        sl_cache_forget_channel(g->sl.cache, "C1"); /* it was renamed */
        sl_cache_find_channel(g->sl.cache, "C1", on_channel, &t);
        assert_int_equal(fake_api.count, 1);
        assert_string_equal(fake_api.calls[0].method, "conversations.info");
        fake_api_answer(0, "", NULL);
        assert_string_equal(t.name, "general");
        sl_cache_forget_channel(g->sl.cache, "C1");
        sl_cache_find_channel(g->sl.cache, "C1", on_channel, &t);
        fake_api_answer(1, NULL, parse("{'channel':{'id':'C1','name':'lobby'}}"));
        assert_string_equal(t.name, "lobby");
        assert_string_equal(sl_cache_channel_named(g->sl.cache, "#lobby"), "C1");
        assert_null(sl_cache_channel_named(g->sl.cache, "general"));
}

static void the_least_recently_used_are_forgotten_first(void **state)
{
        struct slack_intake_rig *g = *state;

        for (int i = 100; i < 198; i++) { /* with U1 and U2: as many as fit */
                char *user = mem_printf("{'id':'U%d','name':'n%d'}", i, i);

                know_user(g, user);
                free(user);
        }
        assert_non_null(sl_cache_user(g->sl.cache, "U1")); /* used again */
        know_user(g, "{'id':'U900','name':'late'}");
        assert_null(sl_cache_user(g->sl.cache, "U2"));
        assert_non_null(sl_cache_user(g->sl.cache, "U1"));
        assert_non_null(sl_cache_user(g->sl.cache, "U900"));
}

static void who_is_waited_for_is_not_forgotten(void **state)
{
        struct slack_intake_rig *g = *state;
        struct told t = { 0 };

        sl_cache_find_user(g->sl.cache, "U5", on_user, &t);
        for (int i = 100; i < 300; i++) {
                char *user = mem_printf("{'id':'U%d','name':'n%d'}", i, i);

                know_user(g, user);
                free(user);
        }
        fake_api_answer(0, NULL, parse("{'user':{'id':'U5','name':'cem'}}"));
        assert_string_equal(t.name, "cem");
}

static void who_stops_waiting_hears_nothing(void **state)
{
        struct slack_intake_rig *g = *state;
        struct told a = { 0 }, b = { 0 };

        sl_cache_find_user(g->sl.cache, "U5", on_user, &a);
        sl_cache_find_user(g->sl.cache, "U5", on_user, &b);
        sl_cache_stop_waiting(g->sl.cache, &a);
        fake_api_answer(0, NULL, parse("{'user':{'id':'U5','name':'cem'}}"));
        assert_int_equal(a.count, 0);
        assert_int_equal(b.count, 1);
        sl_cache_find_user(g->sl.cache, "U6", on_user, &a);
        sl_cache_free(g->sl.cache);
        g->sl.cache = NULL;
        assert_null(fake_api.calls[1].done); /* aborted */
}

static void people_are_found_by_handle_then_by_an_unambiguous_name(void **state)
{
        struct slack_intake_rig *g = *state;
        struct sl_cache *c = g->sl.cache;

        assert_string_equal(sl_cache_user_named(c, "ANNA.K", 6), "U1");
        assert_string_equal(sl_cache_user_named(c, "anna", 4), "U1");
        assert_string_equal(sl_cache_user_named(c, "bo and more", 2), "U2");
        assert_null(sl_cache_user_named(c, "b", 1));
        assert_null(sl_cache_user_named(c, "", 0));
        know_user(g, "{'id':'U3','name':'anna.z','profile':{'display_name':'anna'}}");
        assert_null(sl_cache_user_named(c, "anna", 4));
        know_user(g, "{'id':'U4','name':'anna'}");
        assert_string_equal(sl_cache_user_named(c, "anna", 4), "U4");
}

static void a_person_of_another_workspace_is_a_stranger(void **state)
{
        struct slack_intake_rig *g = *state;

        assert_true(sl_cache_user(g->sl.cache, "U2")->is_stranger);
        assert_false(sl_cache_user(g->sl.cache, "U1")->is_stranger);
        know_user(g, "{'id':'U3','name':'c','team_id':'T1','is_stranger':true}");
        assert_true(sl_cache_user(g->sl.cache, "U3")->is_stranger);
        know_user(g, "{'id':'U4','name':'d','team_id':'T9','enterprise_user':{'id':'W4'}}");
        assert_false(sl_cache_user(g->sl.cache, "U4")->is_stranger);
}

static void threads_of_recent_replies_are_known(void **state)
{
        struct slack_intake_rig *g = *state;
        struct sl_cache *c = g->sl.cache;

        sl_cache_put_reply(c, "C1", "2.000100", "1.000100");
        sl_cache_put_reply(c, "C1", "2.000100", "1.000100");
        assert_string_equal(sl_cache_thread(c, "C1", "2.000100"), "1.000100");
        assert_null(sl_cache_thread(c, "C2", "2.000100"));
        for (int i = 0; i < 1000; i++) {
                char *ts = mem_printf("%d.000200", i + 10);

                sl_cache_put_reply(c, "C1", ts, "1.000100");
                free(ts);
        }
        assert_null(sl_cache_thread(c, "C1", "2.000100"));
        assert_string_equal(sl_cache_thread(c, "C1", "1009.000200"), "1.000100");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(several_who_ask_share_one_call),
                TEST(a_failed_lookup_gives_the_id_and_is_not_repeated_at_once),
                TEST(a_known_name_survives_a_failed_refresh),
                TEST(the_least_recently_used_are_forgotten_first),
                TEST(who_is_waited_for_is_not_forgotten),
                TEST(who_stops_waiting_hears_nothing),
                TEST(people_are_found_by_handle_then_by_an_unambiguous_name),
                TEST(threads_of_recent_replies_are_known),
                TEST(a_person_of_another_workspace_is_a_stranger),
        };

        return cmocka_run_group_tests_name("slack_cache", tests, NULL, NULL);
}
