/* The connection: polling, webhooks, failures, what the operator is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "platform/telegram/telegram.h"
#include "telegram_rig.h"

static void a_foreign_answer_is_reported(void **state)
{
        struct rig *g = *state;

        says(g, 200, "<html>Log in to the hotel</html>");
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        assert_non_null(strstr(rig_adapter(g)->why,
                               "this is not an answer of Telegram (apiBase is http://127.0.0.1:"));
}

static void empty_answers_do_not_cause_a_busy_loop(void **state)
{
        struct rig *g = *state;
        struct telegram *tg;

        says(g, 200, GOT("{\"message\":{}}"));
        says(g, 200, GOT("{\"message\":{}}"));
        rig_open(g, "");
        rig_requests(g, 4);
        tg = rig_adapter(g)->self;
        for (int i = 0; i < 1000 && tg->call; i++)
                loop_step(g->loop, true);
        assert_true(timer_active(tg->timer));
}

static void a_webhook_is_removed_without_dropping_updates(void **state)
{
        struct rig *g = *state;

        says(g, 200, ME);
        says(g, 200, "{\"ok\":true,\"result\":{\"url\":\"https://old.example/hook\"}}");
        says(g, 200, TRUE);
        says(g, 200, NULL);
        rig_open(g, "");
        rig_until_state(g, ADAPTER_UP);
        assert_string_equal(rig_method(g, 2), "deleteWebhook");
        assert_string_equal(rig_body(g, 2), "{\"drop_pending_updates\":false}");
}

static void a_webhook_is_removed_at_the_second_attempt_too(void **state)
{
        struct rig *g = *state;
        struct telegram *tg;

        says(g, 200, ME);
        says(g, 502, "");
        says(g, 200, "{\"ok\":true,\"result\":{\"url\":\"https://old.example/hook\"}}");
        says(g, 200, TRUE);
        says(g, 200, NULL);
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        tg = rig_adapter(g)->self;
        timer_start(tg->timer, 0);
        rig_requests(g, 3);
        assert_string_equal(rig_method(g, 2), "getWebhookInfo");
        rig_until_state(g, ADAPTER_UP);
        assert_string_equal(rig_method(g, 3), "deleteWebhook");
}

static void the_bots_profile_and_abilities_are_known(void **state)
{
        struct rig *g = *state;
        struct pace_limits pace;

        says(g, 200, NULL);
        rig_open(g, ",\"streaming\":false");
        rig_until_state(g, ADAPTER_UP);
        assert_string_equal(rig_adapter(g)->bot_name, "TestBot");
        assert_string_equal(rig_adapter(g)->bot_id, "42");
        assert_true(adapters_channel_is_group(g->adapters, "tg", "-100200"));
        assert_true(adapters_channel_is_group(g->adapters, "tg", "@news"));
        assert_false(adapters_channel_is_group(g->adapters, "tg", "7"));
        assert_int_equal(adapters_abilities(g->adapters, "tg") & (ADAPTER_EDITS | ADAPTER_STREAMS),
                         ADAPTER_EDITS);
        adapters_limits(g->adapters, "tg", &pace);
        assert_true(pace.per_second == 30 && pace.per_channel_second == 1 &&
                    pace.per_channel_minute == 20);
}

static void a_bad_token_stops_with_advice(void **state)
{
        struct rig *g = *state;

        says(g, 401, NO("401", "Unauthorized"));
        rig_open(g, "");
        rig_until_state(g, ADAPTER_STOPPED);
        assert_string_equal(
                rig_adapter(g)->why,
                "Telegram does not know this bot token: put the one @BotFather shows into "
                "adapters.tg.botToken");
}

static void a_404_of_a_proxy_is_not_a_bad_token(void **state)
{
        struct rig *g = *state;

        says(g, 404, "<html>not found</html>");
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        assert_non_null(
                strstr(rig_adapter(g)->why, "Telegram answered 404 (apiBase is http://127.0.0.1:"));
}

#define CONFLICT                                                                               \
        NO("409", "Conflict: terminated by other getUpdates request; make sure that only one " \
                  "bot instance is running")

static void rig_until_trouble(struct rig *g)
{
        for (int i = 0; i < 100000 && !rig_adapter(g)->trouble[0]; i++)
                loop_step(g->loop, true);
        assert_string_not_equal(rig_adapter(g)->trouble, "");
}

/* Polls get 409 twice; the first may be our previous run. */
static void open_beside_another_poller(struct rig *g)
{
        says(g, 409, CONFLICT);
        says(g, 409, CONFLICT);
        says(g, 200, NONE);
        says(g, 200, NULL);
        rig_open(g, "");
        rig_until_trouble(g);
}

