#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define BLOCK_SIZE 992 /* with its head, what malloc keeps for each thread without a lock */

struct arena_block {
        struct arena_block *next;
        size_t used, size;
        alignas(max_align_t) char data[];
};

void arena_init(struct arena *a)
{
        a->blocks = NULL;
}

void arena_release(struct arena *a)
{
        struct arena_block *b, *next;

        for (b = a->blocks; b; b = next) {
                next = b->next;
                free(b);
        }
        a->blocks = NULL;
}

void *arena_alloc(struct arena *a, size_t n)
{
        size_t want = (n + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
        struct arena_block *b = a->blocks;
        void *p;

        if (!b || b->size - b->used < want) {
                size_t size = want > BLOCK_SIZE ? want : BLOCK_SIZE;

                b = mem_alloc(sizeof(*b) + size);
                b->next = a->blocks;
                b->used = 0;
                b->size = size;
                a->blocks = b;
        }
        p = b->data + b->used;
        b->used += want;
        memset(p, 0, want);
        return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
        size_t n;
        char *copy;

        if (!s)
                return NULL;
        n = strlen(s) + 1;
        copy = arena_alloc(a, n);
        memcpy(copy, s, n);
        return copy;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
        va_list ap;
        char *s;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(NULL, 0, fmt, ap);
        va_end(ap);
        s = arena_alloc(a, (size_t)n + 1);
        va_start(ap, fmt);
        vsnprintf(s, (size_t)n + 1, fmt, ap);
        va_end(ap);
        return s;
}
