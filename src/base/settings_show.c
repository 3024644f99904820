/*
 * Values back as JSON, for whoever asks what is in force. Only what differs from its default is
 * told, and never a secret.
 */
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/settings_private.h"

static void show_list(const char *key, const struct setting_list *list, struct buf *out)
{
        if (!list->set)
                return;
        jsonw_open_member(out, key, '[');
        for (size_t i = 0; i < list->count; i++)
                jsonw_str(out, NULL, list->items[i]);
        jsonw_close(out, ']');
}

static void show_text(const struct setting *row, const char *text, const json_t *fallback,
                      struct buf *out)
{
        const char *usual = json_string_value(fallback);

        if (text && (!usual || strcmp(text, usual) != 0))
                jsonw_str(out, row->key, text);
}

static void show_group(const struct setting *row, const void *value, struct buf *out)
{
        struct buf inner;

        buf_init(&inner, 0);
        settings_show(row->group, value, &inner);
        if (strcmp(inner.data, "{}") != 0)
                jsonw_raw(out, row->key, inner.data);
        buf_release(&inner);
}

static void show_value(const struct setting *row, const void *value, const json_t *fallback,
                       struct buf *out)
{
        switch (row->type) {
        case SETTING_BOOL:
                if (*(const bool *)value != json_is_true(fallback))
                        jsonw_bool(out, row->key, *(const bool *)value);
                return;
        case SETTING_INT:
                if (!fallback || *(const int64_t *)value != json_integer_value(fallback))
                        jsonw_int(out, row->key, *(const int64_t *)value);
                return;
        case SETTING_NUMBER:
                if (!fallback || *(const double *)value != json_number_value(fallback))
                        jsonw_real(out, row->key, *(const double *)value);
                return;
        case SETTING_STRING:
        case SETTING_URL:
        case SETTING_CHOICE:
                show_text(row, *(const char *const *)value, fallback, out);
                return;
        case SETTING_STRINGS:
                show_list(row->key, value, out);
                return;
        case SETTING_GROUP:
                show_group(row, value, out);
                return;
        case SETTING_SECRET:
        case SETTING_NONE:
                return;
        }
}

void settings_show(const struct setting *table, const void *from, struct buf *out)
{
        jsonw_open(out, '{');
        for (const struct setting *row = table; row->key; row++) {
                json_t *fallback = settings_fallback(row);

                show_value(row, (const char *)from + row->at, fallback, out);
                json_decref(fallback);
        }
        jsonw_close(out, '}');
}
