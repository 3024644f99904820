/* /metrics in the Prometheus text format. */
#include <stdio.h>
#include <unistd.h>

#include "agent/agents.h"
#include "api/core/event_stream.h"
#include "api/core/reply_waiters.h"
#include "api/core/request.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "platform/platform.h"
#include "remote/remote.h"
#include "road/road.h"
#include "schedule/schedule.h"

void metrics_answered(void *api, const struct http_route *route, int status, int64_t micros)
{
        struct api *a = api;
        struct route_metrics *r = &a->metrics[route ? (size_t)(route - a->routes) : routes_count()];

        r->count++;
        r->micros += micros > 0 ? (uint64_t)micros : 0;
        for (size_t i = 0; i < METRICS_STATUSES; i++) {
                if (r->answers[i].status == 0)
                        r->answers[i].status = status;
                if (r->answers[i].status == status) {
                        r->answers[i].count++;
                        return;
                }
        }
}

/* ---- text format ---- */

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

/* Escapes backslash, quote and line feed. */
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
        single(b, "events_duplicate_total", "counter", "Inbound events that were stored before.",
               (double)s.duplicates);
        single(b, "events_refused_total", "counter", "Inbound events refused.", (double)s.refused);
        family(b, "turns_total", "counter", "Turns that ended, by state.");
        buf_addf(b,
                 "dragoman_turns_total{state=\"done\"} %llu\n"
                 "dragoman_turns_total{state=\"failed\"} %llu\n"
                 "dragoman_turns_total{state=\"cancelled\"} %llu\n",
                 (unsigned long long)s.turns_done, (unsigned long long)s.turns_failed,
                 (unsigned long long)s.turns_cancelled);
        family(b, "deliveries_total", "counter", "Deliveries that ended, by state.");
        buf_addf(b,
                 "dragoman_deliveries_total{state=\"sent\"} %llu\n"
                 "dragoman_deliveries_total{state=\"failed\"} %llu\n"
                 "dragoman_deliveries_total{state=\"unknown\"} %llu\n",
                 (unsigned long long)s.sent, (unsigned long long)s.failed,
                 (unsigned long long)s.unknown);
        single(b, "delivery_retries_total", "counter", "Sends that were retried.",
               (double)s.retried);
        single(b, "delivery_probes_total", "counter",
               "Questions to platforms whether a send arrived.", (double)s.probes);
        family(b, "deliveries_reconciled_total", "counter",
               "Sends without an answer whose outcome was found out.");
        buf_addf(b,
                 "dragoman_deliveries_reconciled_total{outcome=\"found\"} %llu\n"
                 "dragoman_deliveries_reconciled_total{outcome=\"not_arrived\"} %llu\n",
                 (unsigned long long)s.found, (unsigned long long)s.not_arrived);
        family(b, "approvals_total", "counter", "Approvals that were decided, by state.");
        buf_addf(b,
                 "dragoman_approvals_total{state=\"approved\"} %llu\n"
                 "dragoman_approvals_total{state=\"refused\"} %llu\n"
                 "dragoman_approvals_total{state=\"expired\"} %llu\n",
                 (unsigned long long)s.approvals_approved, (unsigned long long)s.approvals_refused,
                 (unsigned long long)s.approvals_expired);
        single(b, "approvals_asked_total", "counter", "Approvals asked for.",
               (double)s.approvals_asked);
        single(b, "approvals_open", "gauge", "Approvals that wait for a person.",
               (double)s.approvals_open);
        single(b, "events_waiting", "gauge", "Stored events that are not decided yet.",
               (double)s.events_waiting);
        single(b, "turns_queued", "gauge", "Queued turns.", (double)s.turns_queued);
        single(b, "turns_running", "gauge", "Running turns.", (double)s.turns_running);
        single(b, "lanes", "gauge", "Conversations in memory.", (double)s.lanes);
        single(b, "deliveries_open", "gauge", "Deliveries that are not sent yet.",
               (double)s.deliveries_open);
}

