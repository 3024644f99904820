#include "store/sql.h"

#include <string.h>

#include "store/store_driver.h"

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
        struct store_stmt *s = store_prepare(tx, sql);

        for (int at = 1; at <= (int)count; at++) {
                const struct sql_value *v = &values[at];

                switch (v->type) {
                case SQL_TYPE_NULL:
                        store_bind_null(s, at);
                        break;
                case SQL_TYPE_INT:
                        store_bind_int(s, at, v->number);
                        break;
                case SQL_TYPE_REAL:
                        store_bind_real(s, at, v->real);
                        break;
                case SQL_TYPE_TEXT:
                        store_bind_textn(s, at, v->text, v->size);
                        break;
                }
        }
        return s;
}

int sql_exec_values(struct store_tx *tx, struct error *err, const char *sql,
                    const struct sql_value *values, size_t count)
{
        return store_run(sql_query_values(tx, sql, values, count), err);
}

int64_t sql_update_values(struct store_tx *tx, struct error *err, const char *sql,
                          const struct sql_value *values, size_t count)
{
        if (sql_exec_values(tx, err, sql, values, count) < 0)
                return -1;
        return store_changes(tx);
}

int sql_insert_values(struct store_tx *tx, int64_t *key, struct error *err, const char *sql,
                      const struct sql_value *values, size_t count)
{
        return store_insert(sql_query_values(tx, sql, values, count), key, err);
}

int sql_number_values(struct store_tx *tx, int64_t otherwise, int64_t *out, struct error *err,
                      const char *sql, const struct sql_value *values, size_t count)
{
        return store_number(sql_query_values(tx, sql, values, count), otherwise, out, err);
}

int sql_next(struct store_stmt *s, struct error *err)
{
        return store_step(s, err);
}

void sql_end(struct store_stmt *s)
{
        store_reset(s);
}

void sql_read_columns(struct store_stmt *s, const struct sql_column *columns, size_t count)
{
        for (int at = 0; at < (int)count; at++) {
                void *to = columns[at].to;

                switch (columns[at].type) {
                case SQL_OUT_INT:
                        *(int64_t *)to = store_col_int(s, at);
                        break;
                case SQL_OUT_INT32:
                        *(int *)to = (int)store_col_int(s, at);
                        break;
                case SQL_OUT_BOOL:
                        *(bool *)to = store_col_int(s, at) != 0;
                        break;
                case SQL_OUT_REAL:
                        *(double *)to = store_col_real(s, at);
                        break;
                case SQL_OUT_TEXT:
                        *(const char **)to = store_col_text(s, at);
                        break;
                case SQL_OUT_DUP:
                        *(char **)to = mem_strdup(store_col_text(s, at));
                        break;
                }
        }
}
