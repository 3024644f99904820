/* Pruning removes rows past their retention, and only those. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/road_rig.h"
#include "base/clock.h"
#include "base/mem.h"
#include "bus/bus_private.h"
#include "road/road_state.h"

#define DAY_MS 86400000LL

/* Three turns, answered and delivered. */
static struct rig *rig_with_records(void)
{
        struct rig *g = rig_new();

        g->auto_answer = g->auto_send = true;
        for (unsigned i = 1; i <= 3; i++) {
                rig_say(g, "x", "c", "echo", "hello", NULL);
                rig_until(g, &g->sent_count, i);
                rig_until_idle(g);
        }
        return g;
}

/* Dates the rows of turns up to `last` back; negative days are in the future. */
static void age(struct rig *g, int64_t last, int64_t days)
{
        int64_t then = clock_wall_ms() - days * DAY_MS;

        rig_update(g, "turns SET created_ms = ?1 WHERE id <= ?2", then, last);
        rig_update(g, "turns SET ended_ms = ?1 WHERE id <= ?2 AND ended_ms IS NOT NULL", then,
                   last);
        rig_update(g, "deliveries SET created_ms = ?1, ended_ms = ?1 WHERE turn <= ?2", then, last);
        rig_update(g, "trigger_log SET time_ms = ?1 WHERE turn <= ?2", then, last);
        rig_update(g, "transcript SET time_ms = ?1 WHERE turn <= ?2", then, last);
}

static void prune(struct rig *g)
{
        prune_run(g->road);
        rig_settle(g);
}

static void expect(struct rig *g, int64_t records, int64_t lines)
{
        assert_int_equal(rig_count(g, "turns"), records);
        assert_int_equal(rig_count(g, "deliveries"), records);
        assert_int_equal(rig_count(g, "trigger_log"), records);
        assert_int_equal(rig_count(g, "transcript"), lines);
}

static void records_and_transcripts_have_their_own_retention(void **state)
{
        struct rig *g = rig_with_records();

        (void)state;
        prune(g);
        expect(g, 3, 6);
        age(g, 1, g->limits.record_days + 1);
        prune(g);
        expect(g, 2, 6);
        age(g, 2, g->limits.transcript_days + 1);
        prune(g);
        expect(g, 1, 2);
        rig_free(g);
}

static void the_newest_rows_stay_so_that_ids_are_not_reused(void **state)
{
        struct rig *g = rig_with_records();

        (void)state;
        age(g, 3, 1000);
        prune(g);
        assert_int_equal(rig_number(g, "max(id) FROM turns"), 3);
        assert_int_equal(rig_number(g, "max(id) FROM deliveries"), 3);
        assert_int_equal(rig_count(g, "trigger_log"), 0);
        rig_restart(g);
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until_count(g, "turns WHERE id = 4 AND state = 'done'", 1);
        rig_until_idle(g);
        rig_free(g);
}

static void rows_from_the_future_do_not_stop_pruning(void **state)
{
        struct rig *g = rig_with_records();

        (void)state;
        age(g, 2, 1000);
        age(g, 1, -400); /* the clock was wrong */
        prune(g);
        expect(g, 2, 4);
        assert_int_equal(rig_count(g, "turns WHERE id = 2"), 0);
        rig_free(g);
}

