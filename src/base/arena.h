/*
 * arena: memory with one scope; releasing the arena frees every piece.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena {
        struct arena_block *blocks;
};

void arena_init(struct arena *a);
void arena_release(struct arena *a);
/* Zeroed, aligned for any type. */
void *arena_alloc(struct arena *a, size_t n);
/* NULL stays NULL. */
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
