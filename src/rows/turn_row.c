#include "rows/turn_row.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/sql.h"

static const char *const state_names[] = {
        [TURN_QUEUED] = "queued", [TURN_RUNNING] = "running",     [TURN_DONE] = "done",
        [TURN_FAILED] = "failed", [TURN_CANCELLED] = "cancelled", [TURN_EXPIRED] = "expired",
};

const char *turn_state_name(enum turn_state state)
{
        return state_names[state];
}

bool turn_state_parse(const char *name, enum turn_state *out)
{
        for (size_t i = 0; i < COUNT(state_names); i++) {
                if (strcmp(state_names[i], name) == 0) {
                        *out = (enum turn_state)i;
                        return true;
                }
        }
        return false;
}

const char *turn_row_agent(const struct turn_row *row)
{
        return row->answered_by ? row->answered_by : row->agent;
}

bool turn_row_next_input(const char **inputs, int64_t *event)
{
        char *end;

        if (!*inputs)
                return false;
        *event = strtoll(*inputs, &end, 10);
        if (end == *inputs)
                return false;
        *inputs = *end == ',' ? end + 1 : end;
        return true;
}

/* ---- writing ---- */

int turn_row_insert(struct store_tx *tx, const struct turn_row *row, struct error *err)
{
        return sql_exec(tx, err,
                        "INSERT INTO turns("
                        " id, conversation, agent, rule, state, inputs, trace, attempt, fence,"
                        " owner, due_ms, created_ms, started_ms, session, reply_policy)"
                        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
                        SQL_INT(row->id), SQL_INT(row->conversation), SQL_TEXT(row->agent),
                        SQL_TEXT(row->rule), SQL_TEXT(turn_state_name(row->state)),
                        SQL_TEXT(row->inputs), SQL_TEXT(row->trace), SQL_INT(row->attempt),
                        SQL_INT(row->fence), SQL_TEXT(row->owner), SQL_INT(row->due_ms),
                        SQL_INT(row->created_ms), SQL_REF(row->started_ms), SQL_TEXT(row->session),
                        SQL_TEXT(row->reply_policy));
}

int turn_row_join(struct store_tx *tx, int64_t id, const char *inputs, int64_t due_ms,
                  struct error *err)
{
        return sql_exec(tx, err, "UPDATE turns SET inputs = ?2, due_ms = ?3 WHERE id = ?1",
                        SQL_INT(id), SQL_TEXT(inputs), SQL_INT(due_ms));
}

int turn_row_set_inputs(struct store_tx *tx, int64_t id, const char *inputs, struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE turns SET inputs = ?2"
                        " WHERE id = ?1 AND state IN ('queued', 'running')",
                        SQL_INT(id), SQL_TEXT(inputs));
}

int turn_row_cancel(struct store_tx *tx, int64_t id, const char *reason, struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE turns SET cancel_reason = ?2"
                        " WHERE id = ?1 AND state IN ('queued', 'running')",
                        SQL_INT(id), SQL_TEXT(reason));
}

int turn_row_set_draft(struct store_tx *tx, int64_t id, int64_t delivery, struct error *err)
{
        return sql_exec(tx, err, "UPDATE turns SET draft = ?2 WHERE id = ?1", SQL_INT(id),
                        SQL_INT(delivery));
}

int turn_row_set_progress_reaction(struct store_tx *tx, int64_t id, int64_t delivery,
                                   struct error *err)
{
        return sql_exec(tx, err, "UPDATE turns SET progress_reaction = ?2 WHERE id = ?1",
                        SQL_INT(id), SQL_INT(delivery));
}

int turn_row_claim(struct store_tx *tx, const struct turn_row *row, int64_t old_fence,
                   int64_t lease_ms, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE turns SET state = 'running', attempt = ?2, fence = ?3,"
                               " owner = ?4, started_ms = ?5, lease_ms = ?6"
                               " WHERE id = ?1 AND fence = ?7"
                               " AND state IN ('queued', 'running')",
                               SQL_INT(row->id), SQL_INT(row->attempt), SQL_INT(row->fence),
                               SQL_TEXT(row->owner), SQL_INT(row->started_ms), SQL_INT(lease_ms),
                               SQL_INT(old_fence));
}

