/* Signs on messages whose answers take long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../lib/road_rig.h"
#include "base/mem.h"

static struct rig *rig_with_marks(int64_t slow_ms)
{
        struct rig *g = rig_new();

        g->auto_send = true;
        g->policy.slow_ms = slow_ms;
        return g;
}

static void asks(struct rig *g, const char *agent, const char *id, enum chat_kind chat)
{
        struct incoming in = {
                .adapter = "react", .guild = agent, .chat = chat, .id = id, .text = "a question"
        };

        rig_hear(g, &in);
        rig_until(g, &g->run_count, g->run_count + 1);
}

/* What the platform was asked to do, without typing. */
static const char *doings(const struct rig *g)
{
        static char out[512];

        out[0] = '\0';
        for (unsigned i = 0; i < g->sent_count; i++) {
                const struct rig_sent *s = &g->sent[i];
                size_t n = strlen(out);

                if (strcmp(s->kind, "type") != 0)
                        snprintf(out + n, sizeof(out) - n, "%s%s %s%s%s", n ? ", " : "", s->kind,
                                 s->emoji, s->emoji[0] ? " on " : "",
                                 s->emoji[0] ? s->message : s->text);
        }
        return out;
}

#define MARKED "SELECT count(*) FROM deliveries WHERE kind = 'react' AND state = 'sent'"

static void a_quick_answer_leaves_no_sign(void **state)
{
        struct rig *g = rig_with_marks(60000);

        (void)state;
        asks(g, "echo", "m1", CHAT_GROUP);
        rig_answer(g, 0, "quick");
        rig_until_idle(g);
        assert_string_equal(doings(g), "send quick");
        rig_free(g);
}

static void a_slow_answer_is_announced_and_ticked_off(void **state)
{
        struct rig *g = rig_with_marks(20);

        (void)state;
        asks(g, "echo", "m1", CHAT_GROUP);
        rig_until_count(g, MARKED, 1);
        assert_string_equal(doings(g), "react 👀 on m1");
        rig_answer(g, 0, "slow");
        rig_until_idle(g);
        assert_string_equal(doings(g), "react 👀 on m1, send slow, unreact 👀 on m1, react ✅ on m1");
        rig_free(g);
}

static void a_failure_is_shown_and_a_cancelled_turn_only_loses_its_sign(void **state)
{
        struct rig *g = rig_with_marks(20);

        (void)state;
        asks(g, "echo", "m1", CHAT_GROUP);
        rig_until_count(g, MARKED, 1);
        rig_fail(g, 0, ERR_NET, NULL);
        rig_until_idle(g);
        assert_string_equal(doings(g), "react 👀 on m1, unreact 👀 on m1, react ❌ on m1");
        g->sent_count = 0;
        asks(g, "echo", "m2", CHAT_GROUP);
        rig_until_count(g, MARKED, 3);
        turn_cancel(g->road, 2, "the test stops it", NULL, NULL);
        rig_until_idle(g);
        assert_string_equal(doings(g), "react 👀 on m2, unreact 👀 on m2");
        rig_free(g);
}

static void a_sign_that_has_not_left_is_not_sent_any_more(void **state)
{
        struct rig *g = rig_with_marks(20);

        (void)state;
        g->adapters_down = true;
        asks(g, "echo", "m1", CHAT_GROUP);
        rig_until_count(g, "SELECT count(*) FROM deliveries WHERE kind = 'react'", 1);
        rig_spin(g, 20);
        rig_answer(g, 0, "slow");
        rig_until_count(g, "SELECT count(*) FROM deliveries WHERE kind = 'send'", 1);
        rig_spin(g, 20);
        g->adapters_down = false;
        outbox_wake(g->road, "react");
        rig_until_idle(g);
        assert_string_equal(doings(g), "send slow, react ✅ on m1");
        assert_int_equal(rig_count(g, "SELECT count(*) FROM deliveries WHERE state = 'superseded'"),
                         1);
        rig_free(g);
}

static void no_sign_is_left_behind_by_a_crash(void **state)
{
        struct rig *g = rig_with_marks(20);

        (void)state;
        asks(g, "echo", "m1", CHAT_GROUP); /* may be run again */
        asks(g, "once", "m2", CHAT_GROUP); /* may not */
        rig_until_count(g, MARKED, 2);
        g->sent_count = 0;
        rig_restart(g);
        rig_until(g, &g->run_count, 3);
        rig_until_count(g, "SELECT count(*) FROM turns WHERE state = 'failed'", 1);
        rig_spin(g, 40);
        rig_answer(g, 2, "at last");
        rig_until_idle(g);
        assert_non_null(strstr(doings(g), "unreact 👀 on m2, react ❌ on m2"));
        assert_non_null(strstr(doings(g), "send at last, unreact 👀 on m1, react ✅ on m1"));
        assert_null(strstr(doings(g), " react 👀")); /* it is there already */
        rig_free(g);
}

static void everything_triggers(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        (void)in;
        out->trigger = true;
}

