/* Progress reactions: 👀 on a message whose answer takes long, then ✅ or ❌. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../lib/road_rig.h"
#include "base/mem.h"

static struct rig *rig_with_reactions(int64_t slow_ms)
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

        rig_receive(g, &in);
        rig_until(g, &g->run_count, g->run_count + 1);
}

/* The sends, without typing. */
static const char *actions(const struct rig *g)
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

#define REACTIONS "deliveries WHERE kind = 'react' AND state = 'sent'"

static void a_quick_answer_gets_no_reaction(void **state)
{
        struct rig *g = rig_with_reactions(60000);

        (void)state;
        asks(g, "echo", "m1", CHAT_GROUP);
        rig_answer(g, 0, "quick");
        rig_until_idle(g);
        assert_string_equal(actions(g), "send quick");
        rig_free(g);
}

static void a_slow_answer_gets_eyes_then_a_tick(void **state)
{
        struct rig *g = rig_with_reactions(20);

        (void)state;
        asks(g, "echo", "m1", CHAT_GROUP);
        rig_until_count(g, REACTIONS, 1);
        assert_string_equal(actions(g), "react 👀 on m1");
        rig_answer(g, 0, "slow");
        rig_until_idle(g);
        assert_string_equal(actions(g), "react 👀 on m1, send slow, unreact 👀 on m1, react ✅ on m1");
        rig_free(g);
}

static void a_failed_turn_gets_a_cross_and_a_cancelled_one_nothing(void **state)
{
        struct rig *g = rig_with_reactions(20);

        (void)state;
        asks(g, "echo", "m1", CHAT_GROUP);
        rig_until_count(g, REACTIONS, 1);
        rig_fail(g, 0, ERR_NET, NULL);
        rig_until_idle(g);
        assert_string_equal(actions(g), "react 👀 on m1, unreact 👀 on m1, react ❌ on m1");
        g->sent_count = 0;
        asks(g, "echo", "m2", CHAT_GROUP);
        rig_until_count(g, REACTIONS, 3);
        turn_cancel(g->road, 2, "the test stops it", NULL, NULL);
        rig_until_idle(g);
        assert_string_equal(actions(g), "react 👀 on m2, unreact 👀 on m2");
        rig_free(g);
}

static void an_unsent_reaction_is_superseded(void **state)
{
        struct rig *g = rig_with_reactions(20);

        (void)state;
        g->adapters_down = true;
        asks(g, "echo", "m1", CHAT_GROUP);
        rig_until_count(g, "deliveries WHERE kind = 'react'", 1);
        rig_settle(g);
        rig_answer(g, 0, "slow");
        rig_until_count(g, "deliveries WHERE kind = 'send'", 1);
        rig_settle(g);
        g->adapters_down = false;
        outbox_wake(g->road, "react");
        rig_until_idle(g);
        assert_string_equal(actions(g), "send slow, react ✅ on m1");
        assert_int_equal(rig_count(g, "deliveries WHERE state = 'superseded'"), 1);
        rig_free(g);
}

static void a_crash_leaves_no_stale_reaction(void **state)
{
        struct rig *g = rig_with_reactions(20);

        (void)state;
        asks(g, "echo", "m1", CHAT_GROUP); /* repeatable */
        asks(g, "once", "m2", CHAT_GROUP); /* not repeatable */
        rig_until_count(g, REACTIONS, 2);
        g->sent_count = 0;
        rig_restart(g);
        rig_until(g, &g->run_count, 3);
        rig_until_count(g, "turns WHERE state = 'failed'", 1);
        rig_settle(g);
        rig_answer(g, 2, "at last");
        rig_until_idle(g);
        assert_non_null(strstr(actions(g), "unreact 👀 on m2, react ❌ on m2"));
        assert_non_null(strstr(actions(g), "send at last, unreact 👀 on m1, react ✅ on m1"));
        assert_null(strstr(actions(g), " react 👀")); /* not a second time */
        rig_free(g);
}

static void everything_triggers(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        (void)in;
        out->trigger = true;
}

static void only_addressed_group_messages_get_reactions(void **state)
{
        struct rig *g = rig_with_reactions(1);
        struct incoming reaction = { .adapter = "react",
                                     .type = EVENT_REACTION_RECEIVED,
                                     .chat = CHAT_GROUP,
                                     .id = "m0",
                                     .emoji = "🔬" };

        (void)state;
        asks(g, "echo", "m1", CHAT_DM);
        rig_settle(g);
        rig_answer(g, 0, "to one person");
        rig_until_idle(g);
        g->policy.mode = MODE_AMBIENT;
        asks(g, "echo", "m2", CHAT_GROUP);
        rig_settle(g);
        rig_answer(g, 1, "ambient");
        rig_until_idle(g);
        g->policy.mode = MODE_REPLY;
        g->decides = everything_triggers;
        rig_receive(g, &reaction);
        rig_until(g, &g->run_count, 3);
        rig_settle(g);
        rig_answer(g, 2, "what a message");
        rig_until_idle(g);
        assert_string_equal(actions(g), "send to one person, send ambient, send what a message");
        rig_free(g);
}

