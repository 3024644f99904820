/*
 * buf: the growable string used everywhere, always NUL-terminated; it may contain NUL.
 *
 * An addition beyond its maximum adds nothing, returns -1 and sets `overflow` until buf_clear.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct buf {
        char *data; /* never NULL after buf_init */
        size_t len;
        size_t cap; /* 0 while data is the shared empty string */
        size_t max; /* 0: no maximum */
        bool overflow;
};

/* Borrowed text, not necessarily NUL-terminated. */
struct slice {
        const char *p;
        size_t n;
};

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b);
/* Keeps the memory. */
void buf_clear(struct buf *b);
/* The text, yours to free; leaves the buffer empty. */
char *buf_take(struct buf *b);

/* 0, or -1 when the addition would pass the maximum. */
int buf_add(struct buf *b, const void *bytes, size_t n);
int buf_addstr(struct buf *b, const char *s);
int buf_addch(struct buf *b, char c);
int buf_addint(struct buf *b, int64_t n);
int buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_vaddf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Where to write n more bytes, NULL beyond max. Call buf_grew with the number written. */
char *buf_reserve(struct buf *b, size_t n);
void buf_grew(struct buf *b, size_t n);
void buf_truncate(struct buf *b, size_t n);
void buf_consume(struct buf *b, size_t n);

static inline struct slice slice_of(const char *s)
{
        return (struct slice){ s, s ? strlen(s) : 0 };
}

static inline bool slice_is(struct slice s, const char *text)
{
        return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

#endif
