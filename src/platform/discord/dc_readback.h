/*
 * dc_readback: channels and threads whose messages are read back, each from a time on, with GET
 * messages?after=.
 *
 * A few are read at once, and no faster than the intake stores: what was read and is not stored yet
 * is bounded, whatever the disk does. While a place is read, what happens there now waits in the
 * intake, but not for ever. Discord's bad moments are waited out; a place that stays unreadable is
 * given up, and remembered as a failure.
 */
#ifndef PLATFORM_DISCORD_DC_READBACK_H
#define PLATFORM_DISCORD_DC_READBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/discord/dc_inbound.h"
#include "platform/discord/dc_intake.h"

#define DC_UNWELL(status) ((status) == 0 || (status) == 429 || (status) >= 500)

struct dc_readback;

/* `room` is told when there is room for further places, after there was none. */
struct dc_readback *dc_readback_new(const struct dc_inbound_options *options,
                                    const struct dc_inbound_hooks *hooks, struct dc_intake *intake,
                                    void (*room)(void *arg), void *arg);
/* Before the intake. NULL is fine. */
void dc_readback_free(struct dc_readback *r);
/* Another gap: places that were read may have to be read again. */
void dc_readback_again(struct dc_readback *r);
/*
 * What was said there since then, by Discord's clock; once for each gap, however often it is
 * wanted, unless it was given up.
 */
void dc_readback_want(struct dc_readback *r, const char *place, int64_t since_ms);
/* Should whoever can wait add further places? */
bool dc_readback_has_room(const struct dc_readback *r);
/* Are there so many places that none should be added, not even by whoever cannot wait? */
bool dc_readback_is_full(const struct dc_readback *r);
/* Everything that was wanted is read and stored, or given up. */
bool dc_readback_is_idle(const struct dc_readback *r);
/* Was some place given up since this was last asked? */
bool dc_readback_take_failed(struct dc_readback *r);
/*
 * How long to wait after so many questions that Discord could not answer; -1: that is enough of
 * them.
 */
int64_t dc_readback_wait_ms(const struct dc_catchup_times *times, unsigned tries);

#endif
