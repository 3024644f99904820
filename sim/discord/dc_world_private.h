/*
 * world_private: what the files of the world share with each other, and with nobody else.
 */
#ifndef SIM_DISCORD_DC_WORLD_PRIVATE_H
#define SIM_DISCORD_DC_WORLD_PRIVATE_H

#include "sim/discord/dc_world.h"

/* Maps by number. */
void *dc_id_map_get(const struct map *m, uint64_t id);
void dc_id_map_put(struct map *m, uint64_t id, void *value);

void dc_guild_free(struct guild *g);
void dc_channel_free(struct channel *c);

#endif
