/* The bus: one order, nothing twice, nobody who has a cursor misses anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../lib/scratch.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "rows/schema.h"

#define DAY_MS (24 * 60 * 60 * INT64_C(1000))

struct world {
        char *dir;
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct bus_options options;
};

static void must_open(struct world *w)
{
        struct store_options o = { .url = "sqlite", .dir = w->dir, .migrations = schema_steps };
        struct error err = { 0 };

        w->store = store_open(w->loop, &o, &err);
        if (!w->store)
                fail_msg("%s", err.text);
        w->bus = bus_open(w->loop, w->store, &w->options, &err);
        if (!w->bus)
                fail_msg("%s", err.text);
}

static void must_close(struct world *w)
{
        bus_close(w->bus);
        store_close(w->store);
        w->bus = NULL;
        w->store = NULL;
}

static int setup(void **state)
{
        struct world *w = mem_zalloc(sizeof(*w));

        w->dir = scratch_new();
        w->loop = loop_new();
        w->options.url = "local";
        must_open(w);
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        must_close(w);
        loop_free(w->loop);
        scratch_free(w->dir);
        free(w);
        return 0;
}

static void run_until_idle(struct world *w)
{
        while (loop_step(w->loop, true))
                ;
}

/* --- appending and publishing --- */

struct append {
        struct world *w;
        struct bus_event *events;
        unsigned count;
        struct bus_batch batch;
        int64_t seq[8];
        int result[8];
};

static int append_all(struct store_tx *tx, void *arg, struct error *err)
{
        struct append *a = arg;

        bus_batch_reset(&a->batch);
        for (unsigned i = 0; i < a->count; i++) {
                a->result[i] = bus_append(tx, &a->batch, &a->events[i], &a->seq[i], err);
                if (a->result[i] < 0)
                        return -1;
        }
        return 0;
}

static void on_appended(void *arg, const struct error *err)
{
        struct append *a = arg;

        assert_null(err);
        bus_publish(a->w->bus, &a->batch);
}

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

static void append(struct world *w, struct append *a, struct bus_event *events, unsigned count)
{
        *a = (struct append){ .w = w, .events = events, .count = count };
        store_write(w->store, append_all, on_appended, a);
        run_until_idle(w);
        bus_batch_release(&a->batch);
}

static int64_t append_one(struct world *w, const char *type, const char *key, int64_t time_ms)
{
        struct bus_event e = {
                .type = type, .adapter = "tg", .key = key, .time_ms = time_ms, .payload = "{}"
        };
        struct append a;

        append(w, &a, &e, 1);
        return a.seq[0];
}

/* Many at once, without keys. */
struct bulk {
        const char *type;
        int64_t time_ms;
        int count;
        struct bus_batch batch;
        struct world *w;
};

static int append_bulk(struct store_tx *tx, void *arg, struct error *err)
{
        struct bulk *b = arg;
        struct bus_event e = { .type = b->type,
                               .time_ms = b->time_ms,
                               .payload = "{\"text\":\"hello\"}" };

        bus_batch_reset(&b->batch);
        for (int i = 0; i < b->count; i++)
                if (bus_append(tx, &b->batch, &e, NULL, err) < 0)
                        return -1;
        return 0;
}

static void on_bulk(void *arg, const struct error *err)
{
        struct bulk *b = arg;

        assert_null(err);
        bus_publish(b->w->bus, &b->batch);
}

static void append_many(struct world *w, const char *type, int64_t time_ms, int count)
{
        struct bulk b = { .type = type, .time_ms = time_ms, .count = count, .w = w };

        store_write(w->store, append_bulk, on_bulk, &b);
        run_until_idle(w);
        bus_batch_release(&b.batch);
}

