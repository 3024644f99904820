#include "rows/calendar_row.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/sql.h"

static const char *const state_names[] = {
        [CALENDAR_PLANNED] = "planned",
        [CALENDAR_CANCELLED] = "cancelled",
};

static const char *const answer_names[] = {
        [ANSWER_INVITED] = "invited", [ANSWER_YES] = "yes",         [ANSWER_NO] = "no",
        [ANSWER_MAYBE] = "maybe",     [ANSWER_WAITING] = "waiting",
};

const char *calendar_state_name(enum calendar_state state)
{
        return state_names[state];
}

bool calendar_state_parse(const char *name, enum calendar_state *out)
{
        for (size_t i = 0; i < COUNT(state_names); i++) {
                if (strcmp(state_names[i], name) == 0) {
                        *out = (enum calendar_state)i;
                        return true;
                }
        }
        return false;
}

const char *calendar_answer_name(enum calendar_answer answer)
{
        return answer_names[answer];
}

bool calendar_answer_parse(const char *name, enum calendar_answer *out)
{
        for (size_t i = 0; i < COUNT(answer_names); i++) {
                if (strcmp(answer_names[i], name) == 0) {
                        *out = (enum calendar_answer)i;
                        return true;
                }
        }
        return false;
}

/* ---- writing ---- */

int calendar_row_insert(struct store_tx *tx, const struct calendar_event_row *row, int64_t *id,
                        struct error *err)
{
        return sql_insert(
                tx, id, err,
                "INSERT INTO calendar_events(uid, request_key, title, description, place,"
                " starts_ms, ends_ms, timezone, capacity, state, adapter, channel, thread,"
                " reminder_ms, organizer, organizer_name, trace, version, sequence, created_ms,"
                " updated_ms, announced, guild, platform_event, synced, platform)"
                " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,"
                " ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26) ON CONFLICT DO NOTHING",
                SQL_TEXT(row->uid), SQL_TEXT(row->request_key), SQL_TEXT(row->title),
                SQL_TEXT(row->description), SQL_TEXT(row->place), SQL_INT(row->starts_ms),
                SQL_INT(row->ends_ms), SQL_TEXT(row->timezone), SQL_INT(row->capacity),
                SQL_TEXT(calendar_state_name(row->state)), SQL_TEXT(row->adapter),
                SQL_TEXT(row->channel), SQL_TEXT(row->thread), SQL_INT(row->reminder_ms),
                SQL_TEXT(row->organizer), SQL_TEXT(row->organizer_name), SQL_TEXT(row->trace),
                SQL_INT(row->version), SQL_INT(row->sequence), SQL_INT(row->created_ms),
                SQL_INT(row->updated_ms), SQL_INT(row->announced), SQL_TEXT(row->guild),
                SQL_TEXT(row->platform_event), SQL_INT(row->synced), SQL_TEXT(row->platform));
}

int calendar_row_update(struct store_tx *tx, const struct calendar_event_row *row,
                        struct error *err)
{
        return (int)sql_update(
                tx, err,
                "UPDATE calendar_events SET title = ?2, description = ?3, place = ?4,"
                " starts_ms = ?5, ends_ms = ?6, timezone = ?7, capacity = ?8, state = ?9,"
                " adapter = ?10, channel = ?11, thread = ?12, reminder_ms = ?13,"
                " puts = CASE WHEN sequence < ?14 THEN 0 ELSE puts END,"
                " sequence = ?14, updated_ms = ?15, version = version + 1"
                " WHERE id = ?1 AND version = ?16",
                SQL_INT(row->id), SQL_TEXT(row->title), SQL_TEXT(row->description),
                SQL_TEXT(row->place), SQL_INT(row->starts_ms), SQL_INT(row->ends_ms),
                SQL_TEXT(row->timezone), SQL_INT(row->capacity),
                SQL_TEXT(calendar_state_name(row->state)), SQL_TEXT(row->adapter),
                SQL_TEXT(row->channel), SQL_TEXT(row->thread), SQL_INT(row->reminder_ms),
                SQL_INT(row->sequence), SQL_INT(row->updated_ms), SQL_INT(row->version));
}

int calendar_row_touch(struct store_tx *tx, int64_t id, int64_t now_ms, struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE calendar_events SET version = version + 1, updated_ms = ?2"
                        " WHERE id = ?1",
                        SQL_INT(id), SQL_INT(now_ms));
}

