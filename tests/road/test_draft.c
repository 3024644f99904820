/* Typing, and the draft: an answer that grows in one message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "../lib/road_rig.h"

/* Waits for a send of this kind and text (NULL: any); its index in g->sent. */
static unsigned await(struct rig *g, const char *kind, const char *text)
{
        for (unsigned seen = 0;; seen++) {
                rig_until(g, &g->sent_count, seen + 1);
                if (strcmp(g->sent[seen].kind, kind) == 0 &&
                    (!text || strcmp(g->sent[seen].text, text) == 0))
                        return seen;
        }
}

static struct rig *begin(const char *adapter)
{
        struct rig *g = rig_new();

        g->auto_send = true;
        rig_say(g, adapter, "c", "echo", "tell me", NULL);
        rig_until(g, &g->run_count, 1);
        return g;
}

static void a_quick_answer_has_no_draft(void **state)
{
        struct rig *g = begin("grow");

        (void)state;
        turn_delta(g->runs[0].run, "quick", 5);
        rig_answer(g, 0, "quick");
        rig_until_idle(g);
        assert_int_equal(g->sent_count, 1);
        assert_string_equal(g->sent[0].kind, "send");
        assert_string_equal(g->sent[0].text, "quick");
        rig_free(g);
}

static void typing_is_shown_while_a_turn_runs_and_not_after(void **state)
{
        struct rig *g = begin("grow");
        unsigned before;

        (void)state;
        await(g, "type", NULL);
        rig_answer(g, 0, "done");
        await(g, "send", "done");
        rig_until_idle(g);
        before = g->sent_count;
        rig_run_for(g, 600);
        assert_int_equal(g->sent_count, before);
        rig_free(g);
}

static void typing_that_does_not_show_is_not_stored(void **state)
{
        struct rig *g = begin("hush");

        (void)state;
        rig_receive(g, &(struct incoming){ .adapter = "hush", .thread = "t", .text = "me, too" });
        await(g, "type", NULL);
        assert_string_equal(g->sent[0].thread, "t");
        assert_int_equal(rig_count(g, "deliveries WHERE kind = 'type' AND thread IS NULL"), 0);
        rig_free(g);
}

static void a_growing_answer_is_one_edited_message(void **state)
{
        struct rig *g = begin("grow");
        unsigned draft, edit, final;

        (void)state;
        turn_delta(g->runs[0].run, "one", 3);
        draft = await(g, "send", "one");
        turn_delta(g->runs[0].run, " two", 4);
        edit = await(g, "edit", "one two");
        rig_answer(g, 0, "one two three|and more");
        final = await(g, "edit", "one two three");
        rig_until_idle(g);
        assert_true(draft < edit && edit < final);
        assert_string_equal(
                g->sent[edit].target,
                rig_text(g, "platform_id FROM deliveries WHERE kind = 'send' ORDER BY id"));
        assert_string_equal(g->sent[final].target, g->sent[edit].target);
        assert_string_equal(g->sent[g->sent_count - 1].text, "and more");
        assert_int_equal(rig_count(g, "deliveries WHERE kind = 'send'"), 2);
        rig_free(g);
}

static void progress_is_shown_below_the_text(void **state)
{
        struct rig *g = begin("grow");

        (void)state;
        turn_progress(g->runs[0].run, "reading a file\nsecond line");
        await(g, "send", "… reading a file");
        turn_delta(g->runs[0].run, "Let me see.", 11);
        await(g, "edit", "Let me see.");
        turn_goes_on(g->runs[0].run);
        turn_progress(g->runs[0].run, "running a command");
        await(g, "edit", "Let me see.\n\n… running a command");
        turn_delta(g->runs[0].run, "It works", 8);
        await(g, "edit", "It works");
        rig_answer(g, 0, "It works.");
        await(g, "edit", "It works.");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries WHERE kind = 'send'"), 1);
        rig_free(g);
}

/* A text before tools must not hide that the last one is marked. */
static void silence_after_an_aside_is_recognised(void **state)
{
        struct rig *g = begin("grow");

        (void)state;
        turn_delta(g->runs[0].run, "looking", 7);
        await(g, "send", "looking");
        turn_goes_on(g->runs[0].run);
        turn_delta(g->runs[0].run, "[SILENT]", 8);
        rig_answer(g, 0, "[SILENT]");
        await(g, "delete", NULL);
        rig_until_idle(g);
        for (unsigned i = 0; i < g->sent_count; i++)
                assert_null(strstr(g->sent[i].text, "SILENT"));
        rig_free(g);
}

static void show_more(struct rig *g, const char *text)
{
        turn_delta(g->runs[0].run, text, strlen(text));
}

