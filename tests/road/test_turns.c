/* From an event to the end of its turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/road_rig.h"
#include "base/id.h"
#include "base/mem.h"

static void an_event_is_acknowledged_and_answered_once(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "echo", "hello", NULL);
        assert_int_equal(g->acks, 0); /* not before the call returns */
        rig_until(g, &g->run_count, 1);
        assert_int_equal(g->acks, 1);
        assert_string_equal(g->runs[0].text, "hello");
        rig_answer(g, 0, "hi there");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries WHERE state = 'sent'"), 1);
        assert_int_equal(rig_count(g, "journal WHERE type = 'message.sent'"), 1);
        assert_string_equal(rig_text(g, "state FROM turns"), "done");
        assert_string_equal(rig_text(g, "status FROM trigger_log"), "done");
        rig_free(g);
}

static void an_answer_in_parts_is_one_transcript_line(void **state)
{
        static const char *const parts[] = { "first", "second" };
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        turn_finish(
                g->runs[0].run,
                &(struct turn_reply){ .text = "first\n\nsecond", .parts = parts, .part_count = 2 });
        g->runs[0].run = NULL;
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries WHERE state = 'sent'"), 2);
        assert_int_equal(rig_count(g, "deliveries WHERE payload LIKE '%\"second\"%'"), 1);
        assert_string_equal(rig_text(g, "text FROM transcript WHERE role = 'assistant'"),
                            "first\n\nsecond");
        rig_free(g);
}

static void event_turn_and_deliveries_share_a_trace_id(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_answer = g->auto_send = true;
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until(g, &g->sent_count, 1);
        rig_until_idle(g);
        assert_int_equal(rig_number(g, "count(DISTINCT trace) FROM (SELECT trace FROM journal"
                                       " UNION ALL SELECT trace FROM turns"
                                       " UNION ALL SELECT trace FROM deliveries"
                                       " UNION ALL SELECT trace FROM trigger_log) AS t"),
                         1);
        assert_string_equal(rig_text(g, "trace FROM deliveries"), g->last_trace);
        rig_free(g);
}

static void the_same_key_is_one_turn_after_a_restart_too(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_answer = g->auto_send = true;
        for (int i = 0; i < 3; i++)
                rig_say(g, "j", "c", "echo", "once", "same");
        rig_until_idle(g);
        rig_restart(g);
        rig_say(g, "j", "c", "echo", "once", "same");
        rig_say(g, "j2", "c", "echo", "another adapter", "same");
        rig_until(g, &g->acks, 5);
        rig_until_idle(g);
        assert_int_equal(g->duplicates, 3);
        assert_int_equal(rig_count(g, "turns"), 2);
        rig_free(g);
}

static void a_skipped_event_records_its_reason(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "echo", "skip me", NULL);
        rig_until(g, &g->acks, 1);
        rig_until_idle(g);
        assert_int_equal(g->run_count, 0);
        assert_string_equal(rig_text(g, "status || ': ' || reason FROM trigger_log"),
                            "skipped: the test says so");
        rig_free(g);
}

static void a_lane_runs_one_turn_at_a_time_in_order(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "echo", "one", NULL);
        rig_say(g, "j", "c", "echo", "two", NULL);
        rig_say(g, "j", "d", "echo", "elsewhere", NULL);
        rig_until(g, &g->run_count, 2);
        rig_settle(g);
        assert_int_equal(g->run_count, 2); /* "two" waits for "one"; the other channel does not */
        assert_string_equal(g->runs[0].text, "one");
        assert_string_equal(g->runs[1].text, "elsewhere");
        rig_answer(g, 0, "1");
        rig_until(g, &g->run_count, 3);
        assert_string_equal(g->runs[2].text, "two");
        rig_answer(g, 1, "e");
        rig_answer(g, 2, "2");
        rig_until_idle(g);
        rig_free(g);
}

