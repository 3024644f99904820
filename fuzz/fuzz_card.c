/*
 * Any card, given as JSON or as texts of any bytes, is shown within the limits of each platform,
 * and each of its texts is well formed.
 *
 * The input is JSON, or texts with NUL between: title, body, footer, then names and values. Byte 0
 * (modulo 64) says how often each text is repeated, so that limits are reached.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../tests/lib/markdown_check.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/card_text.h"
#include "platform/discord/dc_embed.h"
#include "platform/slack/sl_blocks.h"
#include "platform/slack/sl_card.h"

#define PIECES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *why, const char *text)
{
        fprintf(stderr, "%s:\n%s\n", why, text);
        abort();
}

/* A text that is shown: well formed and within its limit; the length. */
static size_t check_text(const char *text, enum markdown_dialect dialect, size_t max)
{
        const struct markdown_limits limits = { .dialect = dialect,
                                                .unit = UTF8_CODE_POINTS,
                                                .max = max };
        const char *why;
        struct buf seen;

        buf_init(&seen, 0);
        why = *text ? markdown_check(text, &limits, &seen) : NULL;
        if (why)
                fail(why, text);
        buf_release(&seen);
        return utf8_length(text, strlen(text), UTF8_CODE_POINTS);
}

static void check_embed(const json_t *payload)
{
        json_t *embed = dc_embed_make(payload);
        const json_t *fields = json_object_get(embed, "fields"), *field;
        const char *footer = json_str(json_object_get(embed, "footer"), "text", "");
        size_t i, total = utf8_length(footer, strlen(footer), UTF8_CODE_POINTS);

        if (!embed)
                fail("no embed", "");
        total += check_text(json_str(embed, "title", ""), MARKDOWN_DISCORD, DC_EMBED_TITLE);
        total += check_text(json_str(embed, "description", ""), MARKDOWN_DISCORD,
                            DC_EMBED_DESCRIPTION);
        json_array_foreach(fields, i, field) {
                const char *name = json_str(field, "name", ""),
                           *value = json_str(field, "value", "");

                if (!*name || !*value)
                        fail("an empty field", "");
                total += check_text(name, MARKDOWN_DISCORD, DC_EMBED_NAME);
                total += check_text(value, MARKDOWN_DISCORD, DC_EMBED_VALUE);
        }
        if (i > CARD_FIELDS_MAX || total > DC_EMBED_TOTAL)
                fail("too much in an embed", "");
        json_decref(embed);
}

static void check_slack(const json_t *payload)
{
        json_t *args = json_object();
        const json_t *blocks, *block, *field;
        size_t i, k;

        if (sl_card_add(args, payload, NULL) < 0)
                fail("refused", "");
        blocks = json_object_get(json_array_get(json_object_get(args, "attachments"), 0), "blocks");
        if (json_array_size(blocks) < 1 || json_array_size(blocks) > SL_BLOCKS_MAX)
                fail("number of blocks", "");
        json_array_foreach(blocks, i, block) {
                check_text(json_str(json_object_get(block, "text"), "text", ""), MARKDOWN_SLACK,
                           SL_BLOCKS_TEXT_MAX);
                if (json_array_size(json_object_get(block, "fields")) > SL_CARD_FIELDS)
                        fail("number of fields", "");
                json_array_foreach(json_object_get(block, "fields"), k, field)
                        check_text(json_str(field, "text", ""), MARKDOWN_SLACK, SL_CARD_FIELD);
        }
        json_object_clear(args);
        if (sl_card_add_plain(args, payload, NULL) < 0)
                fail("refused", "");
        json_decref(args);
}

static void check_message(const struct card *c)
{
        static const struct markdown_limits limits[] = {
                { .dialect = MARKDOWN_TELEGRAM_HTML, .unit = UTF8_UTF16, .max = 4096 },
                { .dialect = MARKDOWN_DISCORD, .unit = UTF8_CODE_POINTS, .max = 2000 },
                { .dialect = MARKDOWN_PLAIN, .unit = UTF8_BYTES, .max = 1500 },
        };
        struct buf seen;

        buf_init(&seen, 0);
        for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
                char *text = card_text_message(c, &limits[i]);
                const char *why = *text ? markdown_check(text, &limits[i], &seen) : NULL;

                if (why)
                        fail(why, text);
                free(text);
        }
        buf_release(&seen);
        free(card_text_markdown(c));
}

static void check_json(const char *text)
{
        struct error err;
        struct card c;
        json_t *root, *payload;
        char *json, *again;

        if (card_parse(text, &root, &c, &err) < 0)
                return;
        json = card_json(&c);
        json_decref(root);
        if (card_parse(json, &root, &c, &err) < 0) { /* nothing of it was shown */
                free(json);
                return;
        }
        again = card_json(&c);
        if (strcmp(json, again) != 0)
                fail("another card when it is read again", json);
        payload = json_pack("{s:O}", "card", root);
        check_embed(payload);
        check_slack(payload);
        check_message(&c);
        json_decref(payload);
        json_decref(root);
        free(again);
        free(json);
}

static void check_texts(const char *texts, size_t n, unsigned times)
{
        char *pieces[PIECES] = { 0 }, *json;
        size_t count = 0;
        struct card c;

        for (const char *end = texts + n; texts < end && count < PIECES; count++) {
                size_t length = strnlen(texts, (size_t)(end - texts));
                struct buf piece;

                buf_init(&piece, 0);
                for (unsigned i = 0; i <= times; i++)
                        buf_add(&piece, texts, length);
                pieces[count] = buf_take(&piece);
                texts += length + 1;
        }
        c = (struct card){ .title = pieces[0],
                           .body = pieces[1],
                           .footer = pieces[2],
                           .color = 0xffa500,
                           .time_ms = 1700000000000 };
        for (size_t i = 3; i + 1 < count && c.field_count < CARD_FIELDS_MAX; i += 2)
                c.fields[c.field_count++] =
                        (struct card_field){ pieces[i], pieces[i + 1], i % 4 == 1 };
        json = card_json(&c);
        check_json(json);
        free(json);
        for (size_t i = 0; i < count; i++)
                free(pieces[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text;

        if (size == 0)
                return 0;
        text = mem_strndup((const char *)data, size);
        check_json(text);
        free(text);
        check_texts((const char *)data + 1, size - 1, data[0] % 64);
        return 0;
}
