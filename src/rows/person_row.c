#include "rows/person_row.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
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
        return sql_first(
                sql_query(tx, "SELECT merged_into FROM persons WHERE id = ?1", SQL_INT(person)),
                err, OUT_INT(into));
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
        return sql_first(sql_query(tx,
                                   "SELECT id, person, home FROM identities"
                                   " WHERE platform = ?1 AND user_id = ?2",
                                   SQL_TEXT(identity->platform), SQL_TEXT(identity->user)),
                         err, OUT_INT(&out->id), OUT_INT(&out->person), OUT_INT(&out->home));
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

struct store_stmt *person_row_list_met(struct store_tx *tx, const char *platform,
                                       const char *adapter, int64_t limit)
{
        return sql_query(tx,
                         "SELECT platform, user_id, person FROM identities"
                         " WHERE platform = ?1 AND adapter = ?2 AND NOT EXISTS"
                         " (SELECT 1 FROM identity_chats"
                         " WHERE identity = identities.id AND identity_chats.adapter = ?2)"
                         " ORDER BY last_seen_ms DESC"
                         " LIMIT ?3",
                         SQL_TEXT(platform), SQL_TEXT(adapter), SQL_INT(limit));
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

/* ---- details for the API ---- */

int person_row_get(struct store_tx *tx, int64_t person, struct person_row *out, struct error *err)
{
        return sql_first(sql_query(tx,
                                   "SELECT COALESCE(p.name,"
                                   " (SELECT i.name FROM identities i"
                                   " WHERE i.person = p.id AND i.name IS NOT NULL"
                                   " ORDER BY i.last_seen_ms DESC LIMIT 1)),"
                                   " p.created_ms, p.updated_ms"
                                   " FROM persons p WHERE p.id = ?1",
                                   SQL_INT(person)),
                         err, OUT_DUP(&out->name), OUT_INT(&out->created_ms),
                         OUT_INT(&out->updated_ms));
}

int person_row_set_name(struct store_tx *tx, int64_t person, const char *name, int64_t now_ms,
                        struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE persons SET name = ?2, updated_ms = ?3 WHERE id = ?1",
                               SQL_INT(person), SQL_TEXT(name), SQL_INT(now_ms));
}

/* A LIKE pattern "contains text", escaped; yours to free. */
static char *anywhere(const char *text)
{
        struct buf b;

        buf_init(&b, 0);
        buf_addch(&b, '%');
        for (; *text; text++) {
                if (strchr("%_\\", *text))
                        buf_addch(&b, '\\');
                buf_addch(&b, *text);
        }
        buf_addch(&b, '%');
        return buf_take(&b);
}

int person_row_find(struct store_tx *tx, const char *search, int64_t before, int64_t *ids,
                    size_t max, size_t *count, struct error *err)
{
        char *like = anywhere(search ? search : "");
        struct store_stmt *s = search ? sql_query(tx,
                                                  "SELECT p.id FROM persons p"
                                                  " WHERE p.merged_into IS NULL AND p.id < ?1"
                                                  " AND (lower(p.name) LIKE lower(?3) ESCAPE '\\'"
                                                  " OR EXISTS(SELECT 1 FROM identities i"
                                                  " WHERE i.person = p.id"
                                                  " AND (lower(i.name) LIKE lower(?3) ESCAPE '\\'"
                                                  " OR lower(i.username) LIKE lower(?3) ESCAPE '\\'"
                                                  " OR i.user_id = ?4)))"
                                                  " ORDER BY p.id DESC LIMIT ?2",
                                                  SQL_INT(before), SQL_INT((int64_t)max),
                                                  SQL_TEXT(like), SQL_TEXT(search))
                                      : sql_query(tx,
                                                  "SELECT p.id FROM persons p"
                                                  " WHERE p.merged_into IS NULL AND p.id < ?1"
                                                  " ORDER BY p.id DESC LIMIT ?2",
                                                  SQL_INT(before), SQL_INT((int64_t)max));
        int rc;

        *count = 0;
        while ((rc = sql_next(s, err)) == 1)
                sql_read(s, OUT_INT(&ids[(*count)++]));
        free(like);
        return rc;
}