static void queued_pieces_of_a_draft_collapse_into_the_last(void **state)
{
        struct rig *g = begin("grow");

        (void)state;
        show_more(g, "one");
        await(g, "send", "one");
        rig_settle(g);
        g->adapters_down = true;
        show_more(g, " two");
        rig_until_count(g, "deliveries WHERE kind = 'edit'", 1);
        show_more(g, " three");
        rig_until_count(g, "deliveries WHERE payload LIKE '%one two three%'", 1);
        g->adapters_down = false;
        outbox_wake(g->road, "grow");
        await(g, "edit", "one two three");
        assert_int_equal(rig_count(g, "deliveries WHERE kind = 'edit'"), 1);
        rig_settle(g);
        g->adapters_down = true;
        show_more(g, " four");
        rig_until_count(g, "deliveries WHERE kind = 'edit'", 2);
        rig_answer(g, 0, "all"); /* replaces the last piece, too */
        rig_until_count(g, "deliveries WHERE state = 'superseded'", 1);
        g->adapters_down = false;
        outbox_wake(g->road, "grow");
        await(g, "edit", "all");
        rig_until_idle(g);
        assert_string_equal(rig_members(g,
                                        "payload FROM deliveries"
                                        " WHERE kind <> 'type' AND state = 'sent' ORDER BY id",
                                        "text"),
                            "one, one two three, all");
        rig_free(g);
}

static void a_repeated_turn_continues_its_draft(void **state)
{
        struct rig *g = begin("grow");
        unsigned final;

        (void)state;
        turn_delta(g->runs[0].run, "half", 4);
        await(g, "send", "half");
        rig_settle(g);
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        rig_answer(g, 1, "whole");
        final = await(g, "edit", "whole");
        rig_until_idle(g);
        assert_string_not_equal(g->sent[final].target, "");
        assert_int_equal(rig_count(g, "deliveries WHERE kind = 'send'"), 1);
        rig_free(g);
}

static void a_draft_never_shows_a_marker(void **state)
{
        static const char *const pieces[] = { "`", "[", "SIL", "ENT", "]", "`", " nobody asked" };
        struct rig *g = begin("grow");

        (void)state;
        await(g, "type", NULL);
        for (unsigned i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
                show_more(g, pieces[i]);
                rig_run_for(g, 200); /* longer in all than a draft takes to appear */
        }
        assert_int_equal(rig_count(g, "deliveries WHERE kind = 'send'"), 0);
        rig_answer(g, 0, "`[SILENT]` nobody asked");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries WHERE kind <> 'type'"), 0);
        assert_string_equal(rig_text(g, "status || ': ' || reason FROM trigger_log"),
                            "done: agent 'echo' had nothing to say");
        rig_free(g);
}

static void what_began_like_a_marker_is_shown_whole(void **state)
{
        struct rig *g = begin("grow");

        (void)state;
        show_more(g, "[SIL");
        show_more(g, "VER] rings");
        await(g, "send", "[SILVER] rings");
        rig_answer(g, 0, "[SILVER] rings.");
        await(g, "edit", "[SILVER] rings.");
        rig_until_idle(g);
        rig_free(g);
}

static void silence_removes_the_draft_of_an_earlier_attempt(void **state)
{
        struct rig *g = begin("grow");

        (void)state;
        show_more(g, "half");
        await(g, "send", "half");
        rig_settle(g);
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        rig_answer(g, 1, "[SILENT]");
        rig_until_count(g, "deliveries WHERE kind = 'delete' AND state = 'sent'", 1);
        rig_until_idle(g);
        rig_free(g);
}

static void a_deleted_draft_does_not_lose_the_answer(void **state)
{
        struct rig *g = begin("grow");
        unsigned final;

        (void)state;
        turn_delta(g->runs[0].run, "half", 4);
        await(g, "send", "half");
        rig_settle(g);
        g->auto_send = false;
        rig_answer(g, 0, "whole");
        final = await(g, "edit", "whole");
        g->adapters_down = true;
        rig_result(g, final, SEND_REJECTED, ERR_MISSING, -1);
        rig_until_count(g, "deliveries WHERE kind = 'send' AND edits = 0 AND state = 'queued'", 1);
        rig_restart(g);
        g->adapters_down = false;
        outbox_wake(g->road, "grow");
        final = await(g, "send", "whole");
        rig_result(g, final, SEND_DONE, ERR_NONE, -1);
        rig_until_idle(g);
        rig_free(g);
}

static void an_unsent_draft_is_replaced_by_the_answer(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->adapters_down = true;
        g->auto_send = true;
        rig_say(g, "grow", "c", "echo", "tell me", NULL);
        rig_until(g, &g->run_count, 1);
        turn_delta(g->runs[0].run, "half", 4);
        rig_until_count(g, "deliveries WHERE kind = 'send'", 1);
        rig_answer(g, 0, "whole");
        rig_settle(g);
        g->adapters_down = false;
        outbox_wake(g->road, "grow");
        await(g, "send", "whole");
        rig_until_idle(g);
        for (unsigned i = 0; i < g->sent_count; i++)
                assert_string_not_equal(g->sent[i].text, "half");
        rig_free(g);
}

