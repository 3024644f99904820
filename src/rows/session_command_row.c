#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "rows/session_row.h"
#include "store/sql.h"

static const char *const action_names[] = {
        [SESSION_STEER] = "steer",
        [SESSION_FOLLOW_UP] = "followUp",
        [SESSION_ABORT] = "abort",
        [SESSION_DECISION] = "decision",
};
static const char *const state_names[] = {
        [SESSION_COMMAND_QUEUED] = "queued",   [SESSION_COMMAND_DELIVERED] = "delivered",
        [SESSION_COMMAND_SEEN] = "seen",       [SESSION_COMMAND_FAILED] = "failed",
        [SESSION_COMMAND_EXPIRED] = "expired", [SESSION_COMMAND_SUPERSEDED] = "superseded",
};

const char *session_action_name(enum session_action action)
{
        return action_names[action];
}

bool session_action_parse(const char *name, enum session_action *out)
{
        for (size_t i = 0; i < COUNT(action_names); i++) {
                if (strcmp(action_names[i], name) == 0) {
                        *out = (enum session_action)i;
                        return true;
                }
        }
        *out = SESSION_ABORT;
        return false;
}

const char *session_command_state_name(enum session_command_state state)
{
        return state_names[state];
}

bool session_command_state_parse(const char *name, enum session_command_state *out)
{
        for (size_t i = 0; i < COUNT(state_names); i++) {
                if (strcmp(state_names[i], name) == 0) {
                        *out = (enum session_command_state)i;
                        return true;
                }
        }
        *out = SESSION_COMMAND_FAILED;
        return false;
}

/* ---- writing ---- */

int session_command_row_insert(struct store_tx *tx, const struct session_command_row *row,
                               int64_t *id, struct error *err)
{
        int rc = sql_insert(
                tx, id, err,
                "INSERT INTO session_commands(command, session, request_key, action, content,"
                " state, given_by, display_name, adapter, channel, thread, message, approval,"
                " decision, reason, created_ms, expires_ms)"
                " VALUES(?1, ?2, ?3, ?4, ?5, 'queued', ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,"
                " ?15, ?16)",
                SQL_TEXT(row->command), SQL_INT(row->session), SQL_TEXT(row->request_key),
                SQL_TEXT(action_names[row->action]), SQL_TEXT(row->content),
                SQL_TEXT(row->given_by), SQL_TEXT(row->display_name), SQL_TEXT(row->adapter),
                SQL_TEXT(row->channel), SQL_TEXT(row->thread), SQL_TEXT(row->message),
                SQL_TEXT(row->approval), SQL_TEXT(row->decision), SQL_TEXT(row->reason),
                SQL_INT(row->created_ms), SQL_INT(row->expires_ms));

        return rc < 0 ? -1 : 0;
}

int session_command_row_find_request(struct store_tx *tx, const char *request_key, int64_t *id,
                                     struct error *err)
{
        if (sql_number(tx, 0, id, err, "SELECT id FROM session_commands WHERE request_key = ?1",
                       SQL_TEXT(request_key)) < 0)
                return -1;
        return *id > 0;
}

int session_command_row_move(struct store_tx *tx, int64_t id, enum session_command_state from,
                             enum session_command_state to, const char *error, const char *receipt,
                             int64_t now_ms, struct error *err)
{
        bool delivered = to == SESSION_COMMAND_DELIVERED;

        return (int)sql_update(tx, err,
                               "UPDATE session_commands SET state = ?3, error = ?4,"
                               " delivered_ms = coalesce(CAST(?5 AS BIGINT), delivered_ms),"
                               " ended_ms = CAST(?6 AS BIGINT), receipt = coalesce(?7, receipt)"
                               " WHERE id = ?1 AND state = ?2",
                               SQL_INT(id), SQL_TEXT(state_names[from]), SQL_TEXT(state_names[to]),
                               SQL_TEXT(error), delivered ? SQL_INT(now_ms) : SQL_NULL,
                               delivered ? SQL_NULL : SQL_INT(now_ms), SQL_TEXT(receipt));
}

int64_t session_command_row_count(struct store_tx *tx, int64_t session, int64_t enough,
                                  struct error *err)
{
        int64_t n;

        if (sql_number(tx, 0, &n, err,
                       "SELECT count(*) FROM (SELECT id FROM session_commands"
                       " WHERE session = ?1 AND state = 'queued' LIMIT ?2) AS counted",
                       SQL_INT(session), SQL_INT(enough)) < 0)
                return -1;
        return n;
}

int session_command_row_first_ms(struct store_tx *tx, int64_t *out, struct error *err)
{
        return sql_number(tx, 0, out, err,
                          "SELECT min(expires_ms) FROM session_commands WHERE state = 'queued'");
}

/* ---- reading ---- */

#define SELECT_COMMANDS                                                                 \
        "SELECT id, command, session, request_key, action, content, state, given_by,"   \
        " display_name, adapter, channel, thread, message, approval, decision, reason," \
        " error, created_ms, expires_ms, delivered_ms, ended_ms, receipt"               \
        " FROM session_commands"

