/*
 * dragoman chat as a whole program, on pipes and on a pseudo terminal. DRAGOMAN names the program;
 * the default is the one of the same build.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/patience.h"
#include "../lib/rows.h"
#include "../lib/scratch.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "rows/schema.h"

#define ARGS_MAX 12

static char *program;

static int find_program(void **state)
{
        const char *given = getenv("DRAGOMAN");
        char self[PATH_MAX], *end;
        ssize_t n;

        (void)state;
        if (given) {
                program = mem_strdup(given);
                return 0;
        }
        n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (n <= 0)
                return -1;
        self[n] = '\0';
        end = strstr(self, "/tests/cli/");
        if (!end)
                return -1;
        *end = '\0';
        program = mem_printf("%s/dragoman", self);
        if (access(program, X_OK) < 0)
                fprintf(stderr, "there is no program %s: build it first\n", program);
        return access(program, X_OK);
}

static int forget_program(void **state)
{
        (void)state;
        free(program);
        return 0;
}

/* ---- running the program ---- */

struct child {
        pid_t pid;
        int in, out, err; /* pipes to it, or the terminal in `out` */
        struct buf seen;  /* read from out */
};

/* Must not use a model's key from the environment of the tests. */
static void clean_environment(void)
{
        unsetenv("DISCORD_BOT_TOKEN"); /* a real bot would be connected */
        unsetenv("SLACK_BOT_TOKEN");
        unsetenv("TELEGRAM_BOT_TOKEN");
        unsetenv("ANTHROPIC_API_KEY");
        unsetenv("OPENAI_API_KEY");
        setenv("TERM", "xterm", 1);
}

static void become(const char *const *words)
{
        const char *argv[ARGS_MAX + 2] = { program };

        for (size_t i = 0; i < ARGS_MAX && words[i]; i++)
                argv[i + 1] = words[i];
        clean_environment();
        execv(program, (char *const *)argv);
        _exit(127);
}

static void start(struct child *c, const char *const *words)
{
        int in[2], out[2], err[2];

        assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe2(err, O_CLOEXEC), 0);
        c->pid = fork();
        if (c->pid == 0) {
                dup2(in[0], 0);
                dup2(out[1], 1);
                dup2(err[1], 2);
                become(words);
        }
        close(in[0]);
        close(out[1]);
        close(err[1]);
        c->in = in[1];
        c->out = out[0];
        c->err = err[0];
        buf_init(&c->seen, 0);
}

static void start_on_terminal(struct child *c, const char *const *words)
{
        struct winsize size = { .ws_row = 40, .ws_col = 200 };

        c->pid = forkpty(&c->out, NULL, NULL, &size);
        if (c->pid == 0)
                become(words);
        assert_true(c->pid > 0);
        c->in = dup(c->out);
        c->err = -1;
        buf_init(&c->seen, 0);
}

/* False at the end of its output. */
static bool read_more(struct child *c, const char *awaited, int64_t deadline)
{
        struct pollfd p = { .fd = c->out, .events = POLLIN };
        int64_t left = deadline - clock_mono_ms();
        char bytes[4096];
        ssize_t n;

        if (left <= 0 || poll(&p, 1, (int)left) <= 0)
                fail_msg("'%s' did not come within a minute; so far: %s", awaited, c->seen.data);
        n = read(c->out, bytes, sizeof(bytes));
        if (n <= 0)
                return false;
        buf_add(&c->seen, bytes, (size_t)n);
        return true;
}

/* Waits for the text and drops everything up to its end. */
static void expect(struct child *c, const char *text)
{
        int64_t deadline = clock_mono_ms() + PATIENCE_MS;
        char *at;

        while (!(at = strstr(c->seen.data, text))) {
                if (!read_more(c, text, deadline))
                        fail_msg("'%s' did not come; instead: %s", text, c->seen.data);
        }
        buf_consume(&c->seen, (size_t)(at - c->seen.data) + strlen(text));
}

/* Swaps out and err, to read its log. */
static void start_daemon(struct child *c, const char *dir)
{
        const char *words[] = { "run", dir, "--listen", "127.0.0.1:0", NULL };
        int out;

        start(c, words);
        out = c->out;
        c->out = c->err;
        c->err = out;
        expect(c, "ready address=");
}

static void type(struct child *c, const char *text)
{
        assert_int_equal(write(c->in, text, strlen(text)), strlen(text));
}

static void drain(int fd, struct buf *into)
{
        char bytes[4096];
        ssize_t n;

        while ((n = read(fd, bytes, sizeof(bytes))) > 0)
                buf_add(into, bytes, (size_t)n);
}

