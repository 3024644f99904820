#include "api/core/body.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/settings.h"
#include "base/utf8.h"

#define MISTAKES_MAX 16 /* more are counted, not told */
#define PATH_SIZE    160
#define NAME_SHOWN   64 /* of a name we do not know */
/* the last millisecond of the year 9999: arithmetic with it stays safe */
#define TIME_MAX   253402300799999
#define FIELDS_MAX 48 /* rows of one table: names that may have been meant */

void body_init(struct body *b)
{
        *b = (struct body){ 0 };
        arena_init(&b->arena);
        buf_init(&b->mistakes, 0);
}

void body_release(struct body *b)
{
        json_decref(b->root);
        b->root = NULL;
        arena_release(&b->arena);
        buf_release(&b->mistakes);
}

int body_mistake(struct body *b, const char *path, const char *fmt, ...)
{
        char what[300];
        va_list ap;

        if (b->mistake_count++ >= MISTAKES_MAX)
                return -1;
        va_start(ap, fmt);
        vsnprintf(what, sizeof(what), fmt, ap);
        va_end(ap);
        if (b->mistake_count == 1) {
                b->error.kind = ERR_INVALID;
                snprintf(b->error.text, sizeof(b->error.text), "%s%s%s", path, path[0] ? ": " : "",
                         what);
        }
        jsonw_open_member(&b->mistakes, path, '[');
        jsonw_str(&b->mistakes, NULL, what);
        jsonw_close(&b->mistakes, ']');
        return -1;
}

/*
 * The path of a member, in out if it has to be put together: most are at the top, and then it is
 * their name.
 */
static const char *join(const char *path, const char *name, char out[PATH_SIZE])
{
        if (path[0] == '\0' && strnlen(name, NAME_SHOWN + 1) <= NAME_SHOWN)
                return name;
        snprintf(out, PATH_SIZE, "%s%s%.*s", path, path[0] ? "." : "", NAME_SHOWN, name);
        return out;
}

static void *place(void *out, const struct field *f)
{
        return (char *)out + f->at;
}

static const struct field *find(const struct field *fields, const char *name)
{
        for (const struct field *f = fields; f && f->name; f++)
                if (strcmp(f->name, name) == 0)
                        return f;
        return NULL;
}

static void mistake_unknown(struct body *b, const struct field *fields, const char *path,
                            const char *name)
{
        const char *names[FIELDS_MAX + 1] = { NULL };
        const char *near;
        size_t n = 0;

        for (const struct field *f = fields; f && f->name && n < FIELDS_MAX; f++)
                names[n++] = f->name;
        near = strlen(name) <= NAME_SHOWN ? settings_nearest(name, names) : NULL;
        if (near)
                body_mistake(b, path, "unknown field (did you mean '%s'?)", near);
        else
                body_mistake(b, path, "unknown field");
}

/* ---- values, however they came ---- */

static int put_string(struct body *b, const struct field *f, const char *path, const char *text,
                      size_t n, void *out)
{
        int64_t max = f->max > 0 ? f->max : FIELD_STRING_MAX;

        if (n < (size_t)f->min)
                return body_mistake(b, path,
                                    f->min == 1 ? "must not be empty"
                                                : "must have at least %lld bytes",
                                    (long long)f->min);
        if (n > (size_t)max)
                return body_mistake(b, path, "must have at most %lld bytes", (long long)max);
        *(const char **)place(out, f) = text;
        return 0;
}

static int put_int(struct body *b, const struct field *f, const char *path, int64_t n, void *out)
{
        if ((f->min != 0 || f->max != 0) && (n < f->min || n > f->max))
                return body_mistake(b, path, "must be between %lld and %lld", (long long)f->min,
                                    (long long)f->max);
        *(int64_t *)place(out, f) = n;
        return 0;
}

static int put_time(struct body *b, const struct field *f, const char *path, const char *text,
                    void *out)
{
        int64_t ms;

        if (clock_parse_iso(text, &ms) < 0 || ms < 0)
                return body_mistake(b, path,
                                    "must be a time such as 2026-01-31T12:00:00Z, or milliseconds");
        *(int64_t *)place(out, f) = ms;
        return 0;
}

