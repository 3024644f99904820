/*
 * agent_session_row: which session of its own an agent keeps for a conversation. A started agent
 * (agent/child/child.h) goes on with it in a new process; of an a2a agent it is the context.
 */
#ifndef ROWS_AGENT_SESSION_ROW_H
#define ROWS_AGENT_SESSION_ROW_H

#include "rows/rows.h"

struct agent_session_row {
        const char *agent;
        const char *name;    /* of agent_session(): another one after /new */
        const char *session; /* the agent's id of it; "": none yet */
        int64_t turn;        /* that writes the row; not stored */
        int64_t used_ms;
};

int agent_session_row_get(struct store_tx *tx, const char *agent, const char *name,
                          struct agent_session_row **out, struct error *err);
/*
 * Adds or replaces a row of a running turn, row->turn. 1; 0: the turn has ended, or another attempt
 * has it (stale fence); -1. Counts the attempt as one that made progress.
 */
int agent_session_row_put(struct store_tx *tx, const struct agent_session_row *row, int64_t fence,
                          struct error *err);

#endif
