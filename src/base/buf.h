/*
 * buf: the growable string used everywhere.
 *
 * Always NUL-terminated once it has been written to, the length is known, and there may be a
 * stated maximum: text beyond it is not added and the buffer says so (buf_add returns -1 and
 * `overflow` stays set until buf_clear). Bytes may include NUL.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
        char *data; /* never NULL after buf_init; "" when empty */
        size_t len;
        size_t cap;    /* 0 while data is the shared empty string */
        size_t max;    /* 0: no maximum */
        bool overflow; /* something did not fit into max */
};

/* A borrowed piece of text: pointer and length, not necessarily NUL-terminated. */
struct slice {
        const char *p;
        size_t n;
};

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b);
/* Empty, ready for use, memory kept. */
void buf_clear(struct buf *b);
/* The text, yours to free; the buffer is empty afterwards. */
char *buf_take(struct buf *b);

/* All of these return 0, or -1 when the maximum would be passed; then nothing is added. */
int buf_add(struct buf *b, const void *bytes, size_t n);
int buf_addstr(struct buf *b, const char *s);
int buf_addch(struct buf *b, char c);
int buf_addint(struct buf *b, int64_t n);
int buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_vaddf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Room for n more bytes at the end: returns where to write, then call buf_grew. NULL beyond max. */
char *buf_reserve(struct buf *b, size_t n);
void buf_grew(struct buf *b, size_t n);
/* Cuts to n bytes (n <= len). */
void buf_truncate(struct buf *b, size_t n);
/* Removes the first n bytes. */
void buf_consume(struct buf *b, size_t n);

struct slice slice_of(const char *s);
/* Same bytes? */
bool slice_is(struct slice s, const char *text);

#endif
