/* The command line: flags, help, typing mistakes, exit codes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/scratch.h"
#include "base/mem.h"
#include "cli/command.h"

#define WORDS_MAX 16

static struct daemon_options ran;
static int run_count;

static int fake_run(const struct daemon_options *options)
{
        ran = *options;
        run_count++;
        return CLI_OK;
}

/* ---- running a command line and capturing its output ---- */

struct outcome {
        int code;
        char out[1 << 20], err[8000];
};

static int divert(int fd, FILE *to)
{
        int saved = dup(fd);

        fflush(fd == STDOUT_FILENO ? stdout : stderr);
        dup2(fileno(to), fd);
        return saved;
}

static void restore(int fd, int saved, FILE *from, char *text, size_t size)
{
        size_t n;

        fflush(fd == STDOUT_FILENO ? stdout : stderr);
        dup2(saved, fd);
        close(saved);
        rewind(from);
        n = fread(text, 1, size - 1, from);
        text[n] = '\0';
        fclose(from);
}

/* The words are separated by single spaces. */
static const struct outcome *line(const char *text)
{
        static struct outcome o;
        const struct cli_env env = { .run_daemon = fake_run };
        char *copy = mem_strdup(text), *rest = copy, *word, *argv[WORDS_MAX + 1] = { NULL };
        FILE *out = tmpfile(), *err = tmpfile();
        int argc = 0, saved_out, saved_err;

        while ((word = strsep(&rest, " ")) && argc < WORDS_MAX)
                argv[argc++] = word;
        saved_out = divert(STDOUT_FILENO, out);
        saved_err = divert(STDERR_FILENO, err);
        o.code = cli_main(argc, argv, &env);
        restore(STDOUT_FILENO, saved_out, out, o.out, sizeof(o.out));
        restore(STDERR_FILENO, saved_err, err, o.err, sizeof(o.err));
        free(copy);
        return &o;
}

static void assert_has(const char *text, const char *part)
{
        if (!strstr(text, part))
                fail_msg("'%s' is missing in: %s", part, text);
}

/* ---- tests ---- */

static void every_command_has_help_with_examples(void **state)
{
        (void)state;
        for (const struct cli_command *c = commands; c->name; c++) {
                char *text = mem_printf("dragoman %s --help", c->name);
                const struct outcome *o = line(text);

                assert_int_equal(o->code, CLI_OK);
                assert_has(o->out, c->summary);
                assert_has(o->out, "usage: dragoman ");
                assert_has(o->out, "--json");
                if (strcmp(c->name, "version") != 0)
                        assert_has(o->out, "Examples:\n  dragoman ");
                free(text);
        }
}

static void help_lists_every_command(void **state)
{
        const struct outcome *o = line("dragoman help");

        (void)state;
        assert_int_equal(o->code, CLI_OK);
        for (const struct cli_command *c = commands; c->name; c++)
                assert_has(o->out, c->summary);
}

static void help_as_json_is_the_command_table(void **state)
{
        const struct outcome *o = line("dragoman help --json");
        json_t *all = json_loads(o->out, 0, NULL);
        size_t n = 0;

        (void)state;
        while (commands[n].name)
                n++;
        assert_int_equal(json_array_size(all), n);
        json_decref(all);
}

static void no_command_shows_help_and_is_wrong_usage(void **state)
{
        const struct outcome *o = line("dragoman");

        (void)state;
        assert_int_equal(o->code, CLI_USAGE);
        assert_has(o->out, "usage: dragoman COMMAND");
}

