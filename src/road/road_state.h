/*
 * road_state: the road itself. For src/road alone.
 *
 * Three kinds of things live in memory, each rebuilt from rows at start: events that are committed
 * but not decided (inbox/), lanes with their queued and running turns (turn/), and open deliveries
 * in their queues (outbox/). Everything idle lives in the store alone, so that a hundred thousand
 * known conversations cost nothing.
 */
#ifndef ROAD_ROAD_STATE_H
#define ROAD_ROAD_STATE_H

#include "road/inbox/decide.h"
#include "road/numbers.h"
#include "road/outbox/delivery_job.h"
#include "road/road.h"
#include "road/turn/turn.h"

#define ROAD_KEY_BREAK "\x1f"     /* between the parts of a key; no platform has it in an id */
#define ROAD_CURSOR    "dispatch" /* events up to here are decided */
#define TURNS_CURSOR   "turns"    /* no open turn needs events up to here; moved by prune.c */

struct road {
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct road_dispatch dispatch;
        struct road_agents agents;
        struct road_platforms platforms;
        struct road_limits limits;
        char owner[17]; /* names this run of the process */
        struct numbers turn_numbers, delivery_numbers;
        struct inbox inbox;
        struct turns turns;
        struct outbox outbox;
        struct road_stats stats;
        unsigned writes; /* under way, reads as well; road_close waits for them */
        struct timer *prune;
        bool resumed; /* what an earlier run left is in memory; others may be asked */

        bool draining; /* nothing new is started */
        bool closing;  /* what cannot be written now is left to the next run */
        struct timer *drain_timer;
        void (*drained)(void *arg);
        void *drained_arg;
};

/* ---- road.c ---- */

/* "trn-12" */
char *road_key(const char *prefix, int64_t n, char out[ROAD_KEY_SIZE]);
/*
 * A write that must succeed in the end, because memory has gone ahead of it: repeats fn with
 * growing pauses, and calls done once it is committed. `what` is for the log.
 */
void road_write(struct road *r, const char *what, store_fn *fn, void (*done)(void *arg), void *arg);
void road_check_drained(struct road *r);
void road_numbers_refilled(struct road *r);

/* ---- recover.c ---- */

/* Reads what an earlier run left; turns go on when the loop runs. */
int recover_open(struct road *r, struct error *err);

/* ---- prune.c ---- */

void prune_begin(struct road *r); /* from now on, every minute */
void prune_run(void *road);       /* now */

#endif
