/*
 * dc_ban_guard: counts the answers for which Discord bans an address: 401, 403 and 429, ten
 * thousand within ten minutes.
 *
 * Long before there are so many the guard closes; it opens again when the oldest have aged. Pure
 * arithmetic over the caller's clock.
 */
#ifndef PLATFORM_DISCORD_DC_BAN_GUARD_H
#define PLATFORM_DISCORD_DC_BAN_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#define DC_BAN_GUARD_MINUTES 10

struct dc_ban_guard {
        unsigned minutes[DC_BAN_GUARD_MINUTES], sum, max;
        int64_t newest; /* minute of the last count */
        bool closed;
        const char *name; /* of the adapter, for the log; borrowed */
};

/* max 0: a safe distance from the ban. */
void dc_ban_guard_init(struct dc_ban_guard *g, const char *name, unsigned max);
/*
 * True: a call may go now. Idle calls leave half of the number to the others. Logs when the guard
 * opens.
 */
bool dc_ban_guard_admit(struct dc_ban_guard *g, int64_t now_ms, bool idle);
void dc_ban_guard_count(struct dc_ban_guard *g, int64_t now_ms);

#endif
