#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>

#include "agent/tools/output_file.h"
#include "tool_rig.h"

static struct sandboxes sandboxes;

static int setup_sandbox(void **state)
{
        struct tool_rig *b;

        setup(state);
        b = *state;
        fake_sandbox_init(&sandboxes);
        b->scope.sandboxes = &sandboxes;
        return 0;
}

static int teardown_sandbox(void **state)
{
        fake_sandbox_release(&sandboxes);
        return teardown(state);
}

static void start(struct tool_rig *b, const char *command)
{
        rig_start(b, tool_find("bash"), json_pack("{s:s}", "command", command));
        assert_non_null(sandboxes.run);
}

static void print(const char *text)
{
        fake_print(&sandboxes, 1, text, strlen(text));
}

static void end(struct tool_rig *b, int code)
{
        fake_exit(&sandboxes, &(struct sandbox_result){ .exit_code = code });
        rig_await(b);
}

/* ---- results ---- */

static void output_is_returned_as_it_came(void **state)
{
        struct tool_rig *b = *state;

        start(b, "make; echo \"'$HOME'\"");
        assert_string_equal(sandboxes.command, "make; echo \"'$HOME'\"");
        print("one\n");
        fake_print(&sandboxes, 2, "\x1b[31mwarning\x1b[0m\n", 17);
        print("two \xe2\x82");
        print("\xac\n");
        for (int i = 0; i < TOOL_ROUNDS && b->output.len < 16; i++)
                loop_step(b->loop, true);
        assert_string_equal(b->output.data, "one\nwarning\ntwo \xe2\x82\xac\n");
        end(b, 0);
        expect_text(b, "one\nwarning\ntwo \xe2\x82\xac\n");
        assert_true(b->result.untrusted);
        assert_int_equal(json_int(b->result.details, "exitCode", -1), 0);
        assert_null(json_object_get(b->result.details, "truncation"));
}

static void failures_are_results_with_the_output(void **state)
{
        struct tool_rig *b = *state;

        start(b, "false");
        end(b, 1);
        expect_error(b, "(no output)\n\nThe command exited with code 1");
        start(b, "true");
        print(" \n");
        end(b, 0);
        expect_text(b, "(no output)");
        start(b, "crash");
        print("before");
        fake_exit(&sandboxes, &(struct sandbox_result){ .exit_code = -1, .signal = 11 });
        rig_await(b);
        expect_error(b, "before\n\nThe command was ended by signal 11 (Segmentation fault)");
        rig_start(b, tool_find("bash"),
                  json_pack("{s:s, s:i}", "command", "sleep 9", "timeout", 5));
        assert_int_equal(sandboxes.timeout_ms, 5000);
        fake_exit(&sandboxes, &(struct sandbox_result){ .exit_code = -1,
                                                        .kind = ERR_TIMEOUT,
                                                        .why = "the timeout of 5 s" });
        rig_await(b);
        expect_error(b, "The command was ended after 0 s: the timeout of 5 s");
        error_set(&sandboxes.refuse, ERR_REFUSED, "bwrap is missing; install bubblewrap");
        rig_start(b, tool_find("bash"), json_pack("{s:s}", "command", "ls"));
        expect_error(b, "The command did not run: bwrap is missing; install bubblewrap");
}

static void silence_is_told_while_it_runs(void **state)
{
        struct tool_rig *b = *state;

        b->scope.silence_ms = 1;
        start(b, "sleep 1000");
        for (int i = 0; i < TOOL_ROUNDS && b->output.len == 0; i++)
                loop_step(b->loop, true);
        assert_memory_equal(b->output.data, "[no output for a while, still running after ", 44);
        end(b, 0);
        expect_text(b, "(no output)"); /* not part of the result */
}

static void a_flood_is_shown_in_parts(void **state)
{
        struct tool_rig *b = *state;

        start(b, "yes");
        for (int i = 0; i < 10000; i++)
                print("yes\n");
        assert_string_equal(b->output.data, "yes\n");
        for (int i = 0; i < TOOL_ROUNDS && b->output.len == 4; i++)
                loop_step(b->loop, true);
        assert_int_equal(b->output.len, 4 + 4096);
        end(b, 0);
        assert_non_null(strstr(b->text, "[Showing lines 8001-10000 of 10000."));
}

/* ---- long output ---- */

/* "…/scratch/x" of the result, relative to the channel's folder. */
static const char *full_output(struct tool_rig *b)
{
        const char *path = json_str(b->result.details, "fullOutputPath", NULL);

        assert_non_null(path);
        assert_non_null(strstr(b->text, path));
        assert_memory_equal(path, "/workspace/channels/test/c1/", 28);
        return path + 28;
}

