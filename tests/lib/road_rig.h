/*
 * road_rig: a whole road with a real store in a temporary folder, and agents and adapters played by
 * the test.
 *
 * Agent names say how they behave: "echo" (one message a turn, may be run again), "batch" (takes
 * several), "once" (must not be run twice). The test answers turns with rig_answer, or lets
 * rig->auto_answer do it. Adapter "j" is journaled; "x" is external: its sends are answered by
 * rig->on_send; "nonce" is external and idempotent; "look" can be read back; "grow" shows answers
 * while they grow; "react" can put reactions and begin threads.
 */
#ifndef TESTS_ROAD_RIG_H
#define TESTS_ROAD_RIG_H

#include "road/road.h"

#define RIG_MAX 4096

struct rig_run {
        struct turn_run *run; /* NULL once answered or cancelled */
        char text[256];       /* inputs joined by '+' */
        int attempt;
        bool cancelled;
};

struct rig_sent {
        int64_t delivery, fence;
        char adapter[16], channel[32], thread[32], kind[16], target[16], text[256];
        char message[32], emoji[16], name[128], reply_to[32];
        bool answered, reconcile;
};

/* What the rig recalls of a channel, oldest first. */
struct rig_line {
        const char *id, *sender, *name, *text;
        bool own;
};

struct rig {
        char dir[64];
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct road *road;
        struct road_limits limits;
        struct rig_run runs[RIG_MAX];
        unsigned run_count, open_runs;
        struct rig_sent sent[RIG_MAX];
        unsigned sent_count;
        unsigned acks, duplicates, refusals;
        struct error last_error;
        char last_trace[40];
        int64_t last_event;
        int64_t debounce_ms, debounce_max_ms;
        bool auto_answer;   /* every turn is answered with "re:" and its text, soon */
        bool auto_send;     /* every send succeeds, soon */
        bool adapters_down; /* no adapter is ready */
        bool counts_turns;  /* only turns_left further turns are admitted */
        unsigned turns_left;
        const char *notice; /* what a sender beyond that is told; NULL: nothing */
        struct pace_limits pace;
        unsigned next_key;
        /* what a test wants decided otherwise, after the rig has decided; NULL: nothing */
        void (*decides)(struct rig *g, const struct incoming *in, struct decision *out);
        /*
         * decide, ending and ended asked of somebody real instead; each may be NULL
         */
        struct road_dispatch real;
        struct reply_policy policy; /* of every decision */
        /* no message can begin a thread; else it has the id "t-" and the message's */
        bool no_thread;
        bool recall_hangs; /* recalls are answered by rig_recall only */
        bool recall_fails;
        struct rig_line recalls[8];
        unsigned recall_count, recalled; /* lines, and how often they were asked for */
        channel_history_fn *recall_done;
        void *recall_arg;
        unsigned endings, ended;
        struct turn_outcome outcome;           /* of the last turn that ended */
        struct late_reply_policy late_replies; /* of every agent; max_replies 0: none are taken */
        char outcome_thread[32];
};

struct rig *rig_new(void);
/* On a folder that another rig left; it is removed by rig_free. */
struct rig *rig_new_in(const char *dir);
void rig_free(struct rig *g);
/* Closes everything in memory and opens it again from the rows, as after a restart. */
void rig_restart(struct rig *g);
/* Hands an event in; key NULL: a new one. Does not wait. */
void rig_say(struct rig *g, const char *adapter, const char *channel, const char *agent,
             const char *text, const char *key);
/*
 * The same with everything the test cares about; what is NULL is filled in (adapter "j", channel
 * "c", agent "echo" in guild, Ann).
 */
void rig_hear(struct rig *g, const struct incoming *in);
/* Turns the loop until *counter reaches at least `n`; fails the test when it takes too long. */
void rig_until(struct rig *g, const unsigned *counter, unsigned n);
/* Turns the loop until the road has nothing open and nothing under way. */
void rig_until_idle(struct rig *g);
/*
 * Turns the loop for so many milliseconds, and until what is being written is on the disk: for
 * things that must not happen.
 */
void rig_spin(struct rig *g, int64_t ms);
void rig_answer(struct rig *g, unsigned run, const char *text);
void rig_fail(struct rig *g, unsigned run, enum error_kind kind, const char *notice);
void rig_result(struct rig *g, unsigned sent, enum send_outcome outcome, enum error_kind kind,
                int64_t retry_after_ms);
/* Answers the recall that waits. */
void rig_recall(struct rig *g);
/* Turns the loop until the SQL gives at least `n`; fails the test when it takes too long. */
void rig_until_count(struct rig *g, const char *sql, int64_t n);
/* One number from the store. */
int64_t rig_count(struct rig *g, const char *sql);
/* One text from the store, "" when there is none; static memory. */
const char *rig_text(struct rig *g, const char *sql);

#endif