static void a_batching_agent_gets_waiting_messages_in_one_turn(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "batch", "one", NULL);
        rig_until(g, &g->run_count, 1);
        rig_say(g, "j", "c", "batch", "two", NULL);
        rig_say(g, "j", "c", "batch", "three", NULL);
        rig_until(g, &g->acks, 3);
        rig_answer(g, 0, "1");
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "two+three");
        assert_int_equal(g->runs[1].run->history_count, 2);
        assert_string_equal(g->runs[1].run->history[0].text, "one");
        assert_string_equal(g->runs[1].run->history[1].role, "assistant");
        rig_answer(g, 1, "2 and 3");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "trigger_log WHERE status = 'done'"), 3);
        rig_free(g);
}

static void the_cost_of_a_turn_counts_once(void **state)
{
        struct rig *g = rig_new();
        struct turn_run *run;

        (void)state;
        rig_say(g, "j", "c", "batch", "one", NULL);
        rig_until(g, &g->run_count, 1);
        rig_say(g, "j", "c", "batch", "two", NULL);
        rig_say(g, "j", "c", "batch", "three", NULL);
        rig_until(g, &g->acks, 3);
        rig_answer(g, 0, "1");
        rig_until(g, &g->run_count, 2);
        run = g->runs[1].run;
        assert_int_equal(run->input_count, 2);
        turn_finish(run,
                    &(struct turn_reply){
                            .text = "2", .tokens_in = 7, .tokens_cached = 6, .cost_microusd = 50 });
        rig_until_idle(g);
        assert_int_equal(rig_number(g, "sum(tokens_in) FROM trigger_log"), 7);
        assert_int_equal(rig_number(g, "sum(tokens_cached) FROM trigger_log"), 6);
        assert_int_equal(rig_number(g, "sum(tokens_cached) FROM turns"), 6);
        assert_int_equal(rig_number(g, "sum(cost_microusd) FROM trigger_log"), 50);
        rig_free(g);
}

static void a_burst_is_one_turn_across_a_restart(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->debounce_ms = 300;
        g->debounce_max_ms = 1000;
        rig_say(g, "j", "c", "echo", "one", NULL);
        rig_say(g, "j", "c", "echo", "two", NULL);
        rig_until(g, &g->acks, 2);
        rig_settle(g);
        assert_int_equal(g->run_count, 0);
        rig_restart(g);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "one+two");
        rig_free(g);
}

static void says(struct rig *g, const char *who, const char *text)
{
        struct incoming in = { .channel = "c", .guild = "batch", .sender_id = who, .text = text };

        rig_receive(g, &in);
}

static void two_people_in_one_window_are_two_turns(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->debounce_ms = 1000; /* longer than the restart takes */
        g->debounce_max_ms = 5000;
        says(g, "ann", "ann 1");
        says(g, "bob", "bob 1");
        says(g, "ann", "ann 2");
        rig_until_count(g, "trigger_log", 3);
        rig_restart(g); /* keeps the senders apart */
        says(g, "bob", "bob 2");
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "ann 1+ann 2");
        says(g, "cid", "cid 1"); /* joins the queued turn */
        rig_until_count(g, "trigger_log", 5);
        rig_answer(g, 0, "to ann");
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "bob 1+bob 2+cid 1");
        rig_answer(g, 1, "to the others");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "turns"), 2);
        rig_free(g);
}

static void no_message_joins_a_turn_before_its_senders_last(void **state)
{
        static const struct {
                const char *who, *text;
                enum reply_mode mode;
        } rows[] = {
                { "ann", "a1", MODE_AMBIENT }, { "bob", "b1", MODE_REPLY },
                { "ann", "a2", MODE_REPLY },   { "bob", "b2", MODE_REPLY },
                { "ann", "a3", MODE_AMBIENT },
        };
        struct rig *g = rig_new();

        (void)state;
        says(g, "eve", "work");
        rig_until(g, &g->run_count, 1);
        for (unsigned i = 0; i < COUNT(rows); i++) {
                g->policy.mode = rows[i].mode;
                says(g, rows[i].who, rows[i].text);
                rig_until_count(g, "trigger_log", 2 + i);
        }
        g->auto_answer = true;
        rig_answer(g, 0, "done");
        rig_until(g, &g->run_count, 4);
        assert_string_equal(g->runs[1].text, "a1");
        assert_string_equal(g->runs[2].text, "b1+a2+b2");
        assert_string_equal(g->runs[3].text, "a3");
        rig_until_idle(g);
        rig_free(g);
}

