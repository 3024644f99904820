/*
 * rows: what a test reads or changes in a store by itself. The arguments are string constants in
 * SQL that SQLite and PostgreSQL have in common; a mistake fails the test.
 *
 *     rows_count(store, "turns WHERE state = 'done'")
 *     rows_text(store, "state FROM turns WHERE id = 1")
 *     rows_update(store, "turns SET created_ms = ?1 WHERE id <= ?2", 1000, 7)
 */
#ifndef TESTS_ROWS_H
#define TESTS_ROWS_H

#include <stdint.h>

#include "store/store.h"

#define rows_count(s, from) rows_sql_number(s, "SELECT count(*) FROM " from)
/* The first row; 0 or "" when there is none. A text is valid until the next call, as below. */
#define rows_number(s, select) rows_sql_number(s, "SELECT " select)
#define rows_text(s, select)   rows_sql_text(s, "SELECT " select)
/* All rows, with ", " between. */
#define rows_list(s, select) rows_sql_list(s, "SELECT " select, NULL)
/* A member of the JSON objects in all rows, with ", " between. */
#define rows_members(s, select, member) rows_sql_list(s, "SELECT " select, member)
/* ?1 is a, ?2 is b, if they are there. */
#define rows_update(s, set, a, b) rows_sql_update(s, "UPDATE " set, a, b)
/*
 * Makes such writes fail until rows_accept, as a bad disk would; SQLite's syntax:
 *     rows_refuse_update(store, "turns WHEN NEW.state = 'running'")
 */
#define rows_refuse_insert(s, rows) rows_refuse(s, "INSERT ON " rows)
#define rows_refuse_update(s, rows) rows_refuse(s, "UPDATE ON " rows)
#define rows_refuse(s, write)                                                  \
        rows_sql_update(s,                                                     \
                        "CREATE TRIGGER refusal BEFORE " write                 \
                        " BEGIN SELECT RAISE(ABORT, 'the test refuses'); END", \
                        0, 0)
#define rows_accept(s) rows_sql_update(s, "DROP TRIGGER refusal", 0, 0)
/* Appends n events to the journal, behind the bus, or n sent deliveries, above all others. */
#define rows_add_events(s, n) \
        rows_add(s, "journal(type, stream, time_ms, payload)", "'test', 9, 0, '{}'", n)
#define rows_add_deliveries(s, n)                                                         \
        rows_add(s,                                                                       \
                 "deliveries(id, adapter, channel, kind, class, payload, state, attempt," \
                 " fence, due_ms, created_ms, trace)",                                    \
                 "1000000 + i, 'other', 'c', 'send', 0, '{}', 'sent', 1, 1, 0, 0, 't'", n)
#define rows_add(s, into, values, n)                                                   \
        rows_sql_update(s,                                                             \
                        "INSERT INTO " into " WITH RECURSIVE numbers(i) AS"            \
                        " (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < ?1)" \
                        " SELECT " values " FROM numbers",                             \
                        n, 0)

int64_t rows_sql_number(struct store *s, const char *sql);
const char *rows_sql_text(struct store *s, const char *sql);
const char *rows_sql_list(struct store *s, const char *sql, const char *member);
void rows_sql_update(struct store *s, const char *sql, int64_t a, int64_t b);

#endif
