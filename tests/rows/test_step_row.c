/* Steps of turns: kept with their turn's fence, listed from the last compaction on. */
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
#include "rows/prune_row.h"
#include "rows/step_row.h"
#include "rows/turn_row.h"

static void add_turn(struct store_tx *tx, int64_t id)
{
        struct turn_row row = { .id = id,
                                .conversation = 1,
                                .agent = "a",
                                .state = TURN_RUNNING,
                                .inputs = "1",
                                .trace = "t",
                                .attempt = 2,
                                .fence = 7 };

        assert_int_equal(turn_row_insert(tx, &row, NULL), 0);
}

/* Adds a step and returns its number; 0: refused. */
static int64_t add(struct store_tx *tx, int64_t turn, int64_t fence, enum step_kind kind,
                   const char *session, const char *call, int64_t first_kept)
{
        struct step_row row = { .conversation = 1,
                                .turn = turn,
                                .session = session,
                                .agent = "a",
                                .person = turn == 1 ? "person-1" : NULL,
                                .kind = kind,
                                .call = call,
                                .body = "{}",
                                .first_kept = first_kept,
                                .cost_microusd = kind == STEP_ASSISTANT ? 5 : 0,
                                .time_ms = 1000 * turn };
        struct error err = { 0 };
        int rc = step_row_insert(tx, &row, fence, &err);

        if (rc < 0)
                fail_msg("%s", err.text);
        return rc == 1 ? row.id : 0;
}

static int use_fence(struct store_tx *tx, void *arg, struct error *err)
{
        struct turn_row *turn;

        (void)arg;
        add_turn(tx, 1);
        assert_true(add(tx, 1, 7, STEP_USER, NULL, NULL, 0) > 0);
        assert_int_equal(turn_row_get(tx, 1, &turn, err), 1);
        assert_int_equal(turn->progress_attempt, 2);
        free(turn);
        assert_int_equal(add(tx, 1, 6, STEP_USER, NULL, NULL, 0), 0);
        assert_int_equal(add(tx, 2, 7, STEP_USER, NULL, NULL, 0), 0);
        assert_true(add(tx, 1, 7, STEP_TOOL_STARTED, NULL, "1.0", 0) > 0);
        assert_int_equal(add(tx, 1, 7, STEP_TOOL_STARTED, NULL, "1.0", 0), 0);
        assert_true(add(tx, 1, 7, STEP_TOOL_DONE, NULL, "1.0", 0) > 0);
        return 0;
}

static void a_step_needs_its_turns_fence_and_a_call_starts_once(void **state)
{
        struct rows_rig *r = *state;

        rows_rig_run(r, use_fence);
        assert_int_equal(rows_count(r->store, "steps"), 3);
}

static const char *listed(struct rows_rig *r, struct store_stmt *s)
{
        struct step_row row;

        buf_clear(&r->found);
        while (step_row_next(s, &row, NULL) == 1)
                buf_addf(&r->found, "%lld:%s ", (long long)row.id, step_kind_name(row.kind));
        return r->found.data;
}

static int use_lists(struct store_tx *tx, void *arg, struct error *err)
{
        struct rows_rig *r = arg;

        (void)err;
        for (int64_t i = 1; i <= 3; i++)
                add_turn(tx, i);
        add(tx, 1, 7, STEP_USER, NULL, NULL, 0);
        add(tx, 1, 7, STEP_ASSISTANT, NULL, NULL, 0);
        add(tx, 2, 7, STEP_USER, NULL, NULL, 0);
        add(tx, 2, 7, STEP_USER, "s", NULL, 0);
        add(tx, 2, 7, STEP_COMPACTION, "s", NULL, 4);
        assert_string_equal(listed(r, step_row_list(tx, 1, NULL, 0)),
                            "1:user 2:assistant 3:user 4:user ");
        assert_string_equal(listed(r, step_row_list(tx, 1, NULL, 2)), "3:user 4:user ");
        assert_string_equal(listed(r, step_row_list(tx, 1, "s", 0)), "4:user 5:compaction ");
        assert_string_equal(listed(r, step_row_list_turn(tx, 1)), "1:user 2:assistant ");
        add(tx, 3, 7, STEP_COMPACTION, NULL, NULL, 3);
        add(tx, 3, 7, STEP_USER, NULL, NULL, 0);
        assert_string_equal(listed(r, step_row_list(tx, 1, NULL, 0)),
                            "3:user 4:user 6:compaction 7:user ");
        assert_string_equal(listed(r, step_row_list(tx, 2, NULL, 0)), "");
        return 0;
}

static void a_list_begins_with_what_the_last_compaction_kept(void **state)
{
        rows_rig_run(*state, use_lists);
}

static int use_costs(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_stmt *s;
        const char *person;
        int64_t cost;

        (void)arg;
        add_turn(tx, 1);
        add_turn(tx, 2);
        add(tx, 1, 7, STEP_ASSISTANT, NULL, NULL, 0);
        add(tx, 1, 7, STEP_ASSISTANT, NULL, NULL, 0);
        add(tx, 2, 7, STEP_ASSISTANT, NULL, NULL, 0);
        s = step_row_list_costs(tx, "a", 1000);
        assert_int_equal(step_row_next_cost(s, &person, &cost, err), 1);
        assert_null(person);
        assert_int_equal(cost, 5);
        assert_int_equal(step_row_next_cost(s, &person, &cost, err), 1);
        assert_string_equal(person, "person-1");
        assert_int_equal(cost, 10);
        assert_int_equal(step_row_next_cost(s, &person, &cost, err), 0);
        s = step_row_list_costs(tx, "other", 0);
        assert_int_equal(step_row_next_cost(s, &person, &cost, err), 0);
        assert_int_equal(prune_row_delete(tx, PRUNE_STEPS, 1500, 100000, err), 2);
        return 0;
}

static void costs_are_summed_by_person_and_old_steps_go(void **state)
{
        struct rows_rig *r = *state;

        rows_rig_run(r, use_costs);
        assert_int_equal(rows_count(r->store, "steps"), 1);
}

static void kinds_are_named(void **state)
{
        enum step_kind kind;

        (void)state;
        for (enum step_kind k = STEP_USER; k <= STEP_COMPACTION; k++) {
                assert_true(step_kind_parse(step_kind_name(k), &kind));
                assert_int_equal(kind, k);
        }
        assert_false(step_kind_parse("other", &kind));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ROWS_RIG_CASE(a_step_needs_its_turns_fence_and_a_call_starts_once),
                ROWS_RIG_CASE(a_list_begins_with_what_the_last_compaction_kept),
                ROWS_RIG_CASE(costs_are_summed_by_person_and_old_steps_go),
                cmocka_unit_test(kinds_are_named),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
