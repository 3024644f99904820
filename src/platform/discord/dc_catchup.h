/*
 * dc_catchup: what a lost session has missed is read back, channel by channel.
 *
 * After a gap Discord tells of every channel with the id of its newest message: those newer than the gap are read with
 * GET messages?after=, as are the channels of recent conversations, which include DMs. Bounded in age and number; whatever is read twice is known
 * by its key. Edits, deletions and reactions of that time are not to be had.
 */
#ifndef PLATFORM_DISCORD_DC_CATCHUP_H
#define PLATFORM_DISCORD_DC_CATCHUP_H

#include <jansson.h>
#include <stdint.h>

#include "platform/discord/dc_inbound.h"
#include "platform/discord/dc_intake.h"

struct dc_catchup;

/* caught_up is told when everything that was missed on a shard is stored. */
typedef void dc_caught_up_fn(void *arg, unsigned shard);
struct dc_catchup *dc_catchup_new(const struct dc_inbound_options *options,
                                  const struct dc_inbound_hooks *hooks, struct dc_intake *intake,
                                  dc_caught_up_fn *caught_up, void *arg);
/* Before the intake. NULL is fine. */
void dc_catchup_free(struct dc_catchup *c);
/* Something may be missing since then, by Discord's clock; 0: there was nothing before. */
void dc_catchup_gap(struct dc_catchup *c, unsigned shard, int64_t since_ms);
/* A gap will be told: until the places are known where something may be missing, everything waits. */
void dc_catchup_behind(struct dc_catchup *c);
/*
 * A session was resumed by a process that has not been told of any guild, with the gap still open: which channels have news is asked by REST.
 * After dc_catchup_gap.
 */
void dc_catchup_unseen(struct dc_catchup *c, unsigned shard);
/* A GUILD_CREATE. */
void dc_catchup_guild(struct dc_catchup *c, unsigned shard, const json_t *guild);

#endif
