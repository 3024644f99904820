/* A store that is damaged, killed, or on a failing disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/fault_map.h"
#include "../lib/scratch.h"
#include "../lib/store_rig.h"
#include "base/mem.h"
#include "store/sql.h"

/* --- damage --- */

static void overwrite(struct store_rig *r, off_t at, size_t n)
{
        char *path = scratch_path(r->dir, "main.db");
        char *junk = mem_alloc(n);
        int fd = open(path, O_WRONLY);

        memset(junk, 0x5a, n);
        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, junk, n, at), n);
        close(fd);
        free(junk);
        free(path);
}

static void must_be_corrupt(struct store_rig *r)
{
        struct error err = { 0 };

        assert_null(store_rig_try_open(r, &err));
        assert_int_equal(err.kind, ERR_CORRUPT);
        assert_non_null(strstr(err.text, "main.db"));
        assert_non_null(strstr(err.text, "backup"));
}

static void a_file_that_is_not_a_database_is_damaged(void **state)
{
        struct store_rig *r = *state;

        store_rig_open(r);
        store_rig_fill(r, 0, 10);
        store_rig_close(r);
        overwrite(r, 0, 100);
        must_be_corrupt(r);
}

static void damage_in_the_middle_is_found_at_start(void **state)
{
        struct store_rig *r = *state;

        store_rig_open(r);
        store_rig_fill(r, 0, 5000);
        store_rig_close(r);
        overwrite(r, (off_t)4096 * 5, 4096 * 3);
        must_be_corrupt(r);
}

static void a_truncated_file_is_reported_as_damaged(void **state)
{
        struct store_rig *r = *state;
        char *path = scratch_path(r->dir, "main.db");

        store_rig_open(r);
        store_rig_fill(r, 0, 5000);
        store_rig_close(r);
        assert_int_equal(truncate(path, 4096 * 4), 0);
        must_be_corrupt(r);
        free(path);
}

static int sum(struct store_tx *tx, void *arg, struct error *err)
{
        return sql_number(tx, 0, arg, err, "SELECT sum(n) FROM numbers WHERE note <> ''");
}

static void damage_found_by_a_reader_ends_all_writing(void **state)
{
        struct store_rig *r = *state;
        struct rig_number p = { .n = 100000 };
        struct store_health health;
        struct error err = { 0 };
        int64_t total;

        store_rig_open(r);
        store_rig_fill(r, 0, 5000);
        store_rig_close(r);
        store_rig_open(r);
        overwrite(r, (off_t)4096 * 5, 4096 * 3); /* while it runs */
        assert_int_equal(store_read_now(r->store, sum, &total, &err), -1);
        assert_int_equal(err.kind, ERR_CORRUPT);
        assert_int_equal(store_write_now(r->store, rig_number_put, &p, &err), -1);
        assert_int_equal(err.kind, ERR_CORRUPT);
        assert_int_equal(p.runs, 0);
        store_health(r->store, &health);
        assert_false(health.ok);
        assert_non_null(strstr(health.why, "is damaged"));
        store_rig_close(r);
        must_be_corrupt(r);
}

static void a_check_reports_damage_the_start_skipped(void **state)
{
        struct store_rig *r = *state;
        struct store_options look = r->options;
        struct store_health health;
        struct store *reader;
        struct error err = { 0 };

        store_rig_open(r);
        store_rig_fill(r, 0, 5000);
        assert_int_equal(store_check(r->store, &err), 0);
        store_health(r->store, &health);
        assert_string_equal(health.driver, "sqlite");
        store_rig_close(r);
        overwrite(r, (off_t)4096 * 5, 4096 * 3);
        look.read_only = look.skip_check = true;
        reader = store_open(NULL, &look, &err);
        assert_non_null(reader);
        assert_int_equal(store_check(reader, &err), -1);
        assert_int_equal(err.kind, ERR_CORRUPT);
        store_close(reader);
}

static int report_corruption(struct store_tx *tx, void *arg, struct error *err)
{
        (void)tx;
        (void)arg;
        return error_set(err, ERR_CORRUPT, "this row makes no sense");
}

static void a_function_that_reports_corruption_is_no_damage(void **state)
{
        struct store_rig *r = *state;

        store_rig_open(r);
        assert_int_equal(store_write_now(r->store, report_corruption, NULL, NULL), -1);
        store_rig_fill(r, 0, 10);
}

/* --- a killed process --- */

/* Reports completed numbers through a pipe, as an acknowledgement would. */
struct reporter {
        struct rig_number p;
        int fd;
        struct store *store;
};

static int put_next(struct store_tx *tx, void *arg, struct error *err)
{
        return rig_number_put(tx, &((struct reporter *)arg)->p, err);
}

static void on_stored(void *arg, const struct error *err)
{
        struct reporter *t = arg;

        if (err || write(t->fd, &t->p.n, sizeof(t->p.n)) != sizeof(t->p.n))
                _exit(1);
        t->p.n += 64;
        store_write(t->store, put_next, on_stored, t);
}

