/*
 * reminder_text: the time and the text of a wish such as "me in 30 minutes to call mum", "tomorrow
 * 9:00 Europe/Paris tea" or "call mum at 6pm".
 */
#ifndef SCHEDULE_REMINDER_TEXT_H
#define SCHEDULE_REMINDER_TEXT_H

#include "base/arena.h"
#include "schedule/when.h"

struct reminder_text {
        struct when when;
        const char *text;     /* borrowed, or in the arena; "": there is none */
        const char *timezone; /* in the arena; NULL: it names none */
};

/*
 * when: the time, and before or after it the text, unless that is given; then the time stands
 * alone, and "cron" may have six fields. -1: ERR_INVALID, as of when_parse.
 */
int reminder_text_read(const char *when, const char *text, const struct time_zone *zone,
                       int64_t now_ms, struct arena *a, struct reminder_text *out,
                       struct error *err);
/* The time is last: "call mum in 30 minutes". 1; 0: it is not; -1. */
int reminder_text_read_last(const char *all, const struct time_zone *zone, int64_t now_ms,
                            struct arena *a, struct reminder_text *out, struct error *err);

#endif