struct store_stmt *person_row_list_merged(struct store_tx *tx, int64_t person)
{
        return sql_query(tx, "SELECT id FROM persons WHERE merged_into = ?1 ORDER BY id",
                         SQL_INT(person));
}

int person_row_next_merged(struct store_stmt *s, int64_t *alias, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_INT(alias));
        return rc;
}

struct store_stmt *person_row_list_details(struct store_tx *tx, int64_t person)
{
        return sql_query(tx,
                         "SELECT id, home, platform, user_id, username, name, adapter,"
                         " first_seen_ms, last_seen_ms"
                         " FROM identities WHERE person = ?1 ORDER BY id",
                         SQL_INT(person));
}

struct store_stmt *person_row_list_named(struct store_tx *tx, const char *name, bool similar)
{
        if (!similar)
                return sql_query(tx,
                                 "SELECT platform, user_id, username, name, person"
                                 " FROM identities WHERE lower(username) = lower(?1)"
                                 " OR lower(name) = lower(?1) OR person IN"
                                 " (SELECT id FROM persons WHERE lower(name) = lower(?1))"
                                 " ORDER BY person DESC, last_seen_ms DESC LIMIT 20",
                                 SQL_TEXT(name));
        /* a '_' in the name matches more, which does no harm in a suggestion */
        return sql_query(tx,
                         "SELECT platform, user_id, username, name, person FROM identities"
                         " WHERE lower(username) LIKE '%' || lower(?1) || '%'"
                         " OR lower(name) LIKE '%' || lower(?1) || '%' OR person IN"
                         " (SELECT id FROM persons WHERE lower(name) LIKE '%' || lower(?1) || '%')"
                         " ORDER BY person DESC, last_seen_ms DESC LIMIT 20",
                         SQL_TEXT(name));
}

int person_row_next_named(struct store_stmt *s, struct identity_named *n, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_TEXT(&n->identity.platform), OUT_TEXT(&n->identity.user),
                         OUT_TEXT(&n->username), OUT_TEXT(&n->name), OUT_INT(&n->person));
        return rc;
}

int person_row_next_details(struct store_stmt *s, struct identity_details *d, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_INT(&d->id), OUT_INT(&d->home), OUT_TEXT(&d->identity.platform),
                         OUT_TEXT(&d->identity.user), OUT_TEXT(&d->username), OUT_TEXT(&d->name),
                         OUT_TEXT(&d->adapter), OUT_INT(&d->first_seen_ms),
                         OUT_INT(&d->last_seen_ms));
        return rc;
}

struct store_stmt *person_row_list_chats(struct store_tx *tx, int64_t identity)
{
        return sql_query(tx,
                         "SELECT adapter, channel FROM identity_chats"
                         " WHERE identity = ?1 ORDER BY seen_ms DESC",
                         SQL_INT(identity));
}

int person_row_next_chat(struct store_stmt *s, const char **adapter, const char **channel,
                         struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_TEXT(adapter), OUT_TEXT(channel));
        return rc;
}

int person_row_is_direct(struct store_tx *tx, const char *adapter, const char *channel,
                         struct error *err)
{
        int64_t found;
        int rc = sql_number(tx, 0, &found, err,
                            "SELECT 1 FROM identity_chats WHERE adapter = ?1 AND channel = ?2"
                            " LIMIT 1",
                            SQL_TEXT(adapter), SQL_TEXT(channel));

        return rc < 0 ? -1 : (int)found;
}

int person_row_get_chat(struct store_tx *tx, int64_t person, const char *adapter, char **channel,
                        struct error *err)
{
        return sql_first(sql_query(tx,
                                   "SELECT c.channel FROM identities i"
                                   " JOIN identity_chats c ON c.identity = i.id"
                                   " WHERE i.person = ?1 AND c.adapter = ?2"
                                   " ORDER BY c.seen_ms DESC LIMIT 1",
                                   SQL_INT(person), SQL_TEXT(adapter)),
                         err, OUT_DUP(channel));
}

