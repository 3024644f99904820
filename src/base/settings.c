#include "base/settings.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "base/settings_private.h"
#include "base/utf8.h"

#define WORD_MAX     64
#define SHOWN_MAX    60 /* of a foreign word in a message */
#define MISTAKES_MAX 100

/* The line of the path, or of the nearest enclosing value. */
static int line_around(const struct settings_source *src, const char *path)
{
        char *up = mem_strdup(path ? path : "");
        int line = settings_source_line(src, up);

        while (line == 0 && *up) {
                size_t n = strlen(up) - 1;

                while (n > 0 && up[n] != '.' && up[n] != '[')
                        n--;
                up[n] = '\0';
                line = settings_source_line(src, up);
        }
        free(up);
        return line > 0 ? line : 1;
}

char *settings_path(const char *path, const char *key)
{
        return path && *path ? mem_printf("%s.%s", path, key) : mem_strdup(key);
}

/* Keeps a mistake for settings_source_mistakes, in the order of lines. Takes over the text. */
static void record(struct settings_report *r, int line, char *text)
{
        size_t i = r->count;

        /* a key that no table knows is found once per table */
        for (size_t j = 0; j < r->count; j++) {
                if (strcmp(r->items[j].text, text) == 0) {
                        free(text);
                        return;
                }
        }
        if (r->count == MISTAKES_MAX) {
                r->left_off++;
                free(text);
                return;
        }
        r->items = mem_realloc(r->items, (r->count + 1) * sizeof(*r->items));
        for (; i > 0 && r->items[i - 1].line > line; i--)
                r->items[i] = r->items[i - 1];
        r->items[i] = (struct settings_mistake){ line, text };
        r->count++;
}

static int error_at(const struct settings_source *src, const char *line_of, const char *path,
                    struct error *err, const char *text)
{
        bool root = !path || *path == '\0';
        int line = line_around(src, line_of);
        char *whole = src->name ? mem_printf("%s:%d: %s%s%s", src->name, line, root ? "" : path,
                                             root ? "" : ": ", text)
                                : mem_printf("%s%s%s", root ? "" : path, root ? "" : ": ", text);

        error_set(err, ERR_INVALID, "%s", whole);
        record(src->report, line, whole);
        return -1;
}

void settings_source_add_mistake(const struct settings_source *src, const char *text)
{
        record(src->report, 0, mem_strdup(text));
}

size_t settings_source_mistakes(const struct settings_source *src, struct buf *out)
{
        const struct settings_report *r = src->report;

        for (size_t i = 0; i < r->count; i++)
                buf_addf(out, "%s\n", r->items[i].text);
        if (r->left_off > 0)
                buf_addf(out, "and %zu more mistakes\n", r->left_off);
        return r->count + r->left_off;
}

int settings_error(const struct settings_source *src, const char *path, struct error *err,
                   const char *fmt, ...)
{
        struct buf text;
        va_list ap;

        buf_init(&text, 0);
        va_start(ap, fmt);
        buf_vaddf(&text, fmt, ap);
        va_end(ap);
        error_at(src, path, path, err, text.data);
        buf_release(&text);
        return -1;
}

void settings_warn(struct settings_source *src, const char *path, const char *fmt, ...)
{
        bool root = !path || *path == '\0';
        va_list ap;

        if (src->name)
                buf_addf(&src->warnings, "%s:%d: ", src->name, line_around(src, path));
        buf_addf(&src->warnings, "%s%s", root ? "" : path, root ? "" : ": ");
        va_start(ap, fmt);
        buf_vaddf(&src->warnings, fmt, ap);
        va_end(ap);
        buf_addch(&src->warnings, '\n');
}

int settings_member_error(const struct settings_source *src, const char *path, const char *key,
                          struct error *err, const char *fmt, ...)
{
        char *at = settings_path(path, key);
        struct buf text;
        va_list ap;

        buf_init(&text, 0);
        va_start(ap, fmt);
        buf_vaddf(&text, fmt, ap);
        va_end(ap);
        error_at(src, at, at, err, text.data);
        buf_release(&text);
        free(at);
        return -1;
}

