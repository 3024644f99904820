/*
 * dc_catchup: reads back messages that a lost session missed.
 *
 * The channels to read come from four sources: guilds that the gateway introduces, with the newest
 * message of each channel; other guilds, listed by REST; channels of recent conversations in the
 * store, including DMs; and DMs of people who may have written their first (dc_dm_scan.c).
 * platform/readback.h reads them. Each source is paged and continues when there is room.
 *
 * The age and the number of messages per channel are bounded. Dedup keys recognise repeats. A gap
 * stays on disk until everything in it is stored, so that a restart begins with it again. Edits,
 * deletions and reactions cannot be read back. Scheduled events come with their guilds; listed
 * guilds that had some are asked, to learn who is interested (dc_scheduled_event_list.c).
 */
#ifndef PLATFORM_DISCORD_DC_CATCHUP_H
#define PLATFORM_DISCORD_DC_CATCHUP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/discord/dc_intake.h"
#include "platform/readback.h"

struct dc_catchup;

struct dc_catchup *dc_catchup_new(struct dc_intake *in);
/* Before the intake. */
void dc_catchup_free(struct dc_catchup *c);
/* The gateway's gap: events after since_ms (Discord's clock) may be missing. */
void dc_catchup_gap(void *intake, const struct dc_gateway_ready *ready, int64_t since_ms);
/* The gateway's behind: holds all events until the channels of the coming gap are known. */
void dc_catchup_hold(void *intake);
/* There is room for channels again. */
void dc_catchup_continue(struct dc_catchup *c);
/* A GUILD_CREATE. */
void dc_catchup_guild(struct dc_catchup *c, unsigned shard, const json_t *guild);

/* A DM with missed messages, perhaps. dm: Discord's description; NULL: a message came from it. */
void dc_catchup_dm(struct dc_catchup *c, const char *channel, const json_t *dm);

/* ---- dc_dm_scan.c: opens DMs of people who may have written their first ---- */

struct dc_dm_scan;

struct dc_dm_scan *dc_dm_scan_new(struct dc_intake *in);
/* Before the intake. */
void dc_dm_scan_free(struct dc_dm_scan *s);
/* Each DM is reported to dc_catchup_dm. */
void dc_dm_scan_begin(struct dc_dm_scan *s);
bool dc_dm_scan_is_over(const struct dc_dm_scan *s);
/* Was one given up since the last call? */
bool dc_dm_scan_take_failed(struct dc_dm_scan *s);

/* ---- dc_readback.c: how the messages of a channel or thread are read ---- */

struct readback *dc_readback_new(struct dc_intake *in);
void dc_readback_want(struct readback *r, const char *channel, int64_t since_ms);
/* As readback_wait_ms. */
int64_t dc_readback_wait_ms(const struct dc_intake *in, unsigned failures);

#endif
