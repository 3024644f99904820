/*
 * dc_intake: what happened on Discord, on its way to the inbox.
 *
 *     arrived ──► placed (which channel is this?) ──► met (who is it?) ──► fetching (files) ──►
 *     ready ──► storing ──► done
 *
 * Events of one place are handed over in their order; those of other places do not wait for them. A
 * dispatch is acknowledged to the gateway when it is committed, or when there is nothing in it for
 * us. When the inbox refuses, it stays and is handed over again.
 */
#ifndef PLATFORM_DISCORD_DC_INTAKE_H
#define PLATFORM_DISCORD_DC_INTAKE_H

#include "platform/discord/dc_cache.h"
#include "platform/discord/dc_gateway.h"
#include "platform/discord/dc_inbound.h"

struct dc_intake;

struct dc_intake *dc_intake_new(const struct dc_inbound_options *options,
                                const struct dc_inbound_hooks *hooks, struct dc_cache *cache);
/*
 * Late acknowledgements find nobody; whoever waits for one is told that it was not stored. NULL is
 * fine.
 */
void dc_intake_free(struct dc_intake *in);
/* Whom to acknowledge to, and who we are: from then on. */
void dc_intake_set_gateway(struct dc_intake *in, struct dc_gateway *g);
void dc_intake_set_self(struct dc_intake *in, const char *user_id);

void dc_intake_event(struct dc_intake *in, const struct dc_dispatch *e);
void dc_intake_interaction(struct dc_intake *in, const json_t *interaction,
                           void (*stored)(void *arg, bool ok), void *arg);

/* ---- for dc_catchup.c ---- */

#define DC_EVERYWHERE "*" /* as a place: all of them */

/*
 * What happens in this place waits until it is released, because something older is still being
 * looked for. Counted.
 */
void dc_intake_hold(struct dc_intake *in, const char *place);
void dc_intake_release(struct dc_intake *in, const char *place);
/* A message that was missed, in the order of their times: before whatever of its place is held. */
void dc_intake_missed(struct dc_intake *in, const char *place, json_t *message);
/* How many of them are not stored yet. */
size_t dc_intake_missing(const struct dc_intake *in);

#endif