static void there_are_no_signs_where_they_would_only_disturb(void **state)
{
        struct rig *g = rig_with_marks(1);
        struct incoming reaction = { .adapter = "react",
                                     .type = EVENT_REACTION_RECEIVED,
                                     .chat = CHAT_GROUP,
                                     .id = "m0",
                                     .emoji = "🔬" };

        (void)state;
        asks(g, "echo", "m1", CHAT_DM);
        rig_spin(g, 20);
        rig_answer(g, 0, "to one person");
        rig_until_idle(g);
        g->policy.mode = MODE_AMBIENT;
        asks(g, "echo", "m2", CHAT_GROUP);
        rig_spin(g, 20);
        rig_answer(g, 1, "reading along");
        rig_until_idle(g);
        g->policy.mode = MODE_REPLY;
        g->decides = everything_triggers;
        rig_hear(g, &reaction);
        rig_until(g, &g->run_count, 3);
        rig_spin(g, 20);
        rig_answer(g, 2, "what a message");
        rig_until_idle(g);
        assert_string_equal(doings(g),
                            "send to one person, send reading along, send what a message");
        rig_free(g);
}

static void a_refused_sign_is_no_dead_letter(void **state)
{
        struct rig *g = rig_with_marks(20);

        (void)state;
        g->auto_send = false;
        asks(g, "echo", "m1", CHAT_GROUP);
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_REJECTED, ERR_REFUSED, -1);
        g->auto_send = true;
        rig_until_count(g, "SELECT count(*) FROM deliveries WHERE state = 'expired'", 1);
        rig_answer(g, 0, "slow");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "SELECT count(*) FROM deliveries WHERE state = 'failed'"), 0);
        assert_int_equal(
                rig_count(g,
                          "SELECT count(*) FROM deliveries WHERE state = 'sent' AND kind = 'send'"),
                1);
        rig_free(g);
}

static void an_answer_that_does_not_arrive_is_not_ticked_off(void **state)
{
        struct rig *g = rig_with_marks(20);

        (void)state;
        asks(g, "echo", "m1", CHAT_GROUP);
        rig_until_count(g, MARKED, 1);
        g->auto_send = false;
        rig_answer(g, 0, "slow");
        rig_until(g, &g->sent_count, 2);
        g->auto_send = true;
        rig_result(g, 1, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until_idle(g);
        assert_string_equal(doings(g), "react 👀 on m1, send slow, unreact 👀 on m1, react ❌ on m1");
        rig_free(g);
}

/* The answer is on its way into a thread; everything before it has arrived. */
static struct rig *answer_in_a_thread(void)
{
        struct rig *g = rig_with_marks(20);

        g->policy.mode = MODE_THREAD;
        asks(g, "echo", "m1", CHAT_GROUP);
        rig_until_count(g, MARKED, 1);
        g->auto_send = false;
        rig_answer(g, 0, "slow");
        rig_until(g, &g->sent_count, 2);
        rig_result(g, 1, SEND_DONE, ERR_NONE, -1);
        rig_until(g, &g->sent_count, 3);
        return g;
}

static void an_answer_in_a_thread_is_ticked_off_when_it_has_arrived(void **state)
{
        struct rig *g = answer_in_a_thread();

        (void)state;
        rig_spin(g, 30);
        assert_string_equal(doings(g), "react 👀 on m1, thread , send slow");
        g->auto_send = true;
        rig_result(g, 2, SEND_DONE, ERR_NONE, -1);
        rig_until_idle(g);
        assert_string_equal(doings(g),
                            "react 👀 on m1, thread , send slow, unreact 👀 on m1, react ✅ on m1");
        rig_free(g);
}

static void an_answer_that_does_not_arrive_in_its_thread_is_not_ticked_off(void **state)
{
        struct rig *g = answer_in_a_thread();

        (void)state;
        g->auto_send = true;
        rig_result(g, 2, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until_idle(g);
        assert_string_equal(doings(g),
                            "react 👀 on m1, thread , send slow, unreact 👀 on m1, react ❌ on m1");
        rig_free(g);
}

static void signs_wait_for_an_answer_in_a_thread_also_after_a_restart(void **state)
{
        struct rig *g = answer_in_a_thread();

        (void)state;
        g->adapters_down = true;
        rig_result(g, 2, SEND_RETRY, ERR_NET, 0);
        rig_until_count(g, "SELECT count(*) FROM attempts", 1);
        g->sent_count = 0;
        rig_restart(g);
        rig_spin(g, 20);
        g->adapters_down = false;
        outbox_wake(g->road, "react");
        rig_until(g, &g->sent_count, 1);
        rig_spin(g, 30);
        assert_string_equal(doings(g), "send slow");
        g->auto_send = true;
        rig_result(g, 0, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until_idle(g);
        assert_string_equal(doings(g), "send slow, unreact 👀 on m1, react ❌ on m1");
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_quick_answer_leaves_no_sign),
                cmocka_unit_test(a_slow_answer_is_announced_and_ticked_off),
                cmocka_unit_test(a_failure_is_shown_and_a_cancelled_turn_only_loses_its_sign),
                cmocka_unit_test(a_sign_that_has_not_left_is_not_sent_any_more),
                cmocka_unit_test(no_sign_is_left_behind_by_a_crash),
                cmocka_unit_test(there_are_no_signs_where_they_would_only_disturb),
                cmocka_unit_test(a_refused_sign_is_no_dead_letter),
                cmocka_unit_test(an_answer_that_does_not_arrive_is_not_ticked_off),
                cmocka_unit_test(an_answer_in_a_thread_is_ticked_off_when_it_has_arrived),
                cmocka_unit_test(an_answer_that_does_not_arrive_in_its_thread_is_not_ticked_off),
                cmocka_unit_test(signs_wait_for_an_answer_in_a_thread_also_after_a_restart),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
