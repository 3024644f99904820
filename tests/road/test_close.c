/*
 * The road is closed while the store refuses a write: nothing of it is applied, its callers get an
 * error, the next run does the work, and the leak checker finds nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/gate.h"
#include "../lib/road_rig.h"
#include "base/mem.h"
#include "road/road_state.h"
#include "road/turn/late_reply.h"

/* Closes the road, and lets the store accept writes again. */
static void close_road(struct rig *g)
{
        road_close(g->road);
        g->road = NULL;
        rows_accept(g->store);
}

/* Runs the loop until the turn's draft or reaction is being stored. */
static void await_display_write(struct rig *g)
{
        const struct turn *t = turn_find(g->road, g->runs[0].run->id);

        while (t->display.writes == 0)
                loop_step(g->loop, true);
}

static void on_done(void *arg, const struct error *err)
{
        *(enum error_kind *)arg = err ? err->kind : ERR_NONE;
}

/* ---- decisions ---- */

static unsigned attempts, committed, given_up;

static int write_extra(struct store_tx *tx, void *arg, struct error *err)
{
        (void)tx;
        (void)arg;
        (void)err;
        attempts++;
        return 0;
}

static void on_extra(void *arg, const struct error *err)
{
        committed += !err;
        given_up += err != NULL;
        free(arg);
}

static void with_commands(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        out->extra = (struct tx_extra){ write_extra, on_extra, mem_strdup(in->key) };
        if (!in->text || in->text[0] != '/')
                return;
        out->trigger = false;
        out->command = strcmp(in->text, "/stop") == 0 ? COMMAND_STOP : COMMAND_WHY;
}

/* The first is decided alone, the others together, and "/why" after them. */
static void receive_all(struct rig *g)
{
        const struct incoming events[] = {
                { .id = "m1", .text = "first" },
                { .id = "m2", .channel = "d", .text = "a new turn" },
                { .id = "m3", .channel = "d", .text = "joins it" },
                { .id = "m4", .channel = "e", .text = "is edited" },
                { .id = "m4", .channel = "e", .type = EVENT_MESSAGE_EDITED, .text = "edited" },
                { .id = "m3", .channel = "d", .type = EVENT_MESSAGE_DELETED, .text = "" },
                { .id = "m5", .text = "skip this" },
                { .id = "m6", .text = "/stop" },
                { .id = "m7", .text = "/why" },
                { .id = "m8", .text = "undecided" },
        };
        struct gate together = { 0 };

        gate_close(&together, g->store);
        for (size_t i = 0; i < COUNT(events); i++)
                rig_receive(g, &events[i]);
        gate_open(&together);
        rig_until(g, &g->acks, COUNT(events));
}

static void decisions_that_are_not_stored_are_made_again(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->debounce_ms = 60000;
        g->debounce_max_ms = 120000;
        g->decides = with_commands;
        rows_refuse_insert(g->store, "trigger_log WHEN NEW.event > 1");
        receive_all(g);
        rig_until(g, &committed, 1);
        close_road(g);
        assert_int_equal(committed, 1);
        assert_int_equal(given_up, 6); /* edits and deletions of waiting messages have none */
        assert_int_equal(rig_count(g, "trigger_log"), 1);
        assert_int_equal(rig_count(g, "turns"), 1);
        assert_int_equal(rig_count(g, "deliveries"), 0);
        assert_int_equal(rig_count(g, "turns WHERE cancel_reason IS NOT NULL"), 0);
        rig_restart(g);
        rig_until_count(g, "trigger_log", 10);
        assert_int_equal(given_up, 6);
        rig_free(g);
}

static void a_decision_refused_before_is_given_up_too(void **state)
{
        struct rig *g = rig_new();
        unsigned before = attempts;

        (void)state;
        committed = given_up = 0;
        g->decides = with_commands;
        rows_refuse_insert(g->store, "cursors");
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &attempts, before + 2);
        close_road(g);
        assert_int_equal(committed, 0);
        assert_int_equal(given_up, 1);
        assert_int_equal(rig_count(g, "turns"), 0);
        rig_restart(g);
        rig_until(g, &g->run_count, 1);
        rig_free(g);
}

