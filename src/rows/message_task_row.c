#include "rows/message_task_row.h"

#include "store/sql.h"

struct store_stmt *message_task_row_list(struct store_tx *tx, const char *adapter,
                                         const char *first, const char *end, int64_t limit)
{
        return sql_query(tx,
                         "SELECT m.seq, l.turn, l.status, t.state,"
                         " coalesce(t.ended_ms, t.started_ms, l.time_ms, m.time_ms) AS since"
                         " FROM (SELECT seq, time_ms FROM journal WHERE stream = 0 AND adapter = ?1"
                         " AND channel >= ?2 AND channel < ?3 AND type = 'message.received'"
                         " AND payload <> '{}' ORDER BY seq DESC LIMIT ?4) AS m"
                         " LEFT JOIN trigger_log AS l ON l.event = m.seq"
                         " LEFT JOIN turns AS t ON t.id = l.turn ORDER BY since DESC, m.seq DESC",
                         SQL_TEXT(adapter), SQL_TEXT(first), SQL_TEXT(end), SQL_INT(limit));
}

int message_task_row_next(struct store_stmt *s, struct message_task_row *row, struct error *err)
{
        const char *status, *state;
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        *row = (struct message_task_row){ 0 };
        sql_read(s, OUT_INT(&row->event), OUT_INT(&row->turn), OUT_TEXT(&status), OUT_TEXT(&state),
                 OUT_INT(&row->time_ms));
        row->decided = status && trigger_status_parse(status, &row->status);
        if (!state || !turn_state_parse(state, &row->state))
                row->turn = 0;
        return 1;
}
