/*
 * reminders: schedules that people, agents and programs ask for.
 *
 * Used by the chat commands, the tools for agents and the API. All of it runs inside store
 * functions; a schedule's conf may be read there.
 */
#ifndef SCHEDULE_REMINDERS_H
#define SCHEDULE_REMINDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "rows/schedule_row.h"
#include "schedule/schedule.h"

#define REMINDER_TEXT_MAX 4000 /* bytes */
#define REMINDERS_SHOWN   50

/* Strings are borrowed; NULL: not given. */
struct reminder_wish {
        const char *source;       /* "reminder": of a person; "api" */
        const char *request_key;  /* see struct schedule_row */
        const char *request_hash; /* see schedule_find_request */
        const char *name;         /* NULL: the beginning of the text */
        const char *when;         /* see when.h; without `text` the text follows or precedes it */
        const char *text;
        const char *timezone; /* NULL: the person's, else the configured one, else the system's */
        const char *adapter, *channel, *thread;
        int64_t person;
        enum schedule_action action;
        const char *agent;   /* of a turn */
        const char *mention; /* the platform's id of whom to name */
        bool asked_by_self;
        const char *missed;      /* NULL: the configured policy */
        int64_t max_age_seconds; /* 0: none; -1: the configured one, none for a reminder */
        const char *created_by, *trace;
        int64_t now_ms; /* when it was asked for: times count from here */
};

/*
 * Reads the time and makes the row, whose strings are in the arena. -1: ERR_INVALID, ERR_LIMIT,
 * or the store's.
 */
int reminder_make(struct store_tx *tx, const struct schedule_conf *conf,
                  const struct reminder_wish *w, struct arena *a, struct schedule_row *out,
                  struct error *err);
/* The zone of a person (0: of everybody), in the arena. NULL: the store's error. */
const char *reminder_zone(struct store_tx *tx, const struct schedule_conf *conf, int64_t person,
                          struct arena *a, struct error *err);
/* "today 18:30", or "every time `0 9 * * *` says, next tomorrow 09:00"; in the row's zone. */
void reminder_describe_time(const struct schedule_row *row, int64_t now_ms, struct buf *out);

/* Who looks at schedules, and from where. Strings are borrowed. */
struct reminder_viewer {
        int64_t person; /* 0: unknown */
        /* "telegram:42"; NULL: unknown */
        const char *identity;
        const char *adapter, *channel;
        bool direct;     /* only they read here: shows what they have elsewhere, too */
        bool shared;     /* shows everybody's of this chat */
        bool everywhere; /* shows all */
};
/* "telegram:42", in the arena; NULL: unknown. */
const char *reminder_identity(struct arena *a, const char *platform, const char *user);
/* *person: 0 if it is unknown. */
int reminder_person(struct store_tx *tx, const char *platform, const char *user, int64_t *person,
                    struct error *err);
/* Active ones, earliest first; free() each. How many, or -1. *more: some are left out. */
int reminders_list(struct store_tx *tx, const struct reminder_viewer *v,
                   struct schedule_row *out[REMINDERS_SHOWN], bool *more, struct error *err);
/*
 * May they cancel it? 0, and *out is yours to free. -1: ERR_MISSING also for what they may not see,
 * ERR_CONFLICT if it has ended or belongs to a file or calendar event. v NULL: may see all.
 */
int reminder_check_cancel(struct store_tx *tx, const struct reminder_viewer *v, int64_t id,
                          struct schedule_row **out, struct error *err);
/* Runs it now, besides its times. *tick is set. -1: ERR_MISSING, ERR_CONFLICT. */
int reminder_run(struct store_tx *tx, int64_t id, int64_t now_ms, int64_t *tick, struct error *err);
/* "sch-12" or "12"; 0: neither. */
int64_t reminder_number(const char *text);

#endif
