/* dc_id: Discord's ids as text. They contain their creation time. */
#ifndef PLATFORM_DISCORD_DC_ID_H
#define PLATFORM_DISCORD_DC_ID_H

#include <stdbool.h>
#include <stdint.h>

#define DC_ID_SIZE 24 /* 20 digits and a NUL, rounded up */

/* 1 to 20 digits. */
bool dc_id_valid(const char *text);
/* 0: it is not an id. */
int64_t dc_id_time_ms(const char *id);
/* The smallest id of a time. */
void dc_id_at(int64_t wall_ms, char out[DC_ID_SIZE]);
unsigned dc_id_shard(const char *guild, unsigned shards);

#endif
