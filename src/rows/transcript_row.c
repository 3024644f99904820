#include "rows/conversation_row.h"

#include "store/sql.h"

int transcript_row_insert(struct store_tx *tx, const struct transcript_row *row, struct error *err)
{
        return sql_exec(tx, err,
                        "INSERT INTO transcript("
                        " conversation, turn, role, name, text, time_ms, session)"
                        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                        SQL_INT(row->conversation), SQL_INT(row->turn), SQL_TEXT(row->role),
                        SQL_TEXT(row->name), SQL_TEXT(row->text), SQL_INT(row->time_ms),
                        SQL_TEXT(row->session));
}

int transcript_row_insert_in_chat(struct store_tx *tx, const struct chat_key *chat,
                                  const struct transcript_row *row, int64_t most, struct error *err)
{
        return sql_exec(tx, err,
                        "INSERT INTO transcript(conversation, turn, role, name, text, time_ms)"
                        " SELECT id, 0, CAST(?4 AS TEXT), CAST(?5 AS TEXT), CAST(?6 AS TEXT),"
                        " CAST(?7 AS BIGINT) FROM conversations"
                        " WHERE adapter = ?1 AND channel = ?2 AND coalesce(thread, '') = ?3"
                        " ORDER BY active_ms DESC LIMIT ?8",
                        SQL_TEXT(chat->adapter), SQL_TEXT(chat->channel),
                        SQL_TEXT(chat->thread ? chat->thread : ""), SQL_TEXT(row->role),
                        SQL_TEXT(row->name), SQL_TEXT(row->text), SQL_INT(row->time_ms),
                        SQL_INT(most));
}

int transcript_row_delete_turn(struct store_tx *tx, int64_t turn, struct error *err)
{
        /* the index is by conversation */
        return sql_exec(tx, err,
                        "DELETE FROM transcript"
                        " WHERE conversation = (SELECT conversation FROM turns WHERE id = ?1)"
                        " AND turn = ?1",
                        SQL_INT(turn));
}

#define COLUMNS "id, turn, role, name, text, time_ms"
/* Lines after the reset, unless of turns that began before it. */
#define COUNTS " AND id > ?2 AND (turn = 0 OR turn >= ?3)"

int transcript_row_session_start(struct store_tx *tx, const char *session,
                                 const struct history_start *from, int64_t *line, int64_t *time_ms,
                                 struct error *err)
{
        return sql_first(sql_query(tx,
                                   "SELECT id, time_ms FROM transcript"
                                   " WHERE session = ?1" COUNTS " ORDER BY id LIMIT 1",
                                   SQL_TEXT(session), SQL_INT(from->line), SQL_INT(from->turn)),
                         err, OUT_INT(line), OUT_INT(time_ms));
}

struct store_stmt *transcript_row_list_conversation(struct store_tx *tx, int64_t conversation,
                                                    const struct history_start *from, int64_t limit)
{
        return sql_query(tx,
                         "SELECT " COLUMNS " FROM transcript"
                         " WHERE conversation = ?1" COUNTS " ORDER BY id DESC LIMIT ?4",
                         SQL_INT(conversation), SQL_INT(from->line), SQL_INT(from->turn),
                         SQL_INT(limit));
}

struct store_stmt *transcript_row_list_session(struct store_tx *tx, const char *session,
                                               int64_t conversation,
                                               const struct history_start *from, int64_t line,
                                               int64_t limit)
{
        return sql_query(tx,
                         "SELECT * FROM (SELECT " COLUMNS " FROM transcript"
                         " WHERE session = ?1" COUNTS " ORDER BY id DESC LIMIT ?4) AS said"
                         " UNION ALL"
                         " SELECT * FROM (SELECT " COLUMNS " FROM transcript"
                         " WHERE conversation = ?5 AND turn = 0 AND id > ?2 AND id > ?6"
                         " ORDER BY id DESC LIMIT ?4) AS aside"
                         " ORDER BY 1 DESC LIMIT ?4",
                         SQL_TEXT(session), SQL_INT(from->line), SQL_INT(from->turn),
                         SQL_INT(limit), SQL_INT(conversation), SQL_INT(line));
}

struct store_stmt *transcript_row_list_before(struct store_tx *tx, int64_t conversation,
                                              const struct history_start *from, int64_t line,
                                              int64_t since_ms, int64_t limit)
{
        return sql_query(tx,
                         "SELECT " COLUMNS " FROM transcript"
                         " WHERE conversation = ?1" COUNTS " AND id < ?4 AND time_ms >= ?5"
                         " ORDER BY id DESC LIMIT ?6",
                         SQL_INT(conversation), SQL_INT(from->line), SQL_INT(from->turn),
                         SQL_INT(line), SQL_INT(since_ms), SQL_INT(limit));
}

struct store_stmt *transcript_row_list_answer(struct store_tx *tx, int64_t turn)
{
        return sql_query(tx,
                         "SELECT " COLUMNS " FROM transcript"
                         " WHERE conversation = (SELECT conversation FROM turns WHERE id = ?1)"
                         " AND turn = ?1 AND role = 'assistant' ORDER BY id",
                         SQL_INT(turn));
}

int transcript_row_next(struct store_stmt *s, struct transcript_row *row, struct error *err)
{
        int64_t id;
        int rc = sql_next(s, err);

        if (rc == 1) {
                *row = (struct transcript_row){ 0 };
                sql_read(s, OUT_INT(&id), OUT_INT(&row->turn), OUT_TEXT(&row->role),
                         OUT_TEXT(&row->name), OUT_TEXT(&row->text), OUT_INT(&row->time_ms));
        }
        return rc;
}
