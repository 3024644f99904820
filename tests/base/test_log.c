#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"

static struct buf lines;

static void keep(const char *line, void *arg)
{
        (void)arg;
        buf_addstr(&lines, line);
        buf_addch(&lines, '\n');
}

static int divert(void **state)
{
        (void)state;
        buf_init(&lines, 0);
        log_setup(LOG_TEXT, LOG_INFO);
        log_divert(keep, NULL);
        return 0;
}

static int restore(void **state)
{
        (void)state;
        log_divert(NULL, NULL);
        buf_release(&lines);
        return 0;
}

/* The line after its time. */
static const char *after_time(void)
{
        assert_true(lines.len > 25);
        return lines.data + 25;
}

static void a_text_line_has_level_message_and_fields(void **state)
{
        (void)state;
        log_warn("adapter lost", LOG_S("adapter", "tg"), LOG_I("attempt", -3),
                 LOG_S("why", "a b=\"c\"\n"), LOG_S("empty", (const char *)NULL));
        assert_string_equal(
                after_time(),
                "warn  adapter lost adapter=tg attempt=-3 why=\"a b=\\\"c\\\"\\n\" empty=\"\"\n");
}

static void a_json_line_parses(void **state)
{
        json_t *o;

        (void)state;
        log_setup(LOG_JSON, LOG_INFO);
        log_error("no \"luck\"", LOG_S("why", "bad \xff byte\x1b[2J"), LOG_I("n", INT64_MIN));
        o = json_read(lines.data, lines.len, NULL);
        assert_string_equal(json_str(o, "msg", NULL), "no \"luck\"");
        assert_string_equal(json_str(o, "level", NULL), "error");
        assert_string_equal(json_str(o, "why", NULL), "bad \xef\xbf\xbd byte\x1b[2J");
        assert_true(json_int(o, "n", 0) == INT64_MIN);
        json_decref(o);
}

static void foreign_text_cannot_forge_lines_or_move_the_cursor(void **state)
{
        (void)state;
        log_info("message",
                 LOG_S("text", "x\n2030 error gone \x1b[2J \xc2\x9b \xe2\x80\xae \xd8\x9c"));
        assert_ptr_equal(strchr(lines.data, '\n'), lines.data + lines.len - 1);
        assert_null(strchr(lines.data, '\x1b'));
        assert_null(strstr(lines.data, "\xc2\x9b"));
        assert_null(strstr(lines.data, "\xe2\x80\xae"));
        assert_non_null(strstr(lines.data, "\\u202e \\u061c"));
}

static void lower_levels_are_not_logged(void **state)
{
        (void)state;
        log_debug("quiet");
        assert_int_equal(lines.len, 0);
        log_setup(LOG_TEXT, LOG_DEBUG);
        log_debug("loud");
        assert_string_equal(after_time(), "debug loud\n");
}

static void a_hidden_secret_is_starred_in_every_format(void **state)
{
        static const char *const secrets[] = {
                "plain-token-123",     "with \"quotes\" and \\back", "caf\xc3\xa9-s\xc3\xa9same",
                "line\nbreak\tsecret", "bad\xff-byte-secret",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
                const char *s = secrets[i];

                log_hide(s, strlen(s));
                for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
                        buf_clear(&lines);
                        log_setup((enum log_format)format, LOG_INFO);
                        log_info("m", LOG_S("a", s), LOG_S("b", s));
                        assert_null(strstr(lines.data, s));
                        /* nor its last piece, which no escaping changes */
                        assert_null(strstr(lines.data, s + strlen(s) - 4));
                        assert_non_null(strstr(lines.data, "******"));
                }
                log_unhide(s, strlen(s));
        }
}

