/* Statements with numbered binds, until their last callers use rows functions. */
#include <string.h>

#include "store/store_private.h"

struct store_stmt *store_prepare(struct store_tx *tx, const char *sql)
{
        return store_tx_prepare(tx, sql);
}

static void set_value(struct store_stmt *s, int at, struct sql_value value)
{
        if (!s->driver)
                return;
        store_tx_touch(s);
        s->driver->bind(s, at, &value);
}

void store_bind_int(struct store_stmt *s, int at, int64_t value)
{
        set_value(s, at, SQL_INT(value));
}

void store_bind_real(struct store_stmt *s, int at, double value)
{
        set_value(s, at, SQL_REAL(value));
}

void store_bind_textn(struct store_stmt *s, int at, const char *text, size_t n)
{
        set_value(s, at, text ? SQL_TEXTN(text, n) : SQL_NULL);
}

void store_bind_text(struct store_stmt *s, int at, const char *text)
{
        set_value(s, at, SQL_TEXT(text));
}

void store_bind_null(struct store_stmt *s, int at)
{
        set_value(s, at, SQL_NULL);
}

int store_step(struct store_stmt *s, struct error *err)
{
        return sql_next(s, err);
}

int store_run(struct store_stmt *s, struct error *err)
{
        struct error why;
        int64_t changes;

        if (!s->driver)
                return store_tx_fail(s->tx, &s->tx->failed, err);
        store_tx_touch(s);
        changes = s->driver->update(s, &why);
        store_tx_reset(s);
        if (changes < 0)
                return store_tx_fail(s->tx, &why, err);
        s->tx->changes = changes;
        return 0;
}

int store_number(struct store_stmt *s, int64_t otherwise, int64_t *out, struct error *err)
{
        int rc = sql_next(s, err);

        *out = rc == 1 && !store_col_null(s, 0) ? store_col_int(s, 0) : otherwise;
        sql_end(s);
        return rc < 0 ? -1 : 0;
}

int store_insert(struct store_stmt *s, int64_t *key, struct error *err)
{
        struct error why;
        int rc;

        if (!s->driver)
                return store_tx_fail(s->tx, &s->tx->failed, err);
        store_tx_touch(s);
        rc = s->driver->insert(s, key, &why);
        store_tx_reset(s);
        return rc < 0 ? store_tx_fail(s->tx, &why, err) : rc;
}

void store_reset(struct store_stmt *s)
{
        store_tx_reset(s);
}

int64_t store_changes(struct store_tx *tx)
{
        return tx->changes;
}

int64_t store_col_int(struct store_stmt *s, int at)
{
        return s->driver ? s->driver->col_int(s, at) : 0;
}

double store_col_real(struct store_stmt *s, int at)
{
        return s->driver ? s->driver->col_real(s, at) : 0;
}

const char *store_col_text(struct store_stmt *s, int at)
{
        return s->driver ? s->driver->col_text(s, at) : NULL;
}

size_t store_col_size(struct store_stmt *s, int at)
{
        const char *text = store_col_text(s, at);

        return text ? strlen(text) : 0;
}

bool store_col_null(struct store_stmt *s, int at)
{
        return !s->driver || s->driver->col_null(s, at);
}
