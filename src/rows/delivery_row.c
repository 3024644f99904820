#include "rows/delivery_row.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/sql.h"

static const char *const kind_names[] = {
        [DELIVER_SEND] = "send",
        [DELIVER_EDIT] = "edit",
        [DELIVER_DELETE] = "delete",
        [DELIVER_REACT] = "react",
        [DELIVER_UNREACT] = "unreact",
        [DELIVER_THREAD] = "thread",
        [DELIVER_TYPE] = "type",
        [DELIVER_UPLOAD] = "upload",
        [DELIVER_CANCEL_DEFERRED] = "cancel_deferred",
        [DELIVER_CALENDAR] = "calendar",
        [DELIVER_CHANGE_THREAD] = "change_thread",
};

static const char *const state_names[] = {
        [DELIVERY_QUEUED] = "queued",
        [DELIVERY_SENDING] = "sending",
        [DELIVERY_SENT] = "sent",
        [DELIVERY_FAILED] = "failed",
        [DELIVERY_UNKNOWN] = "unknown",
        [DELIVERY_EXPIRED] = "expired",
        [DELIVERY_SUPERSEDED] = "superseded",
};

const char *delivery_kind_name(enum delivery_kind kind)
{
        return kind_names[kind];
}

const char *delivery_state_name(enum delivery_state state)
{
        return state_names[state];
}

bool delivery_kind_parse(const char *name, enum delivery_kind *out)
{
        for (size_t i = 0; i < COUNT(kind_names); i++) {
                if (strcmp(kind_names[i], name) == 0) {
                        *out = (enum delivery_kind)i;
                        return true;
                }
        }
        return false;
}

bool delivery_state_parse(const char *name, enum delivery_state *out)
{
        for (size_t i = 0; i < COUNT(state_names); i++) {
                if (strcmp(state_names[i], name) == 0) {
                        *out = (enum delivery_state)i;
                        return true;
                }
        }
        return false;
}

/* ---- writing ---- */

int delivery_row_insert(struct store_tx *tx, const struct delivery_row *row, struct error *err)
{
        return sql_exec(tx, err,
                        "INSERT INTO deliveries("
                        " id, turn, adapter, channel, thread, kind, class, payload, state,"
                        " attempt, fence, owner, lease_ms, due_ms, expires_ms, created_ms,"
                        " ended_ms, platform_id, trace, request_key, request_hash, edits,"
                        " read_from, unsampled, read_seq)"
                        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,"
                        " ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)",
                        SQL_INT(row->id), SQL_REF(row->turn), SQL_TEXT(row->adapter),
                        SQL_TEXT(row->channel), SQL_TEXT(row->thread),
                        SQL_TEXT(delivery_kind_name(row->kind)), SQL_INT(row->class),
                        SQL_TEXT(row->payload), SQL_TEXT(delivery_state_name(row->state)),
                        SQL_INT(row->attempt), SQL_INT(row->fence), SQL_TEXT(row->owner),
                        SQL_INT(row->lease_ms), SQL_INT(row->due_ms), SQL_INT(row->expires_ms),
                        SQL_INT(row->created_ms), SQL_REF(row->ended_ms),
                        SQL_TEXT(row->platform_id), SQL_TEXT(row->trace),
                        SQL_TEXT(row->request_key), SQL_TEXT(row->request_hash),
                        SQL_INT(row->edits), SQL_TEXT(row->read_from), SQL_INT(row->unsampled),
                        SQL_INT(row->read_seq));
}

int delivery_row_claim(struct store_tx *tx, const struct delivery_row *row, int64_t old_fence,
                       struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE deliveries SET state = 'sending', attempt = ?2,"
                               " fence = ?3, owner = ?4, lease_ms = ?5, kind = ?6, edits = ?7,"
                               " read_from = ?9, read_seq = ?10"
                               " WHERE id = ?1 AND fence = ?8"
                               " AND state IN ('queued', 'sending')",
                               SQL_INT(row->id), SQL_INT(row->attempt), SQL_INT(row->fence),
                               SQL_TEXT(row->owner), SQL_INT(row->lease_ms),
                               SQL_TEXT(delivery_kind_name(row->kind)), SQL_INT(row->edits),
                               SQL_INT(old_fence), SQL_TEXT(row->read_from),
                               SQL_INT(row->read_seq));
}

