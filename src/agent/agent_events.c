/*
 * Journals circuits that open and close, and turns that fail over.
 */
#include <stdlib.h>

#include "agent/agents_private.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"

struct event_write {
        struct agents *all; /* NULL once freed */
        struct bus_event *event;
        struct bus_batch batch;
        LIST_ENTRY(event_write) next;
};

static int append_event(struct store_tx *tx, void *arg, struct error *err)
{
        struct event_write *w = arg;

        bus_batch_reset(&w->batch);
        return bus_append(tx, &w->batch, w->event, NULL, err) < 0 ? -1 : 0;
}

static void on_written(void *arg, const struct error *err)
{
        struct event_write *w = arg;

        if (err)
                log_warn("cannot journal an event", LOG_S("type", w->event->type),
                         LOG_S("why", err->text));
        else if (w->all)
                bus_publish(w->all->env.bus, &w->batch);
        if (w->all)
                LIST_REMOVE(w, next);
        free(w->event);
        bus_batch_release(&w->batch);
        free(w);
}

/* Takes over the payload. run may be NULL. */
static void journal(struct agents *as, const char *type, const struct turn_run *run,
                    struct buf *payload)
{
        struct bus_event e = { .type = type, .payload = payload->data };
        struct event_write *w;

        if (run) {
                e.adapter = run->adapter;
                e.channel = run->channel;
                e.thread = run->thread;
                e.trace = run->trace;
        }
        if (as->env.store) {
                w = mem_zalloc(sizeof(*w));
                w->all = as;
                w->event = bus_event_dup(&e);
                LIST_INSERT_HEAD(&as->event_writes, w, next);
                store_write(as->env.store, append_event, on_written, w);
        }
        buf_release(payload);
}

void agent_event_circuit(struct agent_slot *s, const char *type)
{
        struct buf payload;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "agent", s->agent.name);
        jsonw_int(&payload, "failures", s->breaker.failures);
        jsonw_opt(&payload, "why", s->breaker.state == BREAKER_CLOSED ? NULL : s->last_failure);
        jsonw_close(&payload, '}');
        journal(s->all, type, NULL, &payload);
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
        struct event_write *w;

        while ((w = LIST_FIRST(&as->event_writes))) {
                LIST_REMOVE(w, next);
                w->all = NULL;
        }
}
