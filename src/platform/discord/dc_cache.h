/*
 * dc_cache: the places Discord has told us of: channels and threads, and the bot's own roles.
 * Bounded: what it does not know is asked.
 */
#ifndef PLATFORM_DISCORD_DC_CACHE_H
#define PLATFORM_DISCORD_DC_CACHE_H

#include <jansson.h>
#include <stdbool.h>

#include "platform/discord/dc_inbound.h"

/* Discord's channel types that matter here. */
enum {
        DC_TYPE_TEXT = 0,
        DC_TYPE_DM = 1,
        DC_TYPE_CATEGORY = 4,
        DC_TYPE_THREAD_FIRST = 10, /* news, public, private */
        DC_TYPE_THREAD_LAST = 12,
        DC_TYPE_FORUM = 15,
        DC_TYPE_MEDIA = 16,
};

struct dc_cache;

struct dc_cache *dc_cache_new(void);
/* NULL is fine. */
void dc_cache_free(struct dc_cache *c);
/* Learns from a dispatch what it says about places; self NULL: not known yet who we are. */
void dc_cache_learn(struct dc_cache *c, const char *self, const char *type, const json_t *d);
/* One channel or thread object; guild NULL: as the object says. */
void dc_cache_add(struct dc_cache *c, const char *guild, const json_t *channel);
/* False when we have not been told of it. Borrowed until the next change. */
bool dc_cache_place(const struct dc_cache *c, const char *id, struct dc_place *out);
/* NULL: not known. Borrowed as above. */
const char *dc_cache_guild_name(const struct dc_cache *c, const char *guild);
/* Does the bot have this role there? */
bool dc_cache_has_role(const struct dc_cache *c, const char *guild, const char *role);
/* Has anybody told which roles the bot has there? And somebody has; NULL: none. */
bool dc_cache_knows_roles(const struct dc_cache *c, const char *guild);
void dc_cache_set_roles(struct dc_cache *c, const char *guild, json_t *roles);
/*
 * Somebody was met; and the id of the one with this user name, NULL: not known. Borrowed as above.
 */
void dc_cache_met(struct dc_cache *c, const char *username, const char *id);
const char *dc_cache_user_named(const struct dc_cache *c, const char *username);
/* Channels and threads that are known. */
size_t dc_cache_size(const struct dc_cache *c);

#endif
