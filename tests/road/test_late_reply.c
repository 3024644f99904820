/* Answers to a turn from outside its run. tests/api/test_turn_replies.c has them with an agent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "../lib/road_rig.h"
#include "road/road_state.h"
#include "road/turn/late_reply.h"

struct reported {
        unsigned calls;
        struct late_reply_result result;
};

static void on_result(void *arg, const struct late_reply_result *result)
{
        struct reported *t = arg;

        t->calls++;
        t->result = *result;
}

static void submit(struct rig *g, int64_t turn, const char *key, const char *text,
                   struct reported *t)
{
        *t = (struct reported){ 0 };
        late_reply_submit(g->road, turn, key, &(struct turn_reply){ .text = text }, on_result, t);
}

/* With a running turn. */
static struct rig *running(void)
{
        struct rig *g = rig_new();

        g->late_replies = (struct late_reply_policy){ .deliver_failed = true, .max_replies = 2 };
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        return g;
}

static void an_answer_from_outside_ends_a_running_turn(void **state)
{
        struct rig *g = running();
        struct reported t;

        (void)state;
        submit(g, 1, NULL, "from outside", &t);
        assert_int_equal(t.calls, 0); /* reported when it is stored */
        rig_until(g, &t.calls, 1);
        assert_int_equal(t.result.error.kind, ERR_NONE);
        assert_int_equal(t.result.outcome, LATE_REPLY_ENDED);
        assert_true(g->runs[0].cancelled);
        assert_string_equal(rig_text(g, "state FROM turns"), "done");
        assert_int_equal(rig_count(g, "deliveries WHERE payload LIKE '%outside%'"), 1);
        rig_free(g);
}

