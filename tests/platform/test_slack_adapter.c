/* A Slack adapter as a whole: tokens, the greeting, scopes, revocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "slack_rig.h"

/* ---- the greeting ---- */

static void a_good_token_shows_the_bot_and_its_workspace(void **state)
{
        struct rig *g = *state;
        const struct slack *sl;

        rig_connect(g, "");
        sl = rig_slack(g);
        assert_string_equal(rig_adapter(g)->bot_name, "testbot");
        assert_string_equal(rig_adapter(g)->bot_id, "U0BOT");
        assert_string_equal(sl->self.bot, "B0BOT");
        assert_string_equal(sl->self.team, "T1");
        assert_string_equal(sl->self.team_name, "Work");
        assert_string_equal(rig_adapter(g)->trouble, ""); /* Slack did not name its scopes */
        assert_int_equal(fake_link.opened, 1);
        assert_non_null(strstr(fake_server_request(g->server, 0),
                               "Authorization: Bearer " BOT_TOKEN "\r\n"));
}

static void an_unreachable_slack_is_asked_again(void **state)
{
        struct rig *g = *state;

        says(g, 502, "<html>");
        says(g, 200, ME);
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        assert_non_null(strstr(rig_adapter(g)->why,
                               "Slack answered 502 with a web page instead of JSON (apiBase is "
                               "http://127.0.0.1:"));
        rig_until_state(g, ADAPTER_UP);
}

static void an_answer_without_a_user_is_no_greeting(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"ok\":true}");
        says(g, 200, ME);
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        assert_int_equal(fake_link.opened, 0);
        rig_until_state(g, ADAPTER_UP);
}

/* ---- tokens ---- */

static void a_wrong_token_stops_with_advice(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"ok\":false,\"error\":\"invalid_auth\"}");
        rig_open(g, "");
        rig_until_state(g, ADAPTER_STOPPED);
        assert_string_equal(rig_adapter(g)->why,
                            "Slack does not know this bot token (invalid_auth): put the one of "
                            "OAuth & Permissions (xoxb-...) into adapters.sl.botToken or "
                            "SLACK_BOT_TOKEN");
        for (int i = 0; i < 5; i++)
                loop_step(g->loop, false);
        assert_int_equal(fake_server_requests(g->server), 1); /* not asked again */
        assert_int_equal(fake_link.opened, 0);
}

static struct adapter *open_without_tokens(struct rig *g, const char *json)
{
        struct error err = { 0 };
        struct adapter_conf *c = adapter_conf_make("sl", "slack", json, &err);

        if (!c)
                fail_msg("%s", err.text);
        assert_int_equal(adapters_apply(g->adapters, &c, 1, &err), 0);
        return rig_adapter(g);
}

static void missing_tokens_name_both_places(void **state)
{
        struct rig *g = *state;

        assert_int_equal(open_without_tokens(g, "{}")->state, ADAPTER_STOPPED);
        assert_string_equal(rig_adapter(g)->why,
                            "there is no bot token: set SLACK_BOT_TOKEN in the environment, or "
                            "adapters.sl.botToken");
        setenv("SLACK_BOT_TOKEN", BOT_TOKEN, 1);
        assert_int_equal(open_without_tokens(g, "{\"connections\":3}")->state, ADAPTER_STOPPED);
        assert_string_equal(rig_adapter(g)->why,
                            "mode 'socket' needs an app-level token: set SLACK_APP_TOKEN in the "
                            "environment, or adapters.sl.appToken");
        setenv("SLACK_APP_TOKEN", BOT_TOKEN, 1);
        assert_int_equal(open_without_tokens(g, "{\"connections\":4}")->state, ADAPTER_STOPPED);
        assert_non_null(
                strstr(rig_adapter(g)->why, "SLACK_APP_TOKEN: this is the bot's token (xoxb-...)"));
}

