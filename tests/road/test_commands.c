/* Commands that the road carries out: /new, /stop, /status, /why. */
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
        return rig_members(g, "payload FROM deliveries ORDER BY id DESC LIMIT 1", "text");
}

/* Waits until the message is decided. */
static void says(struct rig *g, const char *text)
{
        int64_t before = rig_count(g, "trigger_log");

        rig_say(g, "j", "c", "batch", text, NULL);
        rig_until_count(g, "trigger_log", before + 1);
}

static void a_reset_hides_earlier_messages(void **state)
{
        struct rig *g = rig_with_commands();

        (void)state;
        says(g, "old");
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, "1");
        rig_until_idle(g);
        says(g, "running at the reset");
        rig_until(g, &g->run_count, 2);
        assert_int_equal(g->runs[1].run->history_count, 2);
        says(g, "queued at the reset");
        says(g, "/new");
        assert_string_equal(last_answer(g),
                            "A new conversation begins. What was said before no longer counts.");
        says(g, "first of the new one");
        rig_answer(g, 1, "2");
        rig_until(g, &g->run_count, 3);
        assert_string_equal(g->runs[2].text, "queued at the reset");
        rig_answer(g, 2, "3");
        rig_until(g, &g->run_count, 4);
        assert_string_equal(g->runs[3].text, "first of the new one");
        assert_int_equal(g->runs[3].run->history_count, 0);
        rig_answer(g, 3, "4");
        rig_until_idle(g);
        says(g, "second");
        rig_until(g, &g->run_count, 5);
        assert_int_equal(g->runs[4].run->history_count, 2);
        assert_int_equal(rig_count(g, "turns"), 5); /* none for the command */
        rig_free(g);
}

static void a_reset_survives_a_restart(void **state)
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

/* The reset that the turn of this message knows. */
static int64_t reset_of(struct rig *g, const char *text)
{
        unsigned runs = g->run_count;
        int64_t reset;

        says(g, text);
        rig_until(g, &g->run_count, runs + 1);
        reset = g->runs[runs].run->reset_turn;
        rig_answer(g, runs, "so it is");
        rig_until_idle(g);
        return reset;
}

/* For agents that keep the history themselves. */
static void a_turn_knows_its_reset(void **state)
{
        struct rig *g = rig_with_commands();
        int64_t first, second;
        unsigned runs;

        (void)state;
        assert_int_equal(reset_of(g, "one"), 0);
        says(g, "running at the reset");
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
        assert_int_equal(reset_of(g, "after a while"), first);
        rig_restart(g);
        assert_int_equal(reset_of(g, "after a restart"), first);
        runs = g->run_count;
        says(g, "runs");
        rig_until(g, &g->run_count, runs + 1);
        says(g, "waits");
        rig_answer(g, runs, "3");
        rig_until(g, &g->run_count, runs + 2);
        assert_int_equal(g->runs[runs + 1].run->reset_turn, first);
        rig_answer(g, runs + 1, "4");
        rig_until_idle(g);
        says(g, "/new");
        second = reset_of(g, "another one");
        assert_true(second > first);
        assert_int_equal(reset_of(g, "goes on"), second);
        rig_free(g);
}

/* The resets that the turn of this message knows; none for a command. */
static struct reset_turns resets_of(struct rig *g, const char *channel, const char *thread,
                                    const char *person, const char *text)
{
        struct incoming in = { .channel = channel,
                               .thread = thread,
                               .sender_id = person,
                               .sender_name = person,
                               .text = text };
        int64_t before = rig_count(g, "trigger_log");
        struct reset_turns resets = { 0 };
        unsigned runs = g->run_count;

        rig_receive(g, &in);
        rig_until_count(g, "trigger_log", before + 1);
        if (text[0] == '/')
                return resets;
        rig_until(g, &g->run_count, runs + 1);
        resets = g->runs[runs].run->resets;
        rig_answer(g, runs, "so it is");
        rig_until_idle(g);
        return resets;
}

