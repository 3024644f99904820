/*
 * Markdown in, messages out: rows for each dialect, exact limits, and random documents whose parts
 * are read back as the platform would read them. SEED=n repeats a random run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../lib/markdown_check.h"
#include "base/mem.h"
#include "platform/telegram/tg_update.h"

#define Z "\xe2\x80\x8b" /* zero-width space */

static const char *const dialect_names[] = { "plain", "discord", "slack", "telegram" };

/* Knows two people. */
static bool mention(void *arg, struct slice name, struct buf *out)
{
        static const char *const forms[] = { "%s!", "<@%s>", "<@U%s>",
                                             "<a href=\"tg://user?id=%s\">x</a>" };
        const char *form = forms[*(const enum markdown_dialect *)arg];
        const char *id = slice_is(name, "ann") ? "1" : slice_is(name, "bob_x") ? "2" : NULL;

        for (; id && *form; form++) {
                if (form[0] == '%' && form[1] == 's')
                        buf_addstr(out, (form++, id));
                else
                        buf_addch(out, *form);
        }
        return id != NULL;
}

static struct markdown_parts render(const char *text, size_t n, struct markdown_limits limits)
{
        struct markdown_parts parts;
        struct error err = { 0 };

        if (markdown_render(text, n, &limits, &parts, &err) < 0)
                fail_msg("%s", err.text);
        return parts;
}

/* Rows */

struct row {
        const char *in;
        const char *out[4]; /* plain, discord, slack, telegram; NULL: as the one before */
};

