/*
 * remote_private: shared by the files of this folder.
 *
 *     session_event.c    reads the events of a program
 *     session_intake.c   stores them
 *     session_command.c  queues and acknowledges commands
 *     session_journal.h  what we say of a session in the journal
 *     session_expiry.c   one timer: stale commands expire, quiet sessions are archived
 *     session_link.h     shows a session in a chat
 *     session_index.c    which chat shows which session
 *     session_chat.c     chat commands, and messages that steer
 *     session_progress.c shows what became of a command where it was given
 *     session_view.h     shows what happens in a session in its chat: session_view.c,
 *                        session_view_read.c, session_view_steps.c; session_digest.h makes few
 *                        messages of many events, session_card.h says what is in them,
 *                        session_text.h makes Markdown of what programs say
 */
#ifndef REMOTE_REMOTE_PRIVATE_H
#define REMOTE_REMOTE_PRIVATE_H

#include "base/map.h"
#include "remote/remote.h"

struct remote {
        struct remote_env env;
        struct remote_conf conf; /* a copy; the loop alone reads it */
        bool started, quiet;

        /* ---- session_expiry.c ---- */
        struct timer *timer;
        int64_t next_ms; /* the next look; 0: nothing is due */
        bool looking, look_again;
        unsigned writes; /* in flight; remote_close waits for them */

        struct bus_listener *progress;

        struct session_index *index;
        /* ---- session_view.c ---- */
        struct map views; /* by the trace of their session */
        struct bus_listener *view_listener;
        struct remote_stats stats;
};

void session_expiry_open(struct remote *r);
void session_expiry_look(struct remote *r);
void session_expiry_close(struct remote *r);

void session_progress_open(struct remote *r);
/* Shows what was not shown when the last run ended. */
void session_progress_start(struct remote *r);
void session_progress_close(struct remote *r);

/* Blocks. */
int session_index_open(struct remote *r, struct error *err);
void session_index_start(struct remote *r);
void session_index_close(struct remote *r);
void session_views_open(struct remote *r);
/* Shows what was not shown when the last run ended. */
void session_views_start(struct remote *r);
void session_views_close(struct remote *r);
/*
 * The session had an event. urgent: one that people wait for; fresh: its chat is another one, or
 * may work again. False: it is shown nowhere.
 */
bool session_view_wake(struct remote *r, const struct session_row *row, bool urgent, bool fresh);

/* Messages in the chat of its row steer it, unless it has ended. */
void session_index_put(struct remote *r, const struct session_row *row);
/* Do they? */
bool session_index_has(const struct remote *r, const struct session_row *row);
/*
 * A reply to this message, in a chat without threads, is about the session. is_root: it is the
 * first one there.
 */
void session_index_add_message(struct remote *r, const struct session_row *row,
                               const struct chat_key *chat, const char *message, bool is_root);
/*
 * The session that a message is about: by what it replies to (reply_to, may be NULL), else the one
 * that was linked to the chat last and has not ended; 0: none. *owner (owner may be NULL): whose it
 * is, borrowed; NULL: not said.
 */
int64_t session_index_find(const struct remote *r, const struct chat_key *chat,
                           const char *reply_to, const char **owner);
void session_index_forget(struct remote *r, int64_t session);
/* Forgets those that were pruned, later. */
void session_index_check(struct remote *r);
size_t session_index_chats(const struct remote *r);

#endif
