#include "rows/approval_row.h"

#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "store/sql.h"

static const char *const state_names[] = {
        [APPROVAL_OPEN] = "open",           [APPROVAL_APPROVED] = "approved",
        [APPROVAL_REFUSED] = "refused",     [APPROVAL_EXPIRED] = "expired",
        [APPROVAL_CANCELLED] = "cancelled",
};

const char *approval_state_name(enum approval_state state)
{
        return state_names[state];
}

bool approval_state_parse(const char *name, enum approval_state *out)
{
        for (size_t i = 0; i < COUNT(state_names); i++) {
                if (strcmp(state_names[i], name) == 0) {
                        *out = (enum approval_state)i;
                        return true;
                }
        }
        return false;
}

const char *approvers_name(enum approvers who)
{
        return who == APPROVERS_ADMINS ? "admins" : "asker";
}

/* ---- writing ---- */

int approval_row_insert(struct store_tx *tx, const struct approval_row *row, int64_t fence,
                        struct error *err)
{
        return (int)sql_update(
                tx, err,
                "INSERT INTO approvals(id, turn, conversation, agent, adapter, channel, thread,"
                " trace, call, tool, title, detail, subject, reason, effect, rule, asker,"
                " approvers, state, created_ms, expires_ms, deliveries)"
                " SELECT CAST(?1 AS BIGINT), t.id, t.conversation, CAST(?4 AS TEXT),"
                " CAST(?5 AS TEXT), CAST(?6 AS TEXT), CAST(?7 AS TEXT), CAST(?8 AS TEXT),"
                " CAST(?9 AS TEXT), CAST(?10 AS TEXT), CAST(?11 AS TEXT), CAST(?12 AS TEXT),"
                " CAST(?13 AS TEXT), CAST(?14 AS TEXT), CAST(?15 AS TEXT), CAST(?16 AS TEXT),"
                " CAST(?17 AS TEXT), CAST(?18 AS TEXT), 'open', CAST(?19 AS BIGINT),"
                " CAST(?20 AS BIGINT), CAST(?21 AS TEXT)"
                " FROM turns AS t WHERE t.id = ?2 AND t.fence = ?3 AND t.state = 'running'",
                SQL_INT(row->id), SQL_INT(row->turn), SQL_INT(fence), SQL_TEXT(row->agent),
                SQL_TEXT(row->adapter), SQL_TEXT(row->channel), SQL_TEXT(row->thread),
                SQL_TEXT(row->trace), SQL_TEXT(row->call), SQL_TEXT(row->tool),
                SQL_TEXT(row->title), SQL_TEXT(row->detail), SQL_TEXT(row->subject),
                SQL_TEXT(row->reason), SQL_TEXT(row->effect), SQL_TEXT(row->rule),
                SQL_TEXT(row->asker), SQL_TEXT(approvers_name(row->approvers)),
                SQL_INT(row->created_ms), SQL_INT(row->expires_ms), SQL_TEXT(row->deliveries));
}

int approval_row_decide(struct store_tx *tx, const struct approval_row *row, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE approvals SET state = ?2, decided_ms = ?3, decided_by = ?4,"
                               " note = ?5, always = ?6 WHERE id = ?1 AND state = 'open'",
                               SQL_INT(row->id), SQL_TEXT(approval_state_name(row->state)),
                               SQL_INT(row->decided_ms), SQL_TEXT(row->by), SQL_TEXT(row->note),
                               SQL_INT(row->always));
}

/* ---- reading ---- */

#define SELECT_APPROVALS                                                                      \
        "SELECT id, turn, conversation, agent, adapter, channel, thread, trace, call, tool,"  \
        " title, detail, subject, reason, effect, rule, asker, approvers, state, created_ms," \
        " expires_ms, decided_ms, decided_by, note, always, deliveries FROM approvals"

int approval_row_next(struct store_stmt *s, struct approval_row *out, struct error *err)
{
        const char *state, *approvers;
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        *out = (struct approval_row){ 0 };
        sql_read(s, OUT_INT(&out->id), OUT_INT(&out->turn), OUT_INT(&out->conversation),
                 OUT_TEXT(&out->agent), OUT_TEXT(&out->adapter), OUT_TEXT(&out->channel),
                 OUT_TEXT(&out->thread), OUT_TEXT(&out->trace), OUT_TEXT(&out->call),
                 OUT_TEXT(&out->tool), OUT_TEXT(&out->title), OUT_TEXT(&out->detail),
                 OUT_TEXT(&out->subject), OUT_TEXT(&out->reason), OUT_TEXT(&out->effect),
                 OUT_TEXT(&out->rule), OUT_TEXT(&out->asker), OUT_TEXT(&approvers),
                 OUT_TEXT(&state), OUT_INT(&out->created_ms), OUT_INT(&out->expires_ms),
                 OUT_INT(&out->decided_ms), OUT_TEXT(&out->by), OUT_TEXT(&out->note),
                 OUT_BOOL(&out->always), OUT_TEXT(&out->deliveries));
        out->approvers = strcmp(approvers, "asker") == 0 ? APPROVERS_ASKER : APPROVERS_ADMINS;
        if (approval_state_parse(state, &out->state))
                return 1;
        error_set(err, ERR_CORRUPT, "approval 'apr-%lld' has the unknown state '%.40s'",
                  (long long)out->id, state);
        sql_end(s);
        return -1;
}

