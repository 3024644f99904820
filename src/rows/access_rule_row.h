/*
 * access_rule_row: who may talk to the bot besides what the configuration says.
 */
#ifndef ROWS_ACCESS_RULE_ROW_H
#define ROWS_ACCESS_RULE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

struct access_rule {
        int64_t id; /* shown as "acr-N" */
        bool deny;
        const char *adapter; /* NULL: all */
        /* may begin with a platform and a colon; `*` globs; NULL: the rule names a person */
        const char *user;
        int64_t person;    /* 0: the rule names a user */
        const char *place; /* "dm", "group"; NULL: everywhere */
        bool enabled;
        const char *reason; /* for the operator; may be NULL */
        /* deny: sent to the sender in a direct message, once in a while; NULL: nothing */
        const char *message;
        const char *by;     /* who made it; may be NULL */
        int64_t expires_ms; /* 0: never */
        int64_t created_ms, updated_ms;
};

int access_rule_row_insert(struct store_tx *tx, const struct access_rule *r, int64_t *id,
                           struct error *err);
/* 1, 0 when there is no such rule, -1. */
int access_rule_row_update(struct store_tx *tx, const struct access_rule *r, struct error *err);
int access_rule_row_delete(struct store_tx *tx, int64_t id, struct error *err);

/* By number. */
struct store_stmt *access_rule_row_list(struct store_tx *tx);
/* 1: *out is borrowed until the next call, 0: no more, -1. */
int access_rule_row_next(struct store_stmt *s, struct access_rule *out, struct error *err);

#endif
