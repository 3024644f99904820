/*
 * sql: statements inside a store function. For src/rows alone; other rooms call its typed functions
 * (tools/check sql).
 *
 *     static int rename(struct store_tx *tx, int64_t id, const char *name, struct error *err)
 *     {
 *             return sql_exec(tx, err, "UPDATE agents SET name = ?2 WHERE id = ?1",
 *                             SQL_INT(id), SQL_TEXT(name));
 *     }
 *
 *     s = sql_query(tx, "SELECT id, name FROM agents WHERE team = ?1", SQL_TEXT(team));
 *     while ((rc = sql_next(s, err)) == 1)
 *             sql_read(s, OUT_INT(&id), OUT_TEXT(&name));
 *
 * The first value is ?1, the second ?2, and so on; columns are read in the order of the SELECT.
 *
 * SQL is the common subset of SQLite and PostgreSQL: no order comparison of texts, no parameter
 * whose type follows only from its value (write CAST(?1 AS BIGINT)); make check-postgres tries it.
 * The text must be a string constant, because statements are cached by its address.
 *
 * sql_exec needs no answer, so a driver across a network may send it with the statements that
 * follow.
 */
#ifndef STORE_SQL_H
#define STORE_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/mem.h"
#include "store/store.h"

enum sql_type { SQL_TYPE_NULL, SQL_TYPE_INT, SQL_TYPE_REAL, SQL_TYPE_TEXT };

struct sql_value {
        enum sql_type type;
        int64_t number;
        double real;
        const char *text; /* must live until the statement has run */
        size_t size;
};

#define SQL_INT(x)      ((struct sql_value){ .type = SQL_TYPE_INT, .number = (x) })
#define SQL_REAL(x)     ((struct sql_value){ .type = SQL_TYPE_REAL, .real = (x) })
#define SQL_TEXT(x)     (sql_text_value(x)) /* NULL becomes null */
#define SQL_TEXTN(x, n) ((struct sql_value){ .type = SQL_TYPE_TEXT, .text = (x), .size = (n) })
#define SQL_NULL        ((struct sql_value){ .type = SQL_TYPE_NULL })
/* Null for 0: a reference that may be absent. */
#define SQL_REF(x) (sql_ref_value(x))

struct sql_value sql_text_value(const char *text);
struct sql_value sql_ref_value(int64_t number);

/* The values of a call; the first element is unused, so that there may be none. */
#define SQL_VALUES(...)                                     \
        (const struct sql_value[]){ { 0 }, ##__VA_ARGS__ }, \
                COUNT(((const struct sql_value[]){ { 0 }, ##__VA_ARGS__ })) - 1

/* 0 or -1. */
#define sql_exec(tx, err, sql, ...) sql_exec_values(tx, err, sql, SQL_VALUES(__VA_ARGS__))
/* The number of changed rows, or -1. */
#define sql_update(tx, err, sql, ...) sql_update_values(tx, err, sql, SQL_VALUES(__VA_ARGS__))
/*
 * Runs an INSERT into a table with an AUTOKEY. 1: a row was added, *key set; 0: it was there
 * (ON CONFLICT DO NOTHING); -1.
 */
#define sql_insert(tx, key, err, sql, ...) \
        sql_insert_values(tx, key, err, sql, SQL_VALUES(__VA_ARGS__))
/* The first column of the first row; `otherwise` if there is no row or it is null. 0 or -1. */
#define sql_number(tx, otherwise, out, err, sql, ...) \
        sql_number_values(tx, otherwise, out, err, sql, SQL_VALUES(__VA_ARGS__))
/* A query to step through; an error comes with the first step. */
#define sql_query(tx, sql, ...) sql_query_values(tx, sql, SQL_VALUES(__VA_ARGS__))

int sql_exec_values(struct store_tx *tx, struct error *err, const char *sql,
                    const struct sql_value *values, size_t count);
int64_t sql_update_values(struct store_tx *tx, struct error *err, const char *sql,
                          const struct sql_value *values, size_t count);
int sql_insert_values(struct store_tx *tx, int64_t *key, struct error *err, const char *sql,
                      const struct sql_value *values, size_t count);
int sql_number_values(struct store_tx *tx, int64_t otherwise, int64_t *out, struct error *err,
                      const char *sql, const struct sql_value *values, size_t count);
struct store_stmt *sql_query_values(struct store_tx *tx, const char *sql,
                                    const struct sql_value *values, size_t count);

/* 1: a row is there, 0: no more rows, -1. After 0 or -1 the statement is done. */
int sql_next(struct store_stmt *s, struct error *err);
/* Leaves a query before its end; harmless after it. */
void sql_end(struct store_stmt *s);

/* Where to put a column. */
struct sql_column {
        enum {
                SQL_OUT_INT,
                SQL_OUT_INT32,
                SQL_OUT_BOOL,
                SQL_OUT_REAL,
                SQL_OUT_TEXT,
                SQL_OUT_DUP
        } type;
        void *to;
};
#define OUT_INT(p)   ((struct sql_column){ SQL_OUT_INT, (int64_t *[]){ (p) }[0] }) /* 0 for null */
#define OUT_INT32(p) ((struct sql_column){ SQL_OUT_INT32, (int *[]){ (p) }[0] })
#define OUT_BOOL(p)  ((struct sql_column){ SQL_OUT_BOOL, (bool *[]){ (p) }[0] })
#define OUT_REAL(p)  ((struct sql_column){ SQL_OUT_REAL, (double *[]){ (p) }[0] })
/* Borrowed until the next step; NULL for null. */
#define OUT_TEXT(p) ((struct sql_column){ SQL_OUT_TEXT, (const char **[]){ (p) }[0] })
/* A copy, yours to free; NULL for null. Does not free the old value. */
#define OUT_DUP(p) ((struct sql_column){ SQL_OUT_DUP, (char **[]){ (p) }[0] })

/* Reads the columns of the current row, from the first. */
#define sql_read(s, ...)                                                \
        sql_read_columns(s, (const struct sql_column[]){ __VA_ARGS__ }, \
                         COUNT(((const struct sql_column[]){ __VA_ARGS__ })))
void sql_read_columns(struct store_stmt *s, const struct sql_column *columns, size_t count);
/* Reads the first row and ends the query, so a text must be a copy. 1; 0: no row; -1. */
#define sql_first(s, err, ...)                                                \
        sql_first_columns(s, err, (const struct sql_column[]){ __VA_ARGS__ }, \
                          COUNT(((const struct sql_column[]){ __VA_ARGS__ })))
int sql_first_columns(struct store_stmt *s, struct error *err, const struct sql_column *columns,
                      size_t count);

#endif
