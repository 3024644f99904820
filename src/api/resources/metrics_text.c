/* /metrics in the Prometheus text format. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "api/core/api_private.h"
#include "api/resources/instances.h"
#include "base/clock.h"
#include "base/mem.h"
#include "bus/bus.h"

static void family(struct buf *b, const char *name, const char *type, const char *help)
{
        buf_addf(b, "# HELP dragoman_%s %s\n# TYPE dragoman_%s %s\n", name, help, name, type);
}

static void single(struct buf *b, const char *name, const char *type, const char *help,
                   double value)
{
        family(b, name, type, help);
        buf_addf(b, "dragoman_%s %.17g\n", name, value);
}

/* Label values: backslash, quote and line feed are escaped. */
static void add_label(struct buf *b, const char *text)
{
        for (const char *p = text; *p; p++) {
                if (*p == '\n') {
                        buf_addstr(b, "\\n");
                        continue;
                }
                if (*p == '"' || *p == '\\')
                        buf_addch(b, '\\');
                buf_addch(b, *p);
        }
}

static void write_road(struct buf *b, const struct road *r)
{
        struct road_stats s;

        road_stats(r, &s);
        single(b, "events_received_total", "counter", "Inbound events stored.", (double)s.received);
        single(b, "events_duplicate_total", "counter", "Inbound events that were there already.",
               (double)s.duplicates);
        single(b, "events_refused_total", "counter", "Inbound events that were not taken.",
               (double)s.refused);
        family(b, "turns_total", "counter", "Turns that ended, by how.");
        buf_addf(b, "dragoman_turns_total{state=\"done\"} %llu\n",
                 (unsigned long long)s.turns_done);
        buf_addf(b, "dragoman_turns_total{state=\"failed\"} %llu\n",
                 (unsigned long long)s.turns_failed);
        buf_addf(b, "dragoman_turns_total{state=\"cancelled\"} %llu\n",
                 (unsigned long long)s.turns_cancelled);
        family(b, "deliveries_total", "counter", "Deliveries that ended, by how.");
        buf_addf(b, "dragoman_deliveries_total{state=\"sent\"} %llu\n", (unsigned long long)s.sent);
        buf_addf(b, "dragoman_deliveries_total{state=\"failed\"} %llu\n",
                 (unsigned long long)s.failed);
        buf_addf(b, "dragoman_deliveries_total{state=\"unknown\"} %llu\n",
                 (unsigned long long)s.unknown);
        single(b, "delivery_retries_total", "counter", "Sends that were tried again.",
               (double)s.retried);
        single(b, "events_waiting", "gauge", "Stored events not looked at yet.",
               (double)s.events_waiting);
        single(b, "turns_queued", "gauge", "Turns that wait.", (double)s.turns_queued);
        single(b, "turns_running", "gauge", "Turns that run.", (double)s.turns_running);
        single(b, "lanes", "gauge", "Conversations with something going on.", (double)s.lanes);
        single(b, "deliveries_open", "gauge", "Deliveries not sent yet.",
               (double)s.deliveries_open);
}

static void write_store(struct buf *b, const struct store *s)
{
        struct store_health h;

        store_health(s, &h);
        single(b, "store_up", "gauge", "1 when the last commit worked.", h.ok ? 1 : 0);
        single(b, "store_writes_total", "counter", "Writes committed.", (double)h.writes);
        single(b, "store_commits_total", "counter", "Transactions committed.", (double)h.commits);
        single(b, "store_failures_total", "counter", "Commits that failed.", (double)h.failures);
        single(b, "store_queued", "gauge", "Writes that wait.", (double)h.queued);
        single(b, "store_last_commit_seconds", "gauge", "How long the last commit took.",
               (double)h.last_commit_us / 1e6);
}

struct listing {
        struct api *api;
        struct buf *b;
};

static void write_adapter(void *arg, struct adapter *a)
{
        struct listing *l = arg;

        buf_addstr(l->b, "dragoman_adapter_up{adapter=\"");
        add_label(l->b, a->name);
        buf_addf(l->b, "\",platform=\"%s\"} %d\n", a->ops->name, a->state == ADAPTER_UP);
}

/*
 * One value of every agent: the families stand apart in this format, so the agents are visited for
 * each.
 */
struct agent_metric {
        const char *name, *type, *help;
        double (*value)(const struct agent_health *h);
};

static double agent_turns(const struct agent_health *h)
{
        return (double)h->turns;
}

static double agent_failures(const struct agent_health *h)
{
        return (double)h->failures;
}

static double agent_running(const struct agent_health *h)
{
        return (double)h->running;
}

static double agent_waiting(const struct agent_health *h)
{
        return (double)h->waiting;
}

static double agent_circuit(const struct agent_health *h)
{
        return h->circuit_open ? 1 : 0;
}

