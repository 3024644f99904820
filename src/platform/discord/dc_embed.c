#include "platform/discord/dc_embed.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/card_text.h"
#include "platform/discord/discord.h"

#define SECOND_DIGITS 19 /* of 2026-11-15T06:19:41 */

static const struct card_limits limits = { .dialect = MARKDOWN_DISCORD,
                                           .unit = UTF8_CODE_POINTS,
                                           .plain_footer = true,
                                           .title = DC_EMBED_TITLE,
                                           .body = DC_EMBED_DESCRIPTION,
                                           .name = DC_EMBED_NAME,
                                           .value = DC_EMBED_VALUE,
                                           .footer = DC_EMBED_FOOTER,
                                           .total = DC_EMBED_TOTAL };

static bool read_card(const json_t *payload, struct card *out)
{
        const json_t *json = json_object_get(payload, "card");

        return json && card_read(json, out, NULL) == 0;
}

json_t *dc_embed_make(const json_t *payload)
{
        json_t *embed, *fields;
        struct card_text t;
        struct card c;
        char time[CLOCK_ISO_SIZE];

        if (!read_card(payload, &c))
                return NULL;
        card_text_init(&t, &c, &limits);
        embed = json_object();
        fields = json_array();
        if (*t.title)
                json_object_set_new(embed, "title", json_string(t.title));
        if (*t.body)
                json_object_set_new(embed, "description", json_string(t.body));
        if (c.color > 0)
                json_object_set_new(embed, "color", json_integer(c.color));
        for (size_t i = 0; i < t.field_count; i++)
                json_array_append_new(fields, json_pack("{s:s, s:s, s:b}", "name", t.fields[i].name,
                                                        "value", t.fields[i].value, "inline",
                                                        t.fields[i].is_inline));
        if (t.field_count > 0)
                json_object_set(embed, "fields", fields);
        if (*t.footer)
                json_object_set_new(embed, "footer", json_pack("{s:s}", "text", t.footer));
        if (c.time_ms > 0)
                json_object_set_new(embed, "timestamp", json_string(clock_iso(c.time_ms, time)));
        json_decref(fields);
        card_text_release(&t);
        return embed;
}

char *dc_embed_text(const json_t *payload)
{
        struct markdown_limits text = discord_platform.text;
        const char *above = json_str(payload, "text", "");
        size_t taken = utf8_length(above, strlen(above), text.unit);
        struct card c;
        char *shown, *whole;

        if (!read_card(payload, &c) || taken + 2 > text.max / 2)
                return mem_strdup(above); /* the text says the most important */
        text.max -= taken + 2;
        shown = card_text_message(&c, &text);
        whole = mem_printf("%s%s%s", above, *above ? "\n\n" : "", shown);
        free(shown);
        return whole;
}

/* ---- comparing ---- */

bool dc_embed_same_text(const char *a, const char *b)
{
        size_t n;

        a += strspn(a, " \t\r\n");
        b += strspn(b, " \t\r\n");
        for (n = strlen(a); n > 0 && strchr(" \t\r\n", a[n - 1]); n--) {
        }
        return strncmp(a, b, n) == 0 && strspn(b + n, " \t\r\n") == strlen(b + n);
}

static bool same_member(const json_t *a, const json_t *b, const char *key)
{
        return dc_embed_same_text(json_str(a, key, ""), json_str(b, key, ""));
}

static bool same_fields(const json_t *a, const json_t *b)
{
        if (json_array_size(a) != json_array_size(b))
                return false;
        for (size_t i = 0; i < json_array_size(a); i++) {
                const json_t *x = json_array_get(a, i), *y = json_array_get(b, i);

                if (!same_member(x, y, "name") || !same_member(x, y, "value"))
                        return false;
        }
        return true;
}

bool dc_embed_same(const json_t *theirs, const json_t *ours)
{
        if (!theirs || !ours)
                return !theirs && !ours;
        return same_member(theirs, ours, "title") && same_member(theirs, ours, "description") &&
               json_int(theirs, "color", 0) == json_int(ours, "color", 0) &&
               same_member(json_object_get(theirs, "footer"), json_object_get(ours, "footer"),
                           "text") &&
               strncmp(json_str(theirs, "timestamp", ""), json_str(ours, "timestamp", ""),
                       SECOND_DIGITS) == 0 &&
               same_fields(json_object_get(theirs, "fields"), json_object_get(ours, "fields"));
}