static void an_endless_burst_is_cut_by_the_maximum_wait(void **state)
{
        struct rig *g = rig_new();
        char text[16];
        unsigned said = 0;

        (void)state;
        g->debounce_ms = 100;
        g->debounce_max_ms = 300;
        while (g->run_count == 0 && said < 200) {
                snprintf(text, sizeof(text), "%u", said++);
                rig_say(g, "j", "c", "echo", text, NULL);
                rig_run_for(g, 10);
        }
        assert_true(g->run_count == 1 && said < 200);
        rig_free(g);
}

static void an_interrupted_turn_is_repeated_if_the_agent_allows(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "hello");
        assert_int_equal(g->runs[1].attempt, 2);
        rig_answer(g, 1, "hi");
        rig_until(g, &g->run_count, 2);
        rig_settle(g);
        assert_int_equal(rig_count(g, "deliveries"), 1);
        rig_free(g);
}

static void turns_of_an_earlier_run_come_first(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "echo", "one", NULL);
        rig_until(g, &g->run_count, 1);
        rig_restart(g);
        rig_say(g, "j", "c", "echo", "two", NULL);
        /* wait until it is stored without running the loop */
        for (int i = 0; i < 100000 && rig_count(g, "journal WHERE type = 'message.received'") < 2;
             i++)
                sched_yield();
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "one");
        rig_answer(g, 1, "1");
        rig_until(g, &g->run_count, 3);
        assert_string_equal(g->runs[2].text, "two");
        rig_free(g);
}

static void an_unrepeatable_turn_is_not_run_again(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "once", "pay the bill", NULL);
        rig_until(g, &g->run_count, 1);
        rig_restart(g);
        rig_settle(g);
        assert_int_equal(g->run_count, 1);
        assert_string_equal(rig_text(g, "state FROM turns"), "failed");
        assert_non_null(strstr(rig_text(g, "payload FROM deliveries"), "interrupted"));
        rig_free(g);
}

static void a_turn_interrupted_too_often_does_not_block_its_lane(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->limits.turn_attempts = 2;
        rig_say(g, "j", "c", "echo", "poison", NULL);
        rig_say(g, "j", "c", "echo", "next", NULL);
        rig_until(g, &g->run_count, 1);
        rig_until(g, &g->acks, 2);
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        rig_restart(g);
        rig_until(g, &g->run_count, 3);
        assert_string_equal(g->runs[2].text, "next");
        assert_string_equal(rig_text(g, "state FROM turns WHERE id = 1"), "failed");
        rig_free(g);
}

static void a_hanging_agent_is_stopped_with_a_notice(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->limits.turn_seconds = 1;
        road_set_limits(g->road, &g->limits);
        rig_say(g, "j", "c", "echo", "hang", NULL);
        rig_say(g, "j", "c", "echo", "next", NULL);
        rig_until(g, &g->run_count, 2); /* the lane goes on */
        assert_true(g->runs[0].cancelled);
        assert_string_equal(rig_text(g, "error_kind FROM turns WHERE id = 1"), "timeout");
        assert_non_null(strstr(rig_text(g, "payload FROM deliveries WHERE turn = 1"), "too long"));
        rig_free(g);
}

static void on_done(void *arg, const struct error *err)
{
        int *outcome = arg;

        *outcome = err ? (int)err->kind : 1000;
}

