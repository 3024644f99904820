/* Prints the trace report of a message as a timeline. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/local_store.h"
#include "cli/print.h"
#include "cli/resource.h"
#include "road/report/trace_report.h"

#define TEXT_SHOWN 300
#define ITEM_SHOWN 80
#define RECENT     10 /* messages shown without an id */

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
        const char *agent = json_str(d, "chosenAgent", NULL), *rule = json_str(d, "rule", NULL),
                   *status = json_str(d, "status", ""), *reason = json_str(d, "reason", NULL);

        if (!json_is_object(d))
                return;
        print_time(t, json_str(d, "at", NULL));
        if (json_str(d, "turnId", NULL)) {
                print_quoted(stdout, "decided: for agent ", agent ? agent : "?");
                print_quoted(stdout, ", by rule ", rule);
        } else if (strcmp(status, "done") == 0) {
                print_field(stdout, "done: ", reason ? reason : "nothing to answer", TEXT_SHOWN);
        } else {
                print_field(stdout, "refused: ", reason ? reason : status, TEXT_SHOWN);
                print_quoted(stdout, "; it was meant for agent ", agent);
                print_quoted(stdout, agent ? ", by rule " : "; by rule ", rule);
        }
        putchar('\n');
}

static void print_tokens(const json_t *turn)
{
        long long cached = json_int(turn, "tokensCached", 0);

        printf(" (%lld tokens in", (long long)json_int(turn, "tokensIn", 0));
        if (cached > 0)
                printf(", %lld of them cached", cached);
        printf(", %lld out", (long long)json_int(turn, "tokensOut", 0));
        if (json_int(turn, "costMicroUsd", 0) > 0)
                printf(", %.4f USD", (double)json_int(turn, "costMicroUsd", 0) / 1e6);
        putchar(')');
}

static void print_rule(const json_t *rule)
{
        const char *name = json_str(rule, "name", NULL);
        bool matched = json_flag(rule, "matched", false);

        printf("  %-26s  ", "");
        if (name) {
                print_quoted(stdout, "rule ", name);
                fputs(matched ? " matches" : " does not match: ", stdout);
        }
        if (!matched)
                print_line(stdout, json_str(rule, "why", "?"), TEXT_SHOWN);
        putchar('\n');
}

static void print_approval(struct timeline *t, const json_t *a)
{
        const char *decided = json_str(a, "decidedAt", NULL);

        print_time(t, json_str(a, "createdAt", NULL));
        printf("%s asked: ", json_str(a, "id", "?"));
        print_line(stdout, json_str(a, "title", "?"), TEXT_SHOWN);
        print_field(stdout, ", because ", json_str(a, "reason", NULL), TEXT_SHOWN);
        putchar('\n');
        if (!decided)
                return;
        print_time(t, decided);
        printf("%s %s", json_str(a, "id", "?"), json_str(a, "state", "?"));
        print_field(stdout, " by ", json_str(a, "by", NULL), TEXT_SHOWN);
        print_field(stdout, ": ", json_str(a, "note", NULL), TEXT_SHOWN);
        putchar('\n');
}

static void print_step(struct timeline *t, const json_t *step)
{
        const char *kind = json_str(step, "kind", "?");

        print_time(t, json_str(step, "createdAt", NULL));
        if (strcmp(kind, "tool_started") == 0)
                printf("tool started");
        else if (strcmp(kind, "tool_done") == 0)
                printf("tool %s", json_flag(step, "isError", false) ? "failed" : "done");
        else if (strcmp(kind, "assistant") == 0)
                printf("model answered");
        else
                printf("%s", strcmp(kind, "user") == 0 ? "messages read" : "history summarised");
        print_field(stdout, ": ", json_str(step, "tool", NULL), TEXT_SHOWN);
        print_field(stdout, ": ", json_str(step, "model", NULL), TEXT_SHOWN);
        if (json_int(step, "tokensIn", 0) > 0 || json_int(step, "tokensOut", 0) > 0)
                print_tokens(step);
        putchar('\n');
}

