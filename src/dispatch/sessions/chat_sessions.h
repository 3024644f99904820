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

struct windows;

struct windows *windows_new(size_t max);
void windows_free(struct windows *w);
/* The longest time anybody will ask for: what was quiet longer may be forgotten. */
void windows_set_longest(struct windows *w, int64_t seconds);
size_t windows_count(const struct windows *w); /* sessions */

/* ---- places and sessions ---- */

/* The place an event belongs to, appended; a thread, when given, is that of the channel. */
void windows_place(const struct incoming *in, struct buf *out);
void windows_thread_place(const char *adapter, const char *channel, const char *thread,
                          struct buf *out);
/* A new session's name: "discord-dm:<uuid>", "discord-channel-<channel or thread>:<uuid>". */
void windows_new_session(const char *platform, const struct incoming *in, struct buf *out);

/* ---- asking and telling ---- */

/* The session that is going on there, borrowed until the next change; NULL: none. */
const char *windows_find(const struct windows *w, const char *place, int64_t seconds,
                         int64_t now_ms);
/*
 * Somebody said something: the place (NULL: none yet) belongs to the session now. A new turn keeps
 * it open until windows_ended.
 */
void windows_said(struct windows *w, const char *place, const char *session, bool new_turn,
                  int64_t now_ms);
/* A turn of the session has ended; `place` (may be NULL) belongs to it from now on, too. */
void windows_ended(struct windows *w, const char *session, const char *place, int64_t now_ms);

/* ---- the table ---- */

/* What must be stored with each of these; everything is copied. */
struct road_also windows_said_also(const char *place, const char *session, int64_t now_ms);
struct road_also windows_ended_also(const char *session, const char *place, int64_t now_ms);
/* Reads the table and the open turns; blocks. */
int windows_restore(struct windows *w, struct store *s, int64_t now_ms, struct error *err);

#endif
