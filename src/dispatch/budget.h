/*
 * budget: what the turns of today have cost, by adapter and by rule.
 *
 * A day goes from midnight to midnight UTC. What a turn costs is known when it ends, so a budget is passed by what was running when it was used up.
 * After a restart the sums are read again from the turns.
 */
#ifndef DISPATCH_BUDGET_H
#define DISPATCH_BUDGET_H

#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

struct budget;

struct budget *budget_new(void);
void budget_free(struct budget *b);
/* A turn has ended; rule may be NULL. */
void budget_spend(struct budget *b, const char *adapter, const char *rule, int64_t microusd, int64_t now_ms);
int64_t budget_of_adapter(const struct budget *b, const char *adapter, int64_t now_ms);
int64_t budget_of_rule(const struct budget *b, const char *rule, int64_t now_ms);
/* Blocks while reading. */
int budget_restore(struct budget *b, struct store *s, int64_t now_ms, struct error *err);

#endif