static const struct row rows[] = {
        /* inline */
        { "hello", { "hello" } },
        { "a **b** c", { "a b c", "a **b** c", "a *b* c", "a <b>b</b> c" } },
        { "*i* _j_ ~~s~~",
          { "i j s", "*i* *j* ~~s~~", "_i_ _j_ ~s~", "<i>i</i> <i>j</i> <s>s</s>" } },
        { "**a *b* c**", { "a b c", "**a *b* c**", "*a _b_ c*", "<b>a <i>b</i> c</b>" } },
        { "a**b**c", { "abc", "a**b**c", "a" Z "*b*" Z "c", "a<b>b</b>c" } },
        { "`x < y`", { "x < y", "`x < y`", "`x &lt; y`", "<code>x &lt; y</code>" } },
        { "``a`b``", { "a`b", "``" Z "a`b" Z "``", "a`" Z "b", "<code>a`b</code>" } },
        { "**`x`**", { "x", "**`x`**", "*`x`*", "<code>x</code>" } },
        /* escaping by context */
        { "1 < 2 & 3 > 2",
          { "1 < 2 & 3 > 2", "1 \\< 2 & 3 \\> 2", "1 &lt; 2 &amp; 3 &gt; 2", NULL } },
        { "\\*not bold\\*", { "*not bold*", "\\*not bold\\*", "*" Z "not bold*", "*not bold*" } },
        { "snake_case", { "snake_case", "snake\\_case", "snake_case", NULL } },
        { "<script>alert(1)</script>",
          { "<script>alert(1)</script>", "\\<script\\>alert(1)\\</script\\>",
            "&lt;script&gt;alert(1)&lt;/script&gt;", NULL } },
        { "&copy; &amp; &#x41; &#0; &unknown;",
          { "© & A \xef\xbf\xbd &unknown;", NULL, "© &amp; A \xef\xbf\xbd &amp;unknown;", NULL } },
        { "a\x1b[31m", { "a\xef\xbf\xbd[31m", "a\xef\xbf\xbd\\[31m", "a\xef\xbf\xbd[31m", NULL } },
        { "one<br>two", { "one\ntwo" } },
        /* links */
        { "[t](https://x.y/a_b)",
          { "t (https://x.y/a_b)", "[t](https://x.y/a_b)", "<https://x.y/a_b|t>",
            "<a href=\"https://x.y/a_b\">t</a>" } },
        { "[**t**](https://x.y?a=1&b=\"2\")",
          { "t (https://x.y?a=1&b=\"2\")", "[**t**](https://x.y?a=1&b=%222%22)",
            "<https://x.y?a=1&amp;b=\"2\"|*t*>",
            "<a href=\"https://x.y?a=1&amp;b=&quot;2&quot;\"><b>t</b></a>" } },
        { "see https://x.y/a_b.",
          { "see https://x.y/a_b.", NULL, "see <https://x.y/a_b|https://x.y/a_b>.",
            "see <a href=\"https://x.y/a_b\">https://x.y/a_b</a>." } },
        { "[t](javascript:x)", { "t (javascript:x)" } },
        { "![cat](https://x.y/c.png)",
          { "cat (https://x.y/c.png)", "[cat](https://x.y/c.png)", "<https://x.y/c.png|cat>",
            "<a href=\"https://x.y/c.png\">cat</a>" } },
        /* mentions: real ones ping, @everyone does not */
        { "hi @ann, @bob_x. @nobody a@ann `@ann`",
          { "hi 1!, 2!. @nobody a@ann @ann", "hi <@1>, <@2>. @nobody a@ann `@ann`",
            "hi <@U1>, <@U2>. @nobody a@ann `@ann`",
            "hi <a href=\"tg://user?id=1\">x</a>, <a href=\"tg://user?id=2\">x</a>. @nobody a@ann "
            "<code>@ann</code>" } },
        /* a mark on its last letter does not hide a name */
        { "@here\u073f", { "@here\u073f", "@" Z "here\u073f", "@" Z "here\u073f", "@here\u073f" } },
        { "@everyone @HERE",
          { "@everyone @HERE", "@" Z "everyone @" Z "HERE", "@" Z "everyone @" Z "HERE",
            "@everyone @HERE" } },
        { "# @**every**one",
          { "@everyone", "# @" Z "everyone", "*@" Z "everyone*", "<b>@everyone</b>" } },
        { "<!here> <@&5>",
          { "<!here> <@&5>", "\\<!here\\> \\<@" Z "&5\\>", "&lt;!here&gt; &lt;@&amp;5&gt;",
            "&lt;!here&gt; &lt;@&amp;5&gt;" } },
        /* headings */
        { "# A **b** c\n\ntext",
          { "A b c\n\ntext", "# A b c\n\ntext", "*A b c*\n\ntext", "<b>A b c</b>\n\ntext" } },
        { "#### deep", { "deep", "**deep**", "*deep*", "<b>deep</b>" } },
        /* lists */
        { "- a\n- b", { "- a\n- b", NULL, "• a\n• b", NULL } },
        { "- a\n  - b\n- c", { "- a\n  - b\n- c", NULL, "• a\n  • b\n• c", NULL } },
        { "text\n\n3. a\n4. b", { "text\n\n3. a\n4. b" } },
        { "- [x] a\n- [ ] b", { "- [x] a\n- [ ] b", "- ☑ a\n- ☐ b", "☑ a\n☐ b", NULL } },
        { "- a\n  b", { "- a\n  b", NULL, "• a\n  b", NULL } },
        { "-\n- a", { "-\n- a", NULL, "•\n• a", NULL } },
        /* quotes */
        { "> a\n> b\n\nc", { "> a\n> b\n\nc", NULL, NULL, "<blockquote>a\nb</blockquote>\n\nc" } },
        { "> **a\n> b**",
          { "> a\n> b", "> **a**\n> **b**", "> *a*\n> *b*",
            "<blockquote><b>a\nb</b></blockquote>" } },
        { "> a\n>\n> > b",
          { "> a\n> \n> > b", "> a\n> \n> b", NULL, "<blockquote>a\n\nb</blockquote>" } },
        { "> ```c\n> x;\n> ```",
          { "> x;", "> ```c\n> x;\n> ```", "```\nx;\n```",
            "<blockquote><pre><code class=\"language-c\">x;</code></pre></blockquote>" } },
        { "\\> a", { "> a", "\\> a", Z "&gt; a", "&gt; a" } },
        /* code */
        { "```py\nif a < b:\n    c()\n```",
          { "if a < b:\n    c()", "```py\nif a < b:\n    c()\n```",
            "```\nif a &lt; b:\n    c()\n```",
            "<pre><code class=\"language-py\">if a &lt; b:\n    c()</code></pre>" } },
        { "~~~\na ``` b\n~~~",
          { "a ``` b", "```\na `" Z "`" Z "` b\n```", NULL, "<pre>a ``` b</pre>" } },
        { "```\"><b>\nx\n```", { "x", "```\nx\n```", NULL, "<pre>x</pre>" } },
        /* tables and rules */
        { "|a|n|\n|-|-:|\n|**x**|1|\n|long|22|",
          { "a    |  n\n-----+---\nx    |  1\nlong | 22",
            "```\na    |  n\n-----+---\nx    |  1\nlong | 22\n```", NULL,
            "<pre>a    |  n\n-----+---\nx    |  1\nlong | 22</pre>" } },
        { "a\n\n---\n\nb", { "a\n\n----------\n\nb", "a\n\n──────────\n\nb", NULL, NULL } },
        { "bad \xff\xc0 bytes", { "bad \xef\xbf\xbd\xef\xbf\xbd bytes" } },
};

