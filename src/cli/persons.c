#include <stdio.h>

#include "base/json.h"
#include "cli/print.h"
#include "cli/resource.h"

#define PERSONS "/api/v2/persons"

static void print_person(const json_t *p)
{
        const json_t *list = json_object_get(p, "identities"), *identity;
        size_t i;

        printf("%-8s %s", json_str(p, "id", "?"), print_style(stdout, STYLE_BOLD));
        print_line(stdout, json_str(p, "displayName", "?"), 60);
        printf("%s\n", print_style(stdout, STYLE_PLAIN));
        json_array_foreach(list, i, identity) {
                printf("         ");
                print_line(stdout, json_str(identity, "id", "?"), 100);
                print_field(stdout, " @", json_str(identity, "username", NULL), 60);
                printf(", last seen %s\n", json_str(identity, "lastSeenAt", "?"));
        }
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
