/*
 * What happens to agents, in the journal: circuits that open and close, and who took over whose
 * turn.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/agents_private.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"

struct event_write {
        struct agents *all; /* NULL once the registry is gone */
        struct bus_event *event;
        struct bus_batch batch;
        LIST_ENTRY(event_write) next;
};

static void write_free(struct event_write *n)
{
        if (n->all)
                LIST_REMOVE(n, next);
        free(n->event);
        bus_batch_release(&n->batch);
        free(n);
}

static int append_event(struct store_tx *tx, void *arg, struct error *err)
{
        struct event_write *n = arg;

        bus_batch_reset(&n->batch);
        return bus_append(tx, &n->batch, n->event, NULL, err) < 0 ? -1 : 0;
}

static void on_written(void *arg, const struct error *err)
{
        struct event_write *n = arg;

        if (err)
                log_warn("cannot journal an event", LOG_S("type", n->event->type),
                         LOG_S("why", err->text));
        else if (n->all)
                bus_publish(n->all->answers.outlet.bus, &n->batch);
        write_free(n);
}

/* Takes the payload over. */
static void journal(struct agents *as, const char *type, const struct turn_run *run,
                    struct buf *payload)
{
        struct bus_event e = { .type = type, .payload = payload->data };
        struct event_write *n;

        if (run) {
                e.adapter = run->adapter;
                e.channel = run->channel;
                e.thread = run->thread;
                e.trace = run->trace;
        }
        if (as->answers.outlet.store) {
                n = mem_zalloc(sizeof(*n));
                n->all = as;
                n->event = bus_event_dup(&e);
                LIST_INSERT_HEAD(&as->event_writes, n, next);
                store_write(as->answers.outlet.store, append_event, on_written, n);
        }
        buf_release(payload);
}

void agent_event_circuit(struct agent_slot *in, const char *type)
{
        struct buf payload;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "agent", in->agent.name);
        jsonw_int(&payload, "failures", in->breaker.failures);
        jsonw_opt(&payload, "why", in->breaker.state == BREAKER_CLOSED ? NULL : in->last_failure);
        jsonw_close(&payload, '}');
        journal(in->all, type, NULL, &payload);
}

void agent_event_failover(struct agents *as, const struct turn_run *run, const char *from,
                          const char *to, const char *why)
{
        struct buf payload;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "turnId", run->key);
        jsonw_str(&payload, "from", from);
        jsonw_str(&payload, "to", to);
        jsonw_str(&payload, "why", why);
        jsonw_close(&payload, '}');
        journal(as, "turn.failover", run, &payload);
}

void agent_events_drop(struct agents *as)
{
        struct event_write *n;

        while ((n = LIST_FIRST(&as->event_writes))) {
                LIST_REMOVE(n, next);
                n->all = NULL;
        }
}
