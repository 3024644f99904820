#include "api/core/body.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/settings.h"
#include "base/utf8.h"

#define MISTAKES_MAX 16 /* reported; more are only counted */
#define PATH_SIZE    160
#define NAME_SHOWN   64 /* of an unknown name */
/* end of the year 9999, so that arithmetic cannot overflow */
#define TIME_MAX   253402300799999
#define FIELDS_MAX 48 /* rows compared with a misspelt name */

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

/* ---- mistakes ---- */

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

/* "sender.id"; borrows the name if it is the whole path. */
static const char *join(const char *path, const char *name, char out[PATH_SIZE])
{
        if (path[0] == '\0' && strnlen(name, NAME_SHOWN + 1) <= NAME_SHOWN)
                return name;
        snprintf(out, PATH_SIZE, "%s%s%.*s", path, path[0] ? "." : "", NAME_SHOWN, name);
        return out;
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

/* ---- values of bodies and queries ---- */

static void *member(void *out, const struct field *f)
{
        return (char *)out + f->at;
}

static int set_string(struct body *b, const struct field *f, const char *path, const char *text,
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
        *(const char **)member(out, f) = text;
        return 0;
}

static int set_int(struct body *b, const struct field *f, const char *path, int64_t n, void *out)
{
        if ((f->min != 0 || f->max != 0) && (n < f->min || n > f->max))
                return body_mistake(b, path, "must be between %lld and %lld", (long long)f->min,
                                    (long long)f->max);
        *(int64_t *)member(out, f) = n;
        return 0;
}

static int set_time(struct body *b, const struct field *f, const char *path, const char *text,
                    void *out)
{
        int64_t ms;

        if (clock_parse_iso(text, &ms) < 0 || ms < 0)
                return body_mistake(b, path,
                                    "must be a time such as 2026-01-31T12:00:00Z, or milliseconds");
        *(int64_t *)member(out, f) = ms;
        return 0;
}

static int set_id(struct body *b, const struct field *f, const char *path, const char *text,
                  void *out)
{
        int64_t n = field_id(f->prefix, text);

        if (n < 0)
                return body_mistake(b, path, "must be an id such as %s42", f->prefix);
        *(int64_t *)member(out, f) = n;
        return 0;
}

static int set_choice(struct body *b, const struct field *f, const char *path, const char *text,
                      void *out)
{
        char list[200] = "";

        for (const char *const *c = f->choices; *c; c++) {
                size_t used = strlen(list);

                if (strcmp(*c, text) == 0) {
                        *(const char **)member(out, f) = *c;
                        return 0;
                }
                snprintf(list + used, sizeof(list) - used, "%s%s", used > 0 ? ", " : "", *c);
        }
        return body_mistake(b, path, "must be one of %s", list);
}

/* ---- bodies ---- */

static int read_object(struct body *b, const json_t *object, const struct field *fields,
                       const char *path, void *out);

static int read_list(struct body *b, const json_t *v, const struct field *f, const char *path,
                     void *out)
{
        size_t max = f->max > 0 ? (size_t)f->max : FIELD_LIST_MAX, count = json_array_size(v);
        size_t size = f->type == FIELD_TEXTS ? sizeof(const char *) : f->item_size;
        char *items;

        if (!json_is_array(v))
                return body_mistake(b, path, "must be a list");
        if (count > max)
                return body_mistake(b, path, "must have at most %zu elements", max);
        items = arena_alloc(&b->arena, count * size);
        for (size_t i = 0; i < count; i++) {
                const json_t *item = json_array_get(v, i);
                size_t n = json_string_length(item);
                char at[PATH_SIZE];

                if (f->type == FIELD_LIST) {
                        snprintf(at, sizeof(at), "%.*s[%zu]", PATH_SIZE - 24, path, i);
                        read_object(b, item, f->group, at, items + i * size);
                } else if (json_is_string(item) && n > 0 && n <= FIELD_TEXT_MAX) {
                        ((const char **)(void *)items)[i] = json_string_value(item);
                } else {
                        return body_mistake(b, path, "must be a list of strings of 1 to %d bytes",
                                            FIELD_TEXT_MAX);
                }
        }
        *(struct field_list *)member(out, f) = (struct field_list){ items, count };
        return 0;
}

static int read_value(struct body *b, const json_t *v, const struct field *f, const char *path,
                      void *out)
{
        const char *text = json_string_value(v);

        switch (f->type) {
        case FIELD_INT:
                if (!json_is_integer(v))
                        return body_mistake(b, path, "must be a whole number");
                return set_int(b, f, path, json_integer_value(v), out);
        case FIELD_BOOL:
                if (!json_is_boolean(v))
                        return body_mistake(b, path, "must be true or false");
                *(bool *)member(out, f) = json_is_true(v);
                return 0;
        case FIELD_TIME:
                if (text)
                        return set_time(b, f, path, text, out);
                if (!json_is_integer(v) || json_integer_value(v) < 0 ||
                    json_integer_value(v) > TIME_MAX)
                        return body_mistake(b, path,
                                            "must be a time in milliseconds, or RFC 3339 text");
                *(int64_t *)member(out, f) = json_integer_value(v);
                return 0;
        case FIELD_OBJECT:
                if (!json_is_object(v))
                        return body_mistake(b, path, "must be an object");
                *(const json_t **)member(out, f) = v;
                return 0;
        case FIELD_ANY:
                *(const json_t **)member(out, f) = v;
                return 0;
        case FIELD_GROUP:
                return read_object(b, v, f->group, path, member(out, f));
        case FIELD_LIST:
        case FIELD_TEXTS:
                return read_list(b, v, f, path, out);
        default:
                if (!text)
                        return body_mistake(b, path, "must be a string");
                if (f->type == FIELD_ID)
                        return set_id(b, f, path, text, out);
                if (f->type == FIELD_CHOICE)
                        return set_choice(b, f, path, text, out);
                return set_string(b, f, path, text, json_string_length(v), out);
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
                if (!field_find(fields, name))
                        mistake_unknown(b, fields, join(path, name, at), name);
        return 0;
}

int body_read_tree(struct body *b, const struct field *fields, void *out)
{
        if (!b->root)
                return -1;
        read_object(b, b->root, fields, "", out);
        return b->mistake_count > 0 ? -1 : 0;
}

int body_read(struct body *b, const char *text, size_t n, const struct field *fields, void *out)
{
        b->root = n > 0 ? json_read(text, n, &b->error) : json_object();
        return body_read_tree(b, fields, out);
}

/* ---- queries ---- */

static void read_parameter(struct body *b, const struct field *f, const char *text, void *out)
{
        int64_t n;

        switch (f->type) {
        case FIELD_INT:
                if (field_int(text, &n) < 0)
                        body_mistake(b, f->name, "must be a whole number");
                else
                        set_int(b, f, f->name, n, out);
                break;
        case FIELD_BOOL:
                if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
                        body_mistake(b, f->name, "must be true or false");
                else
                        *(bool *)member(out, f) = text[0] == 't';
                break;
        case FIELD_TIME:
                if (field_int(text, &n) == 0 && n >= 0 && n <= TIME_MAX)
                        *(int64_t *)member(out, f) = n;
                else
                        set_time(b, f, f->name, text, out);
                break;
        case FIELD_ID:
                set_id(b, f, f->name, text, out);
                break;
        case FIELD_CHOICE:
                set_choice(b, f, f->name, text, out);
                break;
        default:
                if (!utf8_valid(text, strlen(text)))
                        body_mistake(b, f->name, "must be UTF-8");
                else
                        set_string(b, f, f->name, arena_strdup(&b->arena, text), strlen(text), out);
        }
}

void body_query_add(struct body *b, const struct field *fields, void *out, const char *name,
                    const char *value)
{
        const struct field *f = field_find(fields, name);
        json_int_t times;

        if (!f) {
                char shown[PATH_SIZE];

                mistake_unknown(b, fields, join("", name, shown), name);
                return;
        }
        /* root, unused by queries, counts the names */
        if (!b->root)
                b->root = json_object();
        times = json_integer_value(json_object_get(b->root, name));
        json_object_set_new(b->root, name, json_integer(times + 1));
        if (times == 0)
                read_parameter(b, f, value, out);
        else if (times == 1)
                body_mistake(b, name, "is given more than once");
}

int body_query_done(struct body *b, const struct field *fields)
{
        for (const struct field *f = fields; f && f->name; f++)
                if (f->required && !json_object_get(b->root, f->name))
                        body_mistake(b, f->name, "is required");
        return b->mistake_count > 0 ? -1 : 0;
}
