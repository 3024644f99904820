#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "cli/print.h"
#include "cli/resource.h"

#define SESSIONS "/api/v2/sessions"

static void print_session(const json_t *r)
{
        const char *state = json_str(r, "state", "?"), *adapter = json_str(r, "instanceId", NULL);
        bool active = strcmp(state, "active") == 0;

        printf("%-8s %s%-8s%s ", json_str(r, "id", "?"),
               print_style(stdout, active ? STYLE_BOLD : STYLE_PLAIN), state,
               print_style(stdout, STYLE_PLAIN));
        print_line(stdout, json_str(r, "sessionId", "?"), 60);
        print_field(stdout, " ", json_str(r, "program", NULL), 20);
        print_field(stdout, " ", json_str(r, "cwd", NULL), 60);
        if (adapter) {
                printf(" in %s/", adapter);
                print_line(stdout, json_str(r, "channel", "?"), 60);
        }
        printf(", last event %s", json_str(r, "lastEventAt", "?"));
        print_field(stdout, ": ", json_str(r, "title", NULL), 100);
        putchar('\n');
}

static void print_whole(const json_t *r)
{
        print_session(r);
        printf("began    %s\n", json_str(r, "createdAt", "?"));
        printf("spent    %lld turns, %lld tokens, $%.4f\n", (long long)json_int(r, "turns", 0),
               (long long)json_int(r, "tokens", 0),
               json_number_value(json_object_get(r, "costUsd")));
        printf("runs");
        print_field(stdout, "     on ", json_str(r, "host", "?"), 100);
        print_field(stdout, " with ", json_str(r, "model", NULL), 100);
        printf("\nreports  with %s\n", json_str(r, "keyId", "the operator's key"));
}

static void print_command(const json_t *r)
{
        const char *name = json_str(r, "displayName", NULL);

        printf("%s %-10s %-8s %s by ", json_str(r, "createdAt", "?"), json_str(r, "state", "?"),
               json_str(r, "action", "?"), json_str(r, "id", "?"));
        print_line(stdout, name ? name : json_str(r, "by", "?"), 60);
        print_field(stdout, ": ", json_str(r, "content", NULL), 200);
        print_field(stdout, "; ", json_str(r, "error", NULL), 200);
        putchar('\n');
}

static int list_commands(struct args *a, struct client *c, struct error *err)
{
        char *path = resource_path(SESSIONS "/", a->operands[1], "/commands?limit=100");
        json_t *items = json_array(), *all;
        const json_t *item;
        int rc = resource_fetch(c, path, items, err);
        size_t i;

        if (rc == 0 && a->json) {
                all = json_pack("{s:O}", "items", items);
                print_json(all);
                json_decref(all);
        } else if (rc == 0) {
                json_array_foreach(items, i, item)
                        print_command(item);
                if (json_array_size(items) == 0)
                        puts("nobody has told it anything");
        }
        json_decref(items);
        free(path);
        return rc;
}

int sessions_command(struct args *a)
{
        static const struct resource_action actions[] = {
                { "list", .path = SESSIONS "?state=active&limit=100",
                  .none = "no session is active", .print = print_session },
                { "all", .path = SESSIONS "?limit=100", .none = "no session has reported yet",
                  .print = print_session },
                { "show", { "ID" }, .path = SESSIONS "/", .print = print_whole },
                { "commands", { "ID" }, list_commands },
                { 0 },
        };

        return resource_run(a, actions);
}

/* ---- steer ---- */

static void print_queued(const json_t *r)
{
        printf("%s waits for %s until %s\n", json_str(r, "id", "?"), json_str(r, "session", "?"),
               json_str(r, "expiresAt", "?"));
}

static int post(struct args *a, struct client *c, struct error *err)
{
        char *path = resource_path(SESSIONS "/", a->operands[0], "/commands");
        bool aborts = args_has(a, "abort");
        struct buf body;
        int rc;

        buf_init(&body, 0);
        jsonw_open(&body, '{');
        jsonw_str(&body, "action",
                  aborts                     ? "abort"
                  : args_has(a, "follow-up") ? "followUp"
                                             : "steer");
        if (!aborts)
                jsonw_str(&body, "content", a->operands[1]);
        jsonw_close(&body, '}');
        rc = resource_request(a, c, "POST", path, &body, print_queued, err);
        free(path);
        return rc;
}

int steer_command(struct args *a)
{
        bool aborts = args_has(a, "abort");

        if (aborts && args_has(a, "follow-up"))
                return command_usage_error(a->command,
                                           "--abort and --follow-up exclude each other");
        if (!args_operand(a, "ID") || (!aborts && !args_operand(a, "TEXT")))
                return CLI_USAGE;
        if (a->next < a->operand_count)
                return command_usage_error(
                        a->command, "unexpected operand '%s'; %s", a->operands[a->next],
                        aborts ? "an abort has no text" : "put the text into quotes");
        return client_command(a, post);
}
