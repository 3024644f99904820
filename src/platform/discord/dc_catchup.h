/*
 * dc_catchup: what a lost session has missed is read back.
 *
 * Where something may be missing is known from three sides: guilds that the gateway introduces name
 * the newest message of each channel; guilds that it does not introduce are called by REST
 * (dc_roll); and the channels of recent conversations, which include DMs, are in the store. Those
 * places are read back (dc_readback). None of these has a limit in number, and none is in memory as
 * a whole: each goes on when there is room.
 *
 * Bounded are the age and the number of messages of one channel. Whatever is read twice is known by
 * its key. A gap is told to be closed when all of it is stored; until then it is on disk, and a
 * restart begins with it again. Edits, deletions and reactions of that time are not to be had.
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
/*
 * A session begins on this shard of so many, and something may be missing since then by Discord's
 * clock; 0: there was nothing before.
 */
void dc_catchup_gap(struct dc_catchup *c, unsigned shard, unsigned shards, int64_t since_ms);
/*
 * A gap will be told: until the places are known where something may be missing, everything waits.
 */
void dc_catchup_behind(struct dc_catchup *c);
/*
 * A session is resumed while what an earlier one has missed is still to be read. No guild is
 * introduced then: unless we are at it already, they are called by REST.
 */
void dc_catchup_resumed(struct dc_catchup *c, unsigned shard, unsigned shards, int64_t since_ms);
/* A GUILD_CREATE. */
void dc_catchup_guild(struct dc_catchup *c, unsigned shard, const json_t *guild);

#endif
