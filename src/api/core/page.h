/*
 * page: the answer of a route that lists: {"items": [...], "meta": {"hasMore", "cursor"}}.
 */
#ifndef API_CORE_PAGE_H
#define API_CORE_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Elements are written in between. cursor NULL: none. */
void page_open(struct buf *json);
void page_close(struct buf *json, bool more, const char *cursor);

/* A page of numbered rows; the query asks for one more than `limit`. */
struct page {
        struct buf *json;
        int64_t limit, count;
        int64_t last; /* number of the last row shown; 0: none */
        bool more;    /* there is a row beyond the limit */
};
void page_begin(struct page *p, struct buf *json, int64_t limit);
/* Call it before writing a row; false: the page is full. */
bool page_add(struct page *p, int64_t number);
/* The cursor is the last row's number behind this prefix, "trn-12". */
void page_end(struct page *p, const char *prefix);

/* The query parameter `limit` of a list, for struct `type` with an int64_t of that name. */
#define PAGE_LIMIT_FIELD(type)                                                                     \
        {                                                                                          \
                "limit", FIELD_INT, .min = 1, .max = 100, FIELD_AT(type, limit), .fallback = "50", \
                                    .help = "How many at most."                                    \
        }

#endif
