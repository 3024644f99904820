#include "rows/policy_rows.h"

#include "store/sql.h"

int rule_row_insert(struct store_tx *tx, const struct rule_row *r, struct error *err)
{
        return (int)sql_update(
                tx, err,
                "INSERT INTO rules(name, position, enabled, rule, created_ms, updated_ms)"
                " VALUES(?1, ?2, ?3, ?4, ?5, ?5)"
                " ON CONFLICT(name) DO NOTHING",
                SQL_TEXT(r->name), SQL_INT(r->position), SQL_INT(r->enabled), SQL_TEXT(r->json),
                SQL_INT(r->updated_ms));
}

int rule_row_update(struct store_tx *tx, const struct rule_row *r, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE rules"
                               " SET position = ?2, enabled = ?3, rule = ?4, updated_ms = ?5"
                               " WHERE name = ?1",
                               SQL_TEXT(r->name), SQL_INT(r->position), SQL_INT(r->enabled),
                               SQL_TEXT(r->json), SQL_INT(r->updated_ms));
}

int rule_row_delete(struct store_tx *tx, const char *name, struct error *err)
{
        return (int)sql_update(tx, err, "DELETE FROM rules WHERE name = ?1", SQL_TEXT(name));
}

struct store_stmt *rule_row_list(struct store_tx *tx)
{
        return sql_query(tx, "SELECT name, position, enabled, rule, created_ms, updated_ms"
                             " FROM rules");
}

int rule_row_next(struct store_stmt *s, struct rule_row *out, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_TEXT(&out->name), OUT_INT(&out->position), OUT_BOOL(&out->enabled),
                         OUT_TEXT(&out->json), OUT_INT(&out->created_ms),
                         OUT_INT(&out->updated_ms));
        return rc;
}