static void each_construct_is_written_in_each_dialect(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                const char *want = NULL;

                for (enum markdown_dialect d = MARKDOWN_PLAIN; d <= MARKDOWN_TELEGRAM_HTML; d++) {
                        struct markdown_limits limits = { .dialect = d,
                                                          .mention = mention,
                                                          .mention_arg = &d };
                        struct markdown_parts parts =
                                render(rows[i].in, strlen(rows[i].in), limits);

                        want = rows[i].out[d] ? rows[i].out[d] : want;
                        if (parts.count != 1 || strcmp(parts.items[0], want) != 0)
                                fail_msg("%s of\n%s\nis\n%s\nand not\n%s", dialect_names[d],
                                         rows[i].in, parts.count ? parts.items[0] : "(nothing)",
                                         want);
                        markdown_parts_release(&parts);
                }
        }
}

static void invisible_text_has_no_parts(void **state)
{
        static const char *const nothing[] = { "", " \n\n ", "```\n\n```", "[]()", "` `", ">" };

        (void)state;
        for (size_t i = 0; i < COUNT(nothing); i++) {
                struct markdown_limits limits = { .dialect = MARKDOWN_TELEGRAM_HTML };
                struct markdown_parts parts = render(nothing[i], strlen(nothing[i]), limits);

                assert_int_equal(parts.count, 0);
                markdown_parts_release(&parts);
        }
}

