#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static char empty[1];

void buf_init(struct buf *b, size_t max)
{
        *b = (struct buf){ .data = empty, .max = max };
}

void buf_release(struct buf *b)
{
        if (b->cap > 0)
                free(b->data);
        buf_init(b, b->max);
}

void buf_clear(struct buf *b)
{
        b->len = 0;
        b->overflow = false;
        if (b->cap > 0)
                b->data[0] = '\0';
}

char *buf_take(struct buf *b)
{
        char *text = b->cap > 0 ? b->data : mem_strdup("");

        buf_init(b, b->max);
        return text;
}

char *buf_reserve(struct buf *b, size_t n)
{
        /* an impossible size ends the program in mem_realloc */
        size_t want = n < SIZE_MAX / 2 - b->len ? b->len + n + 1 : SIZE_MAX / 2;

        if (b->max > 0 && (n > b->max || b->len > b->max - n)) {
                b->overflow = true;
                return NULL;
        }
        if (want > b->cap) {
                size_t cap = b->cap ? b->cap : 64;

                while (cap < want)
                        cap += cap / 2 + 32;
                b->data = mem_realloc(b->cap ? b->data : NULL, cap);
                b->cap = cap;
                b->data[b->len] = '\0';
        }
        return b->data + b->len;
}

void buf_grew(struct buf *b, size_t n)
{
        b->len += n;
        b->data[b->len] = '\0';
}

int buf_add(struct buf *b, const void *bytes, size_t n)
{
        char *end;

        if (n == 0)
                return 0;
        end = buf_reserve(b, n);
        if (!end)
                return -1;
        memcpy(end, bytes, n);
        buf_grew(b, n);
        return 0;
}

int buf_addstr(struct buf *b, const char *s)
{
        return buf_add(b, s, strlen(s));
}

int buf_addch(struct buf *b, char c)
{
        char *end = buf_reserve(b, 1);

        if (!end)
                return -1;
        *end = c;
        buf_grew(b, 1);
        return 0;
}

int buf_addint(struct buf *b, int64_t n)
{
        char digits[20];
        char *p = digits + sizeof(digits);
        uint64_t rest = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;

        do {
                *--p = (char)('0' + rest % 10);
                rest /= 10;
        } while (rest > 0);
        if (n < 0)
                *--p = '-';
        return buf_add(b, p, (size_t)(digits + sizeof(digits) - p));
}

int buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
        char *here = b->cap > 0 ? b->data + b->len : NULL;
        size_t room = here ? b->cap - b->len : 0;
        va_list again;
        char *end;
        int n;

        /* usually the text fits and is formatted once */
        va_copy(again, ap);
        n = vsnprintf(here, room, fmt, again);
        va_end(again);
        end = n < 0 ? NULL : buf_reserve(b, (size_t)n);
        if (!end) {
                if (here)
                        *here = '\0';
                return -1;
        }
        if ((size_t)n >= room)
                vsnprintf(end, (size_t)n + 1, fmt, ap);
        buf_grew(b, (size_t)n);
        return 0;
}

int buf_addf(struct buf *b, const char *fmt, ...)
{
        va_list ap;
        int rc;

        va_start(ap, fmt);
        rc = buf_vaddf(b, fmt, ap);
        va_end(ap);
        return rc;
}

void buf_truncate(struct buf *b, size_t n)
{
        if (n >= b->len)
                return;
        b->len = n;
        b->data[n] = '\0';
}

void buf_consume(struct buf *b, size_t n)
{
        if (n > b->len)
                n = b->len;
        if (n == 0)
                return;
        memmove(b->data, b->data + n, b->len - n + 1);
        b->len -= n;
}
