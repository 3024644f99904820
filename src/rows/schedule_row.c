#include "rows/schedule_row.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "store/sql.h"

static const char *const kind_names[] = {
        [SCHEDULE_IMMEDIATE] = "immediate",
        [SCHEDULE_ONE_SHOT] = "one-shot",
        [SCHEDULE_PERIODIC] = "periodic",
};
static const char *const action_names[] = {
        [SCHEDULE_TURN] = "turn",
        [SCHEDULE_MESSAGE] = "message",
};
static const char *const missed_names[] = {
        [MISSED_ONCE] = "once",
        [MISSED_ALL] = "all",
        [MISSED_SKIP] = "skip",
};
static const char *const state_names[] = {
        [SCHEDULE_ACTIVE] = "active",
        [SCHEDULE_DONE] = "done",
        [SCHEDULE_CANCELLED] = "cancelled",
};
static const char *const tick_names[] = {
        [TICK_PENDING] = "pending", [TICK_RUNNING] = "running", [TICK_DONE] = "done",
        [TICK_QUIET] = "quiet",     [TICK_SKIPPED] = "skipped", [TICK_FAILED] = "failed",
};

/* -1: none of them. */
static int find_name(const char *const *names, size_t count, const char *name)
{
        for (size_t i = 0; name && i < count; i++)
                if (strcmp(names[i], name) == 0)
                        return (int)i;
        return -1;
}

const char *schedule_kind_name(enum schedule_kind kind)
{
        return kind_names[kind];
}

bool schedule_kind_parse(const char *name, enum schedule_kind *out)
{
        int i = find_name(kind_names, COUNT(kind_names), name);

        *out = i < 0 ? SCHEDULE_IMMEDIATE : (enum schedule_kind)i;
        return i >= 0;
}

const char *schedule_action_name(enum schedule_action action)
{
        return action_names[action];
}

const char *schedule_missed_name(enum schedule_missed missed)
{
        return missed_names[missed];
}

bool schedule_missed_parse(const char *name, enum schedule_missed *out)
{
        int i = find_name(missed_names, COUNT(missed_names), name);

        *out = i < 0 ? MISSED_ONCE : (enum schedule_missed)i;
        return i >= 0;
}

const char *schedule_state_name(enum schedule_state state)
{
        return state_names[state];
}

bool schedule_state_parse(const char *name, enum schedule_state *out)
{
        int i = find_name(state_names, COUNT(state_names), name);

        *out = i < 0 ? SCHEDULE_ACTIVE : (enum schedule_state)i;
        return i >= 0;
}

const char *tick_state_name(enum tick_state state)
{
        return tick_names[state];
}

bool tick_state_parse(const char *name, enum tick_state *out)
{
        int i = find_name(tick_names, COUNT(tick_names), name);

        *out = i < 0 ? TICK_PENDING : (enum tick_state)i;
        return i >= 0;
}

/* ---- schedules: writing ---- */

int schedule_row_insert(struct store_tx *tx, const struct schedule_row *row, int64_t *id,
                        struct error *err)
{
        int rc = sql_insert(
                tx, id, err,
                "INSERT INTO schedules(source, name, request_key, kind, action, adapter, channel,"
                " thread, person, text, options, at_ms, cron, timezone, missed, max_age_ms, state,"
                " next_ms, created_ms, created_by, trace)"
                " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,"
                " ?17, ?18, ?19, ?20, ?21) ON CONFLICT(request_key) DO NOTHING",
                SQL_TEXT(row->source), SQL_TEXT(row->name), SQL_TEXT(row->request_key),
                SQL_TEXT(kind_names[row->kind]), SQL_TEXT(action_names[row->action]),
                SQL_TEXT(row->adapter), SQL_TEXT(row->channel), SQL_TEXT(row->thread),
                SQL_REF(row->person), SQL_TEXT(row->text), SQL_TEXT(row->options),
                SQL_REF(row->at_ms), SQL_TEXT(row->cron), SQL_TEXT(row->timezone),
                SQL_TEXT(missed_names[row->missed]), SQL_INT(row->max_age_ms),
                SQL_TEXT(state_names[row->state]), SQL_REF(row->next_ms), SQL_INT(row->created_ms),
                SQL_TEXT(row->created_by), SQL_TEXT(row->trace));