static void one_key_is_one_event_in_a_transaction_and_across(void **state)
{
        struct world *w = *state;
        struct bus_event e[4] = {
                event("message.received", "tg", NULL, NULL, "1", 0),
                event("message.received", "tg", NULL, NULL, "1", 0),
                event("message.received", "slack", NULL, NULL, "1", 0),
                event("turn.started", NULL, NULL, NULL, NULL, 0),
        };
        struct append a;
        int64_t first;

        append(w, &a, e, 4);
        assert_int_equal(a.result[0], 1);
        assert_int_equal(a.result[1], 0);
        assert_int_equal(a.seq[1], a.seq[0]);
        assert_int_equal(a.result[2], 1);
        assert_int_equal(a.result[3], 1);
        assert_int_equal(bus_head(w->bus), a.seq[3]);
        first = a.seq[0];

        must_close(w);
        must_open(w);
        append(w, &a, e, 1);
        assert_int_equal(a.result[0], 0);
        assert_int_equal(a.seq[0], first);
}

static void a_key_without_an_adapter_is_unique_too(void **state)
{
        struct world *w = *state;
        struct bus_event e[2] = {
                event("custom.ping", NULL, NULL, NULL, "1", 0),
                event("custom.ping", NULL, NULL, NULL, "1", 0),
        };
        struct append a;

        append(w, &a, e, 2);
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
        struct world *w = *state;
        struct error err = { 0 };

        assert_int_equal(store_write_now(w->store, append_unknown, NULL, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
}

static void names_and_numbers_of_events_are_read_back(void **state)
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
                "{\"id\":\"evt-7\",\"type\":\"message.received\",\"timestamp\":5,\"instanceId\":\"tg\",\"channel\":null,\"threadId\":null,\"traceId\":null,\"payload\":{\"a\":1}}");
        buf_release(&out);
        free(copy);
}

/* --- listeners --- */

struct ear {
        struct world *w;
        struct bus_listener *listener, *other;
        const char *name;
        bool leave, push_out, answer, invite;
        struct ear *guest;
};

static char all_heard[400];

static void on_event(void *arg, const struct bus_event *e)
{
        struct ear *ear = arg;
        char line[40];
        struct bus_event reply = { .seq = e->seq + 100, .type = "turn.started", .payload = "{}" };
        struct bus_batch batch = { 0 };

        snprintf(line, sizeof(line), "%s%lld ", ear->name, (long long)e->seq);
        strncat(all_heard, line, sizeof(all_heard) - strlen(all_heard) - 1);
        if (ear->leave)
                bus_unlisten(ear->w->bus, ear->listener);
        if (ear->push_out)
                bus_unlisten(ear->w->bus, ear->other);
        if (ear->invite)
                ear->guest->listener =
                        bus_listen(ear->w->bus, BUS_ALL_STREAMS, on_event, ear->guest);
        ear->leave = ear->push_out = ear->invite = false;
        if (!ear->answer)
                return;
        ear->answer = false;
        batch.events = mem_alloc(sizeof(struct bus_event *));
        batch.events[0] = bus_event_dup(&reply);
        batch.count = batch.cap = 1;
        bus_publish(ear->w->bus, &batch);
        bus_batch_release(&batch);
}

static void hear(struct world *w, struct ear *ear, const char *name, unsigned streams)
{
        memset(ear, 0, sizeof(*ear));
        ear->w = w;
        ear->name = name;
        ear->listener = bus_listen(w->bus, streams, on_event, ear);
}

static void listeners_hear_their_streams_in_order(void **state)
{
        struct world *w = *state;
        struct ear a, b;

        all_heard[0] = '\0';
        hear(w, &a, "a", BUS_ALL_STREAMS);
        hear(w, &b, "b", 1u << STREAM_TURN);
        append_one(w, "message.received", "1", 0);
        append_one(w, "turn.started", "2", 0);
        assert_string_equal(all_heard, "a1 a2 b2 ");
        bus_unlisten(w->bus, a.listener);
        append_one(w, "turn.started", "3", 0);
        assert_string_equal(all_heard, "a1 a2 b2 b3 ");
}

static void a_listener_may_leave_and_remove_others_during_a_call(void **state)
{
        struct world *w = *state;
        struct ear a, b, c;

        all_heard[0] = '\0';
        hear(w, &a, "a", BUS_ALL_STREAMS);
        hear(w, &b, "b", BUS_ALL_STREAMS);
        hear(w, &c, "c", BUS_ALL_STREAMS);
        a.leave = true;
        a.push_out = true;
        a.other = b.listener;
        append_one(w, "message.received", "1", 0);
        append_one(w, "message.received", "2", 0);
        assert_string_equal(all_heard, "a1 c1 c2 ");
}

