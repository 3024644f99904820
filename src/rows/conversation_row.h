/*
 * conversation_row: conversations, their transcripts, and where history begins.
 */
#ifndef ROWS_CONVERSATION_ROW_H
#define ROWS_CONVERSATION_ROW_H

#include "rows/rows.h"

struct conversation_key {
        const char *lane; /* unique: the other fields as one text */
        struct chat_key chat;
        const char *agent;
        const char *person; /* NULL: shared by the chat */
};

/* Finds or adds the conversation and marks it active. *reset_turn: of its last /new, 0: none. */
int conversation_row_touch(struct store_tx *tx, const struct conversation_key *key, int64_t now_ms,
                           int64_t *id, int64_t *reset_turn, struct error *err);
/* /new: history with every agent begins at this turn. */
int conversation_row_reset(struct store_tx *tx, const struct chat_key *chat, const char *person,
                           int64_t turn, struct error *err);
/* History begins after this line of the transcript and with this turn; 0: no reset. */
struct history_start {
        int64_t line, turn;
};
int conversation_row_history_start(struct store_tx *tx, int64_t id, struct history_start *out,
                                   struct error *err);

int conversation_row_get(struct store_tx *tx, int64_t id, struct conversation_key **out,
                         struct error *err);
/*
 * The conversation of a channel, outside of threads, that has steps of a built-in agent: the one
 * shared by all people, else the first. 1; 0: none; -1.
 */
int conversation_row_find_main(struct store_tx *tx, const char *adapter, const char *channel,
                               int64_t *id, struct error *err);

/* Active since active_ms, with an id below `before`; newest id first. */
struct store_stmt *conversation_row_list_recent(struct store_tx *tx, const char *adapter,
                                                int64_t active_ms, int64_t before, int64_t limit);
/* 1 with the id, the channel and the thread (NULL: none), borrowed; 0: end; -1. */
int conversation_row_next_recent(struct store_stmt *s, int64_t *id, const char **channel,
                                 const char **thread, struct error *err);

/* Has anything been said in this chat? 1; 0; -1. Messages count while the journal keeps them. */
int conversation_row_knows(struct store_tx *tx, const char *adapter, const char *channel,
                           struct error *err);
/*
 * Has this agent talked here (agent NULL: which did last)? 1: *out is its name, yours to free; 0;
 * -1.
 */
int conversation_row_find_agent(struct store_tx *tx, const char *adapter, const char *channel,
                                const char *agent, char **out, struct error *err);
/* Channels of an adapter, the most recently active first. */
struct store_stmt *conversation_row_list_channels(struct store_tx *tx, const char *adapter,
                                                  int64_t limit);
int conversation_row_next_channel(struct store_stmt *s, const char **channel, struct error *err);

/* --- transcript_row.c: lines said by a person or an agent --- */

struct transcript_row {
        int64_t conversation;
        int64_t turn;     /* 0: no agent was asked */
        const char *role; /* "user" or "assistant" */
        const char *name, *text;
        int64_t time_ms;
        const char *session; /* NULL: none */
};

int transcript_row_insert(struct store_tx *tx, const struct transcript_row *row, struct error *err);
int transcript_row_delete_turn(struct store_tx *tx, int64_t turn, struct error *err);
/* Adds the line to the chat's `most` recently active conversations. */
int transcript_row_insert_in_chat(struct store_tx *tx, const struct chat_key *chat,
                                  const struct transcript_row *row, int64_t most,
                                  struct error *err);

/* Where a session begins after the reset. 1; 0: no lines; -1. */
int transcript_row_session_start(struct store_tx *tx, const char *session,
                                 const struct history_start *from, int64_t *line, int64_t *time_ms,
                                 struct error *err);
/* The next three: lines after the reset, newest first, at most `limit`. */
struct store_stmt *transcript_row_list_conversation(struct store_tx *tx, int64_t conversation,
                                                    const struct history_start *from,
                                                    int64_t limit);
/* The session's lines in any conversation, and lines without a turn in this one after `line`. */
struct store_stmt *transcript_row_list_session(struct store_tx *tx, const char *session,
                                               int64_t conversation,
                                               const struct history_start *from, int64_t line,
                                               int64_t limit);
/* Lines of the conversation before `line`, no older than since_ms. */
struct store_stmt *transcript_row_list_before(struct store_tx *tx, int64_t conversation,
                                              const struct history_start *from, int64_t line,
                                              int64_t since_ms, int64_t limit);
/* The agent's lines of a turn. */
struct store_stmt *transcript_row_list_answer(struct store_tx *tx, int64_t turn);
/* 1: *row has turn, role, name, text and time_ms, borrowed until the next step; 0: end; -1. */
int transcript_row_next(struct store_stmt *s, struct transcript_row *row, struct error *err);

/* --- reset_row.c --- */

/*
 * Some agents remember a person across chats, or a chat with all its members. Such memory spans
 * conversations, so /new is recorded for the person, the chat, and the person in the chat.
 */

struct reset_scope {
        const char *adapter, *channel, *thread;
        const char *sender; /* NULL: unknown */
};

/* The turn of the last /new in each scope; 0: none. */
struct reset_turns {
        int64_t person, chat, person_in_chat;
};

int reset_row_put(struct store_tx *tx, const struct reset_scope *scope, int64_t turn,
                  struct error *err);
/* Ignores resets after `turn`, which do not concern it. */
int reset_row_get(struct store_tx *tx, const struct reset_scope *scope, int64_t turn,
                  struct reset_turns *out, struct error *err);

#endif