static void of_long_output_the_tail_is_shown_and_all_is_kept(void **state)
{
        struct tool_rig *b = *state;
        const json_t *t;
        struct buf all;

        buf_init(&all, 0);
        start(b, "seq 1 50000");
        for (int i = 1; i <= 50000; i++) {
                buf_addf(&all, "%d\n", i);
                if (i % 1000 == 0)
                        fake_print(&sandboxes, 1, all.data + all.len - 20, 20);
        }
        fake_print(&sandboxes, 1, all.data, all.len);
        end(b, 0);
        assert_memory_equal(b->text, "48001\n", 6);
        assert_non_null(strstr(b->text, "\n50000\n\n[Showing lines "));
        t = json_object_get(b->result.details, "truncation");
        assert_true(json_is_true(json_object_get(t, "truncated")));
        assert_string_equal(json_str(t, "truncatedBy", ""), "lines");
        assert_int_equal(json_int(t, "outputLines", 0), 2000);
        buf_release(&all);

        /* the agent finds the beginning in the file */
        buf_init(&all, 0);
        for (int i = 1; i <= 2001; i++)
                buf_addf(&all, "%d\n", i);
        start(b, "seq 1 2001");
        print(all.data);
        end(b, 0);
        assert_memory_equal(b->text, "2\n", 2);
        assert_non_null(strstr(b->text, "[Showing lines 2-2001 of 2001. Full output: /workspace/"));
        expect_file(b, full_output(b), all.data);
        rig_call(b, "read", json_pack("{s:s, s:i}", "path", full_output(b), "limit", 1));
        assert_memory_equal(b->text, "1\n", 2);
        buf_release(&all);
}

static void long_lines_and_binary_are_told(void **state)
{
        struct tool_rig *b = *state;
        char *line = mem_zalloc(5001);

        memset(line, 'x', 5000);
        start(b, "long line");
        print(line);
        end(b, 0);
        assert_non_null(strstr(b->text,
                               "[2952 more bytes in this line]\n\n[1 line was cut at 2 KB. "
                               "Full output: "));
        expect_file(b, full_output(b), line);
        start(b, "cat program");
        fake_print(&sandboxes, 1,
                   "\x7f"
                   "ELF\0\0\0\0\0\0\0\0\0",
                   13);
        end(b, 1);
        expect_error(b, "(binary output, 13 bytes) [Full output: ");
        expect_error(b, "The command exited with code 1");
        free(line);
}

static size_t count_outputs(struct tool_rig *b)
{
        char *path = mem_printf("%s/scratch", b->folder);
        DIR *d = opendir(path);
        const struct dirent *e;
        size_t n = 0;

        assert_non_null(d);
        while ((e = readdir(d)))
                n += strncmp(e->d_name, "output-", 7) == 0;
        closedir(d);
        free(path);
        return n;
}

static void kept_outputs_are_limited_in_number_and_size(void **state)
{
        struct tool_rig *b = *state;
        char *piece = mem_zalloc((64 << 10) + 1), *got;

        memset(piece, 'x', 64 << 10);
        for (int i = 0; i < OUTPUT_FILES + 3; i++) {
                start(b, "x");
                print(piece);
                end(b, 0);
        }
        assert_int_equal(count_outputs(b), OUTPUT_FILES);
        start(b, "flood");
        for (int i = 0; i < 256; i++) { /* 16 MiB, faster than any disk */
                print(piece);
                loop_step(b->loop, false);
        }
        end(b, 0);
        got = get(b, full_output(b));
        assert_true(strlen(got) < OUTPUT_FILE_BYTES + 4096);
        assert_non_null(strstr(got, "[more output was left out here]"));
        free(got);
        free(piece);
}

static void an_output_that_cannot_be_kept_is_still_shown(void **state)
{
        struct tool_rig *b = *state;
        char *link = mem_printf("%s/scratch", b->folder),
             *outside = scratch_path(b->dir, "outside");
        char *piece = mem_zalloc((64 << 10) + 1);

        memset(piece, '\n', 64 << 10);
        assert_int_equal(mkdir(outside, 0700), 0);
        assert_int_equal(symlink(outside, link), 0);
        start(b, "x");
        print(piece);
        print("last\n");
        end(b, 0);
        assert_false(b->result.is_error);
        assert_non_null(strstr(b->text, "\nlast\n\n[Showing lines "));
        assert_non_null(strstr(b->text, "The full output was not kept: cannot open the folder "
                                        "scratch"));
        assert_int_equal(rmdir(outside), 0); /* nothing is in it */
        free(link);
        free(outside);
        free(piece);
}

/* ---- ends ---- */

static void a_call_is_cancelled_while_its_output_is_being_closed(void **state)
{
        struct tool_rig *b = *state;
        char *piece = mem_zalloc((64 << 10) + 1);

        memset(piece, 'x', 64 << 10);
        start(b, "x");
        print(piece);
        free(piece);
        for (int i = 0; i < TOOL_ROUNDS; i++) /* until all of it is written */
                loop_step(b->loop, false);
        fake_exit(&sandboxes, &(struct sandbox_result){ 0 });
        b->call.tool->cancel(&b->call);
        while (loop_step(b->loop, true))
                ;
        assert_int_equal(b->done, 0);
        assert_int_equal(count_outputs(b), 1);
}

