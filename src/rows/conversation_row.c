#include "rows/conversation_row.h"

#include <stddef.h>

#include "base/mem.h"
#include "store/sql.h"

int conversation_row_touch(struct store_tx *tx, const struct conversation_key *key, int64_t now_ms,
                           int64_t *id, int64_t *reset_turn, struct error *err)
{
        int rc;

        *reset_turn = 0;
        rc = sql_first(sql_query(tx, "SELECT id, history_turn FROM conversations WHERE lane = ?1",
                                 SQL_TEXT(key->lane)),
                       err, OUT_INT(id), OUT_INT(reset_turn));
        if (rc < 0)
                return -1;
        if (rc == 1)
                return sql_exec(tx, err, "UPDATE conversations SET active_ms = ?2 WHERE id = ?1",
                                SQL_INT(*id), SQL_INT(now_ms));
        rc = sql_insert(tx, id, err,
                        "INSERT INTO conversations("
                        " lane, adapter, channel, thread, agent, person, created_ms, active_ms)"
                        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
                        SQL_TEXT(key->lane), SQL_TEXT(key->chat.adapter),
                        SQL_TEXT(key->chat.channel), SQL_TEXT(key->chat.thread),
                        SQL_TEXT(key->agent), SQL_TEXT(key->person), SQL_INT(now_ms));
        return rc < 0 ? -1 : 0;
}

int conversation_row_get(struct store_tx *tx, int64_t id, struct conversation_key **out,
                         struct error *err)
{
#define AT(field) offsetof(struct conversation_key, field)
        static const size_t strings[] = { AT(lane),        AT(chat.adapter), AT(chat.channel),
                                          AT(chat.thread), AT(agent),        AT(person) };
        struct store_stmt *s = sql_query(tx,
                                         "SELECT lane, adapter, channel, thread, agent, person"
                                         " FROM conversations WHERE id = ?1",
                                         SQL_INT(id));
        struct conversation_key key = { 0 };
        int rc = sql_next(s, err);

        *out = NULL;
        if (rc != 1)
                return rc;
        sql_read(s, OUT_TEXT(&key.lane), OUT_TEXT(&key.chat.adapter), OUT_TEXT(&key.chat.channel),
                 OUT_TEXT(&key.chat.thread), OUT_TEXT(&key.agent), OUT_TEXT(&key.person));
        *out = mem_dup_struct(&key, sizeof(key), strings, COUNT(strings));
        sql_end(s);
        return 1;
}

int conversation_row_find_main(struct store_tx *tx, const char *adapter, const char *channel,
                               int64_t *id, struct error *err)
{
        return sql_first(
                sql_query(tx,
                          "SELECT id FROM conversations c"
                          " WHERE adapter = ?1 AND channel = ?2 AND thread IS NULL"
                          " AND EXISTS (SELECT 1 FROM steps s WHERE s.conversation = c.id)"
                          " ORDER BY CASE WHEN person IS NULL THEN 0 ELSE 1 END, id LIMIT 1",
                          SQL_TEXT(adapter), SQL_TEXT(channel)),
                err, OUT_INT(id));
}

int conversation_row_reset(struct store_tx *tx, const struct chat_key *chat, const char *person,
                           int64_t turn, struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE conversations SET history_turn = ?5,"
                        " history_from = (SELECT coalesce(max(id), 0) FROM transcript)"
                        " WHERE adapter = ?1 AND channel = ?2 AND coalesce(thread, '') = ?3"
                        " AND coalesce(person, '') = ?4",
                        SQL_TEXT(chat->adapter), SQL_TEXT(chat->channel),
                        SQL_TEXT(chat->thread ? chat->thread : ""), SQL_TEXT(person ? person : ""),
                        SQL_INT(turn));
}

int conversation_row_history_start(struct store_tx *tx, int64_t id, struct history_start *out,
                                   struct error *err)
{
        int rc;

        *out = (struct history_start){ 0 };
        rc = sql_first(sql_query(tx,
                                 "SELECT history_from, history_turn FROM conversations"
                                 " WHERE id = ?1",
                                 SQL_INT(id)),
                       err, OUT_INT(&out->line), OUT_INT(&out->turn));
        return rc < 0 ? -1 : 0;
}

struct store_stmt *conversation_row_list_recent(struct store_tx *tx, const char *adapter,
                                                int64_t active_ms, int64_t before, int64_t limit)
{
        return sql_query(tx,
                         "SELECT id, channel, thread FROM conversations"
                         " WHERE adapter = ?1 AND active_ms >= ?2 AND id < ?3"
                         " ORDER BY id DESC"
                         " LIMIT ?4",
                         SQL_TEXT(adapter), SQL_INT(active_ms), SQL_INT(before), SQL_INT(limit));
}

int conversation_row_next_recent(struct store_stmt *s, int64_t *id, const char **channel,
                                 const char **thread, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_INT(id), OUT_TEXT(channel), OUT_TEXT(thread));
        return rc;
}

int conversation_row_knows(struct store_tx *tx, const char *adapter, const char *channel,
                           struct error *err)
{
        int64_t one;
        int rc = sql_first(sql_query(tx,
                                     "SELECT 1 FROM conversations WHERE adapter = ?1 AND channel ="
                                     " ?2 LIMIT 1",
                                     SQL_TEXT(adapter), SQL_TEXT(channel)),
                           err, OUT_INT(&one));

        if (rc != 0)
                return rc;
        return sql_first(sql_query(tx,
                                   "SELECT 1 FROM journal WHERE stream = 0 AND adapter = ?1 AND"
                                   " channel = ?2 LIMIT 1",
                                   SQL_TEXT(adapter), SQL_TEXT(channel)),
                         err, OUT_INT(&one));
}

int conversation_row_find_agent(struct store_tx *tx, const char *adapter, const char *channel,
                                const char *agent, char **out, struct error *err)
{
        struct store_stmt *s =
                sql_query(tx,
                          "SELECT agent FROM conversations WHERE adapter = ?1"
                          " AND channel = ?2 AND " ROWS_IF_TEXT(
                                  "agent", "?3") " ORDER BY active_ms DESC, id DESC LIMIT 1",
                          SQL_TEXT(adapter), SQL_TEXT(channel), SQL_TEXT(agent));
        const char *name = NULL;
        int rc = sql_next(s, err);

        *out = NULL;
        if (rc == 1) {
                sql_read(s, OUT_TEXT(&name));
                *out = mem_strdup(name);
                sql_end(s);
        }
        return rc;
}

struct store_stmt *conversation_row_list_channels(struct store_tx *tx, const char *adapter,
                                                  int64_t limit)
{
        return sql_query(tx,
                         "SELECT channel FROM conversations WHERE adapter = ?1"
                         " GROUP BY channel ORDER BY max(active_ms) DESC LIMIT ?2",
                         SQL_TEXT(adapter), SQL_INT(limit));
}

int conversation_row_next_channel(struct store_stmt *s, const char **channel, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_TEXT(channel));
        return rc;
}
