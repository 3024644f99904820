/* The head of a Markdown file: a small part of YAML. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/workspace/front_matter.h"
#include "base/buf.h"
#include "base/mem.h"

static void on_pair(void *arg, const char *key, const char *value)
{
        buf_addf(arg, "%s=%s;", key, value);
}

/* "key=value;" for each, or "none", or the error. */
static char *read_head(const char *text)
{
        struct error err;
        struct buf out;
        int rc;

        buf_init(&out, 0);
        rc = front_matter_read(text, strlen(text), on_pair, &out, &err);
        if (rc < 0) {
                buf_clear(&out);
                buf_addstr(&out, err.text);
        }
        if (rc == 0)
                buf_addstr(&out, "none");
        return buf_take(&out);
}

static void check(const char *text, const char *expected)
{
        char *got = read_head(text);

        assert_string_equal(got, expected);
        free(got);
}

static void values_are_read_as_yaml_does(void **state)
{
        static const struct {
                const char *yaml, *expected;
        } rows[] = {
                { "name: report\n", "name=report;" },
                { "name:   report  \n", "name=report;" },
                { "name: report # why\n", "name=report;" },
                { "name: c#\n", "name=c#;" },
                { "name: http://x: y\n", "name=http://x: y;" },
                { "# a comment\n\nname: a\nempty:\nb: c\n", "name=a;empty=;b=c;" },
                { "name: 'it''s'\n", "name=it's;" },
                { "name: '''a'\n", "name='a;" },
                { "name: ''\n", "name=;" },
                { "name: \"a \\\"b\\\" \\u00e9\\n\\x41\\\\\"  # c\n", "name=a \"b\" é\nA\\;" },
                { "name: \"a\n  b\n\n  c\"\nd: e\n", "name=a b\nc;d=e;" },
                { "d: one\n  two\n  three\ne: f\n", "d=one two three;e=f;" },
                { "d: >\n  one\n  two\n\n  three\ne: f\n", "d=one two\nthree;e=f;" },
                { "d: >-\n  one\n    deep\n  two\n", "d=one\n  deep\ntwo;" },
                { "d: |\n  one\n    two\n\n  three\n", "d=one\n  two\n\nthree;" },
                { "d: |2-\n  one\n", "d=one;" },
                { "d: > # folded\n  one\n  two\n", "d=one two;" },
                { "d:\n  one\n  two\n", "d=one two;" },
                { "m:\n  a: b\n  c: d\nn: o\n", "m=;n=o;" },
                { "l:\n  - a\n  - b\nn: o\n", "l=;n=o;" },
                { "l:\n- a\n- b\nn: o\n", "l=;n=o;" },
                { "l: [a, b]\n", "l=[a, b];" },
                { "a: 1\r\nb: 2\r\n", "a=1;b=2;" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *text = mem_printf("---\n%s---\n# Body\nkey: none\n", rows[i].yaml);

                check(text, rows[i].expected);
                free(text);
        }
}

static void a_head_is_between_two_lines(void **state)
{
        (void)state;
        check("# Title\n---\na: b\n---\n", "none");
        check("---\na: b\n", "none");
        check("", "none");
        check("---", "none");
        check("----\na: b\n---\n", "none");
        check("\xef\xbb\xbf---\na: b\n---", "a=b;");
        check("---\r\na: b\r\n---\r\n", "a=b;");
        check("---\n---\n", "");
}

static void mistakes_name_their_line(void **state)
{
        (void)state;
        check("---\na: b\nno colon\n---\n", "line 3: expected \"key: value\"");
        check("---\na: \"b\nc: d\n---\n", "line 2: the quoted text has no end");
        check("---\na: 'b' c\n---\n", "line 2: text after the closing quote");
        check("---\na: \"\\q\"\n---\n",
              "line 2: unknown escape in a quoted text; a backslash is written \\\\");
}

static void foreign_bytes_become_text(void **state)
{
        (void)state;
        check("---\na: \xff\xfe\n---\n", "a=\xef\xbf\xbd\xef\xbf\xbd;");
        check("---\na: \"\\u0000\\ud800\"\n---\n", "a=\xef\xbf\xbd\xef\xbf\xbd;");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(values_are_read_as_yaml_does),
                cmocka_unit_test(a_head_is_between_two_lines),
                cmocka_unit_test(mistakes_name_their_line),
                cmocka_unit_test(foreign_bytes_become_text),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