static void what_a_listener_publishes_comes_after_what_made_it(void **state)
{
        struct world *w = *state;
        struct ear a, b;

        all_heard[0] = '\0';
        hear(w, &a, "a", BUS_ALL_STREAMS);
        hear(w, &b, "b", BUS_ALL_STREAMS);
        a.answer = true;
        append_one(w, "message.received", "1", 0);
        assert_string_equal(all_heard, "a1 b1 a101 b101 ");
}

static void a_listener_that_joins_during_a_call_hears_the_next_event(void **state)
{
        struct world *w = *state;
        struct ear a, guest = { .w = w, .name = "g" };

        all_heard[0] = '\0';
        hear(w, &a, "a", BUS_ALL_STREAMS);
        a.invite = true;
        a.guest = &guest;
        append_one(w, "message.received", "1", 0);
        append_one(w, "message.received", "2", 0);
        assert_string_equal(all_heard, "a1 a2 g2 ");
}

static void live_events_reach_live_listeners_only(void **state)
{
        struct world *w = *state;
        struct bus_event delta = { .type = "turn.delta", .payload = "{}" };
        struct ear journal, live;

        all_heard[0] = '\0';
        hear(w, &journal, "j", BUS_ALL_STREAMS);
        hear(w, &live, "l", 0);
        bus_unlisten(w->bus, live.listener);
        live.listener = bus_listen_live(w->bus, on_event, &live);
        bus_publish_live(w->bus, &delta);
        append_one(w, "turn.started", NULL, 0);
        assert_string_equal(all_heard, "l0 j1 ");
        assert_int_equal(bus_head(w->bus), 1);
        assert_true(bus_is_up(w->bus, &delta.payload));

        /* a journaled answer to a live event is delivered, and leaving during the call is fine */
        live.answer = live.leave = true;
        bus_publish_live(w->bus, &delta);
        bus_publish_live(w->bus, &delta);
        assert_string_equal(all_heard, "l0 j1 l0 j100 ");
}

/* --- durable consumers --- */

struct eater {
        struct bus_consumer *consumer;
        int64_t last;
        int64_t count;
        int64_t missed;    /* as told at the first call */
        int64_t ack_until; /* stops acknowledging after so many events */
        bool stop;         /* stops itself inside the call */
};

static void on_food(void *arg, const struct bus_event *const *events, unsigned count)
{
        struct eater *e = arg;

        for (unsigned i = 0; i < count; i++) {
                assert_true(events[i]->seq > e->last);
                e->last = events[i]->seq;
        }
        if (e->count == 0)
                e->missed = bus_consumer_missed(e->consumer);
        e->count += count;
        if (e->stop)
                bus_consumer_stop(e->consumer);
        else if (e->count <= e->ack_until)
                bus_consumer_ack(e->consumer);
}

static void eat(struct world *w, struct eater *e, const char *name, unsigned streams, int64_t from)
{
        e->consumer = bus_consume(w->bus, name, streams, from, on_food, e);
        assert_int_equal(e->count, 0);
        run_until_idle(w);
}

static void a_durable_consumer_gets_everything_including_what_came_while_it_was_away(void **state)
{
        struct world *w = *state;
        struct eater first = { .ack_until = INT64_MAX }, second = { .ack_until = INT64_MAX };

        append_many(w, "message.received", 0, 300);
        eat(w, &first, "reader", BUS_ALL_STREAMS, 0);
        assert_int_equal(first.count, 300);
        append_many(w, "message.received", 0, 5);
        assert_int_equal(first.count, 305);
        bus_consumer_stop(first.consumer);
        append_many(w, "message.received", 0, 200);
        must_close(w);
        must_open(w);
        eat(w, &second, "reader", BUS_ALL_STREAMS, 0);
        assert_int_equal(second.count, 200);
        assert_int_equal(second.last, bus_head(w->bus));
}

