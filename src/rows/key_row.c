#include "rows/key_row.h"

#include "store/sql.h"

int key_row_insert(struct store_tx *tx, const struct key_row *r, int64_t *id, struct error *err)
{
        return sql_insert(tx, id, err,
                          "INSERT INTO keys(name, prefix, hash, scopes, adapters, created_ms,"
                          " expires_ms, rate_limit, agents, made_by)"
                          " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                          SQL_TEXT(r->name), SQL_TEXT(r->prefix), SQL_TEXT(r->hash),
                          SQL_TEXT(r->scopes), SQL_TEXT(r->adapters), SQL_INT(r->created_ms),
                          SQL_INT(r->expires_ms), SQL_INT(r->rate_limit), SQL_TEXT(r->agents),
                          SQL_INT(r->made_by)) < 0
                       ? -1
                       : 0;
}

int key_row_set_used(struct store_tx *tx, int64_t id, int64_t used_ms, struct error *err)
{
        return sql_exec(tx, err, "UPDATE keys SET used_ms = ?2 WHERE id = ?1", SQL_INT(id),
                        SQL_INT(used_ms));
}

int key_row_set_revoked(struct store_tx *tx, int64_t id, int64_t revoked_ms, struct error *err)
{
        return sql_exec(tx, err, "UPDATE keys SET revoked_ms = ?2 WHERE id = ?1", SQL_INT(id),
                        SQL_INT(revoked_ms));
}

int key_row_delete_ended(struct store_tx *tx, int64_t before_ms, struct error *err)
{
        return sql_exec(tx, err,
                        "DELETE FROM keys"
                        " WHERE (revoked_ms > 0 AND revoked_ms < ?1)"
                        " OR (expires_ms > 0 AND expires_ms < ?1)",
                        SQL_INT(before_ms));
}

struct store_stmt *key_row_list(struct store_tx *tx)
{
        return sql_query(
                tx, "SELECT id, name, prefix, hash, scopes, adapters, created_ms,"
                    " expires_ms, used_ms, revoked_ms, rate_limit, agents, coalesce(made_by, 0)"
                    " FROM keys"
                    " WHERE length(hash) = 64"
                    " ORDER BY id");
}

int key_row_next(struct store_stmt *s, struct key_row *r, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_INT(&r->id), OUT_TEXT(&r->name), OUT_TEXT(&r->prefix),
                         OUT_TEXT(&r->hash), OUT_TEXT(&r->scopes), OUT_TEXT(&r->adapters),
                         OUT_INT(&r->created_ms), OUT_INT(&r->expires_ms), OUT_INT(&r->used_ms),
                         OUT_INT(&r->revoked_ms), OUT_INT(&r->rate_limit), OUT_TEXT(&r->agents),
                         OUT_INT(&r->made_by));
        return rc;
}
