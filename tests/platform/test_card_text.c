/* What platforms show of a card: each limit is reached, and hostile text stays in its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/card_text.h"
#include "platform/discord/dc_embed.h"

#define Z "\xe2\x80\x8b" /* zero-width space */

static const struct markdown_limits telegram = { .dialect = MARKDOWN_TELEGRAM_HTML,
                                                 .unit = UTF8_UTF16,
                                                 .max = 4096 };

static const struct card tool = { .title = "🛠️ Tool Execution: bash",
                                  .color = 0xffa500,
                                  .body = "Command execution started in /home/dev",
                                  .fields = { { "Input", "```bash\nrm -rf ./*\n```", false },
                                              { "Session", "session-xyz-123", true } },
                                  .field_count = 2,
                                  .footer = "OMP Agent System",
                                  .time_ms = 1700000000000 };

static char *text_of(size_t n, char c)
{
        char *text = mem_alloc(n + 1);

        memset(text, c, n);
        text[n] = '\0';
        return text;
}

static void assert_message(const struct card *c, const struct markdown_limits *limits,
                           const char *wanted)
{
        char *text = card_text_message(c, limits);

        assert_string_equal(text, wanted);
        free(text);
}

static void a_card_is_one_message_of_text(void **state)
{
        const struct markdown_limits discord = { .dialect = MARKDOWN_DISCORD, .max = 2000 },
                                     plain = { .dialect = MARKDOWN_PLAIN, .max = 4000 };

        (void)state;
        assert_message(&tool, &telegram,
                       "<b>🛠️ Tool Execution: bash</b>\n"
                       "Command execution started in /home/dev\n\n"
                       "<b>Input</b>\n"
                       "<pre><code class=\"language-bash\">rm -rf ./*</code></pre>\n"
                       "<b>Session</b>: session-xyz-123\n\n"
                       "<i>OMP Agent System · 2023-11-14 22:13 UTC</i>");
        assert_message(&tool, &discord,
                       "**🛠️ Tool Execution: bash**\n"
                       "Command execution started in /home/dev\n\n"
                       "**Input**\n```bash\nrm -rf ./*\n```\n"
                       "**Session**: session-xyz-123\n\n"
                       "*OMP Agent System · 2023-11-14 22:13 UTC*");
        assert_message(&(struct card){ .title = "Turn *done*", .time_ms = 1700000000000 }, &plain,
                       "Turn *done*\n\n2023-11-14 22:13 UTC");
        assert_message(&(struct card){ .fields = { { "a", "1" } }, .field_count = 1 }, &plain,
                       "a: 1");
}

static void hostile_text_stays_in_its_place(void **state)
{
        const struct card card = { .title = "</b><i>&*x*\n# `y`",
                                   .body = "```\nopen <b>",
                                   .fields = { { "</b> [n](https://x.org)", "> q\n\n```a" },
                                               { "@everyone", "@bob_x, [u](tg://user?id=7) and "
                                                              "a@b.org <@1> `@bob_x`" } },
                                   .field_count = 2,
                                   .footer = "<i>``` @ann" };
        char *markdown = card_text_markdown(&card);

        (void)state;
        assert_message(&card, &telegram,
                       "<b>&lt;/b&gt;&lt;i&gt;&amp;*x* # `y`</b>\n"
                       "<pre>open &lt;b&gt;</pre>\n\n"
                       "<b>&lt;/b&gt; [n](https://x.org)</b>\n"
                       "<blockquote>q</blockquote>\n"
                       "<b>@" Z "everyone</b>: @" Z "bob_x, u and "
                       "<a href=\"mailto:a@b.org\">a@b.org</a> &lt;@" Z "1&gt; "
                       "<code>@bob_x</code>\n\n"
                       "<i>&lt;i&gt;``` @" Z "ann</i>");
        assert_string_equal(markdown,
                            "**\\<\\/b\\>\\<i\\>\\&\\*x\\* \\# \\`y\\`**\n\n"
                            "```\nopen <b>\n```\n\n"
                            "**\\<\\/b\\> \\[n\\]\\(https\\:\\/\\/x\\.org\\)**\n\n"
                            "> q\n\n```a\n```\n\n"
                            "**\\@everyone**: @bob_x, [u](tg://user?id=7) and a@b.org <@1> "
                            "`@bob_x`\n\n"
                            "*\\<i\\>\\`\\`\\` \\@ann*");
        free(markdown);
}

