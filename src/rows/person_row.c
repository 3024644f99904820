#include "rows/person_row.h"

#include "store/sql.h"

/* ---- persons ---- */

int person_row_insert(struct store_tx *tx, int64_t now_ms, int64_t *id, struct error *err)
{
        int rc = sql_insert(tx, id, err,
                            "INSERT INTO persons(created_ms, updated_ms) VALUES(?1, ?1)",
                            SQL_INT(now_ms));

        return rc < 0 ? -1 : 0;
}

int person_row_get_alias(struct store_tx *tx, int64_t person, int64_t *into, struct error *err)
{
        struct store_stmt *s =
                sql_query(tx, "SELECT merged_into FROM persons WHERE id = ?1", SQL_INT(person));
        int rc = sql_next(s, err);

        if (rc == 1) {
                sql_read(s, OUT_INT(into));
                sql_end(s);
        }
        return rc;
}

int person_row_set_alias(struct store_tx *tx, int64_t person, int64_t into, int64_t now_ms,
                         struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE persons SET merged_into = ?2, updated_ms = ?3 WHERE id = ?1",
                        SQL_INT(person), SQL_REF(into), SQL_INT(now_ms));
}

int person_row_move_aliases(struct store_tx *tx, int64_t from, int64_t to, int64_t now_ms,
                            struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE persons SET merged_into = ?2, updated_ms = ?3"
                        " WHERE merged_into = ?1",
                        SQL_INT(from), SQL_INT(to), SQL_INT(now_ms));
}

/* ---- identities ---- */

int person_row_get_identity(struct store_tx *tx, const struct identity *identity,
                            struct identity_row *out, struct error *err)
{
        struct store_stmt *s = sql_query(tx,
                                         "SELECT id, person, home FROM identities"
                                         " WHERE platform = ?1 AND user_id = ?2",
                                         SQL_TEXT(identity->platform), SQL_TEXT(identity->user));
        int rc = sql_next(s, err);

        if (rc == 1) {
                sql_read(s, OUT_INT(&out->id), OUT_INT(&out->person), OUT_INT(&out->home));
                sql_end(s);
        }
        return rc;
}

int person_row_add_identity(struct store_tx *tx, const struct identity *identity, int64_t person,
                            int64_t now_ms, int64_t *id, struct error *err)
{
        int rc = sql_insert(tx, id, err,
                            "INSERT INTO identities(platform, user_id, person, home,"
                            " first_seen_ms, last_seen_ms)"
                            " VALUES(?1, ?2, ?3, ?3, ?4, ?4)",
                            SQL_TEXT(identity->platform), SQL_TEXT(identity->user), SQL_INT(person),
                            SQL_INT(now_ms));

        return rc < 0 ? -1 : 0;
}

int person_row_update_identity(struct store_tx *tx, int64_t id, const struct person_sighting *s,
                               struct error *err)
{
        int rc = sql_exec(tx, err,
                          "UPDATE identities"
                          " SET name = COALESCE(?2, name), username = COALESCE(?3, username),"
                          " adapter = ?4, last_seen_ms = ?5"
                          " WHERE id = ?1",
                          SQL_INT(id), SQL_TEXT(s->name), SQL_TEXT(s->username),
                          SQL_TEXT(s->adapter), SQL_INT(s->now_ms));

        if (rc < 0 || !s->dm_channel)
                return rc;
        return sql_exec(tx, err,
                        "INSERT INTO identity_chats(identity, adapter, channel, seen_ms)"
                        " VALUES(?1, ?2, ?3, ?4)"
                        " ON CONFLICT(identity, adapter) DO UPDATE"
                        " SET channel = ?3, seen_ms = ?4",
                        SQL_INT(id), SQL_TEXT(s->adapter), SQL_TEXT(s->dm_channel),
                        SQL_INT(s->now_ms));
}

int64_t person_row_count_identities(struct store_tx *tx, int64_t person, struct error *err)
{
        int64_t n;
        int rc = sql_number(tx, 0, &n, err, "SELECT count(*) FROM identities WHERE person = ?1",
                            SQL_INT(person));

        return rc < 0 ? -1 : n;
}

int person_row_move_identities(struct store_tx *tx, int64_t from, int64_t to, struct error *err)
{
        return sql_exec(tx, err, "UPDATE identities SET person = ?2 WHERE person = ?1",
                        SQL_INT(from), SQL_INT(to));
}

int person_row_return_identities(struct store_tx *tx, int64_t home, int64_t from, struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE identities SET person = ?1 WHERE home = ?1 AND person = ?2",
                        SQL_INT(home), SQL_INT(from));
}

int person_row_rehome_identity(struct store_tx *tx, int64_t id, int64_t person, struct error *err)
{
        return sql_exec(tx, err, "UPDATE identities SET person = ?2, home = ?2 WHERE id = ?1",
                        SQL_INT(id), SQL_INT(person));
}

/* ---- lists ---- */

struct store_stmt *person_row_list_identities(struct store_tx *tx, int64_t person, int64_t other)
{
        return sql_query(tx,
                         "SELECT platform, user_id, person FROM identities"
                         " WHERE person IN (?1, ?2)"
                         " ORDER BY person, id",
                         SQL_INT(person), SQL_INT(other));
}

struct store_stmt *person_row_list_all_identities(struct store_tx *tx)
{
        return sql_query(tx, "SELECT platform, user_id, person FROM identities"
                             " ORDER BY person, id");
}

int person_row_next_identity(struct store_stmt *s, struct identity *out, int64_t *person,
                             struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_TEXT(&out->platform), OUT_TEXT(&out->user), OUT_INT(person));
        return rc;
}

struct store_stmt *person_row_list_aliases(struct store_tx *tx, int64_t person, int64_t other)
{
        return sql_query(tx,
                         "SELECT id, merged_into FROM persons"
                         " WHERE id IN (?1, ?2) OR merged_into IN (?1, ?2)",
                         SQL_INT(person), SQL_INT(other));
}

struct store_stmt *person_row_list_all_aliases(struct store_tx *tx)
{
        return sql_query(tx, "SELECT id, merged_into FROM persons WHERE merged_into IS NOT NULL");
}

int person_row_next_alias(struct store_stmt *s, int64_t *person, int64_t *into, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_INT(person), OUT_INT(into));
        return rc;
}
