/*
 * The store: what was completed is there, in order, whatever happens to neighbours, disk or
 * process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/scratch.h"
#include "base/fault.h"
#include "base/mem.h"
#include "store/store.h"

static const struct store_migration numbers_only[] = {
        { 1, "numbers", "CREATE TABLE numbers(n INTKEY, note TEXT)" },
        { 0, NULL, NULL },
};

struct world {
        char *dir;
        struct loop *loop;
        struct store *store;
        struct store_options options;
};

static struct store *try_open(struct world *w, struct error *err)
{
        w->store = store_open(w->loop, &w->options, err);
        return w->store;
}

static void must_open(struct world *w)
{
        struct error err = { 0 };

        if (!try_open(w, &err))
                fail_msg("%s", err.text);
}

static void must_close(struct world *w)
{
        store_close(w->store);
        w->store = NULL;
}

static int setup(void **state)
{
        struct world *w = mem_zalloc(sizeof(*w));

        w->dir = scratch_new();
        w->loop = loop_new();
        w->options = (struct store_options){ .url = "sqlite",
                                             .dir = w->dir,
                                             .migrations = numbers_only };
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        store_close(w->store);
        loop_free(w->loop);
        scratch_free(w->dir);
        free(w);
        return 0;
}

/* --- one number written --- */

struct number {
        int64_t n;
        int runs;       /* how often the function ran */
        int completed;  /* how often the completion ran */
        bool refuse;    /* the function says no */
        bool statement; /* the statement fails, the function says yes */
        struct error err;
        int order; /* when it was completed, counted from 1 */
        int *clock;
};

static int put(struct store_tx *tx, void *arg, struct error *err)
{
        struct number *p = arg;
        struct store_stmt *s =
                store_prepare(tx, "INSERT INTO numbers(n, note) VALUES(?1, 'a note')");

        p->runs++;
        store_bind_int(s, 1, p->n);
        if (p->statement) {
                store_bind_text(s, 1, "not a number");
                store_run(s, err);
                return 0;
        }
        if (store_run(s, err) != 0)
                return -1;
        return p->refuse ? error_set(err, ERR_INVALID, "no %d today", (int)p->n) : 0;
}

static void on_put(void *arg, const struct error *err)
{
        struct number *p = arg;

        p->completed++;
        if (p->clock)
                p->order = ++*p->clock;
        if (err)
                p->err = *err;
}

static int count_numbers(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, "SELECT count(*) FROM numbers");

        if (store_step(s, err) != 1)
                return -1;
        *(int64_t *)arg = store_col_int(s, 0);
        return 0; /* leaves in the middle: the store resets */
}

static int64_t stored(struct world *w)
{
        int64_t n = -1;
        struct error err = { 0 };

        if (store_read_now(w->store, count_numbers, &n, &err) != 0)
                fail_msg("%s", err.text);
        return n;
}

static void run_until_idle(struct world *w)
{
        while (loop_step(w->loop, true))
                ;
}

/* Keeps the writer busy until the test lets it go, so that what follows becomes one batch. */
struct gate {
        int pipe[2];
        bool passed; /* the function may run more than once */
};

static int wait_at_gate(struct store_tx *tx, void *arg, struct error *err)
{
        struct gate *g = arg;
        char c;

        (void)tx;
        if (!g->passed && read(g->pipe[0], &c, 1) != 1)
                return error_set(err, ERR_IO, "the gate broke");
        g->passed = true;
        return 0;
}

static void gate_close(struct world *w, struct gate *g)
{
        assert_int_equal(pipe(g->pipe), 0);
        g->passed = false;
        store_write(w->store, wait_at_gate, NULL, g);
}

static void gate_open(struct gate *g)
{
        assert_int_equal(write(g->pipe[1], "x", 1), 1);
}

static void gate_release(struct gate *g)
{
        close(g->pipe[0]);
        close(g->pipe[1]);
}

/* --- ordinary days --- */

