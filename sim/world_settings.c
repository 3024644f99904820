#include "sim/world_settings.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"

static void set(const struct world_setting *k, void *settings, const json_t *value)
{
        void *at = (char *)settings + k->at;

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

int world_settings_change(const struct world_setting *rows, void *settings, size_t size,
                          const json_t *request, struct error *err)
{
        void *wanted = mem_alloc(size);
        int rc = 0;

        memcpy(wanted, settings, size);
        for (const struct world_setting *k = rows; rc == 0 && k->name; k++) {
                const json_t *value = json_object_get(request, k->name);

                if (!value)
                        continue;
                rc = check(k, value, err);
                if (rc == 0)
                        set(k, wanted, value);
        }
        if (rc == 0)
                memcpy(settings, wanted, size);
        free(wanted);
        return rc;
}

void world_settings_write(const struct world_setting *rows, const void *settings, struct buf *b)
{
        jsonw_open_member(b, "settings", '{');
        for (const struct world_setting *k = rows; k->name; k++) {
                const void *at = (const char *)settings + k->at;

                if (k->kind == WORLD_SETTING_FLAG)
                        jsonw_bool(b, k->name, *(const bool *)at);
                else if (k->kind == WORLD_SETTING_INT)
                        jsonw_int(b, k->name, *(const int64_t *)at);
                else if (k->kind == WORLD_SETTING_SIZE)
                        jsonw_int(b, k->name, (int64_t) * (const size_t *)at);
                else
                        jsonw_real(b, k->name, *(const double *)at);
        }
        jsonw_close(b, '}');
}
