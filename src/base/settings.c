/*
 * Reads an object by its tables. See settings_source.c for the text and its lines, settings_value.c
 * for single values, settings_doc.c for the schema and the manual.
 */
#include "base/settings.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/settings_private.h"
#include "base/utf8.h"

#define WORD_MAX  64
#define SHOWN_MAX 60 /* bytes of a foreign word in a message */

static size_t min3(size_t a, size_t b, size_t c)
{
        size_t least = a < b ? a : b;

        return least < c ? least : c;
}

/* The number of edits (insert, remove, replace, swap neighbours) between two words, ignoring case.
 */
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

                        now[j] = min3(before[j] + 1, now[j - 1] + 1, before[j - 1] + (x != y));
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
        /* allow one typing mistake in a short word, more in a long one */
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

static bool contains(const char *const *words, const char *word)
{
        for (; words && *words; words++) {
                if (strcmp(*words, word) == 0)
                        return true;
        }
        return false;
}

/* All permitted keys, NULL-terminated. Free the array, not the words. */
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

static int unknown_key(const struct settings_source *src, const char *path, const char *key,
                       const char *const *permitted, struct error *err)
{
        const char *near = settings_nearest(key, permitted);
        int shown = (int)utf8_prefix(key, strlen(key), UTF8_BYTES, SHOWN_MAX);
        char *key_path = settings_path(path, key);
        char *text = near ? mem_printf("unknown key '%.*s' (did you mean '%s'?)", shown, key, near)
                          : mem_printf("unknown key '%.*s'", shown, key);

        settings_error_at(src, key_path, path, err, text);
        free(text);
        free(key_path);
        return -1;
}

static int check_keys(const struct settings_source *src, const char *path, const json_t *object,
                      const struct setting *const *tables, const char *const *also,
                      struct error *err)
{
        const char **permitted = permitted_keys(tables, also);
        int rc = 0;

        /* jansson's iteration takes no const object */
        for (void *it = json_object_iter((json_t *)(uintptr_t)object); it && rc == 0;
             it = json_object_iter_next((json_t *)(uintptr_t)object, it)) {
                const char *key = json_object_iter_key(it);

                if (!contains(permitted, key))
                        rc = unknown_key(src, path, key, permitted, err);
        }
        free(permitted);
        return rc;
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
        if (object && !json_is_object(object))
                return settings_error(src, path, err, "expected an object");
        /* first, so that a misspelt required key is reported as misspelt and not as missing */
        if (check_keys(src, path, object, tables, also, err) < 0)
                return -1;
        for (const struct setting *const *t = tables; *t; t++) {
                for (const struct setting *row = *t; row->key; row++) {
                        if (read_row(src, path, object, row, out, err) == 0)
                                continue;
                        settings_release(tables, out);
                        return -1;
                }
        }
        return 0;
}

void settings_release(const struct setting *const *tables, void *out)
{
        for (; *tables; tables++) {
                for (const struct setting *row = *tables; row->key; row++)
                        settings_value_release(row, out);
        }
}
