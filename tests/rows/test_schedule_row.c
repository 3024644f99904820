/* Schedules and ticks: unique by key and due time, moved on once, listed by what is due. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/rows.h"
#include "../lib/rows_rig.h"
#include "base/buf.h"
#include "rows/schedule_row.h"

static struct schedule_row reminder(const char *name, int64_t next_ms)
{
        return (struct schedule_row){ .source = "reminder",
                                      .name = name,
                                      .kind = SCHEDULE_ONE_SHOT,
                                      .action = SCHEDULE_MESSAGE,
                                      .adapter = "tg",
                                      .channel = "42",
                                      .person = 3,
                                      .text = "tea",
                                      .options = "{\"mention\":\"42\"}",
                                      .at_ms = next_ms,
                                      .next_ms = next_ms,
                                      .max_age_ms = 5000,
                                      .missed = MISSED_SKIP,
                                      .created_ms = 1,
                                      .created_by = "telegram:42",
                                      .trace = "t1" };
}

static int64_t insert(struct store_tx *tx, const struct schedule_row *row, int expected)
{
        int64_t id = 0;

        assert_int_equal(schedule_row_insert(tx, row, &id, NULL), expected);
        assert_true(id > 0);
        return id;
}

/* "a b c" */
static const char *names(struct rows_rig *r, struct store_stmt *s)
{
        struct schedule_row row;

        buf_clear(&r->found);
        while (schedule_row_next(s, &row, NULL) == 1)
                buf_addf(&r->found, "%s%s", r->found.len ? " " : "", row.name);
        return r->found.len ? r->found.data : "";
}

/* ---- schedules ---- */

static int keep_all(struct store_tx *tx, void *arg, struct error *err)
{
        struct schedule_row in = reminder("tea", 1000), *out;
        int64_t id;

        (void)arg;
        (void)err;
        in.request_key = "cmd:7";
        in.thread = "9";
        in.timezone = "Europe/Berlin";
        in.cron = "0 9 * * *";
        id = insert(tx, &in, 1);
        assert_int_equal(insert(tx, &in, 0), id);
        assert_int_equal(schedule_row_find(tx, "cmd:7", &out, NULL), 1);
        assert_int_equal(out->id, id);
        assert_int_equal(out->action, SCHEDULE_MESSAGE);
        assert_int_equal(out->kind, SCHEDULE_ONE_SHOT);
        assert_int_equal(out->missed, MISSED_SKIP);
        assert_int_equal(out->state, SCHEDULE_ACTIVE);
        assert_int_equal(out->person, 3);
        assert_int_equal(out->max_age_ms, 5000);
        assert_int_equal(out->next_ms, 1000);
        assert_string_equal(out->thread, "9");
        assert_string_equal(out->options, in.options);
        assert_string_equal(out->timezone, "Europe/Berlin");
        assert_string_equal(out->cron, "0 9 * * *");
        assert_string_equal(out->created_by, "telegram:42");
        assert_string_equal(out->trace, "t1");
        out->text = "coffee";
        out->next_ms = 2000;
        assert_int_equal(schedule_row_update(tx, out, NULL), 1);
        free(out);
        assert_int_equal(schedule_row_get(tx, id, &out, NULL), 1);
        assert_string_equal(out->text, "coffee");
        assert_int_equal(out->next_ms, 2000);
        assert_string_equal(out->request_key, "cmd:7");
        free(out);
        assert_int_equal(schedule_row_get(tx, 99, &out, NULL), 0);
        return 0;
}

static void a_schedule_is_kept_as_it_was_made(void **state)
{
        rows_rig_run(*state, keep_all);
}

