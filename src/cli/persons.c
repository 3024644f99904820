#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
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

static int list(struct args *a, struct client *c, struct error *err)
{
        return resource_list(a, c, PERSONS "?limit=100", "there are no persons yet", print_person,
                             err);
}

static int search(struct args *a, struct client *c, struct error *err)
{
        char *path = resource_path(PERSONS "?limit=100&search=", a->operands[1], "");
        int rc = resource_list(a, c, path, "no person matches", print_person, err);

        free(path);
        return rc;
}

static int show(struct args *a, struct client *c, struct error *err)
{
        char *path = resource_path(PERSONS "/", a->operands[1], "");
        int rc = resource_change(a, c, &(struct client_request){ .path = path }, print_person, err);

        free(path);
        return rc;
}

/* Posts the operands as members of these names. */
static int post(struct args *a, struct client *c, const char *path, const char *const names[2],
                struct error *err)
{
        json_t *body = json_object();
        struct client_request request = { .method = "POST", .path = path };
        char *text;
        int rc;

        for (size_t i = 0; i < 2 && names[i]; i++)
                json_object_set_new(body, names[i], json_string(a->operands[i + 1]));
        text = json_text(body);
        request.body = text;
        rc = resource_change(a, c, &request, print_person, err);
        json_decref(body);
        free(text);
        return rc;
}

static int link_identities(struct args *a, struct client *c, struct error *err)
{
        return post(a, c, PERSONS "/link", (const char *const[]){ "identityA", "identityB" }, err);
}

static int unlink_identity(struct args *a, struct client *c, struct error *err)
{
        return post(a, c, PERSONS "/unlink", (const char *const[]){ "identity", NULL }, err);
}

static int merge(struct args *a, struct client *c, struct error *err)
{
        return post(a, c, PERSONS "/merge",
                    (const char *const[]){ "sourcePersonId", "targetPersonId" }, err);
}

int persons_command(struct args *a)
{
        static const struct resource_action actions[] = {
                { "list", { NULL }, list },
                { "search", { "TEXT" }, search },
                { "show", { "ID" }, show },
                { "link", { "A", "B" }, link_identities },
                { "unlink", { "A" }, unlink_identity },
                { "merge", { "SOURCE", "TARGET" }, merge },
                { 0 },
        };

        return resource_run(a, actions);
}
