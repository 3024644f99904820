#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "platform/markdown/markdown.h"
#include "platform/slack/sl_blocks.h"

/* The blocks of Markdown as JSON text, yours; NULL: none. */
static char *blocks_of(const char *markdown, const char *buttons, bool plain)
{
        const struct markdown_limits limits = { .dialect = MARKDOWN_SLACK,
                                                .unit = UTF8_CODE_POINTS,
                                                .max = 3500 };
        struct markdown_parts parts;
        struct error err = { 0 };
        json_t *rows = buttons ? json_read(buttons, strlen(buttons), NULL) : NULL, *blocks;
        char *text;

        assert_int_equal(markdown_render(markdown, strlen(markdown), &limits, &parts, &err), 0);
        assert_int_equal(parts.count, 1);
        assert_int_equal(sl_blocks_make(parts.items[0], rows, plain, &blocks, &err), 0);
        markdown_parts_release(&parts);
        json_decref(rows);
        if (!blocks)
                return NULL;
        text = json_text(blocks);
        json_decref(blocks);
        return text;
}

static void assert_blocks(const char *markdown, const char *buttons, const char *expected)
{
        char *blocks = blocks_of(markdown, buttons, false);

        if (expected)
                assert_string_equal(blocks ? blocks : "none", expected);
        else
                assert_null(blocks);
        free(blocks);
}

#define SECTION(t) \
        "{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\",\"text\":\"" t "\"},\"expand\":true}"

static void ordinary_text_needs_no_blocks(void **state)
{
        (void)state;
        assert_blocks("**Hello** `code` and\n\n- a list", NULL, NULL);
        assert_blocks("short code:\n```c\nint x;\n```", NULL, NULL);
}

static void a_table_becomes_a_table(void **state)
{
        static const char expected[] = "[" SECTION(
                "before") ",{\"type\":\"table\",\"rows\":["
                          "[{\"type\":\"raw_text\",\"text\":\"a\"},"
                          "{\"type\":\"raw_text\",\"text\":\"b & c\"}],"
                          "[{\"type\":\"raw_text\",\"text\":\"1\"},"
                          "{\"type\":\"raw_text\",\"text\":\"<2>\"}],"
                          "[{\"type\":\"raw_text\",\"text\":\" \"},"
                          "{\"type\":\"raw_text\",\"text\":\"x\"}]]}," SECTION("after") "]";

        (void)state;
        assert_blocks("before\n\n| a | b & c |\n|---|---:|\n| 1 | <2> |\n| | x |\n\nafter", NULL,
                      expected);
}

/* Slack permits one table in a message; a cell with a bar would shift the others. */
static void tables_that_slack_cannot_show_stay_code(void **state)
{
        char *blocks = blocks_of("| a | b |\n|---|---|\n| 1 | 2 |\n\nand\n\n"
                                 "| c | d |\n|---|---|\n| 3 | 4 |",
                                 NULL, false);
        const char *table;

        (void)state;
        table = strstr(blocks, "\"type\":\"table\"");
        assert_non_null(table);
        assert_null(strstr(table + 1, "\"type\":\"table\""));
        assert_non_null(strstr(blocks, "rich_text_preformatted"));
        assert_non_null(strstr(blocks, "3 | 4"));
        free(blocks);
        assert_blocks("```\na | b\n--+--\n1 | 2 | 3\n```", NULL, NULL);
}

static void long_code_is_a_block_and_unescaped(void **state)
{
        struct buf code;
        char *blocks;

        (void)state;
        buf_init(&code, 0);
        buf_addstr(&code, "see\n\n```c\n");
        for (int i = 0; i < 20; i++)
                buf_addstr(&code, "if (a < b && c > d) x = \"``\";\n");
        buf_addstr(&code, "```\ndone");
        blocks = blocks_of(code.data, NULL, false);
        assert_non_null(strstr(blocks, "{\"type\":\"rich_text\",\"elements\":[{\"type\":"
                                       "\"rich_text_preformatted\",\"elements\":[{\"type\":\"text\""
                                       ",\"text\":\"if (a < b && c > d) x = \\\"``\\\";\\nif"));
        assert_null(strstr(blocks, "&lt;"));
        assert_non_null(strstr(blocks, SECTION("done")));
        free(blocks);
        /* refused by Slack: the text shows it */
        assert_null(blocks_of(code.data, NULL, true));
        buf_release(&code);
}

