/* Every statement of src/rows fits the schema, and uses nothing that only SQLite has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <string.h>

#include "../lib/scratch.h"
#include "base/mem.h"
#include "rows/schema.h"
#include "store/store_driver.h"

static const struct {
        const char *file, *sql;
} statements[] = {
#include "statements.inc" /* made by tools/statements */
};

static void every_statement_can_be_prepared(void **state)
{
        char *dir = scratch_new();
        struct store_options o = { .url = "sqlite", .dir = dir, .migrations = schema_steps };
        struct error err = { 0 };
        struct store *s = store_open(NULL, &o, &err);
        struct store_conn *c;
        int failed = 0;

        (void)state;
        assert_non_null(s);
        c = store_sqlite.open(&o, STORE_READ, &err);
        assert_non_null(c);
        for (size_t i = 0; i < COUNT(statements); i++) {
                struct store_stmt *prepared = store_sqlite.prepare(c, statements[i].sql, &err);

                if (prepared) {
                        store_sqlite.finalize(prepared);
                        continue;
                }
                print_error("%s: %s: %s\n", statements[i].file, err.text, statements[i].sql);
                failed++;
        }
        store_sqlite.close(c);
        store_close(s);
        scratch_free(dir);
        assert_int_equal(failed, 0);
}

static void statements_are_portable(void **state)
{
        static const char *const forbidden[] = { "json_extract", "rowid",     "PRAGMA",      "GLOB",
                                                 "group_concat", "INSERT OR", "REPLACE INTO" };
        int failed = 0;

        (void)state;
        for (size_t i = 0; i < COUNT(statements); i++) {
                const char *sql = statements[i].sql;

                for (const char *p = strchr(sql, '?'); p; p = strchr(p + 1, '?'))
                        if (!isdigit((unsigned char)p[1])) {
                                print_error("%s: a bare ?: %s\n", statements[i].file, sql);
                                failed++;
                        }
                for (size_t k = 0; k < COUNT(forbidden); k++)
                        if (strstr(sql, forbidden[k])) {
                                print_error("%s: %s: %s\n", statements[i].file, forbidden[k], sql);
                                failed++;
                        }
        }
        assert_int_equal(failed, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_statement_can_be_prepared),
                cmocka_unit_test(statements_are_portable),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
