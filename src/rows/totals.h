/*
 * totals: figures of a whole store, for commands that run without a daemon.
 */
#ifndef ROWS_TOTALS_H
#define ROWS_TOTALS_H

#include "rows/rows.h"

struct totals {
        int64_t events;
        int64_t open_turns, open_deliveries;
        int64_t dead_letters; /* failed turns, failed and unknown deliveries */
};

int totals_get(struct store_tx *tx, struct totals *out, struct error *err);
/* The latest time among the last 100 events; 0: none. */
int totals_newest_event_ms(struct store_tx *tx, int64_t *out, struct error *err);

#endif
