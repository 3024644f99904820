/*
 * chat_session_row: the agents' session of each chat, or person in a chat.
 */
#ifndef ROWS_CHAT_SESSION_ROW_H
#define ROWS_CHAT_SESSION_ROW_H

#include "rows/rows.h"

struct chat_session_row {
        const char *chat; /* a key of dispatch */
        const char *session;
        int64_t active_ms;
};

/* Inserts the chat, or moves it to this session. */
int chat_session_row_put(struct store_tx *tx, const struct chat_session_row *row,
                         struct error *err);
/* Marks all chats of the session active. */
int chat_session_row_touch(struct store_tx *tx, const char *session, int64_t now_ms,
                           struct error *err);
int chat_session_row_delete_before(struct store_tx *tx, int64_t active_ms, struct error *err);

/* The last `limit` active after since_ms, oldest first. */
struct store_stmt *chat_session_row_list(struct store_tx *tx, int64_t since_ms, int64_t limit);
int chat_session_row_next(struct store_stmt *s, struct chat_session_row *out, struct error *err);

#endif
