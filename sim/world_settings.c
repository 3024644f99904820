#include "sim/world_settings.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"

static void set(const struct knob *k, void *settings, const json_t *value)
{
        void *at = (char *)settings + k->at;

        switch (k->kind) {
        case KNOB_FLAG:
                *(bool *)at = json_is_true(value);
                break;
        case KNOB_WHOLE:
                *(int64_t *)at = json_integer_value(value);
                break;
        case KNOB_SIZE:
                *(size_t *)at = (size_t)json_integer_value(value);
                break;
        case KNOB_REAL:
                *(double *)at = json_number_value(value);
                break;
        }
}

static int check(const struct knob *k, const json_t *value, struct error *err)
{
        double number = json_number_value(value);

        if (k->kind == KNOB_FLAG)
                return json_is_boolean(value)
                               ? 0
                               : error_set(err, ERR_INVALID, "'%s' must be true or false", k->name);
        if (!(k->kind == KNOB_REAL ? json_is_number(value) : json_is_integer(value)))
                return error_set(err, ERR_INVALID, "'%s' must be a number", k->name);
        if (k->max > 0 && (number < k->min || number > k->max))
                return error_set(err, ERR_INVALID, "'%s' must be between %.0f and %.0f", k->name,
                                 k->min, k->max);
        return 0;
}

int knobs_turn(const struct knob *knobs, void *settings, size_t size, const json_t *wish,
               struct error *err)
{
        void *wanted = mem_alloc(size);
        int rc = 0;

        memcpy(wanted, settings, size);
        for (const struct knob *k = knobs; rc == 0 && k->name; k++) {
                const json_t *value = json_object_get(wish, k->name);

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

void knobs_write(const struct knob *knobs, const void *settings, struct buf *b)
{
        jsonw_open_member(b, "settings", '{');
        for (const struct knob *k = knobs; k->name; k++) {
                const void *at = (const char *)settings + k->at;

                if (k->kind == KNOB_FLAG)
                        jsonw_bool(b, k->name, *(const bool *)at);
                else if (k->kind == KNOB_WHOLE)
                        jsonw_int(b, k->name, *(const int64_t *)at);
                else if (k->kind == KNOB_SIZE)
                        jsonw_int(b, k->name, (int64_t) * (const size_t *)at);
                else
                        jsonw_real(b, k->name, *(const double *)at);
        }
        jsonw_close(b, '}');
}
