#include "rows/session_view_row.h"

#include <stddef.h>

#include "base/mem.h"
#include "store/sql.h"

int session_view_row_get(struct store_tx *tx, int64_t session, struct session_view_row **out,
                         struct error *err)
{
        static const size_t strings[] = {
                offsetof(struct session_view_row, adapter),
                offsetof(struct session_view_row, channel),
                offsetof(struct session_view_row, thread),
                offsetof(struct session_view_row, own_thread),
                offsetof(struct session_view_row, root_shown),
                offsetof(struct session_view_row, named),
                offsetof(struct session_view_row, error),
        };
        struct store_stmt *s = sql_query(
                tx,
                "SELECT session, adapter, channel, thread, own_thread, root, root_shown,"
                " place, closed, page, page_from, shown_seq, last, failures, error, used_ms,"
                " open_tokens, open_cost_microusd, named, renamed_ms, page_shown"
                " FROM session_views WHERE session = ?1",
                SQL_INT(session));
        struct session_view_row row;
        int rc = sql_next(s, err);

        *out = NULL;
        if (rc != 1)
                return rc;
        sql_read(s, OUT_INT(&row.session), OUT_TEXT(&row.adapter), OUT_TEXT(&row.channel),
                 OUT_TEXT(&row.thread), OUT_TEXT(&row.own_thread), OUT_INT(&row.root),
                 OUT_TEXT(&row.root_shown), OUT_INT(&row.place), OUT_BOOL(&row.closed),
                 OUT_INT(&row.page), OUT_INT(&row.page_from), OUT_INT(&row.shown_seq),
                 OUT_INT(&row.last), OUT_INT(&row.failures), OUT_TEXT(&row.error),
                 OUT_INT(&row.used_ms), OUT_INT(&row.open_tokens), OUT_INT(&row.open_cost_microusd),
                 OUT_TEXT(&row.named), OUT_INT(&row.renamed_ms), OUT_INT(&row.page_shown));
        *out = mem_dup_struct(&row, sizeof(row), strings, COUNT(strings));
        sql_end(s);
        return 1;
}

int session_view_row_put(struct store_tx *tx, const struct session_view_row *row, struct error *err)
{
        return sql_exec(
                tx, err,
                "INSERT INTO session_views(session, adapter, channel, thread, own_thread, root,"
                " root_shown, place, closed, page, page_from, shown_seq, last, failures, error,"
                " used_ms, open_tokens, open_cost_microusd, named, renamed_ms, page_shown)"
                " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,"
                " ?17, ?18, ?19, ?20, ?21)"
                " ON CONFLICT(session) DO UPDATE SET adapter = ?2, channel = ?3, thread = ?4,"
                " own_thread = ?5, root = ?6, root_shown = ?7, place = ?8, closed = ?9, page = ?10,"
                " page_from = ?11, shown_seq = ?12, last = ?13, failures = ?14, error = ?15,"
                " used_ms = ?16, open_tokens = ?17, open_cost_microusd = ?18, named = ?19,"
                " renamed_ms = ?20, page_shown = ?21",
                SQL_INT(row->session), SQL_TEXT(row->adapter), SQL_TEXT(row->channel),
                SQL_TEXT(row->thread), SQL_TEXT(row->own_thread), SQL_INT(row->root),
                SQL_TEXT(row->root_shown), SQL_INT(row->place), SQL_INT(row->closed),
                SQL_INT(row->page), SQL_INT(row->page_from), SQL_INT(row->shown_seq),
                SQL_INT(row->last), SQL_INT(row->failures), SQL_TEXT(row->error),
                SQL_INT(row->used_ms), SQL_INT(row->open_tokens), SQL_INT(row->open_cost_microusd),
                SQL_TEXT(row->named), SQL_INT(row->renamed_ms), SQL_INT(row->page_shown));
}

int64_t session_view_row_count_threads(struct store_tx *tx, const struct chat_key *chat,
                                       int64_t owner, struct error *err)
{
        int64_t n;

        if (sql_number(tx, 0, &n, err,
                       "SELECT count(*) FROM session_views AS v JOIN sessions AS s"
                       " ON s.id = v.session WHERE v.own_thread = ?1 AND v.adapter = ?2"
                       " AND (v.channel = ?3 OR v.own_thread = ?3)"
                       " AND s.owner <> ?4 AND s.state <> 'ended'",
                       SQL_TEXT(chat->thread ? chat->thread : chat->channel),
                       SQL_TEXT(chat->adapter), SQL_TEXT(chat->channel), SQL_INT(owner)) < 0)
                return -1;
        return n;
}

struct store_stmt *session_view_row_list_recent(struct store_tx *tx, int64_t since_ms,
                                                int64_t limit)
{
        return sql_query(tx,
                         "SELECT id, trace FROM sessions WHERE last_event_ms >= ?1"
                         " OR id IN (SELECT session FROM session_approvals WHERE state = 'open')"
                         " ORDER BY id DESC LIMIT ?2",
                         SQL_INT(since_ms), SQL_INT(limit));
}

int session_view_row_next(struct store_stmt *s, struct session_view_recent *out, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_INT(&out->session), OUT_TEXT(&out->trace));
        return rc;
}

int session_message_row_insert(struct store_tx *tx, const struct session_message_row *row,
                               struct error *err)
{
        if (sql_exec(tx, err,
                     "INSERT INTO session_messages(session, adapter, channel, message, root,"
                     " created_ms) VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
                     SQL_INT(row->session), SQL_TEXT(row->adapter), SQL_TEXT(row->channel),
                     SQL_TEXT(row->message), SQL_INT(row->is_root), SQL_INT(row->created_ms)) < 0)
                return -1;
        return sql_exec(tx, err,
                        "DELETE FROM session_messages WHERE session = ?1 AND id <="
                        " (SELECT id FROM session_messages WHERE session = ?1"
                        " ORDER BY id DESC LIMIT 1 OFFSET ?2)"
                        " AND id <> (SELECT coalesce(max(id), 0) FROM session_messages"
                        " WHERE session = ?1 AND root = 1)",
                        SQL_INT(row->session), SQL_INT(SESSION_MESSAGES_KEPT));
}

struct store_stmt *session_message_row_list(struct store_tx *tx, int64_t limit)
{
        return sql_query(tx,
                         "SELECT m.session, m.adapter, m.channel, m.message, m.root, m.created_ms,"
                         " s.identity, CASE WHEN s.state = 'ended' THEN 1 ELSE 0 END"
                         " FROM session_messages AS m JOIN sessions AS s ON s.id = m.session"
                         " WHERE m.id >= coalesce((SELECT id FROM session_messages"
                         " ORDER BY id DESC LIMIT 1 OFFSET ?1), 0) ORDER BY m.id",
                         SQL_INT(limit - 1));
}

int session_message_row_next(struct store_stmt *s, struct session_message_row *out,
                             struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_INT(&out->session), OUT_TEXT(&out->adapter),
                         OUT_TEXT(&out->channel), OUT_TEXT(&out->message), OUT_BOOL(&out->is_root),
                         OUT_INT(&out->created_ms), OUT_TEXT(&out->identity),
                         OUT_BOOL(&out->has_ended));
        return rc;
}
