/*
 * schedule_private: shared by the files of this folder.
 *
 *     due.c     what is due becomes ticks, and ticks that may run are claimed: one transaction
 *     tick.c    a claimed tick, from its check to the inbox or outbox
 *     missed.c  which ticks a schedule gets after a downtime
 *
 * What a tick needs of others: check.c (a command in the sandbox), tick_message.c (a message and
 * its way). What else lives here: event_files.c, reminders, the calendar.
 */
#ifndef SCHEDULE_SCHEDULE_PRIVATE_H
#define SCHEDULE_SCHEDULE_PRIVATE_H

#include <jansson.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "rows/schedule_row.h"
#include "schedule/schedule.h"

struct event_files;
struct tick_messages;
struct calendar;
struct old_conf;

struct schedule {
        struct schedule_env env;
        /* Constant: store functions read it. A new one replaces it, the old ones live on. */
        const struct schedule_conf *conf;
        struct old_conf *old;
        char *dir;
        char *system_zone;
        bool started, quiet; /* quiet: starts nothing new */
        bool closing;        /* leave failed writes to the next run */
        unsigned writes;     /* in flight; schedule_close waits for them */

        /* ---- due.c ---- */
        struct timer *timer;
        bool looking, look_again, revived;
        bool full;        /* something waits until a tick leaves memory */
        int64_t clock_ms; /* of the wall clock ahead of the boot clock, as last seen */
        bool set_back;    /* the wall clock was, or may have been: next times are checked */
        TAILQ_HEAD(tick_runs, tick_run) running;
        size_t running_count;

        /* ---- check.c ---- */
        TAILQ_HEAD(check_calls, check_call) checks; /* that wait until others have ended */
        unsigned checks_running;

        /* ---- the parts ---- */
        struct event_files *files;
        struct tick_messages *messages;
        struct calendar *calendar;
        struct schedule_stats stats;
};

/*
 * Repeats fn until it commits, then calls done. One that fails while the schedule closes is left to
 * the next run: done gets the error, and only frees arg.
 */
void schedule_write(struct schedule *s, const char *what, store_fn *fn, store_done_fn *done,
                    void *arg);

/*
 * Inside a store function: appends an event about a tick ("schedule.failed") to the journal. note
 * and trace may be NULL.
 */
int schedule_journal(struct store_tx *tx, struct bus_batch *batch, const char *type,
                     const struct schedule_row *row, const struct tick_row *tick, const char *note,
                     const char *trace, struct error *err);

/* ---- due.c ---- */

void due_open(struct schedule *s);
void due_look(struct schedule *s);
/* A tick has left memory. */
void due_left(struct schedule *s);
void due_close(struct schedule *s);

/* ---- tick.c: a claimed tick ---- */

enum tick_phase {
        TICK_PHASE_CHECK, /* its command runs */
        TICK_PHASE_SEND,  /* on the way into the inbox or outbox */
        TICK_PHASE_WAIT,  /* to try that again */
        TICK_PHASE_WRITE, /* its outcome is being stored */
};

struct tick_run {
        struct schedule *schedule;
        struct schedule_row *row;
        struct tick_row *tick;
        json_t *options;   /* of the row; an object */
        struct buf output; /* of its check; tick.c adds it to the text */
        int64_t late_ms;   /* 0: in time */
        bool direct;       /* the row's chat is a direct one */
        bool counted;      /* of the person's unasked messages; another attempt is not */
        enum tick_phase phase;
        void *check; /* check.c's own */
        TAILQ_ENTRY(tick_run) next;

        /* ---- tick.c's own ---- */
        struct timer *retry;
        struct tick_row outcome;
        char *note, *trace;
        bool stored; /* the outcome is ours */
        struct bus_batch batch;
};

/* Takes the rows. */
void tick_start(struct schedule *s, struct schedule_row *row, struct tick_row *tick, bool direct);
/* The schedule closes: ends what takes long. The next run resumes it. */
void tick_stop(struct tick_run *t);

/*
 * One of these ends what check.c or tick_message.c does with a tick; t is not theirs any more. The
 * row is written, and written again until that works. Texts are copied.
 */
/* state is one of the last four; note may be NULL. */
void tick_end(struct tick_run *t, enum tick_state state, const char *note);
/* Quiet hours: it runs at this time, and is not late then. */
void tick_defer(struct tick_run *t, int64_t not_before_ms, const char *note);
/* The delivery is stored; `address` addresses have been tried. The journal says how it ends. */
void tick_handed_over(struct tick_run *t, int64_t delivery, int64_t address, const char *note,
                      const char *trace);
/* The inbox or outbox is full: tries again from the beginning, soon. */
void tick_retry(struct tick_run *t, const char *why);
/* check.c: the command had something to say, which is in t->output; the tick goes on. */
void tick_checked(struct tick_run *t);

/* "(late: it was due today 14:30, 2 hours ago)"; appends nothing when it is in time. */
void tick_describe_lateness(const struct tick_run *t, struct buf *out);

/* ---- check.c ---- */

/* Runs options.check; then tick_checked, tick_end with TICK_QUIET, or with TICK_FAILED. */
void check_start(struct tick_run *t);
/* The schedule closes, and t goes: a result that comes later has no effect. */
void check_stop(struct tick_run *t);

/* ---- tick_message.c ---- */

/* May return NULL when there is nothing to keep. */
struct tick_messages *tick_messages_open(struct schedule *s);
/* Pending ticks may run from now on; messages under way are waited for. */
void tick_messages_start(struct schedule *s);
void tick_messages_close(struct schedule *s);
/*
 * Submits the text as a message, then tick_handed_over. Or tick_end, tick_defer, tick_retry. A tick
 * whose message certainly failed is pending again (tick_row_defer with the not_before_ms it has,
 * then schedule_wake), and comes here with the next address.
 */
void tick_message_start(struct tick_run *t);

/* ---- event_files.c ---- */

struct event_files *event_files_open(struct schedule *s);
void event_files_start(struct schedule *s);
void event_files_close(struct schedule *s);
/* A tick of a schedule with source "file" is committed. */
void event_files_ticked(struct schedule *s, const struct schedule_row *row);

/* ---- calendar/ ---- */

struct calendar *calendar_open(struct schedule *s);
void calendar_start(struct schedule *s);
void calendar_close(struct schedule *s);

/* ---- tools and commands: rows of tables, each ended by a NULL name ---- */

struct schedule_tool {
        struct road_tool tool;
        void (*call)(struct schedule *s, const struct chat_caller *by, const struct tool_request *q,
                     platform_tool_fn *done, void *arg);
};
extern const struct schedule_tool reminder_tools[]; /* schedule_tools.c */
extern const struct schedule_tool calendar_tools[]; /* calendar/ */

struct schedule_command {
        const char *name; /* "remind" */
        struct effect *(*run)(struct schedule *s, const struct chat_caller *by,
                              const struct incoming *in, const char *args);
};
extern const struct schedule_command reminder_commands[]; /* schedule_commands.c */
extern const struct schedule_command calendar_commands[]; /* calendar/ */

#endif
