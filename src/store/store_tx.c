#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/store_private.h"

/* --- statements --- */

static size_t slot_of(const struct store_tx *tx, const char *sql)
{
        size_t i = (size_t)(((uintptr_t)sql * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (tx->cap - 1);

        while (tx->slots[i] && tx->slots[i]->sql != sql)
                i = (i + 1) & (tx->cap - 1);
        return i;
}

struct store_stmt *store_tx_prepare(struct store_tx *tx, const char *sql)
{
        struct store_stmt *s = tx->cap ? tx->slots[slot_of(tx, sql)] : NULL;
        struct error err = { 0 };

        if (s) {
                store_tx_reset(s);
                return s;
        }
        s = tx->driver->prepare(tx->conn, sql, &err);
        if (!s) {
                store_tx_fail(tx, &err, NULL);
                return &tx->broken;
        }
        s->tx = tx;
        s->sql = sql;
        if (tx->count * 2 >= tx->cap) {
                struct store_stmt **old = tx->slots;
                size_t old_cap = tx->cap;

                tx->cap = old_cap ? old_cap * 2 : 64;
                tx->slots = mem_array(tx->cap, sizeof(struct store_stmt *));
                for (size_t i = 0; i < old_cap; i++)
                        if (old[i])
                                tx->slots[slot_of(tx, old[i]->sql)] = old[i];
                free(old);
        }
        tx->slots[slot_of(tx, sql)] = s;
        tx->count++;
        return s;
}

void store_tx_touch(struct store_stmt *s)
{
        if (s->touched)
                return;
        s->touched = true;
        LIST_INSERT_HEAD(&s->tx->touched, s, entry);
}

void store_tx_reset(struct store_stmt *s)
{
        if (!s->touched)
                return;
        s->touched = false;
        LIST_REMOVE(s, entry);
        s->driver->reset(s);
}

int store_tx_fail(struct store_tx *tx, const struct error *why, struct error *err)
{
        if (tx->failed.kind == ERR_NONE)
                tx->failed = *why;
        if (why->kind == ERR_CORRUPT)
                tx->damage = *why;
        if (err)
                *err = *why;
        return -1;
}

/* --- calls --- */

void store_tx_init(struct store_tx *tx, struct store_conn *conn)
{
        memset(tx, 0, sizeof(*tx));
        tx->driver = conn->driver;
        tx->conn = conn;
        LIST_INIT(&tx->touched);
        tx->broken.tx = tx;
}

void store_tx_forget(struct store_tx *tx)
{
        for (size_t i = 0; i < tx->cap; i++)
                if (tx->slots[i])
                        tx->driver->finalize(tx->slots[i]);
        free(tx->slots);
        tx->slots = NULL;
        tx->cap = tx->count = 0;
}

void store_tx_release(struct store_tx *tx)
{
        if (!tx->conn)
                return;
        store_tx_forget(tx);
        tx->driver->close(tx->conn);
        tx->conn = NULL;
}

int store_tx_call(struct store_tx *tx, store_fn *fn, void *arg, struct error *err)
{
        int rc;

        error_clear(err);
        error_clear(&tx->failed);
        rc = fn(tx, arg, err);
        /* fn may leave in the middle of a result; an open one would hold the snapshot for ever */
        while (!LIST_EMPTY(&tx->touched))
                store_tx_reset(LIST_FIRST(&tx->touched));
        if (rc >= 0 && tx->failed.kind == ERR_NONE)
                return 0;
        if (rc >= 0)
                *err = tx->failed;
        else if (err->kind == ERR_NONE)
                error_set(err, ERR_INTERNAL, "a store function failed without an error");
        return -1;
}

int store_tx_run(struct store_tx *tx, store_fn *fn, void *arg, struct error *err)
{
        if (tx->driver->begin(tx->conn, err) != 0)
                return -1;
        if (store_tx_call(tx, fn, arg, err) == 0 && tx->driver->commit(tx->conn, err) == 0)
                return 0;
        tx->driver->rollback(tx->conn);
        return -1;
}