static void running_and_queued_turns_can_be_cancelled(void **state)
{
        struct rig *g = rig_new();
        int first = 0, second = 0, missing = 0;

        (void)state;
        rig_say(g, "j", "c", "echo", "one", NULL);
        rig_say(g, "j", "c", "echo", "two", NULL);
        rig_say(g, "j", "c", "echo", "three", NULL);
        rig_until(g, &g->run_count, 1);
        rig_until(g, &g->acks, 3);
        rig_settle(g);
        turn_cancel(g->road, 2, "the user said so", on_done, &second);
        turn_cancel(g->road, 1, "the user said so", on_done, &first);
        turn_cancel(g->road, 99, "nobody", on_done, &missing);
        rig_until(g, &g->run_count, 2);
        rig_settle(g);
        assert_string_equal(g->runs[1].text, "three");
        assert_int_equal(first, 1000);
        assert_int_equal(second, 1000);
        assert_int_equal(missing, ERR_MISSING);
        assert_int_equal(rig_count(g, "turns WHERE state = 'cancelled'"), 2);
        assert_int_equal(rig_count(g, "deliveries"), 0);
        rig_free(g);
}

static void a_failed_turn_sends_a_notice_and_can_be_retried(void **state)
{
        struct rig *g = rig_new();
        int outcome = 0;

        (void)state;
        rig_say(g, "j", "c", "batch", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        rig_fail(g, 0, ERR_NET, "Sorry, no answer.");
        rig_until_idle(g);
        assert_string_equal(rig_text(g, "state || ' ' || error_kind FROM turns"), "failed net");
        assert_int_equal(rig_count(g, "deliveries"), 1);
        assert_string_equal(rig_text(g, "role || ': ' || text FROM transcript"), "user: hello");
        turn_retry(g->road, 1, on_done, &outcome);
        rig_until(g, &g->run_count, 2);
        assert_int_equal(outcome, 1000);
        assert_string_equal(g->runs[1].text, "hello");
        assert_int_equal(g->runs[1].run->history_count, 0); /* it is not its own history */
        rig_answer(g, 1, "now it works");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "transcript WHERE role = 'user'"), 1);
        assert_int_equal(rig_count(g, "transcript"), 2);
        turn_retry(g->road, 1, on_done, &outcome);
        rig_settle(g);
        assert_int_equal(outcome, ERR_CONFLICT);
        rig_free(g);
}

static void a_failed_question_is_in_the_history_of_the_next(void **state)
{
        static const struct {
                enum error_kind kind;
                unsigned lines;
        } rows[] = {
                { ERR_NET, 1 },
                { ERR_TIMEOUT, 1 },
                { ERR_LIMIT, 1 },
                { ERR_INVALID, 0 }, /* it would be refused again with every later question */
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct rig *g = rig_new();

                rig_say(g, "j", "c", "batch", "what is the capital of France?", NULL);
                rig_until(g, &g->run_count, 1);
                rig_fail(g, 0, rows[i].kind, "Sorry, no answer.");
                rig_until_idle(g);
                rig_say(g, "j", "c", "batch", "and its river?", NULL);
                rig_until(g, &g->run_count, 2);
                assert_int_equal(g->runs[1].run->history_count, rows[i].lines);
                if (rows[i].lines > 0)
                        assert_string_equal(g->runs[1].run->history[0].text,
                                            "what is the capital of France?");
                rig_free(g);
        }
}

/* A crash, an agent that cannot repeat the turn: the question counts as well. */
static void a_question_given_up_is_in_the_history_of_the_next(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "once", "first", NULL);
        rig_until(g, &g->run_count, 1);
        rig_restart(g);
        rig_until_idle(g);
        assert_string_equal(rig_text(g, "state FROM turns"), "failed");
        assert_string_equal(rig_text(g, "role || ': ' || text FROM transcript"), "user: first");
        rig_free(g);
}

