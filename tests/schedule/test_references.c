/* Due times as other programs compute them; tests/e2e has the script that asks these. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "schedule/cron.h"
#include "schedule/when.h"

#define COLUMNS 4
typedef void row_fn(char *const columns[COLUMNS]);

/* Tab-separated rows of the file that a variable names; without it the test is skipped. */
static void for_rows(const char *variable, row_fn *check)
{
        const char *path = getenv(variable);
        char line[500];
        int count = 0;
        FILE *f;

        if (!path)
                skip();
        f = fopen(path, "r");
        assert_non_null(f);
        for (; fgets(line, sizeof(line), f); count++) {
                char *columns[COLUMNS], *rest;

                for (int i = 0; i < COLUMNS; i++) {
                        columns[i] = strtok_r(i ? NULL : line, "\t\n", &rest);
                        assert_non_null(columns[i]);
                }
                check(columns);
        }
        fclose(f);
        assert_true(count >= 100);
}

static void check_cron(char *const columns[COLUMNS])
{
        struct time_zone *z = timezone_new(columns[1], NULL);
        int64_t expected = strtoll(columns[3], NULL, 10), got;
        struct error err = { 0 };
        struct cron c;

        assert_non_null(z);
        if (cron_parse(columns[0], &c, &err) < 0)
                fail_msg("%s: %s", columns[0], err.text);
        got = cron_next(&c, z, strtoll(columns[2], NULL, 10));
        if (got != expected)
                fail_msg("'%s' in %s after %s: %lld, not %lld", columns[0], columns[1], columns[2],
                         (long long)got, (long long)expected);
        timezone_free(z);
}

static void schedules_are_due_when_croner_says(void **state)
{
        (void)state;
        for_rows("CRON_CASES", check_cron);
}

/* A zone, a day, a time, and what it is in Unix seconds. */
static void check_when(char *const columns[COLUMNS])
{
        struct time_zone *z = timezone_new(columns[0], NULL);
        int64_t expected = strtoll(columns[3], NULL, 10), got;
        char *text = mem_printf("%s %s", columns[1], columns[2]);
        struct error err = { 0 };
        struct when w;

        assert_non_null(z);
        if (when_parse(text, z, (expected - 86400) * 1000, &w, &err) < 0)
                fail_msg("%s: %s", text, err.text);
        got = w.at_ms / 1000;
        /* of a doubled hour the first one is meant, and `date` chose either */
        if (got != expected && (got > expected || got + timezone_offset(z, got) !=
                                                          expected + timezone_offset(z, expected)))
                fail_msg("%s in %s: %lld, not %lld", text, columns[0], (long long)got,
                         (long long)expected);
        free(text);
        timezone_free(z);
}

static void times_are_those_of_gnu_date(void **state)
{
        (void)state;
        for_rows("DATE_CASES", check_when);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(schedules_are_due_when_croner_says),
                cmocka_unit_test(times_are_those_of_gnu_date),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
