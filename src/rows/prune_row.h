/*
 * prune_row: deletes the oldest rows of a table that have ended.
 */
#ifndef ROWS_PRUNE_ROW_H
#define ROWS_PRUNE_ROW_H

#include "rows/rows.h"

#define PRUNE_ROWS 1000 /* per call */

/* In this order: attempts are found through their deliveries, what sessions have through these. */
enum prune_table {
        PRUNE_ATTEMPTS,
        PRUNE_DELIVERIES,
        PRUNE_TURNS,
        PRUNE_TRIGGER_LOG,
        PRUNE_TRANSCRIPT,
        PRUNE_STEPS,
        PRUNE_APPROVALS,
        PRUNE_TICKS,
        PRUNE_SCHEDULES,
        PRUNE_SESSION_COMMANDS,
        PRUNE_SESSION_APPROVALS,
        PRUNE_SESSION_VIEWS,
        PRUNE_SESSION_MESSAGES,
        PRUNE_SESSIONS,
        PRUNE_AGENT_SESSIONS,
        PRUNE_A2A_TURNS,
        PRUNE_TABLES,
};

/*
 * Deletes rows that ended before before_ms. Rows created after future_ms come from a wrong clock
 * and do not stop the scan. How many, or -1.
 */
int64_t prune_row_delete(struct store_tx *tx, enum prune_table table, int64_t before_ms,
                         int64_t future_ms, struct error *err);

#endif
