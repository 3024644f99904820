/*
 * when: times as people write them.
 *
 *     30m   in 2 hours   1h30m   18:30   at 6pm   tomorrow 9:00   friday 20:00   2026-11-20 18:00
 *     20.11. 18:00   nov 20 18:00   2026-11-20T18:00:00+01:00
 *     every day 9:00   every monday 20:00   every weekday at 8am   every 2 hours   cron 0 9 * * 1-5
 */
#ifndef SCHEDULE_WHEN_H
#define SCHEDULE_WHEN_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/timezone.h"

struct when {
        int64_t at_ms;  /* 0: periodic */
        char cron[128]; /* "": once */
        size_t used;    /* bytes of the text; what follows it is the reminder's text */
};

/* A time at the beginning of the text. -1: ERR_INVALID, with examples of what is understood. */
int when_parse(const char *text, const struct time_zone *zone, int64_t now_ms, struct when *out,
               struct error *err);
/* "today 18:30", "tomorrow 09:00", "Fri 20 Nov 18:00", as seen from now in the zone. */
void when_describe(int64_t at_ms, const struct time_zone *zone, int64_t now_ms, struct buf *out);
/* "every Monday 20:00", "every day 09:00"; "`0 9 1,15 * *`" where no words are known. */
void when_describe_cron(const char *cron, struct buf *out);
/* "3 minutes", "2 hours", "5 days" */
void when_describe_span(int64_t ms, struct buf *out);

#endif