int delivery_row_settle(struct store_tx *tx, const struct delivery_row *row, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE deliveries SET state = ?3, attempt = ?4, due_ms = ?5,"
                               " ended_ms = ?6, platform_id = ?7, error_kind = ?8, error = ?9,"
                               " lease_ms = ?10, kind = ?11, edits = ?12"
                               " WHERE id = ?1 AND fence = ?2"
                               " AND state IN ('queued', 'sending')",
                               SQL_INT(row->id), SQL_INT(row->fence),
                               SQL_TEXT(delivery_state_name(row->state)), SQL_INT(row->attempt),
                               SQL_INT(row->due_ms), SQL_REF(row->ended_ms),
                               SQL_TEXT(row->platform_id), SQL_TEXT(row->error_kind),
                               SQL_TEXT(row->error), SQL_INT(row->lease_ms),
                               SQL_TEXT(delivery_kind_name(row->kind)), SQL_INT(row->edits));
}

int delivery_row_set_payload(struct store_tx *tx, int64_t id, const char *payload,
                             struct error *err)
{
        return sql_exec(tx, err, "UPDATE deliveries SET payload = ?2 WHERE id = ?1", SQL_INT(id),
                        SQL_TEXT(payload));
}

int delivery_row_set_read_from(struct store_tx *tx, int64_t id, int64_t fence, const char *text,
                               struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE deliveries SET read_from = ?3"
                        " WHERE id = ?1 AND fence = ?2 AND state = 'sending'",
                        SQL_INT(id), SQL_INT(fence), SQL_TEXT(text));
}

int delivery_row_replace_payload(struct store_tx *tx, int64_t id, const char *payload,
                                 struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE deliveries SET payload = ?2"
                               " WHERE id = ?1 AND state = 'queued'",
                               SQL_INT(id), SQL_TEXT(payload));
}

int delivery_row_supersede(struct store_tx *tx, int64_t id, int64_t now_ms, struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE deliveries SET state = 'superseded', ended_ms = ?2"
                        " WHERE id = ?1 AND state = 'queued'",
                        SQL_INT(id), SQL_INT(now_ms));
}

int delivery_row_move_on(struct store_tx *tx, int64_t id, struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE deliveries SET state = 'superseded'"
                        " WHERE id = ?1 AND state = 'failed'",
                        SQL_INT(id));
}

int delivery_row_leave_thread(struct store_tx *tx, int64_t turn, const char *thread,
                              struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE deliveries SET thread = NULL"
                        " WHERE turn = ?1 AND thread = ?2 AND state = 'queued'",
                        SQL_INT(turn), SQL_TEXT(thread));
}

int delivery_row_set_request_key(struct store_tx *tx, int64_t id, const char *key,
                                 struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE deliveries SET request_key = ?2"
                        " WHERE id = ?1"
                        " AND NOT EXISTS (SELECT 1 FROM deliveries WHERE request_key = ?2)",
                        SQL_INT(id), SQL_TEXT(key));
}

int delivery_row_set_reply_of(struct store_tx *tx, int64_t id, int64_t turn, struct error *err)
{
        return sql_exec(tx, err, "UPDATE deliveries SET reply_of = ?2 WHERE id = ?1", SQL_INT(id),
                        SQL_INT(turn));
}

/* ---- reading ---- */

#define COLUMNS                                                                                \
        "id, turn, adapter, channel, thread, kind, class, payload, state, attempt, fence,"     \
        " owner, lease_ms, due_ms, expires_ms, created_ms, ended_ms, platform_id, error_kind," \
        " error, trace, request_key, request_hash, edits, reply_of, read_from, unsampled,"     \
        " read_seq, (SELECT conversation FROM turns WHERE turns.id = deliveries.turn)"

int delivery_row_next(struct store_stmt *s, struct delivery_row *row, struct error *err)
{
        const char *kind, *state;
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        *row = (struct delivery_row){ 0 };
        sql_read(s, OUT_INT(&row->id), OUT_INT(&row->turn), OUT_TEXT(&row->adapter),
                 OUT_TEXT(&row->channel), OUT_TEXT(&row->thread), OUT_TEXT(&kind),
                 OUT_INT32(&row->class), OUT_TEXT(&row->payload), OUT_TEXT(&state),
                 OUT_INT(&row->attempt), OUT_INT(&row->fence), OUT_TEXT(&row->owner),
                 OUT_INT(&row->lease_ms), OUT_INT(&row->due_ms), OUT_INT(&row->expires_ms),
                 OUT_INT(&row->created_ms), OUT_INT(&row->ended_ms), OUT_TEXT(&row->platform_id),
                 OUT_TEXT(&row->error_kind), OUT_TEXT(&row->error), OUT_TEXT(&row->trace),
                 OUT_TEXT(&row->request_key), OUT_TEXT(&row->request_hash), OUT_INT(&row->edits),
                 OUT_INT(&row->reply_of), OUT_TEXT(&row->read_from), OUT_BOOL(&row->unsampled),
                 OUT_INT(&row->read_seq), OUT_INT(&row->conversation));
        if (delivery_kind_parse(kind, &row->kind) && delivery_state_parse(state, &row->state))
                return 1;
        error_set(err, ERR_CORRUPT, "delivery 'dlv-%lld' has kind '%.40s' and state '%.40s'",
                  (long long)row->id, kind, state);
        sql_end(s);
        return -1;
}

