#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "cli/client.h"
#include "cli/local_store.h"
#include "cli/print.h"
#include "rows/totals.h"

/* ---- with a daemon ---- */

/* Stores the `member` of a resource in `all` under `key`. */
static int fetch_part(struct client *c, const char *path, const char *member, const char *key,
                      json_t *all, struct error *err)
{
        json_t *json = NULL;

        if (client_get(c, path, &json, err) < 0)
                return -1;
        json_object_set(all, key, json_object_get(json, member));
        json_decref(json);
        return 0;
}

int status_fetch(struct client *c, json_t **out, struct error *err)
{
        json_t *all = json_pack("{s:b}", "running", 1);

        if (fetch_part(c, "/api/v2/status", "data", "status", all, err) < 0 ||
            fetch_part(c, "/api/v2/instances", "items", "instances", all, err) < 0 ||
            fetch_part(c, "/api/v2/agents", "items", "agents", all, err) < 0) {
                json_decref(all);
                return -1;
        }
        *out = all;
        return 0;
}

static enum style style_of(const char *state)
{
        if (strcmp(state, "connected") == 0 || strcmp(state, "healthy") == 0 ||
            strcmp(state, "on") == 0 || strcmp(state, "ok") == 0 || strcmp(state, "ready") == 0)
                return STYLE_GOOD;
        if (strcmp(state, "error") == 0 || strcmp(state, "unhealthy") == 0 ||
            strcmp(state, "down") == 0 || strcmp(state, "broken") == 0)
                return STYLE_BAD;
        return strcmp(state, "unknown") == 0 || strcmp(state, "idle") == 0 ? STYLE_DIM : STYLE_WARN;
}

static void print_row(const char *name, const char *kind, const char *state, const char *why)
{
        printf("  %-18.40s %-12.24s %s%-12.24s%s", name, kind, print_style(stdout, style_of(state)),
               state, print_style(stdout, STYLE_PLAIN));
        print_field(stdout, " ", why, 200);
        putchar('\n');
}

static void print_heading(const char *text)
{
        printf("%s%s%s\n", print_style(stdout, STYLE_BOLD), text, print_style(stdout, STYLE_PLAIN));
}

static void print_uptime(int64_t ms)
{
        int64_t s = ms / 1000;

        if (s < 120)
                printf("%lld s", (long long)s);
        else if (s < 7200)
                printf("%lld min", (long long)(s / 60));
        else if (s < 172800)
                printf("%lld h", (long long)(s / 3600));
        else
                printf("%lld days", (long long)(s / 86400));
}

static void print_road(const json_t *road)
{
        int64_t events = json_int(road, "eventsWaiting", 0),
                queued = json_int(road, "turnsQueued", 0);
        int64_t open = json_int(road, "deliveriesOpen", 0),
                duplicates = json_int(road, "duplicates", 0);
        int64_t done = json_int(road, "turnsDone", 0);

        print_heading("queues");
        printf("  %lld %s waiting, %lld %s queued, %lld running, %lld %s\n", (long long)events,
               print_plural(events, "event", "events"), (long long)queued,
               print_plural(queued, "turn", "turns"), (long long)json_int(road, "turnsRunning", 0),
               (long long)open, print_plural(open, "delivery open", "deliveries open"));
        if (json_int(road, "approvalsOpen", 0) > 0)
                printf("  %lld %s for a person: dragoman approvals\n",
                       (long long)json_int(road, "approvalsOpen", 0),
                       print_plural(json_int(road, "approvalsOpen", 0), "approval waits",
                                    "approvals wait"));
        printf("  since start: %lld received, %lld %s, %lld %s done, %lld failed; %lld sent, "
               "%lld failed, %lld unknown\n",
               (long long)json_int(road, "received", 0), (long long)duplicates,
               print_plural(duplicates, "duplicate", "duplicates"), (long long)done,
               print_plural(done, "turn", "turns"), (long long)json_int(road, "turnsFailed", 0),
               (long long)json_int(road, "sent", 0), (long long)json_int(road, "failed", 0),
               (long long)json_int(road, "unknown", 0));
}

static void print_schedule(const json_t *schedule)
{
        const char *next = json_str(schedule, "nextAt", NULL);

        if (!schedule)
                return;
        print_heading("schedule");
        if (json_is_false(json_object_get(schedule, "enabled")))
                printf("  off: nothing is started (schedule.enabled)\n");
        printf("  next: %s; since start: %lld fired, %lld late, %lld skipped, %lld failed\n",
               next ? next : "nothing is pending", (long long)json_int(schedule, "fired", 0),
               (long long)json_int(schedule, "late", 0),
               (long long)json_int(schedule, "skipped", 0),
               (long long)json_int(schedule, "failed", 0));
}

/* Of an agent that is a program. */
static void print_processes(const json_t *p)
{
        int64_t running = json_int(p, "running", 0);

        if (running > 0)
                printf("    %lld %s of at most %lld, %lld idle; %lld MiB, %lld s of CPU\n",
                       (long long)running, print_plural(running, "process", "processes"),
                       (long long)json_int(p, "most", 0), (long long)json_int(p, "idle", 0),
                       (long long)(json_int(p, "memoryBytes", 0) >> 20),
                       (long long)(json_int(p, "cpuMs", 0) / 1000));
        if (json_str(p, "problem", NULL))
                printf("    the last start failed: %s\n", json_str(p, "problem", ""));
}

