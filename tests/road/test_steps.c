/* Turns that store their steps: they go on after a crash, and take messages while they run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/road_rig.h"
#include "base/buf.h"
#include "base/mem.h"
#include "rows/step_row.h"

/* A step being stored. */
struct step {
        struct rig *rig;
        struct turn_run *run;
        int64_t turn, fence, conversation;
        struct buf text;
        unsigned stored, lost;
};

static void step_init(struct step *s, struct rig *g, unsigned run)
{
        *s = (struct step){ .rig = g, .run = g->runs[run].run };
        s->turn = s->run->id;
        s->fence = s->run->fence;
        s->conversation = s->run->conversation;
        buf_init(&s->text, 0);
        buf_addstr(&s->text, "{}");
}

static int write_step(struct store_tx *tx, struct bus_batch *batch, void *arg, struct error *err)
{
        struct step *s = arg;
        struct step_row row = { .conversation = s->conversation,
                                .turn = s->turn,
                                .agent = "steps",
                                .kind = STEP_USER,
                                .body = s->text.data,
                                .time_ms = 1 };
        int rc = step_row_insert(tx, &row, s->fence, err);

        if (rc != 1)
                return rc;
        return turn_append_event(tx, batch, s->run, "agent.message_end", "{\"turnId\":\"x\"}",
                                 err) < 0
                       ? -1
                       : 1;
}

static void on_stored(void *arg, bool stored)
{
        struct step *s = arg;

        if (stored)
                s->stored++;
        else
                s->lost++;
}

static void on_take(void *arg, const struct incoming *const *inputs, unsigned count)
{
        struct step *s = arg;

        buf_clear(&s->text);
        for (unsigned i = 0; i < count; i++)
                buf_addf(&s->text, "%s%s", i ? "+" : "", inputs[i]->text);
}

static const struct turn_steering steering = { on_take, write_step, on_stored };

static void store_step(struct step *s)
{
        unsigned before = s->stored;

        assert_true(turn_store_step(s->run, write_step, on_stored, s));
        rig_until(s->rig, &s->stored, before + 1);
}

static struct rig *rig_running(struct step *s)
{
        struct rig *g = rig_new();

        g->auto_send = true;
        rig_say(g, "x", "c", "steps", "one", NULL);
        rig_until(g, &g->run_count, 1);
        step_init(s, g, 0);
        return g;
}

static void a_turn_goes_on_as_often_as_it_makes_progress(void **state)
{
        struct step s;
        struct rig *g = rig_running(&s);

        (void)state;
        for (unsigned i = 1; i <= 5; i++) { /* limits.turn_attempts is 3 */
                store_step(&s);
                buf_release(&s.text);
                rig_restart(g);
                rig_until(g, &g->run_count, i + 1);
                step_init(&s, g, i);
                assert_int_equal(s.run->attempt, i + 1);
        }
        assert_int_equal(rig_count(g, "steps"), 5);
        assert_int_equal(rig_count(g, "journal WHERE type = 'agent.message_end'"), 5);
        rig_answer(g, 5, "done");
        rig_until_idle(g);
        assert_string_equal(rig_text(g, "state FROM turns"), "done");
        buf_release(&s.text);
        rig_free(g);
}

static void a_turn_without_progress_is_given_up(void **state)
{
        struct step s;
        struct rig *g = rig_running(&s);

        (void)state;
        store_step(&s);
        for (unsigned i = 1; i <= 3; i++) {
                rig_restart(g);
                rig_until(g, &g->run_count, i + 1);
        }
        rig_restart(g);
        rig_until_idle(g);
        assert_int_equal(g->run_count, 4);
        assert_string_equal(rig_text(g, "state FROM turns"), "failed");
        buf_release(&s.text);
        rig_free(g);
}

