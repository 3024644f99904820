/* The store: group commit, completions, reading, opening and closing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/gate.h"
#include "../lib/scratch.h"
#include "../lib/store_rig.h"
#include "store/sql.h"

/* --- writing and reading --- */

static void completions_run_on_the_loop_in_order(void **state)
{
        struct store_rig *r = *state;
        struct rig_number p[500];
        int clock = 0;

        store_rig_open(r);
        for (int i = 0; i < 500; i++) {
                p[i] = (struct rig_number){ .n = i, .clock = &clock };
                rig_number_write(r, &p[i]);
                assert_int_equal(p[i].completed, 0);
        }
        store_rig_run(r);
        for (int i = 0; i < 500; i++) {
                assert_int_equal(p[i].completed, 1);
                assert_int_equal(p[i].err.kind, ERR_NONE);
                assert_int_equal(p[i].order, i + 1);
        }
        assert_int_equal(store_rig_count(r), 500);
}

static void queued_writes_share_one_commit(void **state)
{
        struct store_rig *r = *state;
        struct rig_number p[300];
        struct store_health before, waiting, after;
        struct gate g = { 0 };

        store_rig_open(r);
        gate_close(&g, r->store);
        store_health(r->store, &before);
        for (int i = 0; i < 300; i++) {
                p[i] = (struct rig_number){ .n = i };
                rig_number_write(r, &p[i]);
        }
        store_health(r->store, &waiting);
        assert_int_equal(waiting.pending, 301);
        gate_open(&g);
        store_rig_run(r);
        store_health(r->store, &after);
        assert_true(after.ok);
        assert_int_equal(after.writes, before.writes + 301);
        /* the gate may have been taken alone or together with some of the first writes */
        assert_true(after.commits - before.commits <= 2);
        assert_int_equal(after.queued + after.pending, 0);
}

static void a_batch_never_exceeds_its_limit(void **state)
{
        struct store_rig *r = *state;
        struct rig_number p[100];
        struct store_health h;
        struct gate g = { 0 };

        r->options.max_batch = 10;
        store_rig_open(r);
        gate_close(&g, r->store);
        for (int i = 0; i < 100; i++) {
                p[i] = (struct rig_number){ .n = i };
                rig_number_write(r, &p[i]);
        }
        gate_open(&g);
        store_rig_run(r);
        store_health(r->store, &h);
        assert_true(h.commits >= 10);
        assert_int_equal(store_rig_count(r), 100);
}

static void a_failing_write_does_not_affect_its_batch(void **state)
{
        struct store_rig *r = *state;
        struct rig_number p[50];
        struct gate g = { 0 };
        int clock = 0;

        store_rig_open(r);
        gate_close(&g, r->store);
        for (int i = 0; i < 50; i++) {
                p[i] = (struct rig_number){
                        .n = i, .refuse = i % 7 == 3, .bad_statement = i % 11 == 5, .clock = &clock
                };
                rig_number_write(r, &p[i]);
        }
        gate_open(&g);
        store_rig_run(r);
        for (int i = 0; i < 50; i++) {
                assert_int_equal(p[i].completed, 1);
                assert_int_equal(p[i].order, i + 1);
                if (i % 11 == 5)
                        assert_int_not_equal(p[i].err.kind, ERR_NONE);
                else
                        assert_int_equal(p[i].err.kind, i % 7 == 3 ? ERR_INVALID : ERR_NONE);
        }
        assert_int_equal(store_rig_count(r), 39);
}

static void a_repeated_function_has_its_effect_once(void **state)
{
        struct store_rig *r = *state;
        struct rig_number good = { .n = 1 }, bad = { .n = 2, .refuse = true };
        struct gate g = { 0 };

        store_rig_open(r);
        gate_close(&g, r->store);
        rig_number_write(r, &good);
        rig_number_write(r, &bad);
        gate_open(&g);
        store_rig_run(r);
        assert_true(good.runs >= 1);
        assert_int_equal(good.err.kind, ERR_NONE);
        assert_int_equal(bad.err.kind, ERR_INVALID);
        assert_string_equal(bad.err.text, "no 2 today");
        assert_int_equal(store_rig_count(r), 1);
}

