#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "cli/print.h"
#include "cli/resource.h"

#define PAIRING "/api/v2/pairing"

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
        print_field(stdout, ", by ", json_str(r, "by", NULL), 60);
        putchar('\n');
}

static void print_revoked(const json_t *data)
{
        printf("%s is %s\n", json_str(data, "id", "?"), json_str(data, "state", "?"));
}

static int decide(struct args *a, struct client *c, struct error *err)
{
        bool approves = strcmp(a->operands[0], "approve") == 0;
        char until[CLOCK_ISO_SIZE];
        struct buf body;

        if (args_time(a, "until", ARGS_AHEAD, until) < 0)
                return CLI_USAGE;
        buf_init(&body, 0);
        jsonw_open(&body, '{');
        jsonw_str(&body, "code", a->operands[1]);
        jsonw_opt(&body, "until", approves && until[0] ? until : NULL);
        jsonw_close(&body, '}');
        return resource_request(a, c, "POST", approves ? PAIRING "/approve" : PAIRING "/deny",
                                &body, print_pairing, err);
}

int pairing_command(struct args *a)
{
        static const struct resource_action actions[] = {
                { "list", .path = PAIRING "?limit=100", .none = "there are no pairings",
                  .print = print_pairing },
                { "approve", { "CODE" }, decide },
                { "deny", { "CODE" }, decide },
                { "revoke",
                  { "ID" },
                  .method = "DELETE",
                  .path = PAIRING "/",
                  .print = print_revoked },
                { 0 },
        };

        return resource_run(a, actions);
}
