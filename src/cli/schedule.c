#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "cli/print.h"
#include "cli/resource.h"

#define SCHEDULES "/api/v2/schedules"

static void print_where(const json_t *r)
{
        const char *adapter = json_str(r, "instanceId", NULL);
        const char *person = json_str(r, "personId", NULL);

        if (adapter) {
                printf(" in %s/", adapter);
                print_line(stdout, json_str(r, "channel", "?"), 60);
        }
        if (person)
                printf(" for %s", person);
}

static void print_schedule(const json_t *r)
{
        const char *state = json_str(r, "state", "?"), *cron = json_str(r, "cron", NULL);
        bool active = strcmp(state, "active") == 0;

        printf("%-8s %s%-9s%s %-8s ", json_str(r, "id", "?"),
               print_style(stdout, active ? STYLE_BOLD : STYLE_PLAIN), state,
               print_style(stdout, STYLE_PLAIN), json_str(r, "source", "?"));
        printf("%s", json_str(r, "nextAt", json_str(r, "at", "-")));
        if (cron) {
                printf(" (");
                print_line(stdout, cron, 100);
                printf(" %s)", json_str(r, "timezone", "UTC"));
        }
        print_where(r);
        printf(": ");
        print_line(stdout, json_str(r, "name", "?"), 100);
        putchar('\n');
}

static void print_whole(const json_t *r)
{
        const json_t *runs = json_object_get(r, "nextRuns"), *at;
        size_t i;

        print_schedule(r);
        printf("does     %s", strcmp(json_str(r, "action", ""), "turn") == 0
                                      ? "gives an agent a turn"
                                      : "sends a message");
        printf("\nasked    %s", json_str(r, "createdAt", "?"));
        print_field(stdout, " by ", json_str(r, "createdBy", NULL), 100);
        printf("\nmissed   %s", json_str(r, "missed", "?"));
        if (json_int(r, "maxAgeSeconds", 0) > 0)
                printf(", at most %lld s late", (long long)json_int(r, "maxAgeSeconds", 0));
        printf("\nzone     %s\n", json_str(r, "timezone", "UTC"));
        json_array_foreach(runs, i, at)
                printf("%s%s\n", i == 0 ? "next     " : "         ", json_string_value(at));
        printf("text     ");
        print_line(stdout, json_str(r, "text", ""), 2000);
        putchar('\n');
}

static void print_tick(const json_t *r)
{
        const char *delivery = json_str(r, "deliveryId", NULL);
        const char *event = json_str(r, "eventId", NULL);

        printf("%-8s %-8s due %s", json_str(r, "id", "?"), json_str(r, "state", "?"),
               json_str(r, "dueAt", "?"));
        if (json_str(r, "startedAt", NULL))
                printf(", run %s", json_str(r, "startedAt", "?"));
        if (json_int(r, "runs", 1) > 1)
                printf(", for %lld times", (long long)json_int(r, "runs", 1));
        if (event || delivery)
                printf(", %s", event ? event : delivery);
        print_field(stdout, ": ", json_str(r, "note", NULL), 200);
        putchar('\n');
}

static void print_run(const json_t *data)
{
        printf("%s runs now as %s\n", json_str(data, "scheduleId", "?"), json_str(data, "id", "?"));
}

static int add(struct args *a, struct client *c, struct error *err)
{
        const char *to = args_value(a, "to"), *slash = to ? strchr(to, '/') : NULL;
        struct buf body;

        buf_init(&body, 0);
        jsonw_open(&body, '{');
        jsonw_str(&body, "when", a->operands[1]);
        jsonw_str(&body, "text", a->operands[2]);
        if (slash) {
                jsonw_strn(&body, "instanceId", to, (size_t)(slash - to));
                jsonw_str(&body, "to", slash + 1);
        }
        jsonw_opt(&body, "threadId", args_value(a, "thread"));
        jsonw_opt(&body, "personId", args_value(a, "person"));
        jsonw_opt(&body, "name", args_value(a, "name"));
        jsonw_opt(&body, "timezone", args_value(a, "timezone"));
        jsonw_opt(&body, "missed", args_value(a, "missed"));
        if (args_has(a, "turn") || args_value(a, "agent"))
                jsonw_str(&body, "action", "turn");
        jsonw_opt(&body, "agent", args_value(a, "agent"));
        jsonw_close(&body, '}');
        return resource_request(a, c, "POST", SCHEDULES, &body, print_schedule, err);
}

static int run_now(struct args *a, struct client *c, struct error *err)
{
        char *path = resource_path(SCHEDULES "/", a->operands[1], "/run");
        int rc = resource_request(a, c, "POST", path, NULL, print_run, err);

        free(path);
        return rc;
}

static int history(struct args *a, struct client *c, struct error *err)
{
        char *path = resource_path(SCHEDULES "/", a->operands[1], "/history?limit=100");
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
                        print_tick(item);
                if (json_array_size(items) == 0)
                        puts("it has not been due yet");
        }
        json_decref(items);
        free(path);
        return rc;
}

int schedule_command(struct args *a)
{
        static const struct resource_action actions[] = {
                { "list", .path = SCHEDULES "?state=active&limit=100",
                  .none = "nothing is scheduled", .print = print_schedule },
                { "all", .path = SCHEDULES "?limit=100", .none = "nothing was ever scheduled",
                  .print = print_schedule },
                { "next", .path = SCHEDULES "/next?limit=20", .none = "nothing is scheduled",
                  .print = print_schedule },
                { "add", { "WHEN", "TEXT" }, add },
                { "show", { "ID" }, .path = SCHEDULES "/", .print = print_whole },
                { "run", { "ID" }, run_now },
                { "cancel",
                  { "ID" },
                  .method = "DELETE",
                  .path = SCHEDULES "/",
                  .print = print_schedule },
                { "history", { "ID" }, history },
                { 0 },
        };
        const char *action = a->operand_count > 0 ? a->operands[0] : "list";
        const char *to = args_value(a, "to");
        bool adds = strcmp(action, "add") == 0;

        for (size_t i = 0; !adds && a->command->flags[i].name; i++)
                if (a->values[i])
                        return command_usage_error(a->command, "--%s belongs to add",
                                                   a->command->flags[i].name);
        if (adds && !to && !args_value(a, "person"))
                return command_usage_error(a->command,
                                           "say where: --to ADAPTER/CHANNEL or --person ID");
        if (to && !args_channel(a, to))
                return CLI_USAGE;
        return resource_run(a, actions);
}