static void the_environment_may_hold_both_tokens(void **state)
{
        struct rig *g = *state;
        char *json;

        says(g, 200, ME);
        g->server = fake_server_new(g->loop, g->script, g->count);
        setenv("SLACK_BOT_TOKEN", "xoxb-from-the-environment", 1);
        setenv("SLACK_APP_TOKEN", APP_TOKEN, 1);
        json = mem_printf("{\"apiBase\":\"http://127.0.0.1:%d\"}", fake_server_port(g->server));
        open_without_tokens(g, json);
        free(json);
        rig_until_state(g, ADAPTER_UP);
        assert_non_null(strstr(fake_server_request(g->server, 0),
                               "Authorization: Bearer xoxb-from-the-environment\r\n"));
}

static void mode_http_needs_an_address_and_no_app_token(void **state)
{
        static const char json[] = "{\"botToken\":\"" BOT_TOKEN "\",\"mode\":\"http\","
                                   "\"signingSecret\":\"0123456789abcdef0123456789abcdef\"%s}";
        struct rig *g = *state;
        char text[300];

        snprintf(text, sizeof(text), json, "");
        open_without_tokens(g, text);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_STOPPED);
        assert_non_null(strstr(rig_adapter(g)->why, "mode 'http' needs http.publicUrl"));
        adapters_set_public_url(g->adapters, "https://bot.example.org");
        snprintf(text, sizeof(text), json, ",\"apiBase\":\"http://127.0.0.1:1\"");
        open_without_tokens(g, text);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_CONNECTING);
}

static void one_token_serves_one_adapter(void **state)
{
        struct rig *g = *state;
        struct error err = { 0 };
        struct adapter_conf *c[2];
        unsigned stopped = 0;

        for (unsigned i = 0; i < 2; i++) {
                c[i] = adapter_conf_make(i ? "two" : "sl", "slack",
                                         "{\"botToken\":\"" BOT_TOKEN "\",\"appToken\":\"" APP_TOKEN
                                         "\",\"apiBase\":\"http://127.0.0.1:1\"}",
                                         &err);
                assert_non_null(c[i]);
        }
        assert_int_equal(adapters_apply(g->adapters, c, 2, &err), 0);
        stopped += adapters_find(g->adapters, "sl")->state == ADAPTER_STOPPED;
        stopped += adapters_find(g->adapters, "two")->state == ADAPTER_STOPPED;
        assert_int_equal(stopped, 1);
}

/* ---- revocation ---- */

static void a_call_with_a_revoked_token_stops_the_adapter(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"ok\":false,\"error\":\"account_inactive\"}");
        rig_connect(g, "");
        sl_api_ask(rig_slack(g)->api, &(struct sl_request){ .method = "users.info" }, NULL, NULL);
        rig_until_state(g, ADAPTER_STOPPED);
        assert_string_equal(rig_adapter(g)->why,
                            "the app was removed or its token revoked (account_inactive): install "
                            "it again and put its token (xoxb-...) into adapters.sl.botToken or "
                            "SLACK_BOT_TOKEN");
        for (int i = 0; i < 100 && fake_link.closed == 0; i++)
                loop_step(g->loop, true);
        assert_int_equal(fake_link.closed, 1); /* from the loop: the caller may be the link */
        slack_up(rig_slack(g));                /* it may still report */
        slack_lost(rig_slack(g), "it broke");
        assert_int_equal(rig_adapter(g)->state, ADAPTER_STOPPED);
}

static void a_refused_app_level_token_names_its_setting(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"ok\":false,\"error\":\"invalid_auth\"}");
        rig_connect(g, "");
        sl_api_ask(rig_slack(g)->api, &(struct sl_request){ .method = "apps.connections.open" },
                   NULL, NULL);
        rig_until_state(g, ADAPTER_STOPPED);
        assert_non_null(strstr(rig_adapter(g)->why, "adapters.sl.appToken or SLACK_APP_TOKEN"));
}

