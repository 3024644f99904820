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
         * JSON object: "agent"; "check" and "checkSeconds" (a command whose output is needed);
         * "quietHours" and "quietZone"; "mention" (the platform's id of whom to name); "buttons";
         * "askedBySelf"; "calendar" (number of the calendar event). May be NULL.
         */
        const char *options;
        int64_t at_ms;               /* one-shot */
        const char *cron, *timezone; /* periodic */
        enum schedule_missed missed;
        int64_t max_age_ms; /* a tick that is later than this is skipped; 0: never */
        enum schedule_state state;
        int64_t next_ms; /* when the next tick is due; 0: none follows */
        int64_t created_ms;
        const char *created_by; /* "telegram:42", "agent assistant", "operator"; may be NULL */
        const char *trace;      /* that of the request; may be NULL */
};

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

#endif
