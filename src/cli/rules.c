#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
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
        if (!in_force) {
                print_field(stdout, " (not in force: ",
                            json_flag(item, "enabled", true) ? json_str(item, "why", "?")
                                                             : "disabled",
                            0);
                putchar(')');
        }
        printf("%s\n", print_style(stdout, STYLE_PLAIN));
        free(conditions);
}

static void print_changed(const json_t *data)
{
        const char *status = json_str(data, "status", NULL);

        print_quoted(stdout, "rule ", json_str(data, "name", "?"));
        printf(" is %s\n", status                              ? status
                           : json_flag(data, "inForce", false) ? "in force"
                           : json_flag(data, "overridden", true)
                                   ? "stored, but the file has a rule of this name"
                                   : "disabled");
}

static int read_position(const struct args *a, long *position)
{
        return args_number(a, "position", -POSITION_MAX, POSITION_MAX, position);
}

/* Takes over the value. */
static int change(const struct args *a, struct client *c, const char *method, const char *key,
                  json_t *value, struct error *err)
{
        char *path = resource_path(RULES "/", a->operands[1], ""), *text = json_text(value);
        struct buf body;
        long position;
        int rc;

        buf_init(&body, 0);
        jsonw_open(&body, '{');
        jsonw_raw(&body, key, text);
        if (args_has(a, "position") && read_position(a, &position) == 0)
                jsonw_int(&body, "position", position);
        jsonw_close(&body, '}');
        rc = resource_request(a, c, method, path, &body, print_changed, err);
        json_decref(value);
        free(text);
        free(path);
        return rc;
}

static int set(struct args *a, struct client *c, struct error *err)
{
        char *text = args_file(a->operands[2], err);
        json_t *rule = text ? json_read(text, strlen(text), err) : NULL;

        free(text);
        return rule ? change(a, c, "PUT", "rule", rule, err) : -1;
}

static int toggle(struct args *a, struct client *c, struct error *err)
{
        bool on = strcmp(a->operands[0], "on") == 0;

        return change(a, c, "PATCH", "enabled", json_boolean(on), err);
}

int rules_command(struct args *a)
{
        static const struct resource_action actions[] = {
                { "list", .path = RULES, .none = "there are no rules", .print = print_rule },
                { "show", { "NAME" }, .path = RULES "/", .print = print_json },
                { "set", { "NAME", "FILE" }, set },
                { "on", { "NAME" }, toggle },
                { "off", { "NAME" }, toggle },
                { "remove",
                  { "NAME" },
                  .method = "DELETE",
                  .path = RULES "/",
                  .print = print_changed },
                { 0 },
        };
        long position;

        return read_position(a, &position) < 0 ? CLI_USAGE : resource_run(a, actions);
}