struct store_stmt *delivery_row_list_open(struct store_tx *tx)
{
        return sql_query(tx, "SELECT " COLUMNS " FROM deliveries"
                             " WHERE state IN ('queued', 'sending')"
                             " ORDER BY id");
}

struct store_stmt *delivery_row_list_replies(struct store_tx *tx, int64_t turn)
{
        return sql_query(tx, "SELECT " COLUMNS " FROM deliveries WHERE reply_of = ?1 ORDER BY id",
                         SQL_INT(turn));
}

struct store_stmt *delivery_row_list_turn(struct store_tx *tx, int64_t turn)
{
        return sql_query(tx, "SELECT " COLUMNS " FROM deliveries WHERE turn = ?1 ORDER BY id",
                         SQL_INT(turn));
}

/* clang-format off */
#define FILTERED                                                             \
        " AND id < ?1 AND " ROWS_IF_TEXT("state", "?2")                   \
        " AND " ROWS_IF_TEXT("adapter", "?3")                             \
        " AND " ROWS_IF_TEXT("channel", "?4")                             \
        " AND " ROWS_IF_ADAPTERS("adapter", "?5")                         \
        " ORDER BY id DESC LIMIT ?6"
/* clang-format on */
#define FILTER_VALUES(f)                                                                 \
        SQL_INT((f)->before > 0 ? (f)->before : INT64_MAX),                              \
                SQL_TEXT((f)->state ? delivery_state_name(*(f)->state) : NULL),          \
                SQL_TEXT((f)->adapter), SQL_TEXT((f)->channel), SQL_TEXT((f)->adapters), \
                SQL_INT((f)->limit)

struct store_stmt *delivery_row_list(struct store_tx *tx, const struct delivery_filter *f)
{
        enum delivery_state state = f->state ? *f->state : DELIVERY_SENT;

        /* one text per usable index */
        if (f->turn > 0)
                return sql_query(tx,
                                 "SELECT " COLUMNS " FROM deliveries"
                                 " WHERE (turn = ?7 OR reply_of = ?7)" FILTERED,
                                 FILTER_VALUES(f), SQL_INT(f->turn));
        if (state == DELIVERY_QUEUED || state == DELIVERY_SENDING)
                return sql_query(tx,
                                 "SELECT " COLUMNS " FROM deliveries"
                                 " WHERE state IN ('queued', 'sending')" FILTERED,
                                 FILTER_VALUES(f));
        if (f->dead || state == DELIVERY_FAILED || state == DELIVERY_UNKNOWN)
                return sql_query(tx,
                                 "SELECT " COLUMNS " FROM deliveries"
                                 " WHERE state IN ('failed', 'unknown')" FILTERED,
                                 FILTER_VALUES(f));
        return sql_query(tx, "SELECT " COLUMNS " FROM deliveries WHERE 1 = 1" FILTERED,
                         FILTER_VALUES(f));
}

/* Returns a copy of the row. */
static int get(struct store_stmt *s, struct delivery_row **out, struct error *err)
{
        static const size_t strings[] = {
                offsetof(struct delivery_row, adapter),
                offsetof(struct delivery_row, channel),
                offsetof(struct delivery_row, thread),
                offsetof(struct delivery_row, payload),
                offsetof(struct delivery_row, owner),
                offsetof(struct delivery_row, platform_id),
                offsetof(struct delivery_row, error_kind),
                offsetof(struct delivery_row, error),
                offsetof(struct delivery_row, trace),
                offsetof(struct delivery_row, request_key),
                offsetof(struct delivery_row, request_hash),
                offsetof(struct delivery_row, read_from),
        };
        struct delivery_row row;
        int rc = delivery_row_next(s, &row, err);

        *out = rc == 1 ? mem_dup_struct(&row, sizeof(row), strings, COUNT(strings)) : NULL;
        sql_end(s);
        return rc;
}

