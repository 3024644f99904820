/* Files are fetched for a turn, after the decision; text does not wait for the files of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../lib/road_rig.h"
#include "base/mem.h"
#include "road/road_state.h"

#define PATH  "channels/j/c/attachments/1-a.txt"
#define PATH2 "channels/j/c/attachments/2-b.txt"

/* sender NULL: Ann; source NULL: no file. */
static void say(struct rig *g, const char *sender, const char *agent, const char *text,
                const char *source)
{
        const struct attachment file = { .kind = "document", .name = "a.txt", .source = source };

        rig_receive(g, &(struct incoming){ .sender_id = sender,
                                           .guild = agent,
                                           .text = text,
                                           .attachments = &file,
                                           .attachment_count = source ? 1 : 0 });
}

static const struct attachment *file_of(const struct rig *g, unsigned run)
{
        return &g->runs[run].run->inputs[0]->attachments[0];
}

static void files_of_a_skipped_message_are_not_fetched(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        say(g, "stranger", "echo", "skip this", "F1");
        say(g, NULL, "echo", "hi", NULL);
        rig_until(g, &g->run_count, 1);
        assert_int_equal(g->acks, 2);
        assert_int_equal(g->held_count, 0);
        rig_answer(g, 0, "hello");
        rig_until_idle(g);
        rig_free(g);
}

static void what_is_there_or_cannot_be_fetched_is_not_waited_for(void **state)
{
        const struct attachment files[] = { { .source = "F1", .path = PATH },
                                            { .url = "https://example.com/a" } };
        struct rig *g = rig_new();

        (void)state;
        rig_receive(
                g, &(struct incoming){ .text = "hi", .attachments = files, .attachment_count = 2 });
        rig_until(g, &g->run_count, 1);
        assert_int_equal(g->held_count, 0);
        rig_answer(g, 0, "hello");
        rig_until_idle(g);
        rig_free(g);
}

static struct held_files *hold_none(struct adapters *as, const struct incoming *in,
                                    files_ready_fn *done, void *arg)
{
        (void)as;
        (void)in;
        (void)done;
        (void)arg;
        return NULL;
}

static struct held_files *hold_at_once(struct adapters *as, const struct incoming *in,
                                       files_ready_fn *done, void *arg)
{
        struct rig *g = (struct rig *)as;
        struct rig_held *h = &g->held[g->held_count++];

        (void)in;
        (void)done;
        (void)arg;
        h->item = (struct attachment){ .path = PATH };
        h->base = (struct held_files){ .items = &h->item, .count = 1, .ready = true };
        return &h->base;
}

static void an_adapter_may_have_the_files_or_none(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->road->platforms.hold_files = hold_none;
        say(g, NULL, "echo", "one", "F1");
        rig_until(g, &g->run_count, 1);
        assert_null(file_of(g, 0)->path);
        rig_answer(g, 0, "1");
        g->road->platforms.hold_files = hold_at_once;
        say(g, NULL, "echo", "two", "F2");
        rig_until(g, &g->run_count, 2);
        assert_string_equal(file_of(g, 1)->path, PATH);
        rig_answer(g, 1, "2");
        rig_until_idle(g);
        assert_true(g->held[0].released);
        rig_free(g);
}

static void an_agent_is_asked_when_its_files_are_there(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        say(g, NULL, "echo", "read this", "F1");
        rig_until(g, &g->held_count, 1);
        assert_int_equal(g->acks, 1);
        assert_string_equal(g->held[0].source, "F1");
        rig_settle(g);
        assert_int_equal(g->run_count, 0);
        assert_string_equal(rig_text(g, "state FROM turns"), "queued");
        rig_file(g, 0, PATH, NULL);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(file_of(g, 0)->path, PATH);
        assert_int_equal(
                rig_count(g, "journal WHERE type = 'turn.started' AND payload LIKE '%" PATH "%'"),
                1);
        assert_false(g->held[0].released);
        rig_answer(g, 0, "read");
        rig_until_idle(g);
        assert_true(g->held[0].released);
        rig_free(g);
}

static void a_file_that_cannot_be_had_is_explained(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        say(g, NULL, "echo", "read this", "F1");
        rig_until(g, &g->held_count, 1);
        rig_file(g, 0, NULL, "it is gone");
        rig_until(g, &g->run_count, 1);
        assert_null(file_of(g, 0)->path);
        assert_string_equal(file_of(g, 0)->error, "it is gone");
        assert_int_equal(rig_count(g, "journal WHERE type = 'turn.started'"
                                      " AND payload LIKE '%it is gone%'"
                                      " AND payload NOT LIKE '%\"size\"%'"),
                         1);
        rig_answer(g, 0, "sorry");
        rig_until_idle(g);
        rig_free(g);
}

