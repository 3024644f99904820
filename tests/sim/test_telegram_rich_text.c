#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sim/telegram/tg_rich_text.h"

typedef int parse_fn(struct rich_text *r, const char *text, char *problem);

struct row {
        const char *in, *text;
        const char *entities; /* or the problem, if text is NULL */
};

static void check(parse_fn *parse, const struct row *row)
{
        char problem[TG_RICH_TEXT_PROBLEM_SIZE] = "", *entities;
        struct rich_text r;
        int rc;

        tg_rich_text_init(&r);
        rc = parse(&r, row->in, problem);
        if (row->text) {
                assert_string_equal(problem, "");
                assert_int_equal(rc, 0);
                tg_rich_text_trim(&r);
                assert_string_equal(r.text.data, row->text);
                entities = tg_rich_text_entities(&r);
                assert_string_equal(entities ? entities : "", row->entities);
                free(entities);
        } else {
                assert_int_equal(rc, -1);
                assert_string_equal(problem, row->entities);
        }
        tg_rich_text_release(&r);
}

static void html_is_parsed_like_telegram(void **state)
{
        static const struct row rows[] = {
                { "a<b>b</b>", "ab", "[{\"offset\":1,\"length\":1,\"type\":\"bold\"}]" },
                { "<B>b</b>", "b", "[{\"offset\":0,\"length\":1,\"type\":\"bold\"}]" },
                { "👋 <i>x</i>", "👋 x", "[{\"offset\":3,\"length\":1,\"type\":\"italic\"}]" },
                { "&lt;&amp;&#65;&nbsp;", "<&A&nbsp;", "" },
                { "<a href=\"http://a.b/?x=1&amp;y\">l</a>", "l",
                  "[{\"offset\":0,\"length\":1,\"type\":\"text_link\","
                  "\"url\":\"http://a.b/?x=1&y\"}]" },
                { "<pre><code class=\"language-c\">x</code></pre>", "x",
                  "[{\"offset\":0,\"length\":1,\"type\":\"pre\",\"language\":\"c\"}]" },
                { "<blockquote expandable>q</blockquote>", "q",
                  "[{\"offset\":0,\"length\":1,\"type\":\"expandable_blockquote\"}]" },
                { "<span class=\"tg-spoiler\">s</span>", "s",
                  "[{\"offset\":0,\"length\":1,\"type\":\"spoiler\"}]" },
                { " \n<b> x </b> ", "x", "[{\"offset\":0,\"length\":1,\"type\":\"bold\"}]" },
                { "<b></b>x", "x", "" },
                { "<b>", NULL, "Can't find end tag corresponding to start tag \"b\"" },
                { "</b>", NULL, "Unexpected end tag at byte offset 0" },
                { "<b>x</i>", NULL,
                  "Unmatched end tag at byte offset 4, expected \"</b>\", found \"</i>\"" },
                { "x <y>", NULL, "Unsupported start tag \"y\" at byte offset 2" },
                { "1 < 2", NULL, "Unsupported start tag \"\" at byte offset 2" },
                { "<span>x</span>", NULL,
                  "Tag \"span\" must have class \"tg-spoiler\" at byte offset 0" },
                { "<a href>x</a>", NULL,
                  "Expected equal sign in declaration of an attribute of the tag \"a\" at byte "
                  "offset 0" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++)
                check(tg_rich_text_html, &rows[i]);
}

static void markdown_v2_is_parsed_like_telegram(void **state)
{
        static const struct row rows[] = {
                { "*b* _i_ __u__ ~s~", "b i u s",
                  "[{\"offset\":0,\"length\":1,\"type\":\"bold\"},{\"offset\":2,\"length\":1,"
                  "\"type\":\"italic\"},{\"offset\":4,\"length\":1,\"type\":\"underline\"},"
                  "{\"offset\":6,\"length\":1,\"type\":\"strikethrough\"}]" },
                { "a\\.b", "a.b", "" },
                { "`a*b`", "a*b", "[{\"offset\":0,\"length\":3,\"type\":\"code\"}]" },
                { "```c\nx```", "x",
                  "[{\"offset\":0,\"length\":1,\"type\":\"pre\",\"language\":\"c\"}]" },
                { "[l](http://a.b)", "l",
                  "[{\"offset\":0,\"length\":1,\"type\":\"text_link\",\"url\":\"http://a.b\"}]" },
                { "||s||", "s", "[{\"offset\":0,\"length\":1,\"type\":\"spoiler\"}]" },
                { ">q\n>r\nx", "q\nr\nx", "[{\"offset\":0,\"length\":4,\"type\":\"blockquote\"}]" },
                { "a.b", NULL,
                  "Character '.' is reserved and must be escaped with the preceding '\\'" },
                { "*b", NULL, "Can't find end of Bold entity at byte offset 0" },
                { "x `y", NULL, "Can't find end of Code entity at byte offset 2" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++)
                check(tg_rich_text_markdown_v2, &rows[i]);
}

static void old_markdown_is_parsed_like_telegram(void **state)
{
        static const struct row rows[] = {
                { "*b* a.b \\_", "b a.b _", "[{\"offset\":0,\"length\":1,\"type\":\"bold\"}]" },
                { "snake_case", NULL, "Can't find end of the entity starting at byte offset 5" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++)
                check(tg_rich_text_markdown, &rows[i]);
}

static int plain(struct rich_text *r, const char *text, char *problem)
{
        int rc = tg_rich_text_from_entities(r, text, NULL, problem);

        tg_rich_text_detect(r);
        return rc;
}

static void mentions_commands_hashtags_urls_are_found(void **state)
{
        static const struct row rows[] = {
                { "/go@my_bot now", "/go@my_bot now",
                  "[{\"offset\":0,\"length\":10,\"type\":\"bot_command\"}]" },
                { "👋 @ada!", "👋 @ada!", "[{\"offset\":3,\"length\":4,\"type\":\"mention\"}]" },
                { "a@example.org", "a@example.org", "" },
                { "see http://a.b.", "see http://a.b.",
                  "[{\"offset\":4,\"length\":10,\"type\":\"url\"}]" },
                { "#été #1", "#été #1", "[{\"offset\":0,\"length\":4,\"type\":\"hashtag\"}]" },
                { "1/2 and a/b", "1/2 and a/b", "" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++)
                check(plain, &rows[i]);
}

static void nothing_is_detected_inside_code(void **state)
{
        char problem[TG_RICH_TEXT_PROBLEM_SIZE], *entities;
        struct rich_text r;

        (void)state;
        tg_rich_text_init(&r);
        assert_int_equal(tg_rich_text_html(&r, "<code>@ada</code> @bob", problem), 0);
        tg_rich_text_detect(&r);
        entities = tg_rich_text_entities(&r);
        assert_string_equal(
                entities,
                "[{\"offset\":0,\"length\":4,\"type\":\"code\"},{\"offset\":5,\"length\":4,"
                "\"type\":\"mention\"}]");
        free(entities);
        tg_rich_text_release(&r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(html_is_parsed_like_telegram),
                cmocka_unit_test(markdown_v2_is_parsed_like_telegram),
                cmocka_unit_test(old_markdown_is_parsed_like_telegram),
                cmocka_unit_test(mentions_commands_hashtags_urls_are_found),
                cmocka_unit_test(nothing_is_detected_inside_code),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
