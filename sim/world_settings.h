/*
 * world_settings: what POST /sim/settings takes and GET /sim/state shows: the settings of all
 * simulators and a table of each one's own.
 */
#ifndef SIM_WORLD_SETTINGS_H
#define SIM_WORLD_SETTINGS_H

#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "sim/world_base.h"

/* bool, int64_t, size_t, double */
enum world_setting_kind {
        WORLD_SETTING_FLAG,
        WORLD_SETTING_INT,
        WORLD_SETTING_SIZE,
        WORLD_SETTING_REAL,
};

struct world_setting {
        const char *name; /* NULL ends the table */
        enum world_setting_kind kind;
        size_t at;       /* in the struct world */
        double min, max; /* max 0: no limits; sizes need them */
};

/* Applies the request; on -1 with an error nothing changes. */
int world_settings_change(struct world_base *w, const json_t *request, struct error *err);
/* Writes a member "settings". */
void world_settings_write(const struct world_base *w, struct buf *b);

#endif
