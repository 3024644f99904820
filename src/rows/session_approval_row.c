#include <stddef.h>

#include "base/mem.h"
#include "rows/session_row.h"
#include "store/sql.h"

int session_approval_row_insert(struct store_tx *tx, const struct session_approval_row *row,
                                int64_t *id, struct error *err)
{
        return sql_insert(tx, id, err,
                          "INSERT INTO session_approvals(session, approval, tool, content, reason,"
                          " fallback, state, created_ms, expires_ms)"
                          " VALUES(?1, ?2, ?3, ?4, ?5, ?6, 'open', ?7, ?8)"
                          " ON CONFLICT(session, approval) DO NOTHING",
                          SQL_INT(row->session), SQL_TEXT(row->approval), SQL_TEXT(row->tool),
                          SQL_TEXT(row->content), SQL_TEXT(row->reason), SQL_TEXT(row->fallback),
                          SQL_INT(row->created_ms), SQL_REF(row->expires_ms));
}

int session_approval_row_decide(struct store_tx *tx, int64_t id, const char *decision,
                                const char *by, const char *note, int64_t now_ms, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE session_approvals SET state = ?2, decided_by = ?3,"
                               " note = ?4, ended_ms = ?5 WHERE id = ?1 AND state = 'open'",
                               SQL_INT(id), SQL_TEXT(decision), SQL_TEXT(by), SQL_TEXT(note),
                               SQL_INT(now_ms));
}

int session_approval_row_close(struct store_tx *tx, int64_t session, const char *by, int64_t now_ms,
                               struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE session_approvals SET state = 'deny', decided_by = ?2,"
                        " ended_ms = ?3 WHERE session = ?1 AND state = 'open'",
                        SQL_INT(session), SQL_TEXT(by), SQL_INT(now_ms));
}

int session_approval_row_overrule(struct store_tx *tx, int64_t id, const char *decision,
                                  const char *by, int64_t now_ms, struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE session_approvals SET state = ?2, decided_by = ?3, ended_ms = ?4"
                        " WHERE id = ?1",
                        SQL_INT(id), SQL_TEXT(decision), SQL_TEXT(by), SQL_INT(now_ms));
}

int session_approval_row_set_shown(struct store_tx *tx, int64_t id, int64_t delivery,
                                   const char *shown, struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE session_approvals SET delivery = ?2, shown = ?3 WHERE id = ?1",
                        SQL_INT(id), SQL_REF(delivery), SQL_TEXT(shown));
}

/* ---- reading ---- */

#define SELECT_APPROVALS                                                        \
        "SELECT id, session, approval, tool, content, reason, fallback, state," \
        " decided_by, created_ms, expires_ms, ended_ms, delivery, shown, note"  \
        " FROM session_approvals"

int session_approval_row_next(struct store_stmt *s, struct session_approval_row *out,
                              struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_INT(&out->id), OUT_INT(&out->session), OUT_TEXT(&out->approval),
                         OUT_TEXT(&out->tool), OUT_TEXT(&out->content), OUT_TEXT(&out->reason),
                         OUT_TEXT(&out->fallback), OUT_TEXT(&out->state),
                         OUT_TEXT(&out->decided_by), OUT_INT(&out->created_ms),
                         OUT_INT(&out->expires_ms), OUT_INT(&out->ended_ms),
                         OUT_INT(&out->delivery), OUT_TEXT(&out->shown), OUT_TEXT(&out->note));
        return rc;
}

struct session_approval_row *session_approval_row_dup(const struct session_approval_row *row)
{
        static const size_t strings[] = {
                offsetof(struct session_approval_row, approval),
                offsetof(struct session_approval_row, tool),
                offsetof(struct session_approval_row, content),
                offsetof(struct session_approval_row, reason),
                offsetof(struct session_approval_row, fallback),
                offsetof(struct session_approval_row, state),
                offsetof(struct session_approval_row, decided_by),
                offsetof(struct session_approval_row, shown),
                offsetof(struct session_approval_row, note),
        };

        return mem_dup_struct(row, sizeof(*row), strings, COUNT(strings));
}

static int take(struct store_stmt *s, struct session_approval_row **out, struct error *err)
{
        struct session_approval_row row;
        int rc = session_approval_row_next(s, &row, err);

        *out = rc == 1 ? session_approval_row_dup(&row) : NULL;
        sql_end(s);
        return rc;
}

int session_approval_row_get(struct store_tx *tx, int64_t id, struct session_approval_row **out,
                             struct error *err)
{
        return take(sql_query(tx, SELECT_APPROVALS " WHERE id = ?1", SQL_INT(id)), out, err);
}

int session_approval_row_find(struct store_tx *tx, int64_t session, const char *approval,
                              struct session_approval_row **out, struct error *err)
{
        return take(sql_query(tx, SELECT_APPROVALS " WHERE session = ?1 AND approval = ?2",
                              SQL_INT(session), SQL_TEXT(approval)),
                    out, err);
}

struct store_stmt *session_approval_row_list_behind(struct store_tx *tx, int64_t session,
                                                    int64_t since, int64_t limit)
{
        return sql_query(tx,
                         SELECT_APPROVALS " WHERE session = ?1 AND (shown IS NULL"
                                          " AND (delivery IS NULL OR delivery < ?2"
                                          " OR state <> 'open')"
                                          " OR shown <> state || ' ' || coalesce(decided_by, ''))"
                                          " ORDER BY id LIMIT ?3",
                         SQL_INT(session), SQL_INT(since), SQL_INT(limit));
}

struct store_stmt *session_approval_row_list_open(struct store_tx *tx, int64_t session)
{
        return sql_query(tx,
                         SELECT_APPROVALS " WHERE session = ?1 AND state = 'open'"
                                          " AND delivery IS NOT NULL ORDER BY id",
                         SQL_INT(session));
}

struct store_stmt *session_approval_row_list_due(struct store_tx *tx, int64_t now_ms, int64_t limit)
{
        return sql_query(tx,
                         SELECT_APPROVALS " WHERE state = 'open' AND expires_ms <= ?1"
                                          " ORDER BY expires_ms LIMIT ?2",
                         SQL_INT(now_ms), SQL_INT(limit));
}

int session_approval_row_first_ms(struct store_tx *tx, int64_t *out, struct error *err)
{
        return sql_number(tx, 0, out, err,
                          "SELECT min(expires_ms) FROM session_approvals WHERE state = 'open'");
}
