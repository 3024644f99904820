/*
 * dc_readback: reads the messages of channels and threads since a time, with GET messages?after=.
 *
 * A few channels are read at once, and no faster than the intake stores. While a channel is read,
 * its live events wait in the intake, but not for ever. When Discord is unavailable reading
 * retries; a channel that stays unreadable is given up and remembered as a failure.
 */
#ifndef PLATFORM_DISCORD_DC_READBACK_H
#define PLATFORM_DISCORD_DC_READBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/discord/dc_intake.h"

struct dc_readback;

/* `room` is called when there is room for further channels, after there was none. */
struct dc_readback *dc_readback_new(const struct dc_intake_options *options,
                                    const struct dc_intake_hooks *hooks, struct dc_intake *intake,
                                    void (*room)(void *arg), void *arg);
/* Before the intake. NULL is fine. */
void dc_readback_free(struct dc_readback *r);
/* A new gap: channels that were read may have to be read again. */
void dc_readback_restart(struct dc_readback *r);
/*
 * Reads a channel since then, by Discord's clock; once for each gap, unless it was given up.
 */
void dc_readback_want(struct dc_readback *r, const char *channel, int64_t since_ms);
enum dc_readback_load {
        DC_READBACK_IDLE, /* all wanted channels are read and stored, or given up */
        DC_READBACK_BUSY,
        DC_READBACK_CROWDED, /* callers that can wait should add no channels now */
        DC_READBACK_FULL,    /* no caller should */
};
enum dc_readback_load dc_readback_load(const struct dc_readback *r);
/* Was a channel given up since the last call? */
bool dc_readback_take_failed(struct dc_readback *r);
/* How long to wait after so many failures; -1: give up. */
int64_t dc_readback_wait_ms(const struct dc_catchup_times *times, unsigned failures);

#endif
