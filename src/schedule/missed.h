/*
 * missed: which ticks a schedule that is due gets, by its policy.
 *
 *     once   one tick for all times that have passed, due at the last of them
 *     all    one for each, the last 100
 *     skip   one for the last time, if it is not late
 *
 * A tick that is later than the schedule's age limit is skipped. Times that are left out are a
 * skipped tick, so that the history says so.
 *
 * A clock that is set back makes the next time an earlier one, and the row keeps the later one
 * (ahead_ms). Until then the schedule runs by the clock. When the clock is set ahead again, the
 * times before ahead_ms are not missed: the schedule continues there.
 */
#ifndef SCHEDULE_MISSED_H
#define SCHEDULE_MISSED_H

#include "rows/schedule_row.h"

#define MISSED_MOST     100   /* ticks of `all` */
#define MISSED_COUNTED  1000  /* `runs` is not exact above this */
#define MISSED_GRACE_MS 60000 /* later than this is late */

struct missed_plan {
        struct tick_row ticks[MISSED_MOST + 1]; /* oldest first, for tick_row_insert */
        size_t count;
        int64_t next_ms;    /* 0: none follows */
        const char *broken; /* why the schedule must end; its one tick has failed. Else NULL */
};

/*
 * next_ms of the row has passed; count may be 0. zone: that of a row without one. May run on a
 * store thread; notes are constant, or the row's.
 */
void missed_plan_make(const struct schedule_row *row, const char *zone, int64_t now_ms,
                      struct missed_plan *out);
/* The first due time of a periodic row after now; 0: there is none, or the row is not valid. */
int64_t missed_next(const struct schedule_row *row, const char *zone, int64_t now_ms);

#endif
