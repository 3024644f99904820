/*
 * calendar_request: what somebody asks of the calendar, carried out in one store transaction.
 *
 * Commands, tools, REST, reactions and the platform's own calendar all come here, so that seats are
 * given out in one place: the transaction that counts them is the one that takes one. What people
 * are told (a free seat, a new time) is a schedule row of the same transaction.
 */
#ifndef SCHEDULE_CALENDAR_CALENDAR_REQUEST_H
#define SCHEDULE_CALENDAR_CALENDAR_REQUEST_H

#include "base/arena.h"
#include "bus/bus.h"
#include "road/road_schedule.h"
#include "schedule/calendar/calendar_view.h"
#include "schedule/schedule.h"

enum calendar_action {
        CALENDAR_CREATE,
        CALENDAR_CHANGE,
        CALENDAR_CANCEL,
        CALENDAR_INVITE,
        CALENDAR_ANSWER,
        CALENDAR_REMOVE, /* members */
        CALENDAR_SHOW,
        CALENDAR_UPCOMING, /* lists those of the chat */
};

#define CALENDAR_PEOPLE_MAX 50 /* in one request */

/* NULL, 0 and -1: not given. "" removes a text. */
struct calendar_fields {
        const char *title, *description, *place;
        const char *when;   /* "friday 20:00", see when.h */
        bool title_follows; /* ... and the title after it, or before: "friday 20:00 Chess" */
        const char *until;  /* a time, or how long: "23:00", "3h" */
        int64_t starts_ms, ends_ms;
        const char *timezone;
        int64_t capacity;    /* -1: not given; 0: no limit */
        int64_t reminder_ms; /* -1: not given; 0: none */
};

/* Strings belong to the arena of the request. */
struct calendar_by {
        const char *adapter, *platform, *channel, *thread, *guild;
        enum chat_kind chat;
        const char *user, *username, *name;
        const char *trace;
        bool admin;      /* of the adapter */
        bool everywhere; /* an agent that may reach beyond the chat */
        bool trusted;    /* by REST: may do everything */
};

struct calendar_request {
        enum calendar_action action;
        struct calendar_by by;
        int64_t event; /* 0: the only one that is coming up in the chat */
        struct calendar_fields fields;
        const char *people[CALENDAR_PEOPLE_MAX + 1]; /* "@ann", "discord:42", "per-3", "Bob" */
        size_t people_count;                         /* CALENDAR_ANSWER, 0: who asks */
        enum calendar_answer answer;
        const char *request_key;
        int64_t now_ms;
        int64_t said_ms; /* "in 2 hours" counts from then */
        /* the answer was given then: one given later counts more; 0: now */
        int64_t answered_ms;
        bool withdraws;     /* the answer was taken back: counts only if it still is this one */
        bool dry;           /* nothing is written */
        bool quiet;         /* nobody is told: the platform told them */
        bool from_platform; /* the platform shows it already */
        const char *platform_event; /* CALENDAR_CREATE: it is this one there; NULL: none */
        const struct schedule_conf *conf;
        struct arena arena;
        /* results, from scratch in each run */
        struct error refusal; /* ERR_NONE: done */
        struct calendar_view view;
        bool changed, duplicate;
        struct buf text; /* Markdown, for who asked */
        struct bus_batch batch;
};

/* Zeroed but for what "not given" means. */
struct calendar_request *calendar_request_new(enum calendar_action action,
                                              const struct schedule_conf *conf);
void calendar_request_free(struct calendar_request *q);
void calendar_request_set_by(struct calendar_request *q, const struct chat_caller *by);
/* Adds a copy to people. One more than possible is kept, and refused later. */
void calendar_request_add_person(struct calendar_request *q, const char *text, size_t n);

/* Inside a store function. 0: done, or refused with the reason in q->refusal; -1. */
int calendar_request_run(struct store_tx *tx, struct calendar_request *q, struct error *err);

/* ---- for the files of this folder ---- */

/* Sets the refusal; returns 0. */
int calendar_request_refuse(struct calendar_request *q, enum error_kind kind, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
bool calendar_request_is_refused(const struct calendar_request *q);
/* Journals "calendar.TYPE" about the event; member may be NULL. */
int calendar_request_journal(struct store_tx *tx, struct calendar_request *q, const char *type,
                             const struct calendar_event_row *row,
                             const struct calendar_member_row *m, struct error *err);
/* The person of an account; 0: nobody knows them. */
int calendar_request_person(struct store_tx *tx, const char *platform, const char *user,
                            int64_t *person, struct error *err);
/* May who asks change the event, and speak for its members? 1; 0; -1. */
int calendar_request_may_change(struct store_tx *tx, const struct calendar_request *q,
                                const struct calendar_event_row *row, struct error *err);

/* ---- calendar_members.c ---- */

int calendar_members_invite(struct store_tx *tx, struct calendar_request *q, struct error *err);
int calendar_members_answer(struct store_tx *tx, struct calendar_request *q, struct error *err);
int calendar_members_remove(struct store_tx *tx, struct calendar_request *q, struct error *err);
/* Gives free seats to who waits longest, and tells them. */
int calendar_members_promote(struct store_tx *tx, struct calendar_request *q,
                             const struct calendar_event_row *row, struct error *err);

/* ---- calendar_notices.c: schedule rows ---- */

/* A message to one member; buttons may be NULL. */
int calendar_notices_tell(struct store_tx *tx, struct calendar_request *q,
                          const struct calendar_event_row *row, const struct calendar_member_row *m,
                          const char *text, const char *buttons, struct error *err);
/* To the chat, and to members who are elsewhere. Not to those who do not come. */
int calendar_notices_tell_all(struct store_tx *tx, struct calendar_request *q,
                              const struct calendar_view *v, const char *text, struct error *err);
/* The reminders before it begins are as the event and its members are now. */
int calendar_notices_remind(struct store_tx *tx, struct calendar_request *q,
                            const struct calendar_view *v, struct error *err);
/* The answer to a command is no longer true: a message to who asked, where they asked. */
int calendar_notices_correct(struct store_tx *tx, struct calendar_request *q, struct error *err);
/* The platform will not show it: the chat is told why, once. */
int calendar_notices_not_shown(struct store_tx *tx, const struct calendar_event_row *row,
                               const char *why, struct error *err);
/* Ends the reminder of a member who goes. */
int calendar_notices_forget(struct store_tx *tx, struct calendar_request *q,
                            const struct calendar_member_row *m, struct error *err);

#endif
