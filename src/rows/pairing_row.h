/*
 * pairing_row: codes of strangers who asked to be let in, and what the operator decided.
 */
#ifndef ROWS_PAIRING_ROW_H
#define ROWS_PAIRING_ROW_H

#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

#define PAIRING_WAITING  "waiting"
#define PAIRING_APPROVED "approved"
#define PAIRING_DENIED   "denied"

struct pairing {
        int64_t id;       /* shown as "pair-N" */
        const char *code; /* "ABCD2345" */
        const char *adapter, *platform, *sender;
        const char *name;  /* of the sender; may be NULL */
        const char *state; /* PAIRING_* */
        int64_t rule;      /* the access rule that was made of it; 0: none */
        int64_t created_ms, expires_ms;
        int64_t decided_ms; /* 0: not yet */
        const char *by;     /* who decided */
};

/* A waiting one. Deletes those that expired by then, and the sender's previous one. */
int pairing_row_insert(struct store_tx *tx, const struct pairing *p, int64_t *id,
                       struct error *err);
/* Stores state, rule, decided_ms and by. 1, 0 when it is not waiting, -1. */
int pairing_row_decide(struct store_tx *tx, const struct pairing *p, struct error *err);
/* 1 with its access rule (0: none), 0 when there is no such pairing, -1. */
int pairing_row_get_rule(struct store_tx *tx, int64_t id, int64_t *rule, struct error *err);
int pairing_row_delete(struct store_tx *tx, int64_t id, struct error *err);

/* Decided ones and those still valid, newest first, at most `limit` below `before`. */
struct store_stmt *pairing_row_list(struct store_tx *tx, int64_t before, int64_t limit,
                                    int64_t now_ms);
/* Those that wait and are still valid. */
struct store_stmt *pairing_row_list_waiting(struct store_tx *tx, int64_t now_ms);
/* 1: *out is borrowed until the next call, 0: no more, -1. */
int pairing_row_next(struct store_stmt *s, struct pairing *out, struct error *err);

#endif