static void a_broken_constraint_is_a_conflict(void **state)
{
        struct store_rig *r = *state;
        struct rig_number p = { .n = 1 };
        struct error err = { 0 };

        store_rig_open(r);
        assert_int_equal(store_write_now(r->store, rig_number_put, &p, &err), 0);
        assert_int_equal(store_write_now(r->store, rig_number_put, &p, &err), -1);
        assert_int_equal(err.kind, ERR_CONFLICT);
        assert_int_equal(store_rig_count(r), 1);
}

static int misspelt(struct store_tx *tx, void *arg, struct error *err)
{
        (void)arg;
        return sql_exec(tx, err, "INSERT INTO nowhere(n) VALUES(?1)", SQL_INT(1));
}

static int insert_twice(struct store_tx *tx, void *arg, struct error *err)
{
        int64_t *key = arg;

        for (int i = 0; i < 2; i++)
                if (sql_insert(tx, key, err,
                               "INSERT INTO numbers(n, note) VALUES(?1, 'a note')"
                               " ON CONFLICT DO NOTHING",
                               SQL_INT(41)) != (i == 0))
                        return error_set(err, ERR_INTERNAL, "insert %d", i);
        return 0;
}

static void an_insert_returns_its_key_and_whether_it_was_new(void **state)
{
        struct store_rig *r = *state;
        struct error err = { 0 };
        int64_t key = 0;

        store_rig_open(r);
        assert_int_equal(store_write_now(r->store, insert_twice, &key, &err), 0);
        assert_int_equal(key, 41);
        assert_int_equal(store_rig_count(r), 1);
}

static void a_malformed_statement_fails_its_function(void **state)
{
        struct store_rig *r = *state;
        struct error err = { 0 };

        store_rig_open(r);
        assert_int_equal(store_write_now(r->store, misspelt, NULL, &err), -1);
        assert_int_equal(err.kind, ERR_INTERNAL);
        assert_non_null(strstr(err.text, "no such table"));
}

static void a_full_queue_refuses_by_the_completion(void **state)
{
        struct store_rig *r = *state;
        struct rig_number p[20];
        struct gate g = { 0 };
        int refused = 0;

        r->options.max_queue = 8;
        store_rig_open(r);
        gate_close(&g, r->store);
        for (int i = 0; i < 20; i++) {
                p[i] = (struct rig_number){ .n = i };
                rig_number_write(r, &p[i]);
                assert_int_equal(p[i].completed, 0);
        }
        gate_open(&g);
        store_rig_run(r);
        for (int i = 0; i < 20; i++) {
                assert_int_equal(p[i].completed, 1);
                if (p[i].err.kind == ERR_LIMIT)
                        refused++;
        }
        assert_int_equal(refused, 13);
        assert_int_equal(store_rig_count(r), 7);
}

static int read_value(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_stmt *s = sql_query(
                tx, "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?5, CAST(?4 AS BIGINT), ?1", SQL_INT(INT64_MIN),
                SQL_REAL(0.5), SQL_TEXTN("abc", 2), SQL_TEXT(NULL), SQL_INT(7), SQL_REF(0));
        const char *text, *null, *ref;
        int64_t number, none;
        double real;
        bool yes;
        int small;
        char *copy;

        (void)arg;
        assert_int_equal(sql_next(s, err), 1);
        sql_read(s, OUT_INT(&number), OUT_REAL(&real), OUT_TEXT(&text), OUT_TEXT(&null),
                 OUT_INT32(&small), OUT_TEXT(&ref), OUT_BOOL(&yes), OUT_INT(&none), OUT_DUP(&copy));
        assert_true(number == INT64_MIN);
        assert_true(real == 0.5);
        assert_string_equal(text, "ab");
        assert_null(null);
        assert_int_equal(small, 7);
        assert_null(ref);
        assert_true(yes);
        assert_int_equal(none, 0);
        assert_string_equal(copy, "-9223372036854775808");
        free(copy);
        assert_int_equal(sql_next(s, err), 0);
        /* the bindings are dropped with the last row */
        assert_int_equal(sql_next(s, err), 1);
        sql_read(s, OUT_TEXT(&text));
        assert_null(text);
        assert_int_equal(sql_number(tx, 5, &number, err, "SELECT n FROM numbers"), 0);
        assert_int_equal(number, 5);
        assert_int_equal(sql_number(tx, 6, &number, err, "SELECT max(n) FROM numbers"), 0);
        assert_int_equal(number, 6);
        return 0;
}

