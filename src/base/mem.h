/*
 * mem: allocation that cannot fail.
 *
 * Running out of memory ends the program here, with a message, so that callers stay clean.
 * Everything returned is freed with free().
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);
/* An array of n elements, zeroed; an overflowing product ends the program. */
void *mem_array(size_t n, size_t size);
void *mem_realloc(void *p, size_t size);
/* NULL stays NULL. */
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);
void *mem_dup(const void *p, size_t n);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Number of elements of a true array. */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
