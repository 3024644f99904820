/*
 * cron: when a periodic schedule is due.
 *
 * Five fields (minute hour day-of-month month day-of-week) or six with seconds first; lists,
 * ranges, steps, names (jan, mon), L for the last day of a month, `mon#2` and `fri#L`, ? like *,
 * and @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually. When both days are
 * restricted, either of them matches.
 *
 * Times are those of the zone. A time in a skipped hour is due at the first moment after it, once;
 * a time in a doubled hour is due the first time only. A schedule for every hour follows elapsed
 * time instead: it loses no hour and counts both.
 */
#ifndef SCHEDULE_CRON_H
#define SCHEDULE_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/timezone.h"

struct cron {
        uint64_t seconds, minutes; /* bit n: n matches */
        uint32_t hours, days;
        uint16_t months;
        uint8_t weekdays;       /* bit 0 is Sunday */
        uint8_t nth_weekday[7]; /* bit n-1: the n-th of the month; bit 5: the last */
        bool last_day;          /* of the month */
        bool any_day, any_weekday;
};

/* -1: ERR_INVALID that names the field and what it takes, or says that it is never due. */
int cron_parse(const char *text, struct cron *out, struct error *err);
/* The first due time after `after_ms` (wall clock); 0: there is none within 100 years. */
int64_t cron_next(const struct cron *c, const struct time_zone *zone, int64_t after_ms);

#endif