static void write_schedule(struct buf *b, const struct schedule *schedule)
{
        struct schedule_stats s;

        schedule_get_stats(schedule, &s);
        family(b, "ticks_total", "counter", "Scheduled runs, by outcome.");
        buf_addf(b,
                 "dragoman_ticks_total{outcome=\"fired\"} %llu\n"
                 "dragoman_ticks_total{outcome=\"quiet\"} %llu\n"
                 "dragoman_ticks_total{outcome=\"skipped\"} %llu\n"
                 "dragoman_ticks_total{outcome=\"failed\"} %llu\n",
                 (unsigned long long)s.fired, (unsigned long long)s.quiet,
                 (unsigned long long)s.skipped, (unsigned long long)s.failed);
        single(b, "ticks_late_total", "counter", "Scheduled runs that were late.", (double)s.late);
        single(b, "ticks_deferred_total", "counter", "Scheduled runs that quiet hours put off.",
               (double)s.deferred);
        single(b, "ticks_running", "gauge", "Scheduled runs being started.", (double)s.running);
        single(b, "schedule_next_seconds", "gauge",
               "When something is due next, since the epoch; 0: nothing is pending.",
               (double)s.next_ms / 1e3);
}

static void write_sessions(struct buf *b, const struct remote *remote)
{
        struct remote_stats s;

        remote_get_stats(remote, &s);
        single(b, "session_events_total", "counter", "Events of coding sessions that were stored.",
               (double)s.events);
        single(b, "session_duplicates_total", "counter", "Events of coding sessions told again.",
               (double)s.duplicates);
        single(b, "session_commands_expired_total", "counter",
               "Commands for coding sessions that nobody fetched.", (double)s.expired);
        single(b, "session_chats", "gauge", "Chats that show a coding session.", (double)s.linked);
        single(b, "session_views", "gauge", "Coding sessions whose chat is behind.",
               (double)s.views);
}

static void write_store(struct buf *b, const struct store *s)
{
        struct store_health h;

        store_health(s, &h);
        single(b, "store_up", "gauge", "1 when the last commit succeeded.", h.ok ? 1 : 0);
        single(b, "store_writes_total", "counter", "Writes committed.", (double)h.writes);
        single(b, "store_commits_total", "counter", "Transactions committed.", (double)h.commits);
        single(b, "store_failures_total", "counter", "Commits that failed.", (double)h.failures);
        single(b, "store_queued", "gauge", "Writes that wait.", (double)h.queued);
        single(b, "store_pending", "gauge", "Reads and writes whose results are not in yet.",
               (double)h.pending);
        single(b, "store_last_commit_seconds", "gauge", "Duration of the last commit.",
               (double)h.last_commit_us / 1e6);
}

static void write_adapter(void *arg, struct adapter *a)
{
        struct buf *b = arg;

        buf_addstr(b, "dragoman_adapter_up{adapter=\"");
        add_label(b, a->name);
        buf_addf(b, "\",platform=\"%s\"} %d\n", a->ops->name, a->state == ADAPTER_UP);
}

enum agent_value { AGENT_TURNS, AGENT_FAILURES, AGENT_RUNNING, AGENT_WAITING, AGENT_CIRCUIT };

static const struct {
        const char *name, *type, *help;
} agent_families[] = {
        [AGENT_TURNS] = { "agent_turns_total", "counter", "Turns that ended, by agent." },
        [AGENT_FAILURES] = { "agent_failures_total", "counter", "Turns that failed, by agent." },
        [AGENT_RUNNING] = { "agent_running", "gauge", "Turns an agent works on." },
        [AGENT_WAITING] = { "agent_waiting", "gauge", "Turns that wait for a slot at an agent." },
        [AGENT_CIRCUIT] = { "agent_circuit_open", "gauge",
                            "1 while the circuit breaker of an agent is open." },
};

struct agent_family {
        struct buf *b;
        enum agent_value value;
};

static void write_agent(void *arg, const struct agent *a, const struct agent_health *h)
{
        const struct agent_family *f = arg;
        const double values[] = { [AGENT_TURNS] = (double)h->turns,
                                  [AGENT_FAILURES] = (double)h->failures,
                                  [AGENT_RUNNING] = (double)h->running,
                                  [AGENT_WAITING] = (double)h->waiting,
                                  [AGENT_CIRCUIT] = h->circuit_open ? 1 : 0 };

        buf_addf(f->b, "dragoman_%s{agent=\"", agent_families[f->value].name);
        add_label(f->b, a->name);
        buf_addf(f->b, "\",type=\"%s\"} %.17g\n", a->ops->type, values[f->value]);
}

