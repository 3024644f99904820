/*
 * calendar_row: calendar events (game nights) and their members.
 *
 * The row is what should be: every change raises `version`, a change of title, time, place or state
 * also `sequence`. What people see follows it: `announced` is the version that the announcement
 * shows, `synced` the sequence that the platform's own event shows. Who restarts looks for rows
 * that are ahead.
 */
#ifndef ROWS_CALENDAR_ROW_H
#define ROWS_CALENDAR_ROW_H

#include "rows/rows.h"

enum calendar_state { CALENDAR_PLANNED, CALENDAR_CANCELLED };
const char *calendar_state_name(enum calendar_state state);
bool calendar_state_parse(const char *name, enum calendar_state *out);

/* All strings but uid, title and timezone may be NULL. */
struct calendar_event_row {
        int64_t id;              /* shown as "cal-N" */
        const char *uid;         /* of iCalendar, unique everywhere */
        const char *request_key; /* unique: the same request gives the same row */
        const char *title, *description, *place;
        int64_t starts_ms, ends_ms;
        const char *timezone;
        int64_t capacity; /* seats; 0: no limit */
        enum calendar_state state;
        const char *adapter, *platform;
        const char *channel, *thread; /* where it is announced; NULL: nowhere */
        int64_t reminder_ms;          /* before it begins; 0: none */
        const char *organizer;        /* "discord:42", "operator" */
        const char *organizer_name;
        const char *trace; /* that of the request that made it */
        int64_t version, sequence;
        int64_t created_ms, updated_ms;
        /* not written by calendar_row_update: */
        int64_t announcement; /* delivery; 0: none yet */
        const char *message;  /* the platform's id of it, once it is sent */
        int64_t announced, announced_sequence;
        int64_t reminder;                   /* schedule that reminds the chat; 0: none */
        const char *guild, *platform_event; /* the platform's own event */
        int64_t put;                        /* delivery under way that changes it; 0: none */
        int64_t puts;                       /* how many showed this sequence */
        int64_t synced;
};

/* 1: *id is its number; 0: request key, or platform event, is known; -1. */
int calendar_row_insert(struct store_tx *tx, const struct calendar_event_row *row, int64_t *id,
                        struct error *err);
/* 1; 0: no such event, or another version than the row's before; -1. Raises version. */
int calendar_row_update(struct store_tx *tx, const struct calendar_event_row *row,
                        struct error *err);
/* Others who change it wait until this transaction ends. 1; 0: no such event; -1. */
int calendar_row_lock(struct store_tx *tx, int64_t id, struct error *err);
/* Its members changed: raises version. */
int calendar_row_touch(struct store_tx *tx, int64_t id, int64_t now_ms, struct error *err);

int calendar_row_get(struct store_tx *tx, int64_t id, struct calendar_event_row **out,
                     struct error *err);
int calendar_row_get_request(struct store_tx *tx, const char *request_key,
                             struct calendar_event_row **out, struct error *err);
int calendar_row_get_platform(struct store_tx *tx, const char *adapter, const char *platform_event,
                              struct calendar_event_row **out, struct error *err);
/* The event that this message announces. channel: the chat it is in, which may be a thread. */
int calendar_row_get_message(struct store_tx *tx, const char *adapter, const char *channel,
                             const char *message, struct calendar_event_row **out,
                             struct error *err);
struct calendar_event_row *calendar_row_dup(const struct calendar_event_row *row); /* free() it */

/* NULL and 0 do not filter. */
struct calendar_filter {
        const char *adapter, *channel; /* channel needs adapter */
        const char *adapters;          /* see ROWS_IF_ADAPTERS; events of no adapter are hidden */
        const enum calendar_state *state;
        int64_t ends_after_ms, starts_before_ms;
        int64_t after_ms, after_id; /* the last row of the page before */
        int64_t limit;
};
/* By start, then number. */
struct store_stmt *calendar_row_list(struct store_tx *tx, const struct calendar_filter *f);
/* Rows whose announcement or platform event is behind, or not yet known to be sent; by number. */
struct store_stmt *calendar_row_list_behind(struct store_tx *tx, int64_t after_id, int64_t limit);
int calendar_row_next(struct store_stmt *s, struct calendar_event_row *out, struct error *err);
/* Planned ones that have not ended, or -1. */
int64_t calendar_row_count_open(struct store_tx *tx, int64_t now_ms, struct error *err);
/* Deletes up to `limit` events that ended before, with their members. How many, or -1. */
int64_t calendar_row_prune(struct store_tx *tx, int64_t ended_before_ms, int64_t limit,
                           struct error *err);