static int put_id(struct body *b, const struct field *f, const char *path, const char *text,
                  void *out)
{
        int64_t n = field_id(f->prefix, text);

        if (n < 0)
                return body_mistake(b, path, "must be an id such as %s42", f->prefix);
        *(int64_t *)place(out, f) = n;
        return 0;
}

static int put_choice(struct body *b, const struct field *f, const char *path, const char *text,
                      void *out)
{
        char list[200] = "";

        for (const char *const *c = f->choices; *c; c++) {
                size_t used = strlen(list);

                if (strcmp(*c, text) == 0) {
                        *(const char **)place(out, f) = *c;
                        return 0;
                }
                snprintf(list + used, sizeof(list) - used, "%s%s", used > 0 ? ", " : "", *c);
        }
        return body_mistake(b, path, "must be one of %s", list);
}

/* Whole decimal numbers only; 0 or -1. */
static int parse_int(const char *text, int64_t *out)
{
        bool minus = text[0] == '-';
        const char *p = text + minus;
        int64_t n = 0;

        if (*p == '\0')
                return -1;
        for (; *p; p++) {
                if (*p < '0' || *p > '9')
                        return -1;
                if (n > (INT64_MAX - 9) / 10)
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
        return text[0] != '-' && parse_int(text, &number) == 0 ? number : -1;
}

/* ---- bodies ---- */

static int read_object(struct body *b, const json_t *object, const struct field *fields,
                       const char *path, void *out);

static int read_list(struct body *b, const json_t *v, const struct field *f, const char *path,
                     void *out)
{
        struct field_list *list = place(out, f);
        size_t max = f->max > 0 ? (size_t)f->max : FIELD_LIST_MAX, count = json_array_size(v);
        char *items;

        if (!json_is_array(v))
                return body_mistake(b, path, "must be a list");
        if (count > max)
                return body_mistake(b, path, "must have at most %zu elements", max);
        items = arena_alloc(&b->arena, count * f->item_size);
        for (size_t i = 0; i < count; i++) {
                char at[PATH_SIZE];

                snprintf(at, sizeof(at), "%.*s[%zu]", PATH_SIZE - 24, path, i);
                read_object(b, json_array_get(v, i), f->group, at, items + i * f->item_size);
        }
        list->items = items;
        list->count = count;
        return 0;
}

static int read_texts(struct body *b, const json_t *v, const struct field *f, const char *path,
                      void *out)
{
        struct field_list *list = place(out, f);
        size_t max = f->max > 0 ? (size_t)f->max : FIELD_LIST_MAX, count = json_array_size(v);
        const char **items;

        if (!json_is_array(v))
                return body_mistake(b, path, "must be a list");
        if (count > max)
                return body_mistake(b, path, "must have at most %zu elements", max);
        items = arena_alloc(&b->arena, count * sizeof(*items));
        for (size_t i = 0; i < count; i++) {
                const json_t *item = json_array_get(v, i);
                size_t n = json_string_length(item);

                if (!json_is_string(item) || n == 0 || n > FIELD_TEXT_MAX)
                        return body_mistake(b, path, "must be a list of texts of 1 to %d bytes",
                                            FIELD_TEXT_MAX);
                items[i] = json_string_value(item);
        }
        list->items = items;
        list->count = count;
        return 0;
}

static int read_int(struct body *b, const json_t *v, const struct field *f, const char *path,
                    void *out)
{
        if (!json_is_integer(v))
                return body_mistake(b, path, "must be a whole number");
        return put_int(b, f, path, json_integer_value(v), out);
}

static int read_time(struct body *b, const json_t *v, const struct field *f, const char *path,
                     void *out)
{
        if (json_is_string(v))
                return put_time(b, f, path, json_string_value(v), out);
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > TIME_MAX)
                return body_mistake(b, path, "must be a time in milliseconds, or RFC 3339 text");
        *(int64_t *)place(out, f) = json_integer_value(v);
        return 0;
}

static int read_bool(struct body *b, const json_t *v, const struct field *f, const char *path,
                     void *out)
{
        if (!json_is_boolean(v))
                return body_mistake(b, path, "must be true or false");
        *(bool *)place(out, f) = json_is_true(v);
        return 0;
}

