#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bus/bus_private.h"

#define DAY_MS               (24 * 60 * 60 * INT64_C(1000))
#define DEFAULT_RETENTION_MS (7 * DAY_MS)
#define DEFAULT_PRUNE_MS     (60 * INT64_C(1000))

static const struct bus_driver local = { .scheme = "local" };
static const struct bus_driver *const drivers[] = { &local };

/* --- opening --- */

static const struct bus_driver *find_driver(const char *url, struct error *err)
{
        for (size_t i = 0; i < COUNT(drivers); i++) {
                size_t n = strlen(drivers[i]->scheme);

                if (strncmp(url, drivers[i]->scheme, n) == 0 && (url[n] == '\0' || url[n] == ':'))
                        return drivers[i];
        }
        error_set(err, ERR_INVALID, "unknown bus '%s'; accepted: 'local'", url);
        return NULL;
}

static int read_extent(struct store_tx *tx, void *arg, struct error *err)
{
        return journal_extent(tx, arg, err);
}

void bus_set_retention(struct bus *b, const int64_t retention_ms[STREAM_COUNT])
{
        for (int i = 0; i < STREAM_COUNT; i++)
                b->retention_ms[i] = retention_ms[i] ? retention_ms[i] : DEFAULT_RETENTION_MS;
}

struct bus *bus_open(struct loop *l, struct store *s, const struct bus_options *options,
                     struct error *err)
{
        const struct bus_driver *driver = find_driver(options->url ? options->url : "local", err);
        struct bus *b;

        if (!driver)
                return NULL;
        b = mem_zalloc(sizeof(*b));
        b->loop = l;
        b->store = s;
        TAILQ_INIT(&b->listeners);
        TAILQ_INIT(&b->consumers);
        bus_set_retention(b, options->retention_ms);
        if (store_read_now(s, read_extent, &b->extent, err) != 0 ||
            (driver->open && !(b->link = driver->open(b, options->url, err)))) {
                free(b);
                return NULL;
        }
        b->prune_timer = timer_new(l, bus_prune, b);
        timer_repeat(b->prune_timer,
                     options->prune_every_ms ? options->prune_every_ms : DEFAULT_PRUNE_MS);
        timer_unref(b->prune_timer);
        return b;
}

static void sweep_listeners(struct bus *b, bool all)
{
        struct bus_listener *l = TAILQ_FIRST(&b->listeners);

        while (l) {
                struct bus_listener *next = TAILQ_NEXT(l, next);

                if (all || l->gone) {
                        TAILQ_REMOVE(&b->listeners, l, next);
                        free(l);
                }
                l = next;
        }
}

void bus_close(struct bus *b)
{
        if (!b)
                return;
        timer_free(b->prune_timer);
        bus_prune_abandon(b);
        while (!TAILQ_EMPTY(&b->consumers))
                bus_consumer_stop(TAILQ_FIRST(&b->consumers));
        sweep_listeners(b, true);
        for (unsigned i = 0; i < b->held_count; i++)
                free(b->held[i]);
        free(b->held);
        if (b->link)
                b->link->driver->close(b->link);
        bus_batch_release(&b->waiting);
        free(b);
}

bool bus_is_up(const struct bus *b, const char **why)
{
        const struct bus_driver *driver = b->link ? b->link->driver : &local;

        *why = NULL;
        return !driver->is_up || driver->is_up(b->link, why);
}

int64_t bus_head(const struct bus *b)
{
        return b->extent.head;
}

int64_t bus_tail(const struct bus *b)
{
        return b->extent.tail;
}

/* --- publishing --- */

void bus_deliver(struct bus *b, const struct bus_event *e)
{
        int stream = bus_stream_of(e->type);
        struct bus_listener *l;

        if (e->seq > b->extent.head)
                b->extent.head = e->seq;
        TAILQ_FOREACH(l, &b->listeners, next) {
                if (l->gone)
                        continue;
                if (e->seq == 0 ? l->live
                                : e->seq > l->after && stream >= 0 && (l->streams & (1u << stream)))
                        l->fn(l->arg, e);
        }
}

static void deliver_waiting(struct bus *b)
{
        bool any = b->waiting.count > 0;

        while (b->waiting.count > 0) {
                struct bus_batch next = b->waiting;

                b->waiting = (struct bus_batch){ 0 };
                for (unsigned i = 0; i < next.count; i++)
                        bus_deliver(b, next.events[i]);
                bus_batch_release(&next);
        }
        b->publishing = false;
        sweep_listeners(b, false);
        if (any)
                bus_consumers_wake(b);
}

/* Events that a listener publishes wait until all listeners have got the one that caused them. */
void bus_publish(struct bus *b, struct bus_batch *batch)
{
        unsigned need = b->waiting.count + batch->count;

        if (batch->count == 0)
                return;
        if (need > b->waiting.cap) {
                b->waiting.cap = b->publishing ? need * 2 : need;
                b->waiting.events =
                        mem_realloc(b->waiting.events, b->waiting.cap * sizeof(struct bus_event *));
        }
        memcpy(b->waiting.events + b->waiting.count, batch->events,
               batch->count * sizeof(struct bus_event *));
        b->waiting.count = need;
        batch->count = 0;
        if (b->publishing)
                return;
        b->publishing = true;
        deliver_waiting(b);
}

void bus_defer(struct bus *b)
{
        assert(!b->publishing);
        b->publishing = true;
}

static int compare_seq(const void *a, const void *b)
{
        const struct bus_event *x = *(struct bus_event *const *)a;
        const struct bus_event *y = *(struct bus_event *const *)b;

        return x->seq < y->seq ? -1 : x->seq > y->seq;
}

void bus_flush(struct bus *b)
{
        if (b->waiting.count > 1)
                qsort(b->waiting.events, b->waiting.count, sizeof(struct bus_event *), compare_seq);
        deliver_waiting(b);
}

void bus_publish_live(struct bus *b, const struct bus_event *e)
{
        struct bus_event live = *e;
        bool nested = b->publishing;

        live.seq = 0;
        if (live.time_ms == 0)
                live.time_ms = clock_wall_ms();
        b->publishing = true;
        bus_deliver(b, &live);
        if (!nested)
                deliver_waiting(b);
        if (b->link && b->link->driver->publish_live)
                b->link->driver->publish_live(b->link, &live);
}

/* --- listening --- */

struct bus_listener *bus_listen(struct bus *b, unsigned streams, bus_listener_fn *fn, void *arg)
{
        struct bus_listener *l = mem_zalloc(sizeof(*l));

        l->streams = streams;
        l->after = b->publishing ? b->extent.head : 0;
        l->fn = fn;
        l->arg = arg;
        TAILQ_INSERT_TAIL(&b->listeners, l, next);
        return l;
}

struct bus_listener *bus_listen_live(struct bus *b, bus_listener_fn *fn, void *arg)
{
        struct bus_listener *l = bus_listen(b, 0, fn, arg);

        l->live = true;
        return l;
}

void bus_unlisten(struct bus *b, struct bus_listener *l)
{
        if (!l)
                return;
        l->gone = true;
        if (!b->publishing)
                sweep_listeners(b, false);
}
