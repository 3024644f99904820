/*
 * a2a_turn_row: what an a2a agent (agent/a2a/a2a.h) was sent for a turn, and the task that became
 * of it. After a restart the task is followed, and the message is not sent again by accident.
 */
#ifndef ROWS_A2A_TURN_ROW_H
#define ROWS_A2A_TURN_ROW_H

#include "rows/rows.h"

struct a2a_turn_row {
        int64_t turn;
        const char *agent;
        const char *name;    /* of agent_session() */
        const char *message; /* its id */
        const char *task;    /* "": not told yet, or there is none */
        bool goes_on;        /* the message was sent to a task that was open */
        bool open;           /* the task waits for the person's next message */
        const char *since;   /* tells that state of it from a later one; "": none does */
        int64_t used_ms;
};

int a2a_turn_row_get(struct store_tx *tx, int64_t turn, struct a2a_turn_row **out,
                     struct error *err);
/*
 * Adds or replaces the row of a running turn. 1; 0: the turn has ended, or another attempt has it
 * (stale fence); -1. Counts the attempt as one that made progress.
 */
int a2a_turn_row_put(struct store_tx *tx, const struct a2a_turn_row *row, int64_t fence,
                     struct error *err);
/* The task of the session that waits for a message. */
int a2a_turn_row_find_open(struct store_tx *tx, const char *agent, const char *name,
                           struct a2a_turn_row **out, struct error *err);
/* No task of the session waits any more. */
int a2a_turn_row_close_all(struct store_tx *tx, const char *agent, const char *name,
                           struct error *err);
/* This task of the session waits no more. */
int a2a_turn_row_close(struct store_tx *tx, const char *agent, const char *name, const char *task,
                       struct error *err);
/* The task of the turn waits for a message, in this state. */
int a2a_turn_row_open(struct store_tx *tx, int64_t turn, const char *since, struct error *err);
/* The turn may be sent again: an operator retries it. */
int a2a_turn_row_delete(struct store_tx *tx, int64_t turn, struct error *err);

#endif
