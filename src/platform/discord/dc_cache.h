/*
 * dc_cache: a bounded cache of channels, threads, the bot's roles and user names that Discord has
 * sent. dc_lookup fetches what is missing.
 */
#ifndef PLATFORM_DISCORD_DC_CACHE_H
#define PLATFORM_DISCORD_DC_CACHE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum {
        DC_TYPE_TEXT = 0,
        DC_TYPE_DM = 1,
        DC_TYPE_CATEGORY = 4,
        DC_TYPE_ANNOUNCEMENT = 5,
        DC_TYPE_THREAD_FIRST = 10,
        DC_TYPE_THREAD_LAST = 12,
        DC_TYPE_FORUM = 15,
        DC_TYPE_MEDIA = 16,
};

struct dc_channel_info {
        const char *id, *guild, *name;
        const char *parent; /* a thread's channel; NULL: not a thread */
        int type;
};

struct dc_cache;

struct dc_cache *dc_cache_new(void);
void dc_cache_free(struct dc_cache *c);
/* self NULL: the bot's id is unknown. */
void dc_cache_learn(struct dc_cache *c, const char *self, const char *type, const json_t *d);
/* guild NULL: as the object says. */
void dc_cache_add(struct dc_cache *c, const char *guild, const json_t *channel);
void dc_cache_set_roles(struct dc_cache *c, const char *guild, json_t *roles);
void dc_cache_set_username(struct dc_cache *c, const char *username, const char *id);

/* Results are borrowed until the next change. False or NULL: unknown. */
bool dc_cache_channel(const struct dc_cache *c, const char *id, struct dc_channel_info *out);
const char *dc_cache_guild_name(const struct dc_cache *c, const char *guild);
const char *dc_cache_user_named(const struct dc_cache *c, const char *username);
bool dc_cache_knows_roles(const struct dc_cache *c, const char *guild);
bool dc_cache_has_role(const struct dc_cache *c, const char *guild, const char *role);
size_t dc_cache_size(const struct dc_cache *c);

#endif