/* ---- turns ---- */

static struct rig *asked(const char *adapter)
{
        struct rig *g = rig_new();

        rig_receive(g, &(struct incoming){
                               .adapter = adapter, .chat = CHAT_GROUP, .id = "m1", .text = "hi" });
        rig_until(g, &g->run_count, 1);
        return g;
}

static void expect_another_run(struct rig *g)
{
        unsigned runs = g->run_count;

        g->auto_send = true;
        assert_int_equal(g->ended, 0);
        assert_string_equal(rig_text(g, "state FROM turns"), "running");
        assert_int_equal(rig_count(g, "deliveries WHERE kind <> 'type'"), 0);
        assert_int_equal(rig_count(g, "meta WHERE value = 'ended'"), 0);
        rig_restart(g);
        rig_until(g, &g->run_count, runs + 1);
        rig_answer(g, runs, "again");
        rig_until_idle(g);
        assert_int_equal(g->ended, 1);
        assert_int_equal(rig_count(g, "deliveries WHERE kind = 'send' AND state = 'sent'"), 1);
        rig_free(g);
}

static void an_end_that_is_not_stored_is_none(void **state)
{
        const char *const adapters[] = { "x", "j" }; /* its first message is claimed at once; not */

        (void)state;
        for (size_t i = 0; i < COUNT(adapters); i++) {
                struct rig *g = asked(adapters[i]);

                rows_refuse_update(g->store, "turns");
                rig_answer(g, 0, "one|two|three");
                close_road(g);
                assert_int_equal(g->sent_count, 0);
                expect_another_run(g);
        }
}

static void on_result(void *arg, const struct late_reply_result *result)
{
        *(enum error_kind *)arg = result->error.kind;
}

static void a_reply_that_is_not_stored_is_reported(void **state)
{
        struct rig *g = asked("x");
        enum error_kind kind = ERR_NONE;

        (void)state;
        g->late_replies = (struct late_reply_policy){ .max_replies = 1 };
        rows_refuse_update(g->store, "turns");
        late_reply_submit(g->road, g->runs[0].run->id, "a key", &(struct turn_reply){ .text = "1" },
                          on_result, &kind);
        close_road(g);
        assert_int_equal(kind, ERR_CANCELLED);
        expect_another_run(g);
}

/* The turn waits for the first one, so that its claim is a write of its own. */
static void a_claim_that_is_not_stored_starts_nothing(void **state)
{
        struct rig *g = asked("x");
        enum error_kind cancelled = ERR_NONE;
        const struct turn *t;

        (void)state;
        rig_say(g, "x", "c", "echo", "second", NULL);
        rig_until_count(g, "turns WHERE state = 'queued'", 1);
        rig_settle(g);
        t = turn_find(g->road, 2);
        rows_refuse_update(g->store, "turns WHEN NEW.state = 'running'");
        rig_answer(g, 0, "first");
        while (t->phase != PHASE_STARTING)
                loop_step(g->loop, true);
        turn_cancel(g->road, 2, "the test stops it", on_done, &cancelled);
        close_road(g);
        assert_int_equal(cancelled, ERR_CANCELLED);
        assert_int_equal(g->run_count, 1);
        assert_string_equal(rig_list(g, "state || ' ' || attempt FROM turns ORDER BY id"),
                            "done 1, queued 0");
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        rig_free(g);
}

static void a_draft_that_is_not_stored_is_not_shown(void **state)
{
        struct rig *g = asked("grow");

        (void)state;
        g->auto_send = true;
        rows_refuse_insert(g->store, "deliveries WHEN NEW.kind = 'send'");
        turn_delta(g->runs[0].run, "part", 4);
        await_display_write(g);
        rig_answer(g, 0, "whole"); /* waits for the draft */
        close_road(g);
        expect_another_run(g);
}

