#include "sim/world_settings.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/jsonw.h"

/* clang-format off */
#define AT(field) offsetof(struct world_base, field)
static const struct world_setting shared[] = {
        { "strict",        WORLD_SETTING_FLAG, AT(strict),        0, 0 },
        { "limits",        WORLD_SETTING_FLAG, AT(limits),        0, 0 },
        { "record_calls",  WORLD_SETTING_FLAG, AT(record_calls),  0, 0 },
        { "keep_messages", WORLD_SETTING_SIZE, AT(keep_messages), OPTIONS_KEEP_MIN, 1e6 },
        { 0 },
};
/* clang-format on */

static void set(const struct world_setting *k, struct world_base *w, const json_t *value)
{
        void *at = (char *)w + k->at;

        switch (k->kind) {
        case WORLD_SETTING_FLAG:
                *(bool *)at = json_is_true(value);
                break;
        case WORLD_SETTING_INT:
                *(int64_t *)at = json_integer_value(value);
                break;
        case WORLD_SETTING_SIZE:
                *(size_t *)at = (size_t)json_integer_value(value);
                break;
        case WORLD_SETTING_REAL:
                *(double *)at = json_number_value(value);
                break;
        }
}

static int check(const struct world_setting *k, const json_t *value, struct error *err)
{
        double number = json_number_value(value);

        if (k->kind == WORLD_SETTING_FLAG)
                return json_is_boolean(value)
                               ? 0
                               : error_set(err, ERR_INVALID, "'%s' must be true or false", k->name);
        if (!(k->kind == WORLD_SETTING_REAL ? json_is_number(value) : json_is_integer(value)))
                return error_set(err, ERR_INVALID, "'%s' must be a number", k->name);
        if (k->max > 0 && (number < k->min || number > k->max))
                return error_set(err, ERR_INVALID, "'%s' must be between %.0f and %.0f", k->name,
                                 k->min, k->max);
        return 0;
}

static int check_all(const struct world_setting *rows, const json_t *request, struct error *err)
{
        for (const struct world_setting *k = rows; k->name; k++) {
                const json_t *value = json_object_get(request, k->name);

                if (value && check(k, value, err) != 0)
                        return -1;
        }
        return 0;
}

static void set_all(const struct world_setting *rows, struct world_base *w, const json_t *request)
{
        for (const struct world_setting *k = rows; k->name; k++) {
                const json_t *value = json_object_get(request, k->name);

                if (value)
                        set(k, w, value);
        }
}

int world_settings_change(struct world_base *w, const json_t *request, struct error *err)
{
        int64_t keep = json_int(request, "keep_messages", (int64_t)w->keep_messages);

        if (check_all(shared, request, err) != 0 || check_all(w->own_settings, request, err) != 0)
                return -1;
        if ((size_t)keep < w->keep_messages) /* chats hold more already */
                return error_set(err, ERR_INVALID, "'keep_messages' can only grow");
        set_all(shared, w, request);
        set_all(w->own_settings, w, request);
        return 0;
}

static void write_all(const struct world_setting *rows, const struct world_base *w, struct buf *b)
{
        for (const struct world_setting *k = rows; k->name; k++) {
                const void *at = (const char *)w + k->at;

                if (k->kind == WORLD_SETTING_FLAG)
                        jsonw_bool(b, k->name, *(const bool *)at);
                else if (k->kind == WORLD_SETTING_INT)
                        jsonw_int(b, k->name, *(const int64_t *)at);
                else if (k->kind == WORLD_SETTING_SIZE)
                        jsonw_int(b, k->name, (int64_t) * (const size_t *)at);
                else
                        jsonw_real(b, k->name, *(const double *)at);
        }
}

void world_settings_write(const struct world_base *w, struct buf *b)
{
        jsonw_open_member(b, "settings", '{');
        write_all(shared, w, b);
        write_all(w->own_settings, w, b);
        jsonw_close(b, '}');
}