static void what_was_not_acknowledged_comes_again_after_a_restart(void **state)
{
        struct world *w = *state;
        struct eater first = { .ack_until = 128 }, second = { .ack_until = INT64_MAX };

        append_many(w, "message.received", 0, 300);
        eat(w, &first, "reader", BUS_ALL_STREAMS, 0);
        assert_true(first.count > 128 && first.count < 300); /* waits for the acknowledgement */
        must_close(w);
        must_open(w);
        eat(w, &second, "reader", BUS_ALL_STREAMS, 0);
        assert_int_equal(second.count, 300 - 128);
}

static void a_consumer_gets_only_its_streams_and_may_start_now(void **state)
{
        struct world *w = *state;
        struct eater turns = { .ack_until = INT64_MAX }, late = { .ack_until = INT64_MAX };

        append_many(w, "message.received", 0, 6000);
        append_many(w, "turn.started", 0, 3);
        eat(w, &turns, "turns", 1u << STREAM_TURN, 0);
        eat(w, &late, "late", BUS_ALL_STREAMS, -1);
        assert_int_equal(turns.count, 3);
        assert_int_equal(late.count, 0);
        append_many(w, "message.received", 0, 2);
        assert_int_equal(turns.count, 3);
        assert_int_equal(late.count, 2);
}

static void a_consumer_may_stop_inside_its_call_or_while_the_store_works(void **state)
{
        struct world *w = *state;
        struct eater inside = { .stop = true }, outside = { 0 };

        append_many(w, "message.received", 0, 10);
        eat(w, &inside, "inside", BUS_ALL_STREAMS, 0);
        assert_int_equal(inside.count, 10);
        outside.consumer = bus_consume(w->bus, "outside", BUS_ALL_STREAMS, 0, on_food, &outside);
        bus_consumer_stop(outside.consumer);
        run_until_idle(w);
        assert_int_equal(outside.count, 0);
}

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
        struct world *w = *state;
        struct cursor c = { 0 };

        assert_int_equal(store_write_now(w->store, move, &c, NULL), 0);
        assert_int_equal(c.known, 0);
        assert_int_equal(c.got, 0);
        c.set = 10;
        assert_int_equal(store_write_now(w->store, move, &c, NULL), 0);
        c.set = 5;
        assert_int_equal(store_write_now(w->store, move, &c, NULL), 0);
        assert_int_equal(c.known, 1);
        assert_int_equal(c.got, 10);
}

/* --- retention --- */

struct patience {
        struct timer *tick; /* keeps the loop waiting; the pruning timer does not */
        int rounds;
};

static void on_tick(void *arg)
{
        struct patience *p = arg;

        p->rounds++;
}

/* Runs until the journal's tail is there, or for so many ticks that it should have been. */
static int64_t prune_until(struct world *w, int64_t tail, int rounds)
{
        struct patience p = { 0 };

        p.tick = timer_new(w->loop, on_tick, &p);
        timer_repeat(p.tick, 1);
        while (bus_tail(w->bus) != tail && p.rounds < rounds)
                loop_step(w->loop, true);
        timer_free(p.tick);
        run_until_idle(w);
        return bus_tail(w->bus);
}

static void reopen_pruning(struct world *w)
{
        must_close(w);
        w->options.prune_every_ms = 1;
        must_open(w);
}

static int count_rows(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, "SELECT count(*) FROM journal");

        if (store_step(s, err) != 1)
                return -1;
        *(int64_t *)arg = store_col_int(s, 0);
        return 0;
}

static int64_t rows(struct world *w)
{
        int64_t n = -1;

        assert_int_equal(store_read_now(w->store, count_rows, &n, NULL), 0);
        return n;
}

static void old_events_go_and_young_ones_stay(void **state)
{
        struct world *w = *state;
        int64_t now = clock_wall_ms();

        append_many(w, "message.received", now - 8 * DAY_MS, 2500);
        append_many(w, "message.received", now, 10);
        reopen_pruning(w);
        assert_int_equal(prune_until(w, 2501, 20000), 2501);
        assert_int_equal(rows(w), 10);
}