static void a_reaction_that_is_not_stored_is_not_sent(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->policy.slow_ms = 1;
        rows_refuse_insert(g->store, "deliveries WHEN NEW.kind = 'react'");
        rig_receive(g, &(struct incoming){
                               .adapter = "react", .chat = CHAT_GROUP, .id = "m1", .text = "hi" });
        rig_until(g, &g->run_count, 1);
        await_display_write(g);
        rig_answer(g, 0, "slow"); /* waits for the reaction */
        close_road(g);
        g->policy.slow_ms = 0;
        rig_update(g, "turns SET reply_policy = NULL", 0, 0);
        expect_another_run(g);
}

static void a_lost_turn_stays_until_its_end_is_stored(void **state)
{
        struct rig *g = asked("x");

        (void)state;
        rig_update(g, "journal SET payload = '{}' WHERE key IS NOT NULL", 0, 0);
        rig_restart(g);
        rows_refuse_update(g->store, "turns");
        while (!g->road->resumed)
                loop_step(g->loop, true);
        close_road(g);
        assert_string_equal(rig_text(g, "state FROM turns"), "running");
        rig_restart(g);
        rig_until_count(g, "turns WHERE state = 'failed'", 1);
        rig_free(g);
}

/* ---- deliveries ---- */

static void a_delivery_whose_claim_is_not_stored_is_not_sent(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_queue_delivery(g);
        rows_refuse_update(g->store, "deliveries");
        g->adapters_down = false;
        outbox_wake(g->road, "x");
        close_road(g);
        assert_int_equal(g->sent_count, 0);
        assert_string_equal(rig_text(g, "state || ' ' || attempt FROM deliveries"), "queued 0");
        rig_restart(g);
        rig_until(g, &g->sent_count, 1);
        rig_free(g);
}

static void an_edit_whose_claim_is_not_stored_is_not_sent(void **state)
{
        struct rig *g = asked("grow");

        (void)state;
        g->auto_send = true;
        turn_delta(g->runs[0].run, "part", 4);
        rig_until_count(g, "deliveries WHERE kind = 'send' AND state = 'sent'", 1);
        rows_refuse_update(g->store, "deliveries WHEN NEW.kind = 'edit'");
        rig_answer(g, 0, "whole");
        rig_until_count(g, "deliveries WHERE kind = 'edit' AND state = 'queued'", 1);
        while (g->road->outbox.sending == 0)
                loop_step(g->loop, true);
        close_road(g);
        rig_restart(g);
        rig_until_idle(g);
        assert_string_equal(g->sent[g->sent_count - 1].kind, "edit");
        assert_string_equal(g->sent[g->sent_count - 1].text, "whole");
        rig_free(g);
}

static void a_tick_whose_claim_is_not_stored_is_not_sent(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_send = true;
        g->policy.slow_ms = 1;
        rig_receive(g, &(struct incoming){
                               .adapter = "react", .chat = CHAT_GROUP, .id = "m1", .text = "hi" });
        rig_until(g, &g->run_count, 1);
        rig_until_count(g, "deliveries WHERE kind = 'react' AND state = 'sent'", 1);
        rows_refuse_update(g->store, "deliveries WHEN NEW.payload LIKE '%✅%'");
        rig_answer(g, 0, "slow");
        rig_until_count(g, "deliveries WHERE kind = 'unreact' AND state = 'sent'", 1);
        while (g->road->outbox.sending == 0)
                loop_step(g->loop, true);
        close_road(g);
        rig_restart(g);
        rig_until_idle(g);
        assert_string_equal(g->sent[g->sent_count - 1].emoji, "✅");
        rig_free(g);
}

static void a_result_that_is_not_stored_leaves_the_send_unconfirmed(void **state)
{
        const enum send_outcome outcomes[] = { SEND_DONE, SEND_RETRY, SEND_REJECTED };
        struct road_stats stats;

        (void)state;
        for (size_t i = 0; i < COUNT(outcomes); i++) {
                struct rig *g = asked("x");

                rig_answer(g, 0, "hello");
                rig_until(g, &g->sent_count, 1);
                rows_refuse_update(g->store, "deliveries");
                rig_result(g, 0, outcomes[i], i > 0 ? ERR_NET : ERR_NONE, -1);
                road_stats(g->road, &stats);
                close_road(g);
                assert_int_equal(stats.sent + stats.retried + stats.failed, 0);
                assert_string_equal(rig_text(g, "state FROM deliveries"), "sending");
                rig_restart(g);
                rig_until_count(g, "deliveries WHERE state = 'unknown'", 1);
                assert_int_equal(g->sent_count, 1);
                rig_free(g);
        }
}