static void usage_mistakes_exit_with_64_and_suggest_a_word(void **state)
{
        static const struct {
                const char *line, *text;
        } rows[] = {
                { "dragoman stauts", "did you mean 'status'?" },
                { "dragoman dead-leters", "did you mean 'dead-letters'?" },
                { "dragoman frobnicate", "unknown command 'frobnicate'" },
                { "dragoman --frobnicate", "unknown flag '--frobnicate'" },
                { "dragoman help stauts", "did you mean 'status'?" },
                { "dragoman status --jsn", "did you mean '--json'?" },
                { "dragoman run --lisen x", "did you mean '--listen'?" },
                { "dragoman run --listen", "--listen needs HOST:PORT" },
                { "dragoman run --listen 127.0.0.1:99999", "no valid port: expected 0 to 65535" },
                { "dragoman run --listen 8420", "is not an address and port" },
                { "dragoman chat --listen 127.0.0.1:65536", "no valid port" },
                { "dragoman run --check=yes", "--check takes no value" },
                { "dragoman run -x", "unknown flag '-x'" },
                { "dragoman run --log-format yaml", "must be text or json" },
                { "dragoman run --log-level loud", "must be debug, info, warn or error" },
                { "dragoman run a b", "unexpected operand 'b'" },
                { "dragoman run --dir a b", "unexpected operand 'b'" },
                { "dragoman run --dir=", "directory is empty" },
                { "dragoman why a b c", "unexpected operand 'c'" },
                { "dragoman send tg/1", "TEXT is missing" },
                { "dragoman send /1 hello", "must be ADAPTER/CHANNEL" },
                { "dragoman send tg/1 hello world", "put the text into quotes" },
                { "dragoman config", "check, schema or doc" },
                { "dragoman config chek", "did you mean 'check'?" },
                { "dragoman dead-letters retry", "ID is missing" },
                { "dragoman dead-letters list --force", "--force belongs to retry" },
                { "dragoman approvals approve", "ID is missing" },
                { "dragoman approvals forget", "RULE is missing" },
                { "dragoman approvals refuse apr-1 --always", "--always belongs to approve" },
                { "dragoman schedule add 30m --to tg/42", "TEXT is missing" },
                { "dragoman schedule add 30m tea", "say where: --to ADAPTER/CHANNEL" },
                { "dragoman schedule add 30m tea --to tg", "must be ADAPTER/CHANNEL" },
                { "dragoman schedule list --name x", "--name belongs to add" },
                { "dragoman cron run", "ID is missing" },
                { "dragoman sessions show", "ID is missing" },
                { "dragoman steer", "ID is missing" },
                { "dragoman steer ses-1", "TEXT is missing" },
                { "dragoman steer ses-1 go left", "put the text into quotes" },
                { "dragoman steer ses-1 --abort now", "an abort has no text" },
                { "dragoman steer ses-1 --abort --follow-up", "exclude each other" },
                { "dragoman approvals --note x", "--note belongs to approve and refuse" },
                { "dragoman keys create", "NAME is missing" },
                { "dragoman keys revoke", "ID is missing" },
                { "dragoman keys list --scope read", "belong to create" },
                { "dragoman events tail --count no", "is not a number" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                const struct outcome *o = line(rows[i].line);

                if (o->code != CLI_USAGE)
                        fail_msg("%s: exit code %d", rows[i].line, o->code);
                assert_has(o->err, rows[i].text);
        }
}

static void run_passes_its_flags_to_the_daemon(void **state)
{
        (void)state;
        run_count = 0;
        line("dragoman run --log-format=json --listen 127.0.0.1:0 --parent-watch --log-level "
             "warn somewhere");
        assert_int_equal(run_count, 1);
        assert_int_equal(ran.log_format, LOG_JSON);
        assert_int_equal(ran.log_level, LOG_WARN);
        assert_true(ran.parent_watch);
}

static void run_uses_data_when_no_directory_is_given(void **state)
{
        (void)state;
        run_count = 0;
        assert_int_equal(line("dragoman run")->code, CLI_OK);
        assert_int_equal(run_count, 1);
        assert_int_equal(ran.log_format, LOG_TEXT);
        assert_string_equal(ran.dir, DEFAULT_DIR);
}

static void a_directory_alone_runs_the_daemon_on_it(void **state)
{
        char *dir = scratch_new(), *text = mem_printf("dragoman %s --json", dir);

        (void)state;
        run_count = 0;
        assert_int_equal(line(text)->code, CLI_OK);
        assert_int_equal(run_count, 1);
        assert_int_equal(ran.log_format, LOG_JSON);
        free(text);
        scratch_free(dir);
}

static void without_a_daemon_the_exit_code_is_69(void **state)
{
        static const char *const lines[] = { "status %s",           "why evt-1 %s",
                                             "send a/b text -C %s", "events tail %s",
                                             "dead-letters %s",     "dead-letters retry dlv-1 %s",
                                             "backup %s",           "keys %s" };
        char *dir = scratch_new();

        (void)state;
        for (size_t i = 0; i < COUNT(lines); i++) {
                char *at = strstr(lines[i], "%s");
                char *text = mem_printf("dragoman %.*s%s", (int)(at - lines[i]), lines[i], dir);
                const struct outcome *o = line(text);

                if (o->code != CLI_NO_DAEMON)
                        fail_msg("%s: exit code %d, %s", text, o->code, o->err);
                assert_has(o->err, "no daemon runs on");
                assert_has(o->err, "dragoman run ");
                free(text);
        }
        scratch_free(dir);
}

static void write_config(const char *dir, const char *text)
{
        scratch_put(dir, "config.json", text);
}

static void a_wrong_configuration_exits_with_78_and_its_line(void **state)
{
        static const char *const lines[] = { "config check", "run --check", "doctor" };
        char *dir = scratch_new();

        (void)state;
        write_config(dir, "{\n  \"htp\": {}\n}\n");
        for (size_t i = 0; i < COUNT(lines); i++) {
                char *text = mem_printf("dragoman %s %s", lines[i], dir);
                const struct outcome *o = line(text);

                assert_int_equal(o->code, CLI_CONFIG);
                assert_has(strcmp(lines[i], "doctor") == 0 ? o->out : o->err, "config.json:2");
                free(text);
        }
        scratch_free(dir);
}

static void checking_what_is_not_there_is_an_error(void **state)
{
        static const struct {
                const char *name, *says;
        } rows[] = { { "nowhere", "No such file or directory" },
                     { "config.json", "is a file; name the directory" },
                     { "empty", "there is no config.json" } };
        static const char *const variables[] = { "ANTHROPIC_API_KEY", "OPENAI_API_KEY",
                                                 "DISCORD_BOT_TOKEN", "SLACK_BOT_TOKEN",
                                                 "TELEGRAM_BOT_TOKEN" };
        char *dir = scratch_new(), *empty = scratch_path(dir, "empty");

        (void)state;
        for (size_t i = 0; i < COUNT(variables); i++)
                unsetenv(variables[i]);
        write_config(dir, "{}");
        assert_int_equal(mkdir(empty, 0700), 0);
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *text = mem_printf("dragoman config check %s/%s", dir, rows[i].name);
                const struct outcome *o = line(text);

                assert_int_equal(o->code, CLI_CONFIG);
                assert_has(o->err, rows[i].says);
                free(text);
        }
        free(empty);
        scratch_free(dir);
}

