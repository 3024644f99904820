#include "rows/turn_row.h"

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
