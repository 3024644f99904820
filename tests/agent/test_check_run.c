/* Commands of the schedule in an agent's sandbox. */
#include "sandbox_rig.h"

#include "agent/agents.h"
#include "agent/builtin/check_run.h"
#include "agent/policy/policy.h"

static int holds;

/* In place of the registry's. */
void agent_hold(struct agent *a)
{
        (void)a;
        holds++;
}

void agent_unhold(struct agent *a)
{
        (void)a;
        holds--;
}

struct outcome {
        int calls, exit_code;
        char *output;
        struct error err;
};

static void on_done(void *arg, int exit_code, const char *output, const struct error *err)
{
        struct outcome *o = arg;

        assert_int_equal(o->calls, 0);
        o->calls++;
        o->exit_code = exit_code;
        o->output = mem_strdup(output);
        if (err)
                o->err = *err;
}

static struct agent helper = { .name = "helper" };
static struct check_runs runs;

static int start(struct rig *r, const struct setting_map *policy, const char *command,
                 int64_t seconds, struct outcome *o, struct error *err)
{
        struct check_place place = { &helper, r->all, &r->conf, policy };

        helper.dir = r->dir;
        *o = (struct outcome){ 0 };
        return check_run_start(&runs, &place, &(struct agent_check){ "tg", "42", command, seconds },
                               on_done, o, err);
}

static void run(struct rig *r, const char *command, int64_t seconds, struct outcome *o)
{
        struct error err = { 0 };

        if (start(r, NULL, command, seconds, o, &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(o->calls, 0);
        assert_int_equal(holds, 1);
        while (o->calls == 0)
                assert_true(loop_step(r->loop, true) || o->calls);
        assert_int_equal(holds, 0);
}

static void a_silent_check_has_an_empty_output(void **state)
{
        struct outcome o;

        run(*state, "printf ' \\n\\n'; echo noise >&2", 60, &o);
        assert_int_equal(o.exit_code, 0);
        assert_string_equal(o.output, "");
        assert_int_equal(o.err.kind, ERR_NONE);
        free(o.output);
}

static void output_of_a_check_is_told(void **state)
{
        struct outcome o;

        run(*state, "printf 'two\\n new\\377 mails\\n'; echo noise >&2; pwd", 60, &o);
        assert_int_equal(o.exit_code, 0);
        assert_string_equal(o.output, "two\n new\xEF\xBF\xBD mails\n/workspace/channels/tg/42");
        free(o.output);
}

static void a_failed_check_tells_its_code_and_both_outputs(void **state)
{
        struct outcome o;

        run(*state, "echo out; echo cannot connect >&2; exit 3", 60, &o);
        assert_int_equal(o.exit_code, 3);
        assert_string_equal(o.output, "out\n\ncannot connect");
        assert_int_equal(o.err.kind, ERR_NONE);
        free(o.output);
}

static void a_check_that_takes_too_long_is_ended(void **state)
{
        struct outcome o;

        run(*state, "echo begun; sleep 1000", 1, &o);
        assert_int_equal(o.exit_code, -1);
        assert_int_equal(o.err.kind, ERR_TIMEOUT);
        assert_string_equal(o.err.text, "the check was ended after 1 s");
        assert_string_equal(o.output, "begun");
        free(o.output);
}

static void much_output_is_cut_and_says_so(void **state)
{
        struct outcome o;

        run(*state, "seq 1 20000", 60, &o);
        assert_memory_equal(o.output, "1\n2\n3\n", 6);
        assert_true(strlen(o.output) < 17000);
        assert_non_null(strstr(o.output, "\n[more output was left out]"));
        free(o.output);
}

static void a_check_that_the_policy_would_ask_about_does_not_run(void **state)
{
        static struct policy_rule rule = { .tool = (char *)(uintptr_t) "bash",
                                           .command = (char *)(uintptr_t) "touch *",
                                           .approvers = (char *)(uintptr_t) "admins" };
        static char *names[] = { (char *)(uintptr_t) "no-touch" };
        static void *items[] = { &rule };
        static const struct setting_map policy = { names, items, 1 };
        struct rig *r = *state;
        struct error err = { 0 };
        struct outcome o;

        rule.decide = (char *)(uintptr_t) "ask";
        assert_int_equal(start(r, &policy, "touch made", 60, &o, &err), -1);
        assert_int_equal(err.kind, ERR_REFUSED);
        assert_non_null(strstr(err.text, "the policy of agent 'helper' asks a person about this "
                                         "check: the rule 'no-touch' says so"));
        rule.decide = (char *)(uintptr_t) "deny";
        assert_int_equal(start(r, &policy, "true; touch made", 60, &o, &err), -1);
        assert_non_null(strstr(err.text, "denies this check"));
        assert_true(LIST_EMPTY(&runs));
        run(r, "ls made", 60, &o);
        assert_int_not_equal(o.exit_code, 0);
        free(o.output);
}

static void on_the_host_nothing_runs_without_a_rule(void **state)
{
        struct rig *r = *state;
        struct error err = { 0 };
        struct outcome o;

        r->conf.kind = (char *)(uintptr_t) "host";
        assert_int_equal(start(r, NULL, "true", 60, &o, &err), -1);
        assert_non_null(strstr(err.text, "it runs on the host"));
}

static void without_a_sandbox_it_is_refused(void **state)
{
        struct rig *r = *state;
        struct check_place place = { &helper, NULL, &r->conf, NULL };
        struct error err = { 0 };

        assert_int_equal(check_run_start(&runs, &place,
                                         &(struct agent_check){ "tg", "42", "true", 60 }, on_done,
                                         NULL, &err),
                         -1);
        assert_non_null(strstr(err.text, "agent 'helper' runs no commands"));
}

static void a_check_ends_with_its_agent(void **state)
{
        struct rig *r = *state;
        struct error err = { 0 };
        struct outcome o;

        assert_int_equal(start(r, NULL, "sleep 1000", 2000, &o, &err), 0);
        sandboxes_free(r->all);
        r->all = NULL;
        check_runs_drop(&runs);
        assert_int_equal(o.calls, 1);
        assert_int_equal(o.err.kind, ERR_CANCELLED);
        assert_true(LIST_EMPTY(&runs));
        free(o.output);
        holds = 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                TEST(a_silent_check_has_an_empty_output),
                TEST(output_of_a_check_is_told),
                TEST(a_failed_check_tells_its_code_and_both_outputs),
                TEST(a_check_that_takes_too_long_is_ended),
                TEST(much_output_is_cut_and_says_so),
                TEST(a_check_that_the_policy_would_ask_about_does_not_run),
                TEST(on_the_host_nothing_runs_without_a_rule),
                TEST(without_a_sandbox_it_is_refused),
                TEST(a_check_ends_with_its_agent),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