static void waiting_messages_join_the_running_turn(void **state)
{
        struct step s;
        struct rig *g = rig_running(&s);

        (void)state;
        assert_false(turn_steer(s.run, &steering, &s));
        rig_say(g, "x", "c", "steps", "two", NULL);
        rig_say(g, "x", "c", "steps", "three", NULL);
        rig_settle(g);
        assert_int_equal(rig_count(g, "turns WHERE state = 'queued'"), 1);
        assert_true(turn_steer(s.run, &steering, &s));
        assert_string_equal(s.text.data, "two+three");
        rig_until(g, &s.stored, 1);
        assert_int_equal(s.run->input_count, 3);
        assert_int_equal(g->ended, 1); /* what the queued turn reserved */
        assert_int_equal(rig_count(g, "turns"), 1);
        assert_int_equal(rig_count(g, "trigger_log WHERE turn = 1"), 3);
        rig_answer(g, 0, "done");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "transcript WHERE role = 'user'"), 3);
        assert_int_equal(rig_count(g, "trigger_log WHERE status = 'done'"), 3);
        assert_int_equal(g->run_count, 1);
        buf_release(&s.text);
        rig_free(g);
}

static void an_agent_that_steers_hears_of_messages_behind_its_turn(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "x", "c", "echo", "one", NULL);
        rig_say(g, "x", "c", "echo", "two", NULL);
        rig_settle(g);
        assert_int_equal(g->run_count, 1);
        assert_int_equal(g->waitings, 0); /* it does not steer */
        rig_say(g, "x", "d", "steps", "one", NULL);
        rig_until(g, &g->run_count, 2);
        rig_settle(g);
        assert_int_equal(g->waitings, 0);
        rig_say(g, "x", "d", "steps", "two", NULL);
        rig_until(g, &g->waitings, 1);
        rig_free(g);
}

static void joined_messages_are_inputs_after_a_crash(void **state)
{
        struct step s;
        struct rig *g = rig_running(&s);

        (void)state;
        rig_say(g, "x", "c", "steps", "two", NULL);
        rig_settle(g);
        assert_true(turn_steer(s.run, &steering, &s));
        rig_until(g, &s.stored, 1);
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "one+two");
        assert_int_equal(rig_count(g, "turns"), 1);
        buf_release(&s.text);
        rig_free(g);
}

static void messages_with_other_terms_do_not_join(void **state)
{
        struct step s;
        struct rig *g = rig_running(&s);

        (void)state;
        g->policy.mode = MODE_SILENT; /* other terms than the running turn's */
        rig_say(g, "x", "c", "steps", "two", NULL);
        rig_settle(g);
        assert_false(turn_steer(s.run, &steering, &s));
        g->policy.mode = MODE_REPLY;
        buf_release(&s.text);
        rig_free(g);
}

static void a_stopped_turn_ends_after_its_last_step(void **state)
{
        static const struct turn_usage usage = { .tokens_in = 10,
                                                 .tokens_out = 3,
                                                 .cost_microusd = 42 };
        struct step s;
        struct rig *g = rig_running(&s);

        (void)state;
        turn_set_usage(s.run, &usage);
        assert_true(turn_store_step(s.run, write_step, on_stored, &s));
        turn_cancel(g->road, 1, "stopped by Ann", NULL, NULL);
        rig_until_idle(g);
        assert_int_equal(s.stored, 1);
        assert_string_equal(rig_text(g, "state FROM turns"), "cancelled");
        assert_int_equal(rig_number(g, "cost_microusd FROM turns"), 42);
        assert_int_equal(rig_number(g, "tokens_in FROM turns"), 10);
        buf_release(&s.text);
        rig_free(g);
}

static void a_step_of_a_lost_turn_is_not_stored(void **state)
{
        struct step s;
        struct rig *g = rig_running(&s);

        (void)state;
        rig_update(g, "turns SET fence = 9", 0, 0);
        assert_true(turn_store_step(s.run, write_step, on_stored, &s));
        rig_until(g, &s.lost, 1);
        assert_int_equal(rig_count(g, "steps"), 0);
        assert_int_equal(rig_count(g, "journal WHERE type = 'agent.message_end'"), 0);
        buf_release(&s.text);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_turn_goes_on_as_often_as_it_makes_progress),
                cmocka_unit_test(a_turn_without_progress_is_given_up),
                cmocka_unit_test(waiting_messages_join_the_running_turn),
                cmocka_unit_test(an_agent_that_steers_hears_of_messages_behind_its_turn),
                cmocka_unit_test(joined_messages_are_inputs_after_a_crash),
                cmocka_unit_test(messages_with_other_terms_do_not_join),
                cmocka_unit_test(a_stopped_turn_ends_after_its_last_step),
                cmocka_unit_test(a_step_of_a_lost_turn_is_not_stored),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