/* An open circuit breaker matters more than the last health probe. */
static void print_agent(const json_t *agent)
{
        const char *circuit = json_str(json_object_get(agent, "circuit"), "state", "closed");
        bool open = strcmp(circuit, "closed") != 0;
        const json_t *sandbox = json_object_get(agent, "sandbox");
        const char *kind = json_str(sandbox, "kind", NULL);
        int64_t waiting = json_int(agent, "waiting", 0);
        const json_t *custom = json_object_get(agent, "customTools"), *source;
        size_t i;

        print_row(json_str(agent, "name", "?"), json_str(agent, "type", "?"),
                  open ? "unhealthy" : json_str(agent, "health", "?"),
                  json_str(agent, open ? "lastFailure" : "why", NULL));
        if (waiting > 0)
                printf("    %lld %s waiting\n", (long long)waiting,
                       print_plural(waiting, "turn", "turns"));
        if (kind && json_is_true(json_object_get(sandbox, "works")))
                printf("    commands run in %s\n", strcmp(kind, "host") == 0 ? "no sandbox" : kind);
        else if (kind)
                printf("    commands are refused: %s\n",
                       json_str(sandbox, "problem", "see the log"));
        print_processes(json_object_get(agent, "processes"));
        if (json_int(custom, "count", 0) > 0)
                printf("    %lld custom %s, about %lld tokens of each prompt%s\n",
                       (long long)json_int(custom, "count", 0),
                       print_plural(json_int(custom, "count", 0), "tool", "tools"),
                       (long long)json_int(custom, "tokens", 0),
                       json_flag(custom, "deferred", false) ? ", their parameters by tool_search"
                                                            : "");
        json_array_foreach(json_object_get(custom, "sources"), i, source)
                print_row(json_str(source, "name", "?"), json_str(source, "kind", "?"),
                          json_str(source, "state", "?"), json_str(source, "problem", NULL));
}

static void print_confinement(const json_t *c)
{
        if (!json_is_object(c))
                return;
        print_heading("confinement");
        print_row("writes", "landlock", json_str(c, "writes", "?"), json_str(c, "writesWhy", NULL));
        print_row("calls", "seccomp", json_str(c, "calls", "?"), json_str(c, "callsWhy", NULL));
        print_row("memory", "no dumps",
                  strcmp(json_str(c, "coreDumps", ""), "off") == 0 ? "on" : "off",
                  strcmp(json_str(c, "coreDumps", ""), "off") == 0
                          ? NULL
                          : "core dumps and debuggers are possible");
}

void status_print(const json_t *all, const struct client *c)
{
        const json_t *s = json_object_get(all, "status"), *store = json_object_get(s, "store"),
                     *item;
        size_t i;

        printf("dragoman %s on %s: %s%s%s, up ", json_str(s, "version", "?"), client_dir(c),
               print_style(stdout, style_of(json_str(s, "status", ""))), json_str(s, "status", "?"),
               print_style(stdout, STYLE_PLAIN));
        print_uptime(json_int(s, "uptimeMs", 0));
        printf(", pid %lld, %s\n", (long long)json_int(s, "pid", 0), client_base(c));
        print_heading("adapters");
        json_array_foreach(json_object_get(all, "instances"), i, item)
                print_row(json_str(item, "name", "?"), json_str(item, "channel", "?"),
                          json_str(item, "state", "?"), json_str(item, "why", NULL));
        print_heading("agents");
        json_array_foreach(json_object_get(all, "agents"), i, item)
                print_agent(item);
        print_road(json_object_get(s, "road"));
        print_schedule(json_object_get(s, "schedule"));
        print_heading("store");
        print_row("database", json_str(store, "driver", "?"), json_str(store, "state", "?"),
                  json_str(store, "why", NULL));
        print_confinement(json_object_get(s, "confinement"));
}

static int show_status(struct args *a, struct client *c, struct error *err)
{
        json_t *all = NULL;

        if (status_fetch(c, &all, err) < 0)
                return -1;
        if (a->json)
                print_json(all);
        else
                status_print(all, c);
        json_decref(all);
        return CLI_OK;
}

/* ---- without a daemon ---- */

static int read_totals(struct store_tx *tx, void *arg, struct error *err)
{
        return totals_get(tx, arg, err);
}

static void print_totals(const struct args *a, const struct totals *t)
{
        json_t *json;

        if (!a->json) {
                printf("in its database: %lld %s, %lld %s and %lld %s to resume, %lld dead %s\n",
                       (long long)t->events, print_plural(t->events, "event", "events"),
                       (long long)t->open_turns, print_plural(t->open_turns, "turn", "turns"),
                       (long long)t->open_deliveries,
                       print_plural(t->open_deliveries, "delivery", "deliveries"),
                       (long long)t->dead_letters,
                       print_plural(t->dead_letters, "letter", "letters"));
                return;
        }
        json = json_pack("{s:b, s:{s:I, s:I, s:I, s:I}}", "running", 0, "database", "events",
                         (json_int_t)t->events, "turnsOpen", (json_int_t)t->open_turns,
                         "deliveriesOpen", (json_int_t)t->open_deliveries, "deadLetters",
                         (json_int_t)t->dead_letters);
        print_json(json);
        json_decref(json);
}

int status_command(struct args *a)
{
        struct error err = { 0 };
        struct totals totals = { 0 };
        struct loop *l;
        struct client *c;
        int rc;

        if (args_end(a) < 0)
                return CLI_USAGE;
        l = loop_new();
        c = client_new(l, a->dir, &err);
        rc = c ? show_status(a, c, &err) : -1;
        client_free(c);
        loop_free(l);
        if (rc == CLI_OK)
                return rc;
        /* show figures of the database; the exit code reports the missing daemon */
        if (err.kind != ERR_NET || local_store_read(a->dir, read_totals, &totals, NULL) < 0)
                return command_failed(a, &err);
        print_stderr("dragoman: ", err.text);
        print_totals(a, &totals);
        return CLI_NO_DAEMON;
}
