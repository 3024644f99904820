/* The schema: every version migrates to the newest, and a step is applied once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/scratch.h"
#include "base/buf.h"
#include "base/mem.h"
#include "rows/schema.h"
#include "store/sql.h"
#include "store/store_private.h"

static struct store *open_with(const char *dir, const struct store_migration *steps,
                               struct error *err)
{
        struct store_options o = { .url = "sqlite", .dir = dir, .migrations = steps };

        return store_open(NULL, &o, err);
}

static struct store *must_open(const char *dir, const struct store_migration *steps)
{
        struct error err = { 0 };
        struct store *s = open_with(dir, steps, &err);

        if (!s)
                fail_msg("%s", err.text);
        return s;
}

static int last_version(void)
{
        int n = 0;

        while (schema_steps[n].version)
                n++;
        return n;
}

/* The first n steps; yours to free. */
static struct store_migration *steps_up_to(int n)
{
        struct store_migration *steps = mem_array((size_t)n + 1, sizeof(*steps));

        memcpy(steps, schema_steps, (size_t)n * sizeof(*steps));
        return steps;
}

static int describe(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_stmt *s =
                sql_query(tx, "SELECT name, coalesce(sql, '') FROM sqlite_schema ORDER BY name");
        const char *name, *sql;
        struct buf *out = arg;
        int rc;

        buf_clear(out);
        while ((rc = sql_next(s, err)) == 1) {
                sql_read(s, OUT_TEXT(&name), OUT_TEXT(&sql));
                buf_addf(out, "%s: %s\n", name, sql);
        }
        return rc;
}

static char *description(const char *dir, const struct store_migration *steps)
{
        struct store *s = must_open(dir, steps);
        struct buf out;

        buf_init(&out, 0);
        assert_int_equal(store_read_now(s, describe, &out, NULL), 0);
        store_close(s);
        return buf_take(&out);
}

static void steps_are_named_and_numbered_without_gaps(void **state)
{
        (void)state;
        for (int i = 0; i < last_version(); i++) {
                assert_int_equal(schema_steps[i].version, i + 1);
                assert_non_null(schema_steps[i].name);
        }
}

static void every_version_migrates_to_the_newest(void **state)
{
        char *fresh_dir = scratch_new();
        char *fresh = description(fresh_dir, schema_steps);

        (void)state;
        for (int from = 1; from <= last_version(); from++) {
                struct store_migration *steps = steps_up_to(from);
                char *dir = scratch_new();
                char *found;

                free(description(dir, steps));
                found = description(dir, schema_steps);
                assert_string_equal(found, fresh);
                free(found);
                free(steps);
                scratch_free(dir);
        }
        free(fresh);
        scratch_free(fresh_dir);
}

static void migrating_twice_changes_nothing(void **state)
{
        char *dir = scratch_new();
        char *once = description(dir, schema_steps);
        char *twice = description(dir, schema_steps);

        (void)state;
        assert_string_equal(once, twice);
        free(once);
        free(twice);
        scratch_free(dir);
}

static int insert_late_replies(struct store_tx *tx, void *arg, struct error *err)
{
        static const char *const keys[] = {
                "reply:trn-123:late", "reply:trn-123:n7",
                "reply:trn-123:n42",  "reply:trn-123:n100",
                "part:trn-123:n7:1",  "another request",
                "reply:trn-5:late",   "reply:trn-123:k0123456789abcdef0123456789abcdef",
        };

        (void)arg;
        for (size_t i = 0; i < COUNT(keys); i++) {
                if (sql_exec(tx, err,
                             "INSERT INTO deliveries(id, adapter, channel, kind, class, payload,"
                             " state, due_ms, created_ms, trace, request_key)"
                             " VALUES(?1, 'a', 'c', 'send', 0, '{}', 'sent', 0, 0, 't', ?2)",
                             SQL_INT((int64_t)i + 1), SQL_TEXT(keys[i])) < 0)
                        return -1;
        }
        return 0;
}

static int count_late_replies(struct store_tx *tx, void *arg, struct error *err)
{
        return sql_number(tx, -1, arg, err, "SELECT count(*) FROM deliveries WHERE reply_of = 123");
}

