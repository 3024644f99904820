/* The tools together, with a real sandbox. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TOOL_RIG_WITH_SANDBOX
#include "../lib/patience.h"
#include "tool_rig.h"

static struct sandbox_conf conf = {
        .memory_mb = 1024,
        .processes = 256,
        .file_mb = 64,
        .disk_mb = 1024,
        .cpu_seconds = 300,
        .timeout_seconds = PATIENCE_MS / 1000,
        .output_kb = 4096,
        .idle_seconds = 300,
        .jobs = 4,
        .job_seconds = 600,
};

static int setup_sandbox(void **state)
{
        struct tool_rig *b;

        setup(state);
        b = *state;
        conf.kind = mem_strdup("bwrap");
        b->scope.sandboxes = sandboxes_new(b->loop, &conf, b->dir);
        return 0;
}

static int teardown_sandbox(void **state)
{
        struct tool_rig *b = *state;

        sandboxes_free(b->scope.sandboxes);
        free(conf.kind);
        return teardown(state);
}

static const char *bash(struct tool_rig *b, const char *command)
{
        return rig_call(b, "bash", json_pack("{s:s}", "command", command));
}

static void commands_and_file_tools_see_the_same_files(void **state)
{
        struct tool_rig *b = *state;

        rig_call(b, "write",
                 json_pack("{s:s, s:s}", "path", "src/a.sh", "content", "echo one; pwd\n"));
        bash(b, "ls src && sh src/a.sh && echo 'echo two' >> src/a.sh");
        expect_text(b, "a.sh\none\n/workspace/channels/test/c1\n");
        rig_call(b, "edit",
                 json_pack("{s:s, s:s, s:s}", "path", "src/a.sh", "oldText", "; pwd", "newText",
                           "; echo 1.5"));
        assert_false(b->result.is_error);
        bash(b, "mkdir made && sh src/a.sh | tee made/out");
        expect_text(b, "one\n1.5\ntwo\n");
        rig_call(b, "read", json_pack("{s:s}", "path", "/workspace/channels/test/c1/made/out"));
        expect_text(b, "one\n1.5\ntwo\n");
        /* what we made belongs to it, and what it made can be replaced */
        bash(b, "chmod 700 src && rm -r src && touch new");
        expect_text(b, "(no output)");
        rig_call(b, "write", json_pack("{s:s, s:s}", "path", "made/out", "content", "ours\n"));
        bash(b, "echo theirs >> made/out; cat made/out");
        expect_text(b, "ours\ntheirs\n");
}

static void a_link_made_by_a_command_leads_nowhere(void **state)
{
        struct tool_rig *b = *state;

        bash(b, "ln -s /etc/passwd link; ln -s / root; mkdir scratch-is-mine; ln -s /tmp scratch");
        assert_false(b->result.is_error);
        rig_call(b, "read", json_pack("{s:s}", "path", "link"));
        expect_error(b, "links are not followed");
        rig_call(b, "read", json_pack("{s:s}", "path", "root/etc/passwd"));
        expect_error(b, "links are not followed");
        rig_call(b, "write", json_pack("{s:s, s:s}", "path", "root/tmp/x", "content", "x"));
        assert_true(b->result.is_error);
        bash(b, "seq 1 3000");
        assert_non_null(strstr(b->text, "The full output was not kept"));
}

static void the_full_output_can_be_read_inside(void **state)
{
        struct tool_rig *b = *state;
        char *path, *command;

        bash(b, "for i in $(seq 1 20000); do echo line $i; done");
        assert_non_null(strstr(b->text, "line 20000\n\n[Showing lines 18001-20000 of 20000. "));
        path = mem_strdup(json_str(b->result.details, "fullOutputPath", "none"));
        command = mem_printf("head -n 2 %s && wc -l < %s && rm %s", path, path, path);
        bash(b, command);
        expect_text(b, "line 1\nline 2\n20000\n");
        free(path);
        free(command);
}

static void failures_and_timeouts_are_told(void **state)
{
        struct tool_rig *b = *state;

        bash(b, "echo to stdout; echo to stderr >&2; exit 3");
        expect_error(b, "to stdout\n");
        expect_error(b, "to stderr\n");
        expect_error(b, "The command exited with code 3");
        rig_call(b, "bash",
                 json_pack("{s:s, s:i}", "command", "echo begun; sleep 1000", "timeout", 1));
        expect_error(b, "begun\n\nThe command was ended after ");
        bash(b, "cat"); /* nothing on stdin: it does not hang */
        expect_text(b, "(no output)");
}

static void a_job_lives_between_calls(void **state)
{
        struct tool_rig *b = *state;

        rig_call(b, "bash",
                 json_pack("{s:s, s:b}", "command", "while read x; do echo \"got $x\"; done",
                           "background", 1));
        assert_memory_equal(b->text, "Started as job 1.", 17);
        rig_call(b, "job",
                 json_pack("{s:s, s:i, s:s}", "action", "write", "id", 1, "input", "a word\n"));
        assert_false(b->result.is_error);
        rig_call(b, "job", json_pack("{s:s, s:i, s:i}", "action", "read", "id", 1, "wait", 60));
        assert_memory_equal(b->text, "got a word\n\nJob 1: running", 26);
        rig_call(b, "job", json_pack("{s:s, s:i, s:b}", "action", "write", "id", 1, "close", 1));
        rig_call(b, "job", json_pack("{s:s, s:i, s:i}", "action", "read", "id", 1, "wait", 60));
        assert_non_null(strstr(b->text, "Job 1: ended with code 0"));
        rig_call(b, "bash", json_pack("{s:s, s:b}", "command", "sleep 1000", "background", 1));
        rig_call(b, "job", json_pack("{s:s, s:i}", "action", "kill", "id", 2));
        assert_false(b->result.is_error);
        rig_call(b, "job", json_pack("{s:s, s:i, s:i}", "action", "read", "id", 2, "wait", 60));
        assert_non_null(strstr(b->text, "Job 2: ended by signal"));
}

static void a_cancelled_command_dies_with_its_children(void **state)
{
        struct tool_rig *b = *state;

        rig_start(b, tool_find("bash"),
                  json_pack("{s:s}", "command",
                            "(sleep 1; touch late) & echo begun; sleep 1000; touch late"));
        for (int i = 0; i < TOOL_ROUNDS && b->output.len == 0; i++)
                loop_step(b->loop, true);
        assert_string_equal(b->output.data, "begun\n");
        b->call.tool->cancel(&b->call);
        bash(b, "sleep 1.5; ls late");
        expect_error(b, "No such file");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_sandbox, teardown_sandbox)
        const struct CMUnitTest tests[] = {
                TEST(commands_and_file_tools_see_the_same_files),
                TEST(a_link_made_by_a_command_leads_nowhere),
                TEST(the_full_output_can_be_read_inside),
                TEST(failures_and_timeouts_are_told),
                TEST(a_job_lives_between_calls),
                TEST(a_cancelled_command_dies_with_its_children),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
