/* Retention: what is deleted, and which consumers it waits for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../lib/bus_rig.h"
#include "../lib/scratch.h"
#include "base/clock.h"
#include "store/sql.h"

struct rounds {
        struct timer *tick; /* keeps the loop waiting; the pruning timer does not */
        int rounds;
};

static void on_tick(void *arg)
{
        struct rounds *p = arg;

        p->rounds++;
}

/* Runs until the journal's tail is `tail`, or for so many ticks; returns the tail. */
static int64_t prune_until(struct bus_rig *r, int64_t tail, int rounds)
{
        struct rounds p = { 0 };

        p.tick = timer_new(r->loop, on_tick, &p);
        timer_repeat(p.tick, 1);
        while (bus_tail(r->bus) != tail && p.rounds < rounds)
                loop_step(r->loop, true);
        timer_free(p.tick);
        bus_rig_run(r);
        return bus_tail(r->bus);
}

static void reopen_pruning(struct bus_rig *r)
{
        bus_rig_close(r);
        r->options.prune_every_ms = 1;
        bus_rig_open(r);
}

static int count_rows(struct store_tx *tx, void *arg, struct error *err)
{
        return sql_number(tx, 0, arg, err, "SELECT count(*) FROM journal");
}

static int64_t rows(struct bus_rig *r)
{
        int64_t n = -1;

        assert_int_equal(store_read_now(r->store, count_rows, &n, NULL), 0);
        return n;
}

static void old_events_are_deleted_and_young_ones_stay(void **state)
{
        struct bus_rig *r = *state;
        int64_t now = clock_wall_ms();

        bus_rig_append_many(r, "message.received", now - 8 * DAY_MS, 2500);
        bus_rig_append_many(r, "message.received", now, 10);
        reopen_pruning(r);
        assert_int_equal(prune_until(r, 2501, 20000), 2501);
        assert_int_equal(rows(r), 10);
}

static void an_event_from_the_future_does_not_stop_pruning(void **state)
{
        struct bus_rig *r = *state;
        int64_t now = clock_wall_ms();

        /* the clock was wrong for a moment */
        bus_rig_append_many(r, "message.received", now + 400 * DAY_MS, 1);
        bus_rig_append_many(r, "message.received", now - 8 * DAY_MS, 2500);
        bus_rig_append_many(r, "message.received", now, 10);
        reopen_pruning(r);
        for (int i = 0; i < 100 && rows(r) > 11; i++)
                prune_until(r, -1, 50);
        assert_int_equal(rows(r), 11);
        assert_int_equal(bus_tail(r->bus), 1);
}

static int64_t keyed(struct bus_rig *r)
{
        struct bus_event e = { .type = "message.received",
                               .adapter = "tg",
                               .key = "again",
                               .payload = "{\"text\":\"hello\"}" };
        struct rig_append a;

        bus_rig_append(r, &a, &e, 1);
        return a.seq[0];
}

static int count_texts(struct store_tx *tx, void *arg, struct error *err)
{
        return sql_number(tx, 0, arg, err, "SELECT count(*) FROM journal WHERE payload <> '{}'");
}

static int64_t texts(struct bus_rig *r)
{
        int64_t n = -1;

        assert_int_equal(store_read_now(r->store, count_texts, &n, NULL), 0);
        return n;
}

static void a_pruned_event_is_still_recognised_by_its_key(void **state)
{
        struct bus_rig *r = *state;
        int64_t seq = keyed(r);

        bus_rig_append_many(r, "message.received", 0, 5);
        r->options.retention_ms[STREAM_MESSAGE] = 1;
        reopen_pruning(r);
        for (int i = 0; i < 100 && texts(r) > 0; i++)
                prune_until(r, -1, 50);
        assert_int_equal(texts(r), 0); /* its text is gone */
        assert_int_equal(rows(r), 1);
        assert_int_equal(keyed(r), seq); /* but it is no new event */
}

static void each_stream_has_its_own_retention(void **state)
{
        struct bus_rig *r = *state;
        int64_t now = clock_wall_ms();

        bus_rig_append_many(r, "turn.started", now - 2 * DAY_MS, 5);
        bus_rig_append_many(r, "message.received", now - 2 * DAY_MS, 5);
        bus_rig_append_many(r, "adapter.connected", now - 1000 * DAY_MS, 5);
        bus_rig_append_many(r, "message.received", now, 5);
        r->options.retention_ms[STREAM_TURN] = DAY_MS;
        r->options.retention_ms[STREAM_ADAPTER] = -1;
        reopen_pruning(r);
        assert_int_equal(prune_until(r, 6, 20000), 6);
        assert_int_equal(rows(r), 15);
}

