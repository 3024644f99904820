/* Commands for whose answer the platform keeps a place: it is taken away when none comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../lib/road_rig.h"

static void commands(struct rig *g, const char *agent, const char *id, const char *text)
{
        struct incoming in = { .adapter = "grow",
                               .guild = agent,
                               .id = id,
                               .text = text,
                               .is_command = true,
                               .is_awaited = true };

        rig_hear(g, &in);
}

static void asks(struct rig *g, const char *agent, const char *id, const char *text)
{
        commands(g, agent, id, text);
        rig_until(g, &g->run_count, g->run_count + 1);
}

/* "kind:message" of everything that was stored, in order. */
static const char *stored(struct rig *g)
{
        return rig_text(
                g,
                "SELECT group_concat(kind || ':' || coalesce(json_extract(payload, '$.messageId'),"
                " json_extract(payload, '$.replyTo'), ''), ' ')"
                " FROM (SELECT kind, payload FROM deliveries WHERE kind <> 'type' ORDER BY id)");
}

static struct rig *rig_that_sends(void)
{
        struct rig *g = rig_new();

        g->auto_send = true;
        return g;
}

static void an_answer_takes_the_place_and_nothing_is_withdrawn(void **state)
{
        struct rig *g = rig_that_sends();

        (void)state;
        asks(g, "echo", "i1", "why?");
        rig_answer(g, 0, "because");
        rig_until_idle(g);
        assert_string_equal(stored(g), "send:i1");
        rig_free(g);
}

static void a_turn_that_says_nothing_withdraws_the_place(void **state)
{
        struct rig *g = rig_that_sends();

        (void)state;
        asks(g, "echo", "i1", "why?");
        rig_answer(g, 0, "");
        rig_until_idle(g);
        assert_string_equal(stored(g), "cancel_deferred:i1");
        assert_string_equal(rig_text(g, "SELECT state FROM deliveries"), "sent");
        rig_free(g);
}

static void whoever_reads_along_answers_a_command_in_its_place_or_withdraws_it(void **state)
{
        struct rig *g = rig_that_sends();

        (void)state;
        g->policy.mode = MODE_AMBIENT;
        asks(g, "echo", "i1", "anything?");
        rig_answer(g, 0, "[SILENT]");
        asks(g, "echo", "i2", "and now?");
        rig_answer(g, 1, "yes");
        rig_until_idle(g);
        assert_string_equal(stored(g), "cancel_deferred:i1 send:i2");
        rig_free(g);
}

static void one_answer_to_several_commands_stands_in_the_place_of_the_last(void **state)
{
        struct rig *g = rig_that_sends();

        (void)state;
        asks(g, "batch", "i1", "one");
        commands(g, "batch", "i2", "two");
        commands(g, "batch", "i3", "three");
        rig_until(g, &g->acks, 3);
        rig_answer(g, 0, "the first");
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "two+three");
        rig_answer(g, 1, "the others");
        rig_until_idle(g);
        assert_string_equal(stored(g), "send:i1 send:i3 cancel_deferred:i2");
        rig_free(g);
}

static void a_stopped_turn_withdraws_what_it_was_asked(void **state)
{
        struct rig *g = rig_that_sends();

        (void)state;
        asks(g, "echo", "i1", "one");
        commands(g, "echo", "i2", "two");
        rig_until_count(g, "SELECT count(*) FROM turns", 2);
        turn_cancel(g->road, g->runs[0].run->id, "stopped", NULL, NULL);
        rig_until(g, &g->run_count, 2);
        turn_cancel(g->road, g->runs[1].run->id, "stopped", NULL, NULL);
        rig_until_idle(g);
        assert_string_equal(stored(g), "cancel_deferred:i1 cancel_deferred:i2");
        rig_free(g);
}

static void a_place_is_withdrawn_in_whichever_life_the_turn_ends(void **state)
{
        struct rig *g = rig_that_sends();

        (void)state;
        asks(g, "echo", "i1", "one");
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        rig_answer(g, 1, "");
        rig_until_idle(g);
        assert_string_equal(stored(g), "cancel_deferred:i1");
        rig_free(g);
}

static void says_no(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        out->trigger = false;
        out->reason = "not here";
        out->expired = strcmp(in->id, "i2") == 0;
        out->notice = strcmp(in->id, "i3") == 0 ? "I do not answer this here." : NULL;
}

static void a_command_nobody_answers_is_withdrawn_by_its_decision(void **state)
{
        struct rig *g = rig_that_sends();
        struct incoming plain = { .adapter = "grow", .id = "m4", .text = "hello" };

        (void)state;
        g->decides = says_no;
        commands(g, "echo", "i1", "refused");
        commands(g, "echo", "i2", "too old");
        commands(g, "echo", "i3", "refused with a word");
        rig_hear(g, &plain);
        rig_until(g, &g->acks, 4);
        rig_until_idle(g);
        assert_string_equal(stored(g), "cancel_deferred:i1 cancel_deferred:i2 send:i3");
        rig_free(g);
}

/* The draft stands in the place already. */
static void a_stopped_turn_leaves_what_it_has_shown(void **state)
{
        struct rig *g = rig_that_sends();

        (void)state;
        asks(g, "echo", "i1", "a long one");
        turn_delta(g->runs[0].run, "so far", 6);
        rig_until_count(g, "SELECT count(*) FROM deliveries WHERE kind = 'send' AND state = 'sent'",
                        1);
        turn_cancel(g->road, g->runs[0].run->id, "stopped", NULL, NULL);
        rig_until_idle(g);
        assert_string_equal(stored(g), "send:i1");
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_answer_takes_the_place_and_nothing_is_withdrawn),
                cmocka_unit_test(a_turn_that_says_nothing_withdraws_the_place),
                cmocka_unit_test(
                        whoever_reads_along_answers_a_command_in_its_place_or_withdraws_it),
                cmocka_unit_test(one_answer_to_several_commands_stands_in_the_place_of_the_last),
                cmocka_unit_test(a_stopped_turn_withdraws_what_it_was_asked),
                cmocka_unit_test(a_place_is_withdrawn_in_whichever_life_the_turn_ends),
                cmocka_unit_test(a_command_nobody_answers_is_withdrawn_by_its_decision),
                cmocka_unit_test(a_stopped_turn_leaves_what_it_has_shown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