int delivery_row_get(struct store_tx *tx, int64_t id, struct delivery_row **out, struct error *err)
{
        return get(sql_query(tx, "SELECT " COLUMNS " FROM deliveries WHERE id = ?1", SQL_INT(id)),
                   out, err);
}

int delivery_row_get_request(struct store_tx *tx, const char *request_key,
                             struct delivery_row **out, struct error *err)
{
        return get(sql_query(tx, "SELECT " COLUMNS " FROM deliveries WHERE request_key = ?1",
                             SQL_TEXT(request_key)),
                   out, err);
}

int delivery_row_revive(struct store_tx *tx, int64_t id, bool force, int64_t now_ms,
                        struct delivery_row **out, struct error *err)
{
        return get(sql_query(tx,
                             "UPDATE deliveries SET state = 'queued', attempt = 0,"
                             " fence = fence + 1, due_ms = ?2, lease_ms = ?2, expires_ms = 0,"
                             " ended_ms = NULL"
                             " WHERE id = ?1 AND (state IN ('failed', 'expired')"
                             " OR (state = 'unknown' AND CAST(?3 AS BIGINT) = 1))"
                             " RETURNING " COLUMNS,
                             SQL_INT(id), SQL_INT(now_ms), SQL_INT(force)),
                   out, err);
}

int delivery_row_leave(struct store_tx *tx, int64_t id, const char *why, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE deliveries SET state = 'failed', error = ?2"
                               " WHERE id = ?1 AND state = 'unknown'",
                               SQL_INT(id), SQL_TEXT(why));
}

int delivery_row_get_target(struct store_tx *tx, int64_t id, struct delivery_target *out,
                            struct error *err)
{
        const char *kind, *state;
        struct store_stmt *s;
        int rc;

        *out = (struct delivery_target){ 0 };
        s = sql_query(tx,
                      "SELECT d.kind, d.state, d.platform_id, coalesce(d.thread, t.platform_id)"
                      " FROM deliveries AS d LEFT JOIN deliveries AS t ON t.id = d.edits"
                      " AND d.kind IN ('send', 'upload') AND t.state = 'sent'"
                      " WHERE d.id = ?1",
                      SQL_INT(id));
        rc = sql_next(s, err);
        if (rc == 1) {
                sql_read(s, OUT_TEXT(&kind), OUT_TEXT(&state), OUT_DUP(&out->message),
                         OUT_DUP(&out->thread));
                if (!delivery_kind_parse(kind, &out->kind) ||
                    !delivery_state_parse(state, &out->state))
                        rc = error_set(err, ERR_CORRUPT,
                                       "delivery 'dlv-%lld' has kind '%.40s' and state '%.40s'",
                                       (long long)id, kind, state);
                sql_end(s);
        }
        if (rc == 1 && out->state == DELIVERY_SENT)
                return 1;
        free(out->message);
        out->message = NULL;
        if (rc != 1)
                delivery_target_release(out);
        return rc;
}

void delivery_target_release(struct delivery_target *t)
{
        free(t->message);
        free(t->thread);
        *t = (struct delivery_target){ 0 };
}

int delivery_row_count_lost(struct store_tx *tx, int64_t turn, int class, int64_t *out,
                            struct error *err)
{
        return sql_number(tx, 0, out, err,
                          "SELECT count(*) FROM deliveries"
                          " WHERE turn = ?1 AND class = ?2 AND kind IN ('send', 'edit')"
                          " AND state IN ('failed', 'unknown', 'expired')",
                          SQL_INT(turn), SQL_INT(class));
}

int delivery_row_count_replies(struct store_tx *tx, int64_t turn, int64_t *late, bool *own,
                               struct error *err)
{
        int64_t found = 0;

        if (sql_number(tx, 0, late, err,
                       "SELECT count(*) FROM deliveries"
                       " WHERE reply_of = ?1 AND request_key LIKE 'reply:%'",
                       SQL_INT(turn)) < 0 ||
            sql_number(tx, 0, &found, err,
                       "SELECT 1 FROM deliveries"
                       " WHERE turn = ?1 AND kind IN ('send', 'edit')"
                       " LIMIT 1",
                       SQL_INT(turn)) < 0)
                return -1;
        *own = found == 1;
        return 0;
}

/* Neither trace nor platform id has an index: rarely used, not worth its writes. */
int delivery_row_find_trace(struct store_tx *tx, const char *trace, int64_t newest, int64_t *id,
                            struct error *err)
{
        return sql_first(
                sql_query(tx,
                          "SELECT id FROM"
                          " (SELECT id, trace FROM deliveries ORDER BY id DESC LIMIT ?2) AS d"
                          " WHERE trace = ?1 ORDER BY id LIMIT 1",
                          SQL_TEXT(trace), SQL_INT(newest)),
                err, OUT_INT(id));
}