int calendar_row_lock(struct store_tx *tx, int64_t id, struct error *err)
{
        return (int)sql_update(
                tx, err, "UPDATE calendar_events SET version = version WHERE id = ?1", SQL_INT(id));
}

int calendar_row_set_announced(struct store_tx *tx, int64_t id, int64_t delivery, int64_t version,
                               int64_t sequence, struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE calendar_events SET announcement = ?2, announced = ?3,"
                        " announced_sequence = ?4,"
                        " message = CASE WHEN announcement = ?2 THEN message ELSE NULL END"
                        " WHERE id = ?1",
                        SQL_INT(id), SQL_REF(delivery), SQL_INT(version), SQL_INT(sequence));
}

int calendar_row_set_message(struct store_tx *tx, int64_t id, int64_t delivery, const char *message,
                             struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE calendar_events SET message = ?3,"
                        " announcement = CASE WHEN CAST(?3 AS TEXT) IS NULL THEN NULL"
                        " ELSE announcement END"
                        " WHERE id = ?1 AND announcement = ?2",
                        SQL_INT(id), SQL_INT(delivery), SQL_TEXT(message));
}

int calendar_row_set_reminder(struct store_tx *tx, int64_t id, int64_t schedule, struct error *err)
{
        return sql_exec(tx, err, "UPDATE calendar_events SET reminder = ?2 WHERE id = ?1",
                        SQL_INT(id), SQL_REF(schedule));
}

int calendar_row_set_put(struct store_tx *tx, int64_t id, int64_t delivery, int64_t sequence,
                         int64_t puts, struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE calendar_events SET put = ?2, synced = ?3, puts = ?4"
                        " WHERE id = ?1",
                        SQL_INT(id), SQL_REF(delivery), SQL_INT(sequence), SQL_INT(puts));
}

int calendar_row_set_platform(struct store_tx *tx, int64_t id, const char *platform_event,
                              struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE calendar_events SET platform_event = ?2, put = NULL"
                        " WHERE id = ?1",
                        SQL_INT(id), SQL_TEXT(platform_event));
}

int64_t calendar_row_prune(struct store_tx *tx, int64_t ended_before_ms, int64_t limit,
                           struct error *err)
{
        if (sql_exec(tx, err,
                     "DELETE FROM calendar_members WHERE event IN"
                     " (SELECT id FROM calendar_events WHERE ends_ms < ?1 ORDER BY ends_ms, id"
                     " LIMIT ?2)",
                     SQL_INT(ended_before_ms), SQL_INT(limit)) < 0)
                return -1;
        return sql_update(tx, err,
                          "DELETE FROM calendar_events WHERE id IN"
                          " (SELECT id FROM calendar_events WHERE ends_ms < ?1"
                          " ORDER BY ends_ms, id LIMIT ?2)",
                          SQL_INT(ended_before_ms), SQL_INT(limit));
}

/* ---- reading ---- */

#define SELECT_EVENTS                                                                           \
        "SELECT id, uid, request_key, title, description, place, starts_ms, ends_ms, timezone," \
        " capacity, state, adapter, channel, thread, reminder_ms, organizer, organizer_name,"   \
        " trace, version, sequence, created_ms, updated_ms, announcement, message, announced,"  \
        " announced_sequence, reminder, guild, platform_event, put, puts, synced, platform"     \
        " FROM calendar_events"

int calendar_row_next(struct store_stmt *s, struct calendar_event_row *out, struct error *err)
{
        const char *state;
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        *out = (struct calendar_event_row){ 0 };
        sql_read(s, OUT_INT(&out->id), OUT_TEXT(&out->uid), OUT_TEXT(&out->request_key),
                 OUT_TEXT(&out->title), OUT_TEXT(&out->description), OUT_TEXT(&out->place),
                 OUT_INT(&out->starts_ms), OUT_INT(&out->ends_ms), OUT_TEXT(&out->timezone),
                 OUT_INT(&out->capacity), OUT_TEXT(&state), OUT_TEXT(&out->adapter),
                 OUT_TEXT(&out->channel), OUT_TEXT(&out->thread), OUT_INT(&out->reminder_ms),
                 OUT_TEXT(&out->organizer), OUT_TEXT(&out->organizer_name), OUT_TEXT(&out->trace),
                 OUT_INT(&out->version), OUT_INT(&out->sequence), OUT_INT(&out->created_ms),
                 OUT_INT(&out->updated_ms), OUT_INT(&out->announcement), OUT_TEXT(&out->message),
                 OUT_INT(&out->announced), OUT_INT(&out->announced_sequence),
                 OUT_INT(&out->reminder), OUT_TEXT(&out->guild), OUT_TEXT(&out->platform_event),
                 OUT_INT(&out->put), OUT_INT(&out->puts), OUT_INT(&out->synced),
                 OUT_TEXT(&out->platform));
        if (!calendar_state_parse(state, &out->state))
                return error_set(err, ERR_CORRUPT, "calendar event %lld has state '%s'",
                                 (long long)out->id, state);
        return 1;
}

