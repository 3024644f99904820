/* Messages to the bot itself: begin anew, stop, tell what is going on and why. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/road_rig.h"
#include "base/mem.h"

static const struct {
        const char *text;
        enum road_command command;
} commands[] = {
        { "/new", COMMAND_NEW },
        { "/stop", COMMAND_STOP },
        { "/status", COMMAND_STATUS },
        { "/why", COMMAND_WHY },
};

static void knows_commands(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        for (size_t i = 0; i < COUNT(commands); i++) {
                if (strcmp(in->text, commands[i].text) == 0) {
                        out->trigger = false;
                        out->command = commands[i].command;
                }
        }
}

static struct rig *rig_with_commands(void)
{
        struct rig *g = rig_new();

        g->decides = knows_commands;
        return g;
}

static const char *last_answer(struct rig *g)
{
        return rig_text(
                g,
                "SELECT json_extract(payload, '$.text') FROM deliveries ORDER BY id DESC LIMIT 1");
}

/* Says it and waits until it is decided. */
static void says(struct rig *g, const char *text)
{
        int64_t before = rig_count(g, "SELECT count(*) FROM trigger_log");

        rig_say(g, "j", "c", "batch", text, NULL);
        rig_until_count(g, "SELECT count(*) FROM trigger_log", before + 1);
}

static void nothing_before_a_new_conversation_counts(void **state)
{
        struct rig *g = rig_with_commands();

        (void)state;
        says(g, "old");
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, "1");
        rig_until_idle(g);
        says(g, "running while it begins anew");
        rig_until(g, &g->run_count, 2);
        assert_int_equal(g->runs[1].run->history_count, 2);
        says(g, "waiting while it begins anew");
        says(g, "/new");
        assert_string_equal(last_answer(g),
                            "A new conversation begins. What was said before no longer counts.");
        says(g, "first of the new one");
        rig_answer(g, 1, "2");
        rig_until(g, &g->run_count, 3);
        assert_string_equal(g->runs[2].text, "waiting while it begins anew");
        rig_answer(g, 2, "3");
        rig_until(g, &g->run_count, 4);
        assert_string_equal(g->runs[3].text, "first of the new one");
        assert_int_equal(g->runs[3].run->history_count, 0);
        rig_answer(g, 3, "4");
        rig_until_idle(g);
        says(g, "second");
        rig_until(g, &g->run_count, 5);
        assert_int_equal(g->runs[4].run->history_count, 2);
        assert_int_equal(rig_count(g, "SELECT count(*) FROM turns"), 5); /* the command is none */
        rig_free(g);
}

static void a_new_conversation_is_not_mixed_with_the_old_one_by_a_restart(void **state)
{
        struct rig *g = rig_with_commands();

        (void)state;
        says(g, "running");
        rig_until(g, &g->run_count, 1);
        says(g, "waiting");
        says(g, "/new");
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        says(g, "first of the new one");
        rig_answer(g, 1, "1");
        rig_until(g, &g->run_count, 3);
        assert_string_equal(g->runs[2].text, "waiting");
        rig_free(g);
}

/* Says it, and tells with which turn its conversation began. */
static int64_t begun_of(struct rig *g, const char *text)
{
        unsigned runs = g->run_count;
        int64_t begun;

        says(g, text);
        rig_until(g, &g->run_count, runs + 1);
        begun = g->runs[runs].run->reset_turn;
        rig_answer(g, runs, "so it is");
        rig_until_idle(g);
        return begun;
}

/* For agents that remember conversations by themselves. */
static void a_turn_knows_where_its_conversation_began(void **state)
{
        struct rig *g = rig_with_commands();
        int64_t first, second;

        (void)state;
        assert_int_equal(begun_of(g, "one"), 0);
        says(g, "running while it begins anew");
        rig_until(g, &g->run_count, 2);
        says(g, "/new");
        says(g, "the first of the new one");
        assert_int_equal(g->runs[1].run->reset_turn, 0);
        rig_answer(g, 1, "1");
        rig_until(g, &g->run_count, 3);
        first = g->runs[2].run->reset_turn;
        assert_true(first > 0);
        rig_answer(g, 2, "2");
        rig_until_idle(g);
        assert_int_equal(begun_of(g, "after a while"), first);
        rig_restart(g);
        assert_int_equal(begun_of(g, "after a restart"), first);
        says(g, "/new");
        second = begun_of(g, "another one");
        assert_true(second > first);
        assert_int_equal(begun_of(g, "goes on"), second);
        rig_free(g);
}

