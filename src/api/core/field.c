#include "api/core/field.h"

#include <string.h>

#include "base/jsonw.h"

const struct field *field_find(const struct field *table, const char *name)
{
        for (const struct field *f = table; f && f->name; f++)
                if (strcmp(f->name, name) == 0)
                        return f;
        return NULL;
}

int field_int(const char *text, int64_t *out)
{
        bool minus = text[0] == '-';
        const char *p = text + minus;
        int64_t n = 0;

        if (*p == '\0')
                return -1;
        for (; *p; p++) {
                if (*p < '0' || *p > '9' || n > (INT64_MAX - 9) / 10)
                        return -1;
                n = n * 10 + (*p - '0');
        }
        *out = minus ? -n : n;
        return 0;
}

int64_t field_id(const char *prefix, const char *text)
{
        size_t n = strlen(prefix);
        int64_t number;

        if (strncmp(text, prefix, n) == 0)
                text += n;
        if (text[0] == '-' || (text[0] == '0' && text[1] != '\0') || field_int(text, &number) < 0)
                return -1;
        return number;
}

/* ---- documentation ---- */

static void write_members(struct buf *b, const struct field *table)
{
        bool any_required = false;

        jsonw_str(b, "type", "object");
        jsonw_bool(b, "additionalProperties", false);
        jsonw_open_member(b, "properties", '{');
        for (const struct field *f = table; f && f->name; f++) {
                field_schema(b, f->name, f);
                any_required = any_required || f->required;
        }
        jsonw_close(b, '}');
        if (!any_required)
                return;
        jsonw_open_member(b, "required", '[');
        for (const struct field *f = table; f->name; f++)
                if (f->required)
                        jsonw_str(b, NULL, f->name);
        jsonw_close(b, ']');
}

static void write_string(struct buf *b, int64_t min, int64_t max)
{
        jsonw_str(b, "type", "string");
        if (min > 0)
                jsonw_int(b, "minLength", min);
        jsonw_int(b, "maxLength", max);
}

static void write_type(struct buf *b, const struct field *f)
{
        switch (f->type) {
        case FIELD_INT:
                jsonw_str(b, "type", "integer");
                if (f->min != 0 || f->max != 0) {
                        jsonw_int(b, "minimum", f->min);
                        jsonw_int(b, "maximum", f->max);
                }
                break;
        case FIELD_BOOL:
                jsonw_str(b, "type", "boolean");
                break;
        case FIELD_TIME:
                jsonw_raw(b, "anyOf",
                          "[{\"type\":\"integer\",\"minimum\":0},"
                          "{\"type\":\"string\",\"format\":\"date-time\"}]");
                break;
        case FIELD_ID:
                jsonw_str(b, "type", "string");
                break;
        case FIELD_CHOICE:
                jsonw_str(b, "type", "string");
                jsonw_open_member(b, "enum", '[');
                for (const char *const *c = f->choices; *c; c++)
                        jsonw_str(b, NULL, *c);
                jsonw_close(b, ']');
                break;
        case FIELD_OBJECT:
                jsonw_str(b, "type", "object");
                break;
        case FIELD_GROUP:
                write_members(b, f->group);
                break;
        case FIELD_LIST:
                jsonw_str(b, "type", "array");
                jsonw_int(b, "maxItems", f->max > 0 ? f->max : FIELD_LIST_MAX);
                field_table_schema(b, "items", f->group);
                break;
        case FIELD_TEXTS:
                jsonw_str(b, "type", "array");
                jsonw_int(b, "maxItems", f->max > 0 ? f->max : FIELD_LIST_MAX);
                jsonw_open_member(b, "items", '{');
                write_string(b, 1, FIELD_TEXT_MAX);
                jsonw_close(b, '}');
                break;
        case FIELD_ANY:
                break;
        default:
                write_string(b, f->min, f->max > 0 ? f->max : FIELD_STRING_MAX);
        }
}

void field_schema(struct buf *b, const char *key, const struct field *f)
{
        jsonw_open_member(b, key, '{');
        write_type(b, f);
        jsonw_opt(b, "description", f->help);
        if (f->fallback)
                jsonw_raw(b, "default", f->fallback);
        jsonw_close(b, '}');
}

void field_table_schema(struct buf *b, const char *key, const struct field *table)
{
        jsonw_open_member(b, key, '{');
        write_members(b, table);
        jsonw_close(b, '}');
}
