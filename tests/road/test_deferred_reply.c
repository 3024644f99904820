/* Commands with a placeholder for the answer: it is removed when none comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../lib/road_rig.h"

static void commands(struct rig *g, const char *agent, const char *id, const char *text)
{
        struct incoming in = { .adapter = "grow",
                               .guild = agent,
                               .id = id,
                               .text = text,
                               .is_command = true,
                               .is_awaited = true };

        rig_receive(g, &in);
}

static void asks(struct rig *g, const char *agent, const char *id, const char *text)
{
        commands(g, agent, id, text);
        rig_until(g, &g->run_count, g->run_count + 1);
}

/* "kind:message" of what was sent, in order. */
static const char *sent(struct rig *g)
{
        static char text[256];
        size_t n = 0;

        text[0] = '\0';
        for (unsigned i = 0; i < g->sent_count && n < sizeof(text); i++) {
                const struct rig_sent *s = &g->sent[i];

                if (strcmp(s->kind, "type") != 0)
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s:%s", n ? " " : "",
                                              s->kind, s->message[0] ? s->message : s->reply_to);
        }
        return text;
}

static struct rig *rig_that_sends(void)
{
        struct rig *g = rig_new();

        g->auto_send = true;
        return g;
}

static void an_answer_replaces_the_placeholder(void **state)
{
        struct rig *g = rig_that_sends();

        (void)state;
        asks(g, "echo", "i1", "why?");
        rig_answer(g, 0, "because");
        rig_until_idle(g);
        assert_string_equal(sent(g), "send:i1");
        rig_free(g);
}

static void no_reply_removes_the_placeholder(void **state)
{
        struct rig *g = rig_that_sends();

        (void)state;
        asks(g, "echo", "i1", "why?");
        rig_answer(g, 0, "");
        rig_until_idle(g);
        assert_string_equal(sent(g), "cancel_deferred:i1");
        assert_string_equal(rig_text(g, "state FROM deliveries"), "sent");
        rig_free(g);
}

static void an_ambient_turn_answers_or_removes_the_placeholder(void **state)
{
        struct rig *g = rig_that_sends();

        (void)state;
        g->policy.mode = MODE_AMBIENT;
        asks(g, "echo", "i1", "anything?");
        rig_answer(g, 0, "[SILENT]");
        asks(g, "echo", "i2", "and now?");
        rig_answer(g, 1, "yes");
        rig_until_idle(g);
        assert_string_equal(sent(g), "cancel_deferred:i1 send:i2");
        rig_free(g);
}

static void one_answer_to_several_commands_uses_the_last_placeholder(void **state)
{
        struct rig *g = rig_that_sends();

        (void)state;
        asks(g, "batch", "i1", "one");
        commands(g, "batch", "i2", "two");
        commands(g, "batch", "i3", "three");
        rig_until(g, &g->acks, 3);
        rig_answer(g, 0, "the first");
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "two+three");
        rig_answer(g, 1, "the others");
        rig_until_idle(g);
        assert_string_equal(sent(g), "send:i1 send:i3 cancel_deferred:i2");
        rig_free(g);
}

static void a_stopped_turn_removes_its_placeholder(void **state)
{
        struct rig *g = rig_that_sends();

        (void)state;
        asks(g, "echo", "i1", "one");
        commands(g, "echo", "i2", "two");
        rig_until_count(g, "turns", 2);
        turn_cancel(g->road, g->runs[0].run->id, "stopped", NULL, NULL);
        rig_until(g, &g->run_count, 2);
        turn_cancel(g->road, g->runs[1].run->id, "stopped", NULL, NULL);
        rig_until_idle(g);
        assert_string_equal(sent(g), "cancel_deferred:i1 cancel_deferred:i2");
        rig_free(g);
}

static void a_placeholder_is_removed_after_a_restart_too(void **state)
{
        struct rig *g = rig_that_sends();

        (void)state;
        asks(g, "echo", "i1", "one");
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        rig_answer(g, 1, "");
        rig_until_idle(g);
        assert_string_equal(sent(g), "cancel_deferred:i1");
        rig_free(g);
}

static void says_no(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        out->trigger = false;
        out->reason = "not here";
        out->expired = strcmp(in->id, "i2") == 0;
        out->notice = strcmp(in->id, "i3") == 0 ? "I do not answer this here." : NULL;
}

static void an_unanswered_command_loses_its_placeholder(void **state)
{
        struct rig *g = rig_that_sends();
        struct incoming plain = { .adapter = "grow", .id = "m4", .text = "hello" };

        (void)state;
        g->decides = says_no;
        commands(g, "echo", "i1", "refused");
        commands(g, "echo", "i2", "too old");
        commands(g, "echo", "i3", "refused with a word");
        rig_receive(g, &plain);
        rig_until(g, &g->acks, 4);
        rig_until_idle(g);
        assert_string_equal(sent(g), "cancel_deferred:i1 cancel_deferred:i2 send:i3");
        rig_free(g);
}

/* The draft replaced the placeholder already; the edit says that it was stopped. */
static void a_stopped_turn_keeps_its_draft(void **state)
{
        struct rig *g = rig_that_sends();

        (void)state;
        asks(g, "echo", "i1", "a long one");
        turn_delta(g->runs[0].run, "so far", 6);
        rig_until_count(g, "deliveries WHERE kind = 'send' AND state = 'sent'", 1);
        turn_cancel(g->road, g->runs[0].run->id, "stopped", NULL, NULL);
        rig_until_idle(g);
        assert_string_equal(sent(g), "send:i1 edit:i1");
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_answer_replaces_the_placeholder),
                cmocka_unit_test(no_reply_removes_the_placeholder),
                cmocka_unit_test(an_ambient_turn_answers_or_removes_the_placeholder),
                cmocka_unit_test(one_answer_to_several_commands_uses_the_last_placeholder),
                cmocka_unit_test(a_stopped_turn_removes_its_placeholder),
                cmocka_unit_test(a_placeholder_is_removed_after_a_restart_too),
                cmocka_unit_test(an_unanswered_command_loses_its_placeholder),
                cmocka_unit_test(a_stopped_turn_keeps_its_draft),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
