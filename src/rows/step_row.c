#include "rows/step_row.h"

#include <string.h>

#include "base/mem.h"
#include "rows/turn_row.h"
#include "store/sql.h"

static const char *const kind_names[] = {
        [STEP_USER] = "user",
        [STEP_ASSISTANT] = "assistant",
        [STEP_TOOL_STARTED] = "tool_started",
        [STEP_TOOL_DONE] = "tool_done",
        [STEP_COMPACTION] = "compaction",
};

const char *step_kind_name(enum step_kind kind)
{
        return kind_names[kind];
}

bool step_kind_parse(const char *name, enum step_kind *out)
{
        for (size_t i = 0; i < COUNT(kind_names); i++) {
                if (strcmp(kind_names[i], name) == 0) {
                        *out = (enum step_kind)i;
                        return true;
                }
        }
        return false;
}

static int insert(struct store_tx *tx, struct step_row *row, struct error *err)
{
        return sql_insert(
                tx, &row->id, err,
                "INSERT INTO steps(conversation, turn, session, agent, person, kind, call,"
                " body, first_kept, cost_microusd, time_ms)"
                " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
                " ON CONFLICT DO NOTHING",
                SQL_INT(row->conversation), SQL_INT(row->turn), SQL_TEXT(row->session),
                SQL_TEXT(row->agent), SQL_TEXT(row->person), SQL_TEXT(step_kind_name(row->kind)),
                SQL_TEXT(row->call), SQL_TEXT(row->body), SQL_INT(row->first_kept),
                SQL_INT(row->cost_microusd), SQL_INT(row->time_ms));
}

int step_row_insert(struct store_tx *tx, struct step_row *row, int64_t fence, struct error *err)
{
        int rc = turn_row_progress(tx, row->turn, fence, err);

        return rc == 1 ? insert(tx, row, err) : rc;
}

#define COLUMNS                                                                         \
        "id, conversation, turn, session, agent, person, kind, call, body, first_kept," \
        " cost_microusd, time_ms"

struct store_stmt *step_row_list(struct store_tx *tx, int64_t conversation, const char *session,
                                 int64_t from)
{
        if (session)
                return sql_query(tx,
                                 "SELECT " COLUMNS " FROM steps"
                                 " WHERE session = ?1 AND turn >= ?2 AND id >= coalesce("
                                 "(SELECT first_kept FROM steps WHERE session = ?1"
                                 " AND session IS NOT NULL AND kind = 'compaction'"
                                 " AND turn >= ?2 ORDER BY id DESC LIMIT 1), 0) ORDER BY id",
                                 SQL_TEXT(session), SQL_INT(from));
        /* a compaction of a session knows nothing of what was said outside it */
        return sql_query(tx,
                         "SELECT " COLUMNS " FROM steps"
                         " WHERE conversation = ?1 AND turn >= ?2"
                         " AND (kind <> 'compaction' OR session IS NULL) AND id >= coalesce("
                         "(SELECT first_kept FROM steps WHERE conversation = ?1"
                         " AND kind = 'compaction' AND session IS NULL"
                         " AND turn >= ?2 ORDER BY id DESC LIMIT 1), 0) ORDER BY id",
                         SQL_INT(conversation), SQL_INT(from));
}

struct store_stmt *step_row_list_turn(struct store_tx *tx, int64_t turn)
{
        return sql_query(tx, "SELECT " COLUMNS " FROM steps WHERE turn = ?1 ORDER BY id",
                         SQL_INT(turn));
}

int step_row_next(struct store_stmt *s, struct step_row *out, struct error *err)
{
        const char *kind;
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        *out = (struct step_row){ 0 };
        sql_read(s, OUT_INT(&out->id), OUT_INT(&out->conversation), OUT_INT(&out->turn),
                 OUT_TEXT(&out->session), OUT_TEXT(&out->agent), OUT_TEXT(&out->person),
                 OUT_TEXT(&kind), OUT_TEXT(&out->call), OUT_TEXT(&out->body),
                 OUT_INT(&out->first_kept), OUT_INT(&out->cost_microusd), OUT_INT(&out->time_ms));
        if (step_kind_parse(kind, &out->kind))
                return 1;
        error_set(err, ERR_CORRUPT, "step %lld has the unknown kind '%.40s'", (long long)out->id,
                  kind);
        sql_end(s);
        return -1;
}

int step_row_previous(struct store_tx *tx, int64_t conversation, int64_t id, int64_t *previous,
                      int64_t *turn, struct error *err)
{
        *previous = *turn = 0;
        return sql_first(sql_query(tx,
                                   "SELECT id, turn FROM steps WHERE conversation = ?1 AND id < ?2"
                                   " AND kind <> 'tool_started' ORDER BY id DESC LIMIT 1",
                                   SQL_INT(conversation), SQL_INT(id)),
                         err, OUT_INT(previous), OUT_INT(turn)) < 0
                       ? -1
                       : 0;
}

struct store_stmt *step_row_list_conversations(struct store_tx *tx)
{
        return sql_query(tx, "SELECT DISTINCT conversation FROM steps ORDER BY conversation");
}

int step_row_next_conversation(struct store_stmt *s, int64_t *id, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_INT(id));
        return rc;
}

int step_row_import(struct store_tx *tx, struct step_row *row, struct error *err)
{
        row->turn = 0;
        return insert(tx, row, err) < 0 ? -1 : 0;
}

struct store_stmt *step_row_list_costs(struct store_tx *tx, const char *agent, int64_t since_ms)
{
        return sql_query(tx,
                         "SELECT person, CAST(sum(cost_microusd) AS BIGINT) FROM steps"
                         " WHERE cost_microusd > 0 AND time_ms >= ?2 AND agent = ?1"
                         " GROUP BY person",
                         SQL_TEXT(agent), SQL_INT(since_ms));
}

int step_row_next_cost(struct store_stmt *s, const char **person, int64_t *microusd,
                       struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_TEXT(person), OUT_INT(microusd));
        return rc;
}