static void an_event_from_the_future_does_not_keep_those_behind_it(void **state)
{
        struct world *w = *state;
        int64_t now = clock_wall_ms();

        /* the clock was wrong for a moment */
        append_many(w, "message.received", now + 400 * DAY_MS, 1);
        append_many(w, "message.received", now - 8 * DAY_MS, 2500);
        append_many(w, "message.received", now, 10);
        reopen_pruning(w);
        for (int i = 0; i < 100 && rows(w) > 11; i++)
                prune_until(w, -1, 50);
        assert_int_equal(rows(w), 11);
        assert_int_equal(bus_tail(w->bus), 1);
}

static int64_t keyed(struct world *w)
{
        struct bus_event e = { .type = "message.received",
                               .adapter = "tg",
                               .key = "again",
                               .payload = "{\"text\":\"hello\"}" };
        struct append a;

        append(w, &a, &e, 1);
        return a.seq[0];
}

static int count_texts(struct store_tx *tx, void *arg, struct error *err)
{
        return store_number(store_prepare(tx, "SELECT count(*) FROM journal WHERE payload <> '{}'"),
                            0, arg, err);
}

static int64_t texts(struct world *w)
{
        int64_t n = -1;

        assert_int_equal(store_read_now(w->store, count_texts, &n, NULL), 0);
        return n;
}

static void an_event_is_known_again_though_it_is_not_kept(void **state)
{
        struct world *w = *state;
        int64_t seq = keyed(w);

        append_many(w, "message.received", 0, 5);
        w->options.retention_ms[STREAM_MESSAGE] = 1;
        reopen_pruning(w);
        for (int i = 0; i < 100 && texts(w) > 0; i++)
                prune_until(w, -1, 50);
        assert_int_equal(texts(w), 0); /* nobody can read it */
        assert_int_equal(rows(w), 1);
        assert_int_equal(keyed(w), seq); /* but it does not come twice */
}

static void each_stream_has_its_own_retention(void **state)
{
        struct world *w = *state;
        int64_t now = clock_wall_ms();

        append_many(w, "turn.started", now - 2 * DAY_MS, 5);
        append_many(w, "message.received", now - 2 * DAY_MS, 5);
        append_many(w, "adapter.connected", now - 1000 * DAY_MS, 5);
        append_many(w, "message.received", now, 5);
        w->options.retention_ms[STREAM_TURN] = DAY_MS;
        w->options.retention_ms[STREAM_ADAPTER] = -1;
        reopen_pruning(w);
        assert_int_equal(prune_until(w, 6, 20000), 6);
        assert_int_equal(rows(w), 15);
}

static void pruning_waits_for_the_slowest_cursor(void **state)
{
        struct world *w = *state;
        struct eater slow = { .ack_until = 64 }, again = { .ack_until = INT64_MAX };

        append_many(w, "message.received", clock_wall_ms() - 8 * DAY_MS, 200);
        eat(w, &slow, "slow", BUS_ALL_STREAMS, 0);
        reopen_pruning(w);
        assert_int_equal(prune_until(w, 65, 20000), 65);
        assert_int_equal(prune_until(w, 66, 50), 65);
        assert_int_equal(rows(w), 136);
        eat(w, &again, "slow", BUS_ALL_STREAMS, 0);
        assert_int_equal(again.count, 136);
        assert_int_equal(prune_until(w, 201, 20000), 201);
}

/* As if everybody had last been there so many days ago. */
static int age_cursors(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, "UPDATE cursors SET updated_ms = ?1");

        store_bind_int(s, 1, clock_wall_ms() - *(int *)arg * DAY_MS);
        return store_run(s, err);
}

static void leave_for_days(struct world *w, int days)
{
        must_close(w);
        must_open(w);
        assert_int_equal(store_write_now(w->store, age_cursors, &days, NULL), 0);
        reopen_pruning(w);
}

