/*
 * rule_row: rules written over the API.
 */
#ifndef ROWS_RULE_ROW_H
#define ROWS_RULE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

struct rule_row {
        const char *name;
        int64_t position;
        bool enabled;
        const char *json; /* as written, an object */
        int64_t created_ms, updated_ms;
};

/* These return 1, or 0 when there is such a row already (insert) or none (update, delete); -1. */
int rule_row_insert(struct store_tx *tx, const struct rule_row *r, struct error *err);
int rule_row_update(struct store_tx *tx, const struct rule_row *r, struct error *err);
int rule_row_delete(struct store_tx *tx, const char *name, struct error *err);

struct store_stmt *rule_row_list(struct store_tx *tx);
/* 1: *out is borrowed until the next call, 0: no more, -1. */
int rule_row_next(struct store_stmt *s, struct rule_row *out, struct error *err);

#endif