struct calendar_event_row *calendar_row_dup(const struct calendar_event_row *row)
{
        static const size_t strings[] = {
                offsetof(struct calendar_event_row, uid),
                offsetof(struct calendar_event_row, request_key),
                offsetof(struct calendar_event_row, title),
                offsetof(struct calendar_event_row, description),
                offsetof(struct calendar_event_row, place),
                offsetof(struct calendar_event_row, timezone),
                offsetof(struct calendar_event_row, adapter),
                offsetof(struct calendar_event_row, platform),
                offsetof(struct calendar_event_row, channel),
                offsetof(struct calendar_event_row, thread),
                offsetof(struct calendar_event_row, organizer),
                offsetof(struct calendar_event_row, organizer_name),
                offsetof(struct calendar_event_row, trace),
                offsetof(struct calendar_event_row, message),
                offsetof(struct calendar_event_row, guild),
                offsetof(struct calendar_event_row, platform_event),
        };

        return mem_dup_struct(row, sizeof(*row), strings, COUNT(strings));
}

static int take_first(struct store_stmt *s, struct calendar_event_row **out, struct error *err)
{
        struct calendar_event_row row;
        int rc = calendar_row_next(s, &row, err);

        *out = rc == 1 ? calendar_row_dup(&row) : NULL;
        sql_end(s);
        return rc;
}

int calendar_row_get(struct store_tx *tx, int64_t id, struct calendar_event_row **out,
                     struct error *err)
{
        return take_first(sql_query(tx, SELECT_EVENTS " WHERE id = ?1", SQL_INT(id)), out, err);
}

int calendar_row_get_request(struct store_tx *tx, const char *request_key,
                             struct calendar_event_row **out, struct error *err)
{
        return take_first(
                sql_query(tx, SELECT_EVENTS " WHERE request_key = ?1", SQL_TEXT(request_key)), out,
                err);
}

int calendar_row_get_platform(struct store_tx *tx, const char *adapter, const char *platform_event,
                              struct calendar_event_row **out, struct error *err)
{
        return take_first(sql_query(tx, SELECT_EVENTS " WHERE adapter = ?1 AND platform_event = ?2",
                                    SQL_TEXT(adapter), SQL_TEXT(platform_event)),
                          out, err);
}

int calendar_row_get_message(struct store_tx *tx, const char *adapter, const char *channel,
                             const char *message, struct calendar_event_row **out,
                             struct error *err)
{
        return take_first(sql_query(tx,
                                    SELECT_EVENTS " WHERE adapter = ?1 AND message = ?3"
                                                  " AND (channel = ?2 OR thread = ?2)",
                                    SQL_TEXT(adapter), SQL_TEXT(channel), SQL_TEXT(message)),
                          out, err);
}

struct store_stmt *calendar_row_list(struct store_tx *tx, const struct calendar_filter *f)
{
        return sql_query(tx,
                         SELECT_EVENTS
                         " WHERE starts_ms >= ?1 AND (starts_ms > ?1 OR id > ?2) AND starts_ms < ?3"
                         " AND ends_ms > ?4 AND " ROWS_IF_TEXT("adapter", "?5") //
                         " AND " ROWS_IF_TEXT("channel", "?6")                  //
                         " AND " ROWS_IF_TEXT("state", "?7")                    //
                         " AND " ROWS_IF_ADAPTERS("adapter", "?8")              //
                         " ORDER BY starts_ms, id LIMIT ?9",
                         SQL_INT(f->after_ms), SQL_INT(f->after_id),
                         SQL_INT(f->starts_before_ms > 0 ? f->starts_before_ms : INT64_MAX),
                         SQL_INT(f->ends_after_ms), SQL_TEXT(f->adapter), SQL_TEXT(f->channel),
                         SQL_TEXT(f->state ? calendar_state_name(*f->state) : NULL),
                         SQL_TEXT(f->adapters), SQL_INT(f->limit));
}