static void completions_come_on_the_loop_in_the_order_of_writes(void **state)
{
        struct world *w = *state;
        struct number p[500];
        int clock = 0;

        must_open(w);
        for (int i = 0; i < 500; i++) {
                p[i] = (struct number){ .n = i, .clock = &clock };
                store_write(w->store, put, on_put, &p[i]);
                assert_int_equal(p[i].completed, 0);
        }
        run_until_idle(w);
        for (int i = 0; i < 500; i++) {
                assert_int_equal(p[i].completed, 1);
                assert_int_equal(p[i].err.kind, ERR_NONE);
                assert_int_equal(p[i].order, i + 1);
        }
        assert_int_equal(stored(w), 500);
}

static void writes_that_wait_share_one_commit(void **state)
{
        struct world *w = *state;
        struct number p[300];
        struct store_health before, after;
        struct gate g;

        must_open(w);
        gate_close(w, &g);
        store_health(w->store, &before);
        for (int i = 0; i < 300; i++) {
                p[i] = (struct number){ .n = i };
                store_write(w->store, put, on_put, &p[i]);
        }
        gate_open(&g);
        run_until_idle(w);
        store_health(w->store, &after);
        assert_true(after.ok);
        assert_int_equal(after.writes, before.writes + 301);
        /* the gate may have been taken alone or together with some of the first writes */
        assert_true(after.commits - before.commits <= 2);
        assert_int_equal(after.queued, 0);
        gate_release(&g);
}

static void a_batch_is_never_larger_than_the_limit(void **state)
{
        struct world *w = *state;
        struct number p[100];
        struct store_health h;
        struct gate g;

        w->options.max_batch = 10;
        must_open(w);
        gate_close(w, &g);
        for (int i = 0; i < 100; i++) {
                p[i] = (struct number){ .n = i };
                store_write(w->store, put, on_put, &p[i]);
        }
        gate_open(&g);
        run_until_idle(w);
        store_health(w->store, &h);
        assert_true(h.commits >= 10);
        assert_int_equal(stored(w), 100);
        gate_release(&g);
}

static void a_failing_write_harms_no_neighbour_and_keeps_the_order(void **state)
{
        struct world *w = *state;
        struct number p[50];
        struct gate g;
        int clock = 0;

        must_open(w);
        gate_close(w, &g);
        for (int i = 0; i < 50; i++) {
                p[i] = (struct number){
                        .n = i, .refuse = i % 7 == 3, .statement = i % 11 == 5, .clock = &clock
                };
                store_write(w->store, put, on_put, &p[i]);
        }
        gate_open(&g);
        run_until_idle(w);
        gate_release(&g);
        for (int i = 0; i < 50; i++) {
                assert_int_equal(p[i].completed, 1);
                assert_int_equal(p[i].order, i + 1);
                if (i % 11 == 5)
                        assert_int_not_equal(p[i].err.kind, ERR_NONE);
                else
                        assert_int_equal(p[i].err.kind, i % 7 == 3 ? ERR_INVALID : ERR_NONE);
        }
        assert_int_equal(stored(w), 39);
}

static void a_repeated_function_has_its_effect_once(void **state)
{
        struct world *w = *state;
        struct number good = { .n = 1 }, bad = { .n = 2, .refuse = true };
        struct gate g;

        must_open(w);
        gate_close(w, &g);
        store_write(w->store, put, on_put, &good);
        store_write(w->store, put, on_put, &bad);
        gate_open(&g);
        run_until_idle(w);
        gate_release(&g);
        assert_true(good.runs >= 1);
        assert_int_equal(good.err.kind, ERR_NONE);
        assert_int_equal(bad.err.kind, ERR_INVALID);
        assert_string_equal(bad.err.text, "no 2 today");
        assert_int_equal(stored(w), 1);
}

static void a_broken_constraint_is_a_conflict(void **state)
{
        struct world *w = *state;
        struct number p = { .n = 1 };
        struct error err = { 0 };

        must_open(w);
        assert_int_equal(store_write_now(w->store, put, &p, &err), 0);
        assert_int_equal(store_write_now(w->store, put, &p, &err), -1);
        assert_int_equal(err.kind, ERR_CONFLICT);
        assert_int_equal(stored(w), 1);
}

