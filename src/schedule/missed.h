/*
 * missed: which ticks a schedule that is due gets, by its policy.
 *
 *     once   one tick for all times that have passed, due at the last of them
 *     all    one for each, the last 100
 *     skip   one if it is in time, else none
 *
 * What is older than the schedule's age limit is a tick that is skipped, so that history says so.
 */
#ifndef SCHEDULE_MISSED_H
#define SCHEDULE_MISSED_H

#include "rows/schedule_row.h"

#define MISSED_MOST     100
#define MISSED_GRACE_MS 60000 /* later than this is late */

struct missed_plan {
        struct tick_row
                *ticks; /* oldest first; state, due_ms, runs, note ... for tick_row_insert */
        size_t count;
        int64_t next_ms; /* 0: none follows */
};

/* next_ms of the row has passed. Pure, and may run on a store thread. */
void missed_plan_make(const struct schedule_row *row, int64_t now_ms, struct missed_plan *out);
void missed_plan_release(struct missed_plan *p);

#endif