static void a_search_that_is_not_stored_begins_where_it_was(void **state)
{
        struct rig *g = asked("look");

        (void)state;
        rig_answer(g, 0, "hello");
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 2);
        rows_refuse_update(g->store, "deliveries");
        delivery_set_read_from(g->road, g->sent[1].delivery, g->sent[1].fence, "further");
        close_road(g);
        rig_restart(g);
        rig_until(g, &g->sent_count, 3);
        assert_string_equal(g->sent[2].read_from, "after 0");
        rig_free(g);
}

static void on_submitted(void *arg, const struct outbox_receipt *receipt)
{
        enum error_kind *kind = arg;

        assert_int_equal(*kind, ERR_NONE);
        assert_int_not_equal(receipt->error.kind, ERR_NONE);
        *kind = receipt->error.kind;
}

static void sends_that_are_not_stored_are_refused(void **state)
{
        struct rig *g = rig_new();
        const struct outgoing out = { .adapter = "x", .channel = "c", .text = "hello" };
        enum error_kind stored = ERR_NONE, waiting = ERR_NONE;
        int64_t first;

        (void)state;
        rows_refuse_insert(g->store, "deliveries");
        outbox_submit(g->road, &out, on_submitted, &stored);
        numbers_take(&g->road->delivery_numbers, (size_t)numbers_left(&g->road->delivery_numbers),
                     &first);
        outbox_submit(g->road, &out, on_submitted, &waiting); /* for numbers */
        close_road(g);
        assert_int_not_equal(stored, ERR_NONE);
        assert_int_not_equal(waiting, ERR_NONE);
        assert_int_equal(rig_count(g, "deliveries"), 0);
        rig_free(g);
}

static void numbers_that_are_not_stored_are_not_used(void **state)
{
        struct rig *g = rig_new();
        const struct outgoing out = { .adapter = "x", .channel = "c", .text = "hello" };
        enum error_kind waiting = ERR_NONE;
        int64_t first;

        (void)state;
        rows_refuse_update(g->store, "numbers");
        numbers_take(&g->road->delivery_numbers, (size_t)numbers_left(&g->road->delivery_numbers),
                     &first);
        outbox_submit(g->road, &out, on_submitted, &waiting);
        close_road(g);
        assert_int_equal(waiting, ERR_CANCELLED);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(decisions_that_are_not_stored_are_made_again),
                cmocka_unit_test(a_decision_refused_before_is_given_up_too),
                cmocka_unit_test(an_end_that_is_not_stored_is_none),
                cmocka_unit_test(a_reply_that_is_not_stored_is_reported),
                cmocka_unit_test(a_claim_that_is_not_stored_starts_nothing),
                cmocka_unit_test(a_draft_that_is_not_stored_is_not_shown),
                cmocka_unit_test(a_reaction_that_is_not_stored_is_not_sent),
                cmocka_unit_test(a_lost_turn_stays_until_its_end_is_stored),
                cmocka_unit_test(a_delivery_whose_claim_is_not_stored_is_not_sent),
                cmocka_unit_test(an_edit_whose_claim_is_not_stored_is_not_sent),
                cmocka_unit_test(a_tick_whose_claim_is_not_stored_is_not_sent),
                cmocka_unit_test(a_result_that_is_not_stored_leaves_the_send_unconfirmed),
                cmocka_unit_test(a_search_that_is_not_stored_begins_where_it_was),
                cmocka_unit_test(sends_that_are_not_stored_are_refused),
                cmocka_unit_test(numbers_that_are_not_stored_are_not_used),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
