/* Shutdown, adapters that are down, and restarts: regressions. */
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

/* With a running turn. */
static struct rig *asked(const char *adapter)
{
        struct rig *g = rig_new();

        rig_say(g, adapter, "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        return g;
}

/* With a turn answered with `text`, whose delivery is open. */
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

static void a_drain_sends_nothing_to_an_adapter_that_cannot_answer(void **state)
{
        struct rig *g = asked("x");
        struct gate gate = { 0 };
        struct road_stats s;

        (void)state;
        gate_close(&gate, g->store);
        rig_answer(g, 0, "answer");
        for (road_stats(g->road, &s); s.deliveries_open == 0; road_stats(g->road, &s))
                loop_step(g->loop, true);
        /* the claim is being written when the process ends */
        gate_open(&gate);
        rig_restart(g);
        assert_int_equal(g->sent_count, 0);
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_DONE, ERR_NONE, -1);
        rig_until_idle(g);
        assert_string_equal(rig_text(g, "state || ' ' || attempt FROM deliveries"), "sent 1");
        rig_free(g);
}

static void an_answer_during_a_drain_is_left_to_the_next_run(void **state)
{
        struct rig *g = asked("x");
        unsigned drained = 0;

        (void)state;
        road_drain(g->road, 100 * PATIENCE_MS, count_up, &drained);
        rig_answer(g, 0, "answer");
        rig_until(g, &drained, 1);
        assert_string_equal(rig_text(g, "state || ' ' || fence FROM deliveries"), "queued 0");
        rig_restart(g);
        rig_until(g, &g->sent_count, 1);
        rig_free(g);
}

static void a_drain_does_not_wait_for_retries(void **state)
{
        struct rig *g = answered("x", "answer");
        unsigned drained = 0;

        (void)state;
        rig_until(g, &g->sent_count, 1);
        road_drain(g->road, 100 * PATIENCE_MS, count_up, &drained);
        rig_result(g, 0, SEND_RETRY, ERR_NET, -1);
        rig_until(g, &drained, 1); /* gives up before the drain does */
        rig_free(g);
}

static void an_answer_whose_draft_failed_is_an_ordinary_message(void **state)
{
        struct rig *g = rig_new();
        unsigned seen = 0;

        (void)state;
        rig_say(g, "grow", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        turn_delta(g->runs[0].run, "part", 4);
        while (rig_count(g, "deliveries WHERE kind = 'send' AND state = 'expired'") == 0) {
                rig_until(g, &g->sent_count, seen + 1);
                if (strcmp(g->sent[seen].kind, "type") == 0)
                        rig_result(g, seen, SEND_DONE, ERR_NONE, -1);
                else
                        rig_result(g, seen, SEND_REJECTED, ERR_INVALID, -1);
                seen++;
                rig_settle(g);
        }
        rig_answer(g, 0, "final");
        rig_until(g, &g->sent_count, seen + 1);
        assert_int_equal(times_sent(g, "send", "final"), 1);
        rig_restart(g); /* it may have arrived */
        rig_settle(g);
        assert_int_equal(times_sent(g, "send", "final"), 1);
        assert_string_equal(rig_text(g, "state FROM deliveries WHERE class = 0"), "unknown");
        rig_free(g);
}

static void on_done(void *arg, const struct error *err)
{
        *(int *)arg = err ? (int)err->kind : 1000;
}

static void an_old_unconfirmed_send_is_unknown_not_expired(void **state)
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
        rig_run_for(g, 1100);
        rig_restart(g);
        rig_settle(g);
        assert_string_equal(rig_text(g, "state FROM deliveries"), "unknown");
        outbox_retry(g->road, 1, false, on_done, &outcome);
        rig_settle(g);
        assert_int_equal(outcome, ERR_CONFLICT);
        assert_int_equal(g->sent_count, 1);
        rig_free(g);
}

static void a_dead_adapter_does_not_block_the_others(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_answer = true;
        g->adapters_down = true;
        g->limits.open_deliveries = 1;
        road_set_limits(g->road, &g->limits);
        rig_say(g, "x", "c", "echo", "not delivered", NULL);
        rig_until(g, &g->run_count, 1);
        rig_settle(g);
        rig_say(g, "x", "d", "echo", "waits for a slot", NULL);
        rig_say(g, "j", "c", "echo", "another adapter", NULL);
        rig_until(g, &g->run_count, 2);
        rig_settle(g);
        assert_int_equal(g->run_count, 2);
        assert_string_equal(g->runs[1].text, "another adapter");
        g->adapters_down = false;
        g->auto_send = true;
        outbox_wake(g->road, "x");
        rig_until(g, &g->run_count, 3);
        rig_until_idle(g);
        rig_free(g);
}

static void typing_is_not_queued_while_the_adapter_is_down(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->adapters_down = true;
        rig_say(g, "grow", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        rig_run_for(g, 600);
        assert_int_equal(rig_count(g, "deliveries"), 0);
        rig_free(g);
}

static void a_long_rate_limit_survives_a_restart(void **state)
{
        struct incoming more = { .adapter = "nonce", .thread = "t", .text = "more" };
        struct rig *g = answered("nonce", "answer");

        (void)state;
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_RETRY, ERR_LIMIT, 3600000);
        rig_settle(g);
        rig_restart(g);
        rig_receive(g, &more); /* another queue of the same channel */
        rig_until(g, &g->run_count, 2);
        rig_answer(g, 1, "waits too");
        rig_settle(g);
        assert_int_equal(g->sent_count, 1);
        rig_free(g);
}

static void typing_does_not_count_for_adapter_health(void **state)
{
        struct rig *g = rig_new();
        struct adapter_stats stats;

        (void)state;
        rig_say(g, "grow", "c", "echo", "hello", NULL);
        rig_until(g, &g->sent_count, 1);
        assert_string_equal(g->sent[0].kind, "type");
        rig_result(g, 0, SEND_REJECTED, ERR_REFUSED, -1);
        rig_settle(g);
        road_adapter_stats(g->road, "grow", &stats);
        assert_int_equal(stats.last_failure_ms, 0);
        assert_int_equal(rig_count(g, "journal WHERE type LIKE 'delivery.%'"), 0);
        rig_free(g);
}

static void no_turn_starts_during_a_drain(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "batch", "hello", NULL);
        /* stored; its history is not read yet */
        rig_until_count(g, "turns", 1);
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
                cmocka_unit_test(a_drain_sends_nothing_to_an_adapter_that_cannot_answer),
                cmocka_unit_test(an_answer_during_a_drain_is_left_to_the_next_run),
                cmocka_unit_test(a_drain_does_not_wait_for_retries),
                cmocka_unit_test(an_answer_whose_draft_failed_is_an_ordinary_message),
                cmocka_unit_test(an_old_unconfirmed_send_is_unknown_not_expired),
                cmocka_unit_test(a_dead_adapter_does_not_block_the_others),
                cmocka_unit_test(typing_is_not_queued_while_the_adapter_is_down),
                cmocka_unit_test(a_long_rate_limit_survives_a_restart),
                cmocka_unit_test(typing_does_not_count_for_adapter_health),
                cmocka_unit_test(no_turn_starts_during_a_drain),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