static int advance(struct store_tx *tx, void *arg, struct error *err)
{
        struct schedule_row row = reminder("tea", 1000), *out;
        int64_t id = insert(tx, &row, 1), first_ms;

        (void)arg;
        (void)err;
        assert_int_equal(schedule_row_advance(tx, id, 1000, 2000, 1500, NULL), 1);
        /* a second scheduler read the same time */
        assert_int_equal(schedule_row_advance(tx, id, 1000, 2000, 1500, NULL), 0);
        assert_int_equal(schedule_row_first_ms(tx, &first_ms, NULL), 0);
        assert_int_equal(first_ms, 2000);
        assert_int_equal(schedule_row_advance(tx, id, 2000, 0, 2500, NULL), 1);
        assert_int_equal(schedule_row_get(tx, id, &out, NULL), 1);
        assert_int_equal(out->state, SCHEDULE_DONE);
        assert_int_equal(out->ended_ms, 2500);
        assert_int_equal(schedule_row_update(tx, out, NULL), 0);
        free(out);
        assert_int_equal(schedule_row_first_ms(tx, &first_ms, NULL), 0);
        assert_int_equal(first_ms, 0);
        return 0;
}

static void a_time_is_moved_on_once(void **state)
{
        rows_rig_run(*state, advance);
}

static int list(struct store_tx *tx, void *arg, struct error *err)
{
        struct rows_rig *r = arg;
        struct schedule_row row = reminder("a", 3000);
        struct schedule_filter filter = { .limit = 10 };
        enum schedule_state active = SCHEDULE_ACTIVE;
        int64_t a = insert(tx, &row, 1);

        (void)err;
        row = reminder("b", 1000);
        row.adapter = "dc";
        row.person = 0;
        insert(tx, &row, 1);
        row = reminder("c", 2000);
        row.adapter = row.channel = NULL; /* wherever the person is */
        row.source = "notice";
        insert(tx, &row, 1);
        assert_string_equal(names(r, schedule_row_list(tx, &filter)), "c b a");
        assert_string_equal(names(r, schedule_row_list_next(tx, &filter)), "b c a");
        assert_string_equal(names(r, schedule_row_list_due(tx, 2000, 10)), "b c");
        assert_string_equal(names(r, schedule_row_list_due(tx, 2000, 1)), "b");
        filter.person = 3;
        assert_string_equal(names(r, schedule_row_list(tx, &filter)), "c a");
        filter.source = "notice";
        assert_string_equal(names(r, schedule_row_list_next(tx, &filter)), "c");
        filter = (struct schedule_filter){ .adapters = ",tg,", .limit = 10 };
        assert_string_equal(names(r, schedule_row_list(tx, &filter)), "a");
        filter = (struct schedule_filter){ .adapter = "dc", .channel = "42", .limit = 10 };
        assert_string_equal(names(r, schedule_row_list(tx, &filter)), "b");
        assert_int_equal(schedule_row_cancel(tx, a, "no tea", 100, NULL), 1);
        assert_int_equal(schedule_row_cancel(tx, a, "no tea", 100, NULL), 0);
        filter = (struct schedule_filter){ .state = &active, .limit = 10 };
        assert_string_equal(names(r, schedule_row_list(tx, &filter)), "c b");
        filter.before = 3;
        assert_string_equal(names(r, schedule_row_list(tx, &filter)), "b");
        assert_int_equal(schedule_row_count(tx, 3, 10, NULL), 1);
        assert_int_equal(schedule_row_count(tx, 0, 3, NULL), 2);
        return 0;
}

static void schedules_are_found_by_what_one_asks_for(void **state)
{
        rows_rig_run(*state, list);
}

/* ---- ticks ---- */

static struct tick_row due_at(int64_t schedule, int64_t due_ms)
{
        return (struct tick_row){
                .schedule = schedule, .due_ms = due_ms, .runs = 1, .not_before_ms = due_ms
        };
}

