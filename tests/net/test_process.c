/* Child programs: what they get, what limits them, and how they and their children end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/spawn_thread.h"
#include "net/process.h"

struct seen {
        struct loop *loop;
        struct process *process;
        struct buf out, err;
        bool exited, abandon_at_output;
        struct process_result result;
};

static void on_output(void *arg, int fd, const char *bytes, size_t n)
{
        struct seen *s = arg;

        assert_false(s->exited);
        buf_add(fd == 1 ? &s->out : &s->err, bytes, n);
        if (s->abandon_at_output)
                process_abandon(s->process);
}

static void on_exit_seen(void *arg, const struct process_result *result)
{
        struct seen *s = arg;

        assert_false(s->exited);
        s->exited = true;
        s->result = *result;
}

static void begin(struct seen *s, struct process_options o, const char *script)
{
        const char *argv[] = { "sh", "-c", script, NULL };
        struct process_handlers h = { on_output, on_exit_seen };

        memset(s, 0, sizeof(*s));
        s->loop = loop_new();
        buf_init(&s->out, 0);
        buf_init(&s->err, 0);
        if (!o.argv)
                o.argv = argv;
        s->process = process_start(s->loop, &o, &h, s, NULL);
        assert_non_null(s->process);
}

static void await_exit(struct seen *s)
{
        while (!s->exited)
                assert_true(loop_step(s->loop, true) || s->exited);
}

static void await_text(struct seen *s, const char *text)
{
        while (!strstr(s->out.data, text))
                assert_true(loop_step(s->loop, true));
}

static void end(struct seen *s)
{
        loop_free(s->loop);
        buf_release(&s->out);
        buf_release(&s->err);
}

static void run(struct seen *s, struct process_options o, const char *script)
{
        begin(s, o, script);
        await_exit(s);
}

/*
 * A pipe whose write end every descendant of a child holds: reading ends when the last of them is
 * gone.
 */
static int family_open(int *ours)
{
        int fds[2];

        assert_int_equal(pipe(fds), 0);
        *ours = fds[0];
        return fds[1];
}

static void assert_family_gone(int ours, int theirs)
{
        char c;

        close(theirs);
        assert_int_equal(read(ours, &c, 1), 0);
        close(ours);
}

static void output_and_exit_code_arrive(void **state)
{
        struct seen s;

        (void)state;
        run(&s, (struct process_options){ 0 }, "echo hello; echo oops >&2; exit 3");
        assert_int_equal(s.result.exit_code, 3);
        assert_int_equal(s.result.signal, 0);
        assert_int_equal(s.result.kind, ERR_NONE);
        assert_string_equal(s.out.data, "hello\n");
        assert_string_equal(s.err.data, "oops\n");
        end(&s);
}

static void all_output_arrives_before_the_exit(void **state)
{
        struct seen s;

        (void)state;
        run(&s, (struct process_options){ 0 }, "head -c 1000000 /dev/zero");
        assert_int_equal(s.out.len, 1000000);
        end(&s);
}

static void a_child_gets_exactly_the_environment_it_is_given(void **state)
{
        const char *env[] = { "A=1", NULL };
        const char *argv[] = { "env", NULL };
        struct seen s;

        (void)state;
        run(&s, (struct process_options){ .argv = argv, .env = env }, NULL);
        assert_string_equal(s.out.data, "A=1\n");
        end(&s);
}

static void a_child_gets_no_descriptor_of_ours(void **state)
{
        int fd = open("/dev/null", O_RDONLY); /* as libcurl makes its sockets */
        struct seen s;

        (void)state;
        assert_int_equal(dup2(fd, 200), 200);
        begin(&s, (struct process_options){ 0 },
              "[ -e /proc/self/fd/200 ] && echo open || echo closed");
        await_exit(&s);
        assert_string_equal(s.out.data, "closed\n");
        end(&s);
        close(200);
        close(fd);
}

static void a_child_gets_the_descriptors_it_is_given(void **state)
{
        int a[2], b[2];
        struct seen s;

        (void)state;
        assert_int_equal(pipe(a), 0);
        assert_int_equal(pipe(b), 0);
        assert_int_equal(write(a[1], "a\n", 2), 2);
        assert_int_equal(write(b[1], "b\n", 2), 2);
        begin(&s,
              (struct process_options){ .fds = (struct process_fd[]){ { 40, a[0] }, { 41, b[0] } },
                                        .fd_count = 2 },
              "cd /proc/self/fd; read x <40; read y <41; echo $x $y; ls | wc -l");
        await_exit(&s);
        assert_string_equal(s.out.data, "a b\n5\n"); /* these and the standard ones */
        end(&s);
        for (int i = 0; i < 2; i++) {
                close(a[i]);
                close(b[i]);
        }
}

static void the_limit_of_waiting_input_can_be_raised(void **state)
{
        static char big[3000000];
        struct seen s;

        (void)state;
        begin(&s, (struct process_options){ .keep_stdin = true, .max_waiting = sizeof(big) },
              "wc -c");
        assert_int_equal(process_write(s.process, big, sizeof(big), NULL), 0);
        process_close_stdin(s.process);
        await_exit(&s);
        assert_string_equal(s.out.data, "3000000\n");
        end(&s);
}

