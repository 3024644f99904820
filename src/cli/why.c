/* The story of a message as a line of time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/local_store.h"
#include "cli/print.h"
#include "cli/show.h"
#include "road/report/trace_report.h"

#define TEXT_SHOWN 300

int why_fetch(struct client *c, const char *id, json_t **out, struct error *err)
{
        char *escaped = http_escape(id), *path = mem_printf("/api/v2/why/%s", escaped);
        json_t *json = NULL;
        int rc = client_get(c, path, &json, err);

        *out = json_incref(json_object_get(json, "data"));
        json_decref(json);
        free(escaped);
        free(path);
        return rc;
}

/* ---- printing ---- */

struct timeline {
        int64_t start_ms; /* 0: not known yet */
};

/* The first moment in full, the later ones as what has passed since. */
static void moment(struct timeline *t, const char *iso)
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

static void because(const json_t *error)
{
        const char *text = json_str(error, "message", NULL);

        if (!text)
                return;
        fputs(": ", stdout);
        print_line(stdout, text, TEXT_SHOWN);
}

static void print_event(struct timeline *t, const json_t *e)
{
        const json_t *sender = json_object_get(e, "sender");
        const char *text = json_str(e, "text", NULL);

        if (!json_is_object(e))
                return;
        moment(t, json_str(e, "storedAt", NULL));
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
        const char *reason = json_str(d, "reason", NULL);

        if (!json_is_object(d))
                return;
        moment(t, json_str(d, "at", NULL));
        if (agent)
                printf("decided: agent '%s'", agent);
        else
                printf("decided: nobody answers");
        if (rule)
                printf(", by rule '%s'", rule);
        if (reason) {
                fputs(", because ", stdout);
                print_line(stdout, reason, TEXT_SHOWN);
        }
        putchar('\n');
}

static void print_turn(struct timeline *t, const json_t *turn)
{
        const char *ended = json_str(turn, "endedAt", NULL), *id = json_str(turn, "id", "?");

        if (!json_is_object(turn))
                return;
        if (json_str(turn, "startedAt", NULL)) {
                moment(t, json_str(turn, "startedAt", NULL));
                printf("%s began, attempt %lld\n", id, (long long)json_int(turn, "attempt", 0));
        }
        moment(t, ended);
        printf("%s %s", id, json_str(turn, "state", "?"));
        if (json_int(turn, "tokensIn", 0) > 0 || json_int(turn, "tokensOut", 0) > 0)
                printf(" (%lld tokens in, %lld out)", (long long)json_int(turn, "tokensIn", 0),
                       (long long)json_int(turn, "tokensOut", 0));
        because(json_object_get(turn, "error"));
        putchar('\n');
}

static void print_delivery(struct timeline *t, const json_t *d)
{
        const json_t *attempt;
        size_t i;

        json_array_foreach(json_object_get(d, "attempts"), i, attempt) {
                const char *detail = json_str(attempt, "detail", NULL);

                moment(t, json_str(attempt, "at", NULL));
                printf("%s attempt %lld: %s", json_str(d, "id", "?"),
                       (long long)json_int(attempt, "attempt", 0),
                       json_str(attempt, "outcome", "?"));
                if (detail) {
                        fputs(", ", stdout);
                        print_line(stdout, detail, TEXT_SHOWN);
                }
                putchar('\n');
        }
        moment(t, json_str(d, "endedAt", json_str(d, "createdAt", NULL)));
        printf("%s %s to %s/", json_str(d, "id", "?"), json_str(d, "state", "?"),
               json_str(d, "instanceId", "?"));
        print_line(stdout, json_str(d, "channel", "?"), 80);
        if (json_str(d, "platformId", NULL))
                printf(" as %s", json_str(d, "platformId", ""));
        because(json_object_get(d, "error"));
        putchar('\n');
}

void why_print(const json_t *story)
{
        const json_t *delivery;
        struct timeline t = { 0 };
        size_t i;

        printf("%s%s%s: ", print_style(stdout, STYLE_BOLD), json_str(story, "id", "?"),
               print_style(stdout, STYLE_PLAIN));
        print_line(stdout, json_str(story, "summary", "nothing is known"), 0);
        printf("\n  trace %s\n", json_str(story, "traceId", "?"));
        print_event(&t, json_object_get(story, "event"));
        print_decision(&t, json_object_get(story, "decision"));
        print_turn(&t, json_object_get(story, "turn"));
        json_array_foreach(json_object_get(story, "deliveries"), i, delivery)
                print_delivery(&t, delivery);
}

/* ---- the command ---- */

struct offline_story {
        const char *id;
        struct buf json;
};

static int read_story(struct store_tx *tx, void *arg, struct error *err)
{
        struct offline_story *s = arg;

        buf_clear(&s->json);
        return story_tell(tx, s->id, &s->json, err);
}

/* Nobody runs: the rows tell the same story. no_daemon says what to tell when there are none. */
static int fetch_offline(const char *dir, const char *id, json_t **out, struct error *no_daemon)
{
        struct offline_story s = { .id = id };
        struct error err = { 0 };
        int rc;

        buf_init(&s.json, 0);
        rc = local_store_read(dir, read_story, &s, &err);
        if (rc == 0)
                *out = json_loadb(s.json.data, s.json.len, 0, NULL);
        else if (err.kind == ERR_MISSING && strstr(err.text, id))
                *no_daemon = err;
        buf_release(&s.json);
        return rc;
}

static int show_why(struct args *a, struct client *c, struct error *err)
{
        const char *id = a->operands[0];
        json_t *story = NULL;

        if (why_fetch(c, id, &story, err) < 0 &&
            (err->kind != ERR_NET || fetch_offline(a->dir, id, &story, err) < 0))
                return -1;
        if (a->json)
                print_json(story);
        else
                why_print(story);
        json_decref(story);
        return CLI_OK;
}

int why_command(struct args *a)
{
        if (!args_operand(a, "ID") || args_end(a) < 0)
                return CLI_USAGE;
        return client_command(a, show_why);
}
