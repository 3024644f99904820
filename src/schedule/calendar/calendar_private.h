/* calendar_private: shared by the files of this folder. */
#ifndef SCHEDULE_CALENDAR_CALENDAR_PRIVATE_H
#define SCHEDULE_CALENDAR_CALENDAR_PRIVATE_H

#include "schedule/calendar/calendar.h"
#include "schedule/schedule_private.h"

struct calendar {
        struct schedule *schedule;
        struct calendar_announcer *announcer;
        struct calendar_inbox *inbox;
};

/* ---- calendar_announce.c: rows become deliveries ---- */

struct calendar_announcer *calendar_announcer_new(struct schedule *s);
/* Looks for rows that are ahead. Cheap; may be called often. */
void calendar_announcer_wake(struct calendar_announcer *a);
/* What is in the store's queue ends later and does nothing. */
void calendar_announcer_free(struct calendar_announcer *a);

/* ---- calendar_inbox.c: reactions, and changes in the platform's calendar ---- */

struct calendar_inbox *calendar_inbox_new(struct schedule *s);
void calendar_inbox_free(struct calendar_inbox *i);

/* ---- calendar_commands.c ---- */

struct effect *calendar_command(struct schedule *s, const struct chat_caller *by,
                                const struct incoming *in, const char *args);
/* "new friday 20:00 Chess; seats 4". NULL: it asks for help, or *wrong says what is wrong. */
struct calendar_request *calendar_command_parse(const struct schedule_conf *conf, const char *args,
                                                struct error *wrong);

#endif
