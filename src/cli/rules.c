#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/print.h"
#include "cli/resource.h"

#define RULES        "/api/v2/rules"
#define POSITION_MAX 1000000

static void print_rule(const json_t *item)
{
        const json_t *rule = json_object_get(item, "rule"), *when = json_object_get(rule, "when");
        bool in_force = json_flag(item, "inForce", false);
        char *conditions = json_is_object(when) ? json_text(when) : mem_strdup("{}");

        printf("%s%-6s ", print_style(stdout, in_force ? STYLE_PLAIN : STYLE_DIM),
               json_str(item, "source", "?"));
        print_line(stdout, json_str(item, "name", "?"), 60);
        printf(": %s", json_str(rule, "mode", "reply"));
        if (json_str(rule, "agent", NULL))
                printf(" by %s", json_str(rule, "agent", ""));
        printf(", when ");
        print_line(stdout, conditions, 200);
        if (!in_force)
                printf(" (not in force: %s)",
                       json_flag(item, "enabled", true) ? json_str(item, "why", "?") : "disabled");
        printf("%s\n", print_style(stdout, STYLE_PLAIN));
        free(conditions);
}

static void print_changed(const json_t *data)
{
        const char *status = json_str(data, "status", NULL);

        printf("rule '%s' is %s\n", json_str(data, "name", "?"),
               status                              ? status
               : json_flag(data, "inForce", false) ? "in force"
               : json_flag(data, "overridden", true)
                       ? "stored, but the file has a rule of this name"
                       : "disabled");
}

static int list(struct args *a, struct client *c, struct error *err)
{
        return resource_list(a, c, RULES, "there are no rules", print_rule, err);
}

static int show(struct args *a, struct client *c, struct error *err)
{
        char *path = resource_path(RULES "/", a->operands[1], "");
        json_t *json = NULL;
        int rc = client_get(c, path, &json, err);

        if (rc == 0)
                print_json(json_object_get(json, "data"));
        json_decref(json);
        free(path);
        return rc;
}

/* Changes the rule that the command names; takes over the body. */
static int change(const struct args *a, struct client *c, const char *method, json_t *body,
                  struct error *err)
{
        char *path = resource_path(RULES "/", a->operands[1], ""),
             *text = body ? json_text(body) : NULL;
        struct client_request request = { .method = method, .path = path, .body = text };
        int rc = resource_change(a, c, &request, print_changed, err);

        json_decref(body);
        free(path);
        free(text);
        return rc;
}

static int read_position(const struct args *a, long *position)
{
        return args_number(a, "position", -POSITION_MAX, POSITION_MAX, position);
}

static void add_position(const struct args *a, json_t *body)
{
        long position;

        if (args_has(a, "position") && read_position(a, &position) == 0)
                json_object_set_new(body, "position", json_integer(position));
}

static int set(struct args *a, struct client *c, struct error *err)
{
        char *text = args_file(a->operands[2], err);
        json_t *rule = text ? json_read(text, strlen(text), err) : NULL;
        json_t *body;

        free(text);
        if (!rule)
                return -1;
        body = json_pack("{s:o}", "rule", rule);
        add_position(a, body);
        return change(a, c, "PUT", body, err);
}

static int toggle(struct args *a, struct client *c, struct error *err)
{
        json_t *body = json_pack("{s:b}", "enabled", strcmp(a->operands[0], "on") == 0);

        add_position(a, body);
        return change(a, c, "PATCH", body, err);
}

static int remove_rule(struct args *a, struct client *c, struct error *err)
{
        return change(a, c, "DELETE", NULL, err);
}

int rules_command(struct args *a)
{
        static const struct resource_action actions[] = {
                { "list", { NULL }, list },
                { "show", { "NAME" }, show },
                { "set", { "NAME", "FILE" }, set },
                { "on", { "NAME" }, toggle },
                { "off", { "NAME" }, toggle },
                { "remove", { "NAME" }, remove_rule },
                { 0 },
        };
        long position;

        return read_position(a, &position) < 0 ? CLI_USAGE : resource_run(a, actions);
}
