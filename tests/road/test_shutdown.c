/* Stopping, dead adapters, and what must survive a restart: each of these once went wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../lib/gate.h"
#include "../lib/patience.h"
#include "../lib/road_rig.h"

/* A turn that runs. */
static struct rig *asked(const char *adapter)
{
        struct rig *g = rig_new();

        rig_say(g, adapter, "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        return g;
}

/* A turn that is answered with `text`; its delivery is open. */
static struct rig *answered(const char *adapter, const char *text)
{
        struct rig *g = asked(adapter);

        rig_answer(g, 0, text);
        return g;
}

static unsigned times_sent(const struct rig *g, const char *kind, const char *text)
{
        unsigned n = 0;

        for (unsigned i = 0; i < g->sent_count; i++)
                n += strcmp(g->sent[i].kind, kind) == 0 && strcmp(g->sent[i].text, text) == 0;
        return n;
}

static void count_up(void *arg)
{
        (*(unsigned *)arg)++;
}

static void an_orderly_stop_hands_nothing_to_an_adapter_that_cannot_answer(void **state)
{
        struct rig *g = asked("x");
        struct gate gate = { 0 };
        struct road_stats s;

        (void)state;
        gate_close(&gate, g->store);
        rig_answer(g, 0, "answer");
        for (road_stats(g->road, &s); s.deliveries_open == 0; road_stats(g->road, &s))
                loop_step(g->loop, true);
        /* the claim is on its way to the disk, and nobody looks whether it has arrived */
        gate_open(&gate);
        rig_restart(g);
        assert_int_equal(g->sent_count, 0);
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_DONE, ERR_NONE, -1);
        rig_until_idle(g);
        assert_string_equal(rig_text(g, "SELECT state || ' ' || attempt FROM deliveries"),
                            "sent 1");
        rig_free(g);
}

static void a_drain_ends_when_the_last_send_is_to_be_tried_again(void **state)
{
        struct rig *g = answered("x", "answer");
        unsigned drained = 0;

        (void)state;
        rig_until(g, &g->sent_count, 1);
        road_drain(g->road, 100 * PATIENCE_MS, count_up, &drained);
        rig_result(g, 0, SEND_RETRY, ERR_NET, -1);
        rig_until(g, &drained, 1); /* is less patient than the drain */
        rig_free(g);
}

static void an_answer_whose_draft_failed_is_a_message_like_any_other(void **state)
{
        struct rig *g = rig_new();
        unsigned seen = 0;

        (void)state;
        rig_say(g, "grow", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        turn_delta(g->runs[0].run, "part", 4);
        while (rig_count(
                       g,
                       "SELECT count(*) FROM deliveries WHERE kind = 'send' AND state = 'expired'") ==
               0) {
                rig_until(g, &g->sent_count, seen + 1);
                if (strcmp(g->sent[seen].kind, "type") == 0)
                        rig_result(g, seen, SEND_DONE, ERR_NONE, -1);
                else
                        rig_result(g, seen, SEND_REJECTED, ERR_INVALID, -1);
                seen++;
                rig_spin(g, 20);
        }
        rig_answer(g, 0, "final");
        rig_until(g, &g->sent_count, seen + 1);
        assert_int_equal(times_sent(g, "send", "final"), 1);
        rig_restart(g); /* it may have arrived: on this platform nobody can find out */
        rig_spin(g, 100);
        assert_int_equal(times_sent(g, "send", "final"), 1);
        assert_string_equal(rig_text(g, "SELECT state FROM deliveries WHERE class = 0"), "unknown");
        rig_free(g);
}

static void on_done(void *arg, const struct error *err)
{
        *(int *)arg = err ? (int)err->kind : 1000;
}

static void what_may_have_arrived_is_unknown_however_old_it_is(void **state)
{
        struct rig *g = rig_new();
        int outcome = 0;

        (void)state;
        g->limits.delivery_expiry_seconds = 1;
        road_set_limits(g->road, &g->limits);
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, "answer");
        rig_until(g, &g->sent_count, 1);
        rig_spin(g, 1100);
        rig_restart(g);
        rig_spin(g, 50);
        assert_string_equal(rig_text(g, "SELECT state FROM deliveries"), "unknown");
        outbox_retry(g->road, 1, false, on_done, &outcome);
        rig_spin(g, 50);
        assert_int_equal(outcome, ERR_CONFLICT);
        assert_int_equal(g->sent_count, 1);
        rig_free(g);
}