static void secrets_that_overlap_are_all_hidden(void **state)
{
        char text[] = "abcdefghijkl abcdef defghi";

        (void)state;
        log_hide("abcdef", 6);
        log_hide("defghi", 6);
        log_hide("abcdefghijkl", 12);
        log_redact(text);
        assert_string_equal(text, "************ ****** ******");
        log_unhide("abcdef", 6);
        log_unhide("defghi", 6);
        log_unhide("abcdefghijkl", 12);
}

static void a_secret_hidden_twice_is_shown_after_two_unhides(void **state)
{
        char text[] = "topsecret";

        (void)state;
        log_hide("topsecret", 9);
        log_hide("topsecret", 9);
        log_unhide("topsecret", 9);
        log_redact(text);
        assert_string_equal(text, "*********");
        log_unhide("topsecret", 9);
        log_unhide("topsecret", 9);
        memcpy(text, "topsecret", 9);
        log_redact(text);
        assert_string_equal(text, "topsecret");
}

static void short_words_are_not_hidden(void **state)
{
        char text[] = "the agent";

        (void)state;
        log_hide("the", 3);
        log_redact(text);
        assert_string_equal(text, "the agent");
}

/* ---- the reader of the log ---- */

/* Replaces standard error by a pipe and returns its read end. */
static int take_stderr(int *kept)
{
        int ends[2];

        log_divert(NULL, NULL);
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        *kept = dup(STDERR_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[1]);
        return ends[0];
}

static void give_back_stderr(int from, int kept)
{
        dup2(kept, STDERR_FILENO);
        close(kept);
        close(from);
}

/* Reads everything in the pipe. */
static void read_pipe(int from)
{
        char some[4096];
        ssize_t n;

        buf_clear(&lines);
        fcntl(from, F_SETFL, O_NONBLOCK);
        while ((n = read(from, some, sizeof(some))) > 0)
                buf_add(&lines, some, (size_t)n);
}

static void a_stalled_log_reader_does_not_stop_the_program(void **state)
{
        /* three pages: a pipe has room for five such lines and a part of the sixth */
        char longest[9000];
        int kept, from = take_stderr(&kept);

        (void)state;
        memset(longest, 'x', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        for (int i = 0; i < 100; i++) /* not read */
                log_info("hello", LOG_S("text", longest));
        read_pipe(from);
        log_info("there you are");
        read_pipe(from);
        give_back_stderr(from, kept);
        assert_non_null(strstr(lines.data, "warn  log lines lost: the reader stalled lines="));
        assert_int_equal(lines.data[0], '\n'); /* ends the torn line */
        assert_non_null(strstr(lines.data, "info  there you are\n"));
}

static void no_line_is_lost_while_the_log_is_read(void **state)
{
        int kept, from = take_stderr(&kept), found = 0;

        (void)state;
        for (int i = 0; i < 100; i++)
                log_info("hello", LOG_I("number", i));
        read_pipe(from);
        give_back_stderr(from, kept);
        for (const char *at = lines.data; (at = strstr(at, " hello number=")); at++)
                found++;
        assert_int_equal(found, 100);
        assert_null(strstr(lines.data, "missing"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_text_line_has_level_message_and_fields, divert,
                                                restore),
                cmocka_unit_test_setup_teardown(a_json_line_parses, divert, restore),
                cmocka_unit_test_setup_teardown(foreign_text_cannot_forge_lines_or_move_the_cursor,
                                                divert, restore),
                cmocka_unit_test_setup_teardown(lower_levels_are_not_logged, divert, restore),
                cmocka_unit_test_setup_teardown(a_hidden_secret_is_starred_in_every_format, divert,
                                                restore),
                cmocka_unit_test_setup_teardown(a_stalled_log_reader_does_not_stop_the_program,
                                                divert, restore),
                cmocka_unit_test_setup_teardown(no_line_is_lost_while_the_log_is_read, divert,
                                                restore),
                cmocka_unit_test(secrets_that_overlap_are_all_hidden),
                cmocka_unit_test(a_secret_hidden_twice_is_shown_after_two_unhides),
                cmocka_unit_test(short_words_are_not_hidden),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
