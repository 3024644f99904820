#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/print.h"
#include "cli/resource.h"

#define PERSONS "/api/v2/persons"

/* "         Europe/Berlin, quiet 22:00-07:00, at most 5 a day, reached at tg/42" */
static void print_reach(const json_t *p)
{
        const json_t *cap = json_object_get(p, "dailyCap");
        const char *zone = json_str(p, "timezone", NULL), *quiet = json_str(p, "quietHours", NULL),
                   *at = json_str(p, "reachAt", NULL);
        const char *sep = "         ";

        if (!zone && !quiet && !at && !json_is_integer(cap))
                return;
        if (zone) {
                print_field(stdout, sep, zone, 64);
                sep = ", ";
        }
        if (quiet) {
                printf("%s", sep);
                print_field(stdout, "quiet ", quiet, 100);
                sep = ", ";
        }
        if (json_is_integer(cap)) {
                printf("%sat most %lld a day", sep, (long long)json_integer_value(cap));
                sep = ", ";
        }
        if (at) {
                printf("%s", sep);
                print_field(stdout, "reached at ", at, 100);
        }
        putchar('\n');
}

static void print_person(const json_t *p)
{
        const json_t *list = json_object_get(p, "identities"), *identity;
        size_t i;

        printf("%-8s %s", json_str(p, "id", "?"), print_style(stdout, STYLE_BOLD));
        print_line(stdout, json_str(p, "displayName", "?"), 60);
        printf("%s\n", print_style(stdout, STYLE_PLAIN));
        print_reach(p);
        json_array_foreach(list, i, identity) {
                printf("         ");
                print_line(stdout, json_str(identity, "id", "?"), 100);
                print_field(stdout, " @", json_str(identity, "username", NULL), 60);
                printf(", last seen %s\n", json_str(identity, "lastSeenAt", "?"));
        }
}

static int set(struct args *a, struct client *c, struct error *err)
{
        static const char *const options[][2] = { { "name", "displayName" },
                                                  { "timezone", "timezone" },
                                                  { "quiet-hours", "quietHours" },
                                                  { "reach-at", "reachAt" } };
        char *path;
        struct buf body;
        long cap = -1;
        int rc;

        if (args_has(a, "daily-cap") && args_number(a, "daily-cap", -1, 100000, &cap) < 0)
                return CLI_USAGE;
        buf_init(&body, 0);
        jsonw_open(&body, '{');
        for (size_t i = 0; i < COUNT(options); i++)
                jsonw_opt(&body, options[i][1], args_value(a, options[i][0]));
        if (args_has(a, "daily-cap"))
                jsonw_int(&body, "dailyCap", cap);
        jsonw_close(&body, '}');
        path = resource_path(PERSONS "/", a->operands[1], "");
        rc = resource_request(a, c, "PATCH", path, &body, print_person, err);
        free(path);
        return rc;
}

int persons_command(struct args *a)
{
        static const struct resource_action actions[] = {
                { "list", .path = PERSONS "?limit=100", .none = "there are no persons yet",
                  .print = print_person },
                { "search",
                  { "TEXT" },
                  .path = PERSONS "?limit=100&search=",
                  .none = "no person matches",
                  .print = print_person },
                { "show", { "ID" }, .path = PERSONS "/", .print = print_person },
                { "set", { "ID" }, .run = set },
                { "link",
                  { "A", "B" },
                  .method = "POST",
                  .path = PERSONS "/link",
                  .members = { "identityA", "identityB" },
                  .print = print_person },
                { "unlink",
                  { "A" },
                  .method = "POST",
                  .path = PERSONS "/unlink",
                  .members = { "identity" },
                  .print = print_person },
                { "merge",
                  { "SOURCE", "TARGET" },
                  .method = "POST",
                  .path = PERSONS "/merge",
                  .members = { "sourcePersonId", "targetPersonId" },
                  .print = print_person },
                { 0 },
        };

        return resource_run(a, actions);
}