struct store_stmt *calendar_row_list_behind(struct store_tx *tx, int64_t after_id, int64_t limit)
{
        return sql_query(tx,
                         SELECT_EVENTS
                         " WHERE ((channel IS NOT NULL AND announced < version)"
                         " OR (announcement IS NOT NULL AND message IS NULL)"
                         " OR (guild IS NOT NULL AND synced < sequence) OR put IS NOT NULL)"
                         " AND id > ?1 ORDER BY id LIMIT ?2",
                         SQL_INT(after_id), SQL_INT(limit));
}

int64_t calendar_row_count_open(struct store_tx *tx, int64_t now_ms, struct error *err)
{
        int64_t n;
        int rc = sql_number(tx, 0, &n, err,
                            "SELECT count(*) FROM calendar_events WHERE ends_ms > ?1"
                            " AND state = 'planned'",
                            SQL_INT(now_ms));

        return rc < 0 ? -1 : n;
}

/* ---- members ---- */

int calendar_member_row_insert(struct store_tx *tx, const struct calendar_member_row *row,
                               int64_t *id, struct error *err)
{
        int rc =
                sql_insert(tx, id, err,
                           "INSERT INTO calendar_members(event, user_id, external_source,"
                           " external_id, display_name, status, queue_no, since_ms)"
                           " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                           SQL_INT(row->event), SQL_REF(row->person),
                           SQL_TEXT(row->external_source), SQL_TEXT(row->external_id),
                           SQL_TEXT(row->display_name), SQL_TEXT(calendar_answer_name(row->answer)),
                           SQL_REF(row->queue_no), SQL_INT(row->since_ms));

        return rc < 0 ? -1 : 0;
}

int calendar_member_row_update(struct store_tx *tx, const struct calendar_member_row *row,
                               struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE calendar_members SET user_id = ?2, external_source = ?3,"
                               " external_id = ?4, display_name = ?5, status = ?6,"
                               " queue_no = ?7, since_ms = ?8, reminder = ?9 WHERE id = ?1",
                               SQL_INT(row->id), SQL_REF(row->person),
                               SQL_TEXT(row->external_source), SQL_TEXT(row->external_id),
                               SQL_TEXT(row->display_name),
                               SQL_TEXT(calendar_answer_name(row->answer)), SQL_REF(row->queue_no),
                               SQL_INT(row->since_ms), SQL_REF(row->reminder));
}

int calendar_member_row_set_interest(struct store_tx *tx, int64_t id, const char *user,
                                     struct error *err)
{
        return sql_exec(tx, err, "UPDATE calendar_members SET interest = ?2 WHERE id = ?1",
                        SQL_INT(id), SQL_TEXT(user));
}

int calendar_member_row_delete(struct store_tx *tx, int64_t id, struct error *err)
{
        return (int)sql_update(tx, err, "DELETE FROM calendar_members WHERE id = ?1", SQL_INT(id));
}

#define SELECT_MEMBERS                                                                   \
        "SELECT id, event, user_id, external_source, external_id, display_name, status," \
        " queue_no, since_ms, reminder, interest FROM calendar_members"

int calendar_member_row_next(struct store_stmt *s, struct calendar_member_row *out,
                             struct error *err)
{
        const char *answer;
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        *out = (struct calendar_member_row){ 0 };
        sql_read(s, OUT_INT(&out->id), OUT_INT(&out->event), OUT_INT(&out->person),
                 OUT_TEXT(&out->external_source), OUT_TEXT(&out->external_id),
                 OUT_TEXT(&out->display_name), OUT_TEXT(&answer), OUT_INT(&out->queue_no),
                 OUT_INT(&out->since_ms), OUT_INT(&out->reminder), OUT_TEXT(&out->interest));
        if (!calendar_answer_parse(answer, &out->answer))
                return error_set(err, ERR_CORRUPT, "member %lld has status '%s'",
                                 (long long)out->id, answer);
        return 1;
}

struct calendar_member_row *calendar_member_row_dup(const struct calendar_member_row *row)
{
        static const size_t strings[] = {
                offsetof(struct calendar_member_row, external_source),
                offsetof(struct calendar_member_row, external_id),
                offsetof(struct calendar_member_row, display_name),
                offsetof(struct calendar_member_row, interest),
        };