static void every_mistake_and_warning_is_listed(void **state)
{
        char *dir = scratch_new(), *text = mem_printf("dragoman config check %s", dir),
             *as_json = mem_printf("dragoman config check --json %s", dir);
        const struct outcome *o;
        json_t *json;

        (void)state;
        write_config(dir, "{ \"bus\": 1,\n\"htp\": {},\n\"rules\": [{}, {}] }");
        o = line(text);
        assert_int_equal(o->code, CLI_CONFIG);
        assert_has(o->err, "error: config.json:1: bus: ");
        assert_has(o->err, "error: config.json:2: unknown key 'htp' (did you mean 'http'?)\n");
        assert_has(o->err, "warning: config.json:3: rules[1]: is never reached");
        o = line(as_json);
        assert_int_equal(o->code, CLI_CONFIG);
        json = json_loads(o->out, 0, NULL);
        assert_true(json_is_false(json_object_get(json, "ok")));
        assert_int_equal(json_array_size(json_object_get(json, "mistakes")), 2);
        assert_int_equal(json_array_size(json_object_get(json, "warnings")), 1);
        json_decref(json);
        free(text);
        free(as_json);
        scratch_free(dir);
}

static void a_right_configuration_exits_with_0(void **state)
{
        char *dir = scratch_new(), *text = mem_printf("dragoman config check --json %s", dir);
        const struct outcome *o;
        json_t *json;

        (void)state;
        write_config(dir, "{ // nothing special\n}\n");
        o = line(text);
        assert_int_equal(o->code, CLI_OK);
        json = json_loads(o->out, 0, NULL);
        assert_true(json_is_true(json_object_get(json, "ok")));
        json_decref(json);
        free(text);
        scratch_free(dir);
}

