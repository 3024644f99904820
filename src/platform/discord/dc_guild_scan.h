/*
 * dc_guild_scan: lists the bot's guilds by REST, and the channels and active threads of each.
 *
 * For when the gateway introduces no guilds, or too many at once. Any number of guilds is listed,
 * with one page of ids in memory; the owner says when there is room for the next guild's channels.
 */
#ifndef PLATFORM_DISCORD_DC_GUILD_SCAN_H
#define PLATFORM_DISCORD_DC_GUILD_SCAN_H

#include <jansson.h>
#include <stdbool.h>

#include "platform/discord/dc_intake.h"

struct dc_guild_scan;

struct dc_guild_scan_owner {
        void *arg;
        bool (*wants)(void *arg, const char *guild);
        bool (*has_room)(void *arg); /* false: call dc_guild_scan_continue when there is */
        /* channel objects; borrowed */
        void (*channels)(void *arg, const char *guild, const json_t *channels);
        void (*done)(void *arg); /* dc_guild_scan_begin is allowed */
};

struct dc_guild_scan *dc_guild_scan_new(const struct dc_intake_options *options,
                                        const struct dc_intake_hooks *hooks,
                                        const struct dc_guild_scan_owner *owner);
/* NULL is fine. */
void dc_guild_scan_free(struct dc_guild_scan *s);
/* Does nothing while a scan runs. */
void dc_guild_scan_begin(struct dc_guild_scan *s);
void dc_guild_scan_continue(struct dc_guild_scan *s);
bool dc_guild_scan_is_idle(const struct dc_guild_scan *s);
/* Was Discord unavailable for a guild since the last call? */
bool dc_guild_scan_take_failed(struct dc_guild_scan *s);

#endif