/* An event about a revoked token may be old: Slack is asked. */
static void news_of_a_revoked_token_are_checked(void **state)
{
        struct rig *g = *state;

        says(g, 200, ME);
        says(g, 200, "{\"ok\":false,\"error\":\"token_revoked\"}");
        rig_connect(g, "");
        slack_check_token(rig_slack(g));
        rig_requests(g, 1);
        assert_string_equal(rig_method(g, 0), "auth.test");
        assert_int_equal(rig_adapter(g)->state, ADAPTER_UP);
        slack_check_token(rig_slack(g));
        rig_until_state(g, ADAPTER_STOPPED);
        assert_non_null(strstr(rig_adapter(g)->why, "token revoked (token_revoked)"));
}

/* ---- scopes ---- */

#define SOME_SCOPES                                                                   \
        "app_mentions:read,channels:history,channels:read,chat:write,groups:history," \
        "groups:read,im:history,im:read,im:write,mpim:history,mpim:read,users:read,"  \
        "reactions:read,reactions:write"

static void call(struct rig *g, const char *method)
{
        unsigned before = fake_server_requests(g->server);

        sl_api_ask(rig_slack(g)->api, &(struct sl_request){ .method = method }, NULL, NULL);
        for (int i = 0; i < 100000 && fake_server_requests(g->server) == before; i++)
                loop_step(g->loop, true);
        for (int i = 0; i < 5; i++)
                loop_step(g->loop, false);
}

static void scopes_missing_at_the_start_are_shown_until_they_are_added(void **state)
{
        static const char lacks[] = "the app lacks scopes: add \"files:read\", \"files:write\" to "
                                    "oauth_config.scopes.bot of its manifest and reinstall it";
        struct rig *g = *state;

        says_with(g, 200, "X-OAuth-Scopes: " SOME_SCOPES "\r\n", ME);
        says_with(g, 200, "X-OAuth-Scopes: " SOME_SCOPES "\r\n",
                  "{\"ok\":false,\"error\":\"missing_scope\",\"needed\":\"files:read\"}");
        says_with(g, 200, "X-OAuth-Scopes: connections:write\r\n", "{\"ok\":true}");
        says_with(g, 200, "X-OAuth-Scopes: " SOME_SCOPES ",files:read,files:write\r\n",
                  "{\"ok\":true}");
        rig_open(g, "");
        rig_until_state(g, ADAPTER_UP); /* the rest works */
        assert_string_equal(rig_adapter(g)->trouble, lacks);
        call(g, "files.info");
        assert_string_equal(rig_adapter(g)->trouble, lacks); /* the list says more */
        call(g, "apps.connections.open");
        assert_string_equal(rig_adapter(g)->trouble, lacks); /* that is of another token */
        call(g, "users.info");
        for (int i = 0; i < 100000 && rig_adapter(g)->trouble[0]; i++)
                loop_step(g->loop, true);
        assert_string_equal(rig_adapter(g)->trouble, "");
}

static void a_scope_missing_later_is_shown_until_it_is_there(void **state)
{
        static const struct sl_request ask = { .method = "users.info" };
        struct rig *g = *state;

        says(g, 200, "{\"ok\":false,\"error\":\"missing_scope\",\"needed\":\"users:read\"}");
        says(g, 200, "{\"ok\":true}");
        rig_connect(g, "");
        sl_api_ask(rig_slack(g)->api, &ask, NULL, NULL);
        for (int i = 0; i < 100000 && !rig_adapter(g)->trouble[0]; i++)
                loop_step(g->loop, true);
        assert_non_null(strstr(rig_adapter(g)->trouble, "add \"users:read\" to"));
        assert_int_equal(rig_adapter(g)->state, ADAPTER_UP);
        sl_api_ask(rig_slack(g)->api, &ask, NULL, NULL);
        for (int i = 0; i < 100000 && rig_adapter(g)->trouble[0]; i++)
                loop_step(g->loop, true);
        assert_string_equal(rig_adapter(g)->trouble, "");
}

/* ---- several workspaces ---- */

