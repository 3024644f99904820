#include "rows/session_row.h"

#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "store/sql.h"

static const char *const state_names[] = {
        [SESSION_ACTIVE] = "active",
        [SESSION_ARCHIVED] = "archived",
        [SESSION_ENDED] = "ended",
};

const char *session_state_name(enum session_state state)
{
        return state_names[state];
}

bool session_state_parse(const char *name, enum session_state *out)
{
        for (size_t i = 0; i < COUNT(state_names); i++) {
                if (strcmp(state_names[i], name) == 0) {
                        *out = (enum session_state)i;
                        return true;
                }
        }
        *out = SESSION_ENDED;
        return false;
}

/* ---- writing ---- */

int session_row_insert(struct store_tx *tx, const struct session_row *row, int64_t *id,
                       struct error *err)
{
        return sql_insert(tx, id, err,
                          "INSERT INTO sessions(session, owner, identity, program, host, cwd,"
                          " title, model, state, adapter, channel, thread, trace, turns, tokens,"
                          " cost_microusd, created_ms, last_event_ms)"
                          " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,"
                          " ?15, ?16, ?17, ?18) ON CONFLICT(session) DO NOTHING",
                          SQL_TEXT(row->session), SQL_INT(row->owner), SQL_TEXT(row->identity),
                          SQL_TEXT(row->program), SQL_TEXT(row->host), SQL_TEXT(row->cwd),
                          SQL_TEXT(row->title), SQL_TEXT(row->model),
                          SQL_TEXT(state_names[row->state]), SQL_TEXT(row->adapter),
                          SQL_TEXT(row->channel), SQL_TEXT(row->thread), SQL_TEXT(row->trace),
                          SQL_INT(row->turns), SQL_INT(row->tokens), SQL_INT(row->cost_microusd),
                          SQL_INT(row->created_ms), SQL_INT(row->last_event_ms));
}

int session_row_update(struct store_tx *tx, const struct session_row *row, struct error *err)
{
        return (int)sql_update(
                tx, err,
                "UPDATE sessions SET program = ?2, host = ?3, cwd = ?4, title = ?5, model = ?6,"
                " state = ?7, turns = ?8, tokens = ?9, cost_microusd = ?10, last_event_ms = ?11,"
                " ended_ms = ?12 WHERE id = ?1",
                SQL_INT(row->id), SQL_TEXT(row->program), SQL_TEXT(row->host), SQL_TEXT(row->cwd),
                SQL_TEXT(row->title), SQL_TEXT(row->model), SQL_TEXT(state_names[row->state]),
                SQL_INT(row->turns), SQL_INT(row->tokens), SQL_INT(row->cost_microusd),
                SQL_INT(row->last_event_ms), SQL_REF(row->ended_ms));
}

int session_row_link(struct store_tx *tx, int64_t id, const struct chat_key *chat,
                     const char *identity, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE sessions SET adapter = ?2, channel = ?3, thread = ?4,"
                               " identity = coalesce(?5, identity) WHERE id = ?1",
                               SQL_INT(id), SQL_TEXT(chat->adapter), SQL_TEXT(chat->channel),
                               SQL_TEXT(chat->thread), SQL_TEXT(identity));
}

int session_row_archive(struct store_tx *tx, int64_t id, int64_t before_ms, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE sessions SET state = 'archived'"
                               " WHERE id = ?1 AND state = 'active' AND last_event_ms < ?2",
                               SQL_INT(id), SQL_INT(before_ms));
}

/* ---- reading ---- */

#define SELECT_SESSIONS                                                                 \
        "SELECT id, session, owner, identity, program, host, cwd, title, model, state," \
        " adapter, channel, thread, trace, turns, tokens, cost_microusd, created_ms,"   \
        " last_event_ms, ended_ms FROM sessions"

