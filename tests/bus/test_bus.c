/* The bus: appending, listeners, live events, pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/bus_rig.h"
#include "base/buf.h"
#include "base/mem.h"

/* --- appending --- */

static struct bus_event event(const char *type, const char *adapter, const char *channel,
                              const char *trace, const char *key, int64_t time_ms)
{
        return (struct bus_event){
                .type = type,
                .adapter = adapter,
                .channel = channel,
                .trace = trace,
                .key = key,
                .time_ms = time_ms,
                .payload = "{}",
        };
}

static void a_key_is_one_event_within_and_across_transactions(void **state)
{
        struct bus_rig *r = *state;
        struct bus_event e[4] = {
                event("message.received", "tg", NULL, NULL, "1", 0),
                event("message.received", "tg", NULL, NULL, "1", 0),
                event("message.received", "slack", NULL, NULL, "1", 0),
                event("turn.started", NULL, NULL, NULL, NULL, 0),
        };
        struct rig_append a;
        int64_t first;

        bus_rig_append(r, &a, e, 4);
        assert_int_equal(a.result[0], 1);
        assert_int_equal(a.result[1], 0);
        assert_int_equal(a.seq[1], a.seq[0]);
        assert_int_equal(a.result[2], 1);
        assert_int_equal(a.result[3], 1);
        assert_int_equal(bus_head(r->bus), a.seq[3]);
        first = a.seq[0];

        bus_rig_close(r);
        bus_rig_open(r);
        bus_rig_append(r, &a, e, 1);
        assert_int_equal(a.result[0], 0);
        assert_int_equal(a.seq[0], first);
}

static void a_key_without_an_adapter_is_unique_too(void **state)
{
        struct bus_rig *r = *state;
        struct bus_event e[2] = {
                event("custom.ping", NULL, NULL, NULL, "1", 0),
                event("custom.ping", NULL, NULL, NULL, "1", 0),
        };
        struct rig_append a;

        bus_rig_append(r, &a, e, 2);
        assert_int_equal(a.result[0], 1);
        assert_int_equal(a.result[1], 0);
        assert_int_equal(a.seq[1], a.seq[0]);
}

static int append_unknown(struct store_tx *tx, void *arg, struct error *err)
{
        struct bus_event e = { .type = "weather.changed", .payload = "{}" };

        (void)arg;
        return bus_append(tx, NULL, &e, NULL, err) < 0 ? -1 : 0;
}