static void assert_resets(struct reset_turns a, bool person, bool chat, bool person_in_chat)
{
        assert_int_equal(a.person > 0, person);
        assert_int_equal(a.chat > 0, chat);
        assert_int_equal(a.person_in_chat > 0, person_in_chat);
}

/* For agents that remember a person across chats, or a chat with all its members. */
static void a_reset_counts_for_the_sender_and_the_chat(void **state)
{
        struct rig *g = rig_with_commands();
        int64_t first;

        (void)state;
        assert_resets(resets_of(g, "c1", NULL, "ann", "hi"), false, false, false);
        resets_of(g, "c2", NULL, "ann", "/new"); /* a chat without turns */
        assert_resets(resets_of(g, "c1", NULL, "ann", "hi"), true, false, false);
        assert_resets(resets_of(g, "c2", NULL, "ann", "hi"), true, true, true);
        assert_resets(resets_of(g, "c2", NULL, "bob", "hi"), false, true, false);
        assert_resets(resets_of(g, "c2", "t", "ann", "hi"), true, false, false);
        rig_restart(g);
        first = resets_of(g, "c2", NULL, "ann", "hi").person_in_chat;
        assert_true(first > 0);
        resets_of(g, "c2", NULL, "ann", "/new");
        assert_true(resets_of(g, "c2", NULL, "ann", "hi").person_in_chat > first);
        rig_free(g);
}

static void a_turn_queued_before_a_reset_keeps_its_history(void **state)
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

static void a_retried_turn_keeps_its_reset(void **state)
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

/* The turn is read from the store before /new, and enters its lane after it. */
static void no_message_joins_a_retried_turn_across_a_reset(void **state)
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
        rig_until_count(g, "turns WHERE id = 1 AND state = 'queued'", 1);
        says(g, "first of the new one");
        rig_answer(g, 1, "1");
        rig_until(g, &g->run_count, 3);
        assert_true(retried);
        assert_string_equal(g->runs[2].text, "failed");
        rig_free(g);
}

static void stop_cancels_running_and_queued_turns(void **state)
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
        rig_until_count(g, "turns WHERE state = 'cancelled'", 2);
        assert_true(g->runs[1].cancelled);
        assert_non_null(g->runs[0].run);
        assert_string_equal(rig_text(g, "error FROM turns WHERE state = 'cancelled'"),
                            "stopped by Ann");
        assert_string_equal(
                rig_text(g, "status || ': ' || reason FROM trigger_log ORDER BY event DESC"),
                "done: the command /stop was carried out");
        assert_int_equal(rig_count(g, "trigger_log WHERE status = 'cancelled'"), 3);
        says(g, "four");
        rig_until(g, &g->run_count, 3);
        assert_string_equal(g->runs[2].text, "four");
        rig_free(g);
}

/* In the thread of its question or of its main message, "stop" means the turn of the channel. */
static void stop_in_a_thread_means_the_turn_above(void **state)
{
        struct rig *g = rig_with_commands();
        char main[32];

        (void)state;
        g->auto_send = true;
        rig_receive(g, &(struct incoming){
                               .adapter = "work", .guild = "batch", .id = "q1", .text = "one" });
        rig_until(g, &g->run_count, 1);
        rig_receive(g,
                    &(struct incoming){
                            .adapter = "work", .guild = "batch", .thread = "q0", .text = "/stop" });
        rig_until_count(g, "deliveries WHERE payload LIKE '%Nothing is running here.%'", 1);
        rig_receive(g,
                    &(struct incoming){
                            .adapter = "work", .guild = "batch", .thread = "q1", .text = "/stop" });
        rig_until_count(g, "turns WHERE state = 'cancelled'", 1);
        assert_true(g->runs[0].cancelled);
        rig_receive(g, &(struct incoming){
                               .adapter = "work", .guild = "batch", .id = "q2", .text = "two" });
        rig_until(g, &g->run_count, 2);
        turn_delta(g->runs[1].run, "so far", 6);
        rig_until_count(g, "deliveries WHERE payload LIKE '%so far%' AND state = 'sent'", 1);
        snprintf(main, sizeof(main), "%s",
                 rig_text(g, "platform_id FROM deliveries WHERE payload LIKE '%so far%'"));
        rig_receive(g,
                    &(struct incoming){
                            .adapter = "work", .guild = "batch", .thread = main, .text = "/stop" });
        rig_until_count(g, "turns WHERE state = 'cancelled'", 2);
        assert_true(g->runs[1].cancelled);
        rig_free(g);
}