int turn_row_fail_over(struct store_tx *tx, const struct turn_row *row, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE turns SET answered_by = ?3, failed_agents = ?4"
                               " WHERE id = ?1 AND fence = ?2 AND state = 'running'",
                               SQL_INT(row->id), SQL_INT(row->fence), SQL_TEXT(row->answered_by),
                               SQL_TEXT(row->failed_agents));
}

int turn_row_finish(struct store_tx *tx, const struct turn_row *row, struct error *err)
{
        /* Keep the policy of a failed turn for a retry, and with keeps_policy for late replies. */
        return (int)sql_update(
                tx, err,
                "UPDATE turns SET state = ?3, ended_ms = ?4, error_kind = ?5,"
                " error = ?6, tokens_in = ?7, tokens_out = ?8,"
                " cost_microusd = ?9, answered_by = ?10, failed_agents = ?11,"
                " reply_policy = CASE WHEN CAST(?3 AS TEXT) = 'failed' OR CAST(?12 AS BIGINT) = 1"
                " THEN reply_policy END, tokens_cached = ?13"
                " WHERE id = ?1 AND fence = ?2"
                " AND state IN ('queued', 'running')",
                SQL_INT(row->id), SQL_INT(row->fence), SQL_TEXT(turn_state_name(row->state)),
                SQL_INT(row->ended_ms), SQL_TEXT(row->error_kind), SQL_TEXT(row->error),
                SQL_INT(row->tokens_in), SQL_INT(row->tokens_out), SQL_INT(row->cost_microusd),
                SQL_TEXT(row->answered_by), SQL_TEXT(row->failed_agents),
                SQL_INT(row->keeps_policy), SQL_INT(row->tokens_cached));
}

int turn_row_discard_reply(struct store_tx *tx, int64_t id, int64_t now_ms, const char *reason,
                           struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE turns SET discarded_replies = discarded_replies + 1,"
                        " discarded_ms = ?2, discard_reason = ?3"
                        " WHERE id = ?1",
                        SQL_INT(id), SQL_INT(now_ms), SQL_TEXT(reason));
}

int turn_row_absorb(struct store_tx *tx, int64_t id, struct error *err)
{
        return (int)sql_update(tx, err, "DELETE FROM turns WHERE id = ?1 AND state = 'queued'",
                               SQL_INT(id));
}

int turn_row_progress(struct store_tx *tx, int64_t id, int64_t fence, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE turns SET progress_attempt = attempt"
                               " WHERE id = ?1 AND fence = ?2 AND state = 'running'",
                               SQL_INT(id), SQL_INT(fence));
}

int turn_row_give(struct store_tx *tx, int64_t id, int64_t fence, const char *agent,
                  struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE turns SET progress_attempt = attempt, given_to = ?3"
                               " WHERE id = ?1 AND fence = ?2 AND state = 'running'",
                               SQL_INT(id), SQL_INT(fence), SQL_TEXT(agent));
}

int turn_row_lose(struct store_tx *tx, int64_t id, int64_t now_ms, struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE turns SET state = 'failed', ended_ms = ?2,"
                        " error_kind = 'missing', error = 'its messages were pruned'"
                        " WHERE id = ?1",
                        SQL_INT(id), SQL_INT(now_ms));
}

int turn_row_revive(struct store_tx *tx, int64_t id, int64_t due_ms, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE turns SET state = 'queued', attempt = 0,"
                               " progress_attempt = 0, fence = fence + 1, cancel_reason = NULL,"
                               " progress_reaction = 0, due_ms = ?2, ended_ms = NULL,"
                               " answered_by = NULL, failed_agents = NULL, given_to = NULL"
                               " WHERE id = ?1 AND state = 'failed'",
                               SQL_INT(id), SQL_INT(due_ms));
}

/* ---- reading ---- */

