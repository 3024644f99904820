#include "rows/policy_rows.h"

#include "store/sql.h"

int pairing_row_insert(struct store_tx *tx, const struct pairing *p, int64_t *id, struct error *err)
{
        int rc = sql_exec(tx, err,
                          "DELETE FROM pairings"
                          " WHERE state = 'waiting'"
                          " AND (expires_ms <= ?1 OR (adapter = ?2 AND sender = ?3))",
                          SQL_INT(p->created_ms), SQL_TEXT(p->adapter), SQL_TEXT(p->sender));

        if (rc == 0)
                rc = sql_insert(tx, id, err,
                                "INSERT INTO pairings(code, adapter, platform, sender, name, state,"
                                " created_ms, expires_ms)"
                                " VALUES(?1, ?2, ?3, ?4, ?5, 'waiting', ?6, ?7)",
                                SQL_TEXT(p->code), SQL_TEXT(p->adapter), SQL_TEXT(p->platform),
                                SQL_TEXT(p->sender), SQL_TEXT(p->name), SQL_INT(p->created_ms),
                                SQL_INT(p->expires_ms));
        return rc < 0 ? -1 : 0;
}

int pairing_row_decide(struct store_tx *tx, const struct pairing *p, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE pairings"
                               " SET state = ?2, rule = ?3, decided_ms = ?4, by_whom = ?5"
                               " WHERE id = ?1 AND state = 'waiting'",
                               SQL_INT(p->id), SQL_TEXT(p->state), SQL_INT(p->rule),
                               SQL_INT(p->decided_ms), SQL_TEXT(p->by));
}

int pairing_row_get_rule(struct store_tx *tx, int64_t id, int64_t *rule, struct error *err)
{
        return sql_first(sql_query(tx, "SELECT rule FROM pairings WHERE id = ?1", SQL_INT(id)), err,
                         OUT_INT(rule));
}

int pairing_row_delete(struct store_tx *tx, int64_t id, struct error *err)
{
        return sql_exec(tx, err, "DELETE FROM pairings WHERE id = ?1", SQL_INT(id));
}

#define SELECT_PAIRINGS                                                              \
        "SELECT id, code, adapter, platform, sender, name, state, rule, created_ms," \
        " expires_ms, decided_ms, by_whom FROM pairings"

struct store_stmt *pairing_row_list(struct store_tx *tx, int64_t before, int64_t limit,
                                    int64_t now_ms)
{
        return sql_query(tx,
                         SELECT_PAIRINGS
                         " WHERE id < ?1 AND (state <> 'waiting' OR expires_ms > ?2)"
                         " ORDER BY id DESC"
                         " LIMIT ?3",
                         SQL_INT(before), SQL_INT(now_ms), SQL_INT(limit));
}

struct store_stmt *pairing_row_list_waiting(struct store_tx *tx, int64_t now_ms)
{
        return sql_query(tx, SELECT_PAIRINGS " WHERE state = 'waiting' AND expires_ms > ?1",
                         SQL_INT(now_ms));
}

int pairing_row_next(struct store_stmt *s, struct pairing *out, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_INT(&out->id), OUT_TEXT(&out->code), OUT_TEXT(&out->adapter),
                         OUT_TEXT(&out->platform), OUT_TEXT(&out->sender), OUT_TEXT(&out->name),
                         OUT_TEXT(&out->state), OUT_INT(&out->rule), OUT_INT(&out->created_ms),
                         OUT_INT(&out->expires_ms), OUT_INT(&out->decided_ms), OUT_TEXT(&out->by));
        return rc;
}
