/* Records go when they are old enough, and nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/road_rig.h"
#include "base/clock.h"
#include "base/mem.h"
#include "bus/bus_private.h"
#include "road/road_private.h"

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

/*
 * As if the rows of turns up to number `last` had been made so many days ago; a negative number is
 * the future.
 */
struct ageing {
        int64_t last, days;
};

static int write_age(struct store_tx *tx, void *arg, struct error *err)
{
        static const char *const updates[] = {
                "UPDATE turns SET created_ms = ?1, ended_ms = CASE WHEN ended_ms IS NULL THEN NULL ELSE ?1 "
                "END "
                "WHERE id <= ?2",
                "UPDATE deliveries SET created_ms = ?1, ended_ms = ?1 WHERE turn <= ?2",
                "UPDATE trigger_log SET time_ms = ?1 WHERE turn <= ?2",
                "UPDATE transcript SET time_ms = ?1 WHERE turn <= ?2",
        };
        const struct ageing *a = arg;

        for (size_t i = 0; i < COUNT(updates); i++) {
                struct store_stmt *s = store_prepare(tx, updates[i]);

                store_bind_int(s, 1, clock_wall_ms() - a->days * DAY_MS);
                store_bind_int(s, 2, a->last);
                if (store_run(s, err) < 0)
                        return -1;
        }
        return 0;
}

static void age(struct rig *g, int64_t last, int64_t days)
{
        struct ageing a = { last, days };

        assert_int_equal(store_write_now(g->store, write_age, &a, NULL), 0);
}

static void prune(struct rig *g)
{
        prune_run(g->road);
        rig_spin(g, 1); /* and until it is on the disk */
}

static void expect(struct rig *g, int64_t records, int64_t lines)
{
        assert_int_equal(rig_count(g, "SELECT count(*) FROM turns"), records);
        assert_int_equal(rig_count(g, "SELECT count(*) FROM deliveries"), records);
        assert_int_equal(rig_count(g, "SELECT count(*) FROM trigger_log"), records);
        assert_int_equal(rig_count(g, "SELECT count(*) FROM transcript"), lines);
}

static void records_and_transcripts_are_kept_for_their_own_number_of_days(void **state)
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

static void the_newest_records_stay_so_that_no_number_comes_twice(void **state)
{
        struct rig *g = rig_with_records();

        (void)state;
        age(g, 3, 1000);
        prune(g);
        assert_int_equal(rig_count(g, "SELECT max(id) FROM turns"), 3);
        assert_int_equal(rig_count(g, "SELECT max(id) FROM deliveries"), 3);
        assert_int_equal(rig_count(g, "SELECT count(*) FROM trigger_log"), 0);
        rig_restart(g);
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until_count(g, "SELECT count(*) FROM turns WHERE id = 4 AND state = 'done'", 1);
        rig_until_idle(g);
        rig_free(g);
}

static void records_from_the_future_do_not_keep_those_behind_them(void **state)
{
        struct rig *g = rig_with_records();

        (void)state;
        age(g, 2, 1000);
        age(g, 1, -400); /* the clock was wrong for a moment */
        prune(g);
        expect(g, 2, 4);
        assert_int_equal(rig_count(g, "SELECT count(*) FROM turns WHERE id = 2"), 0);
        rig_free(g);
}

static void what_is_open_is_never_pruned(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        for (int i = 0; i < 2; i++)
                rig_say(g, "x", i ? "d" : "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 2);
        age(g, 2, 1000);
        prune(g);
        assert_int_equal(rig_count(g, "SELECT count(*) FROM turns WHERE state = 'running'"), 2);
        rig_free(g);
}

static void the_messages_of_an_open_turn_are_kept_however_short_events_are(void **state)
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
        assert_int_equal(rig_count(g, "SELECT count(*) FROM cursors WHERE name = 'turns'"), 1);
        assert_int_equal(rig_count(g, "SELECT seq FROM cursors WHERE name = 'turns'"), first - 1);
        g->auto_send = true;
        for (unsigned i = 0; i < COUNT(chats); i++)
                rig_answer(g, i, "hi");
        rig_until_idle(g);
        prune(g);
        assert_int_equal(rig_count(g, "SELECT seq FROM cursors WHERE name = 'turns'"),
                         rig_count(g, "SELECT max(seq) FROM journal"));
        rig_free(g);
}

static void on_retried(void *arg, const struct error *err)
{
        *(int *)arg = err ? (int)err->kind : 1000;
}

/* The row of such a message is still there, but only to know it again. */
static void a_turn_whose_messages_are_no_longer_kept_is_not_tried_once_more(void **state)
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
        rig_spin(g, 2);
        bus_prune(g->bus);
        rig_until_count(g, "SELECT count(*) FROM journal WHERE payload = '{}'", 1);
        turn_retry(g->road, 1, on_retried, &outcome);
        rig_spin(g, 1);
        assert_int_equal(outcome, ERR_MISSING);
        assert_int_equal(g->run_count, 1);
        assert_string_equal(rig_text(g, "SELECT state FROM turns"), "failed");
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(records_and_transcripts_are_kept_for_their_own_number_of_days),
                cmocka_unit_test(the_newest_records_stay_so_that_no_number_comes_twice),
                cmocka_unit_test(records_from_the_future_do_not_keep_those_behind_them),
                cmocka_unit_test(what_is_open_is_never_pruned),
                cmocka_unit_test(the_messages_of_an_open_turn_are_kept_however_short_events_are),
                cmocka_unit_test(a_turn_whose_messages_are_no_longer_kept_is_not_tried_once_more),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