/* A second adapter, of workspace T2, with this app-level token. */
static struct adapter *add_second(struct rig *g, const char *app_token)
{
        struct error err = { 0 };
        struct adapter_conf *c[2];
        int port = fake_server_port(g->server);
        char *json[2] = { mem_printf("{\"botToken\":\"" BOT_TOKEN "\",\"appToken\":\"" APP_TOKEN
                                     "\",\"apiBase\":\"http://127.0.0.1:%d\"}",
                                     port),
                          mem_printf("{\"botToken\":\"xoxb-second\",\"appToken\":\"%s\","
                                     "\"apiBase\":\"http://127.0.0.1:%d\"}",
                                     app_token, port) };

        for (unsigned i = 0; i < 2; i++) {
                c[i] = adapter_conf_make(i ? "two" : "sl", "slack", json[i], &err);
                assert_non_null(c[i]);
                free(json[i]);
        }
        assert_int_equal(adapters_apply(g->adapters, c, 2, &err), 0);
        return adapters_find(g->adapters, "two");
}

static struct slack *open_second(struct rig *g, const char *app_token)
{
        const struct adapter *a = add_second(g, app_token);

        for (int i = 0; i < 100000 && a->state != ADAPTER_UP; i++)
                loop_step(g->loop, true);
        assert_int_equal(a->state, ADAPTER_UP);
        return a->self;
}

#define ME_TOO                                                                                \
        "{\"ok\":true,\"team\":\"Home\",\"user\":\"testbot\",\"team_id\":\"T2\",\"user_id\":" \
        "\"U2BOT\",\"bot_id\":\"B2BOT\"}"

static struct slack *serving(struct slack *sl, enum sl_arrival kind, const char *text)
{
        json_t *payload = json_loads(text, 0, NULL);
        struct slack *found = slack_serving(sl, kind, payload);

        assert_non_null(payload);
        json_decref(payload);
        return found;
}

static void an_event_goes_to_the_adapter_of_its_workspace(void **state)
{
        static const char event[] = "{\"team_id\":\"T9\",\"authorizations\":[{\"team_id\":"
                                    "\"T2\"}]}",
                          ours[] = "{\"team_id\":\"T9\",\"authorizations\":[{\"team_id\":"
                                   "\"T1\"}]}",
                          nobodys[] = "{\"team_id\":\"T3\",\"authorizations\":[{\"team_id\":"
                                      "\"T3\"}]}";
        struct rig *g = *state;
        struct slack *sl, *two;

        says(g, 200, ME_TOO);
        rig_connect(g, "");
        two = open_second(g, APP_TOKEN);
        sl = rig_slack(g);
        assert_ptr_equal(serving(sl, SL_EVENT, event), two);
        assert_ptr_equal(serving(sl, SL_EVENT, ours), sl); /* the author is of another one */
        assert_ptr_equal(serving(two, SL_EVENT, ours), sl);
        assert_null(serving(sl, SL_EVENT, nobodys));
        assert_ptr_equal(serving(sl, SL_COMMAND, "{\"team_id\":\"T2\"}"), two);
        assert_ptr_equal(serving(sl, SL_INTERACTIVE, "{\"team\":{\"id\":\"T2\"}}"), two);
        /* a person of another workspace pressed a button in a shared channel */
        assert_ptr_equal(serving(sl, SL_INTERACTIVE, "{\"team\":{\"id\":\"T3\"}}"), sl);
        assert_ptr_equal(serving(sl, SL_EVENT, "{}"), sl);
}

static void an_event_waits_for_an_adapter_that_is_greeting(void **state)
{
        static const char event[] = "{\"authorizations\":[{\"team_id\":\"T2\"}]}",
                          command[] = "{\"team_id\":\"T2\"}";
        struct rig *g = *state;
        struct adapter *two;
        struct slack *sl;

        says(g, 200, "{\"ok\":false,\"error\":\"invalid_auth\"}");
        rig_connect(g, "");
        two = add_second(g, APP_TOKEN);
        sl = rig_slack(g);
        assert_ptr_equal(serving(sl, SL_EVENT, event), two->self);
        assert_ptr_equal(serving(sl, SL_COMMAND, command), two->self);
        assert_null(((struct slack *)two->self)->intake); /* so it is not acknowledged */
        for (int i = 0; i < 100000 && two->state != ADAPTER_STOPPED; i++)
                loop_step(g->loop, true);
        assert_null(serving(sl, SL_EVENT, event));
        assert_ptr_equal(serving(sl, SL_COMMAND, command), sl);
}

