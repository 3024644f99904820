#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void out_of_memory(size_t size)
{
        fprintf(stderr, "dragoman: out of memory (wanted %zu bytes)\n", size);
        abort();
}

void *mem_alloc(size_t size)
{
        void *p = malloc(size ? size : 1);

        if (!p)
                out_of_memory(size);
        return p;
}

void *mem_zalloc(size_t size)
{
        return mem_array(1, size);
}

void *mem_array(size_t n, size_t size)
{
        void *p = calloc(n ? n : 1, size ? size : 1);

        if (!p)
                out_of_memory(size);
        return p;
}

void *mem_realloc(void *old, size_t size)
{
        void *p = realloc(old, size ? size : 1);

        if (!p)
                out_of_memory(size);
        return p;
}

char *mem_strdup(const char *s)
{
        return s ? mem_strndup(s, strlen(s)) : NULL;
}

char *mem_strndup(const char *s, size_t n)
{
        char *copy = mem_alloc(n + 1);

        memcpy(copy, s, n);
        copy[n] = '\0';
        return copy;
}

void *mem_dup(const void *p, size_t n)
{
        void *copy = mem_alloc(n);

        if (n > 0)
                memcpy(copy, p, n);
        return copy;
}

void *mem_dup_struct(const void *p, size_t size, const size_t *offsets, size_t count)
{
        size_t total = size;
        char *copy, *to;

        for (size_t i = 0; i < count; i++) {
                const char *s = *(const char *const *)((const char *)p + offsets[i]);

                total += s ? strlen(s) + 1 : 0;
        }
        copy = mem_alloc(total);
        memcpy(copy, p, size);
        to = copy + size;
        for (size_t i = 0; i < count; i++) {
                const char **s = (const char **)(copy + offsets[i]);
                size_t n = *s ? strlen(*s) + 1 : 0;

                if (*s)
                        *s = memcpy(to, *s, n);
                to += n;
        }
        return copy;
}

char *mem_printf(const char *fmt, ...)
{
        va_list ap;
        char *s = NULL;
        int n;

        va_start(ap, fmt);
        n = vasprintf(&s, fmt, ap);
        va_end(ap);
        if (n < 0)
                out_of_memory(0);
        return s;
}
