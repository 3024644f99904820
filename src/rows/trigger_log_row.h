/*
 * trigger_log_row: what dispatch decided about each inbound event, and why.
 */
#ifndef ROWS_TRIGGER_LOG_ROW_H
#define ROWS_TRIGGER_LOG_ROW_H

#include <stdint.h>

#include "base/error.h"
#include "rows/journal_row.h"
#include "store/store.h"

/*
 * Lists below are read with their _next function: 1: *out is borrowed until the next call, 0: no
 * more, -1.
 */

/* An event that began a turn or joined one. */
struct trigger_turn {
        const char *adapter, *channel, *sender, *rule;
        int64_t turn, time_ms;
};
/* The last `limit` entries, newest first. */
struct store_stmt *trigger_log_row_list_turns(struct store_tx *tx, int64_t limit);
/* Ends at the first entry that is not after since_ms, so that a start reads few rows. */
int trigger_log_row_next_turn(struct store_stmt *s, int64_t since_ms, struct trigger_turn *out,
                              struct error *err);

/* Reactions that triggered after since_ms: the last `limit`, oldest first. */
struct store_stmt *trigger_log_row_list_reactions(struct store_tx *tx, int64_t since_ms,
                                                  int64_t limit);
/* time_ms is that of the decision. */
int trigger_log_row_next_reaction(struct store_stmt *s, struct journal_row *out, struct error *err);

/* A decision together with its event and turn. */
struct trigger_decision {
        struct journal_row event;
        int64_t time_ms; /* of the decision */
        const char *agent, *rule, *reason;
        int64_t turn; /* 0: it did not trigger; so are the members below */
        int64_t ended_ms, cost_microusd;
        const char *thread; /* to which the turn posted; NULL: none */
};
/* Decisions since since_ms whose event is still there, in the order of events. */
struct store_stmt *trigger_log_row_list_decisions(struct store_tx *tx, int64_t since_ms);
int trigger_log_row_next_decision(struct store_stmt *s, struct trigger_decision *out,
                                  struct error *err);
/* Leaves a list before its end. */
void trigger_log_row_end(struct store_stmt *s);

/* When the first event from this one on was decided; *time_ms stays when there is none. */
int trigger_log_row_get_time(struct store_tx *tx, int64_t event, int64_t *time_ms,
                             struct error *err);

#endif
