/*
 * turn_row: one run of an agent for one conversation, as stored in the table turns.
 */
#ifndef ROWS_TURN_ROW_H
#define ROWS_TURN_ROW_H

#include <stdbool.h>

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

#endif
