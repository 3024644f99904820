#include "platform/discord/dc_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EPOCH_MS   INT64_C(1420070400000) /* the first second of 2015 */
#define TIME_SHIFT 22

bool dc_id_valid(const char *text)
{
        size_t n = text ? strspn(text, "0123456789") : 0;

        return n > 0 && n <= 20 && text[n] == '\0';
}

int64_t dc_id_time_ms(const char *id)
{
        return dc_id_valid(id) ? (int64_t)(strtoull(id, NULL, 10) >> TIME_SHIFT) + EPOCH_MS : 0;
}

void dc_id_at(int64_t wall_ms, char out[DC_ID_SIZE])
{
        uint64_t since = wall_ms > EPOCH_MS ? (uint64_t)(wall_ms - EPOCH_MS) : 0;

        snprintf(out, DC_ID_SIZE, "%" PRIu64, since << TIME_SHIFT);
}

unsigned dc_id_shard(const char *guild, unsigned shards)
{
        return (unsigned)((strtoull(guild, NULL, 10) >> TIME_SHIFT) % shards);
}