static void impossible_limits_are_refused(void **state)
{
        struct markdown_limits limits = { .max = MARKDOWN_PART_MIN - 1 };
        struct markdown_parts parts;
        struct error err = { 0 };

        (void)state;
        assert_int_equal(markdown_render("x", 1, &limits, &parts, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        limits.max = 0;
        assert_int_equal(markdown_render("x", MARKDOWN_INPUT_MAX + 1, &limits, &parts, &err), -1);
        assert_int_equal(err.kind, ERR_LIMIT);
}

/* Limits */

static char *repeated(const char *before, const char *unit, size_t times, const char *after)
{
        struct buf b;

        buf_init(&b, 0);
        buf_addstr(&b, before);
        while (times-- > 0)
                buf_addstr(&b, unit);
        buf_addstr(&b, after);
        return buf_take(&b);
}

static size_t part_count(const char *text, struct markdown_limits limits)
{
        struct markdown_parts parts = render(text, strlen(text), limits);
        struct buf seen;
        size_t count = parts.count;

        buf_init(&seen, 0);
        for (size_t i = 0; i < parts.count; i++)
                assert_null(markdown_check(parts.items[i], &limits, &seen));
        buf_release(&seen);
        markdown_parts_release(&parts);
        return count;
}

static void a_part_may_be_exactly_as_long_as_the_limit(void **state)
{
        static const struct {
                enum markdown_dialect dialect;
                enum utf8_unit unit;
                size_t max;
                const char *before, *unit_text;
                size_t times;
                const char *after;
                size_t parts;
        } cases[] = {
                { MARKDOWN_PLAIN, UTF8_CODE_POINTS, 2000, "", "x", 2000, "", 1 },
                { MARKDOWN_PLAIN, UTF8_CODE_POINTS, 2000, "", "x", 2001, "", 2 },
                { MARKDOWN_DISCORD, UTF8_CODE_POINTS, 2000, "", "😀", 2000, "", 1 },
                { MARKDOWN_DISCORD, UTF8_CODE_POINTS, 2000, "", "😀", 2001, "", 2 },
                { MARKDOWN_DISCORD, UTF8_CODE_POINTS, 2000, "```c\n", "x", 1991, "\n```", 1 },
                { MARKDOWN_DISCORD, UTF8_CODE_POINTS, 2000, "```c\n", "x", 1992, "\n```", 2 },
                { MARKDOWN_DISCORD, UTF8_CODE_POINTS, 2000, "", "\\*", 1000, "", 1 },
                { MARKDOWN_DISCORD, UTF8_CODE_POINTS, 2000, "", "\\*", 1001, "", 2 },
                { MARKDOWN_TELEGRAM_HTML, UTF8_UTF16, 4096, "", "x", 4096, "", 1 },
                { MARKDOWN_TELEGRAM_HTML, UTF8_UTF16, 4096, "", "x", 4097, "", 2 },
                { MARKDOWN_TELEGRAM_HTML, UTF8_UTF16, 4096, "```\n", "x", 4085, "\n```", 1 },
                { MARKDOWN_TELEGRAM_HTML, UTF8_UTF16, 4096, "```\n", "x", 4086, "\n```", 2 },
                { MARKDOWN_TELEGRAM_HTML, UTF8_UTF16, 4096, "", "😀", 2048, "", 1 },
                { MARKDOWN_TELEGRAM_HTML, UTF8_UTF16, 4096, "x", "😀", 2048, "", 2 },
                { MARKDOWN_TELEGRAM_HTML, UTF8_UTF16, 4096, "", "&lt;", 1024, "", 1 },
                { MARKDOWN_TELEGRAM_HTML, UTF8_UTF16, 4096, "x", "&lt;", 1024, "", 2 },
                { MARKDOWN_TELEGRAM_HTML, UTF8_UTF16, 4096, "**", "x", 4089, "**", 1 },
                { MARKDOWN_TELEGRAM_HTML, UTF8_UTF16, 4096, "**", "x", 4090, "**", 2 },
                { MARKDOWN_SLACK, UTF8_BYTES, 3000, "", "ä", 1500, "", 1 },
                { MARKDOWN_SLACK, UTF8_BYTES, 3000, "", "ä", 1501, "", 2 },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(cases); i++) {
                struct markdown_limits limits = { .dialect = cases[i].dialect,
                                                  .unit = cases[i].unit,
                                                  .max = cases[i].max };
                char *text = repeated(cases[i].before, cases[i].unit_text, cases[i].times,
                                      cases[i].after);

                if (part_count(text, limits) != cases[i].parts)
                        fail_msg("case %zu has %zu parts", i, part_count(text, limits));
                free(text);
        }
}

static size_t shown_length(const char *part)
{
        char *plain = tg_text_plain(part);
        size_t n = utf8_length(plain, strlen(plain), UTF8_UTF16);

        free(plain);
        return n;
}

static void a_caption_takes_what_fits_and_the_rest_follows(void **state)
{
        static const struct {
                size_t caption;
                const char *before, *unit_text;
                size_t times;
                const char *after;
                size_t parts, shown; /* of the first part */
        } cases[] = {
                { 1024, "", "x", 1023, "", 1, 1023 },
                { 1024, "", "x", 1024, "", 1, 1024 },
                { 1024, "", "x", 1025, "", 2, 1024 },
                { 1024, "", "😀", 512, "", 1, 1024 },
                { 1024, "x", "😀", 512, "", 2, 1023 },     /* half of a pair would fit */
                { 1024, "**", "x", 1024, "**", 1, 1024 }, /* markup is not counted */
                { 1024, "**", "x", 1025, "**", 2, 1024 },
                { 1024, "", "&lt;", 1024, "", 1, 1024 }, /* nor are escapes */
                { 1024, "", "&lt;", 1025, "", 2, 1024 },
                { 1024, "`", "x", 6000, "`", 3, 1024 },
                { 1024, "", "four ", 300, "", 2, 1024 },   /* blanks are */
                { 1024, "", "seven, ", 300, "", 2, 1021 }, /* between words */
                { 1024, "Look:\n\n", "x", 1020, "", 2,
                  1024 }, /* a caption of five would waste room */
                { 1024, "", "x", 700,
                  "\n"
                  "\n"
                  "and the paragraph that says what follows is not torn apart by the file that "
                  "it happens to stand below, because a caption may as well be a little shorter "
                  "than the longest one that Telegram would have accepted: people read it at one "
                  "glance, and what they read next begins with a sentence, not in the middle of "
                  "one, as it should. That is why the first part ends where the paragraph of "
                  "many x ends.",
                  2, 700 },
                { 1, "", "😀", 1, "", 2, 0 }, /* nothing fits: no caption */
        };

        (void)state;
        for (size_t i = 0; i < COUNT(cases); i++) {
                struct markdown_limits limits = { .dialect = MARKDOWN_TELEGRAM_HTML,
                                                  .unit = UTF8_UTF16,
                                                  .max = 4096,
                                                  .caption = cases[i].caption };
                char *text = repeated(cases[i].before, cases[i].unit_text, cases[i].times,
                                      cases[i].after);
                struct markdown_parts parts = render(text, strlen(text), limits);

                if (parts.count != cases[i].parts || shown_length(parts.items[0]) != cases[i].shown)
                        fail_msg("case %zu has %zu parts, the first shows %zu", i, parts.count,
                                 shown_length(parts.items[0]));
                markdown_parts_release(&parts);
                free(text);
        }
}

static void markup_cut_by_a_caption_is_reopened(void **state)
{
        struct markdown_limits limits = {
                .dialect = MARKDOWN_TELEGRAM_HTML, .unit = UTF8_UTF16, .max = 4096, .caption = 20
        };
        const char *text = "plain *and some slanted words* here";
        struct markdown_parts parts = render(text, strlen(text), limits);

        (void)state;
        assert_int_equal(parts.count, 2);
        assert_string_equal(parts.items[0], "plain <i>and some</i>");
        assert_string_equal(parts.items[1], "<i>slanted words</i> here");
        markdown_parts_release(&parts);
}

static void an_emoji_of_several_code_points_is_not_cut(void **state)
{
        static const char family[] = "👨‍👩‍👧‍👦";
        struct markdown_limits limits = { .dialect = MARKDOWN_DISCORD,
                                          .unit = UTF8_CODE_POINTS,
                                          .max = 256 };
        char *text = repeated("x", family, 100, "");
        struct markdown_parts parts = render(text, strlen(text), limits);

        (void)state;
        assert_int_equal(parts.count, 3);
        for (size_t i = 0; i < parts.count; i++)
                assert_int_equal((strlen(parts.items[i]) - (i == 0)) % strlen(family), 0);
        markdown_parts_release(&parts);
        free(text);
}

static void a_cut_code_block_is_closed_and_reopened_with_its_language(void **state)
{
        struct markdown_limits limits = { .dialect = MARKDOWN_DISCORD,
                                          .unit = UTF8_CODE_POINTS,
                                          .max = 256 };
        char *text = repeated("```py\n", "    print(1)\n", 30, "```");
        struct markdown_parts parts = render(text, strlen(text), limits);

        (void)state;
        assert_int_equal(parts.count, 2);
        for (size_t i = 0; i < parts.count; i++) {
                const char *part = parts.items[i];

                assert_true(strncmp(part, "```py\n    print(1)\n", 19) == 0);
                assert_string_equal(part + strlen(part) - 4, "\n```");
        }
        markdown_parts_release(&parts);
        free(text);
}

static void cuts_prefer_blocks_then_lines_sentences_words(void **state)
{
        static const struct {
                const char *glue;
                const char *first_end; /* how the first part ends */
        } cases[] = {
                { "\n\n", "block" },
                { "\n", "line" },
                { " Stop! ", "Stop!" },
                { " ", "w" },
        };
        struct markdown_limits limits = { .dialect = MARKDOWN_PLAIN,
                                          .unit = UTF8_CODE_POINTS,
                                          .max = 256 };

        (void)state;
        for (size_t i = 0; i < COUNT(cases); i++) {
                char *head = repeated("", "w ", 80, i < 2 ? cases[i].first_end : "w");
                char *tail = repeated("", "v ", 100, "");
                char *text = mem_printf("%s%s%s", head, cases[i].glue, tail);
                struct markdown_parts parts = render(text, strlen(text), limits);
                const char *end =
                        parts.items[0] + strlen(parts.items[0]) - strlen(cases[i].first_end);

                assert_int_equal(parts.count, 2);
                if (i < 3)
                        assert_string_equal(end, cases[i].first_end);
                else
                        assert_int_equal(strlen(parts.items[0]), 255);
                markdown_parts_release(&parts);
                free(head);
                free(tail);
                free(text);
        }
}

static void links_are_not_cut_and_huge_addresses_are_kept(void **state)
{
        struct markdown_limits limits = { .dialect = MARKDOWN_TELEGRAM_HTML,
                                          .unit = UTF8_UTF16,
                                          .max = 256 };
        char *text = repeated("", "x", 200, " [a link with many words in it](https://x.y/z) end");
        struct markdown_parts parts = render(text, strlen(text), limits);
        char *url;

        (void)state;
        assert_int_equal(parts.count, 2);
        assert_non_null(strstr(parts.items[1],
                               "<a href=\"https://x.y/z\">a link with many words in it</a> end"));
        markdown_parts_release(&parts);
        free(text);

        text = repeated("[t](https://x.y/", "z", 1000, ")");
        url = repeated("t(https://x.y/", "z", 1000, ")");
        parts = render(text, strlen(text), limits);
        struct buf seen;
        buf_init(&seen, 0);
        for (size_t i = 0; i < parts.count; i++)
                assert_null(markdown_check(parts.items[i], &limits, &seen));
        assert_string_equal(seen.data, url);
        buf_release(&seen);
        markdown_parts_release(&parts);
        free(text);
        free(url);
}

/* Hostile and long input */

static void check_all_dialects(const char *text, size_t n, size_t max)
{
        for (enum markdown_dialect d = MARKDOWN_PLAIN; d <= MARKDOWN_TELEGRAM_HTML; d++) {
                struct markdown_limits limits = { .dialect = d, .unit = UTF8_UTF16, .max = max };
                struct markdown_parts parts = render(text, n, limits);
                struct buf seen;

                buf_init(&seen, 0);
                for (size_t i = 0; i < parts.count; i++) {
                        const char *why = markdown_check(parts.items[i], &limits, &seen);

                        if (why)
                                fail_msg("%s: %s in\n%s", dialect_names[d], why, parts.items[i]);
                }
                buf_release(&seen);
                markdown_parts_release(&parts);
        }
}

static void hostile_input_is_rendered_safely(void **state)
{
        static const struct {
                const char *before, *unit;
                size_t times;
                const char *after;
        } cases[] = {
                { "", "![[]()", 20000, "" },
                { "", "![[]()", 10000, "" },
                { "", ">", 60000, "x" },
                { "", "- ", 30000, "x" },
                { "", "*a **b ", 9000, "" },
                { "", "**a ", 15000, "" },
                { "", "[", 60000, "" },
                { "", "`", 60000, "" },
                { "", "\xcc\x81", 30000, "" },
                { "x", "\xe2\x80\x8d", 20000, "" },
                { "", "<br>", 15000, "x" },
                { "[a]: http://x.y/zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\n"
                  "\n",
                  "[a] ", 15000, "" },
                { "|a|\n|-|\n", "|x\n", 20000, "" },
                { "```", "a", 5000, "\nx\n```" },
                { "```\n", " ", 5000, "x\n```" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(cases); i++) {
                char *text =
                        repeated(cases[i].before, cases[i].unit, cases[i].times, cases[i].after);

                check_all_dialects(text, strlen(text), 4096);
                free(text);
        }
}

static void a_sparse_table_does_not_explode(void **state)
{
        char *head = repeated("|", "x|", 5000, "\n");
        char *rule = repeated("|", "-|", 5000, "\n");
        char *body = repeated("", "|\n", 5000, "");
        char *text = mem_printf("%s%s%s", head, rule, body);

        (void)state;
        check_all_dialects(text, strlen(text), 4096);
        free(head);
        free(rule);
        free(body);
        free(text);
}

static void text_too_long_to_parse_is_split_as_plain_text(void **state)
{
        char *text = repeated("**first**\r\n\r\n", "word, ", 20000, "last");
        struct markdown_limits limits = { .dialect = MARKDOWN_TELEGRAM_HTML,
                                          .unit = UTF8_UTF16,
                                          .max = 4096 };
        struct markdown_parts parts = render(text, strlen(text), limits);
        struct buf seen;

        (void)state;
        buf_init(&seen, 0);
        for (size_t i = 0; i < parts.count; i++)
                assert_null(markdown_check(parts.items[i], &limits, &seen));
        assert_true(strncmp(parts.items[0], "**first**\n\nword, word", 21) == 0);
        assert_int_equal(seen.len, strlen("**first**") + 20000 * strlen("word,") + strlen("last"));
        buf_release(&seen);
        markdown_parts_release(&parts);
        free(text);
}

/* Random documents */

struct random {
        uint64_t state;
        struct buf out;
};

static unsigned pick(struct random *r, unsigned n)
{
        r->state ^= r->state << 13;
        r->state ^= r->state >> 7;
        r->state ^= r->state << 17;
        return (unsigned)(r->state % n);
}

static void random_inline(struct random *r, unsigned depth)
{
        static const char *const words[] = {
                "word",      "a",
                "Stop.",     "snake_case",
                "😀",         "👩🏽‍🚀",
                "e\xcc\x81", "漢字。仮名",
                "&lt;",      "&amp;",
                "\\*",       "<b>",
                "1 < 2",     "@everyone",
                "@ann",      "https://x.y/a_b",
                "a@b.org",   "`code`",
                "``x`y``",   "**",
                "*",         "_",
                "~~",        "[",
                "](",        "|",
                "\\`\\`\\`", ">",
                "#",         "-",
                "\xf0\x9f",  "averyveryverylongword",
        };
        static const char *const wraps[][2] = {
                { "**", "**" },   { "*", "*" }, { "~~", "~~" }, { "[", "](https://x.y/?q=1&r=2)" },
                { "***", "***" },
        };
        unsigned n = 1 + pick(r, 12);

        for (unsigned i = 0; i < n; i++) {
                if (depth < 4 && pick(r, 5) == 0) {
                        const char *const *wrap = wraps[pick(r, COUNT(wraps))];

                        buf_addstr(&r->out, wrap[0]);
                        random_inline(r, depth + 1);
                        buf_addstr(&r->out, wrap[1]);
                } else {
                        buf_addstr(&r->out, words[pick(r, COUNT(words))]);
                }
                if (pick(r, 6) > 0)
                        buf_addch(&r->out, ' ');
        }
}

static void random_code(struct random *r, const char *indent)
{
        unsigned n = pick(r, 12);

        buf_addf(&r->out, "%s```%s\n", indent, pick(r, 2) ? "py" : "");
        for (unsigned i = 0; i < n; i++)
                buf_addf(&r->out, "%s%*sif x < `y` & *z*: \"%u\"\n", indent, (int)pick(r, 9), "",
                         pick(r, 1000));
        buf_addf(&r->out, "%s```\n", indent);
}

static void random_block(struct random *r)
{
        static const char *const prefixes[] = { "",       "",       "",     "# ",   "#### ",
                                                "> ",     "> > ",   "- ",   "  - ", "1. ",
                                                "- [x] ", "- [ ] ", "> - ", "- > " };

        switch (pick(r, 8)) {
        case 0:
                random_code(r, pick(r, 2) ? "" : pick(r, 2) ? "> " : "  ");
                break;
        case 1:
                buf_addstr(&r->out, "|a|b|\n|-|-:|\n");
                for (unsigned i = pick(r, 6); i > 0; i--)
                        buf_addf(&r->out, "|%u `x`|**y** <%u|\n", pick(r, 100000), i);
                break;
        case 2:
                buf_addstr(&r->out, "---\n");
                break;
        default:
                for (unsigned i = pick(r, 5) + 1; i > 0; i--) {
                        buf_addstr(&r->out, prefixes[pick(r, COUNT(prefixes))]);
                        random_inline(r, 0);
                        buf_addch(&r->out, '\n');
                }
        }
        if (pick(r, 4) > 0)
                buf_addch(&r->out, '\n');
}

static void see_document(const struct random *r, uint64_t seed, struct markdown_limits limits,
                         struct buf *seen)
{
        struct markdown_parts parts = render(r->out.data, r->out.len, limits);

        for (size_t i = 0; i < parts.count; i++) {
                bool below = i == 0 && limits.caption > 0;
                const char *why = below && !*parts.items[0]
                                          ? NULL
                                          : markdown_check(parts.items[i], &limits, seen);

                if (below && !why && limits.dialect == MARKDOWN_TELEGRAM_HTML &&
                    limits.unit == UTF8_UTF16 && shown_length(parts.items[0]) > limits.caption)
                        why = "too long a caption";
                if (why)
                        fail_msg("SEED=%llu, %s, max %zu: %s in\n%s", (unsigned long long)seed,
                                 dialect_names[limits.dialect], limits.max, why, parts.items[i]);
        }
        markdown_parts_release(&parts);
        drop_zero_width(seen);
}

static void check_document(const struct random *r, uint64_t seed, struct markdown_limits limits)
{
        struct buf split, whole;

        buf_init(&split, 0);
        buf_init(&whole, 0);
        see_document(r, seed, limits, &split);
        limits.max = limits.caption = 0;
        see_document(r, seed, limits, &whole);
        if (strcmp(split.data, whole.data) != 0)
                fail_msg("SEED=%llu, %s: the parts show\n%s\nand the whole\n%s",
                         (unsigned long long)seed, dialect_names[limits.dialect], split.data,
                         whole.data);
        buf_release(&split);
        buf_release(&whole);
}

static void random_documents_are_split_without_losing_anything(void **state)
{
        const char *given = getenv("SEED");
        uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 1000;
        unsigned runs = given ? 1 : 60;

        (void)state;
        printf("SEED=%llu\n", (unsigned long long)seed);
        for (unsigned run = 0; run < runs; run++, seed++) {
                struct random r = { .state = seed * 0x9e3779b97f4a7c15u + 1 };

                buf_init(&r.out, 0);
                for (unsigned i = pick(&r, 30) + 1; i > 0; i--)
                        random_block(&r);
                for (enum markdown_dialect d = MARKDOWN_PLAIN; d <= MARKDOWN_TELEGRAM_HTML; d++)
                        check_document(&r, seed,
                                       (struct markdown_limits){
                                               .dialect = d,
                                               .unit = (enum utf8_unit)pick(&r, 3),
                                               .max = MARKDOWN_PART_MIN + pick(&r, 500),
                                               .caption = pick(&r, 2) ? pick(&r, 300) : 0,
                                               .mention = mention,
                                               .mention_arg = &d });
                buf_release(&r.out);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_construct_is_written_in_each_dialect),
                cmocka_unit_test(invisible_text_has_no_parts),
                cmocka_unit_test(impossible_limits_are_refused),
                cmocka_unit_test(a_part_may_be_exactly_as_long_as_the_limit),
                cmocka_unit_test(a_caption_takes_what_fits_and_the_rest_follows),
                cmocka_unit_test(markup_cut_by_a_caption_is_reopened),
                cmocka_unit_test(an_emoji_of_several_code_points_is_not_cut),
                cmocka_unit_test(a_cut_code_block_is_closed_and_reopened_with_its_language),
                cmocka_unit_test(cuts_prefer_blocks_then_lines_sentences_words),
                cmocka_unit_test(links_are_not_cut_and_huge_addresses_are_kept),
                cmocka_unit_test(hostile_input_is_rendered_safely),
                cmocka_unit_test(a_sparse_table_does_not_explode),
                cmocka_unit_test(text_too_long_to_parse_is_split_as_plain_text),
                cmocka_unit_test(random_documents_are_split_without_losing_anything),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
