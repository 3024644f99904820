#include "rows/trigger_log_row.h"

#include "store/sql.h"

void trigger_log_row_end(struct store_stmt *s)
{
        sql_end(s);
}

struct store_stmt *trigger_log_row_list_turns(struct store_tx *tx, int64_t limit)
{
        return sql_query(tx,
                         "SELECT adapter, channel, sender, rule, turn, time_ms FROM trigger_log"
                         " ORDER BY event DESC"
                         " LIMIT ?1",
                         SQL_INT(limit));
}

int trigger_log_row_next_turn(struct store_stmt *s, int64_t since_ms, struct trigger_turn *out,
                              struct error *err)
{
        int rc;

        while ((rc = sql_next(s, err)) == 1) {
                sql_read(s, OUT_TEXT(&out->adapter), OUT_TEXT(&out->channel),
                         OUT_TEXT(&out->sender), OUT_TEXT(&out->rule), OUT_INT(&out->turn),
                         OUT_INT(&out->time_ms));
                if (out->time_ms <= since_ms) {
                        sql_end(s);
                        return 0;
                }
                if (out->turn > 0)
                        return 1;
        }
        return rc;
}

struct store_stmt *trigger_log_row_list_reactions(struct store_tx *tx, int64_t since_ms,
                                                  int64_t limit)
{
        return sql_query(tx,
                         "SELECT j.seq, j.type, t.time_ms, j.adapter, j.channel, j.payload"
                         " FROM (SELECT event, time_ms FROM trigger_log"
                         " WHERE event_type IN ('reaction.received', 'reaction.removed')"
                         " AND turn IS NOT NULL AND time_ms > ?1"
                         " ORDER BY event DESC LIMIT ?2) AS t"
                         " JOIN journal AS j ON j.seq = t.event"
                         " ORDER BY j.seq",
                         SQL_INT(since_ms), SQL_INT(limit));
}

int trigger_log_row_next_reaction(struct store_stmt *s, struct journal_row *out, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        *out = (struct journal_row){ 0 };
        sql_read(s, OUT_INT(&out->seq), OUT_TEXT(&out->type), OUT_INT(&out->time_ms),
                 OUT_TEXT(&out->adapter), OUT_TEXT(&out->channel), OUT_TEXT(&out->payload));
        return 1;
}

struct store_stmt *trigger_log_row_list_decisions(struct store_tx *tx, int64_t since_ms)
{
        return sql_query(tx,
                         "SELECT j.seq, j.type, j.time_ms, j.adapter, j.channel, j.thread, j.trace,"
                         " j.payload, l.time_ms, l.agent, l.rule, l.reason, l.turn, t.ended_ms,"
                         " t.cost_microusd,"
                         " (SELECT d.thread FROM deliveries AS d"
                         " WHERE d.turn = t.id AND d.thread IS NOT NULL"
                         " ORDER BY d.id LIMIT 1)"
                         " FROM trigger_log AS l"
                         " JOIN journal AS j ON j.seq = l.event"
                         " LEFT JOIN turns AS t ON t.id = l.turn"
                         " WHERE l.time_ms >= ?1"
                         " ORDER BY l.event",
                         SQL_INT(since_ms));
}

int trigger_log_row_next_decision(struct store_stmt *s, struct trigger_decision *out,
                                  struct error *err)
{
        int rc = sql_next(s, err);
        struct journal_row *e = &out->event;

        if (rc != 1)
                return rc;
        *out = (struct trigger_decision){ 0 };
        sql_read(s, OUT_INT(&e->seq), OUT_TEXT(&e->type), OUT_INT(&e->time_ms),
                 OUT_TEXT(&e->adapter), OUT_TEXT(&e->channel), OUT_TEXT(&e->thread),
                 OUT_TEXT(&e->trace), OUT_TEXT(&e->payload), OUT_INT(&out->time_ms),
                 OUT_TEXT(&out->agent), OUT_TEXT(&out->rule), OUT_TEXT(&out->reason),
                 OUT_INT(&out->turn), OUT_INT(&out->ended_ms), OUT_INT(&out->cost_microusd),
                 OUT_TEXT(&out->thread));
        return 1;
}

int trigger_log_row_get_time(struct store_tx *tx, int64_t event, int64_t *time_ms,
                             struct error *err)
{
        return sql_number(tx, *time_ms, time_ms, err,
                          "SELECT time_ms FROM trigger_log"
                          " WHERE event >= ?1"
                          " ORDER BY event"
                          " LIMIT 1",
                          SQL_INT(event));
}
