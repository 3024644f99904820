/* The daemon's status. */
#include <string.h>
#include <unistd.h>

#include "agent/agents.h"
#include "api/core/event_stream.h"
#include "api/core/request.h"
#include "api/resources/instances.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/jsonw.h"
#include "bus/bus.h"
#include "platform/platform.h"
#include "road/report/row_json.h"
#include "road/road.h"
#include "schedule/schedule.h"

struct adapter_count {
        const struct road *road;
        int64_t now_ms;
        unsigned total, connected, healthy, off; /* off: by configuration */
};

static void count_adapter(void *arg, struct adapter *a)
{
        struct adapter_count *n = arg;
        struct instance_health h;

        instance_health(n->road, a, n->now_ms, &h);
        n->total++;
        n->connected += a->state == ADAPTER_UP;
        n->healthy += strcmp(h.state, "connected") == 0;
        n->off += !a->common->enabled;
}

struct agent_count {
        unsigned total, open;
        size_t waiting;
};

static void count_agent(void *arg, const struct agent *a, const struct agent_health *h)
{
        struct agent_count *n = arg;

        (void)a;
        n->total++;
        n->open += h->circuit_open;
        n->waiting += h->waiting;
}

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
        jsonw_int(b, "approvalsOpen", (int64_t)s->approvals_open);
        jsonw_int(b, "deliveriesOpen", (int64_t)s->deliveries_open);
        jsonw_int(b, "sent", (int64_t)s->sent);
        jsonw_int(b, "failed", (int64_t)s->failed);
        jsonw_int(b, "unknown", (int64_t)s->unknown);
        jsonw_int(b, "retried", (int64_t)s->retried);
        jsonw_close(b, '}');
}

static void write_schedule(struct buf *b, const struct schedule *schedule)
{
        struct schedule_stats s;

        if (!schedule)
                return;
        schedule_get_stats(schedule, &s);
        jsonw_open_member(b, "schedule", '{');
        jsonw_bool(b, "enabled", s.enabled);
        row_json_time(b, "nextAt", s.next_ms);
        jsonw_int(b, "running", (int64_t)s.running);
        jsonw_int(b, "fired", (int64_t)s.fired);
        jsonw_int(b, "quiet", (int64_t)s.quiet);
        jsonw_int(b, "late", (int64_t)s.late);
        jsonw_int(b, "deferred", (int64_t)s.deferred);
        jsonw_int(b, "skipped", (int64_t)s.skipped);
        jsonw_int(b, "failed", (int64_t)s.failed);
        jsonw_close(b, '}');
}

/* "on", or why it is not. */
static void write_confinement(struct buf *b, const struct confine_report *r)
{
        if (!r)
                return;
        jsonw_open_member(b, "confinement", '{');
        jsonw_str(b, "writes", r->writes ? "on" : "off");
        jsonw_opt(b, "writesWhy", r->writes ? NULL : r->writes_why);
        jsonw_str(b, "calls", r->calls ? "on" : "off");
        jsonw_opt(b, "callsWhy", r->calls ? NULL : r->calls_why);
        jsonw_str(b, "coreDumps", r->dumps ? "on" : "off");
        jsonw_close(b, '}');
}

static void show(struct http_exchange *x)
{
        struct api *a = api_of(x);
        struct adapter_count adapters = { .road = a->env.road, .now_ms = clock_wall_ms() };
        struct agent_count agents = { 0 };
        struct store_health store;
        struct road_stats road;
        struct buf b;
        bool healthy;

        store_health(a->env.store, &store);
        road_stats(a->env.road, &road);
        adapters_each(a->env.adapters, count_adapter, &adapters);
        agents_each(a->env.agents, count_agent, &agents);
        healthy = store.ok && adapters.healthy + adapters.off == adapters.total && !agents.open;
        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "status", healthy ? "healthy" : "degraded");
        jsonw_str(&b, "version", DRAGOMAN_VERSION);
        jsonw_int(&b, "pid", getpid());
        row_json_time(&b, "startedAt", a->env.started_ms);
        jsonw_int(&b, "uptimeMs", clock_wall_ms() - a->env.started_ms);
        jsonw_str(&b, "address", api_address(a));
        jsonw_open_member(&b, "instances", '{');
        jsonw_int(&b, "total", adapters.total);
        jsonw_int(&b, "connected", adapters.connected);
        jsonw_close(&b, '}');
        jsonw_open_member(&b, "agents", '{');
        jsonw_int(&b, "total", agents.total);
        jsonw_int(&b, "circuitsOpen", agents.open);
        jsonw_int(&b, "turnsWaiting", (int64_t)agents.waiting);
        jsonw_close(&b, '}');
        jsonw_open_member(&b, "store", '{');
        jsonw_str(&b, "driver", store.driver);
        jsonw_str(&b, "state", store.ok ? "ok" : "error");
        jsonw_str(&b, "why", store.why[0] ? store.why : NULL);
        jsonw_close(&b, '}');
        jsonw_open_member(&b, "journal", '{');
        row_json_id(&b, "head", "evt-", bus_head(a->env.bus));
        row_json_id(&b, "tail", "evt-", bus_tail(a->env.bus));
        jsonw_close(&b, '}');
        write_road(&b, &road);
        write_schedule(&b, a->env.schedule);
        write_confinement(&b, a->env.confinement);
        jsonw_int(&b, "streamClients", event_stream_clients(a->stream));
        jsonw_close(&b, '}');
        reply_data(x, 200, &b);
}

const struct route status_routes[] = {
        { "GET", "/api/v2/status", SCOPE_READ, show, REACH_ALL,
          .summary = "Version, uptime, and the state of store, journal, turns and deliveries.",
          .status = 200, .answer = "{\"data\": {...}}" },
        ROUTE_END,
};
