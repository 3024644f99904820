/* Copies of a store that is in use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/fault_map.h"
#include "../lib/scratch.h"
#include "../lib/store_rig.h"
#include "base/mem.h"
#include "store/store_driver.h"

struct copy {
        int completed;
        int last_percent;
        struct error err;
        struct store_rig *r;
        struct rig_number *more; /* written while the copy runs */
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
        return rig_number_put(tx, ((struct copy *)arg)->more, err);
}

/* Writes one number after the other until the copy is done. */
static void on_more(void *arg, const struct error *err)
{
        struct copy *c = arg;

        assert_null(err);
        if (c->completed || c->written++ >= 2000)
                return;
        c->more->n++;
        store_write(c->r->store, put_more, on_more, c);
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
        struct store_rig *r = *state;
        struct rig_number more = { .n = 1000000 };
        struct copy c = { .r = r, .more = &more };
        char *path = scratch_path(r->dir, "copy.db");
        char text[16];
        int64_t rows;

        store_rig_open(r);
        store_rig_fill(r, 0, 20000);
        store_backup(r->store, path, on_progress, on_copied, &c);
        assert_int_equal(c.completed, 0);
        store_write(r->store, put_more, on_more, &c);
        store_rig_run(r);
        assert_int_equal(c.completed, 1);
        assert_string_equal(c.err.text, "");
        assert_int_equal(c.last_percent, 100);
        rows = ask_file(path, "SELECT count(*) FROM numbers", NULL, 0);
        assert_true(rows >= 20000 && rows <= store_rig_count(r));
        ask_file(path, "PRAGMA integrity_check", text, sizeof(text));
        assert_string_equal(text, "ok");
        free(path);
}

static void a_backup_never_overwrites(void **state)
{
        struct store_rig *r = *state;
        struct copy c = { 0 };
        char *path = scratch_path(r->dir, "main.db");

        store_rig_open(r);
        store_backup(r->store, path, NULL, on_copied, &c);
        store_rig_run(r);
        assert_int_equal(c.completed, 1);
        assert_int_equal(c.err.kind, ERR_CONFLICT);
        free(path);
}

static void closing_cancels_a_running_backup_cleanly(void **state)
{
        struct store_rig *r = *state;
        struct copy c = { 0 };
        char *path = scratch_path(r->dir, "copy.db");
        char text[16];

        store_rig_open(r);
        store_rig_fill(r, 0, 20000);
        store_backup(r->store, path, on_progress, on_copied, &c);
        store_rig_close(r);
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
        struct store_rig *r = *state;
        struct copy c = { 0 };
        char *from = scratch_path(r->dir, "copy.db");
        char *to = scratch_path(r->dir, "main.db");

        store_rig_open(r);
        store_rig_fill(r, 0, 100);
        store_backup(r->store, from, NULL, on_copied, &c);
        store_rig_run(r);
        store_rig_close(r);
        assert_int_equal(rename(from, to), 0);
        store_rig_open(r);
        assert_int_equal(store_rig_count(r), 100);
        store_rig_fill(r, 100, 100);
        assert_int_equal(store_rig_count(r), 200);
        free(from);
        free(to);
}

#ifdef DRAGOMAN_FAULTS

static struct fault_control *control; /* mapped before the first store is opened */

static void a_backup_to_a_full_disk_leaves_no_file(void **state)
{
        struct store_rig *r = *state;
        struct copy c = { 0 };
        char *path = scratch_path(r->dir, "copy.db");

        store_rig_open(r);
        store_rig_fill(r, 0, 1000);
        control->disk_full = 1;
        store_backup(r->store, path, NULL, on_copied, &c);
        store_rig_run(r);
        control->disk_full = 0;
        assert_int_equal(c.completed, 1);
        assert_int_equal(c.err.kind, ERR_FULL);
        assert_int_equal(access(path, F_OK), -1);
        free(path);
}

#endif

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, store_rig_setup, store_rig_teardown)

/* The name of the part was once "PATH.part-PID": a link of that name chose the file written. */
static void a_part_file_follows_no_link(void **state)
{
        struct store_rig *r = *state;
        char *to = scratch_path(r->dir, "copy.db"), *victim = scratch_path(r->dir, "victim");
        char *part = mem_printf("%s.part-%d", to, (int)getpid()), word[8] = "";
        struct copy c = { .r = r };
        FILE *f = fopen(victim, "w");

        assert_non_null(f);
        fputs("mine", f);
        fclose(f);
        assert_int_equal(symlink(victim, part), 0);
        store_rig_open(r);
        store_backup(r->store, to, NULL, on_copied, &c);
        store_rig_run(r);
        assert_int_equal(c.completed, 1);
        assert_int_equal(c.err.kind, ERR_NONE);
        f = fopen(victim, "r");
        assert_non_null(f);
        assert_non_null(fgets(word, sizeof(word), f));
        fclose(f);
        assert_string_equal(word, "mine");
        assert_int_equal(unlink(part), 0);
        free(part);
        free(victim);
        free(to);
}

/* The part of a copy that has begun; yours to free. */
static char *find_part(const char *to)
{
        char *pattern = mem_printf("%s.part-*", to), *path;
        glob_t found;

        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        assert_int_equal(found.gl_pathc, 1);
        path = mem_strdup(found.gl_pathv[0]);
        globfree(&found);
        free(pattern);
        return path;
}

static void a_part_that_was_exchanged_is_given_up(void **state)
{
        struct store_rig *r = *state;
        char *to = scratch_path(r->dir, "copy.db"), *victim = scratch_path(r->dir, "victim");
        char *first, *second;
        struct error err = { 0 };
        struct store_conn *conn;
        void *copy = NULL;
        int percent, rc;

        store_rig_open(r);
        store_rig_fill(r, 0, 100);
        conn = store_sqlite.open(&r->options, STORE_READ, &err);
        assert_non_null(conn);
        assert_int_equal(conn->driver->backup_step(conn, to, &copy, &percent, &err), 1);
        first = find_part(to);
        conn->driver->backup_abort(conn, &copy);
        assert_int_equal(access(first, F_OK), -1);
        /* nobody can know the name before */
        assert_int_equal(conn->driver->backup_step(conn, to, &copy, &percent, &err), 1);
        second = find_part(to);
        assert_string_not_equal(first, second);
        assert_int_equal(rename(second, victim), 0);
        assert_int_equal(symlink(victim, second), 0);
        while ((rc = conn->driver->backup_step(conn, to, &copy, &percent, &err)) == 1)
                ;
        assert_int_equal(rc, -1);
        assert_int_equal(err.kind, ERR_REFUSED);
        assert_int_equal(access(to, F_OK), -1);
        conn->driver->close(conn);
        free(second);
        free(first);
        free(victim);
        free(to);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                CASE(a_backup_while_writing_is_a_consistent_copy),
                CASE(a_backup_never_overwrites),
                CASE(a_part_file_follows_no_link),
                CASE(a_part_that_was_exchanged_is_given_up),
                CASE(closing_cancels_a_running_backup_cleanly),
                CASE(a_store_can_be_restored_from_its_backup),
#ifdef DRAGOMAN_FAULTS
                CASE(a_backup_to_a_full_disk_leaves_no_file),
#endif
        };

#ifdef DRAGOMAN_FAULTS
        control = fault_map();
#endif
        return cmocka_run_group_tests(tests, NULL, NULL);
}