static void the_schema_is_json_and_the_reference_is_not_empty(void **state)
{
        json_t *schema = json_loads(line("dragoman config schema")->out, 0, NULL);

        (void)state;
        assert_non_null(json_object_get(schema, "properties"));
        json_decref(schema);
        assert_has(line("dragoman config doc")->out, "listen");
}

static void the_version_is_shown_in_both_formats(void **state)
{
        (void)state;
        assert_has(line("dragoman version")->out, "dragoman " DRAGOMAN_VERSION);
        assert_has(line("dragoman --version")->out, "dragoman " DRAGOMAN_VERSION);
        assert_has(line("dragoman version --json")->out, "\"version\":\"" DRAGOMAN_VERSION "\"");
}

static void times_may_be_spans_and_mistakes_name_their_flag(void **state)
{
        static const char *const lines[] = {
                "dragoman pause tg/7 --until",
                "dragoman access allow telegram:7 --until",
                "dragoman pairing approve ABCD-2345 --until",
                "dragoman keys create x --expires",
                "dragoman events --since",
        };
        char *dir = scratch_new();

        (void)state;
        for (size_t i = 0; i < COUNT(lines); i++) {
                const char *flag = strstr(lines[i], "--");
                char *text = mem_printf("%s 2h -C %s", lines[i], dir), *expected;
                const struct outcome *o = line(text);

                assert_int_equal(o->code, CLI_NO_DAEMON); /* the span was accepted */
                free(text);
                text = mem_printf("%s tomorrow -C %s", lines[i], dir);
                o = line(text);
                expected = mem_printf("%s: 'tomorrow' is neither", flag);
                assert_has(o->err, expected);
                free(expected);
                free(text);
        }
        assert_has(line("dragoman pause tg/7 --until 2020-01-01T00:00:00Z")->err,
                   "--until: '2020-01-01T00:00:00Z' lies in the past");
        scratch_free(dir);
}

static void ids_that_begin_with_a_dash_are_operands(void **state)
{
        static const char *const operands[][2] = {
                { "why", "-100123:77" },       { "why", "-- -100123:77" },
                { "why", "tg/-100123/77" },    { "access", "check tg -100123" },
                { "send", "tg/-100123 -5" },   { "pause", "tg/-100123" },
                { "access", "allow -100123" },
        };
        char *dir = scratch_new();

        (void)state;
        for (size_t i = 0; i < COUNT(operands); i++) {
                char *text =
                        mem_printf("dragoman %s -C %s %s", operands[i][0], dir, operands[i][1]);

                assert_int_equal(line(text)->code, CLI_NO_DAEMON);
                free(text);
        }
        assert_int_equal(line("dragoman why -x")->code, CLI_USAGE);
        scratch_free(dir);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_command_has_help_with_examples),
                cmocka_unit_test(help_lists_every_command),
                cmocka_unit_test(help_as_json_is_the_command_table),
                cmocka_unit_test(no_command_shows_help_and_is_wrong_usage),
                cmocka_unit_test(usage_mistakes_exit_with_64_and_suggest_a_word),
                cmocka_unit_test(run_passes_its_flags_to_the_daemon),
                cmocka_unit_test(run_uses_data_when_no_directory_is_given),
                cmocka_unit_test(a_directory_alone_runs_the_daemon_on_it),
                cmocka_unit_test(without_a_daemon_the_exit_code_is_69),
                cmocka_unit_test(times_may_be_spans_and_mistakes_name_their_flag),
                cmocka_unit_test(ids_that_begin_with_a_dash_are_operands),
                cmocka_unit_test(a_wrong_configuration_exits_with_78_and_its_line),
                cmocka_unit_test(checking_what_is_not_there_is_an_error),
                cmocka_unit_test(every_mistake_and_warning_is_listed),
                cmocka_unit_test(a_right_configuration_exits_with_0),
                cmocka_unit_test(the_schema_is_json_and_the_reference_is_not_empty),
                cmocka_unit_test(the_version_is_shown_in_both_formats),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
