/*
 * conversation_row: a chat, or a person in it, talking with one agent.
 */
#ifndef ROWS_CONVERSATION_ROW_H
#define ROWS_CONVERSATION_ROW_H

#include <stdint.h>

#include "base/error.h"
#include "rows/chat_key.h"
#include "store/store.h"

struct conversation_key {
        const char *lane; /* unique: the other fields in one text */
        struct chat_key chat;
        const char *agent;
        const char *person; /* NULL: shared by the chat */
};

/*
 * Finds or adds the conversation and records that it is active. *reset_turn: the turn of its last
 * /new, 0: none.
 */
int conversation_row_touch(struct store_tx *tx, const struct conversation_key *key, int64_t now_ms,
                           int64_t *id, int64_t *reset_turn, struct error *err);
/* /new: with every agent, nothing before this turn counts as history. */
int conversation_row_reset(struct store_tx *tx, const struct chat_key *chat, const char *person,
                           int64_t turn, struct error *err);
/* History begins after this line of the transcript and with this turn; 0: no reset. */
struct history_start {
        int64_t line, turn;
};
int conversation_row_history_start(struct store_tx *tx, int64_t id, struct history_start *out,
                                   struct error *err);

/*
 * The conversations of an adapter that were active since then, newest first by an id that does not
 * change; before: only ids below (INT64_MAX: all).
 */
struct store_stmt *conversation_row_list_recent(struct store_tx *tx, const char *adapter,
                                                int64_t active_ms, int64_t before, int64_t limit);
/* 1 with the id and the chat's thread, or else its channel, borrowed; 0: no more; -1. */
int conversation_row_next_recent(struct store_stmt *s, int64_t *id, const char **chat,
                                 struct error *err);

#endif
