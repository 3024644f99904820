/*
 * cursor_row: how far each durable reader of the journal has come, and when it was last seen.
 */
#ifndef ROWS_CURSOR_ROW_H
#define ROWS_CURSOR_ROW_H

#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

struct cursor_row {
        const char *name;
        int64_t seq;     /* processed up to here */
        int64_t seen_ms; /* when its owner last ran, to the hour */
        int64_t missed;  /* events deleted before it read them */
};

/* 1; 0: unknown, all numbers are 0; -1. */
int cursor_row_get(struct store_tx *tx, const char *name, struct cursor_row *out,
                   struct error *err);
/* Adds the cursor or moves it forward, never back; moving clears `missed`. */
int cursor_row_move(struct store_tx *tx, const char *name, int64_t seq, int64_t now_ms,
                    struct error *err);
/*
 * Records that the owner is running and has come at least to `seq`. Writes nothing if neither is
 * news: seen_ms is refreshed only when older than stale_ms. Ignores unknown names.
 */
int cursor_row_touch(struct store_tx *tx, const char *name, int64_t seq, int64_t now_ms,
                     int64_t stale_ms, struct error *err);
int cursor_row_add_missed(struct store_tx *tx, const char *name, int64_t events, struct error *err);
/* The least seq of cursors seen since then; INT64_MAX if there is none. */
int cursor_row_least(struct store_tx *tx, int64_t seen_since_ms, int64_t *out, struct error *err);

/* Calls each() for the cursors before `seq` (INT64_MAX: all), by name; the row is borrowed. */
typedef void cursor_row_fn(void *arg, const struct cursor_row *row);
int cursor_row_each(struct store_tx *tx, int64_t seq, cursor_row_fn *each, void *arg,
                    struct error *err);

#endif
