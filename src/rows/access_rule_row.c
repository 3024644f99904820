#include "rows/policy_rows.h"

#include <string.h>

#include "store/sql.h"

/* ?1 to ?11 of both statements that write a rule */
#define RULE_VALUES(r)                                                                       \
        SQL_TEXT((r)->adapter), SQL_TEXT((r)->deny ? "deny" : "allow"), SQL_TEXT((r)->user), \
                SQL_REF((r)->person), SQL_TEXT((r)->place), SQL_INT((r)->enabled),           \
                SQL_TEXT((r)->reason), SQL_TEXT((r)->message), SQL_INT((r)->expires_ms),     \
                SQL_TEXT((r)->by), SQL_INT((r)->updated_ms)

int access_rule_row_insert(struct store_tx *tx, const struct access_rule *r, int64_t *id,
                           struct error *err)
{
        int rc = sql_insert(tx, id, err,
                            "INSERT INTO access_rules(adapter, effect, platform_user, person,"
                            " place, enabled, reason, message, expires_ms, by_whom, updated_ms,"
                            " created_ms)"
                            " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11)",
                            RULE_VALUES(r));

        return rc < 0 ? -1 : 0;
}

int access_rule_row_update(struct store_tx *tx, const struct access_rule *r, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE access_rules"
                               " SET adapter = ?1, effect = ?2, platform_user = ?3, person = ?4,"
                               " place = ?5, enabled = ?6, reason = ?7, message = ?8,"
                               " expires_ms = ?9, by_whom = ?10, updated_ms = ?11"
                               " WHERE id = ?12",
                               RULE_VALUES(r), SQL_INT(r->id));
}

int access_rule_row_delete(struct store_tx *tx, int64_t id, struct error *err)
{
        return (int)sql_update(tx, err, "DELETE FROM access_rules WHERE id = ?1", SQL_INT(id));
}

struct store_stmt *access_rule_row_list(struct store_tx *tx)
{
        return sql_query(tx, "SELECT id, adapter, effect, platform_user, person, place, enabled,"
                             " reason, message, expires_ms, by_whom, created_ms, updated_ms"
                             " FROM access_rules"
                             " ORDER BY id");
}

int access_rule_row_next(struct store_stmt *s, struct access_rule *out, struct error *err)
{
        int rc = sql_next(s, err);
        const char *effect;

        if (rc != 1)
                return rc;
        sql_read(s, OUT_INT(&out->id), OUT_TEXT(&out->adapter), OUT_TEXT(&effect),
                 OUT_TEXT(&out->user), OUT_INT(&out->person), OUT_TEXT(&out->place),
                 OUT_BOOL(&out->enabled), OUT_TEXT(&out->reason), OUT_TEXT(&out->message),
                 OUT_INT(&out->expires_ms), OUT_TEXT(&out->by), OUT_INT(&out->created_ms),
                 OUT_INT(&out->updated_ms));
        out->deny = strcmp(effect, "allow") != 0;
        return 1;
}