static void print_remote_task(struct timeline *t, const json_t *task)
{
        if (!task)
                return;
        print_time(t, json_str(task, "at", NULL));
        print_quoted(stdout, "agent ", json_str(task, "agent", "?"));
        print_field(stdout, " was asked by message ", json_str(task, "messageId", "?"), TEXT_SHOWN);
        print_field(stdout, "; there it is task ", json_str(task, "taskId", NULL), TEXT_SHOWN);
        putchar('\n');
}

static void print_turn(struct timeline *t, const json_t *report, const char *reason)
{
        const json_t *turn = json_object_get(report, "turn");
        const json_t *approvals = json_object_get(report, "approvals"), *step;
        const char *ended = json_str(turn, "endedAt", NULL), *id = json_str(turn, "id", "?");
        long long discarded = json_int(turn, "discardedReplies", 0);
        const json_t *failed;
        size_t i;

        if (!json_is_object(turn))
                return;
        if (json_str(turn, "startedAt", NULL)) {
                print_time(t, json_str(turn, "startedAt", NULL));
                printf("%s started, attempt %lld", id, (long long)json_int(turn, "attempt", 0));
                if (json_int(turn, "waitMs", 0) > 0)
                        printf(", after a wait of %.3f s",
                               (double)json_int(turn, "waitMs", 0) / 1000.0);
                putchar('\n');
        }
        json_array_foreach(json_object_get(turn, "failedAgents"), i, failed) {
                print_time(t, json_str(failed, "failedAt", NULL));
                print_quoted(stdout, "agent ", json_str(failed, "agent", "?"));
                print_field(stdout, " failed: ", json_str(failed, "error", "?"), TEXT_SHOWN);
                putchar('\n');
        }
        print_remote_task(t, json_object_get(report, "remoteTask"));
        json_array_foreach(json_object_get(report, "steps"), i, step)
                print_step(t, step);
        for (i = json_array_size(approvals); i > 0; i--) /* the newest is the first */
                print_approval(t, json_array_get(approvals, i - 1));
        print_time(t, ended);
        printf("%s %s", id, json_str(turn, "state", "?"));
        print_quoted(stdout, ended ? " by agent " : " with agent ", json_str(turn, "agent", NULL));
        if (json_int(turn, "tokensIn", 0) > 0 || json_int(turn, "tokensOut", 0) > 0)
                print_tokens(turn);
        if (ended && json_is_integer(json_object_get(turn, "durationMs")))
                printf(" in %.3f s", (double)json_int(turn, "durationMs", 0) / 1000.0);
        print_field(stdout, ": ",
                    json_str(json_object_get(turn, "error"), "message", ended ? reason : NULL),
                    TEXT_SHOWN);
        putchar('\n');
        if (discarded > 0) {
                print_time(t, json_str(turn, "discardedAt", NULL));
                printf("%lld late answer%s discarded", discarded, discarded == 1 ? "" : "s");
                print_field(stdout, discarded == 1 ? ": " : ", the last: ",
                            json_str(turn, "discardReason", "?"), TEXT_SHOWN);
                putchar('\n');
        }
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

/* A message of a list: its id, where it is, what it says, and below what became of it. */
static void print_item(const json_t *item)
{
        const char *text = json_str(item, "text", NULL);

        printf("%s%-10s%s %s%s%s  %s/", print_style(stdout, STYLE_BOLD), json_str(item, "id", "?"),
               print_style(stdout, STYLE_PLAIN), print_style(stdout, STYLE_DIM),
               json_str(item, "at", "?"), print_style(stdout, STYLE_PLAIN),
               json_str(item, "instanceId", "?"));
        print_line(stdout, json_str(item, "channel", "?"), 60);
        print_field(stdout, "/", json_str(item, "messageId", NULL), 60);
        print_field(stdout, "  ", json_str(item, "sender", "the bot"), 40);
        print_field(stdout, ": ", text, ITEM_SHOWN);
        printf("\n%-10s ", "");
        print_line(stdout, json_str(item, "summary", "?"), 0);
        putchar('\n');
}

static void print_items(const json_t *items)
{
        const json_t *item;
        size_t i;

        json_array_foreach(items, i, item)
                print_item(item);
        if (json_array_size(items) == 0)
                puts("no message has been decided yet");
}

void why_print(const json_t *report)
{
        const json_t *candidates = json_object_get(report, "candidates"),
                     *decision = json_object_get(report, "decision"), *each;
        struct timeline t = { 0 };
        size_t i;

        printf("%s%s%s: ", print_style(stdout, STYLE_BOLD), json_str(report, "id", "?"),
               print_style(stdout, STYLE_PLAIN));
        print_line(stdout, json_str(report, "summary", "no summary"), 0);
        putchar('\n');
        if (candidates) {
                print_items(candidates);
                return;
        }
        printf("  trace %s", json_str(report, "traceId", "?"));
        print_field(stdout, ", continued from ",
                    json_str(json_object_get(report, "event"), "traceparent", NULL), 100);
        putchar('\n');
        print_event(&t, json_object_get(report, "event"));
        print_decision(&t, decision);
        json_array_foreach(json_object_get(report, "rules"), i, each)
                print_rule(each);
        print_turn(&t, report, json_str(decision, "reason", NULL));
        json_array_foreach(json_object_get(report, "deliveries"), i, each)
                print_delivery(&t, each);
}

/* ---- command ---- */

struct report_job {
        const char *id; /* NULL: the last messages */
        struct buf json;
};

static int read_report(struct store_tx *tx, void *arg, struct error *err)
{
        const struct trace_filter filter = { .limit = RECENT };
        struct report_job *j = arg;
        int64_t last;
        bool more;

        buf_clear(&j->json);
        if (j->id)
                return trace_report_write(tx, j->id, NULL, &j->json, err);
        jsonw_open(&j->json, '[');
        if (trace_report_recent(tx, &filter, &j->json, &last, &more, err) < 0)
                return -1;
        jsonw_close(&j->json, ']');
        return 0;
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
        else if (id && err.kind == ERR_MISSING && strstr(err.text, id))
                *no_daemon = err;
        buf_release(&j.json);
        return rc;
}

static int fetch_recent(struct client *c, json_t **out, struct error *err)
{
        json_t *page = NULL;
        char path[40];
        int rc;

        snprintf(path, sizeof(path), "/api/v2/why?limit=%d", RECENT);
        rc = client_get(c, path, &page, err);
        *out = json_incref(json_object_get(page, "items"));
        json_decref(page);
        return rc;
}

static int show_why(struct args *a, struct client *c, struct error *err)
{
        bool has_id = a->operand_count > 1 || (a->operand_count == 1 && a->dir != a->operands[0]);
        const char *id = has_id ? a->operands[0] : NULL;
        json_t *report = NULL, *items;
        int rc = id ? why_fetch(c, id, &report, err) : fetch_recent(c, &report, err);

        if (rc < 0 && (err->kind != ERR_NET || fetch_offline(a->dir, id, &report, err) < 0))
                return -1;
        if (a->json && !id) {
                items = json_pack("{s:O}", "items", report);
                print_json(items);
                json_decref(items);
        } else if (a->json) {
                print_json(report);
        } else if (id) {
                why_print(report);
        } else {
                print_items(report);
        }
        json_decref(report);
        return CLI_OK;
}

/* One operand is an id, unless it is a data directory. */
static bool is_data_directory(const char *word)
{
        char *path = mem_printf("%s/state", word);
        struct stat st;
        bool found = stat(path, &st) == 0 && S_ISDIR(st.st_mode);

        free(path);
        return found;
}

int why_command(struct args *a)
{
        if (a->operand_count > 1 || (a->operand_count == 1 && !is_data_directory(a->operands[0])))
                args_operand(a, "ID");
        if (args_end(a) < 0)
                return CLI_USAGE;
        return client_command(a, show_why);
}