        if (rc == 0 && sql_number(tx, 0, id, err, "SELECT id FROM schedules WHERE request_key = ?1",
                                  SQL_TEXT(row->request_key)) < 0)
                return -1;
        return rc;
}

int schedule_row_update(struct store_tx *tx, const struct schedule_row *row, struct error *err)
{
        return (int)sql_update(
                tx, err,
                "UPDATE schedules SET name = ?2, kind = ?3, action = ?4, adapter = ?5,"
                " channel = ?6, thread = ?7, person = ?8, text = ?9, options = ?10, at_ms = ?11,"
                " cron = ?12, timezone = ?13, missed = ?14, max_age_ms = ?15, next_ms = ?16,"
                " ahead_ms = NULL"
                " WHERE id = ?1 AND state = 'active'",
                SQL_INT(row->id), SQL_TEXT(row->name), SQL_TEXT(kind_names[row->kind]),
                SQL_TEXT(action_names[row->action]), SQL_TEXT(row->adapter), SQL_TEXT(row->channel),
                SQL_TEXT(row->thread), SQL_REF(row->person), SQL_TEXT(row->text),
                SQL_TEXT(row->options), SQL_REF(row->at_ms), SQL_TEXT(row->cron),
                SQL_TEXT(row->timezone), SQL_TEXT(missed_names[row->missed]),
                SQL_INT(row->max_age_ms), SQL_REF(row->next_ms));
}

int schedule_row_advance(struct store_tx *tx, int64_t id, int64_t from_ms, int64_t to_ms,
                         int64_t now_ms, struct error *err)
{
        if (to_ms > 0)
                return (int)sql_update(tx, err,
                                       "UPDATE schedules SET next_ms = ?3,"
                                       " ahead_ms = CASE WHEN ahead_ms > ?3 THEN ahead_ms END"
                                       " WHERE id = ?1 AND next_ms = ?2 AND state = 'active'",
                                       SQL_INT(id), SQL_INT(from_ms), SQL_INT(to_ms));
        return (int)sql_update(tx, err,
                               "UPDATE schedules SET next_ms = NULL, state = 'done', ended_ms = ?3"
                               " WHERE id = ?1 AND next_ms = ?2 AND state = 'active'",
                               SQL_INT(id), SQL_INT(from_ms), SQL_INT(now_ms));
}

int schedule_row_set_back(struct store_tx *tx, int64_t id, int64_t from_ms, int64_t to_ms,
                          struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE schedules SET next_ms = ?3,"
                               " ahead_ms = coalesce(ahead_ms, next_ms)"
                               " WHERE id = ?1 AND next_ms = ?2 AND state = 'active'",
                               SQL_INT(id), SQL_INT(from_ms), SQL_INT(to_ms));
}

int schedule_row_cancel(struct store_tx *tx, int64_t id, const char *note, int64_t now_ms,
                        struct error *err)
{
        int64_t ended = sql_update(tx, err,
                                   "UPDATE schedules SET state = 'cancelled', next_ms = NULL,"
                                   " ended_ms = ?2 WHERE id = ?1 AND state = 'active'",
                                   SQL_INT(id), SQL_INT(now_ms));

        int64_t skipped = ended < 0 ? -1
                                    : sql_update(tx, err,
                                                 "UPDATE ticks SET state = 'skipped',"
                                                 " ended_ms = ?2, note = ?3"
                                                 " WHERE schedule = ?1 AND state = 'pending'",
                                                 SQL_INT(id), SQL_INT(now_ms), SQL_TEXT(note));

        return skipped < 0 ? -1 : ended > 0 || skipped > 0;
}

/* ---- schedules: reading ---- */