/* Somebody says it somewhere; a question's turn is answered, and what it knew is told. */
static struct reset_turns anew_of(struct rig *g, const char *channel, const char *thread,
                                  const char *person, const char *text)
{
        struct incoming in = { .channel = channel,
                               .thread = thread,
                               .sender_id = person,
                               .sender_name = person,
                               .text = text };
        int64_t before = rig_count(g, "SELECT count(*) FROM trigger_log");
        struct reset_turns anew = { 0 };
        unsigned runs = g->run_count;

        rig_hear(g, &in);
        rig_until_count(g, "SELECT count(*) FROM trigger_log", before + 1);
        if (text[0] == '/')
                return anew;
        rig_until(g, &g->run_count, runs + 1);
        anew = g->runs[runs].run->resets;
        rig_answer(g, runs, "so it is");
        rig_until_idle(g);
        return anew;
}

static void assert_anew(struct reset_turns a, bool person, bool chat, bool person_in_chat)
{
        assert_int_equal(a.person > 0, person);
        assert_int_equal(a.chat > 0, chat);
        assert_int_equal(a.person_in_chat > 0, person_in_chat);
}

/* For agents that remember a person over his chats, or a chat with everybody in it. */
static void who_begins_anew_does_so_for_himself_and_for_the_chat(void **state)
{
        struct rig *g = rig_with_commands();
        int64_t first;

        (void)state;
        assert_anew(anew_of(g, "c1", NULL, "ann", "hi"), false, false, false);
        anew_of(g, "c2", NULL, "ann", "/new"); /* where nobody has asked anything yet */
        assert_anew(anew_of(g, "c1", NULL, "ann", "hi"), true, false, false);
        assert_anew(anew_of(g, "c2", NULL, "ann", "hi"), true, true, true);
        assert_anew(anew_of(g, "c2", NULL, "bob", "hi"), false, true, false);
        assert_anew(anew_of(g, "c2", "t", "ann", "hi"), true, false, false);
        rig_restart(g);
        first = anew_of(g, "c2", NULL, "ann", "hi").person_in_chat;
        assert_true(first > 0);
        anew_of(g, "c2", NULL, "ann", "/new");
        assert_true(anew_of(g, "c2", NULL, "ann", "hi").person_in_chat > first);
        rig_free(g);
}

static void a_turn_that_was_there_before_belongs_to_what_was(void **state)
{
        struct rig *g = rig_with_commands();

        (void)state;
        says(g, "before");
        rig_until(g, &g->run_count, 1);
        says(g, "/new");
        says(g, "after");
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "before");
        assert_int_equal(g->runs[1].run->resets.chat, 0);
        rig_answer(g, 1, "1");
        rig_until(g, &g->run_count, 3);
        assert_string_equal(g->runs[2].text, "after");
        assert_true(g->runs[2].run->resets.chat > 0);
        rig_free(g);
}

static void on_retried(void *arg, const struct error *err)
{
        assert_null(err);
        *(bool *)arg = true;
}

static void a_failed_turn_that_is_tried_again_belongs_where_it_did(void **state)
{
        struct rig *g = rig_with_commands();
        int64_t failed, chat;
        bool retried = false;

        (void)state;
        says(g, "/new");
        says(g, "after");
        rig_until(g, &g->run_count, 1);
        failed = g->runs[0].run->id;
        chat = g->runs[0].run->resets.chat;
        assert_true(chat > 0);
        rig_fail(g, 0, ERR_INVALID, "no");
        rig_until_idle(g);
        turn_retry(g->road, failed, on_retried, &retried);
        rig_until(g, &g->run_count, 2);
        assert_true(retried);
        assert_int_equal(g->runs[1].run->resets.chat, chat);
        rig_free(g);
}

/* The turn was read back before the command was carried out, and comes into its lane after that. */
static void nothing_joins_an_old_turn_that_is_tried_again_during_a_new_beginning(void **state)
{
        struct rig *g = rig_with_commands();
        bool retried = false;

        (void)state;
        says(g, "failed");
        rig_until(g, &g->run_count, 1);
        rig_fail(g, 0, ERR_INVALID, "no");
        rig_until_idle(g);
        says(g, "running");
        rig_until(g, &g->run_count, 2);
        rig_say(g, "j", "c", "batch", "/new", NULL);
        turn_retry(g->road, 1, on_retried, &retried);
        rig_until_count(g, "SELECT count(*) FROM turns WHERE id = 1 AND state = 'queued'", 1);
        says(g, "first of the new one");
        rig_answer(g, 1, "1");
        rig_until(g, &g->run_count, 3);
        assert_true(retried);
        assert_string_equal(g->runs[2].text, "failed");
        rig_free(g);
}