static void a_persistent_second_poller_is_reported(void **state)
{
        struct rig *g = *state;

        open_beside_another_poller(g);
        assert_string_equal(
                rig_adapter(g)->trouble,
                "another process polls with this bot token and gets a part of the messages: stop "
                "it, or give this adapter a bot of its own");
        assert_int_equal(rig_adapter(g)->state, ADAPTER_UP); /* it can still send */
}

static void polls_between_conflicts_do_not_hide_a_second_poller(void **state)
{
        struct rig *g = *state;
        struct telegram *tg;

        says(g, 200, NONE);
        says(g, 409, CONFLICT);
        says(g, 200, NONE);
        says(g, 200, NONE);
        says(g, 409, CONFLICT);
        says(g, 200, NONE);
        says(g, 200, NULL);
        rig_open(g, "");
        rig_requests(g, 4);
        assert_string_equal(rig_adapter(g)->trouble, "");
        rig_until_trouble(g);
        tg = rig_adapter(g)->self;
        timer_start(tg->timer, 0);
        rig_requests(g, 9);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_UP);
        assert_string_not_equal(rig_adapter(g)->trouble, ""); /* the window is not over */
}

static void old_conflicts_are_forgotten(void **state)
{
        struct rig *g = *state;
        struct telegram *tg;

        open_beside_another_poller(g);
        tg = rig_adapter(g)->self;
        for (unsigned i = 0; i < tg->pollers.count; i++)
                tg->pollers.at_ms[i] -= 3600000;
        for (int i = 0; i < 100000 && rig_adapter(g)->trouble[0]; i++)
                loop_step(g->loop, true);
        assert_string_equal(rig_adapter(g)->trouble, "");
        assert_int_equal(tg->pollers.count, 0);
}

#define WEBHOOK_SET NO("409", "Conflict: terminated by setWebhook request")
#define WEBHOOK_ACTIVE                                                                  \
        NO("409", "Conflict: can't use getUpdates method while webhook is active; use " \
                  "deleteWebhook to delete the webhook first")

static void a_foreign_webhook_while_polling_is_reported(void **state)
{
        struct rig *g = *state;

        says(g, 409, WEBHOOK_ACTIVE);
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        assert_non_null(strstr(rig_adapter(g)->why, "a webhook was set"));
}

/* A poll that is held ends with another text than one that begins later. */
static void a_webhook_set_during_a_poll_is_not_another_poller(void **state)
{
        struct rig *g = *state;
        struct telegram *tg;

        says(g, 409, WEBHOOK_SET);
        says(g, 409, WEBHOOK_ACTIVE);
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        assert_non_null(strstr(rig_adapter(g)->why, "a webhook was set"));
        tg = rig_adapter(g)->self;
        assert_int_equal(tg->webhooks.count, 1); /* reported at once */
        assert_int_equal(tg->pollers.count, 0);
}