/* The format groups values by family, so visit the agents for each. */
static void write_agents(struct buf *b, struct agents *agents)
{
        for (size_t i = 0; i < COUNT(agent_families); i++) {
                family(b, agent_families[i].name, agent_families[i].type, agent_families[i].help);
                agents_each(agents, write_agent, &(struct agent_family){ b, (enum agent_value)i });
        }
}

static void write_http(struct buf *b, const struct api *a)
{
        size_t count = routes_count();

        family(b, "http_answers_total", "counter", "HTTP answers by route and status.");
        for (size_t i = 0; i <= count; i++) {
                const struct route_metrics *m = &a->metrics[i];

                for (size_t k = 0; k < METRICS_STATUSES && m->answers[k].status != 0; k++)
                        buf_addf(b,
                                 "dragoman_http_answers_total{method=\"%s\",route=\"%s\","
                                 "status=\"%d\"} %llu\n",
                                 i < count ? a->routes[i].method : "",
                                 i < count ? a->routes[i].path : "", m->answers[k].status,
                                 (unsigned long long)m->answers[k].count);
        }
        family(b, "http_answer_seconds", "summary", "From the request's first byte to its answer.");
        for (size_t i = 0; i < count; i++) {
                const struct http_route *r = &a->routes[i];

                if (a->metrics[i].count == 0)
                        continue;
                buf_addf(b, "dragoman_http_answer_seconds_sum{method=\"%s\",route=\"%s\"} %.6f\n",
                         r->method, r->path, (double)a->metrics[i].micros / 1e6);
                buf_addf(b, "dragoman_http_answer_seconds_count{method=\"%s\",route=\"%s\"} %llu\n",
                         r->method, r->path, (unsigned long long)a->metrics[i].count);
        }
        single(b, "http_connections", "gauge", "Open connections.",
               http_server_connections(a->server));
        single(b, "stream_clients", "gauge", "Readers of the event stream.",
               event_stream_clients(a->stream));
        single(b, "reply_waiters", "gauge", "Requests that wait for a reply.",
               reply_waiters_count(a->waiters));
}

static void write_process(struct buf *b, const struct api *a)
{
        FILE *f = fopen("/proc/self/statm", "re");
        unsigned long long total, resident = 0;

        if (f && fscanf(f, "%llu %llu", &total, &resident) != 2)
                resident = 0;
        if (f)
                fclose(f);
        family(b, "build_info", "gauge", "The running version.");
        buf_addstr(b, "dragoman_build_info{version=\"" DRAGOMAN_VERSION "\"} 1\n");
        buf_addf(b,
                 "# HELP process_start_time_seconds Start time since the epoch.\n"
                 "# TYPE process_start_time_seconds gauge\n"
                 "process_start_time_seconds %.3f\n"
                 "# HELP process_resident_memory_bytes Resident memory.\n"
                 "# TYPE process_resident_memory_bytes gauge\n"
                 "process_resident_memory_bytes %.0f\n",
                 (double)a->env.started_ms / 1000.0,
                 (double)resident * (double)sysconf(_SC_PAGESIZE));
}

static void show(struct http_exchange *x)
{
        struct api *a = api_of(x);
        struct buf b;
        size_t n;

        buf_init(&b, 0);
        write_road(&b, a->env.road);
        if (a->env.schedule)
                write_schedule(&b, a->env.schedule);
        if (a->env.remote)
                write_sessions(&b, a->env.remote);
        write_store(&b, a->env.store);
        single(&b, "journal_head", "counter", "Number of the newest event.",
               (double)bus_head(a->env.bus));
        single(&b, "journal_tail", "counter", "Number of the oldest event that is kept.",
               (double)bus_tail(a->env.bus));
        family(&b, "adapter_up", "gauge", "1 when the adapter is connected.");
        adapters_each(a->env.adapters, write_adapter, &b);
        write_agents(&b, a->env.agents);
        write_http(&b, a);
        write_process(&b, a);
        n = b.len;
        http_answer_take(x, 200, "text/plain; version=0.0.4; charset=utf-8", buf_take(&b), n);
}

const struct route metrics_routes[] = {
        { "GET", "/metrics", SCOPE_READ, show, REACH_ALL, .keyless = request_is_local,
          .keyless_when = "while only this machine can connect",
          .summary = "Counters and gauges for Prometheus; without a key only while no other "
                     "machine can connect, neither directly nor through a proxy.",
          .status = 200, .answer = "The Prometheus text format.", .content_type = "text/plain" },
        ROUTE_END,
};