static const struct agent_metric agent_metrics[] = {
        { "agent_turns_total", "counter", "Turns that ended, by agent.", agent_turns },
        { "agent_failures_total", "counter", "Those that failed.", agent_failures },
        { "agent_running", "gauge", "Turns an agent works on.", agent_running },
        { "agent_waiting", "gauge", "Turns that wait for a place at an agent.", agent_waiting },
        { "agent_circuit_open", "gauge", "1 while an agent failed too often and is left alone.",
          agent_circuit },
};

struct agent_listing {
        struct buf *b;
        const struct agent_metric *metric;
};

static void write_agent(void *arg, const struct agent *a, const struct agent_health *h)
{
        const struct agent_listing *l = arg;

        buf_addf(l->b, "dragoman_%s{agent=\"", l->metric->name);
        add_label(l->b, a->name);
        buf_addf(l->b, "\",type=\"%s\"} %.17g\n", a->ops->type, l->metric->value(h));
}

static void write_agents(struct buf *b, struct agents *agents)
{
        for (size_t i = 0; i < COUNT(agent_metrics); i++) {
                struct agent_listing l = { b, &agent_metrics[i] };

                family(b, l.metric->name, l.metric->type, l.metric->help);
                agents_each(agents, write_agent, &l);
        }
}

static void write_route(struct buf *b, const struct route *r, const struct route_metrics *m)
{
        for (size_t i = 0; i < METRICS_STATUSES && m->answers[i].status != 0; i++)
                buf_addf(
                        b,
                        "dragoman_http_answers_total{method=\"%s\",route=\"%s\",status=\"%d\"} %llu\n",
                        r ? r->method : "", r ? r->path : "", m->answers[i].status,
                        (unsigned long long)m->answers[i].count);
}

static void write_http(struct buf *b, const struct api *a)
{
        const struct metrics *m = &a->metrics;

        family(b, "http_answers_total", "counter", "HTTP answers by route and status.");
        for (size_t i = 0; i <= m->count; i++)
                write_route(b, i < m->count ? &api_routes[i] : NULL, &m->routes[i]);
        family(b, "http_answer_seconds", "summary", "From the request's first byte to its answer.");
        for (size_t i = 0; i < m->count; i++) {
                const struct route *r = &api_routes[i];

                if (m->routes[i].count == 0)
                        continue;
                buf_addf(b, "dragoman_http_answer_seconds_sum{method=\"%s\",route=\"%s\"} %.6f\n",
                         r->method, r->path, (double)m->routes[i].micros / 1e6);
                buf_addf(b, "dragoman_http_answer_seconds_count{method=\"%s\",route=\"%s\"} %llu\n",
                         r->method, r->path, (unsigned long long)m->routes[i].count);
        }
        single(b, "http_connections", "gauge", "Open connections.",
               http_server_connections(a->server));
        single(b, "event_stream_clients", "gauge", "Readers of the event stream.",
               event_stream_clients(a->stream));
        single(b, "reply_waiters", "gauge", "Requests that wait for a reply.",
               reply_waiters_count(a->waiters));
}

/* 0 when the system does not say. */
static double resident_bytes(void)
{
        FILE *f = fopen("/proc/self/statm", "re");
        unsigned long long total, resident = 0;

        if (!f)
                return 0;
        if (fscanf(f, "%llu %llu", &total, &resident) != 2)
                resident = 0;
        fclose(f);
        return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void write_process(struct buf *b, const struct api *a)
{
        family(b, "build_info", "gauge", "The version that runs.");
        buf_addstr(b, "dragoman_build_info{version=\"" DRAGOMAN_VERSION "\"} 1\n");
        buf_addf(b,
                 "# HELP process_start_time_seconds Start time since the epoch.\n"
                 "# TYPE process_start_time_seconds gauge\n"
                 "process_start_time_seconds %.3f\n",
                 (double)a->env.started_ms / 1000.0);
        buf_addf(b,
                 "# HELP process_resident_memory_bytes Resident memory.\n"
                 "# TYPE process_resident_memory_bytes gauge\n"
                 "process_resident_memory_bytes %.0f\n",
                 resident_bytes());
}

void metrics_show(struct http_exchange *x)
{
        struct api *a = api_of(x);
        struct buf b;
        struct listing l = { a, &b };
        size_t n;

        buf_init(&b, 0);
        write_road(&b, a->env.road);
        write_store(&b, a->env.store);
        single(&b, "journal_head", "counter", "Number of the newest event.",
               (double)bus_head(a->env.bus));
        single(&b, "journal_tail", "counter", "Number of the oldest event that is kept.",
               (double)bus_tail(a->env.bus));
        family(&b, "adapter_up", "gauge", "1 when the adapter is connected.");
        adapters_each(a->env.adapters, write_adapter, &l);
        write_agents(&b, a->env.agents);
        write_http(&b, a);
        write_process(&b, a);
        n = b.len;
        http_answer_take(x, 200, "text/plain; version=0.0.4; charset=utf-8", buf_take(&b), n);
}
