/* Calendar events: which are behind, which are listed; members and their waiting list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/rows_rig.h"
#include "base/buf.h"
#include "rows/calendar_row.h"

static struct calendar_event_row sample(const char *uid, int64_t starts_ms)
{
        return (struct calendar_event_row){ .uid = uid,
                                            .title = "Catan",
                                            .starts_ms = starts_ms,
                                            .ends_ms = starts_ms + 10,
                                            .timezone = "UTC",
                                            .adapter = "discord",
                                            .channel = "c1",
                                            .version = 1,
                                            .synced = -1,
                                            .created_ms = 1,
                                            .updated_ms = 1 };
}

static int64_t add(struct store_tx *tx, struct calendar_event_row row)
{
        struct error err = { 0 };
        int64_t id = 0;
        int rc = calendar_row_insert(tx, &row, &id, &err);

        if (rc < 0)
                fail_msg("%s", err.text);
        return rc == 1 ? id : 0;
}

/* "1 2 " */
static void expect_rows(struct store_stmt *s, const char *ids)
{
        struct calendar_event_row row;
        struct error err = { 0 };
        struct buf b;
        int rc;

        buf_init(&b, 0);
        while ((rc = calendar_row_next(s, &row, &err)) == 1)
                buf_addf(&b, "%lld ", (long long)row.id);
        if (rc < 0)
                fail_msg("%s", err.text);
        assert_string_equal(b.data ? b.data : "", ids);
        buf_release(&b);
}

static int follow_changes(struct store_tx *tx, void *arg, struct error *err)
{
        struct calendar_event_row *row, quiet = sample("c", 300);
        int64_t id = add(tx, sample("a", 100));

        (void)arg;
        quiet.channel = NULL;
        assert_int_equal(add(tx, quiet), id + 1); /* has nothing to announce */
        expect_rows(calendar_row_list_behind(tx, 0, 10), "1 ");
        calendar_row_set_announced(tx, id, 7, 1, 0, err);
        expect_rows(calendar_row_list_behind(tx, 0, 10), "1 "); /* its id is awaited */
        calendar_row_set_message(tx, id, 6, "m0", err);         /* of an older delivery */
        expect_rows(calendar_row_list_behind(tx, 0, 10), "1 ");
        calendar_row_set_message(tx, id, 7, "m1", err);
        expect_rows(calendar_row_list_behind(tx, 0, 10), "");
        calendar_row_touch(tx, id, 5, err);
        expect_rows(calendar_row_list_behind(tx, 0, 10), "1 ");
        expect_rows(calendar_row_list_behind(tx, 1, 10), "");
        assert_int_equal(calendar_row_get_message(tx, "discord", "c1", "m1", &row, err), 1);
        assert_int_equal(row->version, 2);
        assert_int_equal(calendar_row_update(tx, row, err), 1);
        assert_int_equal(calendar_row_update(tx, row, err), 0); /* somebody was faster */
        free(row);
        assert_int_equal(calendar_row_get_message(tx, "discord", "c2", "m1", &row, err), 0);
        return 0;
}

static void rows_that_are_ahead_of_what_people_see_are_found(void **state)
{
        rows_rig_run(*state, follow_changes);
}

static int list_rows(struct store_tx *tx, void *arg, struct error *err)
{
        struct calendar_event_row again = sample("d", 50);
        struct calendar_event_row first = sample("a", 200);

        (void)arg;
        first.request_key = again.request_key = "k";
        add(tx, first);
        add(tx, sample("b", 100));
        add(tx, sample("c", 100));
        assert_int_equal(add(tx, again), 0); /* the same request */
        expect_rows(calendar_row_list(tx, &(struct calendar_filter){ .limit = 10 }), "2 3 1 ");
        expect_rows(calendar_row_list(tx, &(struct calendar_filter){ .limit = 10,
                                                                     .after_ms = 100,
                                                                     .after_id = 2 }),
                    "3 1 ");
        expect_rows(calendar_row_list(
                            tx, &(struct calendar_filter){ .limit = 10, .ends_after_ms = 110 }),
                    "1 ");
        expect_rows(
                calendar_row_list(tx, &(struct calendar_filter){ .limit = 10, .adapters = ",tg," }),
                "");
        assert_int_equal(calendar_row_count_open(tx, 110, err), 1);
        assert_int_equal(calendar_row_prune(tx, 111, 1, err), 1);
        expect_rows(calendar_row_list(tx, &(struct calendar_filter){ .limit = 10 }), "3 1 ");
        return 0;
}

static void events_are_listed_by_start_and_pruned_by_end(void **state)
{
        rows_rig_run(*state, list_rows);
}

static int64_t join(struct store_tx *tx, int64_t person, const char *id, enum calendar_answer as,
                    int64_t queue_no)
{
        struct calendar_member_row row = { .event = 1,
                                           .person = person,
                                           .external_source = "discord",
                                           .external_id = id,
                                           .display_name = id,
                                           .answer = as,
                                           .queue_no = queue_no,
                                           .since_ms = 1 };
        int64_t number = 0;
        struct error err = { 0 };

        assert_int_equal(calendar_member_row_insert(tx, &row, &number, &err), 0);
        return number;
}

static int queue_members(struct store_tx *tx, void *arg, struct error *err)
{
        struct calendar_member_row *m;
        int64_t ana = join(tx, 3, "ana", ANSWER_YES, 0);

        (void)arg;
        assert_int_equal(calendar_member_row_next_queue_no(tx, 1, err), 1);
        join(tx, 0, "ben", ANSWER_WAITING, 2);
        join(tx, 0, "cleo", ANSWER_WAITING, 1);
        assert_int_equal(calendar_member_row_next_queue_no(tx, 1, err), 3);
        assert_int_equal(calendar_member_row_count_before(tx, 1, 2, err), 1);
        assert_int_equal(calendar_member_row_first_waiting(tx, 1, &m, err), 1);
        assert_string_equal(m->display_name, "cleo");
        free(m);
        assert_int_equal(calendar_member_row_count(tx, 1, ANSWER_WAITING, err), 2);
        assert_int_equal(calendar_member_row_count_all(tx, 1, err), 3);
        /* another account of the same person */
        assert_int_equal(calendar_member_row_find(tx, 1, 3, "telegram", "9", &m, err), 1);
        assert_int_equal(m->id, ana);
        free(m);
        assert_int_equal(calendar_member_row_find(tx, 1, 0, "discord", "ben", &m, err), 1);
        assert_int_equal(m->person, 0);
        free(m);
        assert_int_equal(calendar_member_row_find(tx, 2, 3, "discord", "ana", &m, err), 0);
        assert_int_equal(calendar_member_row_find_name(tx, 1, "BEN", &m, err), 1);
        free(m);
        assert_int_equal(calendar_member_row_find_name(tx, 1, "dora", &m, err), 0);
        assert_null(m);
        assert_int_equal(calendar_member_row_delete(tx, ana, err), 1);
        return 0;
}

static void a_waiting_list_has_an_order(void **state)
{
        rows_rig_run(*state, queue_members);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ROWS_RIG_CASE(rows_that_are_ahead_of_what_people_see_are_found),
                ROWS_RIG_CASE(events_are_listed_by_start_and_pruned_by_end),
                ROWS_RIG_CASE(a_waiting_list_has_an_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