struct store_stmt *person_row_list_addresses(struct store_tx *tx, int64_t person)
{
        return sql_query(tx,
                         "SELECT c.adapter, c.channel, 0 AS by_user, c.seen_ms AS seen"
                         " FROM identities i JOIN identity_chats c ON c.identity = i.id"
                         " WHERE i.person = ?1"
                         " UNION ALL"
                         " SELECT i.adapter, i.user_id, 1, i.last_seen_ms FROM identities i"
                         " WHERE i.person = ?1 AND i.adapter IS NOT NULL AND NOT EXISTS"
                         " (SELECT 1 FROM identity_chats c"
                         " WHERE c.identity = i.id AND c.adapter = i.adapter)"
                         " ORDER BY by_user, seen DESC, adapter",
                         SQL_INT(person));
}

int person_row_next_address(struct store_stmt *s, struct person_address *out, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_TEXT(&out->adapter), OUT_TEXT(&out->channel),
                         OUT_BOOL(&out->by_user));
        return rc;
}

/* ---- how a person wants to be reached ---- */

int person_row_get_reach(struct store_tx *tx, int64_t person, struct person_reach **out,
                         struct error *err)
{
        static const size_t texts[] = { offsetof(struct person_reach, timezone),
                                        offsetof(struct person_reach, quiet_hours),
                                        offsetof(struct person_reach, reach_at) };
        struct store_stmt *s = sql_query(tx,
                                         "SELECT timezone, quiet_hours, reach_at,"
                                         " coalesce(daily_cap, -1) FROM persons WHERE id = ?1",
                                         SQL_INT(person));
        struct person_reach r;
        int rc = sql_next(s, err);

        *out = NULL;
        if (rc == 1) {
                sql_read(s, OUT_TEXT(&r.timezone), OUT_TEXT(&r.quiet_hours), OUT_TEXT(&r.reach_at),
                         OUT_INT(&r.daily_cap));
                *out = mem_dup_struct(&r, sizeof(r), texts, COUNT(texts));
        }
        sql_end(s);
        return rc;
}

int person_row_set_reach(struct store_tx *tx, int64_t person, const struct person_reach *reach,
                         int64_t now_ms, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE persons SET timezone = ?2, quiet_hours = ?3, reach_at = ?4,"
                               " daily_cap = ?5, updated_ms = ?6 WHERE id = ?1",
                               SQL_INT(person), SQL_TEXT(reach->timezone),
                               SQL_TEXT(reach->quiet_hours), SQL_TEXT(reach->reach_at),
                               reach->daily_cap < 0 ? SQL_NULL : SQL_INT(reach->daily_cap),
                               SQL_INT(now_ms));
}

int person_row_get_notify(struct store_tx *tx, int64_t person, char **out, struct error *err)
{
        *out = NULL;
        return sql_first(
                sql_query(tx, "SELECT session_notify FROM persons WHERE id = ?1", SQL_INT(person)),
                err, OUT_DUP(out));
}

int person_row_set_notify(struct store_tx *tx, int64_t person, const char *notify, int64_t now_ms,
                          struct error *err)
{
        return (int)sql_update(
                tx, err, "UPDATE persons SET session_notify = ?2, updated_ms = ?3 WHERE id = ?1",
                SQL_INT(person), SQL_TEXT(notify), SQL_INT(now_ms));
}

int person_row_count_notice(struct store_tx *tx, int64_t person, int64_t day, int64_t cap,
                            struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE persons SET notice_day = ?2, notice_count ="
                               " CASE WHEN notice_day = ?2 THEN notice_count + 1 ELSE 1 END"
                               " WHERE id = ?1 AND CAST(?3 AS BIGINT) >"
                               " CASE WHEN notice_day = ?2 THEN notice_count ELSE 0 END",
                               SQL_INT(person), SQL_INT(day), SQL_INT(cap));
}