struct approval_row *approval_row_dup(const struct approval_row *row)
{
        static const size_t strings[] = {
                offsetof(struct approval_row, agent),      offsetof(struct approval_row, adapter),
                offsetof(struct approval_row, channel),    offsetof(struct approval_row, thread),
                offsetof(struct approval_row, trace),      offsetof(struct approval_row, call),
                offsetof(struct approval_row, tool),       offsetof(struct approval_row, title),
                offsetof(struct approval_row, detail),     offsetof(struct approval_row, subject),
                offsetof(struct approval_row, reason),     offsetof(struct approval_row, effect),
                offsetof(struct approval_row, rule),       offsetof(struct approval_row, asker),
                offsetof(struct approval_row, by),         offsetof(struct approval_row, note),
                offsetof(struct approval_row, deliveries),
        };

        return mem_dup_struct(row, sizeof(*row), strings, COUNT(strings));
}

static int take_first(struct store_stmt *s, struct approval_row **out, struct error *err)
{
        struct approval_row row;
        int rc = approval_row_next(s, &row, err);

        *out = rc == 1 ? approval_row_dup(&row) : NULL;
        sql_end(s);
        return rc;
}

int approval_row_get(struct store_tx *tx, int64_t id, struct approval_row **out, struct error *err)
{
        return take_first(sql_query(tx, SELECT_APPROVALS " WHERE id = ?1", SQL_INT(id)), out, err);
}

int approval_row_find(struct store_tx *tx, int64_t turn, const char *call,
                      struct approval_row **out, struct error *err)
{
        return take_first(sql_query(tx, SELECT_APPROVALS " WHERE turn = ?1 AND call = ?2",
                                    SQL_INT(turn), SQL_TEXT(call)),
                          out, err);
}

int approval_row_find_refused(struct store_tx *tx, int64_t turn, const char *effect,
                              struct approval_row **out, struct error *err)
{
        return take_first(sql_query(tx,
                                    SELECT_APPROVALS " WHERE turn = ?1 AND effect = ?2"
                                                     " AND state IN ('refused', 'expired')"
                                                     " ORDER BY id DESC LIMIT 1",
                                    SQL_INT(turn), SQL_TEXT(effect)),
                          out, err);
}

struct store_stmt *approval_row_list(struct store_tx *tx, const struct approval_filter *f)
{
        return sql_query(
                tx,
                SELECT_APPROVALS " WHERE id < ?1 AND " ROWS_IF_TEXT(
                        "state", "?2") " AND (CAST(?3 AS BIGINT) = 0 OR turn = ?3)"
                                       " AND " ROWS_IF_ADAPTERS("adapter",
                                                                "?4") " ORDER BY id DESC LIMIT ?5",
                SQL_INT(f->before > 0 ? f->before : INT64_MAX),
                SQL_TEXT(f->state ? approval_state_name(*f->state) : NULL), SQL_INT(f->turn),
                SQL_TEXT(f->adapters), SQL_INT(f->limit));
}

struct store_stmt *approval_row_list_open(struct store_tx *tx)
{
        return sql_query(tx, SELECT_APPROVALS " WHERE state = 'open' ORDER BY id");
}

/* ---- rules ---- */

int approval_rule_row_insert(struct store_tx *tx, const struct approval_rule_row *row, int64_t *id,
                             struct error *err)
{
        int rc = sql_insert(tx, id, err,
                            "INSERT INTO approval_rules(agent, adapter, channel, rule, approval,"
                            " made_by, created_ms) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                            SQL_TEXT(row->agent), SQL_TEXT(row->adapter), SQL_TEXT(row->channel),
                            SQL_TEXT(row->rule), SQL_REF(row->approval), SQL_TEXT(row->by),
                            SQL_INT(row->created_ms));

        return rc < 0 ? -1 : 0;
}

int approval_rule_row_delete(struct store_tx *tx, int64_t id, struct error *err)
{
        return (int)sql_update(tx, err, "DELETE FROM approval_rules WHERE id = ?1", SQL_INT(id));
}

struct store_stmt *approval_rule_row_list(struct store_tx *tx)
{
        return sql_query(tx, "SELECT id, agent, adapter, channel, rule, approval, made_by,"
                             " created_ms FROM approval_rules ORDER BY id");
}

int approval_rule_row_next(struct store_stmt *s, struct approval_rule_row *out, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_INT(&out->id), OUT_TEXT(&out->agent), OUT_TEXT(&out->adapter),
                         OUT_TEXT(&out->channel), OUT_TEXT(&out->rule), OUT_INT(&out->approval),
                         OUT_TEXT(&out->by), OUT_INT(&out->created_ms));
        return rc;
}

struct approval_rule_row *approval_rule_row_dup(const struct approval_rule_row *row)
{
        static const size_t strings[] = {
                offsetof(struct approval_rule_row, agent),
                offsetof(struct approval_rule_row, adapter),
                offsetof(struct approval_rule_row, channel),
                offsetof(struct approval_rule_row, rule),
                offsetof(struct approval_rule_row, by),
        };

        return mem_dup_struct(row, sizeof(*row), strings, COUNT(strings));
}