int session_row_next(struct store_stmt *s, struct session_row *out, struct error *err)
{
        const char *state;
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        sql_read(s, OUT_INT(&out->id), OUT_TEXT(&out->session), OUT_INT(&out->owner),
                 OUT_TEXT(&out->identity), OUT_TEXT(&out->program), OUT_TEXT(&out->host),
                 OUT_TEXT(&out->cwd), OUT_TEXT(&out->title), OUT_TEXT(&out->model),
                 OUT_TEXT(&state), OUT_TEXT(&out->adapter), OUT_TEXT(&out->channel),
                 OUT_TEXT(&out->thread), OUT_TEXT(&out->trace), OUT_INT(&out->turns),
                 OUT_INT(&out->tokens), OUT_INT(&out->cost_microusd), OUT_INT(&out->created_ms),
                 OUT_INT(&out->last_event_ms), OUT_INT(&out->ended_ms));
        session_state_parse(state, &out->state);
        return 1;
}

struct session_row *session_row_dup(const struct session_row *row)
{
        static const size_t strings[] = {
                offsetof(struct session_row, session), offsetof(struct session_row, identity),
                offsetof(struct session_row, program), offsetof(struct session_row, host),
                offsetof(struct session_row, cwd),     offsetof(struct session_row, title),
                offsetof(struct session_row, model),   offsetof(struct session_row, adapter),
                offsetof(struct session_row, channel), offsetof(struct session_row, thread),
                offsetof(struct session_row, trace),
        };

        return mem_dup_struct(row, sizeof(*row), strings, COUNT(strings));
}

static int take(struct store_stmt *s, struct session_row **out, struct error *err)
{
        struct session_row row;
        int rc = session_row_next(s, &row, err);

        *out = rc == 1 ? session_row_dup(&row) : NULL;
        sql_end(s);
        return rc;
}

int session_row_get(struct store_tx *tx, int64_t id, struct session_row **out, struct error *err)
{
        return take(sql_query(tx, SELECT_SESSIONS " WHERE id = ?1", SQL_INT(id)), out, err);
}

int session_row_exists(struct store_tx *tx, int64_t id, struct error *err)
{
        int64_t n;

        if (sql_number(tx, 0, &n, err, "SELECT count(*) FROM sessions WHERE id = ?1", SQL_INT(id)) <
            0)
                return -1;
        return n > 0;
}

int session_row_find(struct store_tx *tx, const char *session, struct session_row **out,
                     struct error *err)
{
        return take(sql_query(tx, SELECT_SESSIONS " WHERE session = ?1", SQL_TEXT(session)), out,
                    err);
}

struct store_stmt *session_row_list(struct store_tx *tx, const struct session_filter *f)
{
        return sql_query(tx,
                         SELECT_SESSIONS " WHERE id < ?1 AND " ROWS_IF_TEXT(
                                 "state", "?2") " AND (CAST(?3 AS BIGINT) < 0 OR owner = ?3)"
                                                " AND (CAST(?4 AS BIGINT) = 0"
                                                " OR adapter IS NOT NULL)"
                                                " ORDER BY id DESC LIMIT ?5",
                         SQL_INT(f->before > 0 ? f->before : INT64_MAX),
                         SQL_TEXT(f->state ? state_names[*f->state] : NULL), SQL_INT(f->owner),
                         SQL_INT(f->linked), SQL_INT(f->limit));
}

struct store_stmt *session_row_list_quiet(struct store_tx *tx, int64_t before_ms, int64_t limit)
{
        return sql_query(tx,
                         SELECT_SESSIONS " WHERE state = 'active' AND last_event_ms < ?1"
                                         " ORDER BY last_event_ms LIMIT ?2",
                         SQL_INT(before_ms), SQL_INT(limit));
}

int session_row_quiet_ms(struct store_tx *tx, int64_t *out, struct error *err)
{
        return sql_number(tx, 0, out, err,
                          "SELECT min(last_event_ms) FROM sessions WHERE state = 'active'");
}

int64_t session_row_count(struct store_tx *tx, int64_t enough, struct error *err)
{
        int64_t n;

        if (sql_number(tx, 0, &n, err,
                       "SELECT count(*) FROM (SELECT id FROM sessions WHERE state = 'active'"
                       " LIMIT ?1) AS counted",
                       SQL_INT(enough)) < 0)
                return -1;
        return n;
}
