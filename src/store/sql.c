#include "store/sql.h"

#include <string.h>

#include "store/store_private.h"

struct sql_value sql_text_value(const char *text)
{
        if (!text)
                return SQL_NULL;
        return SQL_TEXTN(text, strlen(text));
}

struct sql_value sql_ref_value(int64_t number)
{
        return number > 0 ? SQL_INT(number) : SQL_NULL;
}

/* values[0] is unused: see SQL_VALUES. */
struct store_stmt *sql_query_values(struct store_tx *tx, const char *sql,
                                    const struct sql_value *values, size_t count)
{
        struct store_stmt *s = store_tx_prepare(tx, sql);

        if (!s->driver)
                return s;
        store_tx_touch(s);
        for (size_t at = 1; at <= count; at++)
                s->driver->bind(s, (int)at, &values[at]);
        return s;
}

int sql_next(struct store_stmt *s, struct error *err)
{
        struct error why; /* set only if the step fails: this runs for every row */
        int rc;

        if (!s->driver)
                return store_tx_fail(s->tx, &s->tx->failed, err);
        store_tx_touch(s);
        rc = s->driver->step(s, &why);
        if (rc == 1)
                return 1;
        store_tx_reset(s);
        return rc == 0 ? 0 : store_tx_fail(s->tx, &why, err);
}

void sql_end(struct store_stmt *s)
{
        store_tx_reset(s);
}

int sql_exec_values(struct store_tx *tx, struct error *err, const char *sql,
                    const struct sql_value *values, size_t count)
{
        struct store_stmt *s = sql_query_values(tx, sql, values, count);
        struct error why;
        int rc;

        if (!s->driver)
                return store_tx_fail(tx, &tx->failed, err);
        rc = s->driver->exec(s, &why);
        store_tx_reset(s);
        return rc < 0 ? store_tx_fail(tx, &why, err) : 0;
}

int64_t sql_update_values(struct store_tx *tx, struct error *err, const char *sql,
                          const struct sql_value *values, size_t count)
{
        struct store_stmt *s = sql_query_values(tx, sql, values, count);
        struct error why;
        int64_t changed;

        if (!s->driver)
                return store_tx_fail(tx, &tx->failed, err);
        changed = s->driver->update(s, &why);
        store_tx_reset(s);
        return changed < 0 ? store_tx_fail(tx, &why, err) : changed;
}

int sql_insert_values(struct store_tx *tx, int64_t *key, struct error *err, const char *sql,
                      const struct sql_value *values, size_t count)
{
        struct store_stmt *s = sql_query_values(tx, sql, values, count);
        struct error why;
        int rc;

        if (!s->driver)
                return store_tx_fail(tx, &tx->failed, err);
        rc = s->driver->insert(s, key, &why);
        store_tx_reset(s);
        return rc < 0 ? store_tx_fail(tx, &why, err) : rc;
}

int sql_number_values(struct store_tx *tx, int64_t otherwise, int64_t *out, struct error *err,
                      const char *sql, const struct sql_value *values, size_t count)
{
        struct store_stmt *s = sql_query_values(tx, sql, values, count);
        struct sql_value first = SQL_NULL;
        int rc = sql_next(s, err);

        if (rc == 1)
                first = s->driver->column(s, 0, SQL_TYPE_INT);
        *out = first.type == SQL_TYPE_NULL ? otherwise : first.number;
        sql_end(s);
        return rc < 0 ? -1 : 0;
}

void sql_read_columns(struct store_stmt *s, const struct sql_column *columns, size_t count)
{
        const struct store_driver *d = s->driver;

        for (int at = 0; at < (int)count; at++) {
                void *to = columns[at].to;

                switch (columns[at].type) {
                case SQL_OUT_INT:
                        *(int64_t *)to = d->column(s, at, SQL_TYPE_INT).number;
                        break;
                case SQL_OUT_INT32:
                        *(int *)to = (int)d->column(s, at, SQL_TYPE_INT).number;
                        break;
                case SQL_OUT_BOOL:
                        *(bool *)to = d->column(s, at, SQL_TYPE_INT).number != 0;
                        break;
                case SQL_OUT_REAL:
                        *(double *)to = d->column(s, at, SQL_TYPE_REAL).real;
                        break;
                case SQL_OUT_TEXT:
                        *(const char **)to = d->column(s, at, SQL_TYPE_TEXT).text;
                        break;
                case SQL_OUT_DUP:
                        *(char **)to = mem_strdup(d->column(s, at, SQL_TYPE_TEXT).text);
                        break;
                }
        }
}

int sql_first_columns(struct store_stmt *s, struct error *err, const struct sql_column *columns,
                      size_t count)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read_columns(s, columns, count);
        sql_end(s);
        return rc;
}
