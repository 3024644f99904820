/*
 * calendar_view: an event with its members, and how it looks: as a message, in one line, as JSON.
 */
#ifndef SCHEDULE_CALENDAR_CALENDAR_VIEW_H
#define SCHEDULE_CALENDAR_CALENDAR_VIEW_H

#include "base/buf.h"
#include "rows/calendar_row.h"
#include "schedule/calendar/calendar_ics.h"

struct calendar_view {
        struct calendar_event_row *row;
        struct calendar_member_row **members; /* the waiting list in order */
        size_t count;
};

/* Inside a store function. 1; 0: no such event; -1. Release it in any case. */
int calendar_view_load(struct store_tx *tx, int64_t id, struct calendar_view *out,
                       struct error *err);
void calendar_view_release(struct calendar_view *v);
size_t calendar_view_answers(const struct calendar_view *v, enum calendar_answer answer);

/* ---- Markdown; text of people is escaped ---- */

/* On one line. */
void calendar_view_escape(const char *text, struct buf *out);
/* "**Catan**" */
void calendar_view_title(const struct calendar_event_row *row, struct buf *out);
/* "Fri 20 Nov 2026, 20:00 to 22:00 (Europe/Berlin)" */
void calendar_view_time(const struct calendar_event_row *row, struct buf *out);
/* "**Catan** (`cal-3`), Fri 20 Nov 2026, 20:00 to 22:00 (Europe/Berlin)" */
void calendar_view_name(const struct calendar_event_row *row, struct buf *out);
/* The message that announces it: one message on every platform. */
void calendar_view_announcement(const struct calendar_view *v, struct buf *out);
/* "`cal-3` **Catan**, Fri ..., at Ann's: 2 of 4 come" */
void calendar_view_line(const struct calendar_view *v, struct buf *out);
/* Their name, else "discord:42". */
void calendar_view_member(const struct calendar_member_row *m, struct buf *out);
/* Up to `most` of those who answered so: "Ann, Ben and 3 more". */
#define CALENDAR_NAMES_SHOWN 25
void calendar_view_names(const struct calendar_view *v, enum calendar_answer answer, size_t most,
                         struct buf *out);
/* JSON rows of buttons; none for one that was cancelled. */
void calendar_view_buttons(const struct calendar_event_row *row, struct buf *out);

/* ---- for programs ---- */

void calendar_view_json(struct buf *b, const char *key, const struct calendar_view *v);
void calendar_view_member_json(struct buf *b, const char *key, const struct calendar_member_row *m);
void calendar_view_ics(struct buf *out, enum ics_method method, const struct calendar_view *v);

#endif