static void a_cancelled_command_is_ended(void **state)
{
        struct tool_rig *b = *state;
        char *piece = mem_zalloc((64 << 10) + 1);

        start(b, "sleep 1000");
        print("x\n");
        b->call.tool->cancel(&b->call);
        assert_int_equal(sandboxes.abandoned, 1);
        /* also while its output is written */
        memset(piece, 'x', 64 << 10);
        start(b, "x");
        print(piece);
        fake_exit(&sandboxes, &(struct sandbox_result){ 0 });
        b->call.tool->cancel(&b->call);
        while (loop_step(b->loop, true))
                ;
        assert_int_equal(b->done, 0);
        assert_int_equal(sandboxes.abandoned, 1);
        free(piece);
}

/* ---- jobs ---- */

static void a_job_is_started_fed_read_and_killed(void **state)
{
        struct tool_rig *b = *state;

        rig_call(b, "job", json_pack("{s:s}", "action", "list"));
        expect_text(b, "There are no jobs.");
        rig_call(b, "bash", json_pack("{s:s, s:b}", "command", "server", "background", 1));
        assert_memory_equal(b->text, "Started as job 3.", 17);
        buf_addstr(&sandboxes.printed, "listening\n");
        rig_call(b, "job", json_pack("{s:s}", "action", "list"));
        assert_non_null(strstr(b->text, "10 bytes to read: server"));
        rig_call(b, "job", json_pack("{s:s, s:i}", "action", "read", "id", 3));
        assert_memory_equal(b->text, "listening\n\nJob 3: running for ", 30);
        assert_true(b->result.untrusted);
        rig_call(b, "job",
                 json_pack("{s:s, s:i, s:s}", "action", "write", "id", 3, "input", "hi\n"));
        expect_text(b, "Wrote 3 bytes to job 3.");
        assert_string_equal(sandboxes.fed.data, "hi\n");
        rig_call(b, "job", json_pack("{s:s, s:i, s:b}", "action", "write", "id", 3, "close", 1));
        assert_true(sandboxes.closed);
        rig_call(b, "job", json_pack("{s:s, s:i}", "action", "kill", "id", 3));
        expect_text(b, "Ended job 3.");
        rig_call(b, "job", json_pack("{s:s, s:i}", "action", "read", "id", 3));
        expect_text(b, "(no output)\n\nJob 3: ended by signal 9");
}

static void mistakes_with_jobs_are_explained(void **state)
{
        struct tool_rig *b = *state;

        rig_call(b, "job", json_pack("{s:s, s:i}", "action", "read", "id", 9));
        expect_error(b, "there is no job 9");
        rig_call(b, "job", json_pack("{s:s}", "action", "kill"));
        expect_error(b, "kill needs the id of a job");
        rig_call(b, "job", json_pack("{s:s, s:i}", "action", "write", "id", 3));
        expect_error(b, "write needs input");
}

static void a_read_may_wait_for_output(void **state)
{
        struct tool_rig *b = *state;

        rig_call(b, "bash", json_pack("{s:s, s:b}", "command", "server", "background", 1));
        rig_start(b, tool_find("job"),
                  json_pack("{s:s, s:i, s:i}", "action", "read", "id", 3, "wait", 60));
        loop_step(b->loop, true);
        loop_step(b->loop, true);
        assert_int_equal(b->done, 0);
        buf_addstr(&sandboxes.printed, "ready\n");
        rig_await(b);
        assert_memory_equal(b->text, "ready\n", 6);
        rig_start(b, tool_find("job"),
                  json_pack("{s:s, s:i, s:i}", "action", "read", "id", 3, "wait", 60));
        b->call.tool->cancel(&b->call);
        assert_false(loop_step(b->loop, false));
        assert_int_equal(b->done, 0);
}

static void without_a_sandbox_there_are_no_commands(void **state)
{
        struct tool_rig *b = *state;
        struct tool_set *set = tool_set_new(&b->scope, NULL);

        assert_non_null(tool_set_find(set, "bash"));
        assert_non_null(tool_set_find(set, "job"));
        tool_set_free(set);
        b->scope.sandboxes = NULL;
        set = tool_set_new(&b->scope, NULL);
        assert_null(tool_set_find(set, "bash"));
        assert_null(tool_set_find(set, "job"));
        tool_set_free(set);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_sandbox, teardown_sandbox)
        const struct CMUnitTest tests[] = {
                TEST(output_is_returned_as_it_came),
                TEST(failures_are_results_with_the_output),
                TEST(silence_is_told_while_it_runs),
                TEST(a_flood_is_shown_in_parts),
                TEST(of_long_output_the_tail_is_shown_and_all_is_kept),
                TEST(long_lines_and_binary_are_told),
                TEST(kept_outputs_are_limited_in_number_and_size),
                TEST(an_output_that_cannot_be_kept_is_still_shown),
                TEST(a_call_is_cancelled_while_its_output_is_being_closed),
                TEST(a_cancelled_command_is_ended),
                TEST(a_job_is_started_fed_read_and_killed),
                TEST(mistakes_with_jobs_are_explained),
                TEST(a_read_may_wait_for_output),
                TEST(without_a_sandbox_there_are_no_commands),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