struct store_stmt *delivery_row_list_notices(struct store_tx *tx, const char *trace,
                                             const char *adapter, const char *channel,
                                             int64_t newest)
{
        return sql_query(tx,
                         "SELECT " COLUMNS " FROM deliveries"
                         " WHERE id > (SELECT coalesce(max(id), 0) FROM deliveries) - ?2"
                         " AND trace = ?1 AND coalesce(turn, 0) = 0 AND reply_of IS NULL"
                         " AND adapter = ?3 AND channel = ?4 ORDER BY id",
                         SQL_TEXT(trace), SQL_INT(newest), SQL_TEXT(adapter), SQL_TEXT(channel));
}

int delivery_row_find_message(struct store_tx *tx, const struct delivery_message *m, int64_t newest,
                              int64_t *ids, int max, struct error *err)
{
        /* reactions and edits have the id of another message */
        struct store_stmt *s = sql_query(
                tx,
                "SELECT min(id) FROM (SELECT id, adapter, channel, thread, kind,"
                " platform_id FROM deliveries ORDER BY id DESC LIMIT ?2) AS d"
                " WHERE platform_id = ?1 AND kind IN ('send', 'upload')"
                " AND " ROWS_IF_TEXT("adapter",
                                     "?3") " AND (CAST(?4 AS TEXT) IS NULL"
                                           " OR channel = ?4 OR thread = ?4)"
                                           " GROUP BY adapter, channel ORDER BY min(id) DESC",
                SQL_TEXT(m->id), SQL_INT(newest), SQL_TEXT(m->adapter), SQL_TEXT(m->chat));
        int64_t id;
        int rc, count = 0;

        while ((rc = sql_next(s, err)) == 1) {
                sql_read(s, OUT_INT(&id));
                if (count < max)
                        ids[count++] = id;
        }
        return rc < 0 ? -1 : count;
}

struct store_stmt *delivery_row_list_sent(struct store_tx *tx, int64_t before, int64_t newest)
{
        return sql_query(tx,
                         "SELECT id, adapter, channel, platform_id, coalesce(ended_ms, 0),"
                         " CASE WHEN kind IN ('send', 'upload') THEN 1 ELSE 0 END,"
                         " CASE WHEN payload LIKE '%\"buttons\"%' THEN 1 ELSE 0 END"
                         " FROM deliveries WHERE fence > 0 AND id < ?1 ORDER BY id DESC LIMIT ?2",
                         SQL_INT(before), SQL_INT(newest));
}

int delivery_row_next_sent(struct store_stmt *s, struct sent_row *row, struct error *err)
{
        int64_t message, buttons;
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        sql_read(s, OUT_INT(&row->id), OUT_TEXT(&row->adapter), OUT_TEXT(&row->channel),
                 OUT_TEXT(&row->platform_id), OUT_INT(&row->ended_ms), OUT_INT(&message),
                 OUT_INT(&buttons));
        row->message = message != 0;
        row->buttons = buttons != 0;
        return 1;
}

/* ---- attempts ---- */

int delivery_row_put_attempt(struct store_tx *tx, const struct attempt_row *row, struct error *err)
{
        return sql_exec(tx, err,
                        "INSERT INTO attempts(delivery, attempt, time_ms, outcome, detail)"
                        " VALUES(?1, ?2, ?3, ?4, ?5)"
                        " ON CONFLICT(delivery, attempt) DO UPDATE SET"
                        " time_ms = excluded.time_ms, outcome = excluded.outcome,"
                        " detail = excluded.detail",
                        SQL_INT(row->delivery), SQL_INT(row->attempt), SQL_INT(row->time_ms),
                        SQL_TEXT(row->outcome), SQL_TEXT(row->detail));
}

struct store_stmt *delivery_row_list_attempts(struct store_tx *tx, int64_t delivery)
{
        return sql_query(tx,
                         "SELECT delivery, attempt, time_ms, outcome, detail FROM attempts"
                         " WHERE delivery = ?1 ORDER BY attempt",
                         SQL_INT(delivery));
}

int delivery_row_next_attempt(struct store_stmt *s, struct attempt_row *row, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc == 1)
                sql_read(s, OUT_INT(&row->delivery), OUT_INT(&row->attempt), OUT_INT(&row->time_ms),
                         OUT_TEXT(&row->outcome), OUT_TEXT(&row->detail));
        return rc;
}