static void a_refused_reaction_is_not_a_dead_letter(void **state)
{
        struct rig *g = rig_with_reactions(20);

        (void)state;
        g->auto_send = false;
        asks(g, "echo", "m1", CHAT_GROUP);
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_REJECTED, ERR_REFUSED, -1);
        g->auto_send = true;
        rig_until_count(g, "deliveries WHERE state = 'expired'", 1);
        rig_answer(g, 0, "slow");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries WHERE state = 'failed'"), 0);
        assert_int_equal(rig_count(g, "deliveries WHERE state = 'sent' AND kind = 'send'"), 1);
        rig_free(g);
}

static void an_undelivered_answer_gets_no_tick(void **state)
{
        struct rig *g = rig_with_reactions(20);

        (void)state;
        asks(g, "echo", "m1", CHAT_GROUP);
        rig_until_count(g, REACTIONS, 1);
        g->auto_send = false;
        rig_answer(g, 0, "slow");
        rig_until(g, &g->sent_count, 2);
        g->auto_send = true;
        rig_result(g, 1, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until_idle(g);
        assert_string_equal(actions(g), "react 👀 on m1, send slow, unreact 👀 on m1, react ❌ on m1");
        rig_free(g);
}

/* The answer is being sent to a thread; the sends before it are done. */
static struct rig *answer_in_a_thread(void)
{
        struct rig *g = rig_with_reactions(20);

        g->policy.mode = MODE_THREAD;
        asks(g, "echo", "m1", CHAT_GROUP);
        rig_until_count(g, REACTIONS, 1);
        g->auto_send = false;
        rig_answer(g, 0, "slow");
        rig_until(g, &g->sent_count, 2);
        rig_result(g, 1, SEND_DONE, ERR_NONE, -1);
        rig_until(g, &g->sent_count, 3);
        return g;
}

static void an_answer_in_a_thread_gets_its_tick_on_arrival(void **state)
{
        struct rig *g = answer_in_a_thread();

        (void)state;
        rig_settle(g);
        assert_string_equal(actions(g), "react 👀 on m1, thread , send slow");
        g->auto_send = true;
        rig_result(g, 2, SEND_DONE, ERR_NONE, -1);
        rig_until_idle(g);
        assert_string_equal(actions(g),
                            "react 👀 on m1, thread , send slow, unreact 👀 on m1, react ✅ on m1");
        rig_free(g);
}

static void an_undelivered_answer_in_a_thread_gets_no_tick(void **state)
{
        struct rig *g = answer_in_a_thread();

        (void)state;
        g->auto_send = true;
        rig_result(g, 2, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until_idle(g);
        assert_string_equal(actions(g),
                            "react 👀 on m1, thread , send slow, unreact 👀 on m1, react ❌ on m1");
        rig_free(g);
}

static void a_tick_waits_for_its_thread_after_a_restart(void **state)
{
        struct rig *g = answer_in_a_thread();

        (void)state;
        g->adapters_down = true;
        rig_result(g, 2, SEND_RETRY, ERR_NET, 0);
        rig_until_count(g, "attempts", 1);
        g->sent_count = 0;
        rig_restart(g);
        rig_settle(g);
        g->adapters_down = false;
        outbox_wake(g->road, "react");
        rig_until(g, &g->sent_count, 1);
        rig_settle(g);
        assert_string_equal(actions(g), "send slow");
        g->auto_send = true;
        rig_result(g, 0, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until_idle(g);
        assert_string_equal(actions(g), "send slow, unreact 👀 on m1, react ❌ on m1");
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_quick_answer_gets_no_reaction),
                cmocka_unit_test(a_slow_answer_gets_eyes_then_a_tick),
                cmocka_unit_test(a_failed_turn_gets_a_cross_and_a_cancelled_one_nothing),
                cmocka_unit_test(an_unsent_reaction_is_superseded),
                cmocka_unit_test(a_crash_leaves_no_stale_reaction),
                cmocka_unit_test(only_addressed_group_messages_get_reactions),
                cmocka_unit_test(a_refused_reaction_is_not_a_dead_letter),
                cmocka_unit_test(an_undelivered_answer_gets_no_tick),
                cmocka_unit_test(an_answer_in_a_thread_gets_its_tick_on_arrival),
                cmocka_unit_test(an_undelivered_answer_in_a_thread_gets_no_tick),
                cmocka_unit_test(a_tick_waits_for_its_thread_after_a_restart),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