static void a_stop_ends_what_runs_and_what_waits(void **state)
{
        struct rig *g = rig_with_commands();

        (void)state;
        rig_say(g, "j", "other", "batch", "not ours", NULL);
        rig_until(g, &g->run_count, 1);
        says(g, "/stop");
        assert_string_equal(last_answer(g), "Nothing is running here.");
        says(g, "one");
        rig_until(g, &g->run_count, 2);
        says(g, "two");
        says(g, "three");
        says(g, "/stop");
        assert_string_equal(last_answer(g), "Stopped, and dropped 2 messages that were waiting.");
        rig_until_count(g, "SELECT count(*) FROM turns WHERE state = 'cancelled'", 2);
        assert_true(g->runs[1].cancelled);
        assert_non_null(g->runs[0].run);
        assert_string_equal(rig_text(g, "SELECT error FROM turns WHERE state = 'cancelled'"),
                            "stopped by Ann");
        assert_string_equal(
                rig_text(g, "SELECT status || ': ' || reason FROM trigger_log ORDER BY event DESC"),
                "done: the command /stop was carried out");
        assert_int_equal(
                rig_count(g, "SELECT count(*) FROM trigger_log WHERE status = 'cancelled'"), 3);
        says(g, "four"); /* it goes on as if nothing had been */
        rig_until(g, &g->run_count, 3);
        assert_string_equal(g->runs[2].text, "four");
        rig_free(g);
}

static void per_person(struct rig *g, const struct incoming *in, struct decision *out)
{
        knows_commands(g, in, out);
        out->per_person = strcmp(in->text, "in the room") != 0;
        /* nobody knows whom a command would have been for */
        out->agent = out->command ? NULL : in->guild;
}

static void a_stop_means_whatever_agent_works_for_the_person_or_the_room_but_nobody_else(
        void **state)
{
        struct rig *g = rig_new();
        struct incoming bob = { .sender_id = "bob", .sender_name = "Bob", .text = "for bob" };

        (void)state;
        g->decides = per_person;
        rig_say(g, "j", "c", "echo", "for ann", NULL);
        rig_say(g, "j", "c", "batch", "for ann, too", NULL);
        rig_say(g, "j", "c", "echo", "in the room", NULL);
        rig_hear(g, &bob);
        rig_until(g, &g->run_count, 4);
        rig_say(g, "j", "c", "once", "/stop", NULL);
        rig_until_count(g, "SELECT count(*) FROM turns WHERE state = 'cancelled'", 3);
        rig_spin(g, 20);
        for (unsigned i = 0; i < 4; i++)
                assert_int_equal(g->runs[i].cancelled, strcmp(g->runs[i].text, "for bob") != 0);
        rig_free(g);
}

static void die(void *arg)
{
        (void)arg;
        raise(SIGKILL);
}

static int write_nothing(struct store_tx *tx, void *arg, struct error *err)
{
        (void)tx;
        (void)arg;
        (void)err;
        return 0;
}

static void dies_of_commands(struct rig *g, const struct incoming *in, struct decision *out)
{
        knows_commands(g, in, out);
        if (out->command != COMMAND_NONE) {
                out->extra.fn = write_nothing;
                out->extra.done = die;
        }
}

static void what_was_stopped_stays_stopped_after_a_crash(void **state)
{
        char dir[] = "/tmp/dragoman-rig-XXXXXX";
        struct rig *g;
        pid_t child;
        int status;

        (void)state;
        assert_non_null(mkdtemp(dir));
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                g = rig_new_in(dir);
                g->decides = dies_of_commands;
                says(g, "one");
                rig_until(g, &g->run_count, 1);
                says(g, "two");
                says(g, "/stop");
                rig_spin(g, 10000);
                _exit(1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        g = rig_new_in(dir);
        rig_until_count(g, "SELECT count(*) FROM turns WHERE state = 'cancelled'", 2);
        assert_int_equal(g->run_count, 0);
        assert_string_equal(last_answer(g), "Stopped, and dropped 1 message that waited.");
        rig_free(g);
}

static void what_is_said_right_after_a_stop_is_answered(void **state)
{
        struct rig *g = rig_with_commands();

        (void)state;
        g->debounce_ms = g->debounce_max_ms = 100;
        says(g, "one");
        rig_say(g, "j", "other", "batch", "skip this",
                NULL); /* while it is stored the next two come together */
        rig_say(g, "j", "c", "batch", "/stop", NULL);
        rig_say(g, "j", "c", "batch", "two", NULL);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "two");
        assert_string_equal(rig_text(g, "SELECT inputs FROM turns WHERE state = 'cancelled'"), "1");
        rig_free(g);
}

