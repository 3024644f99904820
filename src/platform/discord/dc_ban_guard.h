/*
 * dc_guard: answers for which Discord bans an address: 401, 403 and 429, ten thousand within ten
 * minutes.
 *
 * They are counted by the minute; long before there are so many the guard closes, and opens again
 * when the oldest have aged. Pure arithmetic over a clock the caller passes in.
 */
#ifndef PLATFORM_DISCORD_DC_GUARD_H
#define PLATFORM_DISCORD_DC_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#define DC_GUARD_SLOTS 10

struct dc_guard {
        unsigned slots[DC_GUARD_SLOTS], sum, max;
        int64_t minute; /* of the newest slot */
        bool closed;
        const char *name; /* of the adapter, for the log; borrowed */
};

/* max 0: as many as leave a good distance to the ban. */
void dc_guard_init(struct dc_guard *g, const char *name, unsigned max);
/* May calls be made now? Says in the log when that changes. */
bool dc_guard_is_open(struct dc_guard *g, int64_t now_ms);
/* And such as nobody waits for? They leave half of the number to the others. */
bool dc_guard_is_wide_open(struct dc_guard *g, int64_t now_ms);
/* One more such answer. */
void dc_guard_count(struct dc_guard *g, int64_t now_ms);

#endif
