#include "rows/policy_rows.h"

#include <stdlib.h>

#include "store/sql.h"

int handover_row_put(struct store_tx *tx, const struct handover *h, struct error *err)
{
        char *key = chat_key_text(&h->chat);
        int rc = sql_exec(tx, err,
                          "INSERT INTO handovers(chat, adapter, channel, thread, by_whom, reason,"
                          " since_ms, until_ms)"
                          " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
                          " ON CONFLICT(chat) DO UPDATE"
                          " SET by_whom = ?5, reason = ?6, since_ms = ?7, until_ms = ?8",
                          SQL_TEXT(key), SQL_TEXT(h->chat.adapter), SQL_TEXT(h->chat.channel),
                          SQL_TEXT(h->chat.thread), SQL_TEXT(h->by), SQL_TEXT(h->reason),
                          SQL_INT(h->since_ms), SQL_INT(h->until_ms));

        free(key);
        return rc;
}

int handover_row_delete(struct store_tx *tx, const struct chat_key *chat, struct error *err)
{
        char *key = chat_key_text(chat);
        int64_t n = sql_update(tx, err, "DELETE FROM handovers WHERE chat = ?1", SQL_TEXT(key));

        free(key);
        return (int)n;
}

int handover_row_delete_expired(struct store_tx *tx, int64_t now_ms, struct error *err)
{
        return sql_exec(tx, err, "DELETE FROM handovers WHERE until_ms > 0 AND until_ms <= ?1",
                        SQL_INT(now_ms));
}

struct store_stmt *handover_row_list(struct store_tx *tx, int64_t now_ms)
{
        return sql_query(tx,
                         "SELECT adapter, channel, thread, by_whom, reason, since_ms, until_ms"
                         " FROM handovers"
                         " WHERE until_ms = 0 OR until_ms > ?1",
                         SQL_INT(now_ms));
}

int handover_row_next(struct store_stmt *s, struct handover *out, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_TEXT(&out->chat.adapter), OUT_TEXT(&out->chat.channel),
                         OUT_TEXT(&out->chat.thread), OUT_TEXT(&out->by), OUT_TEXT(&out->reason),
                         OUT_INT(&out->since_ms), OUT_INT(&out->until_ms));
        return rc;
}