/* Writes until it is killed, 64 at a time. */
static void child_writes(const struct store_options *options, int fd)
{
        struct loop *l = loop_new();
        struct store *s = store_open(l, options, NULL);
        struct reporter t[64];

        if (!s)
                _exit(1);
        for (int i = 0; i < 64; i++) {
                t[i] = (struct reporter){ .p.n = i, .fd = fd, .store = s };
                store_write(s, put_next, on_stored, &t[i]);
        }
        loop_run(l);
        _exit(0);
}

static int has_number(struct store_tx *tx, void *arg, struct error *err)
{
        struct rig_number *p = arg;
        int64_t found;

        if (sql_number(tx, 0, &found, err, "SELECT 1 FROM numbers WHERE n = ?1", SQL_INT(p->n)) < 0)
                return -1;
        p->completed = (int)found;
        return 0;
}

static void a_killed_writer_loses_no_completed_write(void **state)
{
        struct store_rig *r = *state;
        int64_t reported[2000];
        int fds[2];
        pid_t pid;

        assert_int_equal(pipe(fds), 0);
        pid = fork();
        if (pid == 0) {
                close(fds[0]);
                child_writes(&r->options, fds[1]);
        }
        close(fds[1]);
        for (size_t i = 0; i < 2000; i++)
                assert_int_equal(read(fds[0], &reported[i], sizeof(reported[i])),
                                 sizeof(reported[i]));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        close(fds[0]);

        store_rig_open(r);
        for (size_t i = 0; i < 2000; i++) {
                struct rig_number p = { .n = reported[i] };

                assert_int_equal(store_read_now(r->store, has_number, &p, NULL), 0);
                assert_int_equal(p.completed, 1);
        }
}

/* --- a failing disk --- */

#ifdef DRAGOMAN_FAULTS

static struct fault_control *control; /* mapped before the first store is opened */

static void trouble_is_reported_and_passes(struct store_rig *r, uint32_t *fault,
                                           enum error_kind kind)
{
        struct rig_number p[40];
        struct rig_number again = { .n = 1000 };
        struct store_health h;

        store_rig_open(r);
        store_rig_fill(r, 5000, 10);
        *fault = 1;
        for (int i = 0; i < 40; i++) {
                p[i] = (struct rig_number){ .n = i };
                rig_number_write(r, &p[i]);
        }
        store_rig_run(r);
        for (int i = 0; i < 40; i++) {
                assert_int_equal(p[i].completed, 1);
                assert_int_equal(p[i].err.kind, kind);
        }
        store_health(r->store, &h);
        assert_false(h.ok);
        assert_true(h.failures > 0);
        assert_string_not_equal(h.why, "");
        assert_int_equal(store_rig_count(r), 10);

        *fault = 0;
        rig_number_write(r, &again);
        store_rig_run(r);
        assert_int_equal(again.err.kind, ERR_NONE);
        store_health(r->store, &h);
        assert_true(h.ok);
        assert_string_equal(h.why, "");
        assert_int_equal(store_rig_count(r), 11);
        store_rig_close(r);
        store_rig_open(r);
        assert_int_equal(store_rig_count(r), 11);
}

static void a_full_disk_fails_the_batch_and_passes(void **state)
{
        trouble_is_reported_and_passes(*state, &control->disk_full, ERR_FULL);
}

static void a_failing_fsync_fails_the_batch_and_passes(void **state)
{
        trouble_is_reported_and_passes(*state, &control->fsync_fails, ERR_IO);
}

static void a_store_cannot_be_created_on_a_full_disk(void **state)
{
        struct store_rig *r = *state;
        struct error err = { 0 };

        control->disk_full = 1;
        assert_null(store_rig_try_open(r, &err));
        control->disk_full = 0;
        assert_int_equal(err.kind, ERR_FULL);
        store_rig_open(r);
}

#endif

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, store_rig_setup, store_rig_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                CASE(a_file_that_is_not_a_database_is_damaged),
                CASE(damage_in_the_middle_is_found_at_start),
                CASE(a_truncated_file_is_reported_as_damaged),
                CASE(damage_found_by_a_reader_ends_all_writing),
                CASE(a_check_reports_damage_the_start_skipped),
                CASE(a_function_that_reports_corruption_is_no_damage),
                CASE(a_killed_writer_loses_no_completed_write),
#ifdef DRAGOMAN_FAULTS
                CASE(a_full_disk_fails_the_batch_and_passes),
                CASE(a_failing_fsync_fails_the_batch_and_passes),
                CASE(a_store_cannot_be_created_on_a_full_disk),
#endif
        };

#ifdef DRAGOMAN_FAULTS
        control = fault_map();
#endif
        return cmocka_run_group_tests(tests, NULL, NULL);
}
