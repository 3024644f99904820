/* Cards on Slack: blocks and an attachment, within each limit of Block Kit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "platform/slack/sl_blocks.h"
#include "platform/slack/sl_card.h"
#include "road/outbox/card.h"

static size_t points(const char *text)
{
        return utf8_length(text, strlen(text), UTF8_CODE_POINTS);
}

/* The arguments of a call; `more` are further members of the payload. */
static json_t *call_of(const struct card *c, const char *more, bool plain)
{
        char *json = card_json(c), *text = mem_printf("{\"card\":%s%s}", json, more);
        json_t *payload = json_read(text, strlen(text), NULL), *args = json_object();
        struct error err = { 0 };
        int rc = plain ? sl_card_add_plain(args, payload, &err) : sl_card_add(args, payload, &err);

        if (rc < 0)
                fail_msg("%s", err.text);
        json_decref(payload);
        free(text);
        free(json);
        return args;
}

static void assert_call(const struct card *c, const char *more, bool plain, const char *wanted)
{
        json_t *args = call_of(c, more, plain);
        char *text = json_text(args);

        assert_string_equal(text, wanted);
        free(text);
        json_decref(args);
}

#define BUTTONS ",\"buttons\":[[{\"text\":\"Stop\",\"data\":\"stop\"}]]"
#define ACTIONS                                                                                  \
        "{\"type\":\"actions\",\"elements\":[{\"type\":\"button\",\"action_id\":\"button:0:0\"," \
        "\"text\":{\"type\":\"plain_text\",\"text\":\"Stop\",\"emoji\":true},\"value\":\"stop\"}]}"
#define SECTION(text)                                                                            \
        "{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\",\"text\":\"" text "\"},\"expand\":" \
        "true}"

static const struct card tool = {
        .title = "Tool *x*",
        .color = 0xffa500,
        .body = "**in** @here <!channel>",
        .fields = { { "Input", "```\nls\n```", false }, { "A", "1", true }, { "B", "2", true } },
        .field_count = 3,
        .footer = "OMP",
        .time_ms = 1700000000000
};

/* clang-format off */
static const char tool_call[] =
        "{\"text\":\"Tool *\u200bx*\",\"blocks\":[" SECTION("*Tool *\u200bx**") "],"
        "\"attachments\":[{\"fallback\":\"Tool *\u200bx*\",\"blocks\":["
        SECTION("*in* @\u200bhere &lt;!channel&gt;") ","
        SECTION("*Input*\\n```\\nls\\n```") ","
        "{\"type\":\"section\",\"fields\":[{\"type\":\"mrkdwn\",\"text\":\"*A*\\n1\"},"
        "{\"type\":\"mrkdwn\",\"text\":\"*B*\\n2\"}]}," ACTIONS ","
        "{\"type\":\"context\",\"elements\":[{\"type\":\"mrkdwn\",\"text\":"
        "\"OMP · <!date^1700000000^{date_short_pretty} {time}|2023-11-14T22:13Z>\"}]}],"
        "\"color\":\"#FFA500\"}]}";
/* clang-format on */

static void a_card_is_blocks_and_an_attachment(void **state)
{
        (void)state;
        assert_call(&tool, BUTTONS, false, tool_call);
}

/* The text may notify; the edge is also there without anything but a title. */
static void the_text_stands_above_the_card(void **state)
{
        (void)state;
        assert_call(&(struct card){ .title = "t", .color = 0xff00 }, ",\"text\":\"<@U1>\"", false,
                    "{\"text\":\"<@U1>\",\"blocks\":[" SECTION(
                            "<@U1>") "],\"attachments\":"
                                     "[{\"fallback\":\"t\",\"blocks\":[" SECTION(
                                             "*t*") "],"
                                                    "\"color\":\"#00FF00\"}]}");
}

static void a_refused_card_is_text_with_its_buttons(void **state)
{
        (void)state;
        assert_call(&(struct card){ .title = "t", .body = "b" }, BUTTONS, true,
                    "{\"text\":\"*t*\\nb\",\"blocks\":[" SECTION(
                            "*t*\\nb") "," ACTIONS "],\"attachments\":[]}");
        assert_call(&(struct card){ .title = "t", .body = "b" }, ",\"text\":\"<@U1>\"", true,
                    "{\"text\":\"<@U1>\\n\\n*t*\\nb\",\"blocks\":[],\"attachments\":[]}");
}

static char *text_of(size_t n)
{
        char *text = mem_alloc(n + 1);

        memset(text, 'a', n);
        text[n] = '\0';
        return text;
}

static void each_limit_of_block_kit_is_kept(void **state)
{
        char *a = text_of(20000);
        struct card card = { .title = a, .body = a, .footer = a, .time_ms = 1700000000000 };
        const json_t *blocks, *block, *field;
        size_t i, k, sections = 0, fields = 0, total = 0;
        json_t *args;

        (void)state;
        for (i = 0; i < CARD_FIELDS_MAX; i++)
                card.fields[i] = (struct card_field){ i < 2 ? a : "n", i < 2 ? a : "v", i > 1 };
        card.field_count = CARD_FIELDS_MAX;
        args = call_of(&card, BUTTONS, false);
        blocks = json_object_get(json_array_get(json_object_get(args, "attachments"), 0), "blocks");
        assert_true(json_array_size(blocks) <= SL_BLOCKS_MAX);
        json_array_foreach(blocks, i, block) {
                const json_t *list = json_object_get(block, "fields");
                const char *text = json_str(json_object_get(block, "text"), "text", "");

                sections += *text != '\0';
                total += points(text);
                assert_true(points(text) <= SL_BLOCKS_TEXT_MAX);
                assert_true(json_array_size(list) <= SL_CARD_FIELDS);
                json_array_foreach(list, k, field) {
                        fields++;
                        total += points(json_str(field, "text", ""));
                        assert_true(points(json_str(field, "text", "")) <= SL_CARD_FIELD);
                }
        }
        assert_int_equal(sections, 3);
        assert_int_equal(fields, CARD_FIELDS_MAX - 2);
        assert_in_range(total, 6000, 12000);
        /* chat.update takes 4000 */
        assert_true(points(json_str(args, "text", "")) <= 4000);
        json_decref(args);
        /* a field beside others as long as may be */
        card = (struct card){ .fields = { { a, a, true } }, .field_count = 1 };
        args = call_of(&card, "", false);
        blocks = json_object_get(json_array_get(json_object_get(args, "attachments"), 0), "blocks");
        field = json_array_get(json_object_get(json_array_get(blocks, 0), "fields"), 0);
        assert_in_range(points(json_str(field, "text", "")), 1900, SL_CARD_FIELD);
        json_decref(args);
        args = call_of(&(struct card){ .title = a, .body = a, .footer = a }, "", true);
        assert_in_range(points(json_str(args, "text", "")), 3000, 4000);
        json_decref(args);
        free(a);
}

static void an_impossible_button_is_refused(void **state)
{
        static const char text[] = "{\"card\":{\"title\":\"t\"},\"buttons\":[[{\"text\":\"x\"}]]}";
        json_t *payload = json_read(text, strlen(text), NULL), *args = json_object();
        struct error err;

        (void)state;
        assert_int_equal(sl_card_add(args, payload, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        json_decref(args);
        json_decref(payload);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_card_is_blocks_and_an_attachment),
                cmocka_unit_test(the_text_stands_above_the_card),
                cmocka_unit_test(a_refused_card_is_text_with_its_buttons),
                cmocka_unit_test(each_limit_of_block_kit_is_kept),
                cmocka_unit_test(an_impossible_button_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