int64_t schedule_row_count(struct store_tx *tx, int64_t person, int64_t enough, struct error *err)
{
        int64_t n;
        int rc;

        if (person > 0) {
                rc = sql_number(tx, 0, &n, err,
                                "SELECT count(*) FROM (SELECT 1 FROM schedules"
                                " WHERE person = ?1 AND state = 'active' LIMIT ?2) AS found",
                                SQL_INT(person), SQL_INT(enough));
                return rc < 0 ? -1 : n;
        }
        /* numbers are never reused: few of them were few schedules, and nothing need be counted */
        if (sql_number(tx, 0, &n, err, "SELECT max(id) FROM schedules") < 0)
                return -1;
        if (n < enough)
                return n;
        rc = sql_number(tx, 0, &n, err,
                        "SELECT count(*) FROM (SELECT 1 FROM schedules WHERE state = 'active'"
                        " LIMIT ?1) AS found",
                        SQL_INT(enough));
        return rc < 0 ? -1 : n;
}

int schedule_row_first_ms(struct store_tx *tx, int64_t *out, struct error *err)
{
        int64_t tick;

        if (sql_number(tx, 0, out, err,
                       "SELECT next_ms FROM schedules WHERE state = 'active'"
                       " AND next_ms IS NOT NULL ORDER BY next_ms LIMIT 1") < 0 ||
            sql_number(tx, 0, &tick, err,
                       "SELECT not_before_ms FROM ticks WHERE state = 'pending'"
                       " ORDER BY not_before_ms LIMIT 1") < 0)
                return -1;
        if (tick > 0 && (*out == 0 || tick < *out))
                *out = tick;
        return 0;
}

#define SELECT_SCHEDULES                                                                \
        "SELECT id, source, name, request_key, kind, action, adapter, channel, thread," \
        " person, text, options, at_ms, cron, timezone, missed, max_age_ms, state,"     \
        " next_ms, ahead_ms, created_ms, ended_ms, created_by, trace FROM schedules"

static void set_unknown(struct schedule_row *row, const char *what, const char *value)
{
        snprintf(row->unknown, sizeof(row->unknown), "this version does not know its %s '%.30s'",
                 what, value ? value : "");
}

int schedule_row_next(struct store_stmt *s, struct schedule_row *out, struct error *err)
{
        const char *kind, *action, *missed, *state;
        int rc = sql_next(s, err), i;

        if (rc != 1)
                return rc;
        *out = (struct schedule_row){ 0 };
        sql_read(s, OUT_INT(&out->id), OUT_TEXT(&out->source), OUT_TEXT(&out->name),
                 OUT_TEXT(&out->request_key), OUT_TEXT(&kind), OUT_TEXT(&action),
                 OUT_TEXT(&out->adapter), OUT_TEXT(&out->channel), OUT_TEXT(&out->thread),
                 OUT_INT(&out->person), OUT_TEXT(&out->text), OUT_TEXT(&out->options),
                 OUT_INT(&out->at_ms), OUT_TEXT(&out->cron), OUT_TEXT(&out->timezone),
                 OUT_TEXT(&missed), OUT_INT(&out->max_age_ms), OUT_TEXT(&state),
                 OUT_INT(&out->next_ms), OUT_INT(&out->ahead_ms), OUT_INT(&out->created_ms),
                 OUT_INT(&out->ended_ms), OUT_TEXT(&out->created_by), OUT_TEXT(&out->trace));
        i = find_name(action_names, COUNT(action_names), action);
        out->action = i < 0 ? SCHEDULE_TURN : (enum schedule_action)i;
        if (i < 0)
                set_unknown(out, "action", action);
        if (!schedule_kind_parse(kind, &out->kind))
                set_unknown(out, "kind", kind);
        if (!schedule_missed_parse(missed, &out->missed))
                set_unknown(out, "policy", missed);
        if (!schedule_state_parse(state, &out->state)) {
                set_unknown(out, "state", state);
                out->state = SCHEDULE_CANCELLED;
        }
        return 1;
}

