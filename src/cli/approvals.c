#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "cli/print.h"
#include "cli/resource.h"

#define APPROVALS "/api/v2/approvals"
#define RULES     "/api/v2/approval-rules"

static void print_head(const json_t *r)
{
        const char *state = json_str(r, "state", "?");
        bool open = strcmp(state, "open") == 0;

        printf("%-8s %s%-9s%s ", json_str(r, "id", "?"),
               print_style(stdout, open ? STYLE_BOLD : STYLE_PLAIN), state,
               print_style(stdout, STYLE_PLAIN));
        print_line(stdout, json_str(r, "agent", "?"), 40);
        printf(" on %s/", json_str(r, "instanceId", "?"));
        print_line(stdout, json_str(r, "channel", "?"), 60);
        printf(": ");
        print_line(stdout, json_str(r, "title", "?"), 100);
        print_field(stdout, ", by ", json_str(r, "by", NULL), 100);
        if (open)
                printf(", until %s", json_str(r, "expiresAt", "?"));
        putchar('\n');
}

static void print_approval(const json_t *r)
{
        print_head(r);
        printf("         %s", print_style(stdout, STYLE_DIM));
        print_line(stdout, json_str(r, "detail", ""), 200);
        printf("%s\n", print_style(stdout, STYLE_PLAIN));
}

/* Line by line, so that control characters of the command cannot steer the terminal. */
static void print_whole(const json_t *r)
{
        const char *line = json_str(r, "detail", "");
        char *subject = json_text(json_object_get(r, "subject"));

        print_head(r);
        printf("tool     %s\nturn     %s\nbecause  ", json_str(r, "tool", "?"),
               json_str(r, "turnId", "?"));
        print_line(stdout, json_str(r, "reason", "?"), 300);
        printf("\ndecides  %s\n\n", json_str(r, "approvers", "?"));
        while (*line) {
                size_t n = strcspn(line, "\n");
                char *text = strndup(line, n);

                printf("  ");
                print_line(stdout, text ? text : "", 2000);
                putchar('\n');
                free(text);
                line += n + (line[n] == '\n');
        }
        print_field(stdout, "\nnote     ", json_str(r, "note", NULL), 300);
        printf("\nbound to ");
        print_line(stdout, subject, 100000);
        putchar('\n');
        if (json_object_get(r, "rule") && !json_is_null(json_object_get(r, "rule"))) {
                char *rule = json_text(json_object_get(r, "rule"));

                printf("always   would write the rule ");
                print_line(stdout, rule, 300);
                putchar('\n');
                free(rule);
        }
        free(subject);
}

static void print_rule(const json_t *r)
{
        char *rule = json_text(json_object_get(r, "rule"));

        printf("%-8s ", json_str(r, "id", "?"));
        print_line(stdout, json_str(r, "agent", "?"), 40);
        printf(" on %s/", json_str(r, "instanceId", "?"));
        print_line(stdout, json_str(r, "channel", "?"), 60);
        printf(": ");
        print_line(stdout, rule, 300);
        print_field(stdout, ", by ", json_str(r, "by", NULL), 100);
        putchar('\n');
        free(rule);
}

static void print_removed(const json_t *data)
{
        printf("%s is %s\n", json_str(data, "id", "?"), json_str(data, "state", "?"));
}

static int decide(struct args *a, struct client *c, struct error *err)
{
        bool approves = strcmp(a->operands[0], "approve") == 0;
        char *path =
                resource_path(APPROVALS "/", a->operands[1], approves ? "/approve" : "/refuse");
        struct buf body;
        int rc;

        buf_init(&body, 0);
        jsonw_open(&body, '{');
        jsonw_opt(&body, "note", args_value(a, "note"));
        if (args_has(a, "always"))
                jsonw_bool(&body, "always", true);
        jsonw_close(&body, '}');
        rc = resource_request(a, c, "POST", path, &body, print_head, err);
        free(path);
        return rc;
}

int approvals_command(struct args *a)
{
        static const struct resource_action actions[] = {
                { "list", .path = APPROVALS "?state=open&limit=100", .none = "no approval is open",
                  .print = print_approval },
                { "history", .path = APPROVALS "?limit=100", .none = "there are no approvals",
                  .print = print_approval },
                { "show", { "ID" }, .path = APPROVALS "/", .print = print_whole },
                { "approve", { "ID" }, decide },
                { "refuse", { "ID" }, decide },
                { "rules", .path = RULES, .none = "there are no rules", .print = print_rule },
                { "forget",
                  { "RULE" },
                  .method = "DELETE",
                  .path = RULES "/",
                  .print = print_removed },
                { 0 },
        };
        const char *action = a->operand_count > 0 ? a->operands[0] : "list";
        bool decides = strcmp(action, "approve") == 0 || strcmp(action, "refuse") == 0;

        if (!decides && args_value(a, "note"))
                return command_usage_error(a->command, "--note belongs to approve and refuse");
        if (strcmp(action, "approve") != 0 && args_has(a, "always"))
                return command_usage_error(a->command, "--always belongs to approve");
        return resource_run(a, actions);
}
