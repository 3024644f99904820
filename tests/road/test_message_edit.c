/* Messages that are edited or deleted before they are answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../lib/road_rig.h"

/* Hands it in and waits until it is decided. */
static void happens(struct rig *g, const char *type, const char *id, const char *sender,
                    const char *text)
{
        int64_t before = rig_count(g, "SELECT count(*) FROM trigger_log");
        struct incoming in = { .type = type,
                               .id = id,
                               .sender_id = sender,
                               .sender_name = sender,
                               .guild = "batch",
                               .text = text };

        rig_hear(g, &in);
        rig_until_count(g, "SELECT count(*) FROM trigger_log", before + 1);
}

static void says(struct rig *g, const char *id, const char *text)
{
        happens(g, EVENT_MESSAGE_RECEIVED, id, "ann", text);
}

static void edits(struct rig *g, const char *id, const char *text)
{
        happens(g, EVENT_MESSAGE_EDITED, id, "ann", text);
}

static void deletes(struct rig *g, const char *id)
{
        happens(g, EVENT_MESSAGE_DELETED, id, NULL, NULL);
}

static const char *last_reason(struct rig *g)
{
        return rig_text(
                g, "SELECT status || ': ' || reason FROM trigger_log ORDER BY event DESC LIMIT 1");
}

/* Two messages wait for more: "one" with the id 1, "two" with the id 2. */
static struct rig *two_wait(int64_t debounce_ms)
{
        struct rig *g = rig_new();

        g->debounce_ms = g->debounce_max_ms = debounce_ms;
        says(g, "1", "one");
        says(g, "2", "two");
        assert_int_equal(rig_count(g, "SELECT count(*) FROM turns"), 1);
        return g;
}

static void an_edit_changes_what_waits(void **state)
{
        struct rig *g = two_wait(300);

        (void)state;
        edits(g, "1", "ONE");
        assert_string_equal(last_reason(g), "done: changed a waiting message of trn-1");
        assert_int_equal(g->run_count, 0);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "ONE+two");
        rig_answer(g, 0, "1");
        rig_until_idle(g);
        assert_string_equal(rig_text(g, "SELECT text FROM transcript ORDER BY id"), "ONE");
        assert_int_equal(rig_count(g, "SELECT count(*) FROM turns"), 1);
        rig_free(g);
}

static void an_edit_counts_also_after_a_restart(void **state)
{
        struct rig *g = two_wait(600);

        (void)state;
        edits(g, "2", "TWO?");
        edits(g, "2", "TWO");
        rig_restart(g);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "one+TWO");
        rig_free(g);
}

static void nobody_edits_what_others_said(void **state)
{
        struct rig *g = two_wait(100);

        (void)state;
        happens(g, EVENT_MESSAGE_EDITED, "1", "bob", "three");
        assert_string_equal(last_reason(g), "skipped: the test says so");
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "one+two");
        rig_free(g);
}

static void a_deleted_message_is_taken_out_of_what_waits(void **state)
{
        struct rig *g = two_wait(600);

        (void)state;
        deletes(g, "1");
        assert_string_equal(last_reason(g), "done: took a waiting message out of trn-1");
        rig_restart(g);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "two");
        rig_answer(g, 0, "1");
        rig_until_idle(g);
        assert_string_equal(
                rig_text(g, "SELECT status || ': ' || error FROM trigger_log ORDER BY event"),
                "cancelled: it was deleted before it was answered");
        rig_free(g);
}

static void a_turn_with_nothing_left_to_answer_is_cancelled(void **state)
{
        struct rig *g = two_wait(60000);

        (void)state;
        deletes(g, "2");
        deletes(g, "1");
        assert_string_equal(last_reason(g), "done: cancelled trn-1: its message was deleted");
        rig_until_idle(g);
        assert_int_equal(g->run_count, 0);
        assert_string_equal(rig_text(g, "SELECT state || ': ' || error FROM turns"),
                            "cancelled: its message was deleted");
        says(g, "3", "the lane goes on");
        assert_int_equal(rig_count(g, "SELECT count(*) FROM turns WHERE state = 'queued'"), 1);
        rig_free(g);
}

static void what_is_said_instead_of_a_deleted_message_is_answered(void **state)
{
        struct rig *g = rig_new();
        struct incoming other = { .channel = "other", .guild = "batch", .text = "skip this" },
                        deletion = { .type = EVENT_MESSAGE_DELETED, .id = "1", .guild = "batch" },
                        better = { .id = "2", .guild = "batch", .text = "better" };

        (void)state;
        g->debounce_ms = g->debounce_max_ms = 100;
        says(g, "1", "typo");
        rig_hear(g, &other); /* while it is stored the next two come together */
        rig_hear(g, &deletion);
        rig_hear(g, &better);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "better");
        assert_string_equal(rig_text(g, "SELECT inputs FROM turns WHERE state = 'cancelled'"), "1");
        rig_free(g);
}

static void a_deleted_question_stops_the_turn_that_runs(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, "1", "one");
        rig_until(g, &g->run_count, 1);
        says(g, "2", "two");
        says(g, "3", "three");
        deletes(g, "1");
        rig_until(g, &g->run_count, 2); /* the next one begins */
        assert_true(g->runs[0].cancelled);
        assert_string_equal(g->runs[1].text, "two+three");
        deletes(g, "2");
        assert_string_equal(
                last_reason(g),
                "done: one of several messages of trn-2, which goes on with the others");
        deletes(g, "2"); /* told twice */
        assert_non_null(g->runs[1].run);
        deletes(g, "3");
        rig_until_idle(g);
        assert_true(g->runs[1].cancelled);
        assert_int_equal(rig_count(g, "SELECT count(*) FROM deliveries"), 0);
        rig_free(g);
}

static void what_was_deleted_while_the_agent_worked_is_not_read_by_the_next_life(void **state)
{
        struct rig *g = two_wait(50);

        (void)state;
        rig_until(g, &g->run_count, 1);
        deletes(g, "1");
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "two");
        assert_string_equal(
                rig_text(g, "SELECT status || ': ' || error FROM trigger_log ORDER BY event"),
                "cancelled: it was deleted before it was answered");
        deletes(g, "2");
        rig_until_idle(g);
        assert_true(g->runs[1].cancelled);
        rig_free(g);
}

static void an_edit_of_what_does_not_wait_changes_nothing(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, "1", "one");
        rig_until(g, &g->run_count, 1);
        edits(g, "1", "ONE");
        assert_string_equal(last_reason(g), "skipped: the test says so");
        rig_answer(g, 0, "1");
        rig_until_idle(g);
        edits(g, "1", "ONE!");
        deletes(g, "1");
        assert_string_equal(last_reason(g), "skipped: the test says so");
        assert_int_equal(rig_count(g, "SELECT count(*) FROM turns"), 1);
        assert_string_equal(rig_text(g, "SELECT text FROM transcript ORDER BY id"), "one");
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_edit_changes_what_waits),
                cmocka_unit_test(an_edit_counts_also_after_a_restart),
                cmocka_unit_test(nobody_edits_what_others_said),
                cmocka_unit_test(a_deleted_message_is_taken_out_of_what_waits),
                cmocka_unit_test(a_turn_with_nothing_left_to_answer_is_cancelled),
                cmocka_unit_test(what_is_said_instead_of_a_deleted_message_is_answered),
                cmocka_unit_test(a_deleted_question_stops_the_turn_that_runs),
                cmocka_unit_test(an_edit_of_what_does_not_wait_changes_nothing),
                cmocka_unit_test(
                        what_was_deleted_while_the_agent_worked_is_not_read_by_the_next_life),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
