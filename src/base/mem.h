/*
 * mem: allocation that ends the program when memory runs out. Free results with free().
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);
/* A zeroed array; an overflowing product ends the program. */
void *mem_array(size_t n, size_t size);
void *mem_realloc(void *p, size_t size);
/* NULL stays NULL. */
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);
void *mem_dup(const void *p, size_t n);
/* Copies a struct and the strings at these offsets (NULL stays NULL) into one block. */
void *mem_dup_struct(const void *p, size_t size, const size_t *offsets, size_t count);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
