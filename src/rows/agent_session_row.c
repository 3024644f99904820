#include "rows/agent_session_row.h"

#include <stddef.h>

#include "base/mem.h"
#include "rows/turn_row.h"
#include "store/sql.h"

int agent_session_row_get(struct store_tx *tx, const char *agent, const char *name,
                          struct agent_session_row **out, struct error *err)
{
        static const size_t strings[] = {
                offsetof(struct agent_session_row, agent),
                offsetof(struct agent_session_row, name),
                offsetof(struct agent_session_row, session),
        };
        struct store_stmt *s = sql_query(tx,
                                         "SELECT agent, name, session, used_ms"
                                         " FROM agent_sessions WHERE agent = ?1 AND name = ?2",
                                         SQL_TEXT(agent), SQL_TEXT(name));
        struct agent_session_row row = { 0 };
        int rc = sql_next(s, err);

        *out = NULL;
        if (rc != 1)
                return rc;
        sql_read(s, OUT_TEXT(&row.agent), OUT_TEXT(&row.name), OUT_TEXT(&row.session),
                 OUT_INT(&row.used_ms));
        *out = mem_dup_struct(&row, sizeof(row), strings, COUNT(strings));
        rows_end(s);
        return 1;
}

int agent_session_row_put(struct store_tx *tx, const struct agent_session_row *row, int64_t fence,
                          struct error *err)
{
        int rc = turn_row_progress(tx, row->turn, fence, err);

        if (rc != 1)
                return rc;
        return sql_exec(tx, err,
                        "INSERT INTO agent_sessions(agent, name, session, used_ms)"
                        " VALUES(?1, ?2, ?3, ?4) ON CONFLICT(agent, name) DO UPDATE"
                        " SET session = ?3, used_ms = ?4",
                        SQL_TEXT(row->agent), SQL_TEXT(row->name), SQL_TEXT(row->session),
                        SQL_INT(row->used_ms)) < 0
                       ? -1
                       : 1;
}