        return mem_dup_struct(row, sizeof(*row), strings, COUNT(strings));
}

static int take_member(struct store_stmt *s, struct calendar_member_row **out, struct error *err)
{
        struct calendar_member_row row;
        int rc = calendar_member_row_next(s, &row, err);

        *out = rc == 1 ? calendar_member_row_dup(&row) : NULL;
        sql_end(s);
        return rc;
}

int calendar_member_row_get(struct store_tx *tx, int64_t id, struct calendar_member_row **out,
                            struct error *err)
{
        return take_member(sql_query(tx, SELECT_MEMBERS " WHERE id = ?1", SQL_INT(id)), out, err);
}

int calendar_member_row_find(struct store_tx *tx, int64_t event, int64_t person, const char *source,
                             const char *external_id, struct calendar_member_row **out,
                             struct error *err)
{
        return take_member(
                sql_query(tx,
                          SELECT_MEMBERS " WHERE event = ?1 AND (user_id = ?2"
                                         " OR (external_source = ?3 AND external_id = ?4))"
                                         " ORDER BY id LIMIT 1",
                          SQL_INT(event), SQL_REF(person), SQL_TEXT(source), SQL_TEXT(external_id)),
                out, err);
}

int calendar_member_row_find_name(struct store_tx *tx, int64_t event, const char *name,
                                  struct calendar_member_row **out, struct error *err)
{
        struct store_stmt *s = sql_query(tx,
                                         SELECT_MEMBERS " WHERE event = ?1"
                                                        " AND lower(display_name) = lower(?2)"
                                                        " LIMIT 2",
                                         SQL_INT(event), SQL_TEXT(name));
        struct calendar_member_row row;
        int rc = calendar_member_row_next(s, &row, err);

        *out = rc == 1 ? calendar_member_row_dup(&row) : NULL;
        if (rc == 1 && (rc = calendar_member_row_next(s, &row, err)) == 0)
                return 1;
        sql_end(s);
        free(*out);
        *out = NULL;
        return rc < 0 ? -1 : 0;
}

int calendar_member_row_first_waiting(struct store_tx *tx, int64_t event,
                                      struct calendar_member_row **out, struct error *err)
{
        return take_member(sql_query(tx,
                                     SELECT_MEMBERS " WHERE event = ?1 AND queue_no IS NOT NULL"
                                                    " ORDER BY queue_no LIMIT 1",
                                     SQL_INT(event)),
                           out, err);
}

int64_t calendar_member_row_count(struct store_tx *tx, int64_t event, enum calendar_answer answer,
                                  struct error *err)
{
        int64_t n;
        int rc = sql_number(tx, 0, &n, err,
                            "SELECT count(*) FROM calendar_members WHERE event = ?1"
                            " AND status = ?2",
                            SQL_INT(event), SQL_TEXT(calendar_answer_name(answer)));

        return rc < 0 ? -1 : n;
}

int64_t calendar_member_row_count_all(struct store_tx *tx, int64_t event, struct error *err)
{
        int64_t n;
        int rc =
                sql_number(tx, 0, &n, err, "SELECT count(*) FROM calendar_members WHERE event = ?1",
                           SQL_INT(event));

        return rc < 0 ? -1 : n;
}

int64_t calendar_member_row_next_queue_no(struct store_tx *tx, int64_t event, struct error *err)
{
        int64_t n;
        int rc = sql_number(tx, 1, &n, err,
                            "SELECT max(queue_no) + 1 FROM calendar_members WHERE event = ?1",
                            SQL_INT(event));

        return rc < 0 ? -1 : n;
}

int64_t calendar_member_row_count_before(struct store_tx *tx, int64_t event, int64_t queue_no,
                                         struct error *err)
{
        int64_t n;
        int rc = sql_number(tx, 0, &n, err,
                            "SELECT count(*) FROM calendar_members WHERE event = ?1"
                            " AND queue_no < ?2",
                            SQL_INT(event), SQL_INT(queue_no));

        return rc < 0 ? -1 : n;
}

struct store_stmt *calendar_member_row_list(struct store_tx *tx, int64_t event)
{
        return sql_query(tx,
                         SELECT_MEMBERS " WHERE event = ?1"
                                        " ORDER BY COALESCE(queue_no, 0), since_ms, id",
                         SQL_INT(event));
}