static void an_answer_after_the_end_of_its_turn_is_ignored(void **state)
{
        struct rig *g = rig_new();
        struct turn_reply late = { .text = "late" };
        struct turn_run *run;

        (void)state;
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        run = g->runs[0].run;
        rig_answer(g, 0, "first");
        /* the end of the turn is being stored */
        turn_finish(run, &late);
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries"), 1);
        rig_free(g);
}

static void running_turns_are_limited_and_no_lane_starves(void **state)
{
        struct rig *g = rig_new();
        char channel[16];

        (void)state;
        g->limits.running_turns = 3;
        road_set_limits(g->road, &g->limits);
        for (int i = 0; i < 10; i++) {
                snprintf(channel, sizeof(channel), "c%d", i);
                rig_say(g, "j", channel, "echo", "hi", NULL);
        }
        rig_until(g, &g->acks, 10);
        rig_settle(g);
        assert_int_equal(g->run_count, 3);
        for (unsigned i = 0; i < 10; i++) {
                rig_until(g, &g->run_count, i + 1);
                rig_answer(g, i, "ok");
        }
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "turns WHERE state = 'done'"), 10);
        rig_free(g);
}

static void turns_that_waited_for_the_outbox_then_wait_for_a_place(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->limits.running_turns = g->limits.open_deliveries = 1;
        road_set_limits(g->road, &g->limits);
        g->adapters_down = g->auto_send = true;
        rig_say(g, "x", "a", "echo", "fills the outbox", NULL);
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, "an answer");
        rig_until_count(g, "deliveries WHERE state = 'queued'", 1);
        rig_say(g, "j", "c", "echo", "takes the place", NULL);
        rig_until(g, &g->run_count, 2);
        rig_say(g, "x", "b", "echo", "first", NULL);
        rig_say(g, "x", "c", "echo", "second", NULL);
        rig_until(g, &g->acks, 4);
        rig_settle(g);
        g->adapters_down = false;
        outbox_wake(g->road, "x");
        rig_until(g, &g->sent_count, 1);
        rig_settle(g);
        assert_int_equal(g->run_count, 2);
        for (unsigned i = 1; i < 4; i++) {
                rig_until(g, &g->run_count, i + 1);
                rig_answer(g, i, ""); /* no delivery whose end would make room */
        }
        rig_until_idle(g);
        assert_string_equal(g->runs[3].text, "second");
        rig_free(g);
}

static void limits_refuse_with_a_reason_and_lose_nothing(void **state)
{
        struct rig *g = rig_new();
        char big[64];

        (void)state;
        g->limits.mailbox = 2;
        g->limits.text_bytes = 32;
        g->limits.open_turns = 5;
        road_set_limits(g->road, &g->limits);
        memset(big, 'x', sizeof(big));
        big[40] = '\0';
        rig_say(g, "j", "c", "echo", big, NULL);
        rig_until(g, &g->refusals, 1);
        assert_int_equal(g->last_error.kind, ERR_INVALID);
        assert_non_null(strstr(g->last_error.text, "limits.textBytes"));

        rig_say(g, "j", "c", "echo", "runs", NULL);
        rig_until(g, &g->run_count, 1);
        for (int i = 0; i < 3; i++)
                rig_say(g, "j", "c", "echo", "waits", NULL);
        rig_until(g, &g->acks, 4);
        rig_settle(g);
        assert_non_null(strstr(rig_text(g, "reason FROM trigger_log WHERE status = 'skipped'"),
                               "limits.mailbox"));
        for (int i = 0; i < 2; i++)
                rig_say(g, "j", i ? "e" : "d", "echo", "elsewhere", NULL);
        rig_until(g, &g->acks, 6);
        rig_settle(g);
        rig_say(g, "j", "f", "echo", "too many", NULL);
        rig_until(g, &g->refusals, 2);
        assert_int_equal(g->last_error.kind, ERR_LIMIT);
        assert_non_null(strstr(g->last_error.text, "limits.openTurns"));
        rig_free(g);
}