static void a_turn_waits_for_its_files_until_a_deadline(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->limits.file_seconds = 0;
        road_set_limits(g->road, &g->limits);
        say(g, NULL, "echo", "read this", "F1");
        rig_until(g, &g->run_count, 1);
        assert_string_equal(file_of(g, 0)->error,
                            "it did not arrive within 0 s (limits.fileSeconds)");
        rig_answer(g, 0, "sorry");
        rig_until_idle(g);
        rig_free(g);
}

/* 150 files of one person, none of which arrives, and an admin's text in the same chat. */
static void text_does_not_wait_behind_files_of_others(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        for (int i = 0; i < 150; i++)
                say(g, "flooder", "batch", "look", "F");
        rig_until(g, &g->held_count, 150);
        say(g, "admin", "batch", "hi", NULL);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "hi");
        /* while it runs, another text does not join the files either */
        say(g, "admin", "batch", "again", NULL);
        rig_until_count(g, "trigger_log", 152);
        rig_answer(g, 0, "hello");
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "again");
        rig_answer(g, 1, "yes?");
        for (unsigned i = 0; i < 150; i++)
                rig_file(g, i, PATH, NULL);
        rig_until(g, &g->run_count, 3);
        assert_int_equal(g->runs[2].run->input_count, 150);
        rig_answer(g, 2, "I have looked");
        rig_until_idle(g);
        rig_free(g);
}

/* A file does not join the text of others, nor does a text that waits behind its sender's files. */
static void files_are_kept_apart_from_the_text_of_others(void **state)
{
        static const struct {
                const char *sender, *text, *source;
        } rows[] = {
                { "flooder", "look", "F1" }, { "bob", "hi", NULL },   { "flooder", "please", NULL },
                { "admin", "me too", NULL }, { "eve", "this", "F2" },
        };
        struct rig *g = rig_new();

        (void)state;
        say(g, "ann", "batch", "work", NULL);
        rig_until(g, &g->run_count, 1);
        for (unsigned i = 0; i < COUNT(rows); i++) {
                say(g, rows[i].sender, "batch", rows[i].text, rows[i].source);
                rig_until_count(g, "trigger_log", 2 + i);
        }
        rig_answer(g, 0, "done");
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "hi+me too");
        rig_answer(g, 1, "hello");
        rig_settle(g);
        assert_int_equal(g->run_count, 2);
        rig_file(g, 0, PATH, NULL);
        rig_until(g, &g->run_count, 3);
        assert_string_equal(g->runs[2].text, "look+please");
        rig_answer(g, 2, "I have looked");
        rig_file(g, 1, PATH, NULL);
        rig_until(g, &g->run_count, 4);
        assert_string_equal(g->runs[3].text, "this");
        rig_answer(g, 3, "I see");
        rig_until_idle(g);
        rig_free(g);
}

/* What follows is decided together, as soon as this is stored. */
static void begin_decision(struct rig *g)
{
        say(g, "stranger", "batch", "skip this", NULL);
}

static void text_does_not_join_files_that_are_being_stored(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        say(g, "ann", "batch", "work", NULL);
        rig_until(g, &g->run_count, 1);
        begin_decision(g);
        say(g, "flooder", "batch", "look", "F1");
        say(g, "admin", "batch", "hi", NULL);
        rig_until_count(g, "trigger_log", 4);
        rig_answer(g, 0, "done");
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "hi");
        /* the same for a file that joins an earlier message */
        say(g, "bob", "batch", "and", NULL);
        rig_until_count(g, "trigger_log", 5);
        begin_decision(g);
        say(g, "bob", "batch", "this", "F2");
        say(g, "admin", "batch", "again", NULL);
        rig_until_count(g, "trigger_log", 8);
        rig_answer(g, 1, "hello");
        rig_until(g, &g->run_count, 3);
        assert_string_equal(g->runs[2].text, "again");
        rig_answer(g, 2, "yes?");
        rig_file(g, 0, PATH, NULL);
        rig_until(g, &g->run_count, 4);
        assert_string_equal(g->runs[3].text, "look");
        rig_answer(g, 3, "I have looked");
        rig_file(g, 1, PATH, NULL);
        rig_until(g, &g->run_count, 5);
        assert_string_equal(g->runs[4].text, "and+this");
        rig_answer(g, 4, "I see");
        rig_until_idle(g);
        rig_free(g);
}

