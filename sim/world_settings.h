/*
 * knobs: the settings of a simulated world, as a table.
 *
 * What POST /sim/settings takes and GET /sim/state shows are the rows of one table over the world's
 * own struct.
 */
#ifndef SIM_WORLD_SETTINGS_H
#define SIM_WORLD_SETTINGS_H

#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

enum knob_kind { KNOB_FLAG, KNOB_WHOLE, KNOB_SIZE, KNOB_REAL }; /* bool, int64_t, size_t, double */

struct knob {
        const char *name; /* NULL ends the table */
        enum knob_kind kind;
        size_t at;       /* in the struct */
        double min, max; /* max 0: no limits; sizes need them */
};

/*
 * Changes what the wish names, all of it or, with -1 and an error, nothing. `size` is that of the
 * struct.
 */
int knobs_turn(const struct knob *knobs, void *settings, size_t size, const json_t *wish,
               struct error *err);
/* A member "settings" with all of them. */
void knobs_write(const struct knob *knobs, const void *settings, struct buf *b);

#endif