/* The spawner blocks every signal; its children must not. */
static void a_child_of_the_spawner_takes_signals(void **state)
{
        struct seen s;

        (void)state;
        assert_int_equal(spawn_thread_start(NULL), 0);
        begin(&s, (struct process_options){ 0 }, "grep SigBlk /proc/self/status; kill $$");
        await_exit(&s);
        assert_string_equal(s.out.data, "SigBlk:\t0000000000000000\n");
        assert_int_equal(s.result.signal, SIGTERM);
        end(&s);
        spawn_thread_stop();
}

static void without_an_environment_no_secret_is_inherited(void **state)
{
        const char *argv[] = { "env", NULL };
        struct seen s;

        (void)state;
        setenv("MY_SECRET_TOKEN", "hush", 1);
        setenv("TZ", "UTC", 1);
        run(&s, (struct process_options){ .argv = argv }, NULL);
        assert_null(strstr(s.out.data, "hush"));
        assert_non_null(strstr(s.out.data, "PATH="));
        assert_non_null(strstr(s.out.data, "TZ=UTC\n"));
        unsetenv("MY_SECRET_TOKEN");
        end(&s);
}

static void the_program_is_found_in_our_path(void **state)
{
        const char *env[] = { "PATH=/nonexistent", NULL };
        struct seen s;

        (void)state;
        run(&s, (struct process_options){ .env = env }, "echo found");
        assert_string_equal(s.out.data, "found\n");
        end(&s);
}

static void the_working_directory_is_set(void **state)
{
        struct seen s;

        (void)state;
        run(&s, (struct process_options){ .cwd = "/" }, "pwd");
        assert_string_equal(s.out.data, "/\n");
        end(&s);
}

static void input_is_written_and_closed(void **state)
{
        struct seen s;

        (void)state;
        begin(&s, (struct process_options){ .keep_stdin = true }, "cat");
        assert_int_equal(process_write(s.process, "one ", 4, NULL), 0);
        assert_int_equal(process_write(s.process, "two", 3, NULL), 0);
        process_close_stdin(s.process);
        assert_int_equal(process_write(s.process, "x", 1, NULL), -1);
        await_exit(&s);
        assert_string_equal(s.out.data, "one two");
        end(&s);
}

static void without_input_the_child_reads_nothing(void **state)
{
        struct error err;
        struct seen s;

        (void)state;
        begin(&s, (struct process_options){ 0 }, "cat; echo end");
        assert_int_equal(process_write(s.process, "x", 1, &err), -1);
        assert_int_equal(err.kind, ERR_CONFLICT);
        await_exit(&s);
        assert_string_equal(s.out.data, "end\n");
        end(&s);
}

static void input_that_is_not_read_is_limited(void **state)
{
        static char big[1000000];
        struct error err;
        struct seen s;

        (void)state;
        begin(&s, (struct process_options){ .keep_stdin = true }, "exec sleep 60");
        assert_int_equal(process_write(s.process, big, sizeof(big), NULL), 0);
        assert_int_equal(process_write(s.process, big, sizeof(big), &err), -1);
        assert_int_equal(err.kind, ERR_LIMIT);
        process_stop(s.process);
        await_exit(&s);
        end(&s);
}

static void writing_to_a_child_that_closed_its_input_does_no_harm(void **state)
{
        struct seen s;

        (void)state;
        begin(&s, (struct process_options){ .keep_stdin = true },
              "exec 0<&-; echo closed; read x < /dev/zero; sleep 60");
        await_text(&s, "closed");
        process_write(s.process, "x", 1, NULL);
        loop_step(s.loop, false);
        process_stop(s.process);
        await_exit(&s);
        end(&s);
}

static void too_much_output_ends_the_child(void **state)
{
        struct seen s;

        (void)state;
        run(&s, (struct process_options){ .max_output = 5000 }, "yes & yes >&2");
        assert_int_equal(s.result.kind, ERR_LIMIT);
        assert_int_equal(s.out.len + s.err.len, 5000);
        end(&s);
}

static void the_timeout_ends_the_child(void **state)
{
        struct seen s;

        (void)state;
        run(&s, (struct process_options){ .timeout_ms = 20 }, "exec sleep 60");
        assert_int_equal(s.result.kind, ERR_TIMEOUT);
        assert_int_equal(s.result.exit_code, -1);
        assert_int_equal(s.result.signal, SIGTERM);
        end(&s);
}

static void a_child_that_ignores_term_is_killed(void **state)
{
        struct seen s;

        (void)state;
        begin(&s, (struct process_options){ .grace_ms = 20 },
              "trap '' TERM; echo ready; while :; do sleep 60; done");
        await_text(&s, "ready");
        process_stop(s.process);
        process_stop(s.process);
        await_exit(&s);
        assert_int_equal(s.result.kind, ERR_CANCELLED);
        assert_int_equal(s.result.signal, SIGKILL);
        end(&s);
}