static int read_any_object(struct body *b, const json_t *v, const struct field *f, const char *path,
                           void *out)
{
        if (!json_is_object(v))
                return body_mistake(b, path, "must be an object");
        *(const json_t **)place(out, f) = v;
        return 0;
}

static int read_text(struct body *b, const json_t *v, const struct field *f, const char *path,
                     void *out)
{
        const char *text = json_string_value(v);

        if (!text)
                return body_mistake(b, path, "must be a text");
        switch (f->type) {
        case FIELD_ID:
                return put_id(b, f, path, text, out);
        case FIELD_CHOICE:
                return put_choice(b, f, path, text, out);
        default:
                return put_string(b, f, path, text, json_string_length(v), out);
        }
}

static int read_value(struct body *b, const json_t *v, const struct field *f, const char *path,
                      void *out)
{
        switch (f->type) {
        case FIELD_INT:
                return read_int(b, v, f, path, out);
        case FIELD_BOOL:
                return read_bool(b, v, f, path, out);
        case FIELD_TIME:
                return read_time(b, v, f, path, out);
        case FIELD_OBJECT:
                return read_any_object(b, v, f, path, out);
        case FIELD_GROUP:
                return read_object(b, v, f->group, path, place(out, f));
        case FIELD_LIST:
                return read_list(b, v, f, path, out);
        case FIELD_ANY:
                *(const json_t **)place(out, f) = v;
                return 0;
        case FIELD_TEXTS:
                return read_texts(b, v, f, path, out);
        default:
                return read_text(b, v, f, path, out);
        }
}

static int read_object(struct body *b, const json_t *object, const struct field *fields,
                       const char *path, void *out)
{
        size_t known = 0;
        const char *name;
        json_t *v;
        char at[PATH_SIZE];

        if (!json_is_object(object))
                return body_mistake(b, path, "must be an object");
        for (const struct field *f = fields; f && f->name; f++) {
                v = json_object_get(object, f->name);
                known += v != NULL;
                if (v && !json_is_null(v))
                        read_value(b, v, f, join(path, f->name, at), out);
                else if (f->required)
                        body_mistake(b, join(path, f->name, at), "is required");
        }
        if (known == json_object_size(object))
                return 0;
        json_object_foreach((json_t *)object, name, v)
                if (!find(fields, name))
                        mistake_unknown(b, fields, join(path, name, at), name);
        return 0;
}

int body_read(struct body *b, const char *text, size_t n, const struct field *fields, void *out)
{
        if (n == 0) {
                text = "{}";
                n = 2;
        }
        b->root = json_read(text, n, &b->error);
        return body_read_tree(b, fields, out);
}

int body_read_tree(struct body *b, const struct field *fields, void *out)
{
        if (!b->root)
                return -1;
        read_object(b, b->root, fields, "", out);
        return b->mistake_count > 0 ? -1 : 0;
}

/* ---- queries ---- */

static void query_value(struct body *b, const struct field *f, const char *text, void *out)
{
        int64_t n;

        switch (f->type) {
        case FIELD_INT:
                if (parse_int(text, &n) < 0)
                        body_mistake(b, f->name, "must be a whole number");
                else
                        put_int(b, f, f->name, n, out);
                break;
        case FIELD_BOOL:
                if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
                        body_mistake(b, f->name, "must be true or false");
                else
                        *(bool *)place(out, f) = text[0] == 't';
                break;
        case FIELD_TIME:
                if (parse_int(text, &n) == 0 && n >= 0 && n <= TIME_MAX)
                        *(int64_t *)place(out, f) = n;
                else
                        put_time(b, f, f->name, text, out);
                break;
        case FIELD_ID:
                put_id(b, f, f->name, text, out);
                break;
        case FIELD_CHOICE:
                put_choice(b, f, f->name, text, out);
                break;
        default:
                if (!utf8_valid(text, strlen(text)))
                        body_mistake(b, f->name, "must be UTF-8");
                else
                        put_string(b, f, f->name, arena_strdup(&b->arena, text), strlen(text), out);
        }
}

