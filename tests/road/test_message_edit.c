/* Messages edited or deleted before they are answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../lib/road_rig.h"

/* Waits until the event is decided. */
static void happens(struct rig *g, const char *type, const char *id, const char *sender,
                    const char *text)
{
        int64_t before = rig_count(g, "trigger_log");
        struct incoming in = { .type = type,
                               .id = id,
                               .sender_id = sender,
                               .sender_name = sender,
                               .guild = "batch",
                               .text = text };

        rig_receive(g, &in);
        rig_until_count(g, "trigger_log", before + 1);
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
        return rig_text(g, "status || ': ' || reason FROM trigger_log ORDER BY event DESC LIMIT 1");
}

/* A queued turn of two messages: "one" with id 1, "two" with id 2. */
static struct rig *rig_with_two_queued(int64_t debounce_ms)
{
        struct rig *g = rig_new();

        g->debounce_ms = g->debounce_max_ms = debounce_ms;
        says(g, "1", "one");
        says(g, "2", "two");
        assert_int_equal(rig_count(g, "turns"), 1);
        return g;
}

static void an_edit_changes_a_queued_message(void **state)
{
        struct rig *g = rig_with_two_queued(300);

        (void)state;
        edits(g, "1", "ONE");
        assert_string_equal(last_reason(g), "done: changed a waiting message of trn-1");
        assert_int_equal(g->run_count, 0);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "ONE+two");
        rig_answer(g, 0, "1");
        rig_until_idle(g);
        assert_string_equal(rig_text(g, "text FROM transcript ORDER BY id"), "ONE");
        assert_int_equal(rig_count(g, "turns"), 1);
        rig_free(g);
}

static void an_edit_survives_a_restart(void **state)
{
        struct rig *g = rig_with_two_queued(600);

        (void)state;
        edits(g, "2", "TWO?");
        edits(g, "2", "TWO");
        rig_restart(g);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "one+TWO");
        rig_free(g);
}

static void an_edit_by_another_sender_is_ignored(void **state)
{
        struct rig *g = rig_with_two_queued(100);

        (void)state;
        happens(g, EVENT_MESSAGE_EDITED, "1", "bob", "three");
        assert_string_equal(last_reason(g), "skipped: the test says so");
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "one+two");
        rig_free(g);
}

static void a_deleted_message_leaves_its_queued_turn(void **state)
{
        struct rig *g = rig_with_two_queued(600);

        (void)state;
        deletes(g, "1");
        assert_string_equal(last_reason(g), "done: removed a waiting message from trn-1");
        rig_restart(g);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "two");
        rig_answer(g, 0, "1");
        rig_until_idle(g);
        assert_string_equal(rig_text(g, "status || ': ' || error FROM trigger_log ORDER BY event"),
                            "cancelled: it was deleted before it was answered");
        rig_free(g);
}

static void a_turn_without_messages_is_cancelled(void **state)
{
        struct rig *g = rig_with_two_queued(60000);

        (void)state;
        deletes(g, "2");
        deletes(g, "1");
        assert_string_equal(last_reason(g), "done: cancelled trn-1: its message was deleted");
        rig_until_idle(g);
        assert_int_equal(g->run_count, 0);
        assert_string_equal(rig_text(g, "state || ': ' || error FROM turns"),
                            "cancelled: its message was deleted");
        says(g, "3", "the lane goes on");
        assert_int_equal(rig_count(g, "turns WHERE state = 'queued'"), 1);
        rig_free(g);
}

static void a_message_after_a_deletion_is_answered(void **state)
{
        struct rig *g = rig_new();
        struct incoming other = { .channel = "other", .guild = "batch", .text = "skip this" },
                        deletion = { .type = EVENT_MESSAGE_DELETED, .id = "1", .guild = "batch" },
                        better = { .id = "2", .guild = "batch", .text = "better" };

        (void)state;
        g->debounce_ms = g->debounce_max_ms = 100;
        says(g, "1", "typo");
        rig_receive(g, &other); /* while it is stored, the next two arrive as a batch */
        rig_receive(g, &deletion);
        rig_receive(g, &better);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "better");
        assert_string_equal(rig_text(g, "inputs FROM turns WHERE state = 'cancelled'"), "1");
        rig_free(g);
}

static void deleting_the_question_stops_its_turn(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, "1", "one");
        rig_until(g, &g->run_count, 1);
        says(g, "2", "two");
        says(g, "3", "three");
        deletes(g, "1");
        rig_until(g, &g->run_count, 2);
        assert_true(g->runs[0].cancelled);
        assert_string_equal(g->runs[1].text, "two+three");
        deletes(g, "2");
        assert_string_equal(last_reason(g),
                            "done: one message of trn-2, which continues with the others");
        deletes(g, "2"); /* a repeated event */
        assert_non_null(g->runs[1].run);
        deletes(g, "3");
        rig_until_idle(g);
        assert_true(g->runs[1].cancelled);
        assert_int_equal(rig_count(g, "deliveries"), 0);
        rig_free(g);
}

static void a_message_deleted_during_its_turn_stays_deleted(void **state)
{
        struct rig *g = rig_with_two_queued(50);

        (void)state;
        rig_until(g, &g->run_count, 1);
        deletes(g, "1");
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "two");
        assert_string_equal(rig_text(g, "status || ': ' || error FROM trigger_log ORDER BY event"),
                            "cancelled: it was deleted before it was answered");
        deletes(g, "2");
        rig_until_idle(g);
        assert_true(g->runs[1].cancelled);
        rig_free(g);
}

static void an_edit_of_an_answered_message_changes_nothing(void **state)
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
        assert_int_equal(rig_count(g, "turns"), 1);
        assert_string_equal(rig_text(g, "text FROM transcript ORDER BY id"), "one");
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_edit_changes_a_queued_message),
                cmocka_unit_test(an_edit_survives_a_restart),
                cmocka_unit_test(an_edit_by_another_sender_is_ignored),
                cmocka_unit_test(a_deleted_message_leaves_its_queued_turn),
                cmocka_unit_test(a_turn_without_messages_is_cancelled),
                cmocka_unit_test(a_message_after_a_deletion_is_answered),
                cmocka_unit_test(deleting_the_question_stops_its_turn),
                cmocka_unit_test(an_edit_of_an_answered_message_changes_nothing),
                cmocka_unit_test(a_message_deleted_during_its_turn_stays_deleted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
