/*
 * dc_members: who somebody is in a guild, asked of Discord when nobody has told.
 *
 * Messages read back by REST, reactions that are taken back and some edits come without their
 * member, and so without the roles that lists and rules ask for. Whoever has left has none. Not now
 * is no answer: it is waited for, about a minute. What Discord does not tell then is null, so that
 * whoever decides by roles can be careful. All of this holds for a minute, null as well: one of
 * whom Discord does not tell must not stop a channel with each message.
 */
#ifndef PLATFORM_DISCORD_DC_MEMBERS_H
#define PLATFORM_DISCORD_DC_MEMBERS_H

#include <jansson.h>
#include <stdbool.h>

#include "platform/discord/dc_inbound.h"

struct dc_members;

/* The path is as it was asked for; the member Discord's object, or null. Both borrowed. */
typedef void dc_members_fn(void *arg, const char *path, json_t *member);

struct dc_members *dc_members_new(const struct dc_inbound_options *options,
                                  const struct dc_inbound_hooks *hooks, dc_members_fn *answered,
                                  void *arg);
/* No answer follows. NULL is fine. */
void dc_members_free(struct dc_members *m);
/*
 * The member of this path, "/guilds/1/members/2", borrowed; NULL: `answered` follows, once however
 * often it is asked meanwhile. idle: it may be late.
 */
json_t *dc_members_get(struct dc_members *m, const char *path, bool idle);

#endif