static void adapters_of_other_apps_get_nothing(void **state)
{
        static const char event[] = "{\"authorizations\":[{\"team_id\":\"T2\"}]}";
        struct rig *g = *state;

        says(g, 200, ME_TOO);
        rig_connect(g, "");
        open_second(g, "xapp-of-another-app");
        assert_null(serving(rig_slack(g), SL_EVENT, event));
}

/* ---- what the road asks ---- */

static void ids_threads_and_groups_are_slacks(void **state)
{
        struct rig *g = *state;
        const struct platform_ops *ops = platform_find("slack");
        struct incoming in = {
                .key = "C1:5.000600", .channel = "C1", .id = "5.000600", .chat = CHAT_GROUP
        };

        rig_connect(g, "");
        assert_true(ops->is_id("U07ABC"));
        assert_true(ops->is_id("C1"));
        assert_false(ops->is_id("general"));
        assert_false(ops->is_id("#general"));
        assert_false(ops->is_id("U"));
        assert_false(ops->is_id("X07ABC"));
        assert_string_equal(ops->thread_at(rig_adapter(g), &in), "5.000600");
        in.thread = "1.2";
        assert_null(ops->thread_at(rig_adapter(g), &in));
        in.thread = NULL;
        in.key = "reaction:Ev1";
        assert_string_equal(ops->thread_at(rig_adapter(g), &in), "5.000600");
        in.id = in.key = "command:7";
        assert_null(ops->thread_at(rig_adapter(g), &in)); /* a command is no message */
        in.id = "5.000600";
        in.chat = CHAT_DM;
        assert_null(ops->thread_at(rig_adapter(g), &in));
        assert_true(ops->is_group(rig_adapter(g), "C1"));
        assert_true(ops->is_group(rig_adapter(g), "G1"));
        assert_false(ops->is_group(rig_adapter(g), "D1"));
        assert_false(ops->is_group(rig_adapter(g), "user:U1"));
        assert_true(ops->abilities(rig_adapter(g)) & ADAPTER_STREAMS);
}

static void without_streaming_no_drafts_are_shown(void **state)
{
        struct rig *g = *state;

        rig_connect(g, ",\"streaming\":\"off\"");
        assert_false(rig_adapter(g)->ops->abilities(rig_adapter(g)) & ADAPTER_STREAMS);
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                ROW(a_good_token_shows_the_bot_and_its_workspace),
                ROW(an_unreachable_slack_is_asked_again),
                ROW(an_answer_without_a_user_is_no_greeting),
                ROW(a_wrong_token_stops_with_advice),
                ROW(missing_tokens_name_both_places),
                ROW(the_environment_may_hold_both_tokens),
                ROW(mode_http_needs_an_address_and_no_app_token),
                ROW(one_token_serves_one_adapter),
                ROW(a_call_with_a_revoked_token_stops_the_adapter),
                ROW(a_refused_app_level_token_names_its_setting),
                ROW(news_of_a_revoked_token_are_checked),
                ROW(scopes_missing_at_the_start_are_shown_until_they_are_added),
                ROW(a_scope_missing_later_is_shown_until_it_is_there),
                ROW(an_event_goes_to_the_adapter_of_its_workspace),
                ROW(an_event_waits_for_an_adapter_that_is_greeting),
                ROW(adapters_of_other_apps_get_nothing),
                ROW(ids_threads_and_groups_are_slacks),
                ROW(without_streaming_no_drafts_are_shown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