static void a_stopped_child_may_clean_up(void **state)
{
        struct seen s;

        (void)state;
        begin(&s, (struct process_options){ .grace_ms = 60000 },
              "trap 'echo bye; exit 7' TERM; echo ready; sleep 60 & wait");
        await_text(&s, "ready");
        process_stop(s.process);
        await_exit(&s);
        assert_int_equal(s.result.kind, ERR_CANCELLED);
        assert_int_equal(s.result.exit_code, 7);
        assert_non_null(strstr(s.out.data, "bye"));
        end(&s);
}

static void stopping_ends_the_grandchildren_too(void **state)
{
        struct seen s;
        int ours, theirs = family_open(&ours);

        (void)state;
        begin(&s, (struct process_options){ .grace_ms = 20 },
              "(trap '' TERM; sleep 60; sleep 60) & echo ready; wait");
        await_text(&s, "ready");
        assert_int_equal(getpgid(process_pid(s.process)), process_pid(s.process));
        assert_int_equal(getsid(process_pid(s.process)), process_pid(s.process));
        process_stop(s.process);
        await_exit(&s);
        assert_family_gone(ours, theirs);
        end(&s);
}

static void a_grandchild_is_killed_with_the_child(void **state)
{
        struct seen s;
        int ours, theirs = family_open(&ours);

        (void)state;
        run(&s, (struct process_options){ .grace_ms = 600000 }, "sleep 60 & echo done");
        assert_int_equal(s.result.exit_code, 0);
        assert_string_equal(s.out.data, "done\n");
        assert_family_gone(ours, theirs);
        end(&s);
}

static void a_process_outside_the_group_does_not_delay_exit(void **state)
{
        struct seen s;

        (void)state;
        run(&s, (struct process_options){ .grace_ms = 20 },
            "setsid sleep 2 & sleep 0.2; echo done");
        assert_int_equal(s.result.exit_code, 0);
        assert_string_equal(s.out.data, "done\n");
        end(&s);
}

static void a_failed_start_is_reported_at_once(void **state)
{
        static const struct {
                const char *program, *cwd;
                enum error_kind kind;
        } rows[] = {
                { "no-such-program-here", NULL, ERR_MISSING },
                { "/nonexistent/program", NULL, ERR_MISSING },
                { "/etc/passwd", NULL, ERR_REFUSED },
                { "sh", "/nonexistent", ERR_MISSING },
        };
        struct loop *l = loop_new();
        struct process_handlers h = { NULL, on_exit_seen };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                const char *argv[] = { rows[i].program, NULL };
                struct process_options o = { .argv = argv, .cwd = rows[i].cwd, .keep_stdin = true };
                struct error err;

                assert_null(process_start(l, &o, &h, NULL, &err));
                assert_int_equal(err.kind, rows[i].kind);
                assert_non_null(strstr(err.text, rows[i].program));
        }
        loop_free(l);
}

static void an_abandoned_process_is_killed_without_a_report(void **state)
{
        for (int i = 0; i < 2; i++) {
                struct seen s;
                int ours, theirs = family_open(&ours);

                (void)state;
                begin(&s, (struct process_options){ 0 },
                      "trap '' TERM; sleep 60 & echo ready; sleep 60");
                s.abandon_at_output = i == 1;
                await_text(&s, "ready");
                if (i == 0)
                        process_abandon(s.process);
                assert_family_gone(ours, theirs);
                end(&s);
                assert_false(s.exited);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(output_and_exit_code_arrive),
                cmocka_unit_test(all_output_arrives_before_the_exit),
                cmocka_unit_test(a_child_gets_exactly_the_environment_it_is_given),
                cmocka_unit_test(a_child_gets_no_descriptor_of_ours),
                cmocka_unit_test(a_child_gets_the_descriptors_it_is_given),
                cmocka_unit_test(the_limit_of_waiting_input_can_be_raised),
                cmocka_unit_test(a_child_of_the_spawner_takes_signals),
                cmocka_unit_test(without_an_environment_no_secret_is_inherited),
                cmocka_unit_test(the_program_is_found_in_our_path),
                cmocka_unit_test(the_working_directory_is_set),
                cmocka_unit_test(input_is_written_and_closed),
                cmocka_unit_test(without_input_the_child_reads_nothing),
                cmocka_unit_test(input_that_is_not_read_is_limited),
                cmocka_unit_test(writing_to_a_child_that_closed_its_input_does_no_harm),
                cmocka_unit_test(too_much_output_ends_the_child),
                cmocka_unit_test(the_timeout_ends_the_child),
                cmocka_unit_test(a_child_that_ignores_term_is_killed),
                cmocka_unit_test(a_stopped_child_may_clean_up),
                cmocka_unit_test(stopping_ends_the_grandchildren_too),
                cmocka_unit_test(a_grandchild_is_killed_with_the_child),
                cmocka_unit_test(a_process_outside_the_group_does_not_delay_exit),
                cmocka_unit_test(a_failed_start_is_reported_at_once),
                cmocka_unit_test(an_abandoned_process_is_killed_without_a_report),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
