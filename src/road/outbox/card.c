#include "road/outbox/card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/utf8.h"

/* Bytes of what card_json writes: more than any platform shows, which cuts them with "…". */
#define TITLE_MAX  1100
#define BODY_MAX   16500
#define NAME_MAX   1100
#define VALUE_MAX  8300
#define FOOTER_MAX 8300

/* ---- writing ---- */

/* Adds text without control characters; NUL-terminated, valid UTF-8. */
static void add_clean(struct buf *out, const char *text, size_t n, bool one_line)
{
        for (size_t i = 0; i < n;) {
                uint32_t cp;
                size_t len = utf8_decode(text + i, n - i, &cp);

                if (cp == '\n' || cp == '\t')
                        buf_addch(out, one_line ? ' ' : (char)cp);
                else if (!utf8_is_control(cp))
                        buf_add(out, text + i, len);
                i += len;
        }
}

/* NULL: it shows nothing. Yours to free. */
static char *clean(const char *text, size_t max, bool one_line)
{
        struct buf out;
        char *valid;

        if (!text)
                return NULL;
        valid = utf8_clean(text, strnlen(text, max + 1));
        buf_init(&out, 0);
        add_clean(&out, valid, utf8_prefix(valid, strlen(valid), UTF8_BYTES, max), one_line);
        free(valid);
        if (out.data[strspn(out.data, " \t\n")])
                return buf_take(&out);
        buf_release(&out);
        return NULL;
}

static void write_text(struct buf *json, const char *key, const char *text, size_t max,
                       bool one_line)
{
        char *shown = clean(text, max, one_line);

        jsonw_opt(json, key, shown);
        free(shown);
}

static void write_fields(struct buf *json, const struct card *c)
{
        size_t count = c->field_count < CARD_FIELDS_MAX ? c->field_count : CARD_FIELDS_MAX;

        jsonw_open_member(json, "fields", '[');
        for (size_t i = 0; i < count; i++) {
                const struct card_field *f = &c->fields[i];
                char *name = clean(f->name, NAME_MAX, true),
                     *value = clean(f->value, VALUE_MAX, false);

                if (name && value) {
                        jsonw_open(json, '{');
                        jsonw_str(json, "name", name);
                        jsonw_str(json, "value", value);
                        if (f->is_inline)
                                jsonw_bool(json, "inline", true);
                        jsonw_close(json, '}');
                }
                free(name);
                free(value);
        }
        jsonw_close(json, ']');
}

char *card_json(const struct card *c)
{
        char color[8];
        struct buf json;

        buf_init(&json, 0);
        jsonw_open(&json, '{');
        write_text(&json, "title", c->title, TITLE_MAX, true);
        if (c->color > 0 && c->color <= CARD_COLOR_MAX) {
                snprintf(color, sizeof(color), "#%06X", (unsigned)c->color);
                jsonw_str(&json, "color", color);
        }
        write_text(&json, "body", c->body, BODY_MAX, false);
        if (c->field_count > 0)
                write_fields(&json, c);
        write_text(&json, "footer", c->footer, FOOTER_MAX, true);
        if (c->time_ms > 0)
                jsonw_int(&json, "time", c->time_ms);
        jsonw_close(&json, '}');
        return buf_take(&json);
}

/* ---- reading ---- */

static int read_text(const json_t *v, const char *key, const char **out, struct error *err)
{
        if (!json_is_string(v))
                return error_set(err, ERR_INVALID, "'%s' of the card must be a text", key);
        *out = json_string_value(v);
        return 0;
}

static int read_color(const json_t *v, int64_t *out, struct error *err)
{
        const char *text = json_string_value(v);

        if (!text || strlen(text) != 7 || text[0] != '#' ||
            strspn(text + 1, "0123456789abcdefABCDEF") != 6)
                return error_set(err, ERR_INVALID, "'color' of the card must be like \"#FFA500\"");
        *out = strtoll(text + 1, NULL, 16);
        return 0;
}

static int read_field(const json_t *v, struct card_field *out, struct error *err)
{
        const json_t *member;
        const char *key;

        json_object_foreach((json_t *)v, key, member) {
                if (strcmp(key, "inline") == 0 && json_is_boolean(member))
                        out->is_inline = json_is_true(member);
                else if (strcmp(key, "name") == 0 && json_is_string(member))
                        out->name = json_string_value(member);
                else if (strcmp(key, "value") == 0 && json_is_string(member))
                        out->value = json_string_value(member);
                else
                        return error_set(err, ERR_INVALID,
                                         "a field of the card has 'name' and 'value', texts, and "
                                         "'inline', true or false; it has no such '%.40s'",
                                         key);
        }
        if (!out->name || !out->value)
                return error_set(err, ERR_INVALID,
                                 "each field of the card needs 'name' and 'value'");
        return 0;
}

static int read_fields(const json_t *v, struct card *out, struct error *err)
{
        size_t i;
        json_t *field;

        if (!json_is_array(v) || json_array_size(v) > CARD_FIELDS_MAX)
                return error_set(err, ERR_INVALID,
                                 "'fields' of the card must be a list of at most %d",
                                 CARD_FIELDS_MAX);
        json_array_foreach(v, i, field) {
                if (read_field(field, &out->fields[i], err) < 0)
                        return -1;
        }
        out->field_count = i;
        return 0;
}

static int read_member(const char *key, const json_t *v, struct card *out, struct error *err)
{
        if (strcmp(key, "title") == 0)
                return read_text(v, key, &out->title, err);
        if (strcmp(key, "body") == 0)
                return read_text(v, key, &out->body, err);
        if (strcmp(key, "footer") == 0)
                return read_text(v, key, &out->footer, err);
        if (strcmp(key, "color") == 0)
                return read_color(v, &out->color, err);
        if (strcmp(key, "fields") == 0)
                return read_fields(v, out, err);
        if (strcmp(key, "time") != 0)
                return error_set(err, ERR_INVALID, "a card has no '%.40s'", key);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
                return error_set(err, ERR_INVALID, "'time' of the card must be milliseconds");
        out->time_ms = json_integer_value(v);
        return 0;
}

int card_read(const json_t *json, struct card *out, struct error *err)
{
        const json_t *v;
        const char *key;

        *out = (struct card){ 0 };
        if (!json_is_object(json))
                return error_set(err, ERR_INVALID, "a card must be an object");
        json_object_foreach((json_t *)json, key, v) {
                if (read_member(key, v, out, err) < 0)
                        return -1;
        }
        if (!out->title && !out->body && out->field_count == 0)
                return error_set(err, ERR_INVALID, "a card needs a title, a body or fields");
        return 0;
}

const char *card_said(const json_t *payload)
{
        const json_t *card = json_object_get(payload, "card");

        return json_str(payload, "text", json_str(card, "title", json_str(card, "body", NULL)));
}

int card_parse(const char *text, json_t **json, struct card *out, struct error *err)
{
        size_t n = strlen(text);

        *json = NULL;
        if (n > CARD_BYTES_MAX)
                return error_set(err, ERR_INVALID, "a card has at most %d bytes", CARD_BYTES_MAX);
        *json = json_read(text, n, err);
        if (!*json)
                return error_prefix(err, "the card is no JSON");
        if (card_read(*json, out, err) == 0)
                return 0;
        json_decref(*json);
        *json = NULL;
        return -1;
}