static void a_turn_that_starts_leaves_the_mailbox(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->limits.mailbox = 1;
        road_set_limits(g->road, &g->limits);
        rig_say(g, "j", "c", "echo", "one", NULL);
        rig_until(g, &g->run_count, 1);
        for (unsigned i = 1; i < 4; i++) {
                rig_say(g, "j", "c", "echo", "another", NULL);
                rig_until_count(g, "turns WHERE state = 'queued'", 1);
                rig_answer(g, i - 1, "done");
                rig_until(g, &g->run_count, i + 1);
        }
        assert_int_equal(rig_count(g, "trigger_log WHERE status = 'skipped'"), 0);
        rig_free(g);
}

static void history_is_limited_to_a_number_of_lines(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->limits.history_messages = 3;
        road_set_limits(g->road, &g->limits);
        for (unsigned i = 0; i < 4; i++) {
                rig_say(g, "j", "c", "batch", "hello", NULL);
                rig_until(g, &g->run_count, i + 1);
                assert_int_equal(g->runs[i].run->history_count, i < 2 ? 2 * i : 3);
                rig_answer(g, i, "hi");
                rig_until_idle(g);
        }
        rig_free(g);
}

/* ---- random interleavings ---- */

#define LANES    6
#define MESSAGES 120

#define SENT     "FROM journal WHERE type = 'message.sent' ORDER BY seq"

/* Answers look like "re:3+4": those of a channel must name its messages in order, each once. */
static void check_order(struct rig *g)
{
        char channels[4096], texts[4096], *c = channels, *t = texts, *channel, *text, *number;
        int expected[LANES] = { 0 };

        snprintf(channels, sizeof(channels), "%s", rig_list(g, "channel " SENT));
        snprintf(texts, sizeof(texts), "%s", rig_members(g, "payload " SENT, "text"));
        while ((channel = strsep(&c, ",")) && (text = strsep(&t, ","))) {
                long lane = strtol(channel + strspn(channel, " c"), NULL, 10);

                text += strspn(text, " re:");
                while ((number = strsep(&text, "+")))
                        assert_int_equal(strtol(number, NULL, 10), expected[lane]++);
        }
        for (int i = 0; i < LANES; i++)
                assert_int_equal(expected[i], MESSAGES / LANES);
}

static void random_interleavings_keep_order_and_answer_each_once(void **state)
{
        const char *given = getenv("SEED");
        unsigned seed =
                given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)id_random_below(1000000);
        struct rig *g = rig_new();
        int said[LANES] = { 0 }, total = 0, restarts = 0;

        (void)state;
        print_message("SEED=%u\n", seed);
        g->limits.turn_attempts = 100; /* more than restarts */
        road_set_limits(g->road, &g->limits);
        srand(seed);
        while (total < MESSAGES) {
                int what = rand() % 10;

                if (what < 5 && total < MESSAGES) {
                        int c = rand() % LANES;
                        char channel[8], text[8];

                        if (said[c] == MESSAGES / LANES)
                                continue;
                        snprintf(channel, sizeof(channel), "c%d", c);
                        snprintf(text, sizeof(text), "%d", said[c]++);
                        g->debounce_ms = rand() % 3 ? 0 : rand() % 8;
                        g->debounce_max_ms = 20;
                        rig_say(g, "j", channel, c % 2 ? "echo" : "batch", text, NULL);
                        total++;
                } else if (what < 8) {
                        unsigned i = g->run_count ? (unsigned)rand() % g->run_count : 0;

                        if (g->run_count && g->runs[i].run) {
                                char text[300];

                                snprintf(text, sizeof(text), "re:%s", g->runs[i].text);
                                rig_answer(g, i, text);
                        }
                } else if (what == 8 && restarts < 8 && rand() % 10 == 0) {
                        /* unacknowledged messages may be lost */
                        rig_until(g, &g->acks, (unsigned)total);
                        rig_restart(g);
                        restarts++;
                } else {
                        rig_run_for(g, rand() % 6);
                }
        }
        g->auto_answer = true;
        for (unsigned i = 0; i < g->run_count; i++) {
                if (g->runs[i].run) {
                        char text[300];

                        snprintf(text, sizeof(text), "re:%s", g->runs[i].text);
                        rig_answer(g, i, text);
                }
        }
        rig_until(g, &g->acks, MESSAGES);
        rig_until_idle(g);
        check_order(g);
        rig_free(g);
}