static void a_message_is_cut_to_its_length(void **state)
{
        char *long_text = text_of(20000, 'x'), *code = mem_printf("```\n%s\n```", long_text), *text;
        struct card card = { .title = long_text, .body = code, .footer = long_text };

        (void)state;
        for (size_t i = 0; i < CARD_FIELDS_MAX; i++)
                card.fields[i] = (struct card_field){ "name", code, false };
        for (card.field_count = 0; card.field_count <= CARD_FIELDS_MAX; card.field_count++) {
                text = card_text_message(&card, &telegram);
                assert_in_range(utf8_length(text, strlen(text), UTF8_UTF16), 3000, 4096);
                /* code that is cut is closed */
                assert_non_null(strstr(text, "x</pre>…"));
                assert_string_equal(text + strlen(text) - strlen("…</i>"), "…</i>");
                assert_true((strstr(text, " more") != NULL) == (card.field_count > 2));
                free(text);
        }
        free(code);
        free(long_text);
}

/* ---- Discord ---- */

static json_t *embed(const struct card *c)
{
        char *json = card_json(c);
        json_t *payload = json_pack("{s:o}", "card", json_read(json, strlen(json), NULL)),
               *made = dc_embed_make(payload);

        json_decref(payload);
        free(json);
        return made;
}

static size_t points(const char *text)
{
        return utf8_length(text, strlen(text), UTF8_CODE_POINTS);
}

/* As Discord counts. */
static size_t embed_length(const json_t *e)
{
        const json_t *fields = json_object_get(e, "fields"), *f;
        size_t sum = points(json_str(e, "title", "")) + points(json_str(e, "description", "")) +
                     points(json_str(json_object_get(e, "footer"), "text", "")),
               i;

        json_array_foreach(fields, i, f)
                sum += points(json_str(f, "name", "")) + points(json_str(f, "value", ""));
        return sum;
}

static void a_value_that_is_cut_says_so_in_its_name(void **state)
{
        const struct markdown_limits discord = { .dialect = MARKDOWN_DISCORD, .max = 2000 };
        char *code = text_of(1100, '&'), *value = mem_printf("```\n%s\n```", code), *text;
        struct card card = { .body = "b",
                             .fields = { { "Input", value }, { "n", "v" } },
                             .field_count = 2 };

        (void)state;
        text = card_text_message(&card, &telegram);
        assert_non_null(strstr(text, "<b>Input (only the beginning)</b>\n<pre>&amp;"));
        assert_non_null(strstr(text, "<b>n</b>: v"));
        free(text);
        /* what fits into a field may be too much for the message */
        code[1000] = '\0';
        free(value);
        card.fields[0].value = value = mem_printf("```\n%s\n```", code);
        text = card_text_message(&card, &discord);
        assert_non_null(strstr(text, "**Input**\n"));
        free(text);
        card.body = code;
        text = card_text_message(&card, &discord);
        assert_non_null(strstr(text, "**Input (only the beginning)**\n"));
        assert_true(utf8_length(text, strlen(text), UTF8_CODE_POINTS) <= 2000);
        free(text);
        free(value);
        free(code);
}

static void a_card_is_an_embed(void **state)
{
        json_t *e = embed(&tool);
        char *json = json_text(e);

        (void)state;
        assert_string_equal(json,
                            "{\"title\":\"🛠️ Tool Execution: bash\","
                            "\"description\":\"Command execution started in /home/dev\","
                            "\"color\":16753920,\"fields\":[{\"name\":\"Input\","
                            "\"value\":\"```bash\\nrm -rf ./*\\n```\",\"inline\":false},"
                            "{\"name\":\"Session\",\"value\":\"session-xyz-123\",\"inline\":true}],"
                            "\"footer\":{\"text\":\"OMP Agent System\"},"
                            "\"timestamp\":\"2023-11-14T22:13:20.000Z\"}");
        free(json);
        json_decref(e);
}

