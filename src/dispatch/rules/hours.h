/*
 * hours: times of the day and the week at which a rule applies.
 *
 *     "09:00-17:00"   "mon-fri 09:00-17:00"   "sat,sun 10:00-14:00"   "22:00-06:00"
 *
 * The end is exclusive. A range that ends before it begins continues after midnight and belongs to
 * the day on which it began. 24:00 is the end of a day.
 */
#ifndef DISPATCH_RULES_HOURS_H
#define DISPATCH_RULES_HOURS_H

#include <stdbool.h>

struct hours {
        unsigned days; /* bit 0 is Sunday */
        int from, to;  /* minutes of the day */
};

/* A time by the rule's clock. */
struct moment {
        int day;    /* 0 is Sunday */
        int minute; /* of the day */
};

/* 0, or -1 for a syntax error. */
int hours_parse(const char *text, struct hours *out);
bool hours_hold(const struct hours *h, struct moment m);

#endif