static void a_type_of_no_stream_is_refused(void **state)
{
        struct bus_rig *r = *state;
        struct error err = { 0 };

        assert_int_equal(store_write_now(r->store, append_unknown, NULL, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
}

static void streams_and_event_ids_are_parsed(void **state)
{
        char id[BUS_ID_SIZE];

        (void)state;
        assert_int_equal(bus_stream_of("turn.started"), STREAM_TURN);
        assert_int_equal(bus_stream_of("turn"), STREAM_TURN);
        assert_int_equal(bus_stream_of("turnip.eaten"), -1);
        assert_int_equal(bus_stream_of("agent.circuit_opened"), STREAM_TURN);
        assert_int_equal(bus_stream_of(""), -1);
        assert_string_equal(bus_stream_name(STREAM_DELIVERY), "DELIVERY");
        assert_string_equal(bus_event_id(42, id), "evt-42");
        assert_int_equal(bus_event_seq("evt-42"), 42);
        assert_int_equal(bus_event_seq("42"), 42);
        assert_int_equal(bus_event_seq("evt-"), -1);
        assert_int_equal(bus_event_seq("evt-4x"), -1);
        assert_int_equal(bus_event_seq("-4"), -1);
        assert_int_equal(bus_event_seq("evt-042"), -1);
        assert_int_equal(bus_event_seq("evt-0"), 0);
        assert_int_equal(bus_event_seq("99999999999999999999"), -1);
}

static void the_envelope_has_every_member(void **state)
{
        struct bus_event e = { .seq = 7,
                               .type = "message.received",
                               .time_ms = 5,
                               .adapter = "tg",
                               .payload = "{\"a\":1}" };
        struct bus_event *copy = bus_event_dup(&e);
        struct buf out;

        (void)state;
        buf_init(&out, 0);
        bus_event_json(copy, &out);
        assert_string_equal(
                out.data,
                "{\"id\":\"evt-7\",\"type\":\"message.received\",\"timestamp\":5,"
                "\"instanceId\":\"tg\",\"channel\":null,\"threadId\":null,\"traceId\":null,"
                "\"payload\":{\"a\":1}}");
        buf_release(&out);
        free(copy);
}

/* --- listeners --- */

struct listener {
        struct bus_rig *r;
        struct bus_listener *listener, *other;
        const char *name;
        bool leave, remove_other, answer, invite;
        struct listener *guest;
};

static char deliveries[400];

static void publish(struct bus_rig *r, int64_t seq)
{
        const struct bus_event e = { .seq = seq, .type = "turn.started", .payload = "{}" };
        struct bus_batch batch = { .count = 1, .cap = 1 };

        batch.events = mem_alloc(sizeof(struct bus_event *));
        batch.events[0] = bus_event_dup(&e);
        bus_publish(r->bus, &batch);
        bus_batch_release(&batch);
}

static void on_event(void *arg, const struct bus_event *e)
{
        struct listener *l = arg;
        char line[40];

        snprintf(line, sizeof(line), "%s%lld ", l->name, (long long)e->seq);
        strncat(deliveries, line, sizeof(deliveries) - strlen(deliveries) - 1);
        if (l->leave)
                bus_unlisten(l->r->bus, l->listener);
        if (l->remove_other)
                bus_unlisten(l->r->bus, l->other);
        if (l->invite)
                l->guest->listener = bus_listen(l->r->bus, BUS_ALL_STREAMS, on_event, l->guest);
        l->leave = l->remove_other = l->invite = false;
        if (!l->answer)
                return;
        l->answer = false;
        publish(l->r, e->seq + 100);
}

static void listen_as(struct bus_rig *r, struct listener *l, const char *name, unsigned streams)
{
        memset(l, 0, sizeof(*l));
        l->r = r;
        l->name = name;
        l->listener = bus_listen(r->bus, streams, on_event, l);
}

static void listeners_get_their_streams_in_order(void **state)
{
        struct bus_rig *r = *state;
        struct listener a, b;

        deliveries[0] = '\0';
        listen_as(r, &a, "a", BUS_ALL_STREAMS);
        listen_as(r, &b, "b", 1u << STREAM_TURN);
        bus_rig_append_one(r, "message.received", "1", 0);
        bus_rig_append_one(r, "turn.started", "2", 0);
        assert_string_equal(deliveries, "a1 a2 b2 ");
        bus_unlisten(r->bus, a.listener);
        bus_rig_append_one(r, "turn.started", "3", 0);
        assert_string_equal(deliveries, "a1 a2 b2 b3 ");
}

static void a_listener_may_leave_and_remove_others_during_a_call(void **state)
{
        struct bus_rig *r = *state;
        struct listener a, b, c;

        deliveries[0] = '\0';
        listen_as(r, &a, "a", BUS_ALL_STREAMS);
        listen_as(r, &b, "b", BUS_ALL_STREAMS);
        listen_as(r, &c, "c", BUS_ALL_STREAMS);
        a.leave = true;
        a.remove_other = true;
        a.other = b.listener;
        bus_rig_append_one(r, "message.received", "1", 0);
        bus_rig_append_one(r, "message.received", "2", 0);
        assert_string_equal(deliveries, "a1 c1 c2 ");
}

static void events_a_listener_publishes_come_after_their_cause(void **state)
{
        struct bus_rig *r = *state;
        struct listener a, b;

        deliveries[0] = '\0';
        listen_as(r, &a, "a", BUS_ALL_STREAMS);
        listen_as(r, &b, "b", BUS_ALL_STREAMS);
        a.answer = true;
        bus_rig_append_one(r, "message.received", "1", 0);
        assert_string_equal(deliveries, "a1 b1 a101 b101 ");
}

static void deferred_batches_are_published_in_the_order_of_the_journal(void **state)
{
        struct bus_rig *r = *state;
        struct listener a;

        deliveries[0] = '\0';
        listen_as(r, &a, "a", BUS_ALL_STREAMS);
        a.answer = true;
        bus_defer(r->bus);
        publish(r, 3);
        publish(r, 1);
        publish(r, 2);
        assert_string_equal(deliveries, "");
        bus_flush(r->bus);
        assert_string_equal(deliveries, "a1 a2 a3 a101 ");
        bus_defer(r->bus);
        bus_flush(r->bus);
        publish(r, 102);
        assert_string_equal(deliveries, "a1 a2 a3 a101 a102 ");
}

static void a_listener_that_joins_during_a_call_gets_the_next_event(void **state)
{
        struct bus_rig *r = *state;
        struct listener a, guest = { .r = r, .name = "g" };

        deliveries[0] = '\0';
        listen_as(r, &a, "a", BUS_ALL_STREAMS);
        a.invite = true;
        a.guest = &guest;
        bus_rig_append_one(r, "message.received", "1", 0);
        bus_rig_append_one(r, "message.received", "2", 0);
        assert_string_equal(deliveries, "a1 a2 g2 ");
}

static void live_events_reach_live_listeners_only(void **state)
{
        struct bus_rig *r = *state;
        struct bus_event delta = { .type = "turn.delta", .payload = "{}" };
        struct listener journal, live;

        deliveries[0] = '\0';
        listen_as(r, &journal, "j", BUS_ALL_STREAMS);
        listen_as(r, &live, "l", 0);
        bus_unlisten(r->bus, live.listener);
        live.listener = bus_listen_live(r->bus, on_event, &live);
        bus_publish_live(r->bus, &delta);
        bus_rig_append_one(r, "turn.started", NULL, 0);
        assert_string_equal(deliveries, "l0 j1 ");
        assert_int_equal(bus_head(r->bus), 1);
        assert_true(bus_is_up(r->bus, &delta.payload));

        /* a journaled answer to a live event is delivered, and leaving during the call is fine */
        live.answer = live.leave = true;
        bus_publish_live(r->bus, &delta);
        bus_publish_live(r->bus, &delta);
        assert_string_equal(deliveries, "l0 j1 l0 j100 ");
}

/* --- pages --- */

struct page {
        struct bus_filter f;
        unsigned limit;
        int64_t seq[64];
        int count, result;
        int64_t scanned_to;
};

static void on_row(void *arg, const struct bus_event *e)
{
        struct page *p = arg;

        p->seq[p->count++] = e->seq;
}

static int read_page(struct store_tx *tx, void *arg, struct error *err)
{
        struct page *p = arg;

        p->count = 0;
        p->result = bus_read(tx, &p->f, p->limit, on_row, p, &p->scanned_to, err);
        return p->result < 0 ? -1 : 0;
}

static void expect_page(struct bus_rig *r, struct bus_filter f, unsigned limit,
                        const char *expected)
{
        struct page p = { .f = f, .limit = limit };
        char got[400] = "";

        assert_int_equal(store_read_now(r->store, read_page, &p, NULL), 0);
        assert_int_equal(p.result, p.count);
        for (int i = 0; i < p.count; i++) {
                char n[24];

                snprintf(n, sizeof(n), "%lld ", (long long)p.seq[i]);
                strncat(got, n, sizeof(got) - strlen(got) - 1);
        }
        assert_string_equal(got, expected);
}

static void pages_are_filtered_in_both_directions(void **state)
{
        struct bus_rig *r = *state;
        struct bus_event e[6] = {
                event("message.received", "tg", "a", "t1", NULL, 10),
                event("turn.started", NULL, NULL, "t1", NULL, 20),
                event("message.received", "slack", "b", "t2", NULL, 30),
                event("turn.done", NULL, NULL, "t1", NULL, 40),
                event("message.edited", "tg", "b", "t3", NULL, 50),
                event("delivery.sent", "tg", "a", "t1", NULL, 60),
        };
        struct rig_append a;

        bus_rig_append(r, &a, e, 6);
        expect_page(r, (struct bus_filter){ 0 }, 10, "1 2 3 4 5 6 ");
        expect_page(r, (struct bus_filter){ 0 }, 2, "1 2 ");
        expect_page(r, (struct bus_filter){ .after = 2 }, 2, "3 4 ");
        expect_page(r, (struct bus_filter){ .before = 5 }, 2, "4 3 ");
        expect_page(r, (struct bus_filter){ .before = 5, .after = 3 }, 9, "4 ");
        expect_page(r, (struct bus_filter){ .streams = 1u << STREAM_TURN }, 9, "2 4 ");
        expect_page(r, (struct bus_filter){ .type = "message.*" }, 9, "1 3 5 ");
        expect_page(r, (struct bus_filter){ .type = "turn.done" }, 9, "4 ");
        expect_page(r, (struct bus_filter){ .adapter = "tg", .channel = "a" }, 9, "1 6 ");
        expect_page(r, (struct bus_filter){ .trace = "t1", .before = 100 }, 3, "6 4 2 ");
        expect_page(r, (struct bus_filter){ .since_ms = 20, .until_ms = 50 }, 9, "2 3 4 ");
}

static void a_page_scans_a_bounded_number_of_rows(void **state)
{
        struct bus_rig *r = *state;
        struct page p = { .f = { .type = "turn.started" }, .limit = 10 };

        bus_rig_append_many(r, "message.received", 0, 12000);
        bus_rig_append_many(r, "turn.started", 0, 1);
        assert_int_equal(store_read_now(r->store, read_page, &p, NULL), 0);
        assert_int_equal(p.count, 0);
        assert_int_equal(p.scanned_to, 5000);
        p.f.after = 10000;
        assert_int_equal(store_read_now(r->store, read_page, &p, NULL), 0);
        assert_int_equal(p.count, 1);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, bus_rig_setup, bus_rig_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                CASE(a_key_is_one_event_within_and_across_transactions),
                CASE(a_key_without_an_adapter_is_unique_too),
                CASE(a_type_of_no_stream_is_refused),
                CASE(streams_and_event_ids_are_parsed),
                CASE(the_envelope_has_every_member),
                CASE(listeners_get_their_streams_in_order),
                CASE(a_listener_may_leave_and_remove_others_during_a_call),
                CASE(events_a_listener_publishes_come_after_their_cause),
                CASE(deferred_batches_are_published_in_the_order_of_the_journal),
                CASE(a_listener_that_joins_during_a_call_gets_the_next_event),
                CASE(live_events_reach_live_listeners_only),
                CASE(pages_are_filtered_in_both_directions),
                CASE(a_page_scans_a_bounded_number_of_rows),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