static void the_status_tells_what_is_going_on(void **state)
{
        struct rig *g = rig_with_commands();

        (void)state;
        says(g, "/status");
        assert_string_equal(last_answer(g), "Nothing is going on in this conversation.");
        says(g, "one");
        rig_until(g, &g->run_count, 1);
        says(g, "two");
        says(g, "/status");
        assert_string_equal(
                last_answer(g),
                "Agent 'batch' has been working on an answer for 0 s. 1 message waits.");
        rig_answer(g, 0, "1");
        rig_until(g, &g->run_count, 2);
        rig_answer(g, 1, "2");
        rig_until_idle(g);
        g->debounce_ms = 60000;
        says(g, "three");
        says(g, "/status");
        assert_string_equal(last_answer(g), "1 message waits a moment for further ones.");
        rig_free(g);
}

static void why_tells_the_story_of_the_last_message(void **state)
{
        struct rig *g = rig_with_commands();

        (void)state;
        says(g, "/why");
        assert_string_equal(last_answer(g), "I know of no earlier message from you here.");
        says(g, "skip this");
        says(g, "/status");
        says(g, "/why");
        assert_string_equal(last_answer(g),
                            "Your message “skip this”: silent because the test says so.");
        says(g, "fail\nwith a second line");
        rig_until(g, &g->run_count, 1);
        rig_fail(g, 0, ERR_NET, NULL);
        rig_until_idle(g);
        says(g, "/why"); /* what exactly failed is for the operator */
        assert_string_equal(last_answer(g),
                            "Your message “fail…”: agent 'batch' failed after 1 attempt (trn-1).");
        rig_free(g);
}

static void why_knows_what_was_decided_an_instant_before(void **state)
{
        struct rig *g = rig_with_commands();

        (void)state;
        for (int i = 0; i < 20; i++)
                rig_say(g, "j", "c", "batch", "skip this", NULL);
        rig_say(g, "j", "c", "batch", "skip that", NULL);
        rig_say(g, "j", "c", "batch", "/why", NULL);
        rig_say(g, "j", "c", "batch", "after", NULL);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(rig_text(g, "SELECT json_extract(payload, '$.text') FROM deliveries"),
                            "Your message “skip that”: silent because the test says so.");
        assert_string_equal(g->runs[0].text, "after");
        rig_free(g);
}

static unsigned whys_decided, whys_stored;

static void on_why_stored(void *arg)
{
        whys_stored++;
        free(arg);
}

static void stores_with_why(struct rig *g, const struct incoming *in, struct decision *out)
{
        knows_commands(g, in, out);
        if (out->command != COMMAND_WHY)
                return;
        out->extra = (struct tx_extra){ write_nothing, on_why_stored, mem_alloc(1) };
        whys_decided++;
}

static void a_why_that_is_decided_when_the_process_ends_is_stored(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->decides = stores_with_why;
        rig_say(g, "j", "c", "batch", "skip this", NULL);
        rig_say(g, "j", "c", "batch", "skip that", NULL);
        rig_say(g, "j", "c", "batch", "/why", NULL); /* needs what is stored of the two */
        rig_until(g, &whys_decided, 1);
        rig_restart(g);
        assert_int_equal(whys_decided, 1);
        assert_int_equal(whys_stored, 1);
        assert_string_equal(last_answer(g),
                            "Your message “skip that”: silent because the test says so.");
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_before_a_new_conversation_counts),
                cmocka_unit_test(a_new_conversation_is_not_mixed_with_the_old_one_by_a_restart),
                cmocka_unit_test(a_turn_knows_where_its_conversation_began),
                cmocka_unit_test(who_begins_anew_does_so_for_himself_and_for_the_chat),
                cmocka_unit_test(a_turn_that_was_there_before_belongs_to_what_was),
                cmocka_unit_test(a_failed_turn_that_is_tried_again_belongs_where_it_did),
                cmocka_unit_test(
                        nothing_joins_an_old_turn_that_is_tried_again_during_a_new_beginning),
                cmocka_unit_test(a_stop_ends_what_runs_and_what_waits),
                cmocka_unit_test(
                        a_stop_means_whatever_agent_works_for_the_person_or_the_room_but_nobody_else),
                cmocka_unit_test(what_was_stopped_stays_stopped_after_a_crash),
                cmocka_unit_test(what_is_said_right_after_a_stop_is_answered),
                cmocka_unit_test(the_status_tells_what_is_going_on),
                cmocka_unit_test(why_tells_the_story_of_the_last_message),
                cmocka_unit_test(why_knows_what_was_decided_an_instant_before),
                cmocka_unit_test(a_why_that_is_decided_when_the_process_ends_is_stored),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
