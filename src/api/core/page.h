/*
 * page: the response of a list route: {"items": [...], "meta": {"hasMore", "cursor"}}.
 */
#ifndef API_CORE_PAGE_H
#define API_CORE_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Write elements in between. cursor may be NULL. */
void page_open(struct buf *json);
void page_close(struct buf *json, bool more, const char *cursor);

/* Numbered rows; query one more than `limit`. */
struct page {
        struct buf *json;
        int64_t limit, count;
        int64_t last; /* of the last row shown; 0: none */
        bool more;
};
void page_begin(struct page *p, struct buf *json, int64_t limit);
/* Call before each row; false: the page is full. */
bool page_add(struct page *p, int64_t number);
/* The cursor is prefix and last number: "trn-12". */
void page_end(struct page *p, const char *prefix);

/* For struct `type` with an int64_t `limit`. */
#define PAGE_LIMIT_FIELD(type)                                                                     \
        {                                                                                          \
                "limit", FIELD_INT, .min = 1, .max = 100, FIELD_AT(type, limit), .fallback = "50", \
                                    .help = "Maximum number of items."                             \
        }

#endif
