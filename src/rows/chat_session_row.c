#include "rows/chat_session_row.h"

#include "store/sql.h"

int chat_session_row_put(struct store_tx *tx, const struct chat_session_row *row, struct error *err)
{
        return sql_exec(tx, err,
                        "INSERT INTO chat_sessions(chat, session, active_ms)"
                        " VALUES(?1, ?2, ?3)"
                        " ON CONFLICT(chat) DO UPDATE SET session = ?2, active_ms = ?3",
                        SQL_TEXT(row->chat), SQL_TEXT(row->session), SQL_INT(row->active_ms));
}

int chat_session_row_touch(struct store_tx *tx, const char *session, int64_t now_ms,
                           struct error *err)
{
        return sql_exec(tx, err, "UPDATE chat_sessions SET active_ms = ?2 WHERE session = ?1",
                        SQL_TEXT(session), SQL_INT(now_ms));
}

int chat_session_row_delete_before(struct store_tx *tx, int64_t active_ms, struct error *err)
{
        return sql_exec(tx, err, "DELETE FROM chat_sessions WHERE active_ms < ?1",
                        SQL_INT(active_ms));
}

struct store_stmt *chat_session_row_list(struct store_tx *tx, int64_t since_ms, int64_t limit)
{
        return sql_query(tx,
                         "SELECT chat, session, active_ms"
                         " FROM (SELECT chat, session, active_ms FROM chat_sessions"
                         " WHERE active_ms > ?1 ORDER BY active_ms DESC LIMIT ?2) AS newest"
                         " ORDER BY active_ms",
                         SQL_INT(since_ms), SQL_INT(limit));
}

int chat_session_row_next(struct store_stmt *s, struct chat_session_row *out, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_TEXT(&out->chat), OUT_TEXT(&out->session),
                         OUT_INT(&out->active_ms));
        return rc;
}