static int live(struct store_tx *tx, void *arg, struct error *err)
{
        struct tick_row in = due_at(7, 1000), *t;
        int64_t id, other;

        (void)arg;
        (void)err;
        assert_int_equal(tick_row_insert(tx, &in, &id, NULL), 1);
        assert_int_equal(tick_row_insert(tx, &in, &other, NULL), 0);
        assert_int_equal(tick_row_claim(tx, id, 1100, NULL), 1);
        assert_int_equal(tick_row_claim(tx, id, 1200, NULL), 0);
        assert_int_equal(tick_row_revive(tx, NULL), 1); /* after a crash */
        assert_int_equal(tick_row_claim(tx, id, 1300, NULL), 1);
        assert_int_equal(tick_row_defer(tx, id, 9000, "quiet hours", NULL), 1);
        assert_int_equal(tick_row_claim(tx, id, 9000, NULL), 1);
        assert_int_equal(tick_row_set_delivery(tx, id, 55, 1, NULL, NULL), 1);
        assert_int_equal(tick_row_revive(tx, NULL), 0); /* its message is under way */
        assert_int_equal(tick_row_find(tx, 55, &t, NULL), 1);
        assert_int_equal(t->id, id);
        assert_int_equal(t->address, 1);
        assert_int_equal(t->started_ms, 9000);
        assert_int_equal(t->not_before_ms, 9000);
        t->state = TICK_DONE;
        t->ended_ms = 9100;
        assert_int_equal(tick_row_end(tx, t, NULL), 1);
        assert_int_equal(tick_row_end(tx, t, NULL), 0);
        assert_int_equal(tick_row_defer(tx, id, 9999, NULL, NULL), 0);
        assert_int_equal(tick_row_set_delivery(tx, id, 56, 2, NULL, NULL), 0);
        free(t);
        return 0;
}

static void a_tick_is_claimed_and_ended_once(void **state)
{
        rows_rig_run(*state, live);
}

static int cancel_with_ticks(struct store_tx *tx, void *arg, struct error *err)
{
        struct schedule_row row = reminder("tea", 1000);
        int64_t schedule = insert(tx, &row, 1), waiting, running;
        struct tick_row in = due_at(schedule, 1000), *t;

        (void)arg;
        (void)err;
        assert_int_equal(schedule_row_advance(tx, schedule, 1000, 0, 1000, NULL), 1);
        assert_int_equal(tick_row_insert(tx, &in, &waiting, NULL), 1);
        in.due_ms = 2000;
        assert_int_equal(tick_row_insert(tx, &in, &running, NULL), 1);
        assert_int_equal(tick_row_claim(tx, running, 2000, NULL), 1);
        /* it is done, but a tick waits for the end of quiet hours */
        assert_int_equal(schedule_row_cancel(tx, schedule, "cancelled", 3000, NULL), 1);
        assert_int_equal(tick_row_get(tx, waiting, &t, NULL), 1);
        assert_int_equal(t->state, TICK_SKIPPED);
        assert_string_equal(t->note, "cancelled");
        free(t);
        assert_int_equal(tick_row_get(tx, running, &t, NULL), 1);
        assert_int_equal(t->state, TICK_RUNNING);
        free(t);
        return 0;
}

static void cancelling_skips_what_waits_and_lets_what_runs_end(void **state)
{
        rows_rig_run(*state, cancel_with_ticks);
}

static int read_damaged(struct store_tx *tx, void *arg, struct error *err)
{
        struct schedule_row *out;

        (void)arg;
        (void)err;
        assert_int_equal(schedule_row_get(tx, 1, &out, NULL), 1);
        assert_string_equal(out->unknown, "this version does not know its state 'asleep'");
        assert_int_equal(out->state, SCHEDULE_CANCELLED);
        free(out);
        return 0;
}

static int insert_one(struct store_tx *tx, void *arg, struct error *err)
{
        struct schedule_row row = reminder("tea", 1000);

        (void)arg;
        (void)err;
        insert(tx, &row, 1);
        return 0;
}

static void an_unknown_state_is_that_of_an_ended_schedule(void **state)
{
        struct rows_rig *r = *state;

        rows_rig_run(r, insert_one);
        rows_update(r->store, "schedules SET state = 'asleep'", 0, 0);
        rows_rig_run(r, read_damaged);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ROWS_RIG_CASE(a_schedule_is_kept_as_it_was_made),
                ROWS_RIG_CASE(a_time_is_moved_on_once),
                ROWS_RIG_CASE(schedules_are_found_by_what_one_asks_for),
                ROWS_RIG_CASE(a_tick_is_claimed_and_ended_once),
                ROWS_RIG_CASE(cancelling_skips_what_waits_and_lets_what_runs_end),
                ROWS_RIG_CASE(an_unknown_state_is_that_of_an_ended_schedule),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
