/*
 * dc_catchup: reads back what a lost session has missed.
 *
 * Three sources name the channels where something may be missing: guilds that the gateway
 * introduces, with the newest message of each channel; guilds that it does not introduce, listed by
 * REST; and channels of recent conversations in the store, DMs among them. dc_readback.c reads
 * those channels. No source is kept in memory as a whole: each continues when there is room.
 *
 * The age and the number of messages of each channel are bounded. Dedup keys recognise what is read
 * twice. A gap is on disk until everything in it is stored, so that a restart begins with it again.
 * Edits, deletions and reactions cannot be read back.
 */
#ifndef PLATFORM_DISCORD_DC_CATCHUP_H
#define PLATFORM_DISCORD_DC_CATCHUP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/discord/dc_intake.h"

struct dc_catchup;

struct dc_catchup *dc_catchup_new(struct dc_intake *in);
/* Before the intake. */
void dc_catchup_free(struct dc_catchup *c);
/* A session began or was resumed, and something may be missing since then by Discord's clock. */
void dc_catchup_gap(struct dc_catchup *c, const struct dc_gateway_ready *ready, int64_t since_ms);
/* A gap will follow: holds all events until its channels are known. */
void dc_catchup_hold(struct dc_catchup *c);
/* There is room for channels again. */
void dc_catchup_continue(struct dc_catchup *c);
/* A GUILD_CREATE. */
void dc_catchup_guild(struct dc_catchup *c, unsigned shard, const json_t *guild);

/* ---- dc_readback.c: reads the messages of channels and threads since a time ---- */

/*
 * A few channels are read at once, no faster than the intake stores. Meanwhile their live events
 * wait in the intake, for a while.
 */

struct dc_readback;

struct dc_readback *dc_readback_new(struct dc_intake *in);
/* Before the intake. */
void dc_readback_free(struct dc_readback *r);
/* A new gap. */
void dc_readback_restart(struct dc_readback *r);
/* Reads a channel once for each gap, unless it was given up. */
void dc_readback_want(struct dc_readback *r, const char *channel, int64_t since_ms);
enum dc_readback_load {
        DC_READBACK_IDLE, /* everything is read and stored, or given up */
        DC_READBACK_BUSY,
        DC_READBACK_CROWDED, /* add only channels that cannot wait */
        DC_READBACK_FULL,    /* add none */
};
enum dc_readback_load dc_readback_load(const struct dc_readback *r);
/* Was one given up since the last call? */
bool dc_readback_take_failed(struct dc_readback *r);
/* How long to wait after so many failures; -1: give up. */
int64_t dc_readback_wait_ms(const struct dc_intake *in, unsigned failures);

#endif
