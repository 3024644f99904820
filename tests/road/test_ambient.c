/* Ambient and silent turns: the agent reads the channel and rarely posts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../lib/road_rig.h"

static struct rig *ambient_rig(void)
{
        struct rig *g = rig_new();

        g->auto_send = true;
        g->policy.mode = MODE_AMBIENT;
        g->policy.channel_messages = 25;
        g->policy.prompt = "Read the room.";
        return g;
}

static void says(struct rig *g, const char *id, const char *text)
{
        struct incoming in = { .adapter = "react",
                               .platform = "discord",
                               .chat = CHAT_GROUP,
                               .id = id,
                               .text = text };

        rig_receive(g, &in);
}

static void asks(struct rig *g, const char *id, const char *text)
{
        says(g, id, text);
        rig_until(g, &g->run_count, g->run_count + 1);
}

static void the_agent_gets_the_current_channel_history(void **state)
{
        struct rig *g = ambient_rig();
        const struct turn_run *run;

        (void)state;
        g->history[0] = (struct rig_line){ "m1", "11", "Ann", "we should play Catan again", false };
        g->history[1] = (struct rig_line){ "m2", "99", "Bot", "want to lock in a time?", true };
        g->history[2] = (struct rig_line){ "m3", "12", "Bob", "", false };
        g->history[3] = (struct rig_line){ "m4", "12", "Bob", "yes!", false };
        g->history_count = 4;
        asks(g, "m4", "yes!");
        run = g->runs[0].run;
        assert_int_equal(run->mode, MODE_AMBIENT);
        assert_string_equal(run->prompt, "Read the room.");
        /* without the empty message and the input itself */
        assert_int_equal(run->history_count, 2);
        assert_string_equal(run->history[0].role, "user");
        assert_string_equal(run->history[0].name, "discord:11");
        assert_string_equal(run->history[0].display, "Ann");
        assert_string_equal(run->history[0].text, "we should play Catan again");
        assert_string_equal(run->history[1].role, "assistant");
        assert_string_equal(run->inputs[0]->text, "yes!");
        rig_answer(g, 0, "Saturday?");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries WHERE kind = 'send'"), 1);
        assert_string_equal(g->sent[g->sent_count - 1].reply_to, ""); /* not a reply */
        rig_free(g);
}

static void without_channel_history_the_transcript_is_used(void **state)
{
        struct rig *g = ambient_rig();
        struct incoming in = {
                .adapter = "nonce", .guild = "batch", .chat = CHAT_GROUP, .sender_name = "Ann"
        };

        (void)state;
        in.text = "we should play Catan again";
        rig_receive(g, &in);
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, "[SILENT]");
        rig_until_idle(g);
        in.text = "yes!";
        rig_receive(g, &in);
        rig_until(g, &g->run_count, 2);
        assert_int_equal(g->history_fetches, 0);
        assert_int_equal(g->runs[1].run->history_count, 1);
        assert_string_equal(g->runs[1].run->history[0].text, "we should play Catan again");
        rig_answer(g, 1, "Saturday?");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries WHERE kind = 'send'"), 1);
        rig_free(g);
}

static void messages_during_a_turn_become_one_more_turn(void **state)
{
        struct rig *g = ambient_rig();

        (void)state;
        asks(g, "m1", "one"); /* "echo" takes one message a turn otherwise */
        says(g, "m2", "two");
        rig_until_count(g, "turns", 2);
        says(g, "m3", "three");
        says(g, "m4", "four");
        rig_until_count(g, "trigger_log", 4);
        rig_answer(g, 0, "[SILENT]");
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "two+three+four");
        assert_int_equal(g->history_fetches, 2); /* fetched for each turn */
        rig_answer(g, 1, "[SILENT]");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "turns"), 2);
        rig_free(g);
}