static int misspelt(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, "INSERT INTO nowhere(n) VALUES(?1)");

        (void)arg;
        store_bind_int(s, 1, 1);
        return store_run(s, err);
}

static int insert_twice(struct store_tx *tx, void *arg, struct error *err)
{
        int64_t *key = arg;

        for (int i = 0; i < 2; i++) {
                struct store_stmt *s = store_prepare(
                        tx,
                        "INSERT INTO numbers(n, note) VALUES(?1, 'a note') ON CONFLICT DO NOTHING");

                store_bind_int(s, 1, 41);
                if (store_insert(s, key, err) != (i == 0))
                        return error_set(err, ERR_INTERNAL, "insert %d", i);
        }
        return 0;
}

static void an_insert_tells_its_key_and_whether_it_was_new(void **state)
{
        struct world *w = *state;
        struct error err = { 0 };
        int64_t key = 0;

        must_open(w);
        assert_int_equal(store_write_now(w->store, insert_twice, &key, &err), 0);
        assert_int_equal(key, 41);
        assert_int_equal(stored(w), 1);
}

static void a_statement_that_cannot_be_prepared_is_an_error_of_its_function(void **state)
{
        struct world *w = *state;
        struct error err = { 0 };

        must_open(w);
        assert_int_equal(store_write_now(w->store, misspelt, NULL, &err), -1);
        assert_int_equal(err.kind, ERR_INTERNAL);
        assert_non_null(strstr(err.text, "no such table"));
}

static void a_full_queue_refuses_later_and_on_the_loop(void **state)
{
        struct world *w = *state;
        struct number p[20];
        struct gate g;
        int refused = 0;

        w->options.max_queue = 8;
        must_open(w);
        gate_close(w, &g);
        for (int i = 0; i < 20; i++) {
                p[i] = (struct number){ .n = i };
                store_write(w->store, put, on_put, &p[i]);
                assert_int_equal(p[i].completed, 0);
        }
        gate_open(&g);
        run_until_idle(w);
        gate_release(&g);
        for (int i = 0; i < 20; i++) {
                assert_int_equal(p[i].completed, 1);
                if (p[i].err.kind == ERR_LIMIT)
                        refused++;
        }
        assert_int_equal(refused, 13);
        assert_int_equal(stored(w), 7);
}

static int read_value(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, "SELECT ?1, ?2, ?3, ?4");

        (void)arg;
        store_bind_int(s, 1, INT64_MIN);
        store_bind_real(s, 2, 0.5);
        store_bind_textn(s, 3, "a\0b", 3);
        store_bind_null(s, 4);
        assert_int_equal(store_step(s, err), 1);
        assert_true(store_col_int(s, 0) == INT64_MIN);
        assert_true(store_col_real(s, 1) == 0.5);
        assert_int_equal(store_col_size(s, 2), 3);
        assert_memory_equal(store_col_text(s, 2), "a\0b", 3);
        assert_true(store_col_null(s, 3));
        assert_false(store_col_null(s, 2));
        assert_int_equal(store_step(s, err), 0);
        /* its bindings are gone */
        assert_int_equal(store_step(s, err), 1);
        assert_true(store_col_null(s, 0));
        return 0;
}

static void values_come_back_as_they_were_bound(void **state)
{
        struct world *w = *state;
        struct error err = { 0 };

        must_open(w);
        assert_int_equal(store_read_now(w->store, read_value, NULL, &err), 0);
}

static int write_on_reader(struct store_tx *tx, void *arg, struct error *err)
{
        return put(tx, arg, err);
}

static void the_reader_cannot_write(void **state)
{
        struct world *w = *state;
        struct number p = { .n = 1 };
        struct error err = { 0 };

        must_open(w);
        assert_int_equal(store_read_now(w->store, write_on_reader, &p, &err), -1);
        assert_int_equal(err.kind, ERR_REFUSED);
        assert_int_equal(stored(w), 0);
}

static void closing_commits_what_is_queued_and_completes_it(void **state)
{
        struct world *w = *state;
        struct number p[200];

        must_open(w);
        for (int i = 0; i < 200; i++) {
                p[i] = (struct number){ .n = i };
                store_write(w->store, put, on_put, &p[i]);
        }
        must_close(w);
        for (int i = 0; i < 200; i++) {
                assert_int_equal(p[i].completed, 1);
                assert_int_equal(p[i].err.kind, ERR_NONE);
        }
        must_open(w);
        assert_int_equal(stored(w), 200);
}

