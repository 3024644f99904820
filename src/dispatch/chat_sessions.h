/*
 * chat_sessions: which chats are in the middle of a conversation, and the session that names it for
 * agents.
 *
 * After talking with the bot, a sender need not address it again for a while. This holds per chat
 * key: a direct chat, a person in a channel, or a thread, which everyone in it shares. Several keys
 * may belong to one session: a thread that an answer began continues the session it came from, and
 * both keep each other alive.
 *
 * A session is live while one of its turns is open, and for some seconds after either side was last
 * active. The caller passes how many, so that a changed setting counts at once.
 *
 * Memory holds at most `max` sessions; the one that was quiet longest is evicted. The table
 * chat_sessions has the same content, written in the transactions of the road, and refills memory
 * after a restart.
 */
#ifndef DISPATCH_CHAT_SESSIONS_H
#define DISPATCH_CHAT_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "road/decision.h"
#include "road/incoming.h"
#include "store/store.h"

struct chat_sessions;

struct chat_sessions *chat_sessions_new(size_t max);
void chat_sessions_free(struct chat_sessions *cs);
/* The longest time any caller will pass; sessions that were quiet longer may be evicted. */
void chat_sessions_set_longest(struct chat_sessions *cs, int64_t seconds);
size_t chat_sessions_count(const struct chat_sessions *cs);

/* Appends the chat key of an event, or of a thread. */
void chat_session_key(const struct incoming *in, struct buf *out);
void chat_session_thread_key(const char *adapter, const char *channel, const char *thread,
                             struct buf *out);
/* Appends a new name: "discord-dm:<uuid>", "discord-channel-<channel or thread>:<uuid>". */
void chat_session_name(const char *platform, const struct incoming *in, struct buf *out);

/* The live session of a chat key, borrowed until the next change; NULL: none. */
const char *chat_session_find(const struct chat_sessions *cs, const char *key, int64_t seconds,
                              int64_t now_ms);
/*
 * A message belongs to the session, and so does its chat key (NULL: none yet). A new turn keeps the
 * session live until chat_session_ended.
 */
void chat_session_touch(struct chat_sessions *cs, const char *key, const char *session,
                        bool new_turn, int64_t now_ms);
/* A turn of the session has ended; the key (may be NULL) belongs to the session from now on. */
void chat_session_ended(struct chat_sessions *cs, const char *session, const char *key,
                        int64_t now_ms);

/* The same for the table. Strings are copied. */
struct tx_extra chat_session_touch_extra(const char *key, const char *session, int64_t now_ms);
struct tx_extra chat_session_ended_extra(const char *session, const char *key, int64_t now_ms);
/* Reads the table and the open turns, inside a store function. */
int chat_session_restore(struct chat_sessions *cs, struct store_tx *tx, int64_t now_ms,
                         struct error *err);

#endif