static void values_are_read_as_they_were_bound(void **state)
{
        struct store_rig *r = *state;
        struct error err = { 0 };

        store_rig_open(r);
        assert_int_equal(store_read_now(r->store, read_value, NULL, &err), 0);
}

static int write_on_reader(struct store_tx *tx, void *arg, struct error *err)
{
        return rig_number_put(tx, arg, err);
}

static void on_trimmed(void *done, const struct error *err)
{
        assert_int_equal(err ? err->kind : ERR_NONE, ERR_NONE);
        *(bool *)done = true;
}

static void trimming_frees_memory_and_loses_nothing(void **state)
{
        struct store_rig *r = *state;
        bool trimmed = false;
        sqlite3_int64 before;

        store_rig_open(r);
        store_rig_fill(r, 0, 2000);
        assert_int_equal(store_rig_count(r), 2000);
        before = sqlite3_memory_used();
        store_trim(r->store, on_trimmed, &trimmed);
        store_rig_run(r);
        assert_true(trimmed);
        assert_true(sqlite3_memory_used() < before);
        store_rig_fill(r, 2000, 10);
        assert_int_equal(store_rig_count(r), 2010);
}

static void the_reader_cannot_write(void **state)
{
        struct store_rig *r = *state;
        struct rig_number p = { .n = 1 };
        struct error err = { 0 };

        store_rig_open(r);
        assert_int_equal(store_read_now(r->store, write_on_reader, &p, &err), -1);
        assert_int_equal(err.kind, ERR_REFUSED);
        assert_int_equal(store_rig_count(r), 0);
}

static void closing_commits_and_completes_queued_writes(void **state)
{
        struct store_rig *r = *state;
        struct rig_number p[200];

        store_rig_open(r);
        for (int i = 0; i < 200; i++) {
                p[i] = (struct rig_number){ .n = i };
                rig_number_write(r, &p[i]);
        }
        store_rig_close(r);
        for (int i = 0; i < 200; i++) {
                assert_int_equal(p[i].completed, 1);
                assert_int_equal(p[i].err.kind, ERR_NONE);
        }
        store_rig_open(r);
        assert_int_equal(store_rig_count(r), 200);
}

struct chain {
        struct store_rig *r;
        struct rig_number first, second;
};

static void on_first(void *arg, const struct error *err)
{
        struct chain *c = arg;

        assert_null(err);
        store_write(c->r->store, rig_number_put, rig_number_done, &c->second);
}

static int put_first(struct store_tx *tx, void *arg, struct error *err)
{
        return rig_number_put(tx, &((struct chain *)arg)->first, err);
}

static void a_write_submitted_while_closing_is_refused(void **state)
{
        struct store_rig *r = *state;
        struct chain c = { .r = r, .first.n = 1, .second.n = 2 };

        store_rig_open(r);
        store_write(r->store, put_first, on_first, &c);
        store_rig_close(r);
        assert_int_equal(c.second.completed, 1);
        assert_int_equal(c.second.err.kind, ERR_CANCELLED);
}

/* --- other processes and versions --- */

static void a_second_writer_learns_which_process_has_the_store(void **state)
{
        struct store_rig *r = *state;
        struct error err = { 0 };
        char pid[16];
        struct store *first;

        store_rig_open(r);
        first = r->store;
        assert_null(store_rig_try_open(r, &err));
        r->store = first;
        assert_int_equal(err.kind, ERR_BUSY);
        snprintf(pid, sizeof(pid), "%d", (int)getpid());
        assert_non_null(strstr(err.text, pid));
}