struct chain {
        struct world *w;
        struct number first, second;
};

static void on_first(void *arg, const struct error *err)
{
        struct chain *c = arg;

        assert_null(err);
        store_write(c->w->store, put, on_put, &c->second);
}

static int put_first(struct store_tx *tx, void *arg, struct error *err)
{
        return put(tx, &((struct chain *)arg)->first, err);
}

static void a_write_asked_for_while_closing_is_refused(void **state)
{
        struct world *w = *state;
        struct chain c = { .w = w, .first.n = 1, .second.n = 2 };

        must_open(w);
        store_write(w->store, put_first, on_first, &c);
        must_close(w);
        assert_int_equal(c.second.completed, 1);
        assert_int_equal(c.second.err.kind, ERR_CANCELLED);
}

/* --- other processes, other versions --- */

static void a_second_writer_is_told_who_has_the_store(void **state)
{
        struct world *w = *state;
        struct error err = { 0 };
        char pid[16];
        struct store *first;

        must_open(w);
        first = w->store;
        assert_null(try_open(w, &err));
        w->store = first;
        assert_int_equal(err.kind, ERR_BUSY);
        snprintf(pid, sizeof(pid), "%d", (int)getpid());
        assert_non_null(strstr(err.text, pid));
}

static void a_read_only_store_looks_beside_a_running_writer(void **state)
{
        struct world *w = *state;
        struct world looker = *w;
        struct number p = { .n = 1 };
        struct error err = { 0 };

        must_open(w);
        assert_int_equal(store_write_now(w->store, put, &p, &err), 0);
        looker.options.read_only = true;
        looker.loop = NULL;
        must_open(&looker);
        assert_int_equal(stored(&looker), 1);
        assert_int_equal(store_write_now(looker.store, put, &p, &err), -1);
        assert_int_equal(err.kind, ERR_REFUSED);
        must_close(&looker);
}

static void a_read_only_store_that_does_not_exist_is_missing(void **state)
{
        struct world *w = *state;
        struct error err = { 0 };

        w->options.read_only = true;
        assert_null(try_open(w, &err));
        assert_int_equal(err.kind, ERR_MISSING);
}

static void a_store_of_a_newer_version_is_refused(void **state)
{
        static const struct store_migration newer[] = {
                { 1, "numbers", "CREATE TABLE numbers(n INTKEY, note TEXT)" },
                { 2, "more numbers", "CREATE TABLE more(n INTKEY)" },
                { 0, NULL, NULL },
        };
        struct world *w = *state;
        struct error err = { 0 };

        w->options.migrations = newer;
        must_open(w);
        must_close(w);
        w->options.migrations = numbers_only;
        assert_null(try_open(w, &err));
        assert_int_equal(err.kind, ERR_INVALID);
        w->options.read_only = true;
        assert_null(try_open(w, &err));
        assert_int_equal(err.kind, ERR_INVALID);
}

static void an_unknown_kind_of_store_is_refused(void **state)
{
        struct world *w = *state;
        struct error err = { 0 };

        w->options.url = "abacus";
        assert_null(try_open(w, &err));
        assert_int_equal(err.kind, ERR_INVALID);
        w->options.url = "sqlite";
}

static void whether_somebody_writes_is_known_from_outside(void **state)
{
        struct world *w = *state;
        struct store_options look = w->options;
        struct error err = { 0 };
        struct store *reader;

        assert_int_equal(store_has_writer(&w->options), 0);
        must_open(w);
        assert_int_equal(store_has_writer(&w->options), 1);
        must_close(w);
        assert_int_equal(store_has_writer(&w->options), 0);
        look.read_only = true;
        reader = store_open(NULL, &look, &err);
        assert_non_null(reader);
        assert_int_equal(store_has_writer(&w->options), 0);
        store_close(reader);
}