static void a_rule_that_listens_decides_about_late_replies_too(void **state)
{
        static const char *const phrases[] = { "pass" };
        static const struct {
                enum reply_mode mode;
                const char *text, *why;
                size_t phrases;
        } rows[] = {
                { MODE_SILENT, "noted", "the rule posts no answers" },
                { MODE_AMBIENT, "No action needed.", "the agent had nothing to say" },
                { MODE_AMBIENT, "Saturday?", NULL },
                { MODE_REPLY, "`[SILENT]` nobody asked", "the agent had nothing to say" },
                { MODE_REPLY, "No action needed.", NULL },
                { MODE_REPLY, "Pass.", "the agent had nothing to say", 1 },
                { MODE_REPLY, "Pass.", NULL, 0 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct rig *g = rig_new();
                struct reported t;

                g->policy.mode = rows[i].mode;
                g->policy.no_reply = phrases;
                g->policy.no_reply_count = rows[i].phrases;
                g->late_replies = (struct late_reply_policy){ .max_replies = 2 };
                rig_say(g, "j", "c", "echo", "hello", NULL);
                rig_until(g, &g->run_count, 1);
                rig_answer(g, 0, "");
                rig_until_idle(g);
                submit(g, 1, NULL, rows[i].text, &t);
                rig_until(g, &t.calls, 1);
                assert_int_equal(t.result.outcome,
                                 rows[i].why ? LATE_REPLY_DISCARDED : LATE_REPLY_DELIVERED);
                assert_string_equal(t.result.why, rows[i].why ? rows[i].why : "");
                assert_int_equal(rig_number(g, "discarded_replies FROM turns"),
                                 rows[i].why != NULL);
                if (rows[i].why) /* for `why` */
                        assert_string_equal(rig_text(g, "discard_reason FROM turns"), rows[i].why);
                rig_free(g);
        }
}

static bool only_b_replies_late(struct agents *ctx, const char *agent,
                                struct late_reply_policy *out)
{
        (void)ctx;
        *out = (struct late_reply_policy){ .max_replies = 2 };
        return strcmp(agent, "b") == 0;
}

static void on_failed_over(void *arg, bool stored)
{
        (void)arg;
        (void)stored;
}

/* Only the agent that took over may reply late. */
static void a_listening_rule_decides_about_late_replies_after_a_failover(void **state)
{
        struct rig *g = rig_new();
        struct reported t;

        (void)state;
        g->policy.mode = MODE_SILENT;
        g->road->agents.late_replies = only_b_replies_late;
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        turn_failed_over(g->runs[0].run,
                         &(struct turn_failover){ .from = "echo", .to = "b", .why = "it is gone" },
                         on_failed_over, NULL);
        rig_answer(g, 0, "");
        rig_until_idle(g);
        submit(g, 1, NULL, "noted", &t);
        rig_until(g, &t.calls, 1);
        assert_int_equal(t.result.outcome, LATE_REPLY_DISCARDED);
        assert_string_equal(t.result.why, "the rule posts no answers");
        rig_free(g);
}

static void a_reply_to_a_queued_turn_is_refused_for_now(void **state)
{
        struct rig *g = running();
        struct reported t;

        (void)state;
        rig_say(g, "j", "c", "echo", "next", NULL);
        rig_until_count(g, "turns", 2);
        submit(g, 2, NULL, "too early", &t);
        rig_until(g, &t.calls, 1);
        assert_int_equal(t.result.error.kind, ERR_BUSY);
        submit(g, 77, NULL, "x", &t);
        rig_until(g, &t.calls, 1);
        assert_int_equal(t.result.error.kind, ERR_MISSING);
        rig_free(g);
}

static void replies_at_the_same_time_share_the_allowance(void **state)
{
        struct rig *g = running();
        struct reported t[3];

        (void)state;
        rig_answer(g, 0, "the turn's own");
        rig_until_idle(g);
        for (int i = 0; i < 3; i++)
                submit(g, 1, NULL, "later", &t[i]);
        for (int i = 0; i < 3; i++)
                rig_until(g, &t[i].calls, 1);
        assert_int_equal(t[0].result.outcome, LATE_REPLY_DELIVERED);
        assert_true(t[0].result.delivery > 0);
        assert_int_equal(t[1].result.error.kind, ERR_CONFLICT);
        assert_int_equal(t[2].result.error.kind, ERR_CONFLICT);
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries WHERE reply_of = 1"), 1);
        rig_free(g);
}

static void a_repeated_key_gives_the_same_delivery(void **state)
{
        struct rig *g = running();
        struct reported first, again;

        (void)state;
        rig_fail(g, 0, ERR_TIMEOUT, "too slow");
        rig_until_idle(g);
        submit(g, 1, "a", "here it is", &first);
        rig_until(g, &first.calls, 1);
        assert_int_equal(first.result.outcome, LATE_REPLY_DELIVERED);
        rig_restart(g);
        submit(g, 1, "a", "here it is", &again);
        rig_until(g, &again.calls, 1);
        assert_int_equal(again.result.outcome, LATE_REPLY_DUPLICATE);
        assert_int_equal(again.result.delivery, first.result.delivery);
        rig_free(g);
}

static void the_key_of_an_answer_that_ended_its_turn_is_known(void **state)
{
        struct rig *g = running();
        struct reported first, again;

        (void)state;
        submit(g, 1, "a", "here it is", &first);
        rig_until(g, &first.calls, 1);
        assert_int_equal(first.result.outcome, LATE_REPLY_ENDED);
        submit(g, 1, "a", "here it is", &again);
        rig_until(g, &again.calls, 1);
        assert_int_equal(again.result.outcome, LATE_REPLY_DUPLICATE);
        assert_int_equal(rig_count(g, "deliveries"), 1);
        rig_free(g);
}

static void on_done(void *arg, const struct error *err)
{
        assert_null(err);
        (*(unsigned *)arg)++;
}

static void a_retried_turn_may_end_with_a_known_key(void **state)
{
        struct rig *g = running();
        struct reported first, again;
        unsigned retried = 0;

        (void)state;
        rig_fail(g, 0, ERR_TIMEOUT, NULL);
        rig_until_idle(g);
        submit(g, 1, "a", "here it is", &first);
        rig_until(g, &first.calls, 1);
        turn_retry(g->road, 1, on_done, &retried);
        rig_until(g, &retried, 1);
        rig_until(g, &g->run_count, 2);
        submit(g, 1, "a", "here it is", &again);
        rig_until(g, &again.calls, 1);
        assert_int_equal(again.result.outcome, LATE_REPLY_ENDED);
        assert_int_equal(rig_count(g, "deliveries"), 2);
        assert_int_equal(rig_count(g, "deliveries WHERE request_key IS NOT NULL"), 1);
        rig_free(g);
}

static void replies_to_failed_or_cancelled_turns_may_be_discarded(void **state)
{
        struct rig *g = running();
        struct reported t;
        unsigned cancelled = 0;

        (void)state;
        g->late_replies.deliver_failed = false;
        rig_fail(g, 0, ERR_TIMEOUT, NULL);
        rig_until_idle(g);
        submit(g, 1, NULL, "too late", &t);
        rig_until(g, &t.calls, 1);
        assert_int_equal(t.result.outcome, LATE_REPLY_DISCARDED);
        assert_non_null(strstr(t.result.why, "late: discard"));
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 2);
        turn_cancel(g->road, 2, NULL, on_done, &cancelled);
        rig_until(g, &cancelled, 1);
        submit(g, 2, NULL, "not wanted", &t);
        rig_until(g, &t.calls, 1);
        assert_int_equal(t.result.outcome, LATE_REPLY_DISCARDED);
        assert_string_equal(t.result.why, "the turn was cancelled");
        assert_int_equal(rig_count(g, "deliveries"), 0);
        rig_free(g);
}

