/*
 * dc_channel_lookup: fetches what the cache does not know of a channel: its kind, its parent, and
 * the bot's roles there.
 *
 * A resumed session introduces no guilds, and the cache is bounded. A thread mistaken for a channel
 * would escape the rules of its channel, so its events wait while Discord is unavailable, most of a
 * minute. A channel that Discord refuses to describe is a plain one; one that it could not describe
 * passes for one this time. A channel that may be a DM is asked for until Discord answers.
 */
#ifndef PLATFORM_DISCORD_DC_CHANNEL_LOOKUP_H
#define PLATFORM_DISCORD_DC_CHANNEL_LOOKUP_H

#include <stdbool.h>

#include "platform/discord/dc_cache.h"
#include "platform/discord/dc_intake.h"

struct dc_channel_lookup;

/* known: it is in the cache, or is taken for a channel of its guild. */
typedef void dc_channel_lookup_fn(void *arg, const char *channel, bool known);

struct dc_channel_lookup *dc_channel_lookup_new(const struct dc_intake_options *options,
                                                const struct dc_intake_hooks *hooks,
                                                struct dc_cache *cache, dc_channel_lookup_fn *done,
                                                void *arg);
/* No answer follows. NULL is fine. */
void dc_channel_lookup_free(struct dc_channel_lookup *l);
/* The bot's own id: whose roles are looked up. */
void dc_channel_lookup_set_self(struct dc_channel_lookup *l, const char *user_id);
/* Nothing needs to be fetched. guild NULL: the bot's roles do not matter. */
bool dc_channel_lookup_has(const struct dc_channel_lookup *l, const char *channel,
                           const char *guild);
/* `done` follows, once however often it is asked meanwhile. guild NULL: unknown. */
void dc_channel_lookup_ask(struct dc_channel_lookup *l, const char *channel, const char *guild);

#endif