static void an_embed_keeps_each_limit_of_discord(void **state)
{
        char *a = text_of(9000, 'a');
        struct card card = { .title = a, .body = a, .footer = a };
        json_t *e = embed(&card);

        (void)state;
        assert_int_equal(points(json_str(e, "title", "")), DC_EMBED_TITLE - 1);
        assert_int_equal(points(json_str(json_object_get(e, "footer"), "text", "")),
                         DC_EMBED_FOOTER - 1);
        /* the rest of 6000 */
        assert_in_range(points(json_str(e, "description", "")), 3600, DC_EMBED_DESCRIPTION);
        assert_in_range(embed_length(e), 5900, DC_EMBED_TOTAL);
        json_decref(e);
        card = (struct card){ .body = a, .fields = { { a, a } }, .field_count = 1 };
        e = embed(&card);
        assert_int_equal(points(json_str(e, "description", "")), DC_EMBED_DESCRIPTION - 1);
        assert_int_equal(
                points(json_str(json_array_get(json_object_get(e, "fields"), 0), "name", "")),
                DC_EMBED_NAME - 1);
        assert_int_equal(
                points(json_str(json_array_get(json_object_get(e, "fields"), 0), "value", "")),
                DC_EMBED_VALUE - 1);
        json_decref(e);
        free(a);
}

static void fields_beyond_the_total_are_counted(void **state)
{
        char *code = text_of(2000, '`');
        struct card card = { .title = "t", .field_count = CARD_FIELDS_MAX };
        const json_t *fields, *last, *cut;
        json_t *e;

        (void)state;
        memcpy(code, "```c\n", 5);
        memset(code + 5, 'x', 1990);
        memcpy(code + 1995, "\n```", 5);
        for (size_t i = 0; i < CARD_FIELDS_MAX; i++)
                card.fields[i] = (struct card_field){ "name", code, false };
        e = embed(&card);
        fields = json_object_get(e, "fields");
        assert_int_equal(json_array_size(fields), 7);
        last = json_array_get(fields, 6);
        cut = json_array_get(fields, 5);
        assert_string_equal(json_str(last, "name", ""), "…");
        assert_string_equal(json_str(last, "value", ""), "19 more");
        assert_memory_equal(json_str(cut, "value", ""), "```c\nxxx", 8);
        assert_non_null(strstr(json_str(cut, "value", ""), "x\n```\n…"));
        assert_in_range(embed_length(e), 5900, DC_EMBED_TOTAL);
        json_decref(e);
        free(code);
}

static void what_shows_nothing_is_not_refused(void **state)
{
        json_t *e = embed(
                &(struct card){ .title = " ", .fields = { { "[]()", "[]()" } }, .field_count = 1 });
        const json_t *field = json_array_get(json_object_get(e, "fields"), 0);

        (void)state;
        assert_null(json_object_get(e, "title"));
        assert_string_equal(json_str(field, "name", ""), "\\[\\]()");
        assert_true(*json_str(field, "value", ""));
        json_decref(e);
}

/* Discord returns it with white space removed, and its own form of the time. */
static void an_embed_is_recognised(void **state)
{
        json_t *ours = embed(&tool), *theirs = json_deep_copy(ours);

        (void)state;
        json_object_set_new(theirs, "type", json_string("rich"));
        json_object_set_new(theirs, "timestamp", json_string("2023-11-14T22:13:20+00:00"));
        json_object_set_new(theirs, "description",
                            json_string("Command execution started in /home/dev\n"));
        assert_true(dc_embed_same(theirs, ours));
        json_object_set_new(theirs, "timestamp", json_string("2023-11-14T22:13:21+00:00"));
        assert_false(dc_embed_same(theirs, ours));
        json_object_set(theirs, "timestamp", json_object_get(ours, "timestamp"));
        json_object_set_new(json_array_get(json_object_get(theirs, "fields"), 0), "value",
                            json_string("ls"));
        assert_false(dc_embed_same(theirs, ours));
        assert_false(dc_embed_same(NULL, ours));
        json_decref(theirs);
        json_decref(ours);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_card_is_one_message_of_text),
                cmocka_unit_test(hostile_text_stays_in_its_place),
                cmocka_unit_test(a_message_is_cut_to_its_length),
                cmocka_unit_test(a_value_that_is_cut_says_so_in_its_name),
                cmocka_unit_test(a_card_is_an_embed),
                cmocka_unit_test(an_embed_keeps_each_limit_of_discord),
                cmocka_unit_test(fields_beyond_the_total_are_counted),
                cmocka_unit_test(what_shows_nothing_is_not_refused),
                cmocka_unit_test(an_embed_is_recognised),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