static void on_failed_over(void *arg, bool stored)
{
        *(unsigned *)arg += stored;
}

/* Until it is stored. */
static void fail_over(struct rig *g, unsigned run, const char *from, const char *to)
{
        const struct turn_failover how = { .from = from,
                                           .to = to,
                                           .why = "it is down",
                                           .tokens_in = 10,
                                           .tokens_out = 1,
                                           .cost_microusd = 100 };
        unsigned stored = 0;

        assert_true(turn_failed_over(g->runs[run].run, &how, on_failed_over, &stored));
        rig_until(g, &stored, 1);
}

static void the_end_of_a_turn_names_the_agent_that_took_over(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        fail_over(g, 0, "echo", "second");
        fail_over(g, 0, "second", "third");
        turn_finish(g->runs[0].run, &(struct turn_reply){ .text = "hi", .tokens_in = 5 });
        g->runs[0].run = NULL;
        rig_until_idle(g);
        assert_string_equal(rig_text(g, "agent FROM turns"), "echo"); /* the decision's */
        assert_string_equal(rig_text(g, "answered_by FROM turns"), "third");
        assert_string_equal(
                rig_members(g, "payload FROM journal WHERE type = 'turn.done'", "agent"), "third");
        assert_string_equal(rig_text(g, "name FROM transcript WHERE role = 'assistant'"), "third");
        assert_int_equal(rig_number(g, "tokens_in FROM turns"), 25);
        assert_int_equal(rig_number(g, "cost_microusd FROM trigger_log"), 200);
        assert_int_equal(rig_count(g, "turns WHERE failed_agents LIKE"
                                      " '[{\"agent\":\"echo\",\"error\":\"it is down\",%"
                                      "\"agent\":\"second\",%]'"),
                         1);
        rig_free(g);
}

static void a_turn_goes_on_with_the_agent_that_took_over(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        fail_over(g, 0, "echo", "batch");
        assert_int_equal(rig_count(g, "turns WHERE state = 'running' AND answered_by = 'batch'"
                                      " AND failed_agents LIKE '[{\"agent\":\"echo\",%}]'"),
                         1);
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].run->goes_on_with, "batch");
        fail_over(g, 1, "batch", "third");
        rig_answer(g, 1, "hi");
        rig_until_idle(g);
        assert_string_equal(rig_text(g, "answered_by FROM turns"), "third");
        assert_int_equal(rig_count(g, "turns WHERE failed_agents LIKE '[{\"agent\":\"echo\",%},"
                                      "{\"agent\":\"batch\",%}]'"),
                         1);
        assert_int_equal(rig_number(g, "cost_microusd FROM turns"), 200);
        rig_free(g);
}

/* The first agent might do it again. */
static void a_turn_ends_if_the_agent_that_took_over_cannot_go_on(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        fail_over(g, 0, "echo", "once");
        rig_restart(g);
        rig_until_idle(g);
        assert_int_equal(g->run_count, 1);
        assert_int_equal(rig_count(g, "turns WHERE state = 'failed' AND answered_by = 'once'"), 1);
        rig_free(g);
}