static void per_person(struct rig *g, const struct incoming *in, struct decision *out)
{
        knows_commands(g, in, out);
        out->per_person = strcmp(in->text, "for all") != 0;
        /* a command names no agent */
        out->agent = out->command ? NULL : in->guild;
}

static void stop_counts_for_the_sender_and_the_chat_only(void **state)
{
        struct rig *g = rig_new();
        struct incoming bob = { .sender_id = "bob", .sender_name = "Bob", .text = "for bob" };

        (void)state;
        g->decides = per_person;
        rig_say(g, "j", "c", "echo", "for ann", NULL);
        rig_say(g, "j", "c", "batch", "for ann, too", NULL);
        rig_say(g, "j", "c", "echo", "for all", NULL);
        rig_receive(g, &bob);
        rig_until(g, &g->run_count, 4);
        rig_say(g, "j", "c", "once", "/stop", NULL);
        rig_until_count(g, "turns WHERE state = 'cancelled'", 3);
        rig_settle(g);
        for (unsigned i = 0; i < 4; i++)
                assert_int_equal(g->runs[i].cancelled, strcmp(g->runs[i].text, "for bob") != 0);
        rig_free(g);
}

static void die(void *arg, const struct error *err)
{
        (void)arg;
        (void)err;
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

static void stopped_turns_stay_stopped_after_a_crash(void **state)
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
                rig_run_for(g, 10000);
                _exit(1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        g = rig_new_in(dir);
        rig_until_count(g, "turns WHERE state = 'cancelled'", 2);
        assert_int_equal(g->run_count, 0);
        assert_string_equal(last_answer(g), "Stopped, and dropped 1 message that waited.");
        rig_free(g);
}

static void a_message_right_after_stop_is_answered(void **state)
{
        struct rig *g = rig_with_commands();

        (void)state;
        g->debounce_ms = g->debounce_max_ms = 100;
        says(g, "one");
        /* while this is stored, the next two arrive as a batch */
        rig_say(g, "j", "other", "batch", "skip this", NULL);
        rig_say(g, "j", "c", "batch", "/stop", NULL);
        rig_say(g, "j", "c", "batch", "two", NULL);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "two");
        assert_string_equal(rig_text(g, "inputs FROM turns WHERE state = 'cancelled'"), "1");
        rig_free(g);
}

static void status_reports_the_state_of_the_chat(void **state)
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

static void why_reports_the_last_message(void **state)
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
        says(g, "/why"); /* names the turn, not its error */
        assert_string_equal(last_answer(g),
                            "Your message “fail…”: agent 'batch' failed after 1 attempt (trn-1).");
        rig_free(g);
}

static void why_sees_a_decision_made_just_before(void **state)
{
        struct rig *g = rig_with_commands();

        (void)state;
        for (int i = 0; i < 20; i++)
                rig_say(g, "j", "c", "batch", "skip this", NULL);
        rig_say(g, "j", "c", "batch", "skip that", NULL);
        rig_say(g, "j", "c", "batch", "/why", NULL);
        rig_say(g, "j", "c", "batch", "after", NULL);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(rig_members(g, "payload FROM deliveries", "text"),
                            "Your message “skip that”: silent because the test says so.");
        assert_string_equal(g->runs[0].text, "after");
        rig_free(g);
}

