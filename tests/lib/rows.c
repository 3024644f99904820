#include "rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "store/sql.h"

struct query {
        const char *sql, *member;
        bool first;     /* leave out further rows */
        int64_t number; /* of the first row */
        unsigned rows;
        struct buf text;
};

static int run_query(struct store_tx *tx, void *arg, struct error *err)
{
        struct query *q = arg;
        struct store_stmt *s = sql_query(tx, q->sql);
        int rc;

        q->rows = 0;
        buf_clear(&q->text);
        while ((rc = sql_next(s, err)) == 1) {
                const char *text;
                json_t *object = NULL;

                if (q->rows == 0)
                        sql_read(s, OUT_INT(&q->number));
                sql_read(s, OUT_TEXT(&text));
                if (q->member && text) {
                        object = json_read(text, strlen(text), NULL);
                        text = json_str(object, q->member, NULL);
                }
                if (q->rows == 0 || !q->first)
                        buf_addf(&q->text, "%s%s", q->rows > 0 ? ", " : "", text ? text : "");
                q->rows++;
                json_decref(object);
        }
        return rc;
}

static const char *query(struct store *s, struct query *q)
{
        static char text[4096];
        struct error err;

        buf_init(&q->text, 0);
        if (store_read_now(s, run_query, q, &err) < 0)
                fail_msg("%s: %s", q->sql, err.text);
        snprintf(text, sizeof(text), "%s", q->text.data);
        buf_release(&q->text);
        return text;
}

int64_t rows_sql_number(struct store *s, const char *sql)
{
        struct query q = { .sql = sql, .first = true };

        query(s, &q);
        return q.number;
}

const char *rows_sql_text(struct store *s, const char *sql)
{
        return query(s, &(struct query){ .sql = sql, .first = true });
}

const char *rows_sql_list(struct store *s, const char *sql, const char *member)
{
        return query(s, &(struct query){ .sql = sql, .member = member });
}

struct update {
        const char *sql;
        int64_t a, b;
};

static int run_update(struct store_tx *tx, void *arg, struct error *err)
{
        const struct update *u = arg;
        /* the first element is unused, see SQL_VALUES */
        const struct sql_value values[] = { { 0 }, SQL_INT(u->a), SQL_INT(u->b) };
        size_t count = strstr(u->sql, "?2") ? 2 : strstr(u->sql, "?1") ? 1 : 0;

        return sql_exec_values(tx, err, u->sql, values, count);
}

void rows_sql_update(struct store *s, const char *sql, int64_t a, int64_t b)
{
        struct update u = { sql, a, b };
        struct error err;

        if (store_write_now(s, run_update, &u, &err) < 0)
                fail_msg("%s: %s", sql, err.text);
}
