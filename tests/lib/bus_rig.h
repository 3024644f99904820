/*
 * bus_rig: a bus on a store of its own.
 */
#ifndef TESTS_BUS_RIG_H
#define TESTS_BUS_RIG_H

#include "bus/bus.h"

#define DAY_MS (24 * 60 * 60 * INT64_C(1000))

struct bus_rig {
        char *dir;
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct bus_options options;
};

/* cmocka fixtures: *state is the rig, with an open bus. */
int bus_rig_setup(void **state);
int bus_rig_teardown(void **state);
void bus_rig_open(struct bus_rig *r);
void bus_rig_close(struct bus_rig *r);
void bus_rig_run(struct bus_rig *r); /* until nothing is left to do */

/* Results of events appended in one transaction, then published. */
struct rig_append {
        struct bus_rig *r;
        struct bus_event *events;
        unsigned count;
        struct bus_batch batch;
        int64_t seq[8];
        int result[8];
};
void bus_rig_append(struct bus_rig *r, struct rig_append *a, struct bus_event *events,
                    unsigned count);
/* One event of adapter "tg"; returns its number. */
int64_t bus_rig_append_one(struct bus_rig *r, const char *type, const char *key, int64_t time_ms);
/* `count` events without keys in one transaction. */
void bus_rig_append_many(struct bus_rig *r, const char *type, int64_t time_ms, int count);

struct rig_consumer {
        struct bus_consumer *consumer;
        int64_t last;
        int64_t count;
        int64_t missed;    /* as reported at the first call */
        int64_t ack_until; /* stops acknowledging after so many events */
        bool stop;         /* stops itself inside the call */
};

void rig_consumer_on_events(void *consumer, const struct bus_event *const *events, unsigned count);
/* Starts it and runs until it has got everything. */
void bus_rig_consume(struct bus_rig *r, struct rig_consumer *e, const char *name, unsigned streams,
                     int64_t from);

#endif