static void no_reply_posts_nothing_and_is_recorded(void **state)
{
        static const char *const phrases[] = { "nothing for me" };
        static const char *const silent[] = { "",         " \n",
                                              "[silent]", "No action needed.",
                                              "[SILENT]", "NOTHING for me\n" };
        struct rig *g = ambient_rig();

        (void)state;
        g->policy.no_reply = phrases;
        g->policy.no_reply_count = 1;
        for (unsigned i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
                char id[8];

                snprintf(id, sizeof(id), "m%u", i % 10);
                asks(g, id, "hm");
                rig_answer(g, i, silent[i]);
                rig_until_idle(g);
        }
        assert_int_equal(rig_count(g, "deliveries"), 0);
        assert_int_equal(rig_count(g, "turns WHERE state = 'done'"), 6);
        assert_string_equal(rig_text(g, "status || ': ' || reason FROM trigger_log"),
                            "done: agent 'echo' had nothing to say");
        assert_int_equal(rig_count(g, "transcript WHERE role = 'assistant'"), 0);
        assert_false(g->outcome.answered);
        asks(g, "m9", "hm");
        rig_answer(g, 6, "No action needed, but it is your turn.");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries WHERE kind = 'send'"), 1);
        g->policy.mode = MODE_REPLY; /* posted when the agent was asked */
        asks(g, "n1", "is anything to be done?");
        rig_answer(g, 7, "No action needed.");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries WHERE kind = 'send'"), 2);
        rig_free(g);
}

static void a_silent_rule_runs_the_agent_and_never_posts(void **state)
{
        struct rig *g = ambient_rig();

        (void)state;
        g->policy.mode = MODE_SILENT;
        asks(g, "m1", "hm");
        rig_answer(g, 0, "noted");
        rig_until_idle(g);
        asks(g, "m2", "hm");
        rig_fail(g, 1, ERR_NET, "Sorry.");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries"), 0);
        assert_string_equal(rig_text(g, "status || ': ' || reason FROM trigger_log"),
                            "done: the rule runs agent 'echo' without posting its answer");
        rig_free(g);
}

static void a_removed_rule_does_not_make_a_silent_agent_post(void **state)
{
        struct rig *g = ambient_rig();

        (void)state;
        asks(g, "m1", "hm");
        g->policy = (struct reply_policy){ 0 };
        rig_answer(g, 0, "[SILENT]");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries"), 0);
        rig_free(g);
}

/* Removes the rule of two turns, one running and one queued, and goes on to the second. */
static void remove_rule_while_waiting(struct rig *g, bool restart)
{
        asks(g, "m1", "hm");
        says(g, "m2", "and this");
        rig_until_count(g, "turns WHERE state = 'queued'", 1);
        g->policy = (struct reply_policy){ 0 };
        if (restart)
                rig_restart(g); /* repeats the first */
        else
                rig_answer(g, 0, "[SILENT]");
        rig_until(g, &g->run_count, 2);
        if (!restart)
                return;
        rig_answer(g, 1, "[SILENT]");
        rig_until(g, &g->run_count, 3);
}

static void a_queued_turn_keeps_the_policy_of_a_removed_rule(void **state)
{
        static const char *const phrases[] = { "move along" };

        (void)state;
        for (int restart = 0; restart <= 1; restart++) {
                struct rig *g = ambient_rig();

                g->policy.no_reply = phrases;
                g->policy.no_reply_count = 1;
                remove_rule_while_waiting(g, restart);
                assert_int_equal(g->runs[1 + restart].run->mode, MODE_AMBIENT);
                assert_string_equal(g->runs[1 + restart].run->prompt, "Read the room.");
                assert_int_equal(g->history_fetches, 2 + restart);
                rig_answer(g, 1u + (unsigned)restart, "Move along.");
                rig_until_idle(g);
                assert_int_equal(rig_count(g, "deliveries"), 0);
                assert_int_equal(rig_count(g, "turns WHERE state = 'done'"), 2);
                assert_int_equal(rig_count(g, "turns WHERE reply_policy IS NOT NULL"), 0);
                rig_free(g);
        }
}

static void on_retried(void *arg, const struct error *err)
{
        (void)arg;
        assert_null(err);
}

