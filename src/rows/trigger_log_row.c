#include "rows/trigger_log_row.h"

#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "store/sql.h"

static const char *const status_names[] = {
        [TRIGGER_QUEUED] = "queued",   [TRIGGER_SKIPPED] = "skipped",
        [TRIGGER_EXPIRED] = "expired", [TRIGGER_DONE] = "done",
        [TRIGGER_FAILED] = "failed",   [TRIGGER_CANCELLED] = "cancelled",
};

const char *trigger_status_name(enum trigger_status status)
{
        return status_names[status];
}

bool trigger_status_parse(const char *name, enum trigger_status *out)
{
        for (size_t i = 0; i < COUNT(status_names); i++) {
                if (strcmp(status_names[i], name) == 0) {
                        *out = (enum trigger_status)i;
                        return true;
                }
        }
        return false;
}

/* ---- writing ---- */

int trigger_log_row_insert(struct store_tx *tx, const struct trigger_log_row *row,
                           struct error *err)
{
        return sql_exec(tx, err,
                        "INSERT INTO trigger_log("
                        " event, time_ms, event_type, adapter, channel, thread, sender,"
                        " sender_name, agent, rule, turn, trace, status, reason, rules)"
                        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
                        " ON CONFLICT(event) DO NOTHING",
                        SQL_INT(row->event), SQL_INT(row->time_ms), SQL_TEXT(row->event_type),
                        SQL_TEXT(row->adapter), SQL_TEXT(row->channel), SQL_TEXT(row->thread),
                        SQL_TEXT(row->sender), SQL_TEXT(row->sender_name), SQL_TEXT(row->agent),
                        SQL_TEXT(row->rule), SQL_REF(row->turn), SQL_TEXT(row->trace),
                        SQL_TEXT(trigger_status_name(row->status)), SQL_TEXT(row->reason),
                        SQL_TEXT(row->rules));
}

int trigger_log_row_finish(struct store_tx *tx, const struct trigger_log_row *row,
                           struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE trigger_log SET status = ?2, duration_ms = ?3, tokens_in = ?4,"
                        " tokens_out = ?5, cost_microusd = ?6, error = ?7,"
                        " reason = coalesce(?8, reason), tokens_cached = ?9"
                        " WHERE event = ?1",
                        SQL_INT(row->event), SQL_TEXT(trigger_status_name(row->status)),
                        SQL_INT(row->duration_ms), SQL_INT(row->tokens_in),
                        SQL_INT(row->tokens_out), SQL_INT(row->cost_microusd), SQL_TEXT(row->error),
                        SQL_TEXT(row->reason), SQL_INT(row->tokens_cached));
}

int trigger_log_row_move(struct store_tx *tx, int64_t event, int64_t turn, struct error *err)
{
        return sql_exec(tx, err, "UPDATE trigger_log SET turn = ?2 WHERE event = ?1",
                        SQL_INT(event), SQL_INT(turn));
}

int trigger_log_row_cancel(struct store_tx *tx, int64_t event, const char *error, struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE trigger_log SET status = 'cancelled', error = ?2"
                        " WHERE event = ?1 AND status = 'queued'",
                        SQL_INT(event), SQL_TEXT(error));
}

int trigger_log_row_set_edited_by(struct store_tx *tx, int64_t event, int64_t edit,
                                  struct error *err)
{
        return sql_exec(tx, err, "UPDATE trigger_log SET edited_by = ?2 WHERE event = ?1",
                        SQL_INT(event), SQL_INT(edit));
}

/* ---- reading ---- */

int trigger_log_row_edited_by(struct store_tx *tx, int64_t event, int64_t *edit, struct error *err)
{
        return sql_number(tx, 0, edit, err, "SELECT edited_by FROM trigger_log WHERE event = ?1",
                          SQL_INT(event));
}

#define SELECT_LOG                                                                             \
        "SELECT l.event, l.time_ms, l.event_type, l.adapter, l.channel, l.thread, l.sender,"   \
        " l.sender_name, coalesce(t.answered_by, l.agent), l.rule, l.turn, l.trace,"           \
        " l.status, l.reason,"                                                                 \
        " coalesce(l.duration_ms, -1), coalesce(l.tokens_in, -1), coalesce(l.tokens_out, -1)," \
        " coalesce(l.tokens_cached, -1),"                                                      \
        " coalesce(l.cost_microusd, -1), l.error, l.edited_by, coalesce(t.attempt, -1),"       \
        " t.session, t.started_ms, t.ended_ms, l.agent"                                        \
        " FROM trigger_log l LEFT JOIN turns t ON t.id = l.turn"