#define SELECT_TURNS                                                                              \
        "SELECT t.id, t.conversation, t.agent, t.rule, t.state, t.inputs, t.trace,"               \
        " t.attempt, t.progress_attempt, t.fence, t.owner, t.due_ms, t.created_ms, t.started_ms," \
        " t.ended_ms, t.error_kind, t.error, t.tokens_in, t.tokens_cached, t.tokens_out,"         \
        " t.cost_microusd, t.session, t.cancel_reason, t.reply_policy, t.draft,"                  \
        " t.progress_reaction, t.answered_by, t.failed_agents, t.given_to,"                       \
        " t.discarded_replies, t.discarded_ms, t.discard_reason,"                                 \
        " c.adapter, c.channel, c.thread, c.person, c.history_turn"                               \
        " FROM turns t LEFT JOIN conversations c ON c.id = t.conversation"

int turn_row_next(struct store_stmt *s, struct turn_row *row, struct error *err)
{
        const char *state;
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        *row = (struct turn_row){ 0 };
        sql_read(s, OUT_INT(&row->id), OUT_INT(&row->conversation), OUT_TEXT(&row->agent),
                 OUT_TEXT(&row->rule), OUT_TEXT(&state), OUT_TEXT(&row->inputs),
                 OUT_TEXT(&row->trace), OUT_INT(&row->attempt), OUT_INT(&row->progress_attempt),
                 OUT_INT(&row->fence), OUT_TEXT(&row->owner), OUT_INT(&row->due_ms),
                 OUT_INT(&row->created_ms), OUT_INT(&row->started_ms), OUT_INT(&row->ended_ms),
                 OUT_TEXT(&row->error_kind), OUT_TEXT(&row->error), OUT_INT(&row->tokens_in),
                 OUT_INT(&row->tokens_cached), OUT_INT(&row->tokens_out),
                 OUT_INT(&row->cost_microusd), OUT_TEXT(&row->session),
                 OUT_TEXT(&row->cancel_reason), OUT_TEXT(&row->reply_policy), OUT_INT(&row->draft),
                 OUT_INT(&row->progress_reaction), OUT_TEXT(&row->answered_by),
                 OUT_TEXT(&row->failed_agents), OUT_TEXT(&row->given_to),
                 OUT_INT(&row->discarded_replies), OUT_INT(&row->discarded_ms),
                 OUT_TEXT(&row->discard_reason), OUT_TEXT(&row->adapter), OUT_TEXT(&row->channel),
                 OUT_TEXT(&row->thread), OUT_TEXT(&row->person), OUT_INT(&row->reset_turn));
        if (turn_state_parse(state, &row->state))
                return 1;
        error_set(err, ERR_CORRUPT, "turn 'trn-%lld' has the unknown state '%.40s'",
                  (long long)row->id, state);
        sql_end(s);
        return -1;
}

struct store_stmt *turn_row_list_open(struct store_tx *tx)
{
        return sql_query(tx, SELECT_TURNS " WHERE t.state IN ('queued', 'running')"
                                          " AND c.id IS NOT NULL"
                                          " ORDER BY t.id");
}

/* clang-format off */
#define FILTERED                                                     \
        " AND t.id < ?1 AND " ROWS_IF_TEXT("t.state", "?2")       \
        " AND " ROWS_IF_TEXT("coalesce(t.answered_by, t.agent)", "?3")                     \
        " AND (CAST(?4 AS BIGINT) = 0 OR t.conversation = ?4)"       \
        " AND " ROWS_IF_ADAPTERS("coalesce(c.adapter, '')", "?5") \
        " ORDER BY t.id DESC LIMIT ?6"
/* clang-format on */
#define FILTER_VALUES(f)                                                                          \
        SQL_INT((f)->before > 0 ? (f)->before : INT64_MAX),                                       \
                SQL_TEXT((f)->state ? turn_state_name(*(f)->state) : NULL), SQL_TEXT((f)->agent), \
                SQL_INT((f)->conversation), SQL_TEXT((f)->adapters), SQL_INT((f)->limit)