/* Edits (insert, remove, replace, swap neighbours) between two words, ignoring case. */
static size_t edits(const char *a, const char *b)
{
        size_t rows[3][WORD_MAX + 1]; /* two before, before, now */
        size_t n = strlen(a), m = strlen(b);
        size_t *older = rows[0], *before = rows[1], *now = rows[2];

        for (size_t j = 0; j <= m; j++)
                before[j] = j;
        for (size_t i = 1; i <= n; i++) {
                size_t *spare = older;

                now[0] = i;
                for (size_t j = 1; j <= m; j++) {
                        int x = tolower((unsigned char)a[i - 1]),
                            y = tolower((unsigned char)b[j - 1]);

                        now[j] = before[j - 1] + (x != y);
                        if (before[j] + 1 < now[j])
                                now[j] = before[j] + 1;
                        if (now[j - 1] + 1 < now[j])
                                now[j] = now[j - 1] + 1;
                        if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                            y == tolower((unsigned char)a[i - 2]) && older[j - 2] + 1 < now[j])
                                now[j] = older[j - 2] + 1;
                }
                older = before;
                before = now;
                now = spare;
        }
        return before[m];
}

const char *settings_nearest(const char *word, const char *const *candidates)
{
        /* one typing mistake in a short word, more in a long one */
        size_t best = strlen(word) / 3 + 2;
        const char *nearest = NULL;

        if (strlen(word) > WORD_MAX)
                return NULL;
        for (; *candidates; candidates++) {
                size_t distance = strlen(*candidates) > WORD_MAX ? best : edits(word, *candidates);

                if (distance < best && distance < strlen(*candidates)) {
                        best = distance;
                        nearest = *candidates;
                }
        }
        return nearest;
}

/* NULL-terminated; free the array, not the words. */
static const char **permitted_keys(const struct setting *const *tables, const char *const *also)
{
        size_t count = 0;
        const char **keys;

        for (const struct setting *const *t = tables; *t; t++) {
                for (const struct setting *row = *t; row->key; row++)
                        count++;
        }
        for (size_t i = 0; also && also[i]; i++)
                count++;
        keys = mem_array(count + 1, sizeof(*keys));
        count = 0;
        for (const struct setting *const *t = tables; *t; t++) {
                for (const struct setting *row = *t; row->key; row++)
                        keys[count++] = row->key;
        }
        for (size_t i = 0; also && also[i]; i++)
                keys[count++] = also[i];
        return keys;
}

/* The message about an unknown key, yours to free. */
static char *describe_unknown(const char *key, const struct setting *const *tables,
                              const char *const *permitted)
{
        const char *near = settings_nearest(key, permitted);
        int shown = (int)utf8_prefix(key, strlen(key), UTF8_BYTES, SHOWN_MAX);

        for (; *tables; tables++) {
                for (const struct setting *row = *tables; row->key; row++) {
                        if (row->was && strcmp(row->was, key) == 0)
                                return mem_printf("'%s' is now called '%s'", key, row->key);
                }
        }
        return near ? mem_printf("unknown key '%.*s' (did you mean '%s'?)", shown, key, near)
                    : mem_printf("unknown key '%.*s'", shown, key);
}

static bool is_permitted(const char *const *permitted, const char *key)
{
        while (*permitted && strcmp(*permitted, key) != 0)
                permitted++;
        return *permitted != NULL;
}

static int check_keys(const struct settings_source *src, const char *path, const json_t *object,
                      const struct setting *const *tables, const char *const *permitted,
                      struct error *err)
{
        int rc = 0;

        /* jansson's iteration takes no const object */
        for (void *it = json_object_iter((json_t *)(uintptr_t)object); it;
             it = json_object_iter_next((json_t *)(uintptr_t)object, it)) {
                const char *key = json_object_iter_key(it);
                char *key_path, *text;

                if (is_permitted(permitted, key))
                        continue;
                key_path = settings_path(path, key);
                text = describe_unknown(key, tables, permitted);
                rc = error_at(src, key_path, path, rc < 0 ? NULL : err, text);
                free(text);
                free(key_path);
        }
        return rc;
}

/* Was the key probably given, in a spelling that check_keys has reported? */
static bool is_misspelt(const json_t *object, const char *key, const char *const *permitted)
{
        for (void *it = json_object_iter((json_t *)(uintptr_t)object); it;
             it = json_object_iter_next((json_t *)(uintptr_t)object, it)) {
                const char *given = json_object_iter_key(it);
                const char *near =
                        is_permitted(permitted, given) ? NULL : settings_nearest(given, permitted);

                if (near && strcmp(near, key) == 0)
                        return true;
        }
        return false;
}

