#include "bus_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/mem.h"
#include "rows/schema.h"
#include "scratch.h"

void bus_rig_open(struct bus_rig *r)
{
        struct store_options o = { .url = "sqlite", .dir = r->dir, .migrations = schema_steps };
        struct error err = { 0 };

        r->store = store_open(r->loop, &o, &err);
        if (!r->store)
                fail_msg("%s", err.text);
        r->bus = bus_open(r->loop, r->store, &r->options, &err);
        if (!r->bus)
                fail_msg("%s", err.text);
}

void bus_rig_close(struct bus_rig *r)
{
        bus_close(r->bus);
        store_close(r->store);
        r->bus = NULL;
        r->store = NULL;
}

int bus_rig_setup(void **state)
{
        struct bus_rig *r = mem_zalloc(sizeof(*r));

        r->dir = scratch_new();
        r->loop = loop_new();
        r->options.url = "local";
        bus_rig_open(r);
        *state = r;
        return 0;
}

int bus_rig_teardown(void **state)
{
        struct bus_rig *r = *state;

        bus_rig_close(r);
        loop_free(r->loop);
        scratch_free(r->dir);
        free(r);
        return 0;
}

void bus_rig_run(struct bus_rig *r)
{
        while (loop_step(r->loop, true))
                ;
}

static int append_all(struct store_tx *tx, void *arg, struct error *err)
{
        struct rig_append *a = arg;

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
        struct rig_append *a = arg;

        assert_null(err);
        bus_publish(a->r->bus, &a->batch);
}

void bus_rig_append(struct bus_rig *r, struct rig_append *a, struct bus_event *events,
                    unsigned count)
{
        *a = (struct rig_append){ .r = r, .events = events, .count = count };
        store_write(r->store, append_all, on_appended, a);
        bus_rig_run(r);
        bus_batch_release(&a->batch);
}

int64_t bus_rig_append_one(struct bus_rig *r, const char *type, const char *key, int64_t time_ms)
{
        struct bus_event e = {
                .type = type, .adapter = "tg", .key = key, .time_ms = time_ms, .payload = "{}"
        };
        struct rig_append a;

        bus_rig_append(r, &a, &e, 1);
        return a.seq[0];
}

/* Many at once, without keys. */
struct bulk {
        const char *type;
        int64_t time_ms;
        int count;
        struct bus_batch batch;
        struct bus_rig *r;
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
        bus_publish(b->r->bus, &b->batch);
}

void bus_rig_append_many(struct bus_rig *r, const char *type, int64_t time_ms, int count)
{
        struct bulk b = { .type = type, .time_ms = time_ms, .count = count, .r = r };

        store_write(r->store, append_bulk, on_bulk, &b);
        bus_rig_run(r);
        bus_batch_release(&b.batch);
}

void rig_consumer_on_events(void *arg, const struct bus_event *const *events, unsigned count)
{
        struct rig_consumer *e = arg;

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

void bus_rig_consume(struct bus_rig *r, struct rig_consumer *e, const char *name, unsigned streams,
                     int64_t from)
{
        e->consumer = bus_consume(r->bus, name, streams, from, rig_consumer_on_events, e);
        assert_int_equal(e->count, 0);
        bus_rig_run(r);
}
