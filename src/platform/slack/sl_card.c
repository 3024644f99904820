#include "platform/slack/sl_card.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/card_text.h"
#include "platform/slack/sl_blocks.h"
#include "platform/slack/slack.h"

#define MARKUP 300 /* kept free in a block: a name with its markup */

static const struct card_limits limits = { .dialect = MARKDOWN_SLACK,
                                           .unit = UTF8_CODE_POINTS,
                                           .title = MARKUP,
                                           .body = SL_BLOCKS_TEXT_MAX,
                                           .name = MARKDOWN_CUT_MIN,
                                           .value = SL_CARD_FIELD - MARKUP,
                                           .footer = SL_CARD_FIELD - MARKUP,
                                           .total = 12000 };

/* ---- blocks ---- */

static json_t *mrkdwn(const char *text)
{
        return json_pack("{s:s, s:s}", "type", "mrkdwn", "text", text);
}

static void add_section(json_t *blocks, const char *text)
{
        json_array_append_new(blocks, json_pack("{s:s, s:o, s:b}", "type", "section", "text",
                                                mrkdwn(text), "expand", true));
}

static void add_bold(json_t *blocks, const char *text)
{
        char *bold = mem_printf("*%s*", text);

        add_section(blocks, bold);
        free(bold);
}

static char *field_text(const struct card_text *t, size_t i)
{
        return mem_printf("*%s*\n%s", t->fields[i].name, t->fields[i].value);
}

/* Neighbours that may stand side by side share a section. */
static void add_fields(json_t *blocks, const struct card_text *t)
{
        json_t *shared = NULL;

        for (size_t i = 0; i < t->field_count; i++) {
                char *text = field_text(t, i);

                if (!t->fields[i].is_inline) {
                        add_section(blocks, text);
                        shared = NULL;
                } else {
                        if (!shared || json_array_size(shared) == SL_CARD_FIELDS) {
                                shared = json_array();
                                json_array_append_new(blocks,
                                                      json_pack("{s:s, s:o}", "type", "section",
                                                                "fields", shared));
                        }
                        json_array_append_new(shared, mrkdwn(text));
                }
                free(text);
        }
}

/* Slack shows a time in the reader's zone, and the text after the bar where it cannot. */
static void add_footer(json_t *blocks, const struct card_text *t, int64_t time_ms)
{
        char iso[CLOCK_ISO_SIZE], when[100] = "", *text;

        if (time_ms > 0)
                snprintf(when, sizeof(when),
                         "%s<!date^%" PRId64 "^{date_short_pretty} {time}|%.16sZ>",
                         *t->footer ? " · " : "", time_ms / 1000, clock_iso(time_ms, iso));
        if (!*t->footer && !*when)
                return;
        text = mem_printf("%s%s", t->footer, when);
        json_array_append_new(
                blocks, json_pack("{s:s, s:[o]}", "type", "context", "elements", mrkdwn(text)));
        free(text);
}

/* ---- calls ---- */

static bool read_card(const json_t *payload, struct card *out)
{
        return card_read(json_object_get(payload, "card"), out, NULL) == 0;
}

/* The title, for notifications; a card without one says what it can. */
static const char *notification(const struct card_text *t)
{
        return *t->title            ? t->title
               : *t->body           ? t->body
               : t->field_count > 0 ? t->fields[0].value
                                    : "…";
}

int sl_card_add(json_t *args, const json_t *payload, struct error *err)
{
        const json_t *buttons = json_object_get(payload, "buttons");
        const char *above = json_str(payload, "text", "");
        json_t *blocks = json_array(), *inside = json_array(), *attachment;
        struct card_text t;
        struct card c;
        char color[8];
        int rc;

        if (!read_card(payload, &c))
                c = (struct card){ .title = "…" }; /* it was checked when it was stored */
        card_text_init(&t, &c, &limits);
        if (*above)
                sl_blocks_add_text(blocks, above);
        if (*t.body)
                add_section(inside, t.body);
        add_fields(inside, &t);
        rc = sl_blocks_add_buttons(inside, buttons, err);
        add_footer(inside, &t, c.time_ms);
        if (*t.title) /* the coloured edge needs something inside */
                add_bold(json_array_size(inside) > 0 ? blocks : inside, t.title);
        snprintf(color, sizeof(color), "#%06X", (unsigned)c.color & CARD_COLOR_MAX);
        attachment = json_pack("{s:s, s:o}", "fallback", notification(&t), "blocks", inside);
        if (c.color > 0)
                json_object_set_new(attachment, "color", json_string(color));
        json_object_set_new(args, "text", json_string(*above ? above : notification(&t)));
        json_object_set_new(args, "blocks", blocks);
        json_object_set_new(args, "attachments", json_pack("[o]", attachment));
        card_text_release(&t);
        return rc;
}

int sl_card_add_plain(json_t *args, const json_t *payload, struct error *err)
{
        const char *above = json_str(payload, "text", "");
        struct markdown_limits text_limits = slack_platform.text;
        size_t taken = utf8_length(above, strlen(above), text_limits.unit) + 2;
        char *shown, *text;
        json_t *blocks;
        struct card c;
        int rc;

        if (!read_card(payload, &c) || taken > text_limits.max / 2)
                c = (struct card){ .title = "…" }; /* the text says the most important */
        else
                text_limits.max -= taken;
        shown = card_text_message(&c, &text_limits);
        text = mem_printf("%s%s%s", above, *above ? "\n\n" : "", shown);
        rc = sl_blocks_make(text, json_object_get(payload, "buttons"), true, &blocks, err);
        json_object_set_new(args, "text", json_string(text));
        json_object_set_new(args, "blocks", blocks ? blocks : json_array());
        json_object_set_new(args, "attachments", json_array());
        free(shown);
        free(text);
        return rc;
}
