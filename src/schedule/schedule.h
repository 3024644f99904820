/*
 * schedule: the daemon speaks first, on time, once.
 *
 *     event files, reminders, calendar, API ──► schedules ──► ticks ──► inbox (an agent's turn)
 *                                                                  └──► outbox (a message)
 *
 * One timer waits for the earliest due row; nothing is kept in memory per schedule. Who writes
 * rows (rows/schedule_row.h) calls schedule_wake after the commit.
 */
#ifndef SCHEDULE_SCHEDULE_H
#define SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/settings.h"
#include "road/road.h"
#include "road/road_schedule.h"

struct schedule;
struct schedule_row;

/* The section "schedule", explained in schedule_conf.c. */
struct schedule_conf {
        bool enabled;
        char *timezone; /* NULL: the system's */
        char *missed;   /* "once", "all", "skip" */
        int64_t max_age_seconds;
        int64_t pending, pending_per_person; /* limits of active schedules */
        int64_t daily_cap;                   /* unasked messages per person and day */
        int64_t fallback_seconds;            /* then a message goes to the next address */
        struct setting_list quiet_hours;     /* of everybody without their own */
        char *operator; /* "telegram:42" or "per-1": gets what has no other address; NULL: none */
};
extern const struct setting schedule_settings[];
/* Reports mistakes that the table cannot express. */
void schedule_conf_check(const struct settings_source *src, const struct schedule_conf *conf);

/* A command in the sandbox of an agent; output is what it printed, borrowed. */
typedef void schedule_check_fn(void *arg, int exit_code, const char *output,
                               const struct error *err);
struct schedule_check {
        const char *agent; /* whose sandbox; NULL: the one that would answer there */
        const char *adapter, *channel, *command;
        int64_t seconds;
};

struct schedule_env {
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct road *road;
        const char *dir; /* the data directory */
        /* 0: unknown person */
        int64_t (*person_of)(void *arg, const char *platform, const char *user);
        /*
         * NULL: there are no sandboxes. done follows once, later, perhaps after schedule_close; -1:
         * it is not called.
         */
        int (*run_check)(void *arg, const struct schedule_check *check, schedule_check_fn *done,
                         void *done_arg, struct error *err);
        /* The i-th configured adapter and its platform; false: there are no more. */
        bool (*adapter_at)(void *arg, size_t i, const char **name, const char **platform);
        /* Is an agent of this name configured? NULL: every one is. */
        bool (*has_agent)(void *arg, const char *name);
        void *arg;
};

/* Nothing runs before schedule_start. */
struct schedule *schedule_open(const struct schedule_env *env, const struct schedule_conf *conf,
                               struct error *err);
void schedule_set_conf(struct schedule *s, const struct schedule_conf *conf);
/* The adapters are configured: resumes pending ticks, then runs what is due. */
void schedule_start(struct schedule *s);
/* Starts nothing new. */
void schedule_quiesce(struct schedule *s);
void schedule_close(struct schedule *s);
/* Rows were written: looks for what is due. Cheap; may be called often. */
void schedule_wake(struct schedule *s);
void schedule_contract(struct schedule *s, struct road_schedule *out);
/* Constant, until schedule_close: store functions may read it. */
const struct schedule_conf *schedule_get_conf(const struct schedule *s);
/* Of people and event files without their own; the same holds. */
const char *schedule_default_zone(const struct schedule *s);
/*
 * Inside a store function: 1: the request key is known, *out is its row, yours to free; 0; -1:
 * ERR_CONFLICT if the stored request had another hash. Key and hash may be NULL.
 */
int schedule_find_request(struct store_tx *tx, const char *key, const char *hash,
                          struct schedule_row **out, struct error *err);
/*
 * Inside a store function, before a row is inserted: 0, or ERR_LIMIT when the person (0: none) or
 * everybody together has too many active ones.
 */
int schedule_check_limits(struct store_tx *tx, const struct schedule_conf *conf, int64_t person,
                          struct error *err);

struct schedule_stats {
        uint64_t fired; /* turns and messages handed over */
        uint64_t quiet; /* checks that had nothing to say */
        uint64_t late, skipped, failed, deferred;
        bool enabled;    /* else nothing is started */
        size_t running;  /* ticks in memory */
        int64_t next_ms; /* the next look; 0: nothing is pending */
};
void schedule_get_stats(const struct schedule *s, struct schedule_stats *out);

#endif
