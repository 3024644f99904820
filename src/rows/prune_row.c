/*
 * Row numbers follow time, so no index over time is needed: scanning from the front stops at the
 * first row that is too young. Schedules end in another order than they begin, and have one.
 */
#include "rows/prune_row.h"

#include "store/sql.h"

/* `last`: the bound if no row is too young. */
#define OLDEST(table, id, created, ended, last)                                                   \
        "(SELECT " id " FROM " table " WHERE " ended " < ?1 AND " id " < coalesce("               \
        "(SELECT " id " FROM " table " WHERE " created " >= ?1 AND " created " < ?2 ORDER BY " id \
        " LIMIT 1), (SELECT " last " FROM " table "))"                                            \
        " ORDER BY " id " LIMIT 1000)"
/* The newest turn and delivery stay. */
#define OLDEST_ENDED(table)     OLDEST(table, "id", "created_ms", "ended_ms", "max(id)")
#define OLDEST_LINES(table, id) OLDEST(table, id, "time_ms", "time_ms", "max(" id ") + 1")

/* What it has is deleted before it, and its commands when they are old. */
#define IS_OLD_SESSION                                                          \
        "s.last_event_ms < ?1 AND s.last_event_ms < ?2 AND s.state <> 'active'" \
        " AND NOT EXISTS (SELECT 1 FROM session_commands WHERE session = s.id)"

static const char *const statements[] = {
        [PRUNE_ATTEMPTS] = "DELETE FROM attempts WHERE delivery IN " OLDEST_ENDED("deliveries"),
        [PRUNE_DELIVERIES] = "DELETE FROM deliveries WHERE id IN " OLDEST_ENDED("deliveries"),
        [PRUNE_TURNS] = "DELETE FROM turns WHERE id IN " OLDEST_ENDED("turns"),
        [PRUNE_TRIGGER_LOG] =
                "DELETE FROM trigger_log WHERE event IN " OLDEST_LINES("trigger_log", "event"),
        [PRUNE_TRANSCRIPT] = "DELETE FROM transcript WHERE id IN " OLDEST_LINES("transcript", "id"),
        [PRUNE_APPROVALS] = "DELETE FROM approvals WHERE id IN " OLDEST(
                "approvals", "id", "created_ms", "decided_ms", "max(id) + 1"),
        [PRUNE_TICKS] = "DELETE FROM ticks WHERE id IN (SELECT id FROM ticks"
                        " WHERE ended_ms < ?1 AND ended_ms < ?2 ORDER BY ended_ms LIMIT 1000)",
        /* a message that waits for the end of quiet hours outlives its schedule */
        [PRUNE_SCHEDULES] =
                "DELETE FROM schedules WHERE id IN (SELECT s.id FROM schedules AS s"
                " WHERE s.ended_ms < ?1 AND s.ended_ms < ?2 AND NOT EXISTS (SELECT 1 FROM ticks"
                " WHERE schedule = s.id) ORDER BY s.ended_ms LIMIT 1000)",
        [PRUNE_SESSION_COMMANDS] =
                "DELETE FROM session_commands WHERE id IN (SELECT id FROM session_commands"
                " WHERE created_ms < ?1 AND created_ms < ?2 AND state <> 'queued'"
                " ORDER BY created_ms LIMIT 1000)",
        [PRUNE_SESSION_APPROVALS] =
                "DELETE FROM session_approvals WHERE id IN (SELECT id FROM session_approvals"
                " WHERE created_ms < ?1 AND created_ms < ?2 ORDER BY created_ms LIMIT 1000)",
        [PRUNE_SESSION_VIEWS] =
                "DELETE FROM session_views WHERE session IN (SELECT v.session FROM sessions AS s"
                " JOIN session_views AS v ON v.session = s.id WHERE " IS_OLD_SESSION " LIMIT 1000)",
        [PRUNE_SESSION_MESSAGES] =
                "DELETE FROM session_messages WHERE id IN (SELECT m.id FROM sessions AS s"
                " JOIN session_messages AS m ON m.session = s.id WHERE " IS_OLD_SESSION
                " LIMIT 1000)",
        [PRUNE_SESSIONS] = "DELETE FROM sessions WHERE id IN (SELECT s.id FROM sessions AS s"
                           " WHERE " IS_OLD_SESSION
                           " AND NOT EXISTS (SELECT 1 FROM session_views WHERE session = s.id)"
                           " AND NOT EXISTS (SELECT 1 FROM session_messages WHERE session = s.id)"
                           " ORDER BY s.last_event_ms LIMIT 1000)",
        [PRUNE_AGENT_SESSIONS] =
                "DELETE FROM agent_sessions WHERE id IN (SELECT id FROM agent_sessions"
                " WHERE used_ms < ?1 AND used_ms < ?2 ORDER BY used_ms LIMIT 1000)",
        [PRUNE_A2A_TURNS] = "DELETE FROM a2a_turns WHERE turn IN (SELECT turn FROM a2a_turns"
                            " WHERE used_ms < ?1 AND used_ms < ?2 ORDER BY used_ms LIMIT 1000)",
        [PRUNE_STEPS] = "DELETE FROM steps WHERE id IN " OLDEST_LINES("steps", "id"),
};

int64_t prune_row_delete(struct store_tx *tx, enum prune_table table, int64_t before_ms,
                         int64_t future_ms, struct error *err)
{
        return sql_update(tx, err, statements[table], SQL_INT(before_ms), SQL_INT(future_ms));
}
