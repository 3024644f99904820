/*
 * map: from a string to a pointer.
 *
 * The map owns copies of the keys, never the values. Changing the map while map_each runs is
 * not allowed, except for removing the entry just visited.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stddef.h>

struct map {
        struct map_slot *slots;
        size_t count; /* entries */
        size_t used;  /* entries and tombstones */
        size_t cap;   /* power of two, or 0 */
};

void map_init(struct map *m);
/* Frees the map; values are the caller's business (visit them first). */
void map_release(struct map *m);
void *map_get(const struct map *m, const char *key);
/* Returns the value that was there before, or NULL. */
void *map_put(struct map *m, const char *key, void *value);
/* Returns the removed value, or NULL. */
void *map_remove(struct map *m, const char *key);
/* Iterate: for (size_t i = 0; map_each(m, &i, &key, &value);) ... */
int map_each(const struct map *m, size_t *at, const char **key, void **value);

#endif