static void replies_without_a_policy_are_discarded_and_journaled(void **state)
{
        struct rig *g = running();
        struct reported t;

        (void)state;
        g->late_replies.max_replies = 0;
        rig_answer(g, 0, "done");
        rig_until_idle(g);
        submit(g, 1, NULL, "more", &t);
        rig_until(g, &t.calls, 1);
        assert_int_equal(t.result.outcome, LATE_REPLY_DISCARDED);
        assert_int_equal(rig_count(g, "journal WHERE type = 'turn.reply'"), 1);
        rig_free(g);
}

static void an_overdue_response_is_delivered_once(void **state)
{
        struct turn_reply reply = { .text = "better late" };
        struct rig *g = running();

        (void)state;
        rig_fail(g, 0, ERR_TIMEOUT, "too slow");
        rig_until_idle(g);
        rig_update(g,
                   "journal SET payload = '{\"id\":\"m\",\"traceparent\":\"00-' || trace ||"
                   " '-b7ad6b7169203331-00\"}' WHERE type = 'message.received'",
                   0, 0);
        for (int i = 1; i <= 2; i++) {
                late_reply_overdue(g->road, 1, &reply);
                rig_settle(g);
        }
        rig_until_count(g, "journal WHERE type = 'turn.reply'", 1);
        assert_int_equal(rig_count(g, "deliveries WHERE payload LIKE '%better late%'"), 1);
        assert_int_equal(rig_count(g, "deliveries WHERE unsampled = 1 AND reply_of = 1"), 1);
        rig_free(g);
}

static void closing_the_road_reports_open_replies_once(void **state)
{
        struct rig *g = running();
        struct reported running_turn, ended_turn;

        (void)state;
        rig_say(g, "j", "d", "echo", "another", NULL);
        rig_until(g, &g->run_count, 2);
        rig_answer(g, 1, "done");
        rig_until_count(g, "turns WHERE state = 'done'", 1);
        submit(g, 1, NULL, "a", &running_turn);
        submit(g, 2, NULL, "b", &ended_turn);
        rig_restart(g);
        assert_int_equal(running_turn.calls, 1);
        rig_until(g, &ended_turn.calls, 1);
        assert_int_equal(ended_turn.calls, 1);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_answer_from_outside_ends_a_running_turn),
                cmocka_unit_test(a_rule_that_listens_decides_about_late_replies_too),
                cmocka_unit_test(a_listening_rule_decides_about_late_replies_after_a_failover),
                cmocka_unit_test(a_reply_to_a_queued_turn_is_refused_for_now),
                cmocka_unit_test(replies_at_the_same_time_share_the_allowance),
                cmocka_unit_test(a_repeated_key_gives_the_same_delivery),
                cmocka_unit_test(the_key_of_an_answer_that_ended_its_turn_is_known),
                cmocka_unit_test(a_retried_turn_may_end_with_a_known_key),
                cmocka_unit_test(replies_to_failed_or_cancelled_turns_may_be_discarded),
                cmocka_unit_test(replies_without_a_policy_are_discarded_and_journaled),
                cmocka_unit_test(an_overdue_response_is_delivered_once),
                cmocka_unit_test(closing_the_road_reports_open_replies_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