static void a_persons_own_messages_keep_their_order(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_answer = true;
        say(g, "ann", "echo", "first", "F1");
        say(g, "ann", "echo", "second", NULL);
        say(g, "bob", "echo", "other", NULL);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "other");
        rig_settle(g);
        assert_int_equal(g->run_count, 1);
        rig_file(g, 0, PATH, NULL);
        rig_until(g, &g->run_count, 3);
        assert_string_equal(g->runs[1].text, "first");
        assert_string_equal(g->runs[2].text, "second");
        rig_until_idle(g);
        rig_free(g);
}

/* An agent that must not be asked twice has not been asked yet. */
static void files_are_fetched_again_after_a_restart(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        say(g, NULL, "once", "read this", "F1");
        rig_until(g, &g->held_count, 1);
        rig_restart(g);
        rig_until(g, &g->held_count, 2);
        assert_string_equal(g->held[1].source, "F1");
        rig_file(g, 1, PATH, NULL);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(file_of(g, 0)->path, PATH);
        rig_answer(g, 0, "read");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "turns WHERE state = 'done'"), 1);
        rig_free(g);
}

static void on_retried(void *arg, const struct error *err)
{
        assert_null(err);
        ++*(unsigned *)arg;
}

static void files_are_fetched_again_for_a_retry(void **state)
{
        struct rig *g = rig_new();
        unsigned retried = 0;

        (void)state;
        say(g, NULL, "echo", "read this", "F1");
        rig_until(g, &g->held_count, 1);
        rig_file(g, 0, PATH, NULL);
        rig_until(g, &g->run_count, 1);
        rig_fail(g, 0, ERR_NET, "sorry");
        rig_until_idle(g);
        turn_retry(g->road, rig_number(g, "id FROM turns"), on_retried, &retried);
        rig_until(g, &retried, 1);
        rig_until(g, &g->held_count, 2);
        rig_settle(g);
        assert_int_equal(g->run_count, 1);
        rig_file(g, 1, PATH2, NULL);
        rig_until(g, &g->run_count, 2);
        assert_string_equal(file_of(g, 1)->path, PATH2);
        rig_answer(g, 1, "read");
        rig_until_idle(g);
        rig_free(g);
}

static void remove_message(struct rig *g, const char *message)
{
        rig_receive(g, &(struct incoming){ .type = EVENT_MESSAGE_DELETED, .id = message });
}

/* Each message of a turn has its own files. */
static void a_deleted_message_lets_its_files_go(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        say(g, NULL, "batch", "work", NULL); /* its id is k0 */
        rig_until(g, &g->run_count, 1);
        say(g, NULL, "batch", "one", "F1");
        say(g, NULL, "batch", "two", "F2");
        say(g, NULL, "batch", "three", "F3");
        rig_until(g, &g->held_count, 3);
        remove_message(g, "k1");
        rig_until_count(g, "trigger_log", 5);
        rig_settle(g);
        assert_true(g->held[0].released);
        assert_false(g->held[1].released || g->held[2].released);
        rig_answer(g, 0, "done");
        rig_file(g, 2, PATH2, NULL);
        rig_file(g, 1, PATH, NULL);
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "two+three");
        assert_string_equal(g->runs[1].run->inputs[0]->attachments[0].path, PATH);
        assert_string_equal(g->runs[1].run->inputs[1]->attachments[0].path, PATH2);
        rig_answer(g, 1, "read");
        rig_until_idle(g);
        rig_free(g);
}

static void the_files_of_the_only_message_are_not_fetched_after_its_deletion(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        say(g, NULL, "echo", "read this", "F1");
        rig_until(g, &g->held_count, 1);
        remove_message(g, "k0");
        rig_until_idle(g);
        assert_true(g->held[0].released);
        assert_int_equal(g->held_count, 1);
        assert_int_equal(g->run_count, 0);
        rig_free(g);
}

static void an_edit_fetches_the_files_of_the_new_message(void **state)
{
        const struct attachment other = { .kind = "document", .source = "F2" };
        struct rig *g = rig_new();

        (void)state;
        rig_receive(g, &(struct incoming){ .key = "1",
                                           .text = "read this",
                                           .attachments = &(struct attachment){ .source = "F1" },
                                           .attachment_count = 1 });
        rig_until(g, &g->held_count, 1);
        rig_receive(g, &(struct incoming){ .type = EVENT_MESSAGE_EDITED,
                                           .key = "1e",
                                           .id = "1",
                                           .sender_id = "7",
                                           .text = "read that",
                                           .attachments = &other,
                                           .attachment_count = 1 });
        rig_until(g, &g->held_count, 2);
        assert_true(g->held[0].released);
        assert_string_equal(g->held[1].source, "F2");
        rig_file(g, 1, PATH, NULL);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "read that");
        assert_string_equal(file_of(g, 0)->path, PATH);
        rig_answer(g, 0, "done");
        rig_until_idle(g);
        rig_free(g);
}

