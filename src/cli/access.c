/* Who is let in: stored access rules, and strangers with a code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "cli/print.h"
#include "cli/resource.h"

#define ACCESS  "/api/v2/access/"
#define PAIRING "/api/v2/pairing"

static int ask(const struct args *a, struct client *c, const char *method, const char *path,
               struct buf *body, resource_print_fn *print, struct error *err)
{
        struct client_request request = { .method = method,
                                          .path = path,
                                          .body = body ? body->data : NULL };
        int rc = resource_change(a, c, &request, print, err);

        if (body)
                buf_release(body);
        return rc;
}

/* DELETE of prefix and the operand behind the action. */
static int withdraw(const struct args *a, struct client *c, const char *prefix,
                    resource_print_fn *print, struct error *err)
{
        char *path = resource_path(prefix, a->operands[1], "");
        int rc = ask(a, c, "DELETE", path, NULL, print, err);

        free(path);
        return rc;
}

/* ---- access rules ---- */

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
                printf(" (%s)", json_flag(r, "expired", false) ? "expired" : "switched off");
        if (json_str(r, "reason", NULL)) {
                printf(": ");
                print_line(stdout, json_str(r, "reason", ""), 200);
        }
        printf("%s\n", print_style(stdout, STYLE_PLAIN));
}

static void print_gone(const json_t *data)
{
        printf("%s is %s\n", json_str(data, "id", "?"),
               json_str(data, "status", json_str(data, "state", "?")));
}

static int list_rules(struct args *a, struct client *c, struct error *err)
{
        return resource_list(a, c, ACCESS "rules", "there are no stored access rules", print_rule,
                             err);
}

static int add_rule(struct args *a, struct client *c, struct error *err)
{
        const char *who = a->operands[1];
        struct buf body;

        buf_init(&body, 0);
        jsonw_open(&body, '{');
        jsonw_str(&body, "ruleType", a->operands[0]);
        jsonw_str(&body, strncmp(who, "per-", 4) == 0 ? "personId" : "platformUserId", who);
        jsonw_opt(&body, "instanceId", args_value(a, "adapter"));
        jsonw_opt(&body, "place", args_value(a, "place"));
        jsonw_opt(&body, "expiresAt", args_value(a, "until"));
        jsonw_opt(&body, "reason", args_value(a, "reason"));
        jsonw_opt(&body, "blockMessage", args_value(a, "message"));
        jsonw_close(&body, '}');
        return ask(a, c, "POST", ACCESS "rules", &body, print_rule, err);
}

static int remove_rule(struct args *a, struct client *c, struct error *err)
{
        return withdraw(a, c, ACCESS "rules/", print_gone, err);
}

static void print_verdict(const json_t *data)
{
        const json_t *rule = json_object_get(data, "rule");

        printf("%s", json_flag(data, "allowed", false) ? "would be let in" : "would not be let in");
        if (json_is_object(rule))
                printf(" by %s", json_str(rule, "id", "?"));
        if (json_str(data, "reason", NULL)) {
                printf(": ");
                print_line(stdout, json_str(data, "reason", ""), 300);
        }
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
        return ask(a, c, "POST", ACCESS "check", &body, print_verdict, err);
}

int access_command(struct args *a)
{
        static const struct resource_action actions[] = {
                { "list", { NULL }, list_rules },
                { "allow", { "WHO" }, add_rule },
                { "deny", { "WHO" }, add_rule },
                { "remove", { "ID" }, remove_rule },
                { "check", { "ADAPTER", "USER" }, check_user },
                { 0 },
        };

        return resource_run(a, actions);
}

/* ---- pairing ---- */

static void print_pairing(const json_t *r)
{
        const char *state = json_str(r, "state", "?");

        printf("%-8s %-8s ", json_str(r, "id", "?"), state);
        if (strcmp(state, "waiting") == 0)
                printf("%s%s%s ", print_style(stdout, STYLE_BOLD), json_str(r, "code", "?"),
                       print_style(stdout, STYLE_PLAIN));
        printf("%s ", json_str(r, "instanceId", "?"));
        print_line(stdout, json_str(r, "platformUserId", "?"), 60);
        if (json_str(r, "name", NULL)) {
                printf(" (");
                print_line(stdout, json_str(r, "name", ""), 60);
                putchar(')');
        }
        printf(" since %s", json_str(r, "createdAt", "?"));
        if (json_str(r, "by", NULL)) {
                printf(", by ");
                print_line(stdout, json_str(r, "by", ""), 60);
        }
        putchar('\n');
}

static int list_pairings(struct args *a, struct client *c, struct error *err)
{
        return resource_list(a, c, PAIRING "?limit=100",
                             "nobody waits with a code, and nobody was let in by one",
                             print_pairing, err);
}

static int decide(struct args *a, struct client *c, struct error *err)
{
        bool approves = strcmp(a->operands[0], "approve") == 0;
        struct buf body;

        buf_init(&body, 0);
        jsonw_open(&body, '{');
        jsonw_str(&body, "code", a->operands[1]);
        jsonw_opt(&body, "until", approves ? args_value(a, "until") : NULL);
        jsonw_close(&body, '}');
        return ask(a, c, "POST", approves ? PAIRING "/approve" : PAIRING "/deny", &body,
                   print_pairing, err);
}

static int revoke_pairing(struct args *a, struct client *c, struct error *err)
{
        return withdraw(a, c, PAIRING "/", print_gone, err);
}

int pairing_command(struct args *a)
{
        static const struct resource_action actions[] = {
                { "list", { NULL }, list_pairings },
                { "approve", { "CODE" }, decide },
                { "deny", { "CODE" }, decide },
                { "revoke", { "ID" }, revoke_pairing },
                { 0 },
        };

        return resource_run(a, actions);
}
