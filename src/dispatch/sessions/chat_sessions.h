/*
 * windows: conversations that are going on, and the sessions they have.
 *
 * Whoever has just talked with the bot is understood for a while without addressing it again. Where
 * that holds is a place: a direct chat, a person in a channel, or a thread, which everybody in it
 * shares. A session names the conversation for agents; several places may belong to one: a thread
 * that an answer began goes on with the session it came from, and both keep each other open.
 *
 * A conversation is going on while one of its turns is open, however long that takes, and for so
 * many seconds after either side was last active. How many is said by whoever asks, so that a
 * changed setting counts at once.
 *
 * It lives in memory, at most `max` sessions; when one more begins, the one that was quiet longest
 * is forgotten. The table `windows` has the same, written in the transactions of the road, and
 * fills the memory again after a restart.
 */
#ifndef DISPATCH_SESSIONS_CHAT_SESSIONS_H
#define DISPATCH_SESSIONS_CHAT_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "road/incoming.h"
#include "road/road.h"
#include "store/store.h"

struct chat_sessions;

struct chat_sessions *chat_sessions_new(size_t max);
void chat_sessions_free(struct chat_sessions *w);
/* The longest time anybody will ask for: what was quiet longer may be forgotten. */
void chat_sessions_set_longest(struct chat_sessions *w, int64_t seconds);
size_t chat_sessions_count(const struct chat_sessions *w); /* sessions */

/* ---- places and sessions ---- */

/* The place an event belongs to, appended; a thread, when given, is that of the channel. */
void chat_session_key(const struct incoming *in, struct buf *out);
void chat_session_thread_key(const char *adapter, const char *channel, const char *thread,
                             struct buf *out);
/* A new session's name: "discord-dm:<uuid>", "discord-channel-<channel or thread>:<uuid>". */
void chat_session_name(const char *platform, const struct incoming *in, struct buf *out);

/* ---- asking and telling ---- */

/* The session that is going on there, borrowed until the next change; NULL: none. */
const char *chat_session_find(const struct chat_sessions *w, const char *place, int64_t seconds,
                              int64_t now_ms);
/*
 * Somebody said something: the place (NULL: none yet) belongs to the session now. A new turn keeps
 * it open until chat_session_ended.
 */
void chat_session_touch(struct chat_sessions *w, const char *place, const char *session,
                        bool new_turn, int64_t now_ms);
/* A turn of the session has ended; `place` (may be NULL) belongs to it from now on, too. */
void chat_session_ended(struct chat_sessions *w, const char *session, const char *place,
                        int64_t now_ms);

/* ---- the table ---- */

/* What must be stored with each of these; everything is copied. */
struct tx_extra chat_session_touch_extra(const char *place, const char *session, int64_t now_ms);
struct tx_extra chat_session_ended_extra(const char *session, const char *place, int64_t now_ms);
/* Reads the table and the open turns; blocks. */
int chat_session_restore(struct chat_sessions *w, struct store *s, int64_t now_ms,
                         struct error *err);

#endif
