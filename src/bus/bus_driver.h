/*
 * bus_driver: how events reach other processes. Callers see bus.h; this is for drivers.
 *
 * The front end delivers to the listeners of this process itself, never through a broker, and the
 * journal's rows are the record whatever the driver. A driver adds two directions: outward it
 * relays the journal, best as a durable consumer of its own (bus_consume), which resumes after a
 * crash and whose sequence numbers serve the broker as message ids; inward it hands events of other
 * processes to bus_deliver. Live events are sent once and may be lost.
 *
 * Every slot but `scheme` may be NULL: the driver "local" has no other process to reach.
 */
#ifndef BUS_BUS_DRIVER_H
#define BUS_BUS_DRIVER_H

#include "bus/bus.h"

/* The driver's connection begins with this. */
struct bus_link {
        const struct bus_driver *driver;
        struct bus *bus;
};

struct bus_driver {
        const char *scheme; /* "local", "nats": what bus.url starts with */
        struct bus_link *(*open)(struct bus *b, const char *url, struct error *err);
        void (*close)(struct bus_link *l);
        /* Sends a live event to other processes; borrowed. */
        void (*publish_live)(struct bus_link *l, const struct bus_event *e);
        /* False while events do not get through; then *why (borrowed) says so. */
        bool (*is_up)(const struct bus_link *l, const char **why);
};

/* Hands an event to the listeners of this process. On the loop; the event is borrowed. */
void bus_deliver(struct bus *b, const struct bus_event *e);

#endif
