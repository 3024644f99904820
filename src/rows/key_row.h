/*
 * key_row: API keys, as digests; the text of a key is never stored.
 */
#ifndef ROWS_KEY_ROW_H
#define ROWS_KEY_ROW_H

#include "rows/rows.h"

struct key_row {
        int64_t id;
        const char *name;
        const char *prefix;   /* the beginning of its text */
        const char *hash;     /* SHA-256 of its text, 64 hex digits */
        const char *scopes;   /* separated by spaces */
        const char *adapters; /* separated by commas; NULL: all */
        const char *agents;   /* the same */
        int64_t made_by;      /* id of the key that made it; 0: the operator */
        int64_t created_ms, expires_ms, used_ms, revoked_ms; /* 0: never */
        int64_t rate_limit;
};

/* Ignores row->id, used_ms and revoked_ms. */
int key_row_insert(struct store_tx *tx, const struct key_row *row, int64_t *id, struct error *err);
int key_row_set_used(struct store_tx *tx, int64_t id, int64_t used_ms, struct error *err);
int key_row_set_revoked(struct store_tx *tx, int64_t id, int64_t revoked_ms, struct error *err);
/* Deletes keys revoked or expired before then. */
int key_row_delete_ended(struct store_tx *tx, int64_t before_ms, struct error *err);
/* All keys by id. */
struct store_stmt *key_row_list(struct store_tx *tx);
int key_row_next(struct store_stmt *s, struct key_row *row, struct error *err);

#endif