static void one_dead_adapter_stops_nobody(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_answer = true;
        g->adapters_down = true;
        g->limits.open_deliveries = 1;
        road_set_limits(g->road, &g->limits);
        rig_say(g, "x", "c", "echo", "nobody is there", NULL);
        rig_until(g, &g->run_count, 1);
        rig_spin(g, 50);
        rig_say(g, "x", "d", "echo", "waits for room", NULL);
        rig_say(g, "j", "c", "echo", "somebody is here", NULL);
        rig_until(g, &g->run_count, 2);
        rig_spin(g, 50);
        assert_int_equal(g->run_count, 2);
        assert_string_equal(g->runs[1].text, "somebody is here");
        g->adapters_down = false;
        g->auto_send = true;
        outbox_wake(g->road, "x");
        rig_until(g, &g->run_count, 3);
        rig_until_idle(g);
        rig_free(g);
}

static void no_typing_piles_up_while_the_adapter_is_away(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->adapters_down = true;
        rig_say(g, "grow", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        rig_spin(g, 600);
        assert_int_equal(rig_count(g, "SELECT count(*) FROM deliveries"), 0);
        rig_free(g);
}

static void a_long_rate_limit_survives_a_restart(void **state)
{
        struct rig *g = answered("nonce", "answer");

        (void)state;
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_RETRY, ERR_LIMIT, 3600000);
        rig_spin(g, 50);
        rig_restart(g);
        rig_say(g, "nonce", "c", "echo", "more", NULL);
        rig_until(g, &g->run_count, 2);
        rig_answer(g, 1, "waits too");
        rig_spin(g, 200);
        assert_int_equal(g->sent_count, 1);
        rig_free(g);
}

static void a_typing_sign_says_nothing_about_health(void **state)
{
        struct rig *g = rig_new();
        struct adapter_stats stats;

        (void)state;
        rig_say(g, "grow", "c", "echo", "hello", NULL);
        rig_until(g, &g->sent_count, 1);
        assert_string_equal(g->sent[0].kind, "type");
        rig_result(g, 0, SEND_REJECTED, ERR_REFUSED, -1);
        rig_spin(g, 50);
        road_adapter_stats(g->road, "grow", &stats);
        assert_int_equal(stats.last_failure_ms, 0);
        assert_int_equal(rig_count(g, "SELECT count(*) FROM journal WHERE type LIKE 'delivery.%'"),
                         0);
        rig_free(g);
}

static void no_agent_is_asked_while_the_process_ends(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "batch", "hello", NULL);
        /* stored, and its history is not read yet */
        rig_until_count(g, "SELECT count(*) FROM turns", 1);
        rig_restart(g);
        rig_until(g, &g->run_count, 1);
        assert_false(g->runs[0].cancelled);
        rig_answer(g, 0, "hi");
        rig_until_idle(g);
        assert_int_equal(g->run_count, 1);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_orderly_stop_hands_nothing_to_an_adapter_that_cannot_answer),
                cmocka_unit_test(a_drain_ends_when_the_last_send_is_to_be_tried_again),
                cmocka_unit_test(an_answer_whose_draft_failed_is_a_message_like_any_other),
                cmocka_unit_test(what_may_have_arrived_is_unknown_however_old_it_is),
                cmocka_unit_test(one_dead_adapter_stops_nobody),
                cmocka_unit_test(no_typing_piles_up_while_the_adapter_is_away),
                cmocka_unit_test(a_long_rate_limit_survives_a_restart),
                cmocka_unit_test(a_typing_sign_says_nothing_about_health),
                cmocka_unit_test(no_agent_is_asked_while_the_process_ends),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
