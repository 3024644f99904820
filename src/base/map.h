/*
 * map: from a string to a pointer. Owns copies of the keys, never the values. While iterating, only
 * the entry just visited may be removed.
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
/* Does not free the values. */
void map_release(struct map *m);
void *map_get(const struct map *m, const char *key);
/* The previous value, or NULL. */
void *map_put(struct map *m, const char *key, void *value);
/* The removed value, or NULL. */
void *map_remove(struct map *m, const char *key);
/* for (size_t i = 0; map_each(m, &i, &key, &value);) ... */
int map_each(const struct map *m, size_t *at, const char **key, void **value);

#endif
