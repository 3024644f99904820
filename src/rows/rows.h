/*
 * rows: conventions and types of this folder.
 *
 * A file per table or aggregate, and only they write SQL (store/sql.h). Unless a comment says
 * otherwise, functions return 0 or -1, and
 *
 *     x_row_get, _find   1: found; 0: missing; -1. A row (else NULL) is a copy in one block:
 *                        free() it.
 *     x_row_list         starts a list; errors come with the first step
 *     x_row_next         1: *out is borrowed until the next step; 0: end; -1
 *     x_row_claim, _settle, _finish   1; 0: stale fence; -1
 *     x_row_update, _delete, _revive  1; 0: no such row in that state; -1
 *     x_name, x_parse    convert an enum to and from the stored text
 */
#ifndef ROWS_ROWS_H
#define ROWS_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

/* Ends a list early. */
void rows_end(struct store_stmt *s);

/* A chat: a channel, or a thread in it. Borrowed strings. */
struct chat_key {
        const char *adapter, *channel;
        const char *thread; /* NULL: the whole channel */
};

/* One text for maps and rows, yours to free. NULL counts as "". */
char *chat_key_text(const struct chat_key *key);

/* SQL: the column is one of ",api,tg,"; a null list means all. */
#define ROWS_IF_ADAPTERS(column, parameter)    \
        "(CAST(" parameter " AS TEXT) IS NULL" \
        " OR replace(" parameter ", ',' || " column " || ',', '') <> " parameter ")"
/* SQL: the column equals the value; null means any. */
#define ROWS_IF_TEXT(column, parameter) \
        "(CAST(" parameter " AS TEXT) IS NULL OR " column " = " parameter ")"

#endif
