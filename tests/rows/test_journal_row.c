/* Rows of the journal, and single values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/rows_rig.h"
#include "base/mem.h"
#include "rows/journal_row.h"
#include "rows/meta_row.h"

static int use_events(struct store_tx *tx, void *arg, struct error *err)
{
        struct journal_row row = {
                .type = "message.received", .stream = 0, .time_ms = 5, .key = "k", .payload = "{}"
        };
        struct journal_row *got;
        int64_t seq, again, first, last;

        (void)arg;
        assert_int_equal(journal_row_bounds(tx, &first, &last, err), 0);
        assert_int_equal(first, 0);
        assert_int_equal(last, 0);
        assert_int_equal(journal_row_insert(tx, &row, &seq, err), 1);
        assert_int_equal(journal_row_insert(tx, &row, &again, err), 0);
        row.adapter = "tg";
        assert_int_equal(journal_row_insert(tx, &row, &again, err), 1);
        assert_int_equal(journal_row_find(tx, NULL, "k", &again, err), 1);
        assert_int_equal(again, seq);
        assert_int_equal(journal_row_find(tx, "tg", "x", &again, err), 0);

        assert_int_equal(journal_row_get(tx, seq + 7, &got, err), 0);
        assert_null(got);
        assert_int_equal(journal_row_get(tx, seq, &got, err), 1);
        assert_string_equal(got->type, "message.received");
        assert_string_equal(got->key, "k");
        assert_string_equal(got->payload, "{}");
        assert_int_equal(got->time_ms, 5);
        assert_null(got->adapter);
        assert_null(got->trace);
        free(got);
        return 0;
}

static void a_key_is_unique_per_adapter_and_without_one(void **state)
{
        rows_rig_run(*state, use_events);
}

static int use_meta(struct store_tx *tx, void *arg, struct error *err)
{
        static const char *const expected[] = { NULL, "one", "one", "two" };

        (void)arg;
        for (size_t i = 0; i < COUNT(expected); i++) {
                char *value;

                assert_int_equal(meta_row_get(tx, "a", &value, err), expected[i] ? 1 : 0);
                if (expected[i])
                        assert_string_equal(value, expected[i]);
                free(value);
                if (i == 2)
                        assert_int_equal(meta_row_put(tx, "a", "two", err), 0);
                else
                        assert_int_equal(meta_row_put_new(tx, "a", i ? "new" : "one", err), 0);
        }
        return 0;
}

static void a_value_is_replaced_only_on_request(void **state)
{
        rows_rig_run(*state, use_meta);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ROWS_RIG_CASE(a_key_is_unique_per_adapter_and_without_one),
                ROWS_RIG_CASE(a_value_is_replaced_only_on_request),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
