/* Alive, ready, and what is going on. */
#include <unistd.h>

#include "agent/agent.h"
#include "api/core/api_private.h"
#include "api/resources/instances.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "bus/bus.h"
#include "road/report/row_json.h"

void health_alive(struct http_exchange *x)
{
        static const char body[] = "{\"data\":{\"status\":\"ok\"}}";

        http_answer(x, 200, "application/json", body, sizeof(body) - 1);
}

/* ---- ready ---- */

struct readiness {
        struct api *api;
        struct buf *json; /* NULL: only the verdict is wanted */
        int64_t now_ms;
        bool ready;
        unsigned total, connected, off; /* off: by configuration, which is no trouble */
};

static void ask_adapter(void *arg, struct adapter *a)
{
        struct readiness *r = arg;
        struct instance_health h;

        instance_health(r->api->env.road, a, r->now_ms, &h);
        r->total++;
        r->connected += a->state == ADAPTER_UP;
        r->off += !a->common->enabled;
        r->ready = r->ready && h.said_so;
        if (!r->json)
                return;
        jsonw_open_member(r->json, a->name, '{');
        jsonw_str(r->json, "state", h.state);
        jsonw_str(r->json, "why", h.why[0] ? h.why : NULL);
        jsonw_close(r->json, '}');
}

static void write_store(struct buf *b, const struct store_health *h)
{
        jsonw_open_member(b, "store", '{');
        jsonw_str(b, "driver", h->driver);
        jsonw_str(b, "state", h->ok ? "ok" : "error");
        jsonw_str(b, "why", h->why[0] ? h->why : NULL);
        jsonw_close(b, '}');
}

/* Reasons may name platforms and hosts: they are for this machine and for whoever has the key. */
static bool may_see_reasons(struct http_exchange *x)
{
        const struct auth *a = &api_of(x)->auth;
        struct key *k = NULL;

        if (auth_is_local(a))
                return true;
        return auth_check(a, http_header(x, "Authorization"), http_header(x, "x-api-key"), &k) ==
                       AUTH_OK &&
               !k->adapters;
}

void health_ready(struct http_exchange *x)
{
        struct api *a = api_of(x);
        struct store_health store;
        struct buf data, adapters;
        const char *why;
        struct readiness r = {
                .api = a, .json = &adapters, .now_ms = clock_wall_ms(), .ready = true
        };

        store_health(a->env.store, &store);
        buf_init(&adapters, 0);
        jsonw_open(&adapters, '{');
        adapters_each(a->env.adapters, ask_adapter, &r);
        jsonw_close(&adapters, '}');
        r.ready = r.ready && store.ok && bus_is_up(a->env.bus, &why) && !a->closing;
        buf_init(&data, 0);
        jsonw_open(&data, '{');
        jsonw_bool(&data, "ready", r.ready);
        if (may_see_reasons(x)) {
                write_store(&data, &store);
                jsonw_raw(&data, "adapters", adapters.data);
        }
        jsonw_close(&data, '}');
        buf_release(&adapters);
        reply_data(x, r.ready ? 200 : 503, &data);
}

/* ---- status ---- */

static void write_road(struct buf *b, const struct road_stats *s)
{
        jsonw_open_member(b, "road", '{');
        jsonw_int(b, "received", (int64_t)s->received);
        jsonw_int(b, "duplicates", (int64_t)s->duplicates);
        jsonw_int(b, "refused", (int64_t)s->refused);
        jsonw_int(b, "eventsWaiting", (int64_t)s->events_waiting);
        jsonw_int(b, "turnsQueued", (int64_t)s->turns_queued);
        jsonw_int(b, "turnsRunning", (int64_t)s->turns_running);
        jsonw_int(b, "turnsDone", (int64_t)s->turns_done);
        jsonw_int(b, "turnsFailed", (int64_t)s->turns_failed);
        jsonw_int(b, "turnsCancelled", (int64_t)s->turns_cancelled);
        jsonw_int(b, "deliveriesOpen", (int64_t)s->deliveries_open);
        jsonw_int(b, "sent", (int64_t)s->sent);
        jsonw_int(b, "failed", (int64_t)s->failed);
        jsonw_int(b, "unknown", (int64_t)s->unknown);
        jsonw_int(b, "retried", (int64_t)s->retried);
        jsonw_close(b, '}');
}

static void write_journal(struct buf *b, const struct bus *bus)
{
        jsonw_open_member(b, "journal", '{');
        show_id(b, "head", "evt-", bus_head(bus));
        show_id(b, "tail", "evt-", bus_tail(bus));
        jsonw_close(b, '}');
}

struct agents_seen {
        unsigned total, open;
        size_t waiting;
};

static void see_agent(void *arg, const struct agent *a, const struct agent_health *h)
{
        struct agents_seen *seen = arg;

        (void)a;
        seen->total++;
        seen->open += h->circuit_open;
        seen->waiting += h->waiting;
}

static void write_agents(struct buf *b, const struct agents_seen *seen)
{
        jsonw_open_member(b, "agents", '{');
        jsonw_int(b, "total", seen->total);
        jsonw_int(b, "circuitsOpen", seen->open);
        jsonw_int(b, "turnsWaiting", (int64_t)seen->waiting);
        jsonw_close(b, '}');
}

void health_status(struct http_exchange *x)
{
        struct api *a = api_of(x);
        struct readiness r = { .api = a, .now_ms = clock_wall_ms(), .ready = true };
        struct agents_seen agents = { 0 };
        struct road_stats road;
        struct store_health store;
        struct buf data;

        road_stats(a->env.road, &road);
        store_health(a->env.store, &store);
        adapters_each(a->env.adapters, ask_adapter, &r);
        agents_each(a->env.agents, see_agent, &agents);
        buf_init(&data, 0);
        jsonw_open(&data, '{');
        jsonw_str(&data, "status",
                  store.ok && r.connected + r.off == r.total && !agents.open ? "healthy"
                                                                             : "degraded");
        jsonw_str(&data, "version", DRAGOMAN_VERSION);
        jsonw_int(&data, "pid", getpid());
        show_time(&data, "startedAt", a->env.started_ms);
        jsonw_int(&data, "uptimeMs", r.now_ms - a->env.started_ms);
        jsonw_str(&data, "address", api_address(a));
        jsonw_open_member(&data, "instances", '{');
        jsonw_int(&data, "total", r.total);
        jsonw_int(&data, "connected", r.connected);
        jsonw_close(&data, '}');
        write_agents(&data, &agents);
        write_store(&data, &store);
        write_journal(&data, a->env.bus);
        write_road(&data, &road);
        jsonw_int(&data, "streamClients", event_stream_clients(a->stream));
        jsonw_close(&data, '}');
        reply_data(x, 200, &data);
}
