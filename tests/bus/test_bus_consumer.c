/* Durable consumers and cursors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <sched.h>

#include "../lib/bus_rig.h"
#include "../lib/fault_map.h"

static void a_consumer_gets_events_from_while_it_was_away(void **state)
{
        struct bus_rig *r = *state;
        struct rig_consumer first = { .ack_until = INT64_MAX }, second = { .ack_until = INT64_MAX };

        bus_rig_append_many(r, "message.received", 0, 300);
        bus_rig_consume(r, &first, "reader", BUS_ALL_STREAMS, 0);
        assert_int_equal(first.count, 300);
        bus_rig_append_many(r, "message.received", 0, 5);
        assert_int_equal(first.count, 305);
        bus_consumer_stop(first.consumer);
        bus_rig_append_many(r, "message.received", 0, 200);
        bus_rig_close(r);
        bus_rig_open(r);
        bus_rig_consume(r, &second, "reader", BUS_ALL_STREAMS, 0);
        assert_int_equal(second.count, 200);
        assert_int_equal(second.last, bus_head(r->bus));
}

static void unacknowledged_events_come_again_after_a_restart(void **state)
{
        struct bus_rig *r = *state;
        struct rig_consumer first = { .ack_until = 128 }, second = { .ack_until = INT64_MAX };

        bus_rig_append_many(r, "message.received", 0, 300);
        bus_rig_consume(r, &first, "reader", BUS_ALL_STREAMS, 0);
        assert_true(first.count > 128 && first.count < 300); /* waits for the acknowledgement */
        bus_rig_close(r);
        bus_rig_open(r);
        bus_rig_consume(r, &second, "reader", BUS_ALL_STREAMS, 0);
        assert_int_equal(second.count, 300 - 128);
}

static void a_consumer_gets_only_its_streams_and_may_start_now(void **state)
{
        struct bus_rig *r = *state;
        struct rig_consumer turns = { .ack_until = INT64_MAX }, late = { .ack_until = INT64_MAX };

        bus_rig_append_many(r, "message.received", 0, 6000);
        bus_rig_append_many(r, "turn.started", 0, 3);
        bus_rig_consume(r, &turns, "turns", 1u << STREAM_TURN, 0);
        bus_rig_consume(r, &late, "late", BUS_ALL_STREAMS, -1);
        assert_int_equal(turns.count, 3);
        assert_int_equal(late.count, 0);
        bus_rig_append_many(r, "message.received", 0, 2);
        assert_int_equal(turns.count, 3);
        assert_int_equal(late.count, 2);
}

static void a_consumer_may_stop_at_any_time(void **state)
{
        struct bus_rig *r = *state;
        struct rig_consumer inside = { .stop = true }, outside = { 0 };

        bus_rig_append_many(r, "message.received", 0, 10);
        bus_rig_consume(r, &inside, "inside", BUS_ALL_STREAMS, 0);
        assert_int_equal(inside.count, 10);
        outside.consumer = bus_consume(r->bus, "outside", BUS_ALL_STREAMS, 0,
                                       rig_consumer_on_events, &outside);
        bus_consumer_stop(outside.consumer);
        bus_rig_run(r);
        assert_int_equal(outside.count, 0);
}

#ifdef DRAGOMAN_FAULTS

static struct fault_control *control; /* mapped before the first store is opened */

static void a_consumer_that_cannot_use_the_store_tries_again(void **state)
{
        struct bus_rig *r = *state;
        struct rig_consumer e = { .ack_until = INT64_MAX };
        struct store_health health;

        bus_rig_append_many(r, "message.received", 0, 10);
        control->fsync_fails = 1;
        e.consumer = bus_consume(r->bus, "reader", BUS_ALL_STREAMS, 0, rig_consumer_on_events, &e);
        do {
                sched_yield();
                store_health(r->store, &health);
        } while (health.ok);
        control->fsync_fails = 0;
        bus_rig_run(r);
        assert_int_equal(e.count, 10);
}

#endif

struct cursor {
        int64_t set, got;
        int known;
};

static int move(struct store_tx *tx, void *arg, struct error *err)
{
        struct cursor *c = arg;

        if (c->set && bus_cursor_set(tx, "mine", c->set, err) != 0)
                return -1;
        c->known = bus_cursor_get(tx, "mine", &c->got, err);
        return c->known < 0 ? -1 : 0;
}

static void a_cursor_never_moves_back(void **state)
{
        struct bus_rig *r = *state;
        struct cursor c = { 0 };

        assert_int_equal(store_write_now(r->store, move, &c, NULL), 0);
        assert_int_equal(c.known, 0);
        assert_int_equal(c.got, 0);
        c.set = 10;
        assert_int_equal(store_write_now(r->store, move, &c, NULL), 0);
        c.set = 5;
        assert_int_equal(store_write_now(r->store, move, &c, NULL), 0);
        assert_int_equal(c.known, 1);
        assert_int_equal(c.got, 10);
}

static void ignore(void *arg, const struct bus_event *e)
{
        (void)arg;
        (void)e;
}

static void a_hundred_thousand_events_leave_nothing_in_memory(void **state)
{
        struct bus_rig *r = *state;
        struct rig_consumer e = { .ack_until = INT64_MAX };
        size_t before;

        bus_listen(r->bus, 1u << STREAM_SCHEDULE, ignore, NULL);
        bus_rig_consume(r, &e, "reader", BUS_ALL_STREAMS, 0);
        for (int i = 0; i < 10; i++) /* the database's page caches fill up */
                bus_rig_append_many(r, "message.received", 0, 5000);
        before = mallinfo2().uordblks;
        for (int i = 0; i < 10; i++)
                bus_rig_append_many(r, "message.received", 0, 5000);
        assert_int_equal(e.count, 100000);
        /* always true under sanitizers */
        assert_true(mallinfo2().uordblks < before + 1024 * 1024);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, bus_rig_setup, bus_rig_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                CASE(a_consumer_gets_events_from_while_it_was_away),
                CASE(unacknowledged_events_come_again_after_a_restart),
                CASE(a_consumer_gets_only_its_streams_and_may_start_now),
                CASE(a_consumer_may_stop_at_any_time),
#ifdef DRAGOMAN_FAULTS
                CASE(a_consumer_that_cannot_use_the_store_tries_again),
#endif
                CASE(a_cursor_never_moves_back),
                CASE(a_hundred_thousand_events_leave_nothing_in_memory),
        };

#ifdef DRAGOMAN_FAULTS
        control = fault_map();
#endif
        return cmocka_run_group_tests(tests, NULL, NULL);
}
