/*
 * sl_cache: names of users and channels, and threads of recent replies, bounded.
 *
 * An event names a user by id only; the first event of an unknown user waits for users.info.
 * Entries are replaced least recently used first, refreshed by user_change, channel_rename and the
 * like, and asked for again after a day.
 */
#ifndef PLATFORM_SLACK_SL_CACHE_H
#define PLATFORM_SLACK_SL_CACHE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/platform.h"

struct slack;
struct sl_cache;

struct sl_user {
        const char *id;
        const char *username; /* the handle: `name` */
        const char *name;     /* display name, else real name */
        const char *team;     /* differs from ours for people of Slack Connect */
        bool is_bot;
        bool is_stranger; /* of another workspace */
        bool is_guest;    /* sees only some channels */
        bool known;       /* false: the lookup failed, the names are the id */
};
struct sl_channel {
        const char *id;
        const char *name;  /* without '#'; NULL for DMs */
        const char *topic; /* may be NULL */
        const char *user;  /* of a DM; else NULL */
        bool is_dm, is_group_dm, is_private, is_shared, is_member;
        int64_t members; /* -1: not known */
};
/* Called once, perhaps at once; the struct is borrowed for the call. */
typedef void sl_user_fn(void *arg, const struct sl_user *user);
typedef void sl_channel_fn(void *arg, const struct sl_channel *channel);

struct sl_cache *sl_cache_new(struct slack *sl);
/* No callback follows. */
void sl_cache_free(struct sl_cache *c);
/* NULL: not cached. Borrowed until the next call of the cache. */
const struct sl_user *sl_cache_user(struct sl_cache *c, const char *id);
const struct sl_channel *sl_cache_channel(struct sl_cache *c, const char *id);
/* Asks Slack if need be. With a failed lookup `known` is false, so that nothing waits for ever. */
void sl_cache_find_user(struct sl_cache *c, const char *id, sl_user_fn *done, void *arg);
void sl_cache_find_channel(struct sl_cache *c, const char *id, sl_channel_fn *done, void *arg);
/* No answer follows for this arg. */
void sl_cache_stop_waiting(struct sl_cache *c, const void *arg);
/* A user object (users.info, user_change) or channel object arrived. */
void sl_cache_put_user(struct sl_cache *c, const json_t *user);
void sl_cache_put_channel(struct sl_cache *c, const json_t *channel);
void sl_cache_forget_channel(struct sl_cache *c, const char *id);
/* A message belongs to a thread: reactions to it do not say so. */
void sl_cache_put_reply(struct sl_cache *c, const char *channel, const char *ts,
                        const char *thread);
/* The thread of a recent reply; NULL: none is known. Borrowed until the next change. */
const char *sl_cache_thread(const struct sl_cache *c, const char *channel, const char *ts);
/* By handle or display name, case-insensitive, among cached users; NULL: none, or several. */
const char *sl_cache_user_named(struct sl_cache *c, const char *name, size_t n);
/* By name, with or without '#'; NULL: none is cached. */
const char *sl_cache_channel_named(struct sl_cache *c, const char *name);

#endif
