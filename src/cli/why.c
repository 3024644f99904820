/* Prints the trace report of a message as a timeline. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/local_store.h"
#include "cli/print.h"
#include "cli/resource.h"
#include "road/report/trace_report.h"

#define TEXT_SHOWN 300

int why_fetch(struct client *c, const char *id, json_t **out, struct error *err)
{
        char *path = resource_path("/api/v2/why/", id, "");
        json_t *json = NULL;
        int rc = client_get(c, path, &json, err);

        *out = json_incref(json_object_get(json, "data"));
        json_decref(json);
        free(path);
        return rc;
}

/* ---- printing ---- */

struct timeline {
        int64_t start_ms; /* 0: not known yet */
};

/* The first in full, later ones relative to it. */
static void print_time(struct timeline *t, const char *iso)
{
        int64_t ms;

        if (!iso || clock_parse_iso(iso, &ms) < 0) {
                printf("  %-26s", "");
        } else if (t->start_ms == 0) {
                t->start_ms = ms;
                printf("  %s%-26s%s", print_style(stdout, STYLE_DIM), iso,
                       print_style(stdout, STYLE_PLAIN));
        } else {
                char since[32];

                snprintf(since, sizeof(since), "+%.3f s", (double)(ms - t->start_ms) / 1000.0);
                printf("  %s%26s%s", print_style(stdout, STYLE_DIM), since,
                       print_style(stdout, STYLE_PLAIN));
        }
        fputs("  ", stdout);
}

static void print_event(struct timeline *t, const json_t *e)
{
        const json_t *sender = json_object_get(e, "sender");
        const char *text = json_str(e, "text", NULL);

        if (!json_is_object(e))
                return;
        print_time(t, json_str(e, "storedAt", NULL));
        printf("%s stored: %s from ", json_str(e, "id", "?"), json_str(e, "type", "?"));
        print_line(stdout,
                   json_str(sender, "displayName",
                            json_str(sender, "username", json_str(sender, "id", "?"))),
                   60);
        printf(" in %s/", json_str(e, "instanceId", "?"));
        print_line(stdout, json_str(e, "channel", "?"), 80);
        putchar('\n');
        if (!text)
                return;
        printf("  %-26s  \"", "");
        print_line(stdout, text, TEXT_SHOWN);
        puts("\"");
}

static void print_decision(struct timeline *t, const json_t *d)
{
        const char *agent = json_str(d, "agent", NULL), *rule = json_str(d, "rule", NULL);

        if (!json_is_object(d))
                return;
        print_time(t, json_str(d, "at", NULL));
        if (agent)
                printf("decided: agent '%s'", agent);
        else
                printf("decided: no agent answers");
        print_quoted(stdout, ", by rule ", rule);
        print_field(stdout, ": ", json_str(d, "reason", NULL), TEXT_SHOWN);
        putchar('\n');
}

static void print_turn(struct timeline *t, const json_t *turn)
{
        const char *ended = json_str(turn, "endedAt", NULL), *id = json_str(turn, "id", "?");

        if (!json_is_object(turn))
                return;
        if (json_str(turn, "startedAt", NULL)) {
                print_time(t, json_str(turn, "startedAt", NULL));
                printf("%s started, attempt %lld\n", id, (long long)json_int(turn, "attempt", 0));
        }
        print_time(t, ended);
        printf("%s %s", id, json_str(turn, "state", "?"));
        if (json_int(turn, "tokensIn", 0) > 0 || json_int(turn, "tokensOut", 0) > 0)
                printf(" (%lld tokens in, %lld out)", (long long)json_int(turn, "tokensIn", 0),
                       (long long)json_int(turn, "tokensOut", 0));
        print_field(stdout, ": ", json_str(json_object_get(turn, "error"), "message", NULL),
                    TEXT_SHOWN);
        putchar('\n');
}

static void print_delivery(struct timeline *t, const json_t *d)
{
        const json_t *attempt;
        size_t i;

        json_array_foreach(json_object_get(d, "attempts"), i, attempt) {
                print_time(t, json_str(attempt, "at", NULL));
                printf("%s attempt %lld: %s", json_str(d, "id", "?"),
                       (long long)json_int(attempt, "attempt", 0),
                       json_str(attempt, "outcome", "?"));
                print_field(stdout, ", ", json_str(attempt, "detail", NULL), TEXT_SHOWN);
                putchar('\n');
        }
        print_time(t, json_str(d, "endedAt", json_str(d, "createdAt", NULL)));
        printf("%s %s to %s/", json_str(d, "id", "?"), json_str(d, "state", "?"),
               json_str(d, "instanceId", "?"));
        print_line(stdout, json_str(d, "channel", "?"), 80);
        print_field(stdout, " as ", json_str(d, "platformId", NULL), 80);
        print_field(stdout, ": ", json_str(json_object_get(d, "error"), "message", NULL),
                    TEXT_SHOWN);
        putchar('\n');
}

void why_print(const json_t *report)
{
        const json_t *delivery;
        struct timeline t = { 0 };
        size_t i;

        printf("%s%s%s: ", print_style(stdout, STYLE_BOLD), json_str(report, "id", "?"),
               print_style(stdout, STYLE_PLAIN));
        print_line(stdout, json_str(report, "summary", "no summary"), 0);
        printf("\n  trace %s\n", json_str(report, "traceId", "?"));
        print_event(&t, json_object_get(report, "event"));
        print_decision(&t, json_object_get(report, "decision"));
        print_turn(&t, json_object_get(report, "turn"));
        json_array_foreach(json_object_get(report, "deliveries"), i, delivery)
                print_delivery(&t, delivery);
}

/* ---- command ---- */

struct report_job {
        const char *id;
        struct buf json;
};

static int read_report(struct store_tx *tx, void *arg, struct error *err)
{
        struct report_job *j = arg;

        buf_clear(&j->json);
        return trace_report_write(tx, j->id, &j->json, err);
}

/* *no_daemon becomes the error when the id is unknown there. */
static int fetch_offline(const char *dir, const char *id, json_t **out, struct error *no_daemon)
{
        struct report_job j = { .id = id };
        struct error err = { 0 };
        int rc;

        buf_init(&j.json, 0);
        rc = local_store_read(dir, read_report, &j, &err);
        if (rc == 0)
                *out = json_loadb(j.json.data, j.json.len, 0, NULL);
        else if (err.kind == ERR_MISSING && strstr(err.text, id))
                *no_daemon = err;
        buf_release(&j.json);
        return rc;
}

static int show_why(struct args *a, struct client *c, struct error *err)
{
        const char *id = a->operands[0];
        json_t *report = NULL;

        if (why_fetch(c, id, &report, err) < 0 &&
            (err->kind != ERR_NET || fetch_offline(a->dir, id, &report, err) < 0))
                return -1;
        if (a->json)
                print_json(report);
        else
                why_print(report);
        json_decref(report);
        return CLI_OK;
}

int why_command(struct args *a)
{
        if (!args_operand(a, "ID") || args_end(a) < 0)
                return CLI_USAGE;
        return client_command(a, show_why);
}