static void a_retried_turn_keeps_the_policy_of_a_removed_rule(void **state)
{
        struct rig *g = ambient_rig();

        (void)state;
        g->policy.mode = MODE_SILENT;
        asks(g, "m1", "hm");
        rig_fail(g, 0, ERR_NET, "Sorry.");
        rig_until_idle(g);
        g->policy = (struct reply_policy){ 0 };
        rig_restart(g);
        turn_retry(g->road, 1, on_retried, NULL);
        rig_until(g, &g->run_count, 2);
        assert_int_equal(g->runs[1].run->mode, MODE_SILENT);
        rig_answer(g, 1, "noted");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries"), 0);
        rig_free(g);
}

static void unreadable_channel_history_fails_only_its_turn(void **state)
{
        struct rig *g = ambient_rig();

        (void)state;
        g->history_fails = true;
        says(g, "m1", "hm");
        rig_until_count(g, "turns WHERE state = 'failed'", 1);
        assert_string_equal(rig_text(g, "error FROM turns"),
                            "cannot read the channel history: the platform is away");
        assert_int_equal(rig_count(g, "deliveries"), 0);
        assert_int_equal(g->run_count, 0);
        g->history_fails = false;
        asks(g, "m2", "again");
        rig_fail(g, 0, ERR_NET, "Sorry, that went wrong."); /* sends no notice */
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries"), 0);
        rig_free(g);
}

static void a_hanging_platform_does_not_block_the_lane(void **state)
{
        struct rig *g = ambient_rig();

        (void)state;
        g->limits.turn_seconds = 1;
        road_set_limits(g->road, &g->limits);
        g->history_hangs = true;
        says(g, "m1", "one");
        rig_until_count(g, "turns WHERE state = 'failed'", 1);
        rig_send_history(g); /* too late */
        g->history_hangs = false;
        asks(g, "m2", "two");
        rig_free(g);
}

static void a_turn_may_be_cancelled_while_history_is_fetched(void **state)
{
        struct rig *g = ambient_rig();

        (void)state;
        g->history_hangs = true;
        says(g, "m1", "one");
        rig_until(g, &g->history_fetches, 1);
        turn_cancel(g->road, 1, "the test stops it", NULL, NULL);
        rig_send_history(g);
        rig_until_count(g, "turns WHERE state = 'cancelled'", 1);
        assert_int_equal(g->run_count, 0);
        says(g, "m2", "two");
        rig_until(g, &g->history_fetches, 2);
        {
                channel_history_fn *done = g->history_done;
                void *arg = g->history_arg;

                rig_restart(g);
                done(arg, NULL, 0, NULL); /* too late */
        }
        rig_until(g, &g->history_fetches, 3);
        rig_send_history(g);
        rig_until(g, &g->run_count, 1);
        rig_free(g);
}

static void typing_starts_only_with_an_answer(void **state)
{
        struct rig *g = ambient_rig();

        (void)state;
        asks(g, "m1", "hm");
        rig_run_for(g, 600);
        turn_delta(g->runs[0].run, "[SIL", 4);
        rig_settle(g);
        assert_int_equal(g->sent_count, 0);
        turn_delta(g->runs[0].run, "LY] but", 7);
        rig_until(g, &g->sent_count, 1);
        assert_string_equal(g->sent[0].kind, "type");
        rig_answer(g, 0, "[SILLY] but true");
        rig_until_idle(g);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_agent_gets_the_current_channel_history),
                cmocka_unit_test(without_channel_history_the_transcript_is_used),
                cmocka_unit_test(messages_during_a_turn_become_one_more_turn),
                cmocka_unit_test(no_reply_posts_nothing_and_is_recorded),
                cmocka_unit_test(a_silent_rule_runs_the_agent_and_never_posts),
                cmocka_unit_test(a_removed_rule_does_not_make_a_silent_agent_post),
                cmocka_unit_test(a_queued_turn_keeps_the_policy_of_a_removed_rule),
                cmocka_unit_test(a_retried_turn_keeps_the_policy_of_a_removed_rule),
                cmocka_unit_test(unreadable_channel_history_fails_only_its_turn),
                cmocka_unit_test(a_hanging_platform_does_not_block_the_lane),
                cmocka_unit_test(a_turn_may_be_cancelled_while_history_is_fetched),
                cmocka_unit_test(typing_starts_only_with_an_answer),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