static void the_database_is_private(void **state)
{
        struct world *w = *state;
        char *path = scratch_path(w->dir, "main.db");
        struct stat st;

        must_open(w);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        free(path);
}

/* --- damage --- */

static void fill(struct world *w, int64_t from, int n)
{
        struct number *p = mem_array((size_t)n, sizeof(*p));

        for (int i = 0; i < n; i++) {
                p[i].n = from + i;
                store_write(w->store, put, on_put, &p[i]);
        }
        run_until_idle(w);
        for (int i = 0; i < n; i++)
                assert_int_equal(p[i].err.kind, ERR_NONE);
        free(p);
}

static void overwrite(struct world *w, off_t at, size_t n)
{
        char *path = scratch_path(w->dir, "main.db");
        char *junk = mem_alloc(n);
        int fd = open(path, O_WRONLY);

        memset(junk, 0x5a, n);
        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, junk, n, at), n);
        close(fd);
        free(junk);
        free(path);
}

static void must_be_corrupt(struct world *w)
{
        struct error err = { 0 };

        assert_null(try_open(w, &err));
        assert_int_equal(err.kind, ERR_CORRUPT);
        assert_non_null(strstr(err.text, "main.db"));
        assert_non_null(strstr(err.text, "backup"));
}

static void a_file_that_is_no_database_is_called_damaged(void **state)
{
        struct world *w = *state;

        must_open(w);
        fill(w, 0, 10);
        must_close(w);
        overwrite(w, 0, 100);
        must_be_corrupt(w);
}

static void damage_in_the_middle_is_found_at_start(void **state)
{
        struct world *w = *state;

        must_open(w);
        fill(w, 0, 5000);
        must_close(w);
        overwrite(w, (off_t)4096 * 5, 4096 * 3);
        must_be_corrupt(w);
}

static void a_file_cut_short_is_called_damaged(void **state)
{
        struct world *w = *state;
        char *path = scratch_path(w->dir, "main.db");

        must_open(w);
        fill(w, 0, 5000);
        must_close(w);
        assert_int_equal(truncate(path, 4096 * 4), 0);
        must_be_corrupt(w);
        free(path);
}

static int sum(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, "SELECT sum(n) FROM numbers WHERE note <> ''");

        if (store_step(s, err) != 1)
                return -1;
        *(int64_t *)arg = store_col_int(s, 0);
        return 0;
}

static void damage_that_a_reader_finds_ends_all_writing(void **state)
{
        struct world *w = *state;
        struct number p = { .n = 100000 };
        struct store_health health;
        struct error err = { 0 };
        int64_t total;

        must_open(w);
        fill(w, 0, 5000);
        must_close(w);
        must_open(w);
        overwrite(w, (off_t)4096 * 5, 4096 * 3); /* while it runs */
        assert_int_equal(store_read_now(w->store, sum, &total, &err), -1);
        assert_int_equal(err.kind, ERR_CORRUPT);
        assert_int_equal(store_write_now(w->store, put, &p, &err), -1);
        assert_int_equal(err.kind, ERR_CORRUPT);
        assert_int_equal(p.runs, 0);
        store_health(w->store, &health);
        assert_false(health.ok);
        assert_non_null(strstr(health.why, "is damaged"));
        must_close(w);
        must_be_corrupt(w);
}

static void a_check_reports_damage_the_start_skipped(void **state)
{
        struct world *w = *state;
        struct store_options look = w->options;
        struct store_health health;
        struct store *reader;
        struct error err = { 0 };

        must_open(w);
        fill(w, 0, 5000);
        assert_int_equal(store_check(w->store, &err), 0);
        store_health(w->store, &health);
        assert_string_equal(health.driver, "sqlite");
        must_close(w);
        overwrite(w, (off_t)4096 * 5, 4096 * 3);
        look.read_only = look.skip_check = true;
        reader = store_open(NULL, &look, &err);
        assert_non_null(reader);
        assert_int_equal(store_check(reader, &err), -1);
        assert_int_equal(err.kind, ERR_CORRUPT);
        store_close(reader);
}

static int call_it_damaged(struct store_tx *tx, void *arg, struct error *err)
{
        (void)tx;
        (void)arg;
        return error_set(err, ERR_CORRUPT, "this row makes no sense");
}

