/*
 * budget: what the turns of today have cost, by adapter and by rule, and what those that have not
 * ended yet will cost.
 *
 * A day goes from midnight to midnight UTC. What a turn costs is known when it ends. Until then it
 * counts as much as the turns of its agent cost lately, so that many turns at once do not pass a
 * budget that one after the other would have kept. A new turn may begin while the sum is below the
 * budget: what is spent in the end passes it by that one turn and by how far the guesses were off.
 * Nothing is expected of an agent whose turns never cost anything, nor of one that is asked for the
 * first time; how many turns run at once is limited in other places.
 *
 * After a restart the sums are read again from the turns.
 */
#ifndef DISPATCH_LIMITS_BUDGET_H
#define DISPATCH_LIMITS_BUDGET_H

#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

struct budget;

/* Strings are borrowed. */
struct budget_turn {
        /* tells turns apart, together with the adapter; NULL: nothing is expected of it */
        const char *trace;
        const char *adapter;
        const char *rule;  /* may be NULL */
        const char *agent; /* may be NULL */
};

struct budget_sum {
        int64_t spent;    /* microusd, today */
        int64_t expected; /* of turns that have not ended */
        unsigned open;    /* how many of those something is expected of */
};

struct budget *budget_new(void);
void budget_free(struct budget *b);
/* A turn will be run. */
void budget_begin(struct budget *b, const struct budget_turn *t, int64_t now_ms);
/* It has ended and cost so much; also for a turn that was never told to begin. */
void budget_end(struct budget *b, const struct budget_turn *t, int64_t microusd, int64_t now_ms);
struct budget_sum budget_of_adapter(const struct budget *b, const char *adapter, int64_t now_ms);
struct budget_sum budget_of_rule(const struct budget *b, const char *rule, int64_t now_ms);
/* Blocks while reading. */
int budget_restore(struct budget *b, struct store *s, int64_t now_ms, struct error *err);

#endif
