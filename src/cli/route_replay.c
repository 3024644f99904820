/*
 * Decides past events again, perhaps by another configuration, and shows the differences.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/local_store.h"
#include "cli/print.h"
#include "config/config.h"
#include "dispatch/replay.h"

#define DEFAULT_SINCE "1d"

struct replay_job {
        const struct args *args;
        struct dispatch *dispatch;
        bool all;
        int64_t since_ms, after_event;
        struct buf json; /* the items, with --json */
        struct replay_sum sum;
};

/* ---- first event ---- */

static int read_since(struct replay_job *r, const char *text)
{
        int64_t span_ms;

        if (strncmp(text, "evt-", 4) == 0) {
                r->after_event = bus_event_seq(text);
                if (r->after_event > 0)
                        return 0;
        }
        if (clock_parse_iso(text, &r->since_ms) == 0)
                return 0;
        if (clock_parse_span(text, &span_ms) == 0) {
                r->since_ms = clock_wall_ms() - span_ms;
                return 0;
        }
        command_usage_error(r->args->command,
                            "--since: '%s' is neither an event such as evt-42, a time such as "
                            "2026-11-15T06:00:00Z nor a span such as 30m, 2h or 1d",
                            text);
        return -1;
}

/* ---- output ---- */

static void print_decision(const char *word, const struct replay_decision *d)
{
        printf("  %s: ", word);
        if (d->answers) {
                printf("agent '%s'", d->agent ? d->agent : "?");
        } else {
                const char *reason = d->reason ? d->reason : "no reason recorded";

                fputs("no agent: ", stdout);
                print_text(stdout, reason, strlen(reason));
        }
        if (d->rule) {
                print_quoted(stdout, " (rule ", d->rule);
                putchar(')');
        }
        putchar('\n');
}

static void print_row(const struct replay_row *row)
{
        const struct incoming *in = row->in;
        char when[CLOCK_ISO_SIZE];

        printf("%sevt-%lld%s %s %s %s/", print_style(stdout, row->differs ? STYLE_BOLD : STYLE_DIM),
               (long long)in->event, print_style(stdout, STYLE_PLAIN),
               clock_iso(row->time_ms, when), in->type, in->adapter);
        print_text(stdout, in->channel, strlen(in->channel));
        putchar('\n');
        print_decision("before", &row->before);
        print_decision("now", &row->now);
}

static void add_decision(struct buf *json, const char *name, const struct replay_decision *d)
{
        jsonw_open_member(json, name, '{');
        jsonw_bool(json, "trigger", d->answers);
        jsonw_str(json, "agent", d->agent);
        jsonw_str(json, "rule", d->rule);
        jsonw_str(json, "reason", d->answers ? NULL : d->reason);
        jsonw_close(json, '}');
}

static void add_row(struct buf *json, const struct replay_row *row)
{
        char *id = mem_printf("evt-%lld", (long long)row->in->event);

        jsonw_open(json, '{');
        jsonw_str(json, "eventId", id);
        jsonw_int(json, "timestamp", row->time_ms);
        jsonw_str(json, "type", row->in->type);
        jsonw_str(json, "instanceId", row->in->adapter);
        jsonw_str(json, "channel", row->in->channel);
        add_decision(json, "before", &row->before);
        add_decision(json, "now", &row->now);
        jsonw_bool(json, "differs", row->differs);
        jsonw_close(json, '}');
        free(id);
}

static void on_row(void *arg, const struct replay_row *row)
{
        struct replay_job *r = arg;

        if (!row->differs && !r->all)
                return;
        if (r->args->json)
                add_row(&r->json, row);
        else
                print_row(row);
}

static void print_sum(struct replay_job *r)
{
        const struct replay_sum *s = &r->sum;
        json_t *json;

        if (!r->args->json) {
                printf("%lld events: %lld were answered, %lld would be\n", (long long)s->events,
                       (long long)s->answered_before, (long long)s->answered_now);
                if (s->begins + s->ends + s->moves == 0)
                        puts("no decision would change");
                else
                        printf("%lld newly answered, %lld no longer, %lld by another agent or "
                               "rule\n",
                               (long long)s->begins, (long long)s->ends, (long long)s->moves);
                return;
        }
        jsonw_close(&r->json, ']');
        jsonw_open_member(&r->json, "summary", '{');
        jsonw_int(&r->json, "events", s->events);
        jsonw_int(&r->json, "answeredBefore", s->answered_before);
        jsonw_int(&r->json, "answeredNow", s->answered_now);
        jsonw_int(&r->json, "onlyNow", s->begins);
        jsonw_int(&r->json, "onlyBefore", s->ends);
        jsonw_int(&r->json, "otherwise", s->moves);
        jsonw_close(&r->json, '}');
        jsonw_close(&r->json, '}');
        json = json_loadb(r->json.data, r->json.len, 0, NULL);
        print_json(json);
        json_decref(json);
}

/* ---- replay ---- */

static int replay(struct store_tx *tx, void *arg, struct error *err)
{
        struct replay_job *r = arg;

        return replay_run(r->dispatch, tx, r->since_ms, r->after_event, on_row, r, &r->sum, err);
}

/* Stored rules and access rules apply as they are now; handovers do not, being newer. */
static int replay_with(struct replay_job *r, struct store *s, struct error *err)
{
        struct runtime_policy *policy = runtime_policy_open(s, NULL, err), then;
        int rc;

        if (!policy)
                return -1;
        then = *policy;
        then.handovers = NULL;
        dispatch_set_policy(r->dispatch, &then);
        rc = store_read_now(s, replay, r, err);
        dispatch_set_policy(r->dispatch, NULL);
        runtime_policy_free(policy);
        return rc;
}

static int run(struct replay_job *r, struct config *c)
{
        const struct args *a = r->args;
        struct error err = { 0 };
        struct store *s = local_store_open(a->dir, &err);
        int rc = -1;

        if (s) {
                r->dispatch = dispatch_new();
                config_dispatch_apply(c, r->dispatch);
                jsonw_open(&r->json, '{');
                jsonw_open_member(&r->json, "items", '[');
                rc = replay_with(r, s, &err);
                dispatch_free(r->dispatch);
        }
        store_close(s);
        if (rc < 0)
                return command_failed(a, &err);
        print_sum(r);
        return CLI_OK;
}

int route_replay_command(struct args *a)
{
        struct replay_job r = { .args = a, .all = args_has(a, "all") };
        const char *since = args_value(a, "since"), *path = args_value(a, "config");
        struct config *c = NULL;
        struct error err = { 0 };
        int rc;

        if (args_end(a) < 0 || read_since(&r, since ? since : DEFAULT_SINCE) < 0)
                return CLI_USAGE;
        rc = path ? config_load_file(a->dir, path, &c, &err) : config_load(a->dir, &c, &err);
        if (rc < 0) {
                command_failed(a, &err);
                return CLI_CONFIG;
        }
        buf_init(&r.json, 0);
        rc = run(&r, c);
        buf_release(&r.json);
        config_free(c);
        return rc;
}