static void nobody_is_waited_for_longer_than_events_are_kept(void **state)
{
        struct world *w = *state;
        struct eater gone = { .ack_until = 64 }, back = { .ack_until = INT64_MAX };

        append_many(w, "message.received", clock_wall_ms() - 8 * DAY_MS, 200);
        append_many(w, "message.received", 0, 10);
        eat(w, &gone, "gone", BUS_ALL_STREAMS, 0);
        leave_for_days(w, 6);
        assert_int_equal(prune_until(w, 65, 20000), 65);
        assert_int_equal(prune_until(w, 66, 50), 65); /* it may still come */
        leave_for_days(w, 8);
        assert_int_equal(prune_until(w, 201, 20000), 201);
        eat(w, &back, "gone", BUS_ALL_STREAMS, 0);
        assert_int_equal(back.missed, 200 - 64);
        assert_int_equal(back.count, 10);
        assert_int_equal(bus_consumer_missed(back.consumer), 0); /* once is enough */
}

static void what_was_missed_is_told_until_it_is_acknowledged(void **state)
{
        struct world *w = *state;
        struct eater gone = { 0 }, crashed = { 0 }, back = { .ack_until = INT64_MAX };

        append_many(w, "message.received", clock_wall_ms() - 8 * DAY_MS, 5);
        append_many(w, "message.received", 0, 1);
        eat(w, &gone, "gone", BUS_ALL_STREAMS, 0);
        leave_for_days(w, 8);
        assert_int_equal(prune_until(w, 6, 20000), 6);
        eat(w, &crashed, "gone", BUS_ALL_STREAMS, 0);
        assert_int_equal(crashed.missed, 5);
        must_close(w);
        must_open(w);
        eat(w, &back, "gone", BUS_ALL_STREAMS, 0);
        assert_int_equal(back.missed, 5);
}

static void a_stream_waits_for_as_long_as_it_is_kept(void **state)
{
        struct world *w = *state;
        struct eater gone = { 0 }, back = { .ack_until = INT64_MAX };
        int64_t now = clock_wall_ms();

        append_many(w, "turn.started", now - 8 * DAY_MS, 5);
        append_many(w, "message.received", now - 8 * DAY_MS, 5);
        eat(w, &gone, "gone", BUS_ALL_STREAMS, 0);
        w->options.retention_ms[STREAM_TURN] = DAY_MS;
        leave_for_days(w, 3);
        assert_int_equal(prune_until(w, 6, 20000), 6);
        eat(w, &back, "gone", BUS_ALL_STREAMS, 0);
        assert_int_equal(back.missed, 5);
        assert_int_equal(back.count, 5);
}

static void whoever_is_there_is_waited_for_however_slow(void **state)
{
        struct world *w = *state;
        struct eater slow = { .ack_until = 64 };
        struct cursor held = { .set = 10 };

        append_many(w, "message.received", clock_wall_ms() - 8 * DAY_MS, 200);
        assert_int_equal(store_write_now(w->store, move, &held, NULL), 0);
        eat(w, &slow, "slow", BUS_ALL_STREAMS, 0);
        leave_for_days(w, 8);
        bus_cursor_hold(w->bus, "mine");
        assert_int_equal(prune_until(w, 11, 20000), 11);
        assert_int_equal(prune_until(w, 12, 50), 11);
        leave_for_days(w, 8);
        slow = (struct eater){ .ack_until = 64 };
        slow.consumer = bus_consume(w->bus, "slow", BUS_ALL_STREAMS, 0, on_food, &slow);
        assert_int_equal(prune_until(w, 129, 20000), 129);
        assert_int_equal(prune_until(w, 130, 50), 129);
}

static int rounds_of_pruning(struct world *w)
{
        struct store_health h;

        store_health(w->store, &h);
        return (int)h.commits;
}

/*
 * A transaction that changes nothing is a commit, but none that the disk hears of: the WAL must not
 * grow.
 */
