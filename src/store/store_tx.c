#include "store/store_tx.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/*
 * --- a statement that could not be prepared: still bound and stepped, so that callers see one
 * result ---
 */

static void broken_int(struct store_stmt *s, int at, int64_t value)
{
        (void)s;
        (void)at;
        (void)value;
}

static void broken_real(struct store_stmt *s, int at, double value)
{
        (void)s;
        (void)at;
        (void)value;
}

static void broken_text(struct store_stmt *s, int at, const char *text, size_t n)
{
        (void)s;
        (void)at;
        (void)text;
        (void)n;
}

static int broken_step(struct store_stmt *s, struct error *err)
{
        if (err)
                *err = s->tx->failed;
        return -1;
}

static void broken_reset(struct store_stmt *s)
{
        (void)s;
}

static int64_t broken_col_int(struct store_stmt *s, int at)
{
        (void)s;
        (void)at;
        return 0;
}

static double broken_col_real(struct store_stmt *s, int at)
{
        (void)s;
        (void)at;
        return 0;
}

static const char *broken_col_text(struct store_stmt *s, int at, size_t *n)
{
        (void)s;
        (void)at;
        *n = 0;
        return NULL;
}

static const struct store_driver broken = {
        .scheme = "broken",
        .bind_int = broken_int,
        .bind_real = broken_real,
        .bind_text = broken_text,
        .step = broken_step,
        .reset = broken_reset,
        .col_int = broken_col_int,
        .col_real = broken_col_real,
        .col_text = broken_col_text,
};

/* --- the cache of statements --- */

static size_t slot_of(const struct store_tx *tx, const char *sql)
{
        size_t i = (size_t)(((uintptr_t)sql * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (tx->cap - 1);

        while (tx->slots[i] && tx->slots[i]->sql != sql)
                i = (i + 1) & (tx->cap - 1);
        return i;
}

static void grow(struct store_tx *tx)
{
        struct store_stmt **old = tx->slots;
        size_t old_cap = tx->cap;

        tx->cap = old_cap ? old_cap * 2 : 64;
        tx->slots = mem_array(tx->cap, sizeof(struct store_stmt *));
        for (size_t i = 0; i < old_cap; i++)
                if (old[i])
                        tx->slots[slot_of(tx, old[i]->sql)] = old[i];
        free(old);
}

static void remember_failure(struct store_tx *tx, const struct error *err)
{
        if (tx->failed.kind == ERR_NONE)
                tx->failed = *err;
        if (err->kind == ERR_CORRUPT)
                tx->damage = *err;
}

static void touch(struct store_stmt *s)
{
        if (s->touched)
                return;
        s->touched = true;
        LIST_INSERT_HEAD(&s->tx->touched, s, entry);
}

static struct store_stmt *prepare_new(struct store_tx *tx, const char *sql)
{
        struct error err = { 0 };
        struct store_stmt *s = tx->driver->prepare(tx->conn, sql, &err);

        if (!s) {
                remember_failure(tx, &err);
                return &tx->broken;
        }
        s->tx = tx;
        s->sql = sql;
        if (tx->count * 2 >= tx->cap)
                grow(tx);
        tx->slots[slot_of(tx, sql)] = s;
        tx->count++;
        return s;
}

struct store_stmt *store_prepare(struct store_tx *tx, const char *sql)
{
        struct store_stmt *s = tx->cap ? tx->slots[slot_of(tx, sql)] : NULL;

        if (!s)
                return prepare_new(tx, sql);
        store_reset(s);
        return s;
}

/* --- statements --- */

void store_bind_int(struct store_stmt *s, int at, int64_t value)
{
        touch(s);
        s->driver->bind_int(s, at, value);
}

void store_bind_real(struct store_stmt *s, int at, double value)
{
        touch(s);
        s->driver->bind_real(s, at, value);
}

void store_bind_textn(struct store_stmt *s, int at, const char *text, size_t n)
{
        touch(s);
        s->driver->bind_text(s, at, text, n);
}

void store_bind_text(struct store_stmt *s, int at, const char *text)
{
        store_bind_textn(s, at, text, text ? strlen(text) : 0);
}

void store_bind_null(struct store_stmt *s, int at)
{
        store_bind_textn(s, at, NULL, 0);
}

int store_step(struct store_stmt *s, struct error *err)
{
        struct error why; /* filled only when the step fails: this runs for every row */
        int rc;

        touch(s);
        rc = s->driver->step(s, &why);
        if (rc == 1)
                return 1;
        store_reset(s);
        if (rc == 0)
                return 0;
        remember_failure(s->tx, &why);
        if (err)
                *err = why;
        return -1;
}

int store_run(struct store_stmt *s, struct error *err)
{
        int rc;

        do
                rc = store_step(s, err);
        while (rc == 1);
        return rc;
}

int store_number(struct store_stmt *s, int64_t otherwise, int64_t *out, struct error *err)
{
        int rc = store_step(s, err);

        *out = rc == 1 && !store_col_null(s, 0) ? store_col_int(s, 0) : otherwise;
        store_reset(s);
        return rc < 0 ? -1 : 0;
}

int store_insert(struct store_stmt *s, int64_t *key, struct error *err)
{
        struct store_tx *tx = s->tx;

        if (store_run(s, err) < 0)
                return -1;
        if (tx->driver->changes(tx->conn) == 0)
                return 0;
        *key = tx->driver->last_key(tx->conn);
        return 1;
}

void store_reset(struct store_stmt *s)
{
        if (!s->touched)
                return;
        s->touched = false;
        LIST_REMOVE(s, entry);
        s->driver->reset(s);
}

int64_t store_changes(struct store_tx *tx)
{
        return tx->driver->changes(tx->conn);
}

int64_t store_col_int(struct store_stmt *s, int at)
{
        return s->driver->col_int(s, at);
}

double store_col_real(struct store_stmt *s, int at)
{
        return s->driver->col_real(s, at);
}

const char *store_col_text(struct store_stmt *s, int at)
{
        size_t n;

        return s->driver->col_text(s, at, &n);
}

size_t store_col_size(struct store_stmt *s, int at)
{
        size_t n;

        return s->driver->col_text(s, at, &n) ? n : 0;
}

bool store_col_null(struct store_stmt *s, int at)
{
        return !store_col_text(s, at);
}

/* --- calls --- */

void store_tx_init(struct store_tx *tx, struct store_conn *conn)
{
        memset(tx, 0, sizeof(*tx));
        tx->driver = conn->driver;
        tx->conn = conn;
        LIST_INIT(&tx->touched);
        tx->broken.driver = &broken;
        tx->broken.tx = tx;
}

void store_tx_release(struct store_tx *tx)
{
        if (!tx->conn)
                return;
        for (size_t i = 0; i < tx->cap; i++)
                if (tx->slots[i])
                        tx->driver->finalize(tx->slots[i]);
        free(tx->slots);
        tx->driver->close(tx->conn);
        tx->conn = NULL;
}

int store_tx_call(struct store_tx *tx, store_fn *fn, void *arg, struct error *err)
{
        int rc;

        error_clear(err);
        error_clear(&tx->failed);
        rc = fn(tx, arg, err);
        /*
         * a function may leave in the middle of a result; an open one would hold the snapshot for
         * ever
         */
        while (!LIST_EMPTY(&tx->touched))
                store_reset(LIST_FIRST(&tx->touched));
        if (rc >= 0 && tx->failed.kind == ERR_NONE)
                return 0;
        if (rc >= 0)
                *err = tx->failed;
        else if (err->kind == ERR_NONE)
                error_set(err, ERR_INTERNAL, "a store function failed without saying why");
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
