/*
 * schedule_row: what is to happen when (schedules), and each time it did (ticks).
 *
 * A tick is inserted, unique by schedule and due time, in the transaction that moves the schedule's
 * next time on; only then does anything run. Whatever runs carries the tick's number as its dedup
 * or request key, so that a crash repeats nothing.
 */
#ifndef ROWS_SCHEDULE_ROW_H
#define ROWS_SCHEDULE_ROW_H

#include "rows/rows.h"

enum schedule_kind { SCHEDULE_IMMEDIATE, SCHEDULE_ONE_SHOT, SCHEDULE_PERIODIC };
enum schedule_action {
        SCHEDULE_TURN,    /* the text goes to an agent, as schedule.fired */
        SCHEDULE_MESSAGE, /* the text is a message to a chat or person */
};
enum schedule_missed { MISSED_ONCE, MISSED_ALL, MISSED_SKIP };
enum schedule_state { SCHEDULE_ACTIVE, SCHEDULE_DONE, SCHEDULE_CANCELLED };

const char *schedule_kind_name(enum schedule_kind kind); /* "one-shot" */
bool schedule_kind_parse(const char *name, enum schedule_kind *out);
const char *schedule_action_name(enum schedule_action action);
const char *schedule_missed_name(enum schedule_missed missed);
bool schedule_missed_parse(const char *name, enum schedule_missed *out);
const char *schedule_state_name(enum schedule_state state);
bool schedule_state_parse(const char *name, enum schedule_state *out);

struct schedule_row {
        int64_t id;              /* shown as "sch-N" */
        const char *source;      /* "file", "reminder", "notice", "calendar" or "api" */
        const char *name;        /* of the file, or a title */
        const char *request_key; /* unique: the same request gives the same row; may be NULL */
        enum schedule_kind kind;
        enum schedule_action action;
        /* where; all NULL with a person: wherever they are reached */
        const char *adapter, *channel, *thread;
        int64_t person; /* for whom; 0: the chat */
        const char *text;
        /*
         * JSON object: "chat" ("dm": a direct chat); "agent"; "at" (as it was written); "check" and
         * "checkSeconds" (a command whose output is needed); "quietHours" and "quietZone";
         * "mention" (the platform's id of whom to name); "buttons"; "askedBySelf"; "requestHash";
         * "calendar" (number of the calendar event). May be NULL.
         */
        const char *options;
        int64_t at_ms;               /* one-shot */
        const char *cron, *timezone; /* periodic */
        enum schedule_missed missed;
        int64_t max_age_ms; /* a tick that is later than this is skipped; 0: never */
        enum schedule_state state;
        int64_t next_ms; /* when the next tick is due; 0: none follows */
        /* what next_ms was before the clock was set back; 0: next_ms has reached it */
        int64_t ahead_ms;
        int64_t created_ms;
        int64_t ended_ms;       /* 0: it is active */
        const char *created_by; /* "telegram:42", "agent assistant", "operator"; may be NULL */
        const char *trace;      /* that of the request; may be NULL */
        /*
         * Read only. "this version does not know its kind 'solar'": a newer version wrote it, or it
         * is damaged; it must not run. A state that is not known counts as cancelled. Empty: it is
         * valid.
         */
        char unknown[80];
};

/*
 * 1: added; 0: the request key is known, *id is its row; -1. id, ahead_ms and ended_ms are not
 * read.
 */
int schedule_row_insert(struct store_tx *tx, const struct schedule_row *row, int64_t *id,
                        struct error *err);
int schedule_row_get(struct store_tx *tx, int64_t id, struct schedule_row **out, struct error *err);
int schedule_row_find(struct store_tx *tx, const char *request_key, struct schedule_row **out,
                      struct error *err);
/*
 * Stores everything but source, request_key, state and who made it and when; ahead_ms becomes 0.
 * 1; 0: it is not active; -1.
 */
int schedule_row_update(struct store_tx *tx, const struct schedule_row *row, struct error *err);
/*
 * Moves the next time on; to 0: none follows, the schedule is done. 1; 0: its next time is no
 * longer `from`, or it is not active; -1.
 */
int schedule_row_advance(struct store_tx *tx, int64_t id, int64_t from_ms, int64_t to_ms,
                         int64_t now_ms, struct error *err);
/* The clock was set back: the next time is an earlier one. Returns as schedule_row_advance. */
int schedule_row_set_back(struct store_tx *tx, int64_t id, int64_t from_ms, int64_t to_ms,
                          struct error *err);
/* Ends it, and skips its ticks that do not run yet. 1; 0: there was nothing to end; -1. */
int schedule_row_cancel(struct store_tx *tx, int64_t id, const char *note, int64_t now_ms,
                        struct error *err);
/* Active ones of a person; 0: in all. How many, or -1; counts no further than `enough`. */
int64_t schedule_row_count(struct store_tx *tx, int64_t person, int64_t enough, struct error *err);
/* *out: the earliest time at which a schedule or a pending tick is due; 0: never. */
int schedule_row_first_ms(struct store_tx *tx, int64_t *out, struct error *err);