int trigger_log_row_next(struct store_stmt *s, struct trigger_log_row *row, struct error *err)
{
        const char *status;
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        *row = (struct trigger_log_row){ 0 };
        sql_read(s, OUT_INT(&row->event), OUT_INT(&row->time_ms), OUT_TEXT(&row->event_type),
                 OUT_TEXT(&row->adapter), OUT_TEXT(&row->channel), OUT_TEXT(&row->thread),
                 OUT_TEXT(&row->sender), OUT_TEXT(&row->sender_name), OUT_TEXT(&row->agent),
                 OUT_TEXT(&row->rule), OUT_INT(&row->turn), OUT_TEXT(&row->trace),
                 OUT_TEXT(&status), OUT_TEXT(&row->reason), OUT_INT(&row->duration_ms),
                 OUT_INT(&row->tokens_in), OUT_INT(&row->tokens_out), OUT_INT(&row->tokens_cached),
                 OUT_INT(&row->cost_microusd), OUT_TEXT(&row->error), OUT_INT(&row->edited_by),
                 OUT_INT(&row->attempt), OUT_TEXT(&row->session), OUT_INT(&row->started_ms),
                 OUT_INT(&row->ended_ms), OUT_TEXT(&row->chosen_agent));
        if (trigger_status_parse(status, &row->status))
                return 1;
        error_set(err, ERR_CORRUPT, "the decision about 'evt-%lld' has the unknown status '%.40s'",
                  (long long)row->event, status);
        sql_end(s);
        return -1;
}

/* clang-format off */
#define FILTERED                                                     \
        " AND l.event < ?1 AND " ROWS_IF_TEXT("l.status", "?2")   \
        " AND " ROWS_IF_TEXT("l.adapter", "?3")                   \
        " AND " ROWS_IF_TEXT("l.channel", "?4")                   \
        " AND " ROWS_IF_TEXT("coalesce(t.answered_by, l.agent)", "?5")                     \
        " AND " ROWS_IF_ADAPTERS("l.adapter", "?6")               \
        " ORDER BY l.event DESC LIMIT ?7"
/* clang-format on */
#define FILTER_VALUES(f)                                                              \
        SQL_INT((f)->before > 0 ? (f)->before : INT64_MAX),                           \
                SQL_TEXT((f)->status ? trigger_status_name(*(f)->status) : NULL),     \
                SQL_TEXT((f)->adapter), SQL_TEXT((f)->channel), SQL_TEXT((f)->agent), \
                SQL_TEXT((f)->adapters), SQL_INT((f)->limit)

struct store_stmt *trigger_log_row_list(struct store_tx *tx, const struct trigger_log_filter *f)
{
        if (f->trace) /* by its index */
                return sql_query(tx, SELECT_LOG " WHERE l.trace = ?8" FILTERED, FILTER_VALUES(f),
                                 SQL_TEXT(f->trace));
        return sql_query(tx, SELECT_LOG " WHERE 1 = 1" FILTERED, FILTER_VALUES(f));
}

int trigger_log_row_get(struct store_tx *tx, int64_t event, struct trigger_log_row **out,
                        struct error *err)
{
        static const size_t strings[] = {
                offsetof(struct trigger_log_row, event_type),
                offsetof(struct trigger_log_row, adapter),
                offsetof(struct trigger_log_row, channel),
                offsetof(struct trigger_log_row, thread),
                offsetof(struct trigger_log_row, sender),
                offsetof(struct trigger_log_row, sender_name),
                offsetof(struct trigger_log_row, agent),
                offsetof(struct trigger_log_row, rule),
                offsetof(struct trigger_log_row, trace),
                offsetof(struct trigger_log_row, reason),
                offsetof(struct trigger_log_row, error),
                offsetof(struct trigger_log_row, session),
                offsetof(struct trigger_log_row, chosen_agent),
        };
        struct store_stmt *s = sql_query(tx, SELECT_LOG " WHERE l.event = ?1", SQL_INT(event));
        struct trigger_log_row row;
        int rc = trigger_log_row_next(s, &row, err);

        *out = rc == 1 ? mem_dup_struct(&row, sizeof(row), strings, COUNT(strings)) : NULL;
        sql_end(s);
        return rc;
}

int trigger_log_row_rules(struct store_tx *tx, int64_t event, char **out, struct error *err)
{
        int rc;

        *out = NULL;
        rc = sql_first(
                sql_query(tx, "SELECT rules FROM trigger_log WHERE event = ?1", SQL_INT(event)),
                err, OUT_DUP(out));
        return rc < 0 ? -1 : 0;
}

int trigger_log_row_find_trace(struct store_tx *tx, const char *trace, int64_t *event,
                               struct error *err)
{
        return sql_first(sql_query(tx,
                                   "SELECT event FROM trigger_log WHERE trace = ?1"
                                   " ORDER BY event LIMIT 1",
                                   SQL_TEXT(trace)),
                         err, OUT_INT(event));
}

