#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/discord/dc_world.h"

#define EPOCH_MS 1420070400000ll

uint64_t dc_id_new(struct world *w)
{
        uint64_t id = (uint64_t)(clock_wall_ms() - EPOCH_MS) << 22;

        w->last_id = id > w->last_id ? id : w->last_id + 1;
        return w->last_id;
}

int64_t dc_id_ms(uint64_t id)
{
        return (int64_t)(id >> 22) + EPOCH_MS;
}

char *dc_id_text(uint64_t id, char out[DC_ID_SIZE])
{
        snprintf(out, DC_ID_SIZE, "%llu", (unsigned long long)id);
        return out;
}

uint64_t dc_id_parse(const char *text)
{
        size_t n = text ? strlen(text) : 0;

        if (n == 0 || n > 20 || strspn(text, "0123456789") != n)
                return 0;
        return strtoull(text, NULL, 10);
}

void *dc_id_map_get(const struct map *m, uint64_t id)
{
        char key[DC_ID_SIZE];

        return map_get(m, dc_id_text(id, key));
}

void dc_id_map_put(struct map *m, uint64_t id, void *value)
{
        char key[DC_ID_SIZE];

        map_put(m, dc_id_text(id, key), value);
}
