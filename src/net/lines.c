#include "net/lines.h"

#include <string.h>

#define ROOM_KEPT (1u << 20) /* of a long line, for the next one */

void lines_init(struct lines *l, size_t max)
{
        buf_init(&l->part, max);
}

void lines_release(struct lines *l)
{
        buf_release(&l->part);
}

static size_t without_cr(const char *line, size_t n)
{
        return n > 0 && line[n - 1] == '\r' ? n - 1 : n;
}

static void begin_line(struct lines *l)
{
        size_t max = l->part.max;

        buf_clear(&l->part);
        if (l->part.cap > ROOM_KEPT) {
                buf_release(&l->part);
                buf_init(&l->part, max);
        }
}

int lines_add(struct lines *l, const char *bytes, size_t n, lines_fn *fn, void *arg)
{
        while (n > 0) {
                const char *end = memchr(bytes, '\n', n);
                size_t part = end ? (size_t)(end - bytes) : n;

                if (!end)
                        return buf_add(&l->part, bytes, part);
                if (l->part.len == 0) { /* whole: no copy */
                        if (part > l->part.max && l->part.max > 0)
                                return -1;
                        if (!fn(arg, bytes, without_cr(bytes, part)))
                                return 0;
                } else {
                        if (buf_add(&l->part, bytes, part) < 0)
                                return -1;
                        if (!fn(arg, l->part.data, without_cr(l->part.data, l->part.len)))
                                return 0;
                        begin_line(l);
                }
                bytes += part + 1;
                n -= part + 1;
        }
        return 0;
}