/* ---- what people see of it ---- */

/* The delivery shows this version and sequence; 0: none does, and none will. */
int calendar_row_set_announced(struct store_tx *tx, int64_t id, int64_t delivery, int64_t version,
                               int64_t sequence, struct error *err);
/* message NULL: it never arrived, so that the next change announces it again. */
int calendar_row_set_message(struct store_tx *tx, int64_t id, int64_t delivery, const char *message,
                             struct error *err);
int calendar_row_set_reminder(struct store_tx *tx, int64_t id, int64_t schedule, struct error *err);
/* The delivery (0: none is needed) shows this sequence on the platform. */
int calendar_row_set_put(struct store_tx *tx, int64_t id, int64_t delivery, int64_t sequence,
                         int64_t puts, struct error *err);
/* A put has ended: the platform's event is this one; NULL: there is none. */
int calendar_row_set_platform(struct store_tx *tx, int64_t id, const char *platform_event,
                              struct error *err);

/* ---- members ---- */

enum calendar_answer {
        ANSWER_INVITED, /* has not answered */
        ANSWER_YES,     /* has a seat */
        ANSWER_NO,
        ANSWER_MAYBE,
        ANSWER_WAITING, /* said yes, and waits for a seat */
};
const char *calendar_answer_name(enum calendar_answer answer);
bool calendar_answer_parse(const char *name, enum calendar_answer *out);

struct calendar_member_row {
        int64_t id, event;
        int64_t person;              /* user_id "per-N"; 0: nobody we know more of */
        const char *external_source; /* the platform; "name": somebody without an account */
        const char *external_id;
        const char *display_name; /* may be NULL */
        enum calendar_answer answer;
        int64_t queue_no; /* order of the waiting list; 0: not in it */
        int64_t since_ms; /* of the answer */
        int64_t reminder; /* schedule that reminds them; 0: none */
        /* their account that follows the platform's event; NULL: none. Only set_interest writes it.
         */
        const char *interest;
};

int calendar_member_row_insert(struct store_tx *tx, const struct calendar_member_row *row,
                               int64_t *id, struct error *err);
/* Writes person, external_*, display_name, answer, queue_no, since_ms and reminder. */
int calendar_member_row_update(struct store_tx *tx, const struct calendar_member_row *row,
                               struct error *err);
int calendar_member_row_set_interest(struct store_tx *tx, int64_t id, const char *user,
                                     struct error *err);
int calendar_member_row_delete(struct store_tx *tx, int64_t id, struct error *err);
int calendar_member_row_get(struct store_tx *tx, int64_t id, struct calendar_member_row **out,
                            struct error *err);
/* By account, or by person (0: not known). */
int calendar_member_row_find(struct store_tx *tx, int64_t event, int64_t person, const char *source,
                             const char *external_id, struct calendar_member_row **out,
                             struct error *err);
/* Names like it, ignoring case: 1 if it is exactly one member. */
int calendar_member_row_find_name(struct store_tx *tx, int64_t event, const char *name,
                                  struct calendar_member_row **out, struct error *err);
/* The first of the waiting list. */
int calendar_member_row_first_waiting(struct store_tx *tx, int64_t event,
                                      struct calendar_member_row **out, struct error *err);
/* -1 on error. */
int64_t calendar_member_row_count(struct store_tx *tx, int64_t event, enum calendar_answer answer,
                                  struct error *err);
int64_t calendar_member_row_count_all(struct store_tx *tx, int64_t event, struct error *err);
/* A number after all of the waiting list, or -1. */
int64_t calendar_member_row_next_queue_no(struct store_tx *tx, int64_t event, struct error *err);
/* How many wait before this number, or -1. */
int64_t calendar_member_row_count_before(struct store_tx *tx, int64_t event, int64_t queue_no,
                                         struct error *err);
/* The waiting list in order, others by number. */
struct store_stmt *calendar_member_row_list(struct store_tx *tx, int64_t event);
int calendar_member_row_next(struct store_stmt *s, struct calendar_member_row *out,
                             struct error *err);
struct calendar_member_row *calendar_member_row_dup(const struct calendar_member_row *row);

#endif