/* Reads to the end; returns the exit code. `err` may be NULL. */
static int finish(struct child *c, struct buf *err)
{
        int64_t deadline = clock_mono_ms() + PATIENCE_MS;
        struct buf lost;
        int status;

        close(c->in);
        while (read_more(c, "the end", deadline)) {
        }
        buf_init(&lost, 0);
        if (c->err >= 0) {
                drain(c->err, err ? err : &lost);
                close(c->err);
        }
        buf_release(&lost);
        close(c->out);
        assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void write_config(const char *dir, const char *text)
{
        scratch_put(dir, "config.json", text);
}

static bool has_file(const char *dir, const char *name)
{
        char *path = scratch_path(dir, name);
        bool there = access(path, F_OK) == 0;

        free(path);
        return there;
}

/* ---- pipes ---- */

static void lines_are_answered_one_by_one_and_in_order(void **state)
{
        char *dir = scratch_new();
        const char *words[] = { "chat", dir, "--listen", "127.0.0.1:0", NULL };
        struct child c;

        (void)state;
        write_config(dir, "{ \"agents\": { \"e\": { \"type\": \"echo\" } } }");
        start(&c, words);
        type(&c, "first\n\n   \nsecond \xc3\xa4\r\nthird without a newline");
        assert_int_equal(finish(&c, NULL), 0);
        assert_string_equal(c.seen.data, "first\nsecond \xc3\xa4\nthird without a newline\n");
        assert_false(has_file(dir, "state/http.addr")); /* the daemon ended with it */
        buf_release(&c.seen);
        scratch_free(dir);
}

static void empty_input_is_fine(void **state)
{
        char *dir = scratch_new();
        const char *words[] = { "chat", dir, "--listen", "127.0.0.1:0", NULL };
        struct child c;

        (void)state;
        start(&c, words);
        assert_int_equal(finish(&c, NULL), 0);
        assert_int_equal(c.seen.len, 0);
        buf_release(&c.seen);
        scratch_free(dir);
}

static void a_message_without_an_answer_makes_the_exit_code_1(void **state)
{
        char *dir = scratch_new();
        const char *words[] = { "chat", dir, "--listen", "127.0.0.1:0", NULL };
        struct child c;
        struct buf err;

        (void)state;
        write_config(dir, "{ \"agents\": { \"x\": { \"type\": \"openai\", \"model\": \"m\", "
                          "\"baseUrl\": \"http://127.0.0.1:1/v1\" } } }");
        buf_init(&err, 0);
        start(&c, words);
        type(&c, "hello\n");
        assert_int_equal(finish(&c, &err), 1);
        assert_non_null(strstr(err.data, "no answer to evt-"));
        assert_int_equal(c.seen.len, 0);
        buf_release(&err);
        buf_release(&c.seen);
        scratch_free(dir);
}

static void a_wrong_configuration_is_reported_with_exit_code_78(void **state)
{
        char *dir = scratch_new();
        const char *words[] = { "chat", dir, NULL };
        struct child c;
        struct buf err;

        (void)state;
        write_config(dir, "{\n \"agnts\": {} }");
        buf_init(&err, 0);
        start(&c, words);
        assert_int_equal(finish(&c, &err), 78);
        assert_non_null(strstr(err.data, "config.json:2"));
        buf_release(&err);
        buf_release(&c.seen);
        scratch_free(dir);
}

static void an_answer_survives_the_death_of_the_daemon(void **state)
{
        char *dir = scratch_new();
        const char *chat[] = { "chat", dir, NULL };
        const char *tail[] = { "events", "tail",         dir,  "--since", "evt-0",
                               "--type", "turn.started", "-n", "1",       NULL };
        struct child first, second, c, watch;

        (void)state;
        write_config(dir, "{ \"agents\": { \"d\": { \"type\": \"demo\", \"toolMs\": 1500 } } }");
        start_daemon(&first, dir);
        start(&watch, tail);
        start(&c, chat);
        type(&c, "progress\n");
        assert_int_equal(finish(&watch, NULL), 0); /* the agent works now */
        kill(first.pid, SIGKILL);
        assert_int_equal(finish(&first, NULL), 128 + SIGKILL);
        start_daemon(&second, dir);
        assert_int_equal(finish(&c, NULL), 0);
        assert_non_null(strstr(c.seen.data, "counted 1 word"));
        assert_null(strstr(strstr(c.seen.data, "counted 1 word") + 1, "counted 1 word"));
        kill(second.pid, SIGTERM);
        assert_int_equal(finish(&second, NULL), 0);
        buf_release(&first.seen);
        buf_release(&second.seen);
        buf_release(&watch.seen);
        buf_release(&c.seen);
        scratch_free(dir);
}

/* ---- terminal ---- */

static void a_terminal_gets_a_banner_answers_and_a_clean_end(void **state)
{
        char *dir = scratch_new();
        const char *words[] = { "chat", dir, "--listen", "127.0.0.1:0", NULL };
        struct child c;

        (void)state;
        start_on_terminal(&c, words);
        expect(&c, "demo");
        expect(&c, "operator.key");
        expect(&c, "connect Discord, Slack or Telegram: docs/platforms/");
        expect(&c, program); /* as it was called: it may not be in PATH */
        expect(&c, "> ");
        type(&c, "good m\xc3\xb6rning\r");
        expect(&c, "You said: good m\xc3\xb6rning");
        expect(&c, "> ");
        type(&c, "progress\r");
        expect(&c, "demo tool: counting words");
        expect(&c, "counted 1 word");
        expect(&c, "> ");
        type(&c, "/why\r");
        expect(&c, "answered in");
        expect(&c, "> ");
        type(&c, "/status\r");
        expect(&c, "adapters");
        expect(&c, "> ");
        type(&c, "\x04"); /* Ctrl-D */
        expect(&c, "Good bye");
        assert_int_equal(finish(&c, NULL), 0);
        assert_true(has_file(dir, "state/chat_history"));
        assert_false(has_file(dir, "state/http.addr"));
        buf_release(&c.seen);
        scratch_free(dir);
}

static void a_person_goes_on_where_they_left_off(void **state)
{
        char *dir = scratch_new(), *at = scratch_path(dir, "state");
        const char *words[] = { "chat", dir, "--listen", "127.0.0.1:0", NULL };
        struct store_options options = {
                .url = "sqlite", .dir = at, .migrations = schema_steps, .read_only = true
        };
        struct error err = { 0 };
        struct store *store;
        struct child c;

        (void)state;
        for (int i = 0; i < 2; i++) {
                start_on_terminal(&c, words);
                expect(&c, "> ");
                type(&c, "hello\r");
                expect(&c, "You said: hello");
                expect(&c, "> ");
                type(&c, "\x04");
                assert_int_equal(finish(&c, NULL), 0);
                buf_release(&c.seen);
        }
        store = store_open(NULL, &options, &err);
        assert_non_null(store);
        assert_int_equal(rows_count(store, "turns"), 2);
        assert_int_equal(rows_count(store, "conversations"), 1);
        store_close(store);
        free(at);
        scratch_free(dir);
}

static void input_typed_during_an_answer_is_kept(void **state)
{
        char *dir = scratch_new();
        const char *words[] = { "chat", dir, "--listen", "127.0.0.1:0", NULL };
        struct child c;

        (void)state;
        start_on_terminal(&c, words);
        expect(&c, "> ");
        type(&c, "progress\r");
        expect(&c, "opening the toolbox");
        type(&c, "and then this\r\x04");
        expect(&c, "counted 1 word");
        expect(&c, "You said: and then this");
        expect(&c, "Good bye");
        assert_int_equal(finish(&c, NULL), 0);
        buf_release(&c.seen);
        scratch_free(dir);
}

static void ctrl_c_stops_an_answer_and_then_leaves(void **state)
{
        char *dir = scratch_new();
        const char *words[] = { "chat", dir, "--listen", "127.0.0.1:0", NULL };
        struct child c;

        (void)state;
        write_config(dir, "{ \"agents\": { \"d\": { \"type\": \"demo\", \"toolMs\": 60000 } } }");
        start_on_terminal(&c, words);
        expect(&c, "> ");
        type(&c, "progress\r");
        expect(&c, "opening the toolbox");
        type(&c, "\x03");
        expect(&c, "stopped");
        expect(&c, "> ");
        type(&c, "\x03");
        expect(&c, "Good bye");
        assert_int_equal(finish(&c, NULL), 0);
        buf_release(&c.seen);
        scratch_free(dir);
}

static void ctrl_c_twice_leaves_during_an_answer(void **state)
{
        char *dir = scratch_new();
        const char *words[] = { "chat", dir, "--listen", "127.0.0.1:0", NULL };
        struct child c;

        (void)state;
        write_config(dir, "{ \"agents\": { \"d\": { \"type\": \"demo\", \"toolMs\": 60000 } } }");
        start_on_terminal(&c, words);
        expect(&c, "> ");
        type(&c, "progress\r");
        expect(&c, "opening the toolbox");
        type(&c, "\x03");
        expect(&c, "Ctrl-C again to leave");
        type(&c, "\x03"); /* leaves, at the prompt or before it */
        expect(&c, "Good bye");
        assert_int_equal(finish(&c, NULL), 0);
        buf_release(&c.seen);
        scratch_free(dir);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_are_answered_one_by_one_and_in_order),
                cmocka_unit_test(empty_input_is_fine),
                cmocka_unit_test(a_message_without_an_answer_makes_the_exit_code_1),
                cmocka_unit_test(a_wrong_configuration_is_reported_with_exit_code_78),
                cmocka_unit_test(an_answer_survives_the_death_of_the_daemon),
                cmocka_unit_test(a_terminal_gets_a_banner_answers_and_a_clean_end),
                cmocka_unit_test(a_person_goes_on_where_they_left_off),
                cmocka_unit_test(input_typed_during_an_answer_is_kept),
                cmocka_unit_test(ctrl_c_stops_an_answer_and_then_leaves),
                cmocka_unit_test(ctrl_c_twice_leaves_during_an_answer),
        };

        return cmocka_run_group_tests(tests, find_program, forget_program);
}
