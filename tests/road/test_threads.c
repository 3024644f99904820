/* Answers in a thread of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../lib/road_rig.h"

static void asks(struct rig *g, const char *id, const char *thread, enum chat_kind chat,
                 const char *text)
{
        struct incoming in = {
                .adapter = "react", .id = id, .thread = thread, .chat = chat, .text = text
        };

        rig_receive(g, &in);
        rig_until(g, &g->run_count, g->run_count + 1);
}

/* The sends, as "channel/thread: kind text". */
static const char *posts(const struct rig *g)
{
        static char out[1024];

        out[0] = '\0';
        for (unsigned i = 0; i < g->sent_count; i++) {
                const struct rig_sent *s = &g->sent[i];
                size_t n = strlen(out);

                if (strcmp(s->kind, "type") != 0)
                        snprintf(out + n, sizeof(out) - n, "%s%s%s%s: %s %s", n ? ", " : "",
                                 s->channel, s->thread[0] ? "/" : "", s->thread, s->kind,
                                 strcmp(s->kind, "thread") == 0 ? s->name : s->text);
        }
        return out;
}

static void thread_mode_posts_the_whole_answer_in_a_thread(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_send = true;
        g->policy.mode = MODE_THREAD;
        asks(g, "m1", NULL, CHAT_GROUP, "\n  what is this?\nplease");
        assert_int_equal(g->runs[0].run->mode, MODE_THREAD);
        rig_answer(g, 0, "one|two");
        rig_until_idle(g);
        assert_string_equal(posts(g),
                            "c/t-m1: thread what is this?, c/t-m1: send one, c/t-m1: send two");
        assert_string_equal(g->sent[0].message, "m1");
        assert_string_equal(g->sent[1].reply_to, "");
        assert_true(g->outcome.answered);
        assert_string_equal(g->outcome.thread, "t-m1");
        rig_free(g);
}

static void only_a_long_answer_in_a_group_starts_a_thread(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_send = true;
        g->policy.thread_chars = 5;
        asks(g, "m1", NULL, CHAT_GROUP, "a");
        rig_answer(g, 0, "ääää5"); /* characters, not bytes */
        rig_until_idle(g);
        asks(g, "m2", NULL, CHAT_GROUP, "b");
        rig_answer(g, 1, "äääää6");
        rig_until_idle(g);
        asks(g, "m3", NULL, CHAT_DM, "c");
        rig_answer(g, 2, "to one person");
        rig_until_idle(g);
        asks(g, "m4", "t-m2", CHAT_GROUP, "d");
        rig_answer(g, 3, "in the thread already");
        rig_until_idle(g);
        asks(g, "m5", NULL, CHAT_GROUP, "e");
        rig_fail(g, 4, ERR_NET, "a long notice of a failure");
        rig_until_idle(g);
        assert_string_equal(posts(g),
                            "c: send ääää5, c/t-m2: thread b, c/t-m2: send äääää6, c: send to "
                            "one person, c/t-m2: send in the thread already, c: send a long "
                            "notice of a failure");
        rig_free(g);
}

static void a_thread_name_is_short_and_never_empty(void **state)
{
        struct rig *g = rig_new();
        char text[201];

        (void)state;
        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        g->auto_send = true;
        g->policy.mode = MODE_THREAD;
        asks(g, "m1", NULL, CHAT_GROUP, text);
        rig_answer(g, 0, "1");
        rig_until_idle(g);
        assert_int_equal(strlen(g->sent[0].name), 80);
        asks(g, "m2", NULL, CHAT_GROUP, "");
        rig_answer(g, 1, "2");
        rig_until_idle(g);
        assert_string_equal(g->sent[2].name, "Conversation");
        rig_free(g);
}

/* What people have read stays where it is; the rest follows in further messages. */
static void a_draft_stays_in_the_channel(void **state)
{
        struct rig *g = rig_new();
        struct incoming in = { .adapter = "grow", .chat = CHAT_GROUP, .id = "m1", .text = "hello" };

        (void)state;
        g->auto_send = true;
        g->policy.thread_chars = 5;
        rig_receive(g, &in);
        rig_until(g, &g->run_count, 1);
        turn_delta(g->runs[0].run, "a long", 6);
        rig_until_count(g, "deliveries WHERE kind = 'send' AND state = 'sent'", 1);
        rig_answer(g, 0, "a long answer|in two parts");
        rig_until_idle(g);
        assert_string_equal(posts(g),
                            "c: send a long, c: edit a long answer, c: send in two parts");
        rig_free(g);
}

/* The thread is being started, the answer waits for it. */
static struct rig *rig_starting_a_thread(void)
{
        struct rig *g = rig_new();

        g->policy.mode = MODE_THREAD;
        asks(g, "m1", NULL, CHAT_GROUP, "hello");
        rig_answer(g, 0, "one|two");
        rig_until(g, &g->sent_count, 1);
        assert_string_equal(g->sent[0].kind, "thread");
        rig_until_count(g, "deliveries", 3);
        return g;
}

static void a_refused_thread_sends_the_answer_to_the_channel(void **state)
{
        struct rig *g = rig_starting_a_thread();

        (void)state;
        g->auto_send = true;
        rig_result(g, 0, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until_idle(g);
        assert_string_equal(posts(g), "c/t-m1: thread hello, c: send one, c: send two");
        assert_int_equal(rig_count(g, "deliveries WHERE state IN ('failed', 'unknown')"), 0);
        assert_int_equal(rig_count(g, "deliveries WHERE thread IS NULL"), 2);
        rig_free(g);
}

static void an_unconfirmed_thread_is_started_again(void **state)
{
        struct rig *g = rig_starting_a_thread();

        (void)state;
        rig_restart(g);
        rig_until(g, &g->sent_count, 2);
        g->auto_send = true;
        rig_result(g, 1, SEND_DONE, ERR_NONE, -1);
        rig_until_idle(g);
        assert_string_equal(posts(g),
                            "c/t-m1: thread hello, c/t-m1: thread hello, c/t-m1: send one, "
                            "c/t-m1: send two");
        rig_free(g);
}

static void without_threads_the_channel_gets_the_answer(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_send = true;
        g->no_thread = true;
        g->policy.mode = MODE_THREAD;
        asks(g, "m1", NULL, CHAT_GROUP, "hello");
        rig_answer(g, 0, "one");
        rig_until_idle(g);
        assert_string_equal(posts(g), "c: send one");
        assert_string_equal(g->sent[0].reply_to, "m1");
        assert_null(g->outcome.thread);
        rig_free(g);
}

static void a_thread_does_not_delay_other_people(void **state)
{
        struct rig *g = rig_starting_a_thread();

        (void)state;
        g->policy.mode = MODE_REPLY;
        asks(g, "m2", NULL, CHAT_GROUP, "meanwhile");
        rig_answer(g, 1, "three");
        rig_until(g, &g->sent_count, 2);
        assert_string_equal(posts(g), "c/t-m1: thread hello, c: send three");
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(thread_mode_posts_the_whole_answer_in_a_thread),
                cmocka_unit_test(only_a_long_answer_in_a_group_starts_a_thread),
                cmocka_unit_test(a_thread_name_is_short_and_never_empty),
                cmocka_unit_test(a_draft_stays_in_the_channel),
                cmocka_unit_test(a_refused_thread_sends_the_answer_to_the_channel),
                cmocka_unit_test(an_unconfirmed_thread_is_started_again),
                cmocka_unit_test(without_threads_the_channel_gets_the_answer),
                cmocka_unit_test(a_thread_does_not_delay_other_people),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