/* Stopped by the road, not by the agent: what happened before it is not lost. */
static void a_deadline_names_the_agent_that_took_over(void **state)
{
        struct rig *g = rig_new();
        int outcome = 0;

        (void)state;
        g->limits.turn_seconds = 1;
        road_set_limits(g->road, &g->limits);
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        fail_over(g, 0, "echo", "second");
        rig_until_idle(g);
        assert_string_equal(rig_text(g, "answered_by FROM turns"), "second");
        assert_int_equal(rig_count(g, "turns WHERE state = 'failed' AND cost_microusd = 100"
                                      " AND error LIKE 'agent ''second'' did not answer%'"),
                         1);
        turn_retry(g->road, 1, on_done, &outcome);
        rig_until(g, &g->run_count, 2);
        assert_int_equal(rig_count(g, "turns WHERE answered_by IS NULL"), 1);
        rig_free(g);
}

static void a_duration_is_that_of_the_run(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->debounce_ms = 300;
        g->auto_answer = true;
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->acks, 1);
        rig_until_idle(g);
        assert_true(rig_number(g, "started_ms - created_ms FROM turns") >= 290);
        assert_true(rig_number(g, "l.duration_ms - (t.ended_ms - t.started_ms)"
                                  " FROM trigger_log l JOIN turns t ON t.id = l.turn") <= 0);
        assert_non_null(strstr(rig_text(g, "payload FROM journal WHERE type = 'turn.done'"),
                               "\"waitMs\":"));
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_event_is_acknowledged_and_answered_once),
                cmocka_unit_test(an_answer_in_parts_is_one_transcript_line),
                cmocka_unit_test(event_turn_and_deliveries_share_a_trace_id),
                cmocka_unit_test(the_same_key_is_one_turn_after_a_restart_too),
                cmocka_unit_test(a_skipped_event_records_its_reason),
                cmocka_unit_test(a_lane_runs_one_turn_at_a_time_in_order),
                cmocka_unit_test(a_batching_agent_gets_waiting_messages_in_one_turn),
                cmocka_unit_test(the_cost_of_a_turn_counts_once),
                cmocka_unit_test(a_burst_is_one_turn_across_a_restart),
                cmocka_unit_test(two_people_in_one_window_are_two_turns),
                cmocka_unit_test(no_message_joins_a_turn_before_its_senders_last),
                cmocka_unit_test(an_endless_burst_is_cut_by_the_maximum_wait),
                cmocka_unit_test(an_interrupted_turn_is_repeated_if_the_agent_allows),
                cmocka_unit_test(turns_of_an_earlier_run_come_first),
                cmocka_unit_test(an_unrepeatable_turn_is_not_run_again),
                cmocka_unit_test(a_turn_interrupted_too_often_does_not_block_its_lane),
                cmocka_unit_test(a_hanging_agent_is_stopped_with_a_notice),
                cmocka_unit_test(the_end_of_a_turn_names_the_agent_that_took_over),
                cmocka_unit_test(a_turn_goes_on_with_the_agent_that_took_over),
                cmocka_unit_test(a_turn_ends_if_the_agent_that_took_over_cannot_go_on),
                cmocka_unit_test(a_deadline_names_the_agent_that_took_over),
                cmocka_unit_test(a_duration_is_that_of_the_run),
                cmocka_unit_test(running_and_queued_turns_can_be_cancelled),
                cmocka_unit_test(a_failed_turn_sends_a_notice_and_can_be_retried),
                cmocka_unit_test(a_failed_question_is_in_the_history_of_the_next),
                cmocka_unit_test(a_question_given_up_is_in_the_history_of_the_next),
                cmocka_unit_test(an_answer_after_the_end_of_its_turn_is_ignored),
                cmocka_unit_test(running_turns_are_limited_and_no_lane_starves),
                cmocka_unit_test(turns_that_waited_for_the_outbox_then_wait_for_a_place),
                cmocka_unit_test(limits_refuse_with_a_reason_and_lose_nothing),
                cmocka_unit_test(a_turn_that_starts_leaves_the_mailbox),
                cmocka_unit_test(history_is_limited_to_a_number_of_lines),
                cmocka_unit_test(random_interleavings_keep_order_and_answer_each_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
