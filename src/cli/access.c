#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/ask.h"
#include "cli/print.h"
#include "cli/resource.h"

#define ACCESS "/api/v2/access/"

static void print_rule(const json_t *r)
{
        bool holds = json_flag(r, "enabled", true) && !json_flag(r, "expired", false);

        printf("%s%-8s %-5s ", print_style(stdout, holds ? STYLE_PLAIN : STYLE_DIM),
               json_str(r, "id", "?"), json_str(r, "ruleType", "?"));
        print_line(stdout, json_str(r, "platformUserId", json_str(r, "personId", "?")), 80);
        printf(" on %s", json_str(r, "instanceId", "all adapters"));
        if (json_str(r, "place", NULL))
                printf(", %s only", json_str(r, "place", ""));
        if (json_str(r, "expiresAt", NULL))
                printf(", until %s", json_str(r, "expiresAt", ""));
        if (!holds)
                printf(" (%s)", json_flag(r, "expired", false) ? "expired" : "disabled");
        print_field(stdout, ": ", json_str(r, "reason", NULL), 200);
        printf("%s\n", print_style(stdout, STYLE_PLAIN));
}

static void print_removed(const json_t *data)
{
        printf("%s is %s\n", json_str(data, "id", "?"), json_str(data, "status", "?"));
}

/* 1: everyone is allowed, and that is confirmed; 0: the rule names someone; -1: refused. */
static int confirm_everyone(const struct args *a, const char *who, struct error *err)
{
        const char *colon = strrchr(who, ':'), *id = colon ? colon + 1 : who;
        char *question;
        bool yes;

        if (strcmp(a->operands[0], "allow") != 0 || strspn(id, "*") != strlen(id))
                return 0;
        if (args_has(a, "yes") || args_has(a, "force"))
                return 1;
        if (ask_possible(a)) {
                question = mem_printf("This lets everyone talk to %s. Continue? [y/N]",
                                      args_value(a, "adapter") ? args_value(a, "adapter")
                                                               : "all adapters");
                yes = ask_yes(question);
                free(question);
                if (yes)
                        return 1;
        }
        return error_set(err, ERR_REFUSED, "'%s' allows everyone; --yes confirms it", who);
}

static int put_rule(const struct args *a, struct client *c, const char *who, const char *until,
                    bool force, char **meant, struct error *err)
{
        struct buf body;

        buf_init(&body, 0);
        jsonw_open(&body, '{');
        jsonw_str(&body, "ruleType", a->operands[0]);
        jsonw_str(&body, strncmp(who, "per-", 4) == 0 ? "personId" : "platformUserId", who);
        jsonw_opt(&body, "instanceId", args_value(a, "adapter"));
        jsonw_opt(&body, "place", args_value(a, "place"));
        jsonw_opt(&body, "expiresAt", until[0] ? until : NULL);
        jsonw_opt(&body, "reason", args_value(a, "reason"));
        jsonw_opt(&body, "blockMessage", args_value(a, "message"));
        if (force)
                jsonw_bool(&body, "force", true);
        jsonw_close(&body, '}');
        return resource_request_named(a, c, ACCESS "rules", &body, print_rule, who, meant, err);
}

static int add_rule(struct args *a, struct client *c, struct error *err)
{
        int everyone = confirm_everyone(a, a->operands[1], err), rc;
        char until[CLOCK_ISO_SIZE], *who, *meant = NULL;

        if (everyone < 0)
                return -1;
        if (args_time(a, "until", ARGS_AHEAD, until) < 0)
                return CLI_USAGE;
        who = mem_strdup(a->operands[1]);
        while ((rc = put_rule(a, c, who, until, everyone || args_has(a, "force"), &meant, err)) ==
               1) {
                free(who);
                who = meant;
        }
        free(who);
        return rc;
}

static void print_verdict(const json_t *data)
{
        const json_t *rule = json_object_get(data, "rule");

        printf("%s", json_flag(data, "allowed", false) ? "allowed" : "refused");
        if (json_is_object(rule))
                printf(" by %s", json_str(rule, "id", "?"));
        print_field(stdout, ": ", json_str(data, "reason", NULL), 300);
        putchar('\n');
}

static int check_user(struct args *a, struct client *c, struct error *err)
{
        struct buf body;

        buf_init(&body, 0);
        jsonw_open(&body, '{');
        jsonw_str(&body, "instanceId", a->operands[1]);
        jsonw_str(&body, "platformUserId", a->operands[2]);
        jsonw_opt(&body, "chatType", args_value(a, "place"));
        jsonw_close(&body, '}');
        return resource_request(a, c, "POST", ACCESS "check", &body, print_verdict, err);
}

int access_command(struct args *a)
{
        static const struct resource_action actions[] = {
                { "list", .path = ACCESS "rules", .none = "there are no stored access rules",
                  .print = print_rule },
                { "allow", { "WHO" }, add_rule },
                { "deny", { "WHO" }, add_rule },
                { "remove",
                  { "ID" },
                  .method = "DELETE",
                  .path = ACCESS "rules/",
                  .print = print_removed },
                { "check", { "ADAPTER", "USER" }, check_user },
                { 0 },
        };

        return resource_run(a, actions);
}