static void pruning_waits_for_the_slowest_consumer(void **state)
{
        struct bus_rig *r = *state;
        struct rig_consumer slow = { .ack_until = 64 }, again = { .ack_until = INT64_MAX };

        bus_rig_append_many(r, "message.received", clock_wall_ms() - 8 * DAY_MS, 200);
        bus_rig_consume(r, &slow, "slow", BUS_ALL_STREAMS, 0);
        reopen_pruning(r);
        assert_int_equal(prune_until(r, 65, 20000), 65);
        assert_int_equal(prune_until(r, 66, 50), 65);
        assert_int_equal(rows(r), 136);
        bus_rig_consume(r, &again, "slow", BUS_ALL_STREAMS, 0);
        assert_int_equal(again.count, 136);
        assert_int_equal(prune_until(r, 201, 20000), 201);
}

/* Pretends that all consumers last ran so many days ago. */
static int age_cursors(struct store_tx *tx, void *arg, struct error *err)
{
        return sql_exec(tx, err, "UPDATE cursors SET updated_ms = ?1",
                        SQL_INT(clock_wall_ms() - *(int *)arg * DAY_MS));
}

static void stop_for_days(struct bus_rig *r, int days)
{
        bus_rig_close(r);
        bus_rig_open(r);
        assert_int_equal(store_write_now(r->store, age_cursors, &days, NULL), 0);
        reopen_pruning(r);
}

static void an_absent_consumer_is_waited_for_as_long_as_events_are_kept(void **state)
{
        struct bus_rig *r = *state;
        struct rig_consumer gone = { .ack_until = 64 }, back = { .ack_until = INT64_MAX };

        bus_rig_append_many(r, "message.received", clock_wall_ms() - 8 * DAY_MS, 200);
        bus_rig_append_many(r, "message.received", 0, 10);
        bus_rig_consume(r, &gone, "gone", BUS_ALL_STREAMS, 0);
        stop_for_days(r, 6);
        assert_int_equal(prune_until(r, 65, 20000), 65);
        assert_int_equal(prune_until(r, 66, 50), 65); /* it may still return */
        stop_for_days(r, 8);
        assert_int_equal(prune_until(r, 201, 20000), 201);
        bus_rig_consume(r, &back, "gone", BUS_ALL_STREAMS, 0);
        assert_int_equal(back.missed, 200 - 64);
        assert_int_equal(back.count, 10);
        assert_int_equal(bus_consumer_missed(back.consumer), 0); /* reported once */
}

static void missed_events_are_reported_until_the_first_ack(void **state)
{
        struct bus_rig *r = *state;
        struct rig_consumer gone = { 0 }, crashed = { 0 }, back = { .ack_until = INT64_MAX };

        bus_rig_append_many(r, "message.received", clock_wall_ms() - 8 * DAY_MS, 5);
        bus_rig_append_many(r, "message.received", 0, 1);
        bus_rig_consume(r, &gone, "gone", BUS_ALL_STREAMS, 0);
        stop_for_days(r, 8);
        assert_int_equal(prune_until(r, 6, 20000), 6);
        bus_rig_consume(r, &crashed, "gone", BUS_ALL_STREAMS, 0);
        assert_int_equal(crashed.missed, 5);
        bus_rig_close(r);
        bus_rig_open(r);
        bus_rig_consume(r, &back, "gone", BUS_ALL_STREAMS, 0);
        assert_int_equal(back.missed, 5);
}

static void the_wait_depends_on_the_retention_of_the_stream(void **state)
{
        struct bus_rig *r = *state;
        struct rig_consumer gone = { 0 }, back = { .ack_until = INT64_MAX };
        int64_t now = clock_wall_ms();

        bus_rig_append_many(r, "turn.started", now - 8 * DAY_MS, 5);
        bus_rig_append_many(r, "message.received", now - 8 * DAY_MS, 5);
        bus_rig_consume(r, &gone, "gone", BUS_ALL_STREAMS, 0);
        r->options.retention_ms[STREAM_TURN] = DAY_MS;
        stop_for_days(r, 3);
        assert_int_equal(prune_until(r, 6, 20000), 6);
        bus_rig_consume(r, &back, "gone", BUS_ALL_STREAMS, 0);
        assert_int_equal(back.missed, 5);
        assert_int_equal(back.count, 5);
}

static int set_cursor(struct store_tx *tx, void *arg, struct error *err)
{
        (void)arg;
        return bus_cursor_set(tx, "mine", 10, err);
}

static void an_active_reader_is_waited_for_without_limit(void **state)
{
        struct bus_rig *r = *state;
        struct rig_consumer slow = { .ack_until = 64 };

        bus_rig_append_many(r, "message.received", clock_wall_ms() - 8 * DAY_MS, 200);
        assert_int_equal(store_write_now(r->store, set_cursor, NULL, NULL), 0);
        bus_rig_consume(r, &slow, "slow", BUS_ALL_STREAMS, 0);
        stop_for_days(r, 8);
        bus_cursor_hold(r->bus, "mine");
        assert_int_equal(prune_until(r, 11, 20000), 11);
        assert_int_equal(prune_until(r, 12, 50), 11);
        stop_for_days(r, 8);
        slow = (struct rig_consumer){ .ack_until = 64 };
        slow.consumer =
                bus_consume(r->bus, "slow", BUS_ALL_STREAMS, 0, rig_consumer_on_events, &slow);
        assert_int_equal(prune_until(r, 129, 20000), 129);
        assert_int_equal(prune_until(r, 130, 50), 129);
}

