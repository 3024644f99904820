/*
 * bus_driver: how committed events travel. Callers see bus.h; this is for drivers.
 *
 * The rows are the record whatever the driver. It gets every published batch once, in order, and
 * has to see to it that each event is handed to bus_deliver once on this process's loop: the local
 * driver does so at once, one with a broker relays the batch and delivers what comes back, also
 * from other processes.
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
        /* On the loop; the events are borrowed. */
        void (*publish)(struct bus_link *l, struct bus_event *const *events, unsigned count);
};

/* Tells listeners and wakes consumers. On the loop; the event is borrowed. */
void bus_deliver(struct bus *b, const struct bus_event *e);

extern const struct bus_driver bus_local;

#endif