static unsigned whys_decided, whys_stored;

static void on_why_stored(void *arg, const struct error *err)
{
        assert_null(err);
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

static void why_is_stored_when_the_process_ends(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->decides = stores_with_why;
        rig_say(g, "j", "c", "batch", "skip this", NULL);
        rig_say(g, "j", "c", "batch", "skip that", NULL);
        rig_say(g, "j", "c", "batch", "/why", NULL); /* waits until both are stored */
        rig_until(g, &whys_decided, 1);
        rig_restart(g);
        assert_int_equal(whys_decided, 1);
        assert_int_equal(whys_stored, 1);
        assert_string_equal(last_answer(g),
                            "Your message “skip that”: silent because the test says so.");
        rig_free(g);
}

static void knows_resend(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        if (strncmp(in->text, "/resend", 7) == 0) {
                out->trigger = false;
                out->command = COMMAND_RESEND;
        }
}

/* An answer by the adapter "x" that may have arrived. */
static struct rig *unsure(void)
{
        struct rig *g = rig_new();

        rig_say(g, "x", "c", "echo", "hi", NULL);
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, "answer");
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until_count(g, "deliveries WHERE id = 1 AND state = 'unknown'", 1);
        g->decides = knows_resend;
        return g;
}

static void assert_state_after(struct rig *g, const char *adapter, const char *text,
                               const char *state)
{
        unsigned sent = g->sent_count;

        rig_say(g, adapter, "d", "echo", text, NULL);
        rig_until(g, &g->sent_count, sent + 1); /* the answer to the command */
        rig_result(g, sent, SEND_DONE, ERR_NONE, -1);
        rig_settle(g);
        assert_string_equal(rig_text(g, "state FROM deliveries WHERE id = 1"), state);
}

static void only_the_word_no_leaves_a_delivery(void **state)
{
        static const char *const rows[][2] = {
                { "/resend dlv-1", "sending" },     { "/resend dlv-1 now", "sending" },
                { "/resend dlv-1 no", "failed" },   { "/resend dlv-1 No.", "failed" },
                { "/resend dlv-12 no", "unknown" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = unsure();

                assert_state_after(g, "x", rows[i][0], rows[i][1]);
                rig_free(g);
        }
}

static void a_delivery_is_resent_or_left_only_once(void **state)
{
        struct rig *g = unsure();

        (void)state;
        assert_state_after(g, "x", "/resend dlv-1 no", "failed");
        assert_state_after(g, "x", "/resend dlv-1", "failed");
        rig_free(g);
}

/* Admins of one adapter need not be admins of another. */
static void a_delivery_of_another_adapter_is_not_resent(void **state)
{
        struct rig *g = unsure();

        (void)state;
        assert_state_after(g, "nonce", "/resend dlv-1", "unknown");
        assert_state_after(g, "nonce", "/resend dlv-1 no", "unknown");
        rig_free(g);
}

static void answers_with(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)in;
        out->trigger = false;
        out->command = COMMAND_HANDLED;
        out->notice = g->test;
}

static void commands_are_named_as_people_write_them_there(void **state)
{
        static char notice[] = "`/stop` and `/remind 30m tea` work, `/dragoman help` and `/a/path` "
                               "stay, / too: `/`";
        struct rig *g = rig_new();

        (void)state;
        g->auto_send = true;
        g->decides = answers_with;
        g->test = notice;
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until(g, &g->sent_count, 1);
        assert_string_equal(g->sent[0].text, notice);
        rig_say(g, "named", "c", "echo", "hello", NULL);
        rig_until(g, &g->sent_count, 2);
        assert_string_equal(
                g->sent[1].text,
                "`/dragoman stop` and `/dragoman remind 30m tea` work, `/dragoman help` "
                "and `/a/path` stay, / too: `/`");
        rig_free(g);
}

/* ---- effects of dispatch ---- */