static void conflicts_with_webhooks_and_pollers_are_counted_apart(void **state)
{
        struct rig *g = *state;
        struct telegram *tg;

        says(g, 409, WEBHOOK_ACTIVE);
        says(g, 409, CONFLICT); /* one alone is not reported */
        says(g, 200, NONE);
        says(g, 200, NULL);
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        rig_until_state(g, ADAPTER_UP);
        tg = rig_adapter(g)->self;
        assert_int_equal(tg->webhooks.count, 1);
        assert_int_equal(tg->pollers.count, 1);
        assert_string_equal(rig_adapter(g)->trouble, "");
}

static void it_reconnects_after_a_failure(void **state)
{
        struct rig *g = *state;

        says(g, 502, "<html>bad gateway</html>");
        says(g, 200, GOT(TEXT("100", "7", "1")));
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        assert_string_equal(rig_adapter(g)->why, "Telegram answered 502");
        await_arrivals(g, 1);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_UP);
        assert_int_equal(rig_adapter(g)->failures, 0); /* the next pause is short again */
}

static void a_failed_greeting_is_repeated(void **state)
{
        struct rig *g = *state;
        struct telegram *tg;

        says(g, 502, "");
        says(g, 200, ME);
        says(g, 502, ""); /* to getWebhookInfo */
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        tg = rig_adapter(g)->self;
        timer_start(tg->timer, 0);
        rig_requests(g, 3);
        assert_string_equal(rig_method(g, 1), "getMe");
        assert_string_equal(rig_method(g, 2), "getWebhookInfo");
        while (tg->state != TG_WAITING)
                loop_step(g->loop, true);
        assert_int_equal(rig_adapter(g)->failures, 2);
        assert_true(timer_active(tg->timer));
}

static void on_over(void *arg)
{
        *(bool *)arg = true;
}

static void polling_waits_for_a_rate_limit(void **state)
{
        struct rig *g = *state;
        bool over = false;
        struct timer *longer_than_a_first_pause = timer_new(g->loop, on_over, &over);

        says(g, 429,
             "{\"ok\":false,\"error_code\":429,\"description\":\"Too Many Requests: retry after "
             "60\",\"parameters\":{\"retry_after\":60}}");
        says(g, 200, NONE);
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        timer_start(longer_than_a_first_pause, 1100);
        while (!over)
                loop_step(g->loop, true);
        assert_int_equal(fake_server_requests(g->server), 3);
        timer_free(longer_than_a_first_pause);
}

static void commands_are_published_only_when_they_change(void **state)
{
        struct rig *g = *state;

        says(g, 200, ME);
        says(g, 200, TRUE);
        says(g, 200, NO_HOOK);
        says(g, 200, NULL);
        says(g, 200, ME);
        says(g, 200, NO_HOOK);
        says(g, 200, NULL);
        rig_open(g, ",\"commands\":[\"help - what I can do\"]");
        rig_requests(g, 4);
        assert_string_equal(rig_method(g, 1), "setMyCommands");
        assert_string_equal(
                rig_body(g, 1),
                "{\"commands\":[{\"command\":\"help\",\"description\":\"what I can do\"}]}");
        rig_until_state(g, ADAPTER_UP);
        rig_apply(g, TOKEN, ",\"pollSeconds\":20,\"commands\":[\"/help - what I can do\"]");
        rig_requests(g, 7);
        assert_string_equal(rig_method(g, 4), "getMe");
        assert_string_equal(rig_method(g, 5), "getWebhookInfo");
        assert_string_equal(rig_method(g, 6), "getUpdates");
}

static void commands_of_our_own_need_no_list(void **state)
{
        struct rig *g = *state;

        says(g, 200, ME);
        says(g, 200, TRUE);
        says(g, 200, NO_HOOK);
        says(g, 200, NULL);
        rig_open(g, ",\"commands\":[\"roll - a die\",\"default\"]");
        rig_requests(g, 4);
        assert_string_equal(rig_method(g, 1), "setMyCommands");
        for (const char *const *name =
                     (const char *const[]){ "roll", "stop", "remind", "reminders", "quiet", "event",
                                            "sessions", "steer", "reply", "followup", "abort",
                                            "notify", "help", NULL };
             *name; name++) {
                char *entry = mem_printf("{\"command\":\"%s\",", *name);

                assert_non_null(strstr(rig_body(g, 1), entry));
                free(entry);
        }
}

