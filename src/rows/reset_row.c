#include "rows/conversation_row.h"

#include "store/sql.h"

static const char *or_empty(const char *text)
{
        return text ? text : "";
}

static int put(struct store_tx *tx, const char *adapter, const char *channel, const char *thread,
               const char *person, int64_t turn, struct error *err)
{
        return sql_exec(tx, err,
                        "INSERT INTO resets(adapter, channel, thread, person, turn)"
                        " VALUES(?1, ?2, ?3, ?4, ?5)"
                        " ON CONFLICT(adapter, channel, thread, person) DO UPDATE SET turn = ?5",
                        SQL_TEXT(adapter), SQL_TEXT(or_empty(channel)), SQL_TEXT(or_empty(thread)),
                        SQL_TEXT(or_empty(person)), SQL_INT(turn));
}

int reset_row_put(struct store_tx *tx, const struct reset_scope *s, int64_t turn, struct error *err)
{
        if (put(tx, s->adapter, s->channel, s->thread, NULL, turn, err) < 0)
                return -1;
        if (!s->sender || !*s->sender)
                return 0;
        if (put(tx, s->adapter, NULL, NULL, s->sender, turn, err) < 0)
                return -1;
        return put(tx, s->adapter, s->channel, s->thread, s->sender, turn, err);
}

int reset_row_get(struct store_tx *tx, const struct reset_scope *scope, int64_t turn,
                  struct reset_turns *out, struct error *err)
{
        int64_t *const found[] = { &out->person, &out->chat, &out->person_in_chat };
        /* three lookups by full key: an OR would scan the adapter */
        struct store_stmt *s =
                sql_query(tx,
                          "SELECT 0, turn FROM resets"
                          " WHERE adapter = ?1 AND channel = '' AND thread = '' AND person = ?4"
                          " UNION ALL SELECT 1, turn FROM resets"
                          " WHERE adapter = ?1 AND channel = ?2 AND thread = ?3 AND person = ''"
                          " UNION ALL SELECT 2, turn FROM resets"
                          " WHERE adapter = ?1 AND channel = ?2 AND thread = ?3 AND person = ?4",
                          SQL_TEXT(scope->adapter), SQL_TEXT(or_empty(scope->channel)),
                          SQL_TEXT(or_empty(scope->thread)), SQL_TEXT(or_empty(scope->sender)));
        int64_t which, since;
        int rc;

        *out = (struct reset_turns){ 0 };
        while ((rc = sql_next(s, err)) == 1) {
                sql_read(s, OUT_INT(&which), OUT_INT(&since));
                if (since <= turn)
                        *found[which] = since;
        }
        return rc;
}