static int rounds_of_pruning(struct bus_rig *r)
{
        struct store_health h;

        store_health(r->store, &h);
        return (int)h.commits;
}

/* A transaction that changes nothing still counts as a commit, so look at the WAL. */
static void an_idle_consumer_causes_no_writes(void **state)
{
        struct bus_rig *r = *state;
        struct rig_consumer all = { .ack_until = INT64_MAX };
        char *wal = scratch_path(r->dir, "main.db-wal");
        struct stat before, after;
        int rounds;

        bus_rig_append_many(r, "message.received", 0, 10);
        reopen_pruning(r);
        bus_rig_consume(r, &all, "all", BUS_ALL_STREAMS, 0);
        prune_until(r, -1, 20);
        assert_int_equal(stat(wal, &before), 0);
        rounds = rounds_of_pruning(r);
        for (int i = 0; i < 100 && rounds_of_pruning(r) < rounds + 5; i++)
                prune_until(r, -1, 20);
        assert_int_equal(stat(wal, &after), 0);
        assert_true(rounds_of_pruning(r) >= rounds + 5);
        assert_int_equal(after.st_size, before.st_size);
        free(wal);
}

static void a_consumer_of_a_quiet_stream_does_not_hold_back_others(void **state)
{
        struct bus_rig *r = *state;
        struct rig_consumer turns = { .ack_until = INT64_MAX };

        bus_rig_append_many(r, "message.received", clock_wall_ms() - 8 * DAY_MS, 200);
        reopen_pruning(r);
        bus_rig_consume(r, &turns, "turns", 1u << STREAM_TURN, 0);
        assert_int_equal(prune_until(r, 201, 20000), 201);
}

static void sequence_numbers_are_never_reused(void **state)
{
        struct bus_rig *r = *state;

        bus_rig_append_many(r, "message.received", clock_wall_ms() - 8 * DAY_MS, 50);
        reopen_pruning(r);
        assert_int_equal(prune_until(r, 51, 20000), 51);
        assert_int_equal(rows(r), 0);
        bus_rig_close(r);
        bus_rig_open(r);
        assert_int_equal(bus_head(r->bus), 50);
        assert_int_equal(bus_tail(r->bus), 51);
        assert_int_equal(bus_rig_append_one(r, "message.received", "new", 0), 51);
}

struct listing {
        char text[200];
};

static void add_cursor(void *arg, const struct bus_cursor *c)
{
        struct listing *l = arg;
        size_t n = strlen(l->text);

        snprintf(l->text + n, sizeof(l->text) - n, "%s at %lld lag %lld missed %lld; ", c->name,
                 (long long)c->seq, (long long)c->lag, (long long)c->missed);
}

static int list_cursors(struct store_tx *tx, void *arg, struct error *err)
{
        return bus_cursors(tx, add_cursor, arg, err);
}

static void cursors_are_listed_with_their_lag(void **state)
{
        struct bus_rig *r = *state;
        struct rig_consumer all = { .ack_until = INT64_MAX }, slow = { .ack_until = 64 };
        struct listing l = { 0 };

        bus_rig_append_many(r, "message.received", clock_wall_ms() - 8 * DAY_MS, 200);
        bus_rig_consume(r, &slow, "slow", BUS_ALL_STREAMS, 0);
        bus_rig_consume(r, &all, "all", BUS_ALL_STREAMS, 0);
        stop_for_days(r, 8);
        assert_int_equal(prune_until(r, 201, 20000), 201);
        assert_int_equal(store_read_now(r->store, list_cursors, &l, NULL), 0);
        assert_string_equal(l.text, "all at 200 lag 0 missed 0; slow at 64 lag 136 missed 136; ");
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, bus_rig_setup, bus_rig_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                CASE(old_events_are_deleted_and_young_ones_stay),
                CASE(an_event_from_the_future_does_not_stop_pruning),
                CASE(a_pruned_event_is_still_recognised_by_its_key),
                CASE(each_stream_has_its_own_retention),
                CASE(pruning_waits_for_the_slowest_consumer),
                CASE(an_absent_consumer_is_waited_for_as_long_as_events_are_kept),
                CASE(missed_events_are_reported_until_the_first_ack),
                CASE(the_wait_depends_on_the_retention_of_the_stream),
                CASE(an_active_reader_is_waited_for_without_limit),
                CASE(an_idle_consumer_causes_no_writes),
                CASE(a_consumer_of_a_quiet_stream_does_not_hold_back_others),
                CASE(sequence_numbers_are_never_reused),
                CASE(cursors_are_listed_with_their_lag),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
