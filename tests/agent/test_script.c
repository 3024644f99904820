#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "../lib/scratch.h"
#include "fake_turn.h"

struct agent_rig {
        struct loop *loop;
        struct agents *agents;
        char *dir;
};

static int setup(void **state)
{
        struct agent_rig *b = mem_zalloc(sizeof(*b));

        b->loop = loop_new();
        b->dir = scratch_new();
        b->agents = agents_new(b->loop, NULL, b->dir);
        *state = b;
        return 0;
}

static int teardown(void **state)
{
        struct agent_rig *b = *state;

        agents_free(b->agents);
        loop_free(b->loop);
        scratch_free(b->dir);
        free(b);
        return 0;
}

static int apply(struct agent_rig *b, const char *script, struct error *err)
{
        scratch_put(b->dir, "script", script);
        return fake_apply(b->agents, "s", "script", "{\"file\": \"script\"}", err);
}

static void ask(struct agent_rig *b, struct fake_turn *t, const char *text)
{
        fake_turn_init(t, "s", text);
        fake_turn_start(t, b->agents);
        fake_turn_await(t, b->loop);
}

static void the_first_matching_rule_answers(void **state)
{
        static const char script[] = "# greetings\n"
                                     "when hello*\n"
                                     "    wait 1\n"
                                     "    say Hi there.\n"
                                     "    say How are you?\n"
                                     "\n"
                                     "when *\r\n"
                                     "    say You said: {text}.\n";
        struct agent_rig *b = *state;
        struct error err = { 0 };
        struct fake_turn t;

        if (apply(b, script, &err) < 0)
                fail_msg("%s", err.text);
        ask(b, &t, "Hello you");
        assert_string_equal(t.text, "Hi there.\nHow are you?");
        fake_turn_release(&t);
        ask(b, &t, "what");
        assert_string_equal(t.text, "You said: what.");
        fake_turn_release(&t);
}

static void pieces_and_progress_come_one_by_one(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t;

        assert_int_equal(apply(b, "when *\nprogress looking\npiece \"la \\n\"\npiece la", NULL), 0);
        ask(b, &t, "sing");
        assert_string_equal(t.progress.data, "looking\n");
        assert_int_equal(t.deltas, 2);
        assert_string_equal(t.text, "la \nla");
        fake_turn_release(&t);
}

static void a_rule_may_match_only_once(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t;

        assert_int_equal(
                apply(b, "when *\nonce\nsay half\nfail limit Busy.\nwhen *\nsay fine", NULL), 0);
        ask(b, &t, "x");
        assert_int_equal(t.reply.kind, ERR_LIMIT);
        assert_string_equal(t.text, "half\n\nBusy.");
        fake_turn_release(&t);
        ask(b, &t, "x");
        assert_int_equal(t.reply.kind, ERR_NONE);
        assert_string_equal(t.text, "fine");
        fake_turn_release(&t);
}

static void no_matching_rule_is_a_failure_and_a_hanging_one_can_be_cancelled(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t;

        assert_int_equal(apply(b, "when stuck\nhang\n", NULL), 0);
        ask(b, &t, "x");
        assert_int_equal(t.reply.kind, ERR_MISSING);
        fake_turn_release(&t);
        fake_turn_init(&t, "s", "stuck");
        fake_turn_start(&t, b->agents);
        for (int i = 0; i < 10; i++)
                loop_step(b->loop, false);
        assert_int_equal(t.finished, 0);
        fake_turn_cancel(&t, b->agents);
        fake_turn_release(&t);
}

static void a_script_goes_on_when_it_is_approved(void **state)
{
        static const enum approval_state states[] = { APPROVAL_APPROVED, APPROVAL_REFUSED };
        struct agent_rig *b = *state;

        assert_int_equal(apply(b, "when *\nask admins 1000 rm x\nsay done", NULL), 0);
        for (size_t i = 0; i < COUNT(states); i++) {
                struct fake_turn t;

                fake_turn_init(&t, "s", "x");
                fake_turn_start(&t, b->agents);
                for (int k = 0; k < 1000 && !t.on_decided; k++)
                        loop_step(b->loop, true);
                assert_string_equal(t.asked.data, "step-1: `rm x`\n");
                assert_int_equal(t.finished, 0);
                t.on_decided(t.on_decided_arg,
                             &(struct approval_decision){ .state = states[i], .note = "so" });
                fake_turn_await(&t, b->loop);
                assert_string_equal(t.text, i == 0 ? "done" : "It was not allowed: so.");
                fake_turn_release(&t);
        }
}

static void script_errors_name_the_line(void **state)
{
        static const struct {
                const char *script, *expected;
        } rows[] = {
                { "when a\nsing b", "line 2: unknown verb 'sing'" },
                { "\nsay a", "line 2: 'say' stands before the first 'when'" },
                { "when a\nwait soon", "line 2: 'wait' needs milliseconds" },
                { "when a\nfail badly", "line 2: 'fail' needs a kind" },
                { "when a\npiece \"x", "line 2: the quoted text" },
                { "when a\nask me 3 x", "line 2: 'ask' needs asker or admins" },
                { "when a\nask asker x", "line 2: 'ask' needs milliseconds" },
        };
        struct agent_rig *b = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct error err = { 0 };

                assert_int_equal(apply(b, rows[i].script, &err), -1);
                if (!strstr(err.text, rows[i].expected))
                        fail_msg("got '%s', expected '%s'", err.text, rows[i].expected);
        }
}

static void a_broken_script_leaves_the_old_one_running(void **state)
{
        struct agent_rig *b = *state;
        struct error err = { 0 };
        struct fake_turn t;

        assert_int_equal(apply(b, "when *\nsay old", &err), 0);
        assert_int_equal(fake_apply(b->agents, "s", "script", "{\"file\": \"not-there\"}", &err),
                         -1);
        assert_int_equal(err.kind, ERR_IO);
        ask(b, &t, "x");
        assert_string_equal(t.text, "old");
        fake_turn_release(&t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(the_first_matching_rule_answers, setup, teardown),
                cmocka_unit_test_setup_teardown(pieces_and_progress_come_one_by_one, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_rule_may_match_only_once, setup, teardown),
                cmocka_unit_test_setup_teardown(
                        no_matching_rule_is_a_failure_and_a_hanging_one_can_be_cancelled, setup,
                        teardown),
                cmocka_unit_test_setup_teardown(script_errors_name_the_line, setup, teardown),
                cmocka_unit_test_setup_teardown(a_script_goes_on_when_it_is_approved, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_broken_script_leaves_the_old_one_running, setup,
                                                teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