struct schedule_row *schedule_row_dup(const struct schedule_row *row)
{
        static const size_t strings[] = {
                offsetof(struct schedule_row, source),      offsetof(struct schedule_row, name),
                offsetof(struct schedule_row, request_key), offsetof(struct schedule_row, adapter),
                offsetof(struct schedule_row, channel),     offsetof(struct schedule_row, thread),
                offsetof(struct schedule_row, text),        offsetof(struct schedule_row, options),
                offsetof(struct schedule_row, cron),        offsetof(struct schedule_row, timezone),
                offsetof(struct schedule_row, created_by),  offsetof(struct schedule_row, trace),
        };

        return mem_dup_struct(row, sizeof(*row), strings, COUNT(strings));
}

static int take_schedule(struct store_stmt *s, struct schedule_row **out, struct error *err)
{
        struct schedule_row row;
        int rc = schedule_row_next(s, &row, err);

        *out = rc == 1 ? schedule_row_dup(&row) : NULL;
        sql_end(s);
        return rc;
}

int schedule_row_get(struct store_tx *tx, int64_t id, struct schedule_row **out, struct error *err)
{
        return take_schedule(sql_query(tx, SELECT_SCHEDULES " WHERE id = ?1", SQL_INT(id)), out,
                             err);
}

int schedule_row_find(struct store_tx *tx, const char *request_key, struct schedule_row **out,
                      struct error *err)
{
        return take_schedule(
                sql_query(tx, SELECT_SCHEDULES " WHERE request_key = ?1", SQL_TEXT(request_key)),
                out, err);
}

#define IF_FILTER                                                       \
        ROWS_IF_TEXT("source", "?2")                                    \
        " AND " ROWS_IF_TEXT("adapter", "?3") " AND " ROWS_IF_TEXT(     \
                "channel",                                              \
                "?4") " AND " ROWS_IF_ADAPTERS("coalesce(adapter, '')", \
                                               "?5") " AND (CAST(?6 AS BIGINT) = 0 OR person = ?6)"

struct store_stmt *schedule_row_list(struct store_tx *tx, const struct schedule_filter *f)
{
        return sql_query(tx,
                         SELECT_SCHEDULES
                         " WHERE id < ?1 AND " IF_FILTER
                         " AND " ROWS_IF_TEXT("state", "?7") " ORDER BY id DESC LIMIT ?8",
                         SQL_INT(f->before > 0 ? f->before : INT64_MAX), SQL_TEXT(f->source),
                         SQL_TEXT(f->adapter), SQL_TEXT(f->channel), SQL_TEXT(f->adapters),
                         SQL_INT(f->person), SQL_TEXT(f->state ? state_names[*f->state] : NULL),
                         SQL_INT(f->limit));
}

struct store_stmt *schedule_row_list_next(struct store_tx *tx, const struct schedule_filter *f)
{
        return sql_query(tx,
                         SELECT_SCHEDULES " WHERE state = 'active' AND next_ms IS NOT NULL"
                                          " AND " IF_FILTER " ORDER BY next_ms, id LIMIT ?1",
                         SQL_INT(f->limit), SQL_TEXT(f->source), SQL_TEXT(f->adapter),
                         SQL_TEXT(f->channel), SQL_TEXT(f->adapters), SQL_INT(f->person));
}

struct store_stmt *schedule_row_list_due(struct store_tx *tx, int64_t now_ms, int64_t limit)
{
        return sql_query(tx,
                         SELECT_SCHEDULES " WHERE state = 'active' AND next_ms <= ?1"
                                          " ORDER BY next_ms, id LIMIT ?2",
                         SQL_INT(now_ms), SQL_INT(limit));
}

struct store_stmt *schedule_row_list_periodic(struct store_tx *tx, int64_t now_ms, int64_t after,
                                              int64_t limit)
{
        return sql_query(tx,
                         SELECT_SCHEDULES " WHERE state = 'active' AND kind = 'periodic'"
                                          " AND next_ms > ?1 AND id > ?2 ORDER BY id LIMIT ?3",
                         SQL_INT(now_ms), SQL_INT(after), SQL_INT(limit));
}