static void a_read_only_store_works_alongside_a_writer(void **state)
{
        struct store_rig *r = *state;
        struct store_rig looker = *r;
        struct rig_number p = { .n = 1 };
        struct error err = { 0 };

        store_rig_open(r);
        assert_int_equal(store_write_now(r->store, rig_number_put, &p, &err), 0);
        looker.options.read_only = true;
        looker.loop = NULL;
        store_rig_open(&looker);
        assert_int_equal(store_rig_count(&looker), 1);
        assert_int_equal(store_write_now(looker.store, rig_number_put, &p, &err), -1);
        assert_int_equal(err.kind, ERR_REFUSED);
        store_rig_close(&looker);
}

static void opening_a_missing_store_read_only_fails(void **state)
{
        struct store_rig *r = *state;
        struct error err = { 0 };

        r->options.read_only = true;
        assert_null(store_rig_try_open(r, &err));
        assert_int_equal(err.kind, ERR_MISSING);
}

static void a_store_of_a_newer_version_is_refused(void **state)
{
        static const struct store_migration newer[] = {
                { 1, "numbers", "CREATE TABLE numbers(n INTKEY, note TEXT)" },
                { 2, "more numbers", "CREATE TABLE more(n INTKEY)" },
                { 0, NULL, NULL },
        };
        struct store_rig *r = *state;
        struct error err = { 0 };

        r->options.migrations = newer;
        store_rig_open(r);
        store_rig_close(r);
        r->options.migrations = store_rig_schema;
        assert_null(store_rig_try_open(r, &err));
        assert_int_equal(err.kind, ERR_INVALID);
        r->options.read_only = true;
        assert_null(store_rig_try_open(r, &err));
        assert_int_equal(err.kind, ERR_INVALID);
}

static void an_unknown_store_url_is_refused(void **state)
{
        struct store_rig *r = *state;
        struct error err = { 0 };

        r->options.url = "abacus";
        assert_null(store_rig_try_open(r, &err));
        assert_int_equal(err.kind, ERR_INVALID);
        r->options.url = "sqlite";
}

static void other_processes_can_detect_a_writer(void **state)
{
        struct store_rig *r = *state;
        struct store_options look = r->options;
        struct error err = { 0 };
        struct store *reader;

        assert_int_equal(store_has_writer(&r->options), 0);
        store_rig_open(r);
        assert_int_equal(store_has_writer(&r->options), 1);
        store_rig_close(r);
        assert_int_equal(store_has_writer(&r->options), 0);
        look.read_only = true;
        reader = store_open(NULL, &look, &err);
        assert_non_null(reader);
        assert_int_equal(store_has_writer(&r->options), 0);
        store_close(reader);
}

static void the_database_is_private(void **state)
{
        struct store_rig *r = *state;
        char *path = scratch_path(r->dir, "main.db");
        struct stat st;

        store_rig_open(r);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        free(path);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, store_rig_setup, store_rig_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                CASE(completions_run_on_the_loop_in_order),
                CASE(queued_writes_share_one_commit),
                CASE(a_batch_never_exceeds_its_limit),
                CASE(a_failing_write_does_not_affect_its_batch),
                CASE(a_repeated_function_has_its_effect_once),
                CASE(a_broken_constraint_is_a_conflict),
                CASE(an_insert_returns_its_key_and_whether_it_was_new),
                CASE(a_malformed_statement_fails_its_function),
                CASE(a_full_queue_refuses_by_the_completion),
                CASE(values_are_read_as_they_were_bound),
                CASE(trimming_frees_memory_and_loses_nothing),
                CASE(the_reader_cannot_write),
                CASE(closing_commits_and_completes_queued_writes),
                CASE(a_write_submitted_while_closing_is_refused),
                CASE(a_second_writer_learns_which_process_has_the_store),
                CASE(a_read_only_store_works_alongside_a_writer),
                CASE(opening_a_missing_store_read_only_fails),
                CASE(a_store_of_a_newer_version_is_refused),
                CASE(an_unknown_store_url_is_refused),
                CASE(other_processes_can_detect_a_writer),
                CASE(the_database_is_private),
        };

        /* let sqlite3_memory_used count; the store's own configuration comes too late then */
        sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 1);
        sqlite3_initialize();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