static void a_row_that_makes_no_sense_is_no_damage(void **state)
{
        struct world *w = *state;

        must_open(w);
        assert_int_equal(store_write_now(w->store, call_it_damaged, NULL, NULL), -1);
        fill(w, 0, 10);
}

/* --- backup --- */

struct copy {
        int completed;
        int last_percent;
        struct error err;
        struct world *w;
        struct number *more; /* written while the copy runs */
        int written;
};

static void on_progress(void *arg, int percent)
{
        struct copy *c = arg;

        assert_true(percent >= c->last_percent && percent <= 100);
        c->last_percent = percent;
}

static void on_copied(void *arg, const struct error *err)
{
        struct copy *c = arg;

        c->completed++;
        if (err)
                c->err = *err;
}

static int put_more(struct store_tx *tx, void *arg, struct error *err)
{
        return put(tx, ((struct copy *)arg)->more, err);
}

/* One write after the other until the copy is done. */
static void on_more(void *arg, const struct error *err)
{
        struct copy *c = arg;

        assert_null(err);
        if (c->completed || c->written++ >= 2000)
                return;
        c->more->n++;
        store_write(c->w->store, put_more, on_more, c);
}

static int64_t ask_file(const char *path, const char *sql, char *text, size_t size)
{
        sqlite3 *db = NULL;
        sqlite3_stmt *s = NULL;
        int64_t n;

        assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(s), SQLITE_ROW);
        n = sqlite3_column_int64(s, 0);
        if (text)
                snprintf(text, size, "%s", (const char *)sqlite3_column_text(s, 0));
        sqlite3_finalize(s);
        sqlite3_close(db);
        return n;
}

static void a_backup_while_writing_is_a_consistent_copy(void **state)
{
        struct world *w = *state;
        struct number more = { .n = 1000000 };
        struct copy c = { .w = w, .more = &more };
        char *path = scratch_path(w->dir, "copy.db");
        char text[16];
        int64_t rows;

        must_open(w);
        fill(w, 0, 20000);
        store_backup(w->store, path, on_progress, on_copied, &c);
        assert_int_equal(c.completed, 0);
        store_write(w->store, put_more, on_more, &c);
        run_until_idle(w);
        assert_int_equal(c.completed, 1);
        assert_string_equal(c.err.text, "");
        assert_int_equal(c.last_percent, 100);
        rows = ask_file(path, "SELECT count(*) FROM numbers", NULL, 0);
        assert_true(rows >= 20000 && rows <= stored(w));
        ask_file(path, "PRAGMA integrity_check", text, sizeof(text));
        assert_string_equal(text, "ok");
        free(path);
}

static void a_backup_never_overwrites(void **state)
{
        struct world *w = *state;
        struct copy c = { 0 };
        char *path = scratch_path(w->dir, "main.db");

        must_open(w);
        store_backup(w->store, path, NULL, on_copied, &c);
        run_until_idle(w);
        assert_int_equal(c.completed, 1);
        assert_int_equal(c.err.kind, ERR_CONFLICT);
        free(path);
}

static void closing_gives_a_running_backup_up_and_leaves_nothing_half_done(void **state)
{
        struct world *w = *state;
        struct copy c = { 0 };
        char *path = scratch_path(w->dir, "copy.db");
        char text[16];

        must_open(w);
        fill(w, 0, 20000);
        store_backup(w->store, path, on_progress, on_copied, &c);
        must_close(w);
        assert_int_equal(c.completed, 1);
        if (c.err.kind == ERR_NONE) { /* it was quicker */
                ask_file(path, "PRAGMA integrity_check", text, sizeof(text));
                assert_string_equal(text, "ok");
        } else {
                assert_int_equal(c.err.kind, ERR_CANCELLED);
                assert_int_equal(access(path, F_OK), -1);
        }
        free(path);
}