struct store_stmt *schedule_row_list_files(struct store_tx *tx, const char *adapter,
                                           const char *channel, const char *name)
{
        if (adapter)
                return sql_query(tx,
                                 SELECT_SCHEDULES " WHERE adapter = ?1 AND channel = ?2"
                                                  " AND source = 'file' AND state = 'active'"
                                                  " ORDER BY id",
                                 SQL_TEXT(adapter), SQL_TEXT(channel));
        return sql_query(tx,
                         SELECT_SCHEDULES " WHERE source = 'file' AND state = 'active'"
                                          " AND " ROWS_IF_TEXT("name", "?1") " ORDER BY id",
                         SQL_TEXT(name));
}

int schedule_row_set_key(struct store_tx *tx, int64_t id, const char *request_key,
                         struct error *err)
{
        return sql_exec(tx, err,
                        "UPDATE schedules SET request_key = ?2 WHERE id = ?1 AND state = 'active'",
                        SQL_INT(id), SQL_TEXT(request_key));
}

/* ---- ticks ---- */

int tick_row_insert(struct store_tx *tx, const struct tick_row *row, int64_t *id, struct error *err)
{
        return sql_insert(tx, id, err,
                          "INSERT INTO ticks(schedule, due_ms, runs, state, not_before_ms,"
                          " started_ms, ended_ms, note) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
                          " ON CONFLICT(schedule, due_ms) DO NOTHING",
                          SQL_INT(row->schedule), SQL_INT(row->due_ms), SQL_INT(row->runs),
                          SQL_TEXT(tick_names[row->state]), SQL_INT(row->not_before_ms),
                          SQL_REF(row->started_ms), SQL_REF(row->ended_ms), SQL_TEXT(row->note));
}

int tick_row_claim(struct store_tx *tx, int64_t id, int64_t now_ms, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE ticks SET state = 'running', started_ms = ?2"
                               " WHERE id = ?1 AND state = 'pending'",
                               SQL_INT(id), SQL_INT(now_ms));
}

int tick_row_defer(struct store_tx *tx, int64_t id, int64_t not_before_ms, const char *note,
                   struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE ticks SET state = 'pending', not_before_ms = ?2, note = ?3"
                               " WHERE id = ?1 AND state IN ('pending', 'running')",
                               SQL_INT(id), SQL_INT(not_before_ms), SQL_TEXT(note));
}

int tick_row_set_delivery(struct store_tx *tx, int64_t id, int64_t delivery, int64_t address,
                          const char *note, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE ticks SET state = 'running', delivery = ?2, address = ?3,"
                               " note = ?4 WHERE id = ?1 AND state IN ('pending', 'running')",
                               SQL_INT(id), SQL_REF(delivery), SQL_INT(address), SQL_TEXT(note));
}

int tick_row_end(struct store_tx *tx, const struct tick_row *row, struct error *err)
{
        return (int)sql_update(tx, err,
                               "UPDATE ticks SET state = ?2, event = ?3, note = ?4, ended_ms = ?5"
                               " WHERE id = ?1 AND state IN ('pending', 'running')",
                               SQL_INT(row->id), SQL_TEXT(tick_names[row->state]),
                               SQL_REF(row->event), SQL_TEXT(row->note), SQL_INT(row->ended_ms));
}

int64_t tick_row_revive(struct store_tx *tx, struct error *err)
{
        return sql_update(tx, err,
                          "UPDATE ticks SET state = 'pending'"
                          " WHERE state = 'running' AND delivery IS NULL");
}

int tick_row_find_turn(struct store_tx *tx, int64_t schedule, int64_t due_ms, int64_t *turn,
                       struct error *err)
{
        int rc = sql_number(tx, 0, turn, err,
                            "SELECT t.id FROM ticks AS k, trigger_log AS l, turns AS t"
                            " WHERE k.id IN (SELECT id FROM ticks WHERE schedule = ?1"
                            " AND due_ms < ?2 AND event IS NOT NULL ORDER BY due_ms DESC LIMIT 5)"
                            " AND l.event = k.event AND t.id = l.turn"
                            " AND t.state IN ('queued', 'running') LIMIT 1",
                            SQL_INT(schedule), SQL_INT(due_ms));

