/*
 * road_state: the road's state in memory, for src/road alone. Rebuilt from rows at start; idle
 * conversations exist only in the store.
 */
#ifndef ROAD_ROAD_STATE_H
#define ROAD_ROAD_STATE_H

#include "road/inbox/decide.h"
#include "road/numbers.h"
#include "road/outbox/delivery_job.h"
#include "road/road.h"
#include "road/turn/turn.h"
#include "rows/approval_row.h"

#define ROAD_KEY_BREAK "\x1f"     /* separates parts of a key; never part of a platform's ids */
#define ROAD_CURSOR    "dispatch" /* events up to here are decided */
#define TURNS_CURSOR   "turns"    /* no open turn needs events up to here; moved by prune.c */

/* See approval.c. */
struct approvals {
        struct map open;    /* by key: "apr-12" */
        struct map by_turn; /* the first of each turn's, by the turn's key */
        size_t parked;      /* turns that wait for one */
        struct approval_rule_row **rules;
        size_t rule_count;
        const char **matching; /* of turn_approval_rules */
};

struct road {
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct road_dispatch dispatch;
        struct road_agents agents;
        struct road_platforms platforms;
        struct road_schedule schedule; /* all NULL: there is none */
        struct road_limits limits;
        char owner[17]; /* names this run of the process */
        struct numbers turn_numbers, delivery_numbers;
        struct inbox inbox;
        struct turns turns;
        struct outbox outbox;
        struct approvals approvals;
        struct road_stats stats;
        unsigned writes; /* and reads in flight; road_close waits for them */
        struct timer *prune;
        bool resumed;  /* open rows are loaded; agents and adapters may be called */
        bool draining; /* nothing new is started */
        bool closing;  /* leave failed writes to the next run */
        struct timer *drain_timer;
        void (*drained)(void *arg);
        void *drained_arg;
};

/* ---- road.c ---- */

/* "trn-12" */
char *road_key(const char *prefix, int64_t n, char out[ROAD_KEY_SIZE]);
/*
 * For writes that memory already reflects: repeats fn until it commits, then calls done. One that
 * fails while the road closes is left to the next run: done gets the error, and only frees arg.
 */
void road_write(struct road *r, const char *what, store_fn *fn, store_done_fn *done, void *arg);
/* The same; also calls failed after every attempt that is repeated. */
void road_write_watched(struct road *r, const char *what, store_fn *fn, store_done_fn *done,
                        store_done_fn *failed, void *arg);
void road_check_drained(struct road *r);
void road_numbers_refilled(struct road *r);

/* ---- recover.c ---- */

int recover_open(struct road *r, struct error *err);

/* ---- prune.c ---- */

void prune_begin(struct road *r);
void prune_run(void *road);

#endif