static void stored_late_replies_get_their_turn(void **state)
{
        struct store_migration *steps = steps_up_to(16);
        char *dir = scratch_new();
        struct store *s = must_open(dir, steps);
        int64_t n = 0;

        (void)state;
        assert_int_equal(store_write_now(s, insert_late_replies, NULL, NULL), 0);
        store_close(s);
        s = must_open(dir, schema_steps);
        assert_int_equal(store_read_now(s, count_late_replies, &n, NULL), 0);
        assert_int_equal(n, 5);
        store_close(s);
        free(steps);
        scratch_free(dir);
}

/* --- how steps are applied --- */

static const struct store_migration one[] = {
        { 1, "one", "CREATE TABLE a(n INTKEY)" },
        { 0, NULL, NULL },
};
static const struct store_migration two[] = {
        { 1, "one", "CREATE TABLE a(n INTKEY)" },
        { 2, "two",
          "CREATE TABLE b(n AUTOKEY, AUTOKEYS TEXT); INSERT INTO b(AUTOKEYS) VALUES('x')" },
        { 0, NULL, NULL },
};
static const struct store_migration two_broken[] = {
        { 1, "one", "CREATE TABLE a(n INTKEY)" },
        { 2, "two", "CREATE TABLE b(n AUTOKEY); INSERT INTO missing VALUES(1)" },
        { 0, NULL, NULL },
};

static int count_b(struct store_tx *tx, void *arg, struct error *err)
{
        return sql_number(tx, 0, arg, err, "SELECT count(*) FROM b");
}

static void a_step_is_applied_once(void **state)
{
        char *dir = scratch_new();
        int64_t n = 0;

        (void)state;
        store_close(must_open(dir, one));
        for (int i = 0; i < 3; i++) {
                struct store *s = must_open(dir, two);

                assert_int_equal(store_read_now(s, count_b, &n, NULL), 0);
                assert_int_equal(n, 1);
                store_close(s);
        }
        scratch_free(dir);
}

static void a_failing_step_leaves_the_version_before_it(void **state)
{
        char *dir = scratch_new();
        struct error err = { 0 };
        struct store *s;
        int64_t n = 0;

        (void)state;
        assert_null(open_with(dir, two_broken, &err));
        assert_non_null(strstr(err.text, "schema 2 'two'"));
        s = must_open(dir, one);
        assert_int_equal(store_read_now(s, count_b, &n, NULL), -1);
        store_close(s);
        s = must_open(dir, two);
        assert_int_equal(store_read_now(s, count_b, &n, NULL), 0);
        assert_int_equal(n, 1);
        store_close(s);
        scratch_free(dir);
}

static void opening_read_only_does_not_migrate(void **state)
{
        char *dir = scratch_new();
        struct store_options o = {
                .url = "sqlite", .dir = dir, .migrations = two, .read_only = true
        };
        struct error err = { 0 };

        (void)state;
        store_close(must_open(dir, one));
        assert_null(store_open(NULL, &o, &err));
        assert_int_equal(err.kind, ERR_CONFLICT);
        scratch_free(dir);
}

static void key_words_are_replaced_only_as_whole_words(void **state)
{
        const struct store_driver d = { .auto_key = "[a]", .int_key = "[i]", .text_type = "[t]" };
        char *sql = store_migrate_spell(&d, "AUTOKEY, xINTKEY INTKEY;AUTOKEYS TEXT, text CONTEXT");

        (void)state;
        assert_string_equal(sql, "[a], xINTKEY [i];AUTOKEYS [t], text CONTEXT");
        free(sql);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(steps_are_named_and_numbered_without_gaps),
                cmocka_unit_test(every_version_migrates_to_the_newest),
                cmocka_unit_test(migrating_twice_changes_nothing),
                cmocka_unit_test(stored_late_replies_get_their_turn),
                cmocka_unit_test(a_step_is_applied_once),
                cmocka_unit_test(a_failing_step_leaves_the_version_before_it),
                cmocka_unit_test(opening_read_only_does_not_migrate),
                cmocka_unit_test(key_words_are_replaced_only_as_whole_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