        return rc < 0 ? -1 : *turn > 0;
}

#define SELECT_TICKS                                                                     \
        "SELECT id, schedule, due_ms, runs, state, not_before_ms, started_ms, ended_ms," \
        " event, delivery, address, note FROM ticks"

int tick_row_next(struct store_stmt *s, struct tick_row *out, struct error *err)
{
        const char *state;
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        *out = (struct tick_row){ 0 };
        sql_read(s, OUT_INT(&out->id), OUT_INT(&out->schedule), OUT_INT(&out->due_ms),
                 OUT_INT(&out->runs), OUT_TEXT(&state), OUT_INT(&out->not_before_ms),
                 OUT_INT(&out->started_ms), OUT_INT(&out->ended_ms), OUT_INT(&out->event),
                 OUT_INT(&out->delivery), OUT_INT(&out->address), OUT_TEXT(&out->note));
        if (!tick_state_parse(state, &out->state))
                out->state = TICK_FAILED;
        return 1;
}

struct tick_row *tick_row_dup(const struct tick_row *row)
{
        static const size_t strings[] = { offsetof(struct tick_row, note) };

        return mem_dup_struct(row, sizeof(*row), strings, COUNT(strings));
}

static int take_tick(struct store_stmt *s, struct tick_row **out, struct error *err)
{
        struct tick_row row;
        int rc = tick_row_next(s, &row, err);

        *out = rc == 1 ? tick_row_dup(&row) : NULL;
        sql_end(s);
        return rc;
}

int tick_row_get(struct store_tx *tx, int64_t id, struct tick_row **out, struct error *err)
{
        return take_tick(sql_query(tx, SELECT_TICKS " WHERE id = ?1", SQL_INT(id)), out, err);
}

int tick_row_find(struct store_tx *tx, int64_t delivery, struct tick_row **out, struct error *err)
{
        return take_tick(sql_query(tx, SELECT_TICKS " WHERE delivery = ?1", SQL_INT(delivery)), out,
                         err);
}

struct store_stmt *tick_row_list(struct store_tx *tx, const struct tick_filter *f)
{
        const char *state = f->state ? tick_names[*f->state] : NULL;
        int64_t before = f->before > 0 ? f->before : INT64_MAX;

        if (f->schedule > 0)
                return sql_query(tx,
                                 SELECT_TICKS
                                 " WHERE schedule = ?1 AND id < ?2"
                                 " AND " ROWS_IF_TEXT("state", "?3") " ORDER BY id DESC LIMIT ?4",
                                 SQL_INT(f->schedule), SQL_INT(before), SQL_TEXT(state),
                                 SQL_INT(f->limit));
        return sql_query(tx,
                         SELECT_TICKS " WHERE id < ?1 AND " ROWS_IF_TEXT(
                                 "state", "?2") " ORDER BY id DESC LIMIT ?3",
                         SQL_INT(before), SQL_TEXT(state), SQL_INT(f->limit));
}

struct store_stmt *tick_row_list_ready(struct store_tx *tx, int64_t now_ms, int64_t limit)
{
        return sql_query(tx,
                         SELECT_TICKS " WHERE state = 'pending' AND not_before_ms <= ?1"
                                      " ORDER BY not_before_ms, id LIMIT ?2",
                         SQL_INT(now_ms), SQL_INT(limit));
}

struct store_stmt *tick_row_list_sending(struct store_tx *tx, int64_t after, int64_t limit)
{
        return sql_query(tx,
                         SELECT_TICKS " WHERE state = 'running' AND delivery IS NOT NULL"
                                      " AND id > ?1 ORDER BY id LIMIT ?2",
                         SQL_INT(after), SQL_INT(limit));
}