static void one_token_serves_one_adapter(void **state)
{
        struct rig *g = *state;
        struct adapter_conf *two[2];
        struct error err = { 0 };

        says(g, 200, NULL);
        g->server = fake_server_new(g->loop, g->script, g->count);
        for (int i = 0; i < 2; i++) {
                char *json = mem_printf("{\"botToken\":\"" TOKEN
                                        "\",\"apiBase\":\"http://127.0.0.1:%d\"}",
                                        fake_server_port(g->server));

                two[i] = adapter_conf_make(i == 0 ? "tg" : "again", "telegram", json, &err);
                free(json);
                assert_non_null(two[i]);
        }
        assert_int_equal(adapters_apply(g->adapters, two, 2, &err), 0);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_CONNECTING);
        assert_int_equal(adapters_find(g->adapters, "again")->state, ADAPTER_STOPPED);
        assert_non_null(
                strstr(adapters_find(g->adapters, "again")->why, "already uses this botToken"));
}

static void a_webhook_is_set_from_the_public_url(void **state)
{
        struct rig *g = *state;

        adapters_set_public_url(g->adapters, "https://bot.example/");
        says(g, 200, ME);
        says(g, 200, TRUE);
        rig_open(g, ",\"mode\":\"webhook\",\"webhookSecret\":\"S3cret_of-mine_42\"");
        rig_until_state(g, ADAPTER_UP);
        assert_string_equal(rig_method(g, 1), "setWebhook");
        assert_string_equal(
                rig_body(g, 1),
                "{\"url\":\"https://bot.example/api/v2/channels/telegram/tg/webhook\","
                "\"secret_token\":\"S3cret_of-mine_42\",\"allowed_updates\":[\"message\","
                "\"edited_message\",\"channel_post\",\"edited_channel_post\",\"message_reaction\","
                "\"callback_query\",\"my_chat_member\"],\"drop_pending_updates\":false}");
}

/* Checks the webhook now instead of in two minutes. */
static void watch(struct rig *g, unsigned requests)
{
        struct telegram *tg = rig_adapter(g)->self;

        timer_start(tg->watch, 0);
        rig_requests(g, requests);
        for (int i = 0; i < 1000 && tg->call; i++)
                loop_step(g->loop, true);
}

static void a_redirected_webhook_is_reported_until_restored(void **state)
{
        struct rig *g = *state;

        adapters_set_public_url(g->adapters, "https://bot.example");
        says(g, 200, ME);
        says(g, 200, TRUE);
        says(g, 200, "{\"ok\":true,\"result\":{\"url\":\"https://other.example/hook\"}}");
        says(g, 200,
             "{\"ok\":true,\"result\":{\"url\":\"https://bot.example/api/v2/channels/telegram/tg/we"
             "bhook\"}}");
        says(g, 200, NO_HOOK);
        says(g, 200, TRUE);
        rig_open(g, ",\"mode\":\"webhook\"");
        rig_until_state(g, ADAPTER_UP);
        watch(g, 3);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_LOST);
        assert_non_null(strstr(rig_adapter(g)->why, "at another address"));
        watch(g, 4);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_UP);
        watch(g, 6); /* gone: set again */
        assert_string_equal(rig_method(g, 5), "setWebhook");
}

