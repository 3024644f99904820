/*
 * spending: what a built-in agent may still spend, per turn, day and person.
 *
 * Before each call to the model its highest cost is reserved, and afterwards replaced by what it
 * cost, so that turns side by side cannot exceed a budget together. Days are those of UTC. What was
 * spent is read back from the steps after a restart.
 */
#ifndef AGENT_BUILTIN_SPENDING_H
#define AGENT_BUILTIN_SPENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "rows/step_row.h"

/* US dollars; 0: no limit. */
struct spending_limits {
        double turn_usd, day_usd, person_day_usd;
};

struct spending;
struct spending *spending_new(void);
void spending_free(struct spending *s);

/* Reads what the agent spent today, in a store function; spending_load takes it on the loop. */
struct spending_rows;
int spending_read(struct store_tx *tx, const char *agent, int64_t now_ms,
                  struct spending_rows **out, struct error *err);
/* Takes rows; only the first call counts. */
void spending_load(struct spending *s, struct spending_rows *rows, int64_t now_ms);
bool spending_is_loaded(const struct spending *s);
void spending_rows_free(struct spending_rows *rows);

/*
 * Micro-dollars a call may cost now; INT64_MAX: any. *what names the tightest budget: "turn",
 * "day" or "person". person may be NULL; turn_spent: by this turn.
 */
int64_t spending_left(struct spending *s, const struct spending_limits *l, const char *person,
                      int64_t turn_spent, int64_t now_ms, const char **what);
void spending_reserve(struct spending *s, const char *person, int64_t microusd);
/* Replaces a reservation by what the call cost. */
void spending_settle(struct spending *s, const char *person, int64_t reserved, int64_t cost,
                     int64_t now_ms);

#endif
