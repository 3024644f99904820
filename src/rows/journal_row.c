#include "rows/journal_row.h"

#include <stddef.h>
#include <stdlib.h>

#include "store/sql.h"

/* SQL nulls are never equal, so the unique index needs a value for "no adapter". */
static const char *keyed_adapter(const char *adapter, const char *key)
{
        return key && !adapter ? "" : adapter;
}

int journal_row_insert(struct store_tx *tx, const struct journal_row *row, int64_t *seq,
                       struct error *err)
{
        return sql_insert(tx, seq, err,
                          "INSERT INTO journal("
                          " type, stream, time_ms, adapter, channel, thread, trace, key, payload)"
                          " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
                          " ON CONFLICT DO NOTHING",
                          SQL_TEXT(row->type), SQL_INT(row->stream), SQL_INT(row->time_ms),
                          SQL_TEXT(keyed_adapter(row->adapter, row->key)), SQL_TEXT(row->channel),
                          SQL_TEXT(row->thread), SQL_TEXT(row->trace), SQL_TEXT(row->key),
                          SQL_TEXT(row->payload));
}

int journal_row_find(struct store_tx *tx, const char *adapter, const char *key, int64_t *seq,
                     struct error *err)
{
        /* "key IS NOT NULL" enables the partial index */
        return sql_first(sql_query(tx,
                                   "SELECT seq FROM journal"
                                   " WHERE adapter = ?1 AND key = ?2 AND key IS NOT NULL",
                                   SQL_TEXT(keyed_adapter(adapter, key)), SQL_TEXT(key)),
                         err, OUT_INT(seq));
}

static int read_seqs(struct store_stmt *s, int64_t *seqs, int count, int max, struct error *err)
{
        int64_t seq;
        int rc;

        while ((rc = sql_next(s, err)) == 1) {
                sql_read(s, OUT_INT(&seq));
                if (count < max)
                        seqs[count++] = seq;
        }
        return rc < 0 ? -1 : count;
}

int journal_row_find_message(struct store_tx *tx, const char *id, const char *chat, int64_t newest,
                             int64_t *seqs, int max, struct error *err)
{
        /* The index begins with the adapter: skip from adapter to adapter, in any order. */
        int n = read_seqs(sql_query(tx,
                                    "WITH RECURSIVE a(name) AS ("
                                    " SELECT min(adapter) FROM journal WHERE key IS NOT NULL"
                                    " UNION ALL"
                                    " SELECT (SELECT min(adapter) FROM journal"
                                    " WHERE key IS NOT NULL AND adapter > a.name)"
                                    " FROM a WHERE a.name IS NOT NULL)"
                                    " SELECT j.seq FROM a JOIN journal j ON j.adapter = a.name"
                                    " AND j.key IN (CAST(?1 AS TEXT),"
                                    " CAST(?2 AS TEXT) || ':' || CAST(?1 AS TEXT))"
                                    " ORDER BY j.seq DESC",
                                    SQL_TEXT(id), SQL_TEXT(chat)),
                          seqs, 0, max, err);

        if (n < 0 || chat)
                return n;
        return read_seqs(sql_query(tx,
                                   "SELECT seq FROM (SELECT seq, channel, key FROM journal"
                                   " ORDER BY seq DESC LIMIT ?2) AS j"
                                   " WHERE key = channel || ':' || CAST(?1 AS TEXT)"
                                   " ORDER BY seq DESC",
                                   SQL_TEXT(id), SQL_INT(newest)),
                         seqs, n, max, err);
}

int journal_row_find_trace(struct store_tx *tx, const char *trace, int64_t newest, int64_t *seq,
                           struct error *err)
{
        return sql_first(
                sql_query(tx,
                          "SELECT seq FROM"
                          " (SELECT seq, trace FROM journal ORDER BY seq DESC LIMIT ?2) AS j"
                          " WHERE trace = ?1"
                          " ORDER BY seq LIMIT 1",
                          SQL_TEXT(trace), SQL_INT(newest)),
                err, OUT_INT(seq));
}