static void open_turns_are_not_pruned(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        for (int i = 0; i < 2; i++)
                rig_say(g, "x", i ? "d" : "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 2);
        age(g, 2, 1000);
        prune(g);
        assert_int_equal(rig_count(g, "turns WHERE state = 'running'"), 2);
        rig_free(g);
}

static void messages_of_an_open_turn_outlive_their_retention(void **state)
{
        static const char *const chats[] = { "c", "d", "e", "f", "g" };
        struct rig *g = rig_new();
        int64_t first;

        (void)state;
        rig_say(g, "x", chats[0], "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        first = g->last_event;
        for (unsigned i = 1; i < COUNT(chats); i++) {
                rig_say(g, "x", chats[i], "echo", "hello", NULL);
                rig_until(g, &g->run_count, i + 1);
        }
        prune(g);
        assert_int_equal(rig_count(g, "cursors WHERE name = 'turns'"), 1);
        assert_int_equal(rig_number(g, "seq FROM cursors WHERE name = 'turns'"), first - 1);
        g->auto_send = true;
        for (unsigned i = 0; i < COUNT(chats); i++)
                rig_answer(g, i, "hi");
        rig_until_idle(g);
        prune(g);
        assert_int_equal(rig_number(g, "seq FROM cursors WHERE name = 'turns'"),
                         rig_number(g, "max(seq) FROM journal"));
        rig_free(g);
}

static void on_retried(void *arg, const struct error *err)
{
        *(int *)arg = err ? (int)err->kind : 1000;
}

/* The row of such a message stays without its payload, for its dedup key. */
static void a_turn_whose_messages_were_pruned_is_not_retried(void **state)
{
        int64_t short_ms[STREAM_COUNT];
        struct rig *g = rig_new();
        int outcome = 0;

        (void)state;
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        rig_fail(g, 0, ERR_NET, NULL);
        rig_until_idle(g);
        prune(g);
        for (int i = 0; i < STREAM_COUNT; i++)
                short_ms[i] = 1;
        bus_set_retention(g->bus, short_ms);
        rig_run_for(g, 2); /* longer than the retention */
        bus_prune(g->bus);
        rig_until_count(g, "journal WHERE payload = '{}'", 1);
        turn_retry(g->road, 1, on_retried, &outcome);
        rig_settle(g);
        assert_int_equal(outcome, ERR_MISSING);
        assert_int_equal(g->run_count, 1);
        assert_string_equal(rig_text(g, "state FROM turns"), "failed");
        rig_free(g);
}

#define DECIDED "seq FROM cursors WHERE name = 'dispatch'"

static void own_events_do_not_hold_back_the_cursor(void **state)
{
        struct rig *g = rig_with_records();

        (void)state;
        assert_true(rig_number(g, DECIDED) < bus_head(g->bus));
        prune(g);
        assert_int_equal(rig_number(g, DECIDED), bus_head(g->bus));
        rig_free(g);
}

static void events_to_be_decided_hold_back_the_cursor(void **state)
{
        struct rig *g = rig_with_records();

        (void)state;
        /* nothing is decided without numbers */
        rig_update(g, "numbers SET name = 'away' WHERE name = 'turn'", 0, 0);
        rig_restart(g);
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until(g, &g->acks, 4);
        prune_run(g->road);
        rig_run_for(g, 20);
        assert_true(rig_number(g, DECIDED) < g->last_event);
        rig_update(g, "numbers SET name = 'turn' WHERE name = 'away'", 0, 0);
        rig_until(g, &g->run_count, 4);
        rig_until_idle(g);
        rig_free(g);
}

static void an_open_turn_whose_messages_were_pruned_is_given_up(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        rig_update(g, "journal SET payload = '{}' WHERE key IS NOT NULL", 0, 0);
        rig_restart(g);
        rig_until_count(g, "turns WHERE state = 'failed'", 1);
        assert_string_equal(rig_text(g, "error FROM turns"), "its messages were pruned");
        rig_say(g, "j", "c", "echo", "hello?", NULL);
        rig_until(g, &g->run_count, 2);
        assert_string_equal(g->runs[1].text, "hello?");
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(records_and_transcripts_have_their_own_retention),
                cmocka_unit_test(the_newest_rows_stay_so_that_ids_are_not_reused),
                cmocka_unit_test(rows_from_the_future_do_not_stop_pruning),
                cmocka_unit_test(open_turns_are_not_pruned),
                cmocka_unit_test(messages_of_an_open_turn_outlive_their_retention),
                cmocka_unit_test(a_turn_whose_messages_were_pruned_is_not_retried),
                cmocka_unit_test(own_events_do_not_hold_back_the_cursor),
                cmocka_unit_test(events_to_be_decided_hold_back_the_cursor),
                cmocka_unit_test(an_open_turn_whose_messages_were_pruned_is_given_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