static void an_interrupted_edit_is_repeated(void **state)
{
        struct rig *g = begin("grow");
        unsigned final;

        (void)state;
        turn_delta(g->runs[0].run, "half", 4);
        await(g, "send", "half");
        rig_settle(g);
        g->auto_send = false;
        rig_answer(g, 0, "whole");
        final = await(g, "edit", "whole");
        rig_restart(g); /* an edit may be repeated */
        rig_until(g, &g->sent_count, final + 2);
        assert_string_equal(g->sent[final + 1].text, "whole");
        assert_string_equal(g->sent[final + 1].target, g->sent[final].target);
        rig_free(g);
}

static void deleting_the_question_deletes_the_draft(void **state)
{
        struct rig *g = rig_new();
        struct incoming asked = { .adapter = "grow", .id = "m1", .text = "hello" };
        struct incoming deleted = { .adapter = "grow", .id = "m1", .type = EVENT_MESSAGE_DELETED };

        (void)state;
        g->auto_send = true;
        rig_receive(g, &asked);
        rig_until(g, &g->run_count, 1);
        turn_delta(g->runs[0].run, "a draft", 7);
        rig_until_count(g, "deliveries WHERE kind = 'send' AND state = 'sent'", 1);
        rig_receive(g, &deleted);
        rig_until_count(g, "deliveries WHERE kind = 'delete' AND state = 'sent'", 1);
        assert_true(g->runs[0].cancelled);
        rig_until_idle(g);
        rig_free(g);
}

static void a_stopped_turn_says_so_in_its_draft(void **state)
{
        struct rig *g = begin("grow");
        unsigned edit;

        (void)state;
        turn_delta(g->runs[0].run, "One.", 4);
        await(g, "send", "One.");
        turn_progress(g->runs[0].run, "counting");
        await(g, "edit", "One.\n\n… counting");
        turn_cancel(g->road, g->runs[0].run->id, "stopped", NULL, NULL);
        edit = await(g, "edit", "One.\n\n(stopped)");
        assert_string_equal(g->sent[edit].target,
                            rig_text(g, "platform_id FROM deliveries WHERE kind = 'send'"));
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "transcript"), 0);
        rig_free(g);
}

/* Without words of the agent there is only what it was doing. */
static void a_stopped_turn_leaves_no_progress_behind(void **state)
{
        struct rig *g = begin("grow");

        (void)state;
        turn_progress(g->runs[0].run, "counting");
        await(g, "send", "… counting");
        turn_cancel(g->road, g->runs[0].run->id, "stopped", NULL, NULL);
        await(g, "edit", "Stopped.");
        rig_until_idle(g);
        rig_free(g);
}

static void a_stopped_turn_that_showed_nothing_says_nothing(void **state)
{
        struct rig *g = begin("sketch");

        (void)state;
        g->adapters_down = true;
        turn_delta(g->runs[0].run, "One.", 4);
        rig_until_count(g, "deliveries", 1);
        turn_cancel(g->road, g->runs[0].run->id, "stopped", NULL, NULL);
        rig_until_count(g, "turns WHERE state = 'cancelled'", 1);
        g->adapters_down = false;
        outbox_wake(g->road, "sketch");
        rig_until_idle(g);
        assert_int_equal(g->sent_count, 0);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_quick_answer_has_no_draft),
                cmocka_unit_test(typing_is_shown_while_a_turn_runs_and_not_after),
                cmocka_unit_test(typing_that_does_not_show_is_not_stored),
                cmocka_unit_test(a_growing_answer_is_one_edited_message),
                cmocka_unit_test(progress_is_shown_below_the_text),
                cmocka_unit_test(silence_after_an_aside_is_recognised),
                cmocka_unit_test(queued_pieces_of_a_draft_collapse_into_the_last),
                cmocka_unit_test(a_repeated_turn_continues_its_draft),
                cmocka_unit_test(a_draft_never_shows_a_marker),
                cmocka_unit_test(what_began_like_a_marker_is_shown_whole),
                cmocka_unit_test(silence_removes_the_draft_of_an_earlier_attempt),
                cmocka_unit_test(a_deleted_draft_does_not_lose_the_answer),
                cmocka_unit_test(an_unsent_draft_is_replaced_by_the_answer),
                cmocka_unit_test(an_interrupted_edit_is_repeated),
                cmocka_unit_test(deleting_the_question_deletes_the_draft),
                cmocka_unit_test(a_stopped_turn_says_so_in_its_draft),
                cmocka_unit_test(a_stopped_turn_leaves_no_progress_behind),
                cmocka_unit_test(a_stopped_turn_that_showed_nothing_says_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