/* ---- reading ---- */

#define COLUMNS "seq, type, stream, time_ms, adapter, channel, thread, trace, key, payload"
#define OUT_HEAD(r)                                                                                \
        OUT_INT(&(r)->seq), OUT_TEXT(&(r)->type), OUT_INT32(&(r)->stream), OUT_INT(&(r)->time_ms), \
                OUT_TEXT(&(r)->adapter), OUT_TEXT(&(r)->channel), OUT_TEXT(&(r)->thread),          \
                OUT_TEXT(&(r)->trace), OUT_TEXT(&(r)->key)

int journal_row_next(struct store_stmt *s, struct journal_row *row, struct error *err)
{
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        *row = (struct journal_row){ 0 };
        sql_read(s, OUT_HEAD(row));
        if (row->adapter && !*row->adapter)
                row->adapter = NULL;
        return 1;
}

void journal_row_read_payload(struct store_stmt *s, struct journal_row *row)
{
        struct journal_row head;

        sql_read(s, OUT_HEAD(&head), OUT_TEXT(&row->payload));
}

int journal_row_get(struct store_tx *tx, int64_t seq, struct journal_row **out, struct error *err)
{
        static const size_t strings[] = {
                offsetof(struct journal_row, type),    offsetof(struct journal_row, adapter),
                offsetof(struct journal_row, channel), offsetof(struct journal_row, thread),
                offsetof(struct journal_row, trace),   offsetof(struct journal_row, key),
                offsetof(struct journal_row, payload),
        };
        struct store_stmt *s =
                sql_query(tx, "SELECT " COLUMNS " FROM journal WHERE seq = ?1", SQL_INT(seq));
        struct journal_row row;
        int rc = journal_row_next(s, &row, err);

        *out = NULL;
        if (rc == 1) {
                journal_row_read_payload(s, &row);
                *out = mem_dup_struct(&row, sizeof(row), strings, COUNT(strings));
        }
        sql_end(s);
        return rc;
}

struct store_stmt *journal_row_scan(struct store_tx *tx, const struct journal_range *range)
{
        struct sql_value after = SQL_INT(range->after), before = SQL_INT(range->before);

        if (range->session_trace)
                return sql_query(tx,
                                 "SELECT " COLUMNS " FROM journal"
                                 " WHERE stream = 4 AND trace = ?2 AND seq > ?1 ORDER BY seq",
                                 after, SQL_TEXT(range->session_trace));
        if (range->adapter && range->channel) {
                if (range->before > 0)
                        return sql_query(tx,
                                         "SELECT " COLUMNS " FROM journal"
                                         " WHERE stream = 0 AND adapter = ?3 AND channel = ?4"
                                         " AND seq > ?1 AND seq < ?2 ORDER BY seq DESC",
                                         after, before, SQL_TEXT(range->adapter),
                                         SQL_TEXT(range->channel));
                return sql_query(tx,
                                 "SELECT " COLUMNS " FROM journal"
                                 " WHERE stream = 0 AND adapter = ?2 AND channel = ?3"
                                 " AND seq > ?1 ORDER BY seq",
                                 after, SQL_TEXT(range->adapter), SQL_TEXT(range->channel));
        }
        if (range->before > 0)
                return sql_query(tx,
                                 "SELECT " COLUMNS " FROM journal"
                                 " WHERE seq > ?1 AND seq < ?2 ORDER BY seq DESC",
                                 after, before);
        return sql_query(tx, "SELECT " COLUMNS " FROM journal WHERE seq > ?1 ORDER BY seq", after);
}

int journal_row_bounds(struct store_tx *tx, int64_t *first, int64_t *last, struct error *err)
{
        /* two statements: for min and max together SQLite reads every row */
        if (sql_number(tx, 0, first, err, "SELECT min(seq) FROM journal") < 0)
                return -1;
        return sql_number(tx, 0, last, err, "SELECT max(seq) FROM journal");
}

