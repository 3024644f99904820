/*
 * hours: times of the week, such as office hours or quiet hours.
 *
 *     "09:00-17:00"   "mon-fri 9:00-17:00"   "sat,sun 10:00-14:00"   "22:00-06:00"
 *
 * The end is exclusive. A range that ends before it begins continues after midnight and belongs to
 * the day on which it began. 24:00 is the end of a day.
 */
#ifndef BASE_HOURS_H
#define BASE_HOURS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/timezone.h"

#define HOURS_LIST_MAX 8

struct hours {
        unsigned days; /* bit 0 is Sunday */
        int from, to;  /* minutes of the day */
};
struct moment {
        int day;    /* 0 is Sunday */
        int minute; /* of the day */
};
struct hours_list {
        struct hours items[HOURS_LIST_MAX];
        size_t count;
};

/* zone NULL: the system's. */
struct moment hours_moment(const struct time_zone *zone, int64_t wall_ms);
/* 0, or -1 for a syntax error. */
int hours_parse(const char *text, struct hours *out);
bool hours_hold(const struct hours *h, struct moment m);

/* "22:00-07:00; sat,sun 22:00-10:00"; "off": none. 0, or -1 for a syntax error. */
int hours_list_parse(const char *text, struct hours_list *out);
/*
 * The first minute from wall_ms on that none of them holds: wall_ms itself if they do not hold
 * then, INT64_MAX if they never end. zone NULL: the system's.
 */
int64_t hours_list_end(const struct hours_list *list, const struct time_zone *zone,
                       int64_t wall_ms);

#endif