struct store_stmt *turn_row_list(struct store_tx *tx, const struct turn_filter *f)
{
        /* one text per usable partial index */
        if (f->state && (*f->state == TURN_QUEUED || *f->state == TURN_RUNNING))
                return sql_query(tx,
                                 SELECT_TURNS " WHERE t.state IN ('queued', 'running')" FILTERED,
                                 FILTER_VALUES(f));
        if (f->state && *f->state == TURN_FAILED)
                return sql_query(tx, SELECT_TURNS " WHERE t.state = 'failed'" FILTERED,
                                 FILTER_VALUES(f));
        return sql_query(tx, SELECT_TURNS " WHERE 1 = 1" FILTERED, FILTER_VALUES(f));
}

struct turn_row *turn_row_dup(const struct turn_row *row)
{
        static const size_t strings[] = {
                offsetof(struct turn_row, agent),          offsetof(struct turn_row, rule),
                offsetof(struct turn_row, inputs),         offsetof(struct turn_row, trace),
                offsetof(struct turn_row, owner),          offsetof(struct turn_row, error_kind),
                offsetof(struct turn_row, error),          offsetof(struct turn_row, session),
                offsetof(struct turn_row, cancel_reason),  offsetof(struct turn_row, reply_policy),
                offsetof(struct turn_row, adapter),        offsetof(struct turn_row, channel),
                offsetof(struct turn_row, thread),         offsetof(struct turn_row, person),
                offsetof(struct turn_row, answered_by),    offsetof(struct turn_row, failed_agents),
                offsetof(struct turn_row, discard_reason), offsetof(struct turn_row, given_to),
        };

        return mem_dup_struct(row, sizeof(*row), strings, COUNT(strings));
}

int turn_row_get(struct store_tx *tx, int64_t id, struct turn_row **out, struct error *err)
{
        struct store_stmt *s = sql_query(tx, SELECT_TURNS " WHERE t.id = ?1", SQL_INT(id));
        struct turn_row row;
        int rc = turn_row_next(s, &row, err);

        *out = rc == 1 ? turn_row_dup(&row) : NULL;
        sql_end(s);
        return rc;
}

/* ---- lists ---- */

struct store_stmt *turn_row_list_costs(struct store_tx *tx, int64_t since_ms)
{
        return sql_query(tx,
                         "SELECT c.adapter, t.rule, t.agent, t.cost_microusd FROM turns AS t"
                         " JOIN conversations AS c ON c.id = t.conversation"
                         " WHERE t.cost_microusd > 0 AND t.ended_ms >= ?1",
                         SQL_INT(since_ms));
}

struct store_stmt *turn_row_list_last_costs(struct store_tx *tx, int64_t limit)
{
        return sql_query(tx,
                         "SELECT c.adapter, t.rule, t.agent, t.cost_microusd"
                         " FROM (SELECT conversation, rule, agent, cost_microusd, ended_ms"
                         " FROM turns WHERE cost_microusd > 0"
                         " ORDER BY ended_ms DESC LIMIT ?1) AS t"
                         " JOIN conversations AS c ON c.id = t.conversation"
                         " ORDER BY t.ended_ms",
                         SQL_INT(limit));
}

int turn_row_next_cost(struct store_stmt *s, struct turn_cost *out, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_TEXT(&out->adapter), OUT_TEXT(&out->rule), OUT_TEXT(&out->agent),
                         OUT_INT(&out->microusd));
        return rc;
}

struct store_stmt *turn_row_list_pending(struct store_tx *tx)
{
        return sql_query(tx, "SELECT t.trace, c.adapter, t.rule, t.agent, t.session, t.created_ms"
                             " FROM turns AS t"
                             " JOIN conversations AS c ON c.id = t.conversation"
                             " WHERE t.state IN ('queued', 'running')"
                             " ORDER BY t.id");
}

int turn_row_next_pending(struct store_stmt *s, struct turn_pending *out, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_TEXT(&out->trace), OUT_TEXT(&out->adapter), OUT_TEXT(&out->rule),
                         OUT_TEXT(&out->agent), OUT_TEXT(&out->session), OUT_INT(&out->created_ms));
        return rc;
}
