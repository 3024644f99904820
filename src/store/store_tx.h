/*
 * tx: a connection as store functions see it, with its prepared statements. Inside the store room
 * only.
 *
 * A statement that failed fails the function that ran it, also when the function says it went well:
 * databases undo or block the transaction after some errors, so nothing that follows could be
 * trusted.
 */
#ifndef STORE_TX_H
#define STORE_TX_H

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
        /* a statement found the database damaged, in this call or an earlier one */
        struct error damage;
};

/* Takes the connection over. */
void store_tx_init(struct store_tx *tx, struct store_conn *conn);
/* Finalizes the statements and closes; fine when conn is NULL. */
void store_tx_release(struct store_tx *tx);
/* Runs fn inside the transaction that is open. */
int store_tx_call(struct store_tx *tx, store_fn *fn, void *arg, struct error *err);
/* begin, fn, commit; undone when one of them fails. */
int store_tx_run(struct store_tx *tx, store_fn *fn, void *arg, struct error *err);

#endif