static int read_row(struct settings_source *src, const char *path, const json_t *object,
                    const struct setting *row, void *out, struct error *err)
{
        const json_t *given = json_object_get(object, row->key);
        json_t *fallback = NULL;
        char *key_path;
        int rc;

        if (!given) {
                fallback = settings_value_default(row);
                if (!fallback)
                        return settings_error(src, path, err, "missing key '%s'", row->key);
        }
        key_path = settings_path(path, row->key);
        rc = settings_value_read(src, key_path, row, given ? given : fallback, given != NULL, out,
                                 err);
        free(key_path);
        json_decref(fallback);
        return rc;
}

int settings_read(struct settings_source *src, const char *path, const json_t *object,
                  const struct setting *const *tables, const char *const *also, void *out,
                  struct error *err)
{
        const char **permitted;
        int rc;

        if (object && !json_is_object(object))
                return settings_error(src, path, err, "expected an object");
        permitted = permitted_keys(tables, also);
        rc = check_keys(src, path, object, tables, permitted, err);
        for (const struct setting *const *t = tables; *t; t++) {
                for (const struct setting *row = *t; row->key; row++) {
                        if (!row->fallback && !json_object_get(object, row->key) &&
                            is_misspelt(object, row->key, permitted))
                                continue;
                        if (read_row(src, path, object, row, out, rc < 0 ? NULL : err) < 0)
                                rc = -1;
                }
        }
        free(permitted);
        if (rc < 0)
                settings_release(tables, out);
        return rc;
}

void settings_release(const struct setting *const *tables, void *out)
{
        for (; *tables; tables++) {
                for (const struct setting *row = *tables; row->key; row++)
                        settings_value_release(row, out);
        }
}

int settings_read_type(const struct settings_source *src, const char *path, const json_t *object,
                       const char *const *names, struct error *err)
{
        const json_t *value = json_object_get(object, "type");
        const char *type = json_string_value(value), *near;
        struct buf known;
        int rc;

        if (!json_is_object(object))
                return settings_error(src, path, err,
                                      "expected an object such as { \"type\": \"%s\" }", names[0]);
        if (!value)
                return settings_error(src, path, err, "missing key 'type'");
        if (!type)
                return settings_member_error(src, path, "type", err, "expected a string");
        for (int i = 0; names[i]; i++) {
                if (strcmp(names[i], type) == 0)
                        return i;
        }
        near = settings_nearest(type, names);
        if (near)
                return settings_member_error(src, path, "type", err,
                                             "unknown type '%.60s' (did you mean '%s'?)", type,
                                             near);
        buf_init(&known, 0);
        for (size_t i = 0; names[i]; i++)
                buf_addf(&known, "%s%s", i ? ", " : "", names[i]);
        rc = settings_member_error(src, path, "type", err, "unknown type '%.60s' (one of %s)", type,
                                   known.data);
        buf_release(&known);
        return rc;
}

static const struct setting no_settings[] = { SETTING_END };

/* "type" and the keys of a table, NULL-terminated; free the array, not the words. */
static const char **type_and_keys(const struct setting *table)
{
        const char **keys;
        size_t n = 0;

        while (table[n].key)
                n++;
        keys = mem_array(n + 2, sizeof(*keys));
        keys[0] = "type";
        for (size_t i = 0; i < n; i++)
                keys[i + 1] = table[i].key;
        return keys;
}

int settings_read_typed(struct settings_source *src, const char *path, const json_t *object,
                        const struct setting *common, void *common_out, const struct setting *own,
                        void *own_out, struct error *err)
{
        const struct setting *const own_table = own ? own : no_settings;
        const char **common_keys = type_and_keys(common), **own_keys = type_and_keys(own_table);
        int rc =
                settings_read(src, path, object, (const struct setting *const[]){ own_table, NULL },
                              common_keys, own_out, err);

        if (settings_read(src, path, object, (const struct setting *const[]){ common, NULL },
                          own_keys, common_out, rc < 0 ? NULL : err) < 0)
                rc = -1;
        if (rc < 0)
                settings_release_typed(common, common_out, own, own_out);
        free(common_keys);
        free(own_keys);
        return rc;
}

void settings_release_typed(const struct setting *common, void *common_out,
                            const struct setting *own, void *own_out)
{
        settings_release((const struct setting *const[]){ common, NULL }, common_out);
        settings_release((const struct setting *const[]){ own ? own : no_settings, NULL }, own_out);
}

void settings_show(const struct setting *table, const void *from, struct buf *out)
{
        jsonw_open(out, '{');
        for (const struct setting *row = table; row->key; row++) {
                json_t *fallback = settings_value_default(row);

                settings_value_show(row, (const char *)from + row->at, fallback, out);
                json_decref(fallback);
        }
        jsonw_close(out, '}');
}
