/* Lanes of persons, sessions across lanes and their history, writes of dispatch. */
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
#include "rows/meta_row.h"

/* ---- lanes of persons ---- */

static void lane_per_person(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        (void)in;
        out->per_person = true;
}

static void says(struct rig *g, const char *person, const char *text)
{
        struct incoming in = { .sender_id = person, .sender_name = person, .text = text };

        rig_receive(g, &in);
}

static void two_people_of_a_channel_have_a_lane_each(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->decides = lane_per_person;
        says(g, "ann", "ann 1");
        says(g, "bob", "bob 1");
        says(g, "ann", "ann 2");
        rig_until(g, &g->run_count, 2);
        rig_until(g, &g->acks, 3);
        rig_settle(g);
        assert_int_equal(g->run_count, 2); /* ann 2 waits for ann 1 */
        assert_string_equal(g->runs[1].text, "bob 1");
        rig_answer(g, 0, "to ann");
        rig_until(g, &g->run_count, 3);
        assert_string_equal(g->runs[2].text, "ann 2");
        assert_int_equal(rig_count(g, "conversations WHERE channel = 'c'"), 2);
        assert_int_equal(rig_count(g, "conversations WHERE person = 'bob'"), 1);
        rig_free(g);
}

static void a_persons_lane_keeps_its_order_after_a_restart(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->decides = lane_per_person;
        says(g, "ann", "ann 1");
        says(g, "ann", "ann 2");
        says(g, "bob", "bob 1");
        rig_until(g, &g->run_count, 2);
        rig_until_count(g, "turns", 3);
        rig_restart(g);
        says(g, "ann", "ann 3");
        rig_until(g, &g->run_count, 4); /* both running ones are repeated */
        rig_until_count(g, "turns", 4);
        assert_int_equal(g->run_count, 4);
        rig_answer(g, strcmp(g->runs[2].text, "ann 1") == 0 ? 2 : 3, "1");
        rig_until(g, &g->run_count, 5);
        assert_string_equal(g->runs[4].text, "ann 2");
        rig_answer(g, 4, "2");
        rig_until(g, &g->run_count, 6);
        assert_string_equal(g->runs[5].text, "ann 3");
        rig_free(g);
}

/* ---- sessions ---- */

static const char *session = "s1";

static void in_the_session(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        (void)in;
        out->session = session;
}

static void asks(struct rig *g, const char *thread, const char *text)
{
        struct incoming in = { .thread = thread, .guild = "batch", .text = text };

        rig_receive(g, &in);
        rig_until(g, &g->run_count, g->run_count + 1);
}

/* The history of the last run as "text, text". */
static const char *history(const struct rig *g)
{
        static char out[1024];
        const struct turn_run *run = g->runs[g->run_count - 1].run;

        out[0] = '\0';
        for (unsigned i = 0; i < run->history_count; i++) {
                size_t n = strlen(out);

                snprintf(out + n, sizeof(out) - n, "%s%s", i ? ", " : "", run->history[i].text);
        }
        return out;
}

static void answers(struct rig *g, const char *text)
{
        rig_answer(g, g->run_count - 1, text);
        rig_until_idle(g);
}

static void the_agent_gets_the_session_extra_after_a_restart(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        session = "discord-dm:1";
        g->decides = in_the_session;
        asks(g, NULL, "hello");
        assert_string_equal(g->runs[0].run->session, "discord-dm:1");
        session = "another";
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].run->session, "discord-dm:1");
        assert_string_equal(rig_text(g, "session FROM turns"), "discord-dm:1");
        rig_free(g);
}

static void a_thread_continues_the_session_of_its_channel(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        session = "s1";
        g->decides = in_the_session;
        asks(g, NULL, "in the channel");
        answers(g, "1");
        asks(g, "t", "in the thread");
        assert_string_equal(history(g), "in the channel, 1");
        answers(g, "2");
        asks(g, NULL, "back");
        assert_string_equal(history(g), "in the channel, 1, in the thread, 2");
        rig_free(g);
}

static void a_session_runs_one_turn_at_a_time_across_lanes(void **state)
{
        struct rig *g = rig_new();
        struct incoming thread = { .thread = "t", .guild = "batch", .text = "in the thread" };

        (void)state;
        session = "s1";
        g->decides = in_the_session;
        asks(g, NULL, "in the channel");
        rig_receive(g, &thread);
        rig_until_count(g, "turns", 2);
        thread.text = "and more";
        rig_receive(g, &thread);
        rig_until_count(g, "trigger_log", 3);
        rig_settle(g);
        assert_int_equal(g->run_count, 1);
        rig_answer(g, 0, "1");
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "in the thread+and more");
        rig_answer(g, 1, "2");
        rig_until_idle(g);
        rig_free(g);
}