static void an_edit_adds_a_file_to_a_turn_that_waits_for_a_place(void **state)
{
        const struct attachment added = { .kind = "document", .source = "F1" };
        struct rig *g = rig_new();

        (void)state;
        g->limits.running_turns = 1;
        road_set_limits(g->road, &g->limits);
        rig_say(g, "j", "c", "echo", "first", NULL);
        rig_until(g, &g->run_count, 1);
        rig_say(g, "j", "d", "echo", "read this", "1");
        rig_until_count(g, "turns", 2);
        rig_receive(g, &(struct incoming){ .type = EVENT_MESSAGE_EDITED,
                                           .channel = "d",
                                           .key = "1e",
                                           .id = "1",
                                           .sender_id = "7",
                                           .text = "read this",
                                           .attachments = &added,
                                           .attachment_count = 1 });
        rig_until(g, &g->held_count, 1);
        rig_answer(g, 0, "done");
        rig_settle(g);
        assert_int_equal(g->run_count, 1);
        rig_file(g, 0, PATH, NULL);
        rig_until(g, &g->run_count, 2);
        assert_string_equal(file_of(g, 1)->path, PATH);
        rig_answer(g, 1, "read");
        rig_until_idle(g);
        rig_free(g);
}

static void text_does_not_wait_for_a_file_that_an_edit_adds(void **state)
{
        const struct attachment added = { .kind = "document", .source = "F1" };
        struct rig *g = rig_new();

        (void)state;
        say(g, "ann", "batch", "work", NULL);
        rig_until(g, &g->run_count, 1);
        rig_receive(g, &(struct incoming){
                               .key = "1", .sender_id = "eve", .guild = "batch", .text = "look" });
        rig_until_count(g, "trigger_log", 2);
        say(g, "bob", "batch", "hi", NULL);
        rig_until_count(g, "trigger_log", 3);
        rig_receive(g, &(struct incoming){ .type = EVENT_MESSAGE_EDITED,
                                           .key = "1e",
                                           .id = "1",
                                           .sender_id = "eve",
                                           .guild = "batch",
                                           .text = "look here",
                                           .attachments = &added,
                                           .attachment_count = 1 });
        rig_until(g, &g->held_count, 1);
        rig_answer(g, 0, "done");
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "look here+hi");
        assert_string_equal(file_of(g, 1)->error,
                            "an edit added it to a turn with messages of others");
        rig_answer(g, 1, "hello");
        rig_until_idle(g);
        rig_free(g);
}

static void a_cancelled_turn_lets_its_files_go(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        say(g, NULL, "echo", "read this", "F1");
        rig_until(g, &g->held_count, 1);
        turn_cancel(g->road, rig_number(g, "id FROM turns"), "enough", NULL, NULL);
        assert_true(g->held[0].released);
        rig_until_idle(g);
        assert_int_equal(g->run_count, 0);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(files_of_a_skipped_message_are_not_fetched),
                cmocka_unit_test(what_is_there_or_cannot_be_fetched_is_not_waited_for),
                cmocka_unit_test(an_adapter_may_have_the_files_or_none),
                cmocka_unit_test(an_agent_is_asked_when_its_files_are_there),
                cmocka_unit_test(a_file_that_cannot_be_had_is_explained),
                cmocka_unit_test(a_turn_waits_for_its_files_until_a_deadline),
                cmocka_unit_test(text_does_not_wait_behind_files_of_others),
                cmocka_unit_test(files_are_kept_apart_from_the_text_of_others),
                cmocka_unit_test(text_does_not_join_files_that_are_being_stored),
                cmocka_unit_test(a_persons_own_messages_keep_their_order),
                cmocka_unit_test(files_are_fetched_again_after_a_restart),
                cmocka_unit_test(files_are_fetched_again_for_a_retry),
                cmocka_unit_test(a_deleted_message_lets_its_files_go),
                cmocka_unit_test(the_files_of_the_only_message_are_not_fetched_after_its_deletion),
                cmocka_unit_test(an_edit_fetches_the_files_of_the_new_message),
                cmocka_unit_test(an_edit_adds_a_file_to_a_turn_that_waits_for_a_place),
                cmocka_unit_test(text_does_not_wait_for_a_file_that_an_edit_adds),
                cmocka_unit_test(a_cancelled_turn_lets_its_files_go),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