int session_command_row_next(struct store_stmt *s, struct session_command_row *out,
                             struct error *err)
{
        const char *action, *state;
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        sql_read(s, OUT_INT(&out->id), OUT_TEXT(&out->command), OUT_INT(&out->session),
                 OUT_TEXT(&out->request_key), OUT_TEXT(&action), OUT_TEXT(&out->content),
                 OUT_TEXT(&state), OUT_TEXT(&out->given_by), OUT_TEXT(&out->display_name),
                 OUT_TEXT(&out->adapter), OUT_TEXT(&out->channel), OUT_TEXT(&out->thread),
                 OUT_TEXT(&out->message), OUT_TEXT(&out->approval), OUT_TEXT(&out->decision),
                 OUT_TEXT(&out->reason), OUT_TEXT(&out->error), OUT_INT(&out->created_ms),
                 OUT_INT(&out->expires_ms), OUT_INT(&out->delivered_ms), OUT_INT(&out->ended_ms),
                 OUT_TEXT(&out->receipt));
        session_action_parse(action, &out->action);
        session_command_state_parse(state, &out->state);
        return 1;
}

struct session_command_row *session_command_row_dup(const struct session_command_row *row)
{
        static const size_t strings[] = {
                offsetof(struct session_command_row, command),
                offsetof(struct session_command_row, request_key),
                offsetof(struct session_command_row, content),
                offsetof(struct session_command_row, given_by),
                offsetof(struct session_command_row, display_name),
                offsetof(struct session_command_row, adapter),
                offsetof(struct session_command_row, channel),
                offsetof(struct session_command_row, thread),
                offsetof(struct session_command_row, message),
                offsetof(struct session_command_row, approval),
                offsetof(struct session_command_row, decision),
                offsetof(struct session_command_row, reason),
                offsetof(struct session_command_row, error),
                offsetof(struct session_command_row, receipt),
        };

        return mem_dup_struct(row, sizeof(*row), strings, COUNT(strings));
}

static int take(struct store_stmt *s, struct session_command_row **out, struct error *err)
{
        struct session_command_row row;
        int rc = session_command_row_next(s, &row, err);

        *out = rc == 1 ? session_command_row_dup(&row) : NULL;
        sql_end(s);
        return rc;
}

int session_command_row_get(struct store_tx *tx, int64_t id, struct session_command_row **out,
                            struct error *err)
{
        return take(sql_query(tx, SELECT_COMMANDS " WHERE id = ?1", SQL_INT(id)), out, err);
}

int session_command_row_find(struct store_tx *tx, const char *command,
                             struct session_command_row **out, struct error *err)
{
        return take(sql_query(tx, SELECT_COMMANDS " WHERE command = ?1", SQL_TEXT(command)), out,
                    err);
}

struct store_stmt *session_command_row_list_queued(struct store_tx *tx, int64_t session,
                                                   int64_t limit)
{
        return sql_query(tx,
                         SELECT_COMMANDS " WHERE session = ?1 AND state = 'queued'"
                                         " ORDER BY id LIMIT ?2",
                         SQL_INT(session), SQL_INT(limit));
}

struct store_stmt *session_command_row_list(struct store_tx *tx, int64_t session, int64_t before,
                                            int64_t limit)
{
        return sql_query(
                tx, SELECT_COMMANDS " WHERE session = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3",
                SQL_INT(session), SQL_INT(before > 0 ? before : INT64_MAX), SQL_INT(limit));
}

struct store_stmt *session_command_row_list_due(struct store_tx *tx, int64_t now_ms, int64_t limit)
{
        return sql_query(tx,
                         SELECT_COMMANDS " WHERE state = 'queued' AND expires_ms <= ?1"
                                         " ORDER BY expires_ms LIMIT ?2",
                         SQL_INT(now_ms), SQL_INT(limit));
}

/* Not those whose deliveries may have been pruned, a minute aside: they would be told again. */
struct store_stmt *session_command_row_list_given(struct store_tx *tx, int64_t since_ms,
                                                  int64_t limit)
{
        return sql_query(tx,
                         "SELECT c.command, c.content, c.error, c.state, c.adapter, c.channel,"
                         " c.thread, c.message, s.trace"
                         " FROM session_commands AS c JOIN sessions AS s ON s.id = c.session"
                         " WHERE c.created_ms >= ?1 AND c.adapter IS NOT NULL"
                         " AND coalesce(c.ended_ms, c.delivered_ms, c.created_ms) >="
                         " coalesce((SELECT created_ms FROM deliveries ORDER BY id LIMIT 1), 0)"
                         " - 60000"
                         " ORDER BY c.id DESC LIMIT ?2",
                         SQL_INT(since_ms), SQL_INT(limit));
}

int session_command_row_next_given(struct store_stmt *s, struct session_command_given *out,
                                   struct error *err)
{
        const char *state;
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        sql_read(s, OUT_TEXT(&out->command), OUT_TEXT(&out->content), OUT_TEXT(&out->error),
                 OUT_TEXT(&state), OUT_TEXT(&out->chat.adapter), OUT_TEXT(&out->chat.channel),
                 OUT_TEXT(&out->chat.thread), OUT_TEXT(&out->message), OUT_TEXT(&out->trace));
        session_command_state_parse(state, &out->state);
        return 1;
}