/* A check of the webhook would take the place of the call that sets it. */
static void a_webhook_that_cannot_be_set_is_not_watched(void **state)
{
        struct rig *g = *state;
        struct telegram *tg;

        adapters_set_public_url(g->adapters, "https://bot.example");
        says(g, 200, ME);
        says(g, 200, TRUE);
        says(g, 200, NO_HOOK);
        says(g, 502, "");
        says(g, 200, TRUE);
        rig_open(g, ",\"mode\":\"webhook\"");
        rig_until_state(g, ADAPTER_UP);
        watch(g, 4);
        rig_until_state(g, ADAPTER_LOST);
        tg = rig_adapter(g)->self;
        assert_int_equal(tg->state, TG_WAITING);
        timer_start(tg->watch, 0);
        rig_requests(g, 5);
        assert_string_equal(rig_method(g, 4), "setWebhook");
        rig_until_state(g, ADAPTER_UP);
        assert_true(timer_active(tg->watch));
}

static void a_webhook_needs_a_public_url(void **state)
{
        struct rig *g = *state;

        rig_open(g, ",\"mode\":\"webhook\"");
        assert_int_equal(rig_adapter(g)->state, ADAPTER_STOPPED);
        assert_non_null(strstr(rig_adapter(g)->why, "http.publicUrl"));
}

static void settings_errors_are_explained(void **state)
{
        static const struct {
                const char *json, *why;
        } rows[] = {
                { "{}", "tg:1: missing key 'botToken'" },
                { "{\"botToken\":\"my token\"}",
                  "tg:1: botToken: this does not look like a token of @BotFather (such as "
                  "123456:ABC-DEF)" },
                { "{\"botToken\":\"1:a\",\"webhookSecret\":\"a b c d e f g h i\"}",
                  "tg:1: webhookSecret: a webhook secret has 16 to 256 characters of A-Z, a-z, "
                  "0-9, _ and -" },
                { "{\"botToken\":\"1:a\",\"commands\":[\"help\"]}",
                  "tg:1: commands: a command is written as `name - what it does`, or `default` for "
                  "all of Dragoman's own" },
                { "{\"botToken\":\"1:a\",\"commands\":[\"Help - x\"]}",
                  "tg:1: commands: the name of a command has 1 to 32 characters of a-z, 0-9 and "
                  "_" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct error err = { 0 };

                assert_null(adapter_conf_make("tg", "telegram", rows[i].json, &err));
                assert_string_equal(err.text, rows[i].why);
        }
}

int main(void)
{
#define TEST(name)  cmocka_unit_test_setup_teardown(name, rig_begin_greeted, rig_end)
#define EMPTY(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                EMPTY(a_foreign_answer_is_reported),
                TEST(empty_answers_do_not_cause_a_busy_loop),
                EMPTY(a_webhook_is_removed_without_dropping_updates),
                EMPTY(a_webhook_is_removed_at_the_second_attempt_too),
                TEST(the_bots_profile_and_abilities_are_known),
                EMPTY(a_bad_token_stops_with_advice),
                EMPTY(a_404_of_a_proxy_is_not_a_bad_token),
                TEST(a_persistent_second_poller_is_reported),
                TEST(polls_between_conflicts_do_not_hide_a_second_poller),
                TEST(old_conflicts_are_forgotten),
                TEST(a_foreign_webhook_while_polling_is_reported),
                TEST(a_webhook_set_during_a_poll_is_not_another_poller),
                TEST(conflicts_with_webhooks_and_pollers_are_counted_apart),
                TEST(it_reconnects_after_a_failure),
                EMPTY(a_failed_greeting_is_repeated),
                TEST(polling_waits_for_a_rate_limit),
                EMPTY(commands_are_published_only_when_they_change),
                EMPTY(commands_of_our_own_need_no_list),
                EMPTY(one_token_serves_one_adapter),
                EMPTY(a_webhook_is_set_from_the_public_url),
                EMPTY(a_redirected_webhook_is_reported_until_restored),
                EMPTY(a_webhook_that_cannot_be_set_is_not_watched),
                EMPTY(a_webhook_needs_a_public_url),
                cmocka_unit_test(settings_errors_are_explained),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