static void a_store_can_be_restored_from_its_backup(void **state)
{
        struct world *w = *state;
        struct copy c = { 0 };
        char *from = scratch_path(w->dir, "copy.db");
        char *to = scratch_path(w->dir, "main.db");

        must_open(w);
        fill(w, 0, 100);
        store_backup(w->store, from, NULL, on_copied, &c);
        run_until_idle(w);
        must_close(w);
        assert_int_equal(rename(from, to), 0);
        must_open(w);
        assert_int_equal(stored(w), 100);
        fill(w, 100, 100);
        assert_int_equal(stored(w), 200);
        free(from);
        free(to);
}

/* --- the process dies --- */

/* Completed numbers are told through a pipe, as an acknowledgement would be. */
struct teller {
        struct number p;
        int fd;
        struct store *store;
};

static int put_told(struct store_tx *tx, void *arg, struct error *err)
{
        return put(tx, &((struct teller *)arg)->p, err);
}

static void on_told(void *arg, const struct error *err)
{
        struct teller *t = arg;

        if (err || write(t->fd, &t->p.n, sizeof(t->p.n)) != sizeof(t->p.n))
                _exit(1);
        t->p.n += 64;
        store_write(t->store, put_told, on_told, t);
}

/* Writes for ever; 64 in flight. */
static void child_writes(const struct store_options *options, int fd)
{
        struct loop *l = loop_new();
        struct store *s = store_open(l, options, NULL);
        struct teller t[64];

        if (!s)
                _exit(1);
        for (int i = 0; i < 64; i++) {
                t[i] = (struct teller){ .p.n = i, .fd = fd, .store = s };
                store_write(s, put_told, on_told, &t[i]);
        }
        loop_run(l);
        _exit(0);
}

static int has_number(struct store_tx *tx, void *arg, struct error *err)
{
        struct number *p = arg;
        struct store_stmt *s = store_prepare(tx, "SELECT 1 FROM numbers WHERE n = ?1");
        int rc;

        store_bind_int(s, 1, p->n);
        rc = store_step(s, err);
        p->completed = rc;
        return rc < 0 ? -1 : 0;
}

static void a_killed_writer_loses_nothing_that_was_completed(void **state)
{
        struct world *w = *state;
        int64_t told[2000];
        int fds[2];
        pid_t pid;

        assert_int_equal(pipe(fds), 0);
        pid = fork();
        if (pid == 0) {
                close(fds[0]);
                child_writes(&w->options, fds[1]);
        }
        close(fds[1]);
        for (size_t i = 0; i < 2000; i++)
                assert_int_equal(read(fds[0], &told[i], sizeof(told[i])), sizeof(told[i]));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        close(fds[0]);

        must_open(w);
        for (size_t i = 0; i < 2000; i++) {
                struct number p = { .n = told[i] };

                assert_int_equal(store_read_now(w->store, has_number, &p, NULL), 0);
                assert_int_equal(p.completed, 1);
        }
}

/* --- the disk fails --- */

#ifdef DRAGOMAN_FAULTS

static struct fault_control *control; /* mapped by main before the first store is opened */

static void trouble_is_reported_and_passes(struct world *w, uint32_t *fault, enum error_kind kind)
{
        struct number p[40];
        struct number again = { .n = 1000 };
        struct store_health h;

        must_open(w);
        fill(w, 5000, 10);
        *fault = 1;
        for (int i = 0; i < 40; i++) {
                p[i] = (struct number){ .n = i };
                store_write(w->store, put, on_put, &p[i]);
        }
        run_until_idle(w);
        for (int i = 0; i < 40; i++) {
                assert_int_equal(p[i].completed, 1);
                assert_int_equal(p[i].err.kind, kind);
        }
        store_health(w->store, &h);
        assert_false(h.ok);
        assert_true(h.failures > 0);
        assert_string_not_equal(h.why, "");
        assert_int_equal(stored(w), 10);

        *fault = 0;
        store_write(w->store, put, on_put, &again);
        run_until_idle(w);
        assert_int_equal(again.err.kind, ERR_NONE);
        store_health(w->store, &h);
        assert_true(h.ok);
        assert_string_equal(h.why, "");
        assert_int_equal(stored(w), 11);
        must_close(w);
        must_open(w);
        assert_int_equal(stored(w), 11);
}

