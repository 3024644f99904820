/*
 * turn_row: one run of an agent for one conversation, as stored in the table turns.
 */
#ifndef ROWS_TURN_ROW_H
#define ROWS_TURN_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

enum turn_state {
        TURN_QUEUED,
        TURN_RUNNING,
        TURN_DONE,
        TURN_FAILED,
        TURN_CANCELLED,
        TURN_EXPIRED,
};

/* As stored, and as shown in JSON. */
const char *turn_state_name(enum turn_state state);
/* False: no state has this name. */
bool turn_state_parse(const char *name, enum turn_state *out);

/*
 * Lists below are read with their _next function: 1: *out is borrowed until the next call, 0: no
 * more, -1.
 */

/* What a turn cost, when it cost something. */
struct turn_cost {
        const char *adapter, *rule, *agent;
        int64_t microusd;
};
/* Turns that ended since since_ms. */
struct store_stmt *turn_row_list_costs(struct store_tx *tx, int64_t since_ms);
/* The last `limit` turns, oldest first. */
struct store_stmt *turn_row_list_last_costs(struct store_tx *tx, int64_t limit);
int turn_row_next_cost(struct store_stmt *s, struct turn_cost *out, struct error *err);

/* A queued or running turn, as dispatch counts it. */
struct turn_pending {
        const char *trace, *adapter, *rule, *agent, *session;
        int64_t created_ms;
};
struct store_stmt *turn_row_list_pending(struct store_tx *tx);
int turn_row_next_pending(struct store_stmt *s, struct turn_pending *out, struct error *err);

#endif