static void a_new_session_starts_with_the_last_lines_of_its_lane(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        session = "s1";
        g->decides = in_the_session;
        for (int i = 0; i < 5; i++) {
                char text[16];

                snprintf(text, sizeof(text), "q%d", i);
                asks(g, NULL, text);
                text[0] = 'a';
                answers(g, text);
        }
        session = "s2";
        asks(g, NULL, "a new one");
        assert_string_equal(history(g), "q1, a1, q2, a2, q3, a3, q4, a4");
        answers(g, "yes");
        asks(g, NULL, "further");
        assert_string_equal(history(g), "q1, a1, q2, a2, q3, a3, q4, a4, a new one, yes");
        rig_free(g);
}

static void age_lines(struct rig *g)
{
        rig_update(g, "transcript SET time_ms = time_ms - ?1", 86400001, 0);
}

static void a_new_session_gets_no_old_lines(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        session = "s1";
        g->decides = in_the_session;
        asks(g, NULL, "long ago");
        answers(g, "yes");
        age_lines(g);
        asks(g, NULL, "the same session has all of it");
        assert_string_equal(history(g), "long ago, yes");
        answers(g, "1");
        age_lines(g);
        session = "s2";
        asks(g, NULL, "a new one");
        assert_string_equal(history(g), "");
        rig_free(g);
}

/* ---- extra writes ---- */

static bool refuses, kills;
static unsigned done_count, refused; /* refused: counted by the writer */

/* Counts the writes for a text: one 'x' each. */
static int write_extra(struct store_tx *tx, void *arg, struct error *err)
{
        char key[64], count[64], *before;
        int rc;

        snprintf(key, sizeof(key), "extra:%s", (const char *)arg);
        if (meta_row_get(tx, key, &before, err) < 0)
                return -1;
        snprintf(count, sizeof(count), "%sx", before ? before : "");
        rc = meta_row_put(tx, key, count, err);
        free(before);
        if (rc < 0)
                return -1;
        if (kills)
                raise(SIGKILL);
        refused += refuses;
        return refuses ? error_set(err, ERR_IO, "the test refuses") : 0;
}

static void on_extra(void *arg, const struct error *err)
{
        assert_null(err);
        done_count++;
        free(arg);
}

static void with_extra_write(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        out->extra.fn = write_extra;
        out->extra.done = on_extra;
        out->extra.arg = mem_strdup(in->text);
}

static void extra_writes_commit_with_the_decision_or_not_at_all(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        done_count = 0;
        refuses = true;
        g->decides = with_extra_write;
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &refused, 2); /* it is retried */
        assert_int_equal(rig_count(g, "turns"), 0);
        assert_int_equal(rig_count(g, "trigger_log"), 0);
        assert_int_equal(done_count, 0);
        refuses = false;
        rig_until(g, &g->run_count, 1);
        assert_int_equal(done_count, 1);
        assert_string_equal(rig_text(g, "value FROM meta WHERE key = 'extra:hello'"), "x");
        rig_answer(g, 0, "1");
        rig_say(g, "j", "c", "echo", "skip", NULL);
        rig_until(g, &done_count, 2);
        assert_int_equal(rig_count(g, "meta WHERE key = 'extra:skip'"), 1);
        rig_free(g);
}

static void a_crash_in_a_decision_leaves_nothing_and_it_is_repeated(void **state)
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
                kills = true;
                g->decides = with_extra_write;
                rig_say(g, "j", "c", "echo", "hello", NULL);
                rig_run_for(g, 10000);
                _exit(1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        g = rig_new_in(dir);
        assert_int_equal(rig_count(g, "meta WHERE key LIKE 'extra:%'"), 0);
        done_count = 0;
        g->decides = with_extra_write;
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "hello");
        assert_int_equal(done_count, 1);
        assert_string_equal(rig_text(g, "value FROM meta WHERE key = 'extra:hello'"), "x");
        rig_free(g);
}

static void the_end_of_a_turn_is_reported_after_its_commit(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, "1");
        assert_int_equal(g->endings, 1);
        assert_int_equal(g->ended, 0);
        rig_until(g, &g->ended, 1);
        assert_true(g->outcome.answered);
        assert_null(g->outcome.thread);
        assert_int_equal(rig_count(g, "meta WHERE key = 'trn-1'"), 1);
        rig_say(g, "j", "c", "echo", "again", NULL);
        rig_until(g, &g->run_count, 2);
        rig_fail(g, 1, ERR_NET, NULL);
        rig_until(g, &g->ended, 2);
        assert_false(g->outcome.answered);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(two_people_of_a_channel_have_a_lane_each),
                cmocka_unit_test(a_persons_lane_keeps_its_order_after_a_restart),
                cmocka_unit_test(the_agent_gets_the_session_extra_after_a_restart),
                cmocka_unit_test(a_thread_continues_the_session_of_its_channel),
                cmocka_unit_test(a_session_runs_one_turn_at_a_time_across_lanes),
                cmocka_unit_test(a_new_session_starts_with_the_last_lines_of_its_lane),
                cmocka_unit_test(a_new_session_gets_no_old_lines),
                cmocka_unit_test(extra_writes_commit_with_the_decision_or_not_at_all),
                cmocka_unit_test(a_crash_in_a_decision_leaves_nothing_and_it_is_repeated),
                cmocka_unit_test(the_end_of_a_turn_is_reported_after_its_commit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