static void a_full_disk_fails_every_write_of_the_batch_and_passes(void **state)
{
        trouble_is_reported_and_passes(*state, &control->disk_full, ERR_FULL);
}

static void a_failing_fsync_fails_every_write_of_the_batch_and_passes(void **state)
{
        trouble_is_reported_and_passes(*state, &control->fsync_fails, ERR_IO);
}

static void a_backup_to_a_full_disk_says_so_and_leaves_no_file(void **state)
{
        struct world *w = *state;
        struct copy c = { 0 };
        char *path = scratch_path(w->dir, "copy.db");

        must_open(w);
        fill(w, 0, 1000);
        control->disk_full = 1;
        store_backup(w->store, path, NULL, on_copied, &c);
        run_until_idle(w);
        control->disk_full = 0;
        assert_int_equal(c.completed, 1);
        assert_int_equal(c.err.kind, ERR_FULL);
        assert_int_equal(access(path, F_OK), -1);
        free(path);
}

static void a_store_cannot_be_made_on_a_full_disk(void **state)
{
        struct world *w = *state;
        struct error err = { 0 };

        control->disk_full = 1;
        assert_null(try_open(w, &err));
        control->disk_full = 0;
        assert_int_equal(err.kind, ERR_FULL);
        must_open(w);
}

static void map_fault_file(void)
{
        static char path[] = "/tmp/dragoman-fault-XXXXXX";
        int fd = mkstemp(path);

        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, sizeof(*control)), 0);
        control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        setenv("DRAGOMAN_FAULT_FILE", path, 1);
        fault_disk_full(); /* maps it, so that it may go */
        unlink(path);
}

#endif

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                CASE(completions_come_on_the_loop_in_the_order_of_writes),
                CASE(writes_that_wait_share_one_commit),
                CASE(a_batch_is_never_larger_than_the_limit),
                CASE(a_failing_write_harms_no_neighbour_and_keeps_the_order),
                CASE(a_repeated_function_has_its_effect_once),
                CASE(a_broken_constraint_is_a_conflict),
                CASE(an_insert_tells_its_key_and_whether_it_was_new),
                CASE(a_statement_that_cannot_be_prepared_is_an_error_of_its_function),
                CASE(a_full_queue_refuses_later_and_on_the_loop),
                CASE(values_come_back_as_they_were_bound),
                CASE(the_reader_cannot_write),
                CASE(closing_commits_what_is_queued_and_completes_it),
                CASE(a_write_asked_for_while_closing_is_refused),
                CASE(a_second_writer_is_told_who_has_the_store),
                CASE(a_read_only_store_looks_beside_a_running_writer),
                CASE(a_read_only_store_that_does_not_exist_is_missing),
                CASE(a_store_of_a_newer_version_is_refused),
                CASE(an_unknown_kind_of_store_is_refused),
                CASE(the_database_is_private),
                CASE(whether_somebody_writes_is_known_from_outside),
                CASE(a_file_that_is_no_database_is_called_damaged),
                CASE(damage_in_the_middle_is_found_at_start),
                CASE(a_file_cut_short_is_called_damaged),
                CASE(damage_that_a_reader_finds_ends_all_writing),
                CASE(a_check_reports_damage_the_start_skipped),
                CASE(a_row_that_makes_no_sense_is_no_damage),
                CASE(a_backup_while_writing_is_a_consistent_copy),
                CASE(a_backup_never_overwrites),
                CASE(closing_gives_a_running_backup_up_and_leaves_nothing_half_done),
                CASE(a_store_can_be_restored_from_its_backup),
                CASE(a_killed_writer_loses_nothing_that_was_completed),
#ifdef DRAGOMAN_FAULTS
                CASE(a_full_disk_fails_every_write_of_the_batch_and_passes),
                CASE(a_failing_fsync_fails_every_write_of_the_batch_and_passes),
                CASE(a_backup_to_a_full_disk_says_so_and_leaves_no_file),
                CASE(a_store_cannot_be_made_on_a_full_disk),
#endif
        };

#ifdef DRAGOMAN_FAULTS
        map_fault_file();
#endif
        return cmocka_run_group_tests(tests, NULL, NULL);
}