int trigger_log_row_find_last(struct store_tx *tx, const struct chat_key *chat, const char *sender,
                              const char *event_type, int64_t before, int64_t newest,
                              int64_t *event, struct error *err)
{
        return sql_first(sql_query(tx,
                                   "SELECT event FROM"
                                   " (SELECT event, event_type, adapter, channel, thread, sender,"
                                   " status, turn FROM trigger_log"
                                   " WHERE event < ?1 ORDER BY event DESC LIMIT ?2) AS l"
                                   " WHERE adapter = ?3 AND channel = ?4"
                                   " AND coalesce(thread, '') = ?5 AND sender = ?6"
                                   " AND event_type = ?7"
                                   " AND (status <> 'done' OR turn IS NOT NULL)"
                                   " ORDER BY event DESC LIMIT 1",
                                   SQL_INT(before), SQL_INT(newest), SQL_TEXT(chat->adapter),
                                   SQL_TEXT(chat->channel),
                                   SQL_TEXT(chat->thread ? chat->thread : ""), SQL_TEXT(sender),
                                   SQL_TEXT(event_type)),
                         err, OUT_INT(event));
}

/* ---- lists for dispatch ---- */

struct store_stmt *trigger_log_row_list_turns(struct store_tx *tx, int64_t limit)
{
        return sql_query(tx,
                         "SELECT adapter, channel, sender, rule, turn, time_ms FROM trigger_log"
                         " WHERE event_type <> 'schedule.fired' ORDER BY event DESC"
                         " LIMIT ?1",
                         SQL_INT(limit));
}

int trigger_log_row_next_turn(struct store_stmt *s, int64_t since_ms, struct trigger_turn *out,
                              struct error *err)
{
        int rc;

        while ((rc = sql_next(s, err)) == 1) {
                sql_read(s, OUT_TEXT(&out->adapter), OUT_TEXT(&out->channel),
                         OUT_TEXT(&out->sender), OUT_TEXT(&out->rule), OUT_INT(&out->turn),
                         OUT_INT(&out->time_ms));
                if (out->time_ms <= since_ms) {
                        sql_end(s);
                        return 0;
                }
                if (out->turn > 0)
                        return 1;
        }
        return rc;
}

struct store_stmt *trigger_log_row_list_reactions(struct store_tx *tx, int64_t since_ms,
                                                  int64_t limit)
{
        return sql_query(tx,
                         "SELECT j.seq, j.type, t.time_ms, j.adapter, j.channel, j.payload"
                         " FROM (SELECT event, time_ms FROM trigger_log"
                         " WHERE event_type IN ('reaction.received', 'reaction.removed')"
                         " AND turn IS NOT NULL AND time_ms > ?1"
                         " ORDER BY event DESC LIMIT ?2) AS t"
                         " JOIN journal AS j ON j.seq = t.event"
                         " ORDER BY j.seq",
                         SQL_INT(since_ms), SQL_INT(limit));
}

int trigger_log_row_next_reaction(struct store_stmt *s, struct journal_row *out, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        *out = (struct journal_row){ 0 };
        sql_read(s, OUT_INT(&out->seq), OUT_TEXT(&out->type), OUT_INT(&out->time_ms),
                 OUT_TEXT(&out->adapter), OUT_TEXT(&out->channel), OUT_TEXT(&out->payload));
        return 1;
}

struct store_stmt *trigger_log_row_list_decisions(struct store_tx *tx, int64_t since_ms)
{
        return sql_query(tx,
                         "SELECT j.seq, j.type, j.time_ms, j.adapter, j.channel, j.thread, j.trace,"
                         " j.payload, l.time_ms, l.agent, l.rule, l.reason, l.turn, t.ended_ms,"
                         " t.cost_microusd,"
                         " (SELECT d.thread FROM deliveries AS d"
                         " WHERE d.turn = t.id AND d.thread IS NOT NULL"
                         " ORDER BY d.id LIMIT 1)"
                         " FROM trigger_log AS l"
                         " JOIN journal AS j ON j.seq = l.event"
                         " LEFT JOIN turns AS t ON t.id = l.turn"
                         " WHERE l.time_ms >= ?1"
                         " ORDER BY l.event",
                         SQL_INT(since_ms));
}

int trigger_log_row_next_decision(struct store_stmt *s, struct trigger_decision *out,
                                  struct error *err)
{
        int rc = sql_next(s, err);
        struct journal_row *e = &out->event;

        if (rc != 1)
                return rc;
        *out = (struct trigger_decision){ 0 };
        sql_read(s, OUT_INT(&e->seq), OUT_TEXT(&e->type), OUT_INT(&e->time_ms),
                 OUT_TEXT(&e->adapter), OUT_TEXT(&e->channel), OUT_TEXT(&e->thread),
                 OUT_TEXT(&e->trace), OUT_TEXT(&e->payload), OUT_INT(&out->time_ms),
                 OUT_TEXT(&out->agent), OUT_TEXT(&out->rule), OUT_TEXT(&out->reason),
                 OUT_INT(&out->turn), OUT_INT(&out->ended_ms), OUT_INT(&out->cost_microusd),
                 OUT_TEXT(&out->thread));
        return 1;
}

int trigger_log_row_get_time(struct store_tx *tx, int64_t event, int64_t *time_ms,
                             struct error *err)
{
        return sql_number(tx, *time_ms, time_ms, err,
                          "SELECT time_ms FROM trigger_log"
                          " WHERE event >= ?1"
                          " ORDER BY event"
                          " LIMIT 1",
                          SQL_INT(event));
}
