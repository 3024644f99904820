/*
 * key_row: API keys. The table has the digest of a key, never its text.
 */
#ifndef ROWS_KEY_ROW_H
#define ROWS_KEY_ROW_H

#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

struct key_row {
        int64_t id;
        const char *name;
        const char *prefix;   /* the beginning of its text */
        const char *hash;     /* SHA-256 of its text, 64 hex digits */
        const char *scopes;   /* separated by spaces */
        const char *adapters; /* separated by commas; NULL: all */
        int64_t created_ms, expires_ms, used_ms, revoked_ms; /* 0: never */
        int64_t rate_limit;
};

int key_row_add(struct store_tx *tx, const struct key_row *row, int64_t *id, struct error *err);
int key_row_set_used(struct store_tx *tx, int64_t id, int64_t used_ms, struct error *err);
int key_row_set_revoked(struct store_tx *tx, int64_t id, int64_t revoked_ms, struct error *err);
/* Deletes keys that were revoked or have expired before that time. */
int key_row_delete_ended(struct store_tx *tx, int64_t before_ms, struct error *err);
/* All keys by id. The row is borrowed for the call. */
int key_row_each(struct store_tx *tx, void (*fn)(void *arg, const struct key_row *row), void *arg,
                 struct error *err);

#endif
