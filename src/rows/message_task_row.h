/*
 * message_task_row: messages of chats whose names begin alike, and what became of each: tasks of a
 * client of a foreign protocol.
 */
#ifndef ROWS_MESSAGE_TASK_ROW_H
#define ROWS_MESSAGE_TASK_ROW_H

#include "rows/trigger_log_row.h"
#include "rows/turn_row.h"

struct message_task_row {
        int64_t event, turn; /* turn 0: none */
        bool decided;
        enum trigger_status status; /* if it is decided */
        enum turn_state state;      /* if there is a turn */
        int64_t time_ms;            /* of the state */
};

/*
 * Messages received by an adapter in chats from `first` on and before `end`, as text: the newest
 * `limit` whose texts are kept, the one with the newest state first.
 */
struct store_stmt *message_task_row_list(struct store_tx *tx, const char *adapter,
                                         const char *first, const char *end, int64_t limit);
int message_task_row_next(struct store_stmt *s, struct message_task_row *row, struct error *err);

#endif
