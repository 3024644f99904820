/*
 * dc_roll: the bot's guilds called one after the other by REST, each for its channels and active
 * threads.
 *
 * For when the gateway tells of no guild, or of more than can be kept in mind. All guilds are
 * listed, however many there are, and a page of their ids is all that is in memory: the owner says
 * when there is room for the places of the next guild.
 */
#ifndef PLATFORM_DISCORD_DC_ROLL_H
#define PLATFORM_DISCORD_DC_ROLL_H

#include <jansson.h>
#include <stdbool.h>

#include "platform/discord/dc_inbound.h"

struct dc_roll;

struct dc_roll_owner {
        void *arg;
        bool (*wants)(void *arg, const char *guild);
        bool (*has_room)(void *arg); /* no: dc_roll_go_on follows when there is */
        /* channel objects; borrowed */
        void (*places)(void *arg, const char *guild, const json_t *places);
        void (*over)(void *arg); /* all have been called; dc_roll_begin is allowed */
};

struct dc_roll *dc_roll_new(const struct dc_inbound_options *options,
                            const struct dc_inbound_hooks *hooks,
                            const struct dc_roll_owner *owner);
/* NULL is fine. */
void dc_roll_free(struct dc_roll *r);
/* Does nothing while one is being called. */
void dc_roll_begin(struct dc_roll *r);
/* There is room again. */
void dc_roll_go_on(struct dc_roll *r);
bool dc_roll_is_over(const struct dc_roll *r);
/* Since this was last asked, has Discord not told of some guild, although it may another time? */
bool dc_roll_take_failed(struct dc_roll *r);

#endif
