/*
 * calendar_ics: events as an iCalendar file (RFC 5545), for people's own calendars.
 *
 * Times are written in UTC, so no VTIMEZONE is needed: our events do not recur. Any text is
 * accepted; it is escaped, and controls are left out. Lines are folded between characters.
 */
#ifndef SCHEDULE_CALENDAR_CALENDAR_ICS_H
#define SCHEDULE_CALENDAR_CALENDAR_ICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum ics_answer { ICS_INVITED, ICS_YES, ICS_MAYBE, ICS_NO, ICS_WAITING };

/* A person; the organizer has no answer. Strings are borrowed. */
struct ics_person {
        const char *source, *id; /* "discord", "123"; "person", "per-3"; NULL: only a name */
        const char *name;
        enum ics_answer answer;
};

struct ics_event {
        const char *uid;                 /* stays the same while the event changes */
        int64_t sequence;                /* grows with each change of time or place */
        const char *title;               /* required */
        const char *description, *place; /* may be NULL */
        const char *url;                 /* of the announcement; may be NULL */
        int64_t starts_ms, ends_ms;      /* no end: ends_ms is not after starts_ms */
        int64_t created_ms, updated_ms;
        bool cancelled;
        int64_t reminder_ms;                /* an alarm this long before it begins; 0: none */
        const struct ics_person *organizer; /* may be NULL: no members are written either */
        const struct ics_person *members;
        size_t member_count;
};

/* What the receiver is to do with it (RFC 5546). A publication names no members. */
enum ics_method {
        ICS_STORED, /* no METHOD: a file or a feed */
        ICS_PUBLISH,
        ICS_REQUEST,
        ICS_CANCEL,
};

/* BEGIN:VCALENDAR ...; `name` (may be NULL) is what calendars show for a feed. */
void calendar_ics_begin(struct buf *out, enum ics_method method, const char *name);
void calendar_ics_event(struct buf *out, enum ics_method method, const struct ics_event *e);
void calendar_ics_end(struct buf *out);

#endif