struct schedule_filter {
        int64_t before;                   /* 0: from the newest on */
        const enum schedule_state *state; /* NULL: any */
        const char *source;               /* NULL here and below: any */
        const char *adapter, *channel;
        const char *adapters; /* see ROWS_IF_ADAPTERS; those of a person have none */
        int64_t person;       /* 0: any */
        int64_t limit;
};
/* Newest first. */
struct store_stmt *schedule_row_list(struct store_tx *tx, const struct schedule_filter *f);
/* Active ones that will be due, earliest first; `before` and `state` are not read. */
struct store_stmt *schedule_row_list_next(struct store_tx *tx, const struct schedule_filter *f);
/* Active ones that are due, earliest first. */
struct store_stmt *schedule_row_list_due(struct store_tx *tx, int64_t now_ms, int64_t limit);
/* Active periodic ones that are not due, after this number, in order. */
struct store_stmt *schedule_row_list_periodic(struct store_tx *tx, int64_t now_ms, int64_t after,
                                              int64_t limit);
/* Active ones of event files: in a chat, else of this name, else all. NULL: not given. */
struct store_stmt *schedule_row_list_files(struct store_tx *tx, const char *adapter,
                                           const char *channel, const char *name);
/* An active one gets another request key, because what it stands for was written again. */
int schedule_row_set_key(struct store_tx *tx, int64_t id, const char *request_key,
                         struct error *err);
int schedule_row_next(struct store_stmt *s, struct schedule_row *out, struct error *err);
struct schedule_row *schedule_row_dup(const struct schedule_row *row); /* free() it */

/* ---- ticks ---- */

enum tick_state {
        TICK_PENDING, /* to be run, not before not_before_ms */
        TICK_RUNNING, /* its check runs, or its message is under way */
        TICK_DONE,    /* handed to an agent, or sent */
        TICK_QUIET,   /* its check had nothing to say */
        TICK_SKIPPED, /* too late, or the policy left it out */
        TICK_FAILED,
};
const char *tick_state_name(enum tick_state state);
bool tick_state_parse(const char *name, enum tick_state *out);

/* The note of a tick that somebody wants now: it knows no quiet hours. */
#define TICK_BY_HAND "run by hand"

struct tick_row {
        int64_t id; /* shown as "tck-N" */
        int64_t schedule;
        int64_t due_ms;
        int64_t runs; /* how many due times it stands for: 1, or more after a downtime */
        enum tick_state state;
        int64_t not_before_ms;        /* later than due_ms: quiet hours, or another attempt */
        int64_t started_ms, ended_ms; /* 0: not yet */
        int64_t event;                /* schedule.fired in the journal; 0: none */
        int64_t delivery;             /* the last one; 0: none */
        int64_t address;              /* how many of the person's addresses were tried */
        const char *note;             /* what happened, for people; may be NULL */
};

/* 1: added, *id set; 0: there is one of this due time; -1. */
int tick_row_insert(struct store_tx *tx, const struct tick_row *row, int64_t *id,
                    struct error *err);
int tick_row_get(struct store_tx *tx, int64_t id, struct tick_row **out, struct error *err);
/* By the number of its delivery. */
int tick_row_find(struct store_tx *tx, int64_t delivery, struct tick_row **out, struct error *err);
/* Pending to running. 1; 0: somebody else has it; -1. */
int tick_row_claim(struct store_tx *tx, int64_t id, int64_t now_ms, struct error *err);
/* Back to pending. 1; 0: it has ended; -1. */
int tick_row_defer(struct store_tx *tx, int64_t id, int64_t not_before_ms, const char *note,
                   struct error *err);
/* Its message is under way, to the address-th address. 1; 0: it has ended; -1. */
int tick_row_set_delivery(struct store_tx *tx, int64_t id, int64_t delivery, int64_t address,
                          const char *note, struct error *err);
/* Stores state, event, note and ended_ms. 1; 0: it has ended; -1. */
int tick_row_end(struct store_tx *tx, const struct tick_row *row, struct error *err);
/* Those that ran when the process ended, and have no message under way, are pending again. */
int64_t tick_row_revive(struct store_tx *tx, struct error *err);
/*
 * A turn of one of the schedule's last ticks before due_ms that has not ended. 1; 0: there is none;
 * -1.
 */
int tick_row_find_turn(struct store_tx *tx, int64_t schedule, int64_t due_ms, int64_t *turn,
                       struct error *err);

struct tick_filter {
        int64_t schedule;             /* 0: any */
        int64_t before;               /* 0: from the newest on */
        const enum tick_state *state; /* NULL: any */
        int64_t limit;
};
/* Newest first. */
struct store_stmt *tick_row_list(struct store_tx *tx, const struct tick_filter *f);
/* Pending ones that may run, the one that waits longest first. */
struct store_stmt *tick_row_list_ready(struct store_tx *tx, int64_t now_ms, int64_t limit);
/* Running ones with a message under way after this number, in order. */
struct store_stmt *tick_row_list_sending(struct store_tx *tx, int64_t after, int64_t limit);
/* A state that is not known counts as failed. */
int tick_row_next(struct store_stmt *s, struct tick_row *out, struct error *err);
struct tick_row *tick_row_dup(const struct tick_row *row); /* free() it */

#endif