static void a_reader_that_is_there_makes_no_write_every_minute(void **state)
{
        struct world *w = *state;
        struct eater all = { .ack_until = INT64_MAX };
        char *wal = scratch_path(w->dir, "main.db-wal");
        struct stat before, after;
        int rounds;

        append_many(w, "message.received", 0, 10);
        reopen_pruning(w);
        eat(w, &all, "all", BUS_ALL_STREAMS, 0);
        prune_until(w, -1, 20);
        assert_int_equal(stat(wal, &before), 0);
        rounds = rounds_of_pruning(w);
        for (int i = 0; i < 100 && rounds_of_pruning(w) < rounds + 5; i++)
                prune_until(w, -1, 20);
        assert_int_equal(stat(wal, &after), 0);
        assert_true(rounds_of_pruning(w) >= rounds + 5);
        assert_int_equal(after.st_size, before.st_size);
        free(wal);
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

static void who_reads_the_journal_is_listed_with_its_lag(void **state)
{
        struct world *w = *state;
        struct eater all = { .ack_until = INT64_MAX }, slow = { .ack_until = 64 };
        struct listing l = { 0 };

        append_many(w, "message.received", clock_wall_ms() - 8 * DAY_MS, 200);
        eat(w, &slow, "slow", BUS_ALL_STREAMS, 0);
        eat(w, &all, "all", BUS_ALL_STREAMS, 0);
        leave_for_days(w, 8);
        assert_int_equal(prune_until(w, 201, 20000), 201);
        assert_int_equal(store_read_now(w->store, list_cursors, &l, NULL), 0);
        assert_string_equal(l.text, "all at 200 lag 0 missed 0; slow at 64 lag 136 missed 136; ");
}

static void a_consumer_of_a_quiet_stream_does_not_hold_the_others(void **state)
{
        struct world *w = *state;
        struct eater turns = { .ack_until = INT64_MAX };

        append_many(w, "message.received", clock_wall_ms() - 8 * DAY_MS, 200);
        reopen_pruning(w);
        eat(w, &turns, "turns", 1u << STREAM_TURN, 0);
        assert_int_equal(prune_until(w, 201, 20000), 201);
}

static void numbers_are_never_used_again(void **state)
{
        struct world *w = *state;

        append_many(w, "message.received", clock_wall_ms() - 8 * DAY_MS, 50);
        reopen_pruning(w);
        assert_int_equal(prune_until(w, 51, 20000), 51);
        assert_int_equal(rows(w), 0);
        must_close(w);
        must_open(w);
        assert_int_equal(bus_head(w->bus), 50);
        assert_int_equal(bus_tail(w->bus), 51);
        assert_int_equal(append_one(w, "message.received", "new", 0), 51);
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

static void expect_page(struct world *w, struct bus_filter f, unsigned limit, const char *expected)
{
        struct page p = { .f = f, .limit = limit };
        char got[400] = "";

        assert_int_equal(store_read_now(w->store, read_page, &p, NULL), 0);
        assert_int_equal(p.result, p.count);
        for (int i = 0; i < p.count; i++) {
                char n[24];

                snprintf(n, sizeof(n), "%lld ", (long long)p.seq[i]);
                strncat(got, n, sizeof(got) - strlen(got) - 1);
        }
        assert_string_equal(got, expected);
}

static void pages_are_filtered_and_go_both_ways(void **state)
{
        struct world *w = *state;
        struct bus_event e[6] = {
                event("message.received", "tg", "a", "t1", NULL, 10),
                event("turn.started", NULL, NULL, "t1", NULL, 20),
                event("message.received", "slack", "b", "t2", NULL, 30),
                event("turn.done", NULL, NULL, "t1", NULL, 40),
                event("message.edited", "tg", "b", "t3", NULL, 50),
                event("delivery.sent", "tg", "a", "t1", NULL, 60),
        };
        struct append a;

        append(w, &a, e, 6);
        expect_page(w, (struct bus_filter){ 0 }, 10, "1 2 3 4 5 6 ");
        expect_page(w, (struct bus_filter){ 0 }, 2, "1 2 ");
        expect_page(w, (struct bus_filter){ .after = 2 }, 2, "3 4 ");
        expect_page(w, (struct bus_filter){ .before = 5 }, 2, "4 3 ");
        expect_page(w, (struct bus_filter){ .before = 5, .after = 3 }, 9, "4 ");
        expect_page(w, (struct bus_filter){ .streams = 1u << STREAM_TURN }, 9, "2 4 ");
        expect_page(w, (struct bus_filter){ .type = "message.*" }, 9, "1 3 5 ");
        expect_page(w, (struct bus_filter){ .type = "turn.done" }, 9, "4 ");
        expect_page(w, (struct bus_filter){ .adapter = "tg", .channel = "a" }, 9, "1 6 ");
        expect_page(w, (struct bus_filter){ .trace = "t1", .before = 100 }, 3, "6 4 2 ");
        expect_page(w, (struct bus_filter){ .since_ms = 20, .until_ms = 50 }, 9, "2 3 4 ");
}

static void a_page_looks_at_a_bounded_number_of_rows(void **state)
{
        struct world *w = *state;
        struct page p = { .f = { .type = "turn.started" }, .limit = 10 };

        append_many(w, "message.received", 0, 12000);
        append_many(w, "turn.started", 0, 1);
        assert_int_equal(store_read_now(w->store, read_page, &p, NULL), 0);
        assert_int_equal(p.count, 0);
        assert_int_equal(p.scanned_to, 5000);
        p.f.after = 10000;
        assert_int_equal(store_read_now(w->store, read_page, &p, NULL), 0);
        assert_int_equal(p.count, 1);
}

static void a_hundred_thousand_events_leave_nothing_in_memory(void **state)
{
        struct world *w = *state;
        struct eater e = { .ack_until = INT64_MAX };
        struct ear a;
        size_t before;

        hear(w, &a, "", 1u << STREAM_SCHEDULE);
        eat(w, &e, "reader", BUS_ALL_STREAMS, 0);
        for (int i = 0; i < 10; i++) /* the database's page caches fill up */
                append_many(w, "message.received", 0, 5000);
        before = mallinfo2().uordblks;
        for (int i = 0; i < 10; i++)
                append_many(w, "message.received", 0, 5000);
        assert_int_equal(e.count, 100000);
        /* sanitizers count nothing here */
        assert_true(mallinfo2().uordblks < before + 1024 * 1024);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                CASE(one_key_is_one_event_in_a_transaction_and_across),
                CASE(a_key_without_an_adapter_is_unique_too),
                CASE(a_type_of_no_stream_is_refused),
                CASE(names_and_numbers_of_events_are_read_back),
                CASE(the_envelope_has_every_member),
                CASE(listeners_hear_their_streams_in_order),
                CASE(a_listener_may_leave_and_remove_others_during_a_call),
                CASE(what_a_listener_publishes_comes_after_what_made_it),
                CASE(a_listener_that_joins_during_a_call_hears_the_next_event),
                CASE(live_events_reach_live_listeners_only),
                CASE(a_durable_consumer_gets_everything_including_what_came_while_it_was_away),
                CASE(what_was_not_acknowledged_comes_again_after_a_restart),
                CASE(a_consumer_gets_only_its_streams_and_may_start_now),
                CASE(a_consumer_may_stop_inside_its_call_or_while_the_store_works),
                CASE(a_cursor_never_moves_back),
                CASE(old_events_go_and_young_ones_stay),
                CASE(an_event_from_the_future_does_not_keep_those_behind_it),
                CASE(an_event_is_known_again_though_it_is_not_kept),
                CASE(each_stream_has_its_own_retention),
                CASE(pruning_waits_for_the_slowest_cursor),
                CASE(nobody_is_waited_for_longer_than_events_are_kept),
                CASE(what_was_missed_is_told_until_it_is_acknowledged),
                CASE(a_stream_waits_for_as_long_as_it_is_kept),
                CASE(whoever_is_there_is_waited_for_however_slow),
                CASE(a_reader_that_is_there_makes_no_write_every_minute),
                CASE(who_reads_the_journal_is_listed_with_its_lag),
                CASE(a_consumer_of_a_quiet_stream_does_not_hold_the_others),
                CASE(numbers_are_never_used_again),
                CASE(pages_are_filtered_and_go_both_ways),
                CASE(a_page_looks_at_a_bounded_number_of_rows),
                CASE(a_hundred_thousand_events_leave_nothing_in_memory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
