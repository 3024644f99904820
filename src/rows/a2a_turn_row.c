#include "rows/a2a_turn_row.h"

#include <stddef.h>

#include "base/mem.h"
#include "rows/turn_row.h"
#include "store/sql.h"

#define COLUMNS "turn, agent, name, message, task, goes_on, open, since, used_ms"

static int read_row(struct store_stmt *s, struct a2a_turn_row **out, struct error *err)
{
        static const size_t strings[] = {
                offsetof(struct a2a_turn_row, agent),   offsetof(struct a2a_turn_row, name),
                offsetof(struct a2a_turn_row, message), offsetof(struct a2a_turn_row, task),
                offsetof(struct a2a_turn_row, since),
        };
        struct a2a_turn_row row = { 0 };
        int64_t goes_on, open;
        int rc = sql_next(s, err);

        *out = NULL;
        if (rc != 1)
                return rc;
        sql_read(s, OUT_INT(&row.turn), OUT_TEXT(&row.agent), OUT_TEXT(&row.name),
                 OUT_TEXT(&row.message), OUT_TEXT(&row.task), OUT_INT(&goes_on), OUT_INT(&open),
                 OUT_TEXT(&row.since), OUT_INT(&row.used_ms));
        row.goes_on = goes_on != 0;
        row.open = open != 0;
        *out = mem_dup_struct(&row, sizeof(row), strings, COUNT(strings));
        rows_end(s);
        return 1;
}

int a2a_turn_row_get(struct store_tx *tx, int64_t turn, struct a2a_turn_row **out,
                     struct error *err)
{
        return read_row(
                sql_query(tx, "SELECT " COLUMNS " FROM a2a_turns WHERE turn = ?1", SQL_INT(turn)),
                out, err);
}

int a2a_turn_row_find_open(struct store_tx *tx, const char *agent, const char *name,
                           struct a2a_turn_row **out, struct error *err)
{
        return read_row(sql_query(tx,
                                  "SELECT " COLUMNS " FROM a2a_turns WHERE agent = ?1 AND name = ?2"
                                  " AND open = 1 ORDER BY turn DESC LIMIT 1",
                                  SQL_TEXT(agent), SQL_TEXT(name)),
                        out, err);
}

int a2a_turn_row_put(struct store_tx *tx, const struct a2a_turn_row *row, int64_t fence,
                     struct error *err)
{
        int rc = turn_row_progress(tx, row->turn, fence, err);

        if (rc != 1)
                return rc;
        return sql_exec(tx, err,
                        "INSERT INTO a2a_turns(" COLUMNS ")"
                        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT(turn) DO UPDATE"
                        " SET agent = ?2, name = ?3, message = ?4, task = ?5, goes_on = ?6,"
                        " open = ?7, since = ?8, used_ms = ?9",
                        SQL_INT(row->turn), SQL_TEXT(row->agent), SQL_TEXT(row->name),
                        SQL_TEXT(row->message), SQL_TEXT(row->task), SQL_INT(row->goes_on),
                        SQL_INT(row->open), SQL_TEXT(row->since), SQL_INT(row->used_ms)) < 0
                       ? -1
                       : 1;
}

int a2a_turn_row_close_all(struct store_tx *tx, const char *agent, const char *name,
                           struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE a2a_turns SET open = 0 WHERE agent = ?1 AND name = ?2 AND open = 1",
                        SQL_TEXT(agent), SQL_TEXT(name));
}

int a2a_turn_row_close(struct store_tx *tx, const char *agent, const char *name, const char *task,
                       struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE a2a_turns SET open = 0 WHERE agent = ?1 AND name = ?2"
                        " AND task = ?3 AND open = 1",
                        SQL_TEXT(agent), SQL_TEXT(name), SQL_TEXT(task));
}

int a2a_turn_row_open(struct store_tx *tx, int64_t turn, const char *since, struct error *err)
{
        return sql_exec(tx, err, "UPDATE a2a_turns SET open = 1, since = ?2 WHERE turn = ?1",
                        SQL_INT(turn), SQL_TEXT(since));
}

int a2a_turn_row_delete(struct store_tx *tx, int64_t turn, struct error *err)
{
        return sql_exec(tx, err, "DELETE FROM a2a_turns WHERE turn = ?1", SQL_INT(turn));
}