struct fake_effect {
        struct effect effect; /* first, so that they convert */
        char order[16];       /* "rwcf": reported, written, committed, freed */
        bool fails;
};

static void note(struct effect *e, char step)
{
        struct fake_effect *f = (struct fake_effect *)e;

        f->order[strlen(f->order)] = step;
}

static int report_effect(struct store_tx *tx, struct effect *e, struct buf *answer,
                         struct error *err)
{
        (void)tx;
        note(e, 'r');
        if (((struct fake_effect *)e)->fails)
                return error_set(err, ERR_IO, "no");
        buf_addstr(answer, "I remind you **today 18:30**.");
        return 0;
}

static int write_effect(struct store_tx *tx, struct effect *e, struct error *err)
{
        (void)tx;
        (void)err;
        note(e, 'w');
        return 0;
}

static void commit_effect(struct effect *e)
{
        note(e, 'c');
}

static void free_effect(struct effect *e)
{
        note(e, 'f');
}

static void has_effect(struct rig *g, const struct incoming *in, struct decision *out)
{
        if (strncmp(in->text, "/remind", 7) != 0)
                return;
        out->trigger = false;
        out->command = COMMAND_EFFECT;
        out->reason = "the command /remind was carried out";
        out->effect = g->test;
}

static void an_effect_of_dispatch_is_written_and_answers(void **state)
{
        struct fake_effect f = { .effect = { write_effect, commit_effect, free_effect,
                                             report_effect } };
        struct rig *g = rig_new();

        (void)state;
        g->decides = has_effect;
        g->test = &f;
        says(g, "/remind 30m tea");
        assert_string_equal(last_answer(g), "I remind you **today 18:30**.");
        rig_until_idle(g);
        assert_string_equal(f.order, "rwcf");
        assert_string_equal(rig_list(g, "status || ': ' || reason FROM trigger_log"),
                            "done: the command /remind was carried out");
        f.fails = true;
        says(g, "/remind 30m tea");
        assert_string_equal(last_answer(g), "Sorry, I cannot look that up right now.");
        f.effect.report = NULL; /* its notice is known, or there is none */
        says(g, "/remind 30m tea");
        rig_until_idle(g);
        assert_string_equal(f.order, "rwcfrwcfwcf");
        assert_int_equal(rig_count(g, "deliveries"), 2);
        assert_int_equal(rig_count(g, "turns"), 0);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_reset_hides_earlier_messages),
                cmocka_unit_test(a_reset_survives_a_restart),
                cmocka_unit_test(a_turn_knows_its_reset),
                cmocka_unit_test(a_reset_counts_for_the_sender_and_the_chat),
                cmocka_unit_test(a_turn_queued_before_a_reset_keeps_its_history),
                cmocka_unit_test(a_retried_turn_keeps_its_reset),
                cmocka_unit_test(no_message_joins_a_retried_turn_across_a_reset),
                cmocka_unit_test(stop_cancels_running_and_queued_turns),
                cmocka_unit_test(stop_in_a_thread_means_the_turn_above),
                cmocka_unit_test(stop_counts_for_the_sender_and_the_chat_only),
                cmocka_unit_test(stopped_turns_stay_stopped_after_a_crash),
                cmocka_unit_test(a_message_right_after_stop_is_answered),
                cmocka_unit_test(status_reports_the_state_of_the_chat),
                cmocka_unit_test(why_reports_the_last_message),
                cmocka_unit_test(why_sees_a_decision_made_just_before),
                cmocka_unit_test(why_is_stored_when_the_process_ends),
                cmocka_unit_test(only_the_word_no_leaves_a_delivery),
                cmocka_unit_test(a_delivery_is_resent_or_left_only_once),
                cmocka_unit_test(a_delivery_of_another_adapter_is_not_resent),
                cmocka_unit_test(commands_are_named_as_people_write_them_there),
                cmocka_unit_test(an_effect_of_dispatch_is_written_and_answers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
