/* Between the agent and its tools: what is asked, and what becomes of the answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../lib/scratch.h"
#include "agent/policy/policy.h"
#include "agent/workspace/workspace.h"
#include "base/file.h"
#include "base/mem.h"
#include "fake_turn.h"

static struct {
        unsigned count;
        bool allowed;
        char why[300];
} got;

static void on_gate(void *arg, bool allowed, const char *why)
{
        (void)arg;
        got.count++;
        got.allowed = allowed;
        snprintf(got.why, sizeof(got.why), "%s", why ? why : "");
}

struct rig {
        char *dir;
        struct fake_turn turn;
        struct workspace_view *view;
        json_t *arguments;
        struct policy_question question;
        struct policy_gate *gate;
        char *why;
};

static struct rig *rig_new(const char *command)
{
        struct rig *g = mem_zalloc(sizeof(*g));
        struct error err;

        memset(&got, 0, sizeof(got));
        g->dir = scratch_new();
        if (workspace_view_open(g->dir, "tg", "42", &g->view, &err) < 0)
                fail_msg("%s", err.text);
        fake_turn_init(&g->turn, "a", "x");
        g->arguments = json_pack("{s:s, s:s}", "command", command, "label", "do it");
        g->question = (struct policy_question){ .tool = "bash",
                                                .arguments = g->arguments,
                                                .adapter = "tg",
                                                .channel = "42",
                                                .cwd = g->view->folder,
                                                .sandbox = "host",
                                                .view = g->view };
        return g;
}

static enum policy_decision judge(struct rig *g)
{
        return policy_gate(&g->turn.run, &g->question, "call-1", &g->why, on_gate, NULL, &g->gate);
}

static void decide(struct rig *g, enum approval_state state, const char *subject)
{
        char *copy = mem_strdup(subject);

        g->turn.on_decided(
                g->turn.on_decided_arg,
                &(struct approval_decision){
                        .state = state, .subject = copy, .by = "Ann", .note = "why not" });
        free(copy);
}

static void rig_free(struct rig *g)
{
        fake_turn_release(&g->turn);
        workspace_view_free(g->view);
        json_decref(g->arguments);
        free(g->why);
        scratch_free(g->dir);
        free(g);
}

static void write_script(struct rig *g, const char *text)
{
        scratch_put(g->dir, "workspace/channels/tg/42/scratch/x.sh", text);
}

static void an_allowed_call_runs_at_once(void **state)
{
        struct rig *g = rig_new("ls");

        (void)state;
        g->question.sandbox = "bwrap";
        assert_int_equal(judge(g), POLICY_ALLOW);
        assert_null(g->why);
        assert_null(g->gate);
        rig_free(g);
}

static void a_question_shows_the_whole_command(void **state)
{
        struct rig *g = rig_new("echo '```'\nls");

        (void)state;
        assert_int_equal(judge(g), POLICY_ASK);
        assert_string_equal(g->turn.asked.data, "call-1: ````\necho '```'\nls\n````\n");
        decide(g, APPROVAL_APPROVED, g->turn.asked_subject);
        assert_int_equal(got.count, 1);
        assert_true(got.allowed);
        rig_free(g);
}

static void refusals_tell_the_model_why(void **state)
{
        struct rig *g = rig_new("ls");

        (void)state;
        assert_int_equal(judge(g), POLICY_ASK);
        decide(g, APPROVAL_REFUSED, g->turn.asked_subject);
        assert_false(got.allowed);
        assert_string_equal(got.why, "Ann refused this: why not. Do not try it in another way.");
        assert_int_equal(judge(g), POLICY_ASK);
        decide(g, APPROVAL_EXPIRED, g->turn.asked_subject);
        assert_non_null(strstr(got.why, "Nobody answered"));
        rig_free(g);
}

static void a_cancelled_turn_is_told_nothing(void **state)
{
        struct rig *g = rig_new("ls");

        (void)state;
        assert_int_equal(judge(g), POLICY_ASK);
        policy_gate_free(g->gate);
        policy_gate_free(NULL);
        assert_int_equal(got.count, 0);
        rig_free(g);
}

static void a_script_changed_after_the_question_does_not_run(void **state)
{
        static const char *const commands[] = { "bash scratch/x.sh", "./scratch/x.sh",
                                                "timeout 5 sh scratch/x.sh" };

        (void)state;
        for (size_t i = 0; i < COUNT(commands); i++) {
                struct rig *g = rig_new(commands[i]);

                write_script(g, "echo harmless\n");
                assert_int_equal(judge(g), POLICY_ASK);
                assert_non_null(strstr(g->turn.asked_subject, "scratch/x.sh\":\""));
                decide(g, APPROVAL_APPROVED, g->turn.asked_subject);
                assert_true(got.allowed);
                assert_int_equal(judge(g), POLICY_ASK);
                write_script(g, "rm -rf /\n");
                decide(g, APPROVAL_APPROVED, g->turn.asked_subject);
                assert_false(got.allowed);
                assert_non_null(strstr(got.why, "a file of it has changed"));
                rig_free(g);
        }
}

/* An earlier attempt of the turn asked under the same name for something else. */
static void an_approval_for_another_command_does_not_count(void **state)
{
        struct rig *g = rig_new("ls");

        (void)state;
        assert_int_equal(judge(g), POLICY_ASK);
        decide(g, APPROVAL_APPROVED, "{\"command\":\"pwd\"}");
        assert_false(got.allowed);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_allowed_call_runs_at_once),
                cmocka_unit_test(a_question_shows_the_whole_command),
                cmocka_unit_test(refusals_tell_the_model_why),
                cmocka_unit_test(a_cancelled_turn_is_told_nothing),
                cmocka_unit_test(a_script_changed_after_the_question_does_not_run),
                cmocka_unit_test(an_approval_for_another_command_does_not_count),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