int journal_row_last_of_chat(struct store_tx *tx, const char *adapter, const char *channel,
                             int64_t *seq, struct error *err)
{
        return sql_number(tx, 0, seq, err,
                          "SELECT max(seq) FROM journal"
                          " WHERE stream = 0 AND adapter = ?1 AND channel = ?2",
                          SQL_TEXT(adapter), SQL_TEXT(channel));
}

int journal_row_next_chat(struct store_tx *tx, char **adapter, char **channel, struct error *err)
{
        /* by the index of chats; TEXT compares as bytes with every driver */
        struct store_stmt *s = sql_query(tx,
                                         "SELECT adapter, channel FROM journal"
                                         " WHERE stream = 0 AND (adapter, channel) > (?1, ?2)"
                                         " ORDER BY adapter, channel LIMIT 1",
                                         SQL_TEXT(*adapter), SQL_TEXT(*channel));
        int rc = sql_next(s, err);

        if (rc != 1)
                return rc;
        free(*adapter);
        free(*channel);
        sql_read(s, OUT_DUP(adapter), OUT_DUP(channel));
        sql_end(s);
        return 1;
}

/* ---- deleting ---- */

/* The cast gives PostgreSQL the type of the other branches. */
#define IN_CUT                                                             \
        " seq > ?1 AND seq <= ?2"                                          \
        " AND time_ms < CASE stream WHEN 0 THEN CAST(?3 AS BIGINT)"        \
        " WHEN 1 THEN ?4 WHEN 2 THEN ?5 WHEN 3 THEN ?6 WHEN 4 THEN ?7"     \
        " WHEN 5 THEN ?8 WHEN 6 THEN ?9 WHEN 7 THEN ?10 ELSE ?11 END"      \
        " AND seq <= CASE stream WHEN 0 THEN CAST(?12 AS BIGINT)"          \
        " WHEN 1 THEN ?13 WHEN 2 THEN ?14 WHEN 3 THEN ?15 WHEN 4 THEN ?16" \
        " WHEN 5 THEN ?17 WHEN 6 THEN ?18 WHEN 7 THEN ?19 ELSE ?20 END"

_Static_assert(JOURNAL_STREAMS == 9, "IN_CUT names every stream");

#define EACH_STREAM(n)                                                                       \
        SQL_INT((n)[0]), SQL_INT((n)[1]), SQL_INT((n)[2]), SQL_INT((n)[3]), SQL_INT((n)[4]), \
                SQL_INT((n)[5]), SQL_INT((n)[6]), SQL_INT((n)[7]), SQL_INT((n)[8])
#define CUT_VALUES(c)                                                      \
        SQL_INT((c)->from), SQL_INT((c)->to), EACH_STREAM((c)->cutoff_ms), \
                EACH_STREAM((c)->processed)

int journal_row_count_cut(struct store_tx *tx, const struct journal_cut *cut, int64_t *out,
                          struct error *err)
{
        return sql_number(tx, 0, out, err,
                          "SELECT count(*) FROM journal WHERE" IN_CUT
                          " AND (key IS NULL OR payload <> '{}')",
                          CUT_VALUES(cut));
}

int64_t journal_row_cut(struct store_tx *tx, const struct journal_cut *cut, int64_t keys_ms,
                        struct error *err)
{
        int64_t deleted = sql_update(
                tx, err, "DELETE FROM journal WHERE" IN_CUT " AND (key IS NULL OR time_ms < ?21)",
                CUT_VALUES(cut), SQL_INT(keys_ms));
        int64_t cleared;

        if (deleted < 0)
                return -1;
        cleared = sql_update(tx, err,
                             "UPDATE journal SET payload = '{}' WHERE" IN_CUT
                             " AND key IS NOT NULL AND payload <> '{}'",
                             CUT_VALUES(cut));
        return cleared < 0 ? -1 : deleted + cleared;
}
