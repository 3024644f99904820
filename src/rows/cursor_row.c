#include "rows/journal_row.h"

#include "store/sql.h"

int cursor_row_get(struct store_tx *tx, const char *name, struct cursor_row *out, struct error *err)
{
        *out = (struct cursor_row){ .name = name };
        return sql_first(sql_query(tx,
                                   "SELECT seq, updated_ms, missed FROM cursors WHERE name = ?1",
                                   SQL_TEXT(name)),
                         err, OUT_INT(&out->seq), OUT_INT(&out->seen_ms), OUT_INT(&out->missed));
}

int cursor_row_move(struct store_tx *tx, const char *name, int64_t seq, int64_t now_ms,
                    struct error *err)
{
        return sql_exec(tx, err,
                        "INSERT INTO cursors(name, seq, updated_ms) VALUES(?1, ?2, ?3)"
                        " ON CONFLICT(name) DO UPDATE"
                        " SET seq = excluded.seq, updated_ms = excluded.updated_ms, missed = 0"
                        " WHERE excluded.seq > cursors.seq",
                        SQL_TEXT(name), SQL_INT(seq), SQL_INT(now_ms));
}

int cursor_row_touch(struct store_tx *tx, const char *name, int64_t seq, int64_t now_ms,
                     int64_t stale_ms, struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE cursors"
                        " SET updated_ms = ?3, seq = CASE WHEN ?2 > seq THEN ?2 ELSE seq END"
                        " WHERE name = ?1 AND (?2 > seq OR updated_ms < ?4)",
                        SQL_TEXT(name), SQL_INT(seq), SQL_INT(now_ms), SQL_INT(stale_ms));
}

int cursor_row_add_missed(struct store_tx *tx, const char *name, int64_t events, struct error *err)
{
        return sql_exec(tx, err, "UPDATE cursors SET missed = missed + ?2 WHERE name = ?1",
                        SQL_TEXT(name), SQL_INT(events));
}

int cursor_row_least(struct store_tx *tx, int64_t seen_since_ms, int64_t *out, struct error *err)
{
        return sql_number(tx, INT64_MAX, out, err,
                          "SELECT min(seq) FROM cursors WHERE updated_ms >= ?1",
                          SQL_INT(seen_since_ms));
}

int cursor_row_each(struct store_tx *tx, int64_t seq, cursor_row_fn *each, void *arg,
                    struct error *err)
{
        struct store_stmt *s = sql_query(tx,
                                         "SELECT name, seq, updated_ms, missed"
                                         " FROM cursors WHERE seq < ?1 ORDER BY name",
                                         SQL_INT(seq));
        int rc;

        while ((rc = sql_next(s, err)) == 1) {
                struct cursor_row row;

                sql_read(s, OUT_TEXT(&row.name), OUT_INT(&row.seq), OUT_INT(&row.seen_ms),
                         OUT_INT(&row.missed));
                each(arg, &row);
        }
        return rc;
}
