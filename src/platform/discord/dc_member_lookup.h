/*
 * dc_member_lookup: fetches the guild member behind a user id, for its roles.
 *
 * Messages read by REST, removed reactions and some edits come without the member, and so without
 * the roles that access lists and rules ask for. While Discord is unavailable the lookup retries,
 * about a minute; then the member is null, so that role checks can be careful. A person who has
 * left the guild has no roles. An answer holds for a minute, null as well: otherwise every message
 * of that person would hold up its channel.
 */
#ifndef PLATFORM_DISCORD_DC_MEMBER_LOOKUP_H
#define PLATFORM_DISCORD_DC_MEMBER_LOOKUP_H

#include <jansson.h>
#include <stdbool.h>

#include "platform/discord/dc_intake.h"

struct dc_member_lookup;

/* The member is Discord's object, or null. Borrowed. */
typedef void dc_member_lookup_fn(void *arg, const char *guild, const char *user, json_t *member);

struct dc_member_lookup *dc_member_lookup_new(const struct dc_intake_options *options,
                                              const struct dc_intake_hooks *hooks,
                                              dc_member_lookup_fn *done, void *arg);
/* No answer follows. NULL is fine. */
void dc_member_lookup_free(struct dc_member_lookup *l);
/*
 * The member, borrowed; NULL: `done` follows, once however often it is asked meanwhile. idle: it
 * may be late.
 */
json_t *dc_member_lookup_get(struct dc_member_lookup *l, const char *guild, const char *user,
                             bool idle);

#endif
