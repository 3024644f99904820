/*
 * transcript_row: a line said in a conversation, by a person or an agent.
 */
#ifndef ROWS_TRANSCRIPT_ROW_H
#define ROWS_TRANSCRIPT_ROW_H

#include <stdint.h>

#include "base/error.h"
#include "rows/chat_key.h"
#include "rows/conversation_row.h"
#include "store/store.h"

struct transcript_row {
        int64_t conversation;
        int64_t turn;     /* 0: said without asking an agent */
        const char *role; /* "user" or "assistant" */
        const char *name, *text;
        int64_t time_ms;
        const char *session; /* NULL: none */
};

int transcript_row_insert(struct store_tx *tx, const struct transcript_row *row, struct error *err);
/* The same line for the conversations of a chat, the `most` that were active last. */
int transcript_row_insert_in_chat(struct store_tx *tx, const struct chat_key *chat,
                                  const struct transcript_row *row, int64_t most,
                                  struct error *err);

/* Where a session begins among lines that count. 1, 0: it has none, -1. */
int transcript_row_session_start(struct store_tx *tx, const char *session,
                                 const struct history_start *from, int64_t *line, int64_t *time_ms,
                                 struct error *err);
/* The next three: lines that count, newest first, at most `limit`. */
struct store_stmt *transcript_row_list_conversation(struct store_tx *tx, int64_t conversation,
                                                    const struct history_start *from,
                                                    int64_t limit);
/* Lines of the session in any conversation, and lines without a turn in this one after `line`. */
struct store_stmt *transcript_row_list_session(struct store_tx *tx, const char *session,
                                               int64_t conversation,
                                               const struct history_start *from, int64_t line,
                                               int64_t limit);
/* Lines of the conversation before `line`, no older than since_ms. */
struct store_stmt *transcript_row_list_before(struct store_tx *tx, int64_t conversation,
                                              const struct history_start *from, int64_t line,
                                              int64_t since_ms, int64_t limit);
/* The agent's lines of a turn, in order. */
struct store_stmt *transcript_row_list_answer(struct store_tx *tx, int64_t turn);
/* 1: *row has role, name, text and time_ms, borrowed until the next step; 0: the end; -1. */
int transcript_row_next(struct store_stmt *s, struct transcript_row *row, struct error *err);
void transcript_row_end(struct store_stmt *s);

#endif