void body_query_add(struct body *b, const struct field *fields, void *out, const char *name,
                    const char *value)
{
        const struct field *f = find(fields, name);
        json_int_t times;

        if (!f) {
                char shown[PATH_SIZE];

                mistake_unknown(b, fields, join("", name, shown), name);
                return;
        }
        /* which were there is kept in the tree that a body would fill */
        if (!b->root)
                b->root = json_object();
        times = json_integer_value(json_object_get(b->root, name));
        json_object_set_new(b->root, name, json_integer(times + 1));
        if (times > 0) {
                if (times == 1)
                        body_mistake(b, name, "is given more than once");
                return;
        }
        query_value(b, f, value, out);
}

int body_query_done(struct body *b, const struct field *fields)
{
        for (const struct field *f = fields; f && f->name; f++)
                if (f->required && !json_object_get(b->root, f->name))
                        body_mistake(b, f->name, "is required");
        return b->mistake_count > 0 ? -1 : 0;
}

/* ---- documentation ---- */

static void schema_range(struct buf *b, const struct field *f)
{
        if (f->min == 0 && f->max == 0)
                return;
        jsonw_int(b, "minimum", f->min);
        jsonw_int(b, "maximum", f->max);
}

static void schema_string(struct buf *b, const struct field *f)
{
        jsonw_str(b, "type", "string");
        if (f->min > 0)
                jsonw_int(b, "minLength", f->min);
        jsonw_int(b, "maxLength", f->max > 0 ? f->max : FIELD_STRING_MAX);
}

static void schema_choices(struct buf *b, const struct field *f)
{
        jsonw_str(b, "type", "string");
        jsonw_open_member(b, "enum", '[');
        for (const char *const *c = f->choices; *c; c++)
                jsonw_str(b, NULL, *c);
        jsonw_close(b, ']');
}

static void schema_members(struct buf *b, const struct field *fields)
{
        bool any = false;

        jsonw_str(b, "type", "object");
        jsonw_bool(b, "additionalProperties", false);
        jsonw_open_member(b, "properties", '{');
        for (const struct field *f = fields; f && f->name; f++) {
                field_schema(b, f->name, f);
                any = any || f->required;
        }
        jsonw_close(b, '}');
        if (!any)
                return;
        jsonw_open_member(b, "required", '[');
        for (const struct field *f = fields; f->name; f++)
                if (f->required)
                        jsonw_str(b, NULL, f->name);
        jsonw_close(b, ']');
}

static void schema_type(struct buf *b, const struct field *f)
{
        switch (f->type) {
        case FIELD_INT:
                jsonw_str(b, "type", "integer");
                schema_range(b, f);
                break;
        case FIELD_BOOL:
                jsonw_str(b, "type", "boolean");
                break;
        case FIELD_TIME:
                jsonw_raw(
                        b, "anyOf",
                        "[{\"type\":\"integer\",\"minimum\":0},{\"type\":\"string\",\"format\":\"date-time\"}]");
                break;
        case FIELD_ID:
                jsonw_str(b, "type", "string");
                break;
        case FIELD_CHOICE:
                schema_choices(b, f);
                break;
        case FIELD_OBJECT:
                jsonw_str(b, "type", "object");
                break;
        case FIELD_GROUP:
                schema_members(b, f->group);
                break;
        case FIELD_LIST:
                jsonw_str(b, "type", "array");
                jsonw_int(b, "maxItems", f->max > 0 ? f->max : FIELD_LIST_MAX);
                field_table_schema(b, "items", f->group);
                break;
        case FIELD_ANY:
                break;
        case FIELD_TEXTS:
                jsonw_str(b, "type", "array");
                jsonw_int(b, "maxItems", f->max > 0 ? f->max : FIELD_LIST_MAX);
                jsonw_open_member(b, "items", '{');
                jsonw_str(b, "type", "string");
                jsonw_int(b, "minLength", 1);
                jsonw_int(b, "maxLength", FIELD_TEXT_MAX);
                jsonw_close(b, '}');
                break;
        default:
                schema_string(b, f);
        }
}

void field_schema(struct buf *b, const char *key, const struct field *f)
{
        jsonw_open_member(b, key, '{');
        schema_type(b, f);
        jsonw_opt(b, "description", f->help);
        if (f->fallback)
                jsonw_raw(b, "default", f->fallback);
        jsonw_close(b, '}');
}

void field_table_schema(struct buf *b, const char *key, const struct field *fields)
{
        jsonw_open_member(b, key, '{');
        schema_members(b, fields);
        jsonw_close(b, '}');
}
