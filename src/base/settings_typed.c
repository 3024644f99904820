/*
 * Objects with a "type": one table holds the keys of all types, another those of this one.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/settings.h"
#include "base/settings_private.h"

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
        settings_error_at(src, at, at, err, text.data);
        buf_release(&text);
        free(at);
        return -1;
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

/* "type" and the keys of a table, NULL-terminated. Free the array, not the words. */
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

        if (rc == 0)
                rc = settings_read(src, path, object,
                                   (const struct setting *const[]){ common, NULL }, own_keys,
                                   common_out, err);
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
