/*
 * budget: what today's turns have cost, by adapter and by rule, and what unfinished turns will
 * cost.
 *
 * A day is from midnight to midnight UTC. A turn's cost is known when it ends; until then it counts
 * as much as recent turns of its agent cost, so that many turns at once cannot exceed a budget that
 * one after the other would have kept. A turn may begin while the sum is below the budget, so the
 * budget is exceeded by at most that turn and the error of the estimates. Nothing is expected of an
 * agent that never cost anything or runs for the first time.
 *
 * budget_restore reads the sums from the turns after a restart.
 */
#ifndef DISPATCH_LIMITS_BUDGET_H
#define DISPATCH_LIMITS_BUDGET_H

#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

struct budget;

/* Borrowed strings. */
struct budget_turn {
        const char *trace; /* identifies the turn on its adapter; NULL: nothing is expected */
        const char *adapter;
        const char *rule;  /* may be NULL */
        const char *agent; /* may be NULL */
};

struct budget_sum {
        int64_t spent;    /* microusd, today */
        int64_t expected; /* of unfinished turns */
        unsigned open;    /* turns in `expected` */
};

struct budget *budget_new(void);
void budget_free(struct budget *b);
void budget_begin(struct budget *b, const struct budget_turn *t, int64_t now_ms);
/* Also for turns without a budget_begin. */
void budget_end(struct budget *b, const struct budget_turn *t, int64_t microusd, int64_t now_ms);
struct budget_sum budget_of_adapter(const struct budget *b, const char *adapter, int64_t now_ms);
struct budget_sum budget_of_rule(const struct budget *b, const char *rule, int64_t now_ms);
/* Inside a store function. */
int budget_restore(struct budget *b, struct store_tx *tx, int64_t now_ms, struct error *err);

#endif
