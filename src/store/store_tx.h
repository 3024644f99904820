/*
 * store_tx: a connection with its prepared statements, as store functions see it. For the store
 * alone.
 *
 * A statement that fails fails the function that ran it, even if the function returns 0: databases
 * roll back or block the transaction after some errors, so later statements cannot be trusted.
 */
#ifndef STORE_STORE_TX_H
#define STORE_STORE_TX_H

#include "store/store_driver.h"

LIST_HEAD(store_stmts, store_stmt);

struct store_tx {
        const struct store_driver *driver;
        struct store_conn *conn;   /* owned */
        struct store_stmt **slots; /* statements by the address of their text; open addressing */
        size_t cap, count;         /* cap is a power of two, or 0 */
        struct store_stmts touched;
        struct store_stmt broken; /* stands for a statement that could not be prepared */
        struct error failed;      /* the first statement error of this call */
        struct error damage;      /* a statement found the database damaged, in any call */
        int64_t changes;          /* see legacy.c */
};

/* Takes over the connection. */
void store_tx_init(struct store_tx *tx, struct store_conn *conn);
/* Finalizes the statements and closes; fine if conn is NULL. */
void store_tx_release(struct store_tx *tx);
/* Finalizes the statements; none may be in use. */
void store_tx_forget(struct store_tx *tx);
/* Runs fn inside the open transaction. */
int store_tx_call(struct store_tx *tx, store_fn *fn, void *arg, struct error *err);
/* Begins, runs fn, commits; rolls back if one of them fails. */
int store_tx_run(struct store_tx *tx, store_fn *fn, void *arg, struct error *err);

/* The statement for this text, reset; &tx->broken, with tx->failed set, if it is malformed. */
struct store_stmt *store_tx_prepare(struct store_tx *tx, const char *sql);
/* Must precede binding and stepping, so that the statement is reset when the call ends. */
void store_tx_touch(struct store_stmt *s);
void store_tx_reset(struct store_stmt *s);
/* A statement has failed. Copies why to err (may be NULL) and returns -1. */
int store_tx_fail(struct store_tx *tx, const struct error *why, struct error *err);

#endif