static void buttons_stand_below_the_text(void **state)
{
        static const char buttons[] = "[[{\"text\":\"Yes\",\"data\":\"say:yes\"},{\"text\":\"See\","
                                      "\"url\":\"https://x.org\"}]]";

        static const char expected[] =
                "[" SECTION("Sure?") ",{\"type\":\"actions\",\"elements\":["
                                     "{\"type\":\"button\",\"action_id\":\"button:0:0\","
                                     "\"text\":{\"type\":\"plain_text\",\"text\":\"Yes\","
                                     "\"emoji\":true},\"value\":\"say:yes\"},"
                                     "{\"type\":\"button\",\"action_id\":\"button:0:1\","
                                     "\"text\":{\"type\":\"plain_text\",\"text\":\"See\","
                                     "\"emoji\":true},\"url\":\"https://x.org\"}]}]";

        (void)state;
        assert_blocks("Sure?", buttons, expected);
}

static void impossible_buttons_are_named(void **state)
{
        static const struct {
                const char *buttons, *why;
        } rows[] = {
                { "[[{\"text\":\"Yes\"}]]",
                  "button 'Yes' needs data of 1 to 2000 characters or a URL of at most 3000" },
                { "[[],[],[],[],[],[],[],[],[],[],[]]",
                  "a message has at most 10 rows of buttons" },
                { "[[{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}]"
                  "]",
                  "a row has at most 25 buttons" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                json_t *buttons = json_read(rows[i].buttons, strlen(rows[i].buttons), NULL), *out;
                struct error err = { 0 };

                assert_int_equal(sl_blocks_make("?", buttons, false, &out, &err), -1);
                assert_null(out);
                assert_string_equal(err.text, rows[i].why);
                json_decref(buttons);
        }
}

/* Sections hold 3000 characters; no cut may form or break <...> and entities. */
static void long_text_is_cut_between_sections(void **state)
{
        static const char *const units[] = { "word ", "&amp;",  "<https://example.org/a|b>",
                                             "x",     "line\n", "ü" };

        (void)state;
        for (size_t u = 0; u < COUNT(units); u++) {
                json_t *buttons = json_pack("[[{s:s, s:s}]]", "text", "Go", "data", "go"), *out;
                struct error err = { 0 };
                size_t sections = 0, seen = 0;
                struct buf text;

                buf_init(&text, 0);
                while (utf8_length(text.data, text.len, UTF8_CODE_POINTS) < 3470)
                        buf_addstr(&text, units[u]);
                assert_int_equal(sl_blocks_make(text.data, buttons, false, &out, &err), 0);
                for (size_t i = 0; i + 1 < json_array_size(out); i++) {
                        const char *part = json_str(json_object_get(json_array_get(out, i), "text"),
                                                    "text", "");
                        size_t n = strlen(part), unit = strcspn(units[u], " \n");

                        assert_true(n > 0);
                        assert_true(utf8_length(part, n, UTF8_CODE_POINTS) <= 3000);
                        assert_memory_equal(part, units[u], unit);
                        assert_memory_equal(part + n - unit, units[u], unit);
                        sections++;
                        seen += n;
                }
                assert_true(sections >= 2);
                assert_true(seen + 2 * sections >= text.len);
                buf_release(&text);
                json_decref(out);
                json_decref(buttons);
        }
}

/* More blocks than Slack takes: the text as it is, and the buttons. */
static void too_many_blocks_become_sections(void **state)
{
        struct buf text;
        json_t *out;
        struct error err = { 0 };

        (void)state;
        buf_init(&text, 0);
        buf_addstr(&text, "```\na | b\n--+--\n1 | 2\n```\n");
        for (int i = 0; i < 60; i++)
                buf_addf(&text, "```\nx%d\n```\ny\n", i);
        assert_int_equal(sl_blocks_make(text.data, NULL, false, &out, &err), 0);
        assert_null(out);
        buf_release(&text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ordinary_text_needs_no_blocks),
                cmocka_unit_test(a_table_becomes_a_table),
                cmocka_unit_test(tables_that_slack_cannot_show_stay_code),
                cmocka_unit_test(long_code_is_a_block_and_unescaped),
                cmocka_unit_test(buttons_stand_below_the_text),
                cmocka_unit_test(impossible_buttons_are_named),
                cmocka_unit_test(long_text_is_cut_between_sections),
                cmocka_unit_test(too_many_blocks_become_sections),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
