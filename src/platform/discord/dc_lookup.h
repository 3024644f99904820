/*
 * dc_lookup: fetches channels and members that events name and the cache lacks.
 *
 * Events wait for the answers: a thread mistaken for a channel would escape the rules of its
 * channel, and access lists need a person's roles. While Discord is unavailable a lookup retries
 * for about a minute; a channel that may be a DM, until Discord answers.
 */
#ifndef PLATFORM_DISCORD_DC_LOOKUP_H
#define PLATFORM_DISCORD_DC_LOOKUP_H

#include <jansson.h>
#include <stdbool.h>

#include "platform/discord/dc_intake.h"

struct dc_lookup;

struct dc_lookup *dc_lookup_new(struct dc_intake *in);
/* No answer follows. */
void dc_lookup_free(struct dc_lookup *l);

/* guild NULL: the bot's roles do not matter. */
bool dc_lookup_has_channel(const struct dc_lookup *l, const char *channel, const char *guild);
/* dc_intake_channel_found follows, once. guild NULL: unknown. */
void dc_lookup_channel(struct dc_lookup *l, const char *channel, const char *guild);
/* Borrowed; NULL: dc_intake_member_found follows, once. idle: it may be late. */
json_t *dc_lookup_member(struct dc_lookup *l, const char *guild, const char *user, bool idle);

#endif
