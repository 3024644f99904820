/* JSON Schema for editors, Markdown for people. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/settings_private.h"

static const char *schema_type(enum setting_type type)
{
        switch (type) {
        case SETTING_BOOL:
                return "boolean";
        case SETTING_INT:
                return "integer";
        case SETTING_NUMBER:
                return "number";
        case SETTING_GROUP:
        case SETTING_MAP:
        case SETTING_PAIRS:
                return "object";
        default:
                return "string";
        }
}

static void schema_range(const struct setting *row, json_t *s)
{
        bool text = row->type == SETTING_STRING || row->type == SETTING_FILE;
        int64_t min, max;

        if (!text && row->type != SETTING_INT && row->type != SETTING_NUMBER)
                return;
        if (!settings_value_range(row, &min, &max))
                return;
        /* the schema counts characters, so it cannot express a minimum of bytes above 1 */
        if (text && min > 0)
                json_object_set_new(s, "minLength", json_integer(1));
        if (!text)
                json_object_set_new(s, "minimum", json_integer(min));
        if (max != INT64_MAX)
                json_object_set_new(s, text ? "maxLength" : "maximum", json_integer(max));
}

static void schema_choices(const struct setting *row, json_t *s)
{
        json_t *values = json_array();

        for (const char *const *c = row->choices; *c; c++)
                json_array_append_new(values, json_string(*c));
        if (settings_value_nullable(row))
                json_array_append_new(values, json_null());
        json_object_set_new(s, "enum", values);
}

static void schema_group(const struct setting *row, json_t *s)
{
        json_t *properties = json_object(), *required = json_array();

        settings_doc_schema(row->group, properties, required);
        json_object_set_new(s, "properties", properties);
        if (json_array_size(required) > 0)
                json_object_set(s, "required", required);
        json_decref(required);
        json_object_set_new(s, "additionalProperties", json_false());
}

static json_t *schema_of(const struct setting *row)
{
        bool words = row->type == SETTING_INT && row->choices;
        const char *type = schema_type(row->type);
        json_t *s = json_object();

        if (row->type == SETTING_STRINGS)
                json_object_set_new(s, "type", json_pack("[s, s]", "string", "array"));
        else if (!words)
                json_object_set_new(s, "type", json_string(type));
        if (settings_value_nullable(row) && !words) {
                json_t *types = json_object_get(s, "type");

                types = json_is_array(types) ? json_copy(types) : json_pack("[s]", type);
                json_array_append_new(types, json_string("null"));
                json_object_set_new(s, "type", types);
        }
        if (words) {
                json_t *number = json_pack("{s:s}", "type", "integer"), *named = json_object();

                schema_range(row, number);
                schema_choices(row, named);
                json_object_set_new(s, "anyOf", json_pack("[o, o]", number, named));
        } else {
                schema_range(row, s);
        }
        if (row->type == SETTING_STRINGS)
                json_object_set_new(s, "items", json_pack("{s:s}", "type", "string"));
        if (row->type == SETTING_CHOICE)
                schema_choices(row, s);
        if (row->type == SETTING_GROUP)
                schema_group(row, s);
        if (row->type == SETTING_MAP) {
                json_t *item = json_pack("{s:s}", "type", "object");

                schema_group(row, item);
                json_object_set_new(s, "additionalProperties", item);
        }
        if (row->type == SETTING_PAIRS)
                json_object_set_new(s, "additionalProperties",
                                    json_pack("{s:s}", "type", "string"));
        if (row->type == SETTING_URL)
                json_object_set_new(s, "pattern", json_string("^[hH][tT][tT][pP][sS]?://"));
        if (row->fallback)
                json_object_set_new(s, "default", settings_value_default(row));
        if (row->help)
                json_object_set_new(s, "description", json_string(row->help));
        return s;
}

void settings_doc_schema(const struct setting *table, json_t *properties, json_t *required)
{
        for (const struct setting *row = table; row->key; row++) {
                json_object_set_new(properties, row->key, schema_of(row));
                if (!row->fallback && required)
                        json_array_append_new(required, json_string(row->key));
        }
}

/* A bar would end a cell of a Markdown table. */
static void add_cell(struct buf *out, const char *text)
{
        for (; text && *text; text++) {
                if (*text == '|')
                        buf_addch(out, '\\');
                buf_addch(out, *text == '\n' ? ' ' : *text);
        }
}

static void markdown_type(const struct setting *row, struct buf *out)
{
        static const char *const words[] = {
                [SETTING_NONE] = "",
                [SETTING_BOOL] = "true or false",
                [SETTING_INT] = "whole number",
                [SETTING_NUMBER] = "number",
                [SETTING_STRING] = "string",
                [SETTING_URL] = "URL",
                [SETTING_FILE] = "file",
                [SETTING_CHOICE] = "",
                [SETTING_SECRET] = "secret",
                [SETTING_STRINGS] = "list of strings",
                [SETTING_GROUP] = "object",
                [SETTING_MAP] = "object of objects",
                [SETTING_PAIRS] = "object of strings or secrets",
        };
        int64_t min, max;

        buf_addstr(out, words[row->type]);
        for (const char *const *c = row->choices; c && *c; c++)
                buf_addf(out, "%s`%s`",
                         row->type == SETTING_INT ? " or "
                         : c == row->choices      ? ""
                                                  : ", ",
                         *c);
        if ((row->type == SETTING_INT || row->type == SETTING_NUMBER) &&
            settings_value_range(row, &min, &max)) {
                if (max == INT64_MAX)
                        buf_addf(out, ", at least %lld", (long long)min);
                else
                        buf_addf(out, ", %lld to %lld", (long long)min, (long long)max);
        }
}

static void markdown_rows(const struct setting *table, const char *prefix, struct buf *out)
{
        for (const struct setting *row = table; row->key; row++) {
                char *key = settings_path(prefix, row->key);

                buf_addf(out, "| `%s` | ", key);
                markdown_type(row, out);
                buf_addstr(out, " | ");
                if (row->fallback) {
                        buf_addch(out, '`');
                        add_cell(out, row->fallback);
                        buf_addch(out, '`');
                } else {
                        buf_addstr(out, "required");
                }
                buf_addstr(out, " | ");
                add_cell(out, row->help);
                buf_addstr(out, " |\n");
                if (row->type == SETTING_GROUP)
                        markdown_rows(row->group, key, out);
                if (row->type == SETTING_MAP) {
                        char *inner = mem_printf("%s.NAME", key);

                        markdown_rows(row->group, inner, out);
                        free(inner);
                }
                free(key);
        }
}

void settings_doc_markdown(const struct setting *table, struct buf *out)
{
        buf_addstr(out, "| key | type | default | meaning |\n|---|---|---|---|\n");
        markdown_rows(table, NULL, out);
}
