/*
 * session_view_row: what a chat shows of a session (remote/session_view.h), and how far it is.
 *
 * Numbers of deliveries are 0 where there is none.
 */
#ifndef ROWS_SESSION_VIEW_ROW_H
#define ROWS_SESSION_VIEW_ROW_H

#include "rows/rows.h"

struct session_view_row {
        int64_t session;
        const char *adapter, *channel, *thread; /* where it was to be shown */
        const char *own_thread; /* begun for it; NULL: none, or its id is not known yet */
        int64_t root;           /* the delivery of its first message */
        const char *root_shown; /* names what that message says; NULL: nothing yet */
        int64_t place;          /* the delivery that began its thread; -1: none could be begun */
        bool closed;            /* the thread */
        const char *named;      /* what its own thread is called; NULL: not known */
        int64_t renamed_ms;     /* when it was renamed last; 0: never */
        int64_t page;           /* the delivery of the message that still grows */
        int64_t page_from;      /* the first event in it */
        int64_t page_shown;     /* its last event when it was last sent or edited for certain */
        int64_t shown_seq;      /* events up to here are shown */
        /* Of responses up to there, in a turn that has not ended. */
        int64_t open_tokens, open_cost_microusd;
        int64_t last;      /* the newest delivery */
        int64_t failures;  /* of deliveries, in a row */
        const char *error; /* why it is shown no further; NULL: it is */
        int64_t used_ms;
};

int session_view_row_get(struct store_tx *tx, int64_t session, struct session_view_row **out,
                         struct error *err);
/* Adds or replaces it. */
int session_view_row_put(struct store_tx *tx, const struct session_view_row *row,
                         struct error *err);
/*
 * Sessions of other owners that have not ended, and for which this thread was begun; -1. Without a
 * thread it may be one that is named as a channel, because it has an id of its own.
 */
int64_t session_view_row_count_threads(struct store_tx *tx, const struct chat_key *chat,
                                       int64_t owner, struct error *err);
/*
 * Sessions with an event or a question since then, at most `limit`, newest first: their numbers, as
 * session_view_row_next says.
 */
struct store_stmt *session_view_row_list_recent(struct store_tx *tx, int64_t since_ms,
                                                int64_t limit);
struct session_view_recent {
        int64_t session;
        const char *trace;
};
int session_view_row_next(struct store_stmt *s, struct session_view_recent *out, struct error *err);

/* ---- messages that show a session in a chat where it has no thread ---- */

#define SESSION_MESSAGES_KEPT 64 /* of a session, the newest, besides its first message */

struct session_message_row {
        int64_t session;
        const char *adapter, *channel, *message; /* the platform's ids */
        bool is_root;                            /* the first message, which says how it is */
        int64_t created_ms;
        /* of the session, not inserted */
        const char *identity;
        bool has_ended;
};
/* Also forgets the oldest of the session that are too many. One that is known stays. */
int session_message_row_insert(struct store_tx *tx, const struct session_message_row *row,
                               struct error *err);
/* The newest ones of all sessions, oldest first. */
struct store_stmt *session_message_row_list(struct store_tx *tx, int64_t limit);
int session_message_row_next(struct store_stmt *s, struct session_message_row *out,
                             struct error *err);

#endif
