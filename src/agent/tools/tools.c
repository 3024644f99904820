/*
 * tools: the table, and the tools of a turn.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/custom/custom.h"
#include "agent/tools/json_schema.h"
#include "agent/tools/tool.h"
#include "agent/tools/tools_private.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

#define RECEIVED_MAX 150 /* bytes of the arguments shown in an error */

const struct tool *const tools[] = {
        &attach_tool, &bash_tool,           &edit_tool,        &invoke_tool, &job_tool,
        &read_tool,   &search_history_tool, &tool_search_tool, &write_tool,  NULL,
};

const struct tool *tool_find(const char *name)
{
        for (size_t i = 0; tools[i]; i++)
                if (strcmp(tools[i]->name, name) == 0)
                        return tools[i];
        return NULL;
}

unsigned tool_flags(const struct tool *t, const struct tool_scope *scope, const json_t *arguments)
{
        return t->flags_of ? t->flags_of(scope, arguments) : t->flags;
}

/* ---- arguments ---- */

/* The schema with the label that every call has; yours. */
static json_t *schema_of(const struct tool *t)
{
        json_t *schema = json_loads(t->parameters, 0, NULL), *properties, *required;

        if (!json_is_object(schema)) {
                json_decref(schema);
                schema = json_object();
        }
        json_object_set_new(schema, "type", json_string("object"));
        properties = json_object_get(schema, "properties");
        if (!json_is_object(properties)) {
                properties = json_object();
                json_object_set_new(schema, "properties", properties);
        }
        json_object_set_new(properties, "label",
                            json_pack("{s:s, s:s, s:i}", "type", "string", "description",
                                      "What this call does, in a few words for the user",
                                      "maxLength", 500));
        required = json_object_get(schema, "required");
        if (!json_is_array(required)) {
                required = json_array();
                json_object_set_new(schema, "required", required);
        }
        json_array_insert_new(required, 0, json_string("label"));
        return schema;
}

int tool_check(const struct tool *t, const json_t *arguments, struct error *err)
{
        json_t *schema = schema_of(t);
        struct error why = { 0 };
        char *received;
        int rc;

        if (json_is_object(arguments))
                rc = json_schema_check(schema, arguments, &why);
        else
                rc = error_set(&why, ERR_INVALID, "they must be a JSON object");
        json_decref(schema);
        if (rc == 0)
                return 0;
        received = arguments ? json_dumps(arguments, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
        if (!received)
                received = mem_strdup("nothing");
        error_set(err, ERR_INVALID, "wrong arguments for '%s': %.300s. Received: %.*s%s", t->name,
                  why.text, (int)utf8_prefix(received, strlen(received), UTF8_BYTES, RECEIVED_MAX),
                  received, strlen(received) > RECEIVED_MAX ? "..." : "");
        free(received);
        return -1;
}

/* ---- the tools of a turn ---- */

struct tool_set {
        const struct tool **items; /* by name */
        size_t count;
        struct tool *platform, *schedule; /* some of the items */
};

static bool is_listed(const struct setting_list *only, const char *name)
{
        if (!only || !only->set)
                return true;
        for (size_t i = 0; i < only->count; i++)
                if (strcmp(only->items[i], name) == 0)
                        return true;
        return false;
}

static int by_name(const void *a, const void *b)
{
        return strcmp((*(const struct tool *const *)a)->name,
                      (*(const struct tool *const *)b)->name);
}

struct tool_set *tool_set_new(const struct tool_scope *scope, const struct setting_list *only)
{
        struct tool_set *set = mem_zalloc(sizeof(*set));
        size_t more, later;

        set->platform = platform_tools(scope, &more);
        set->schedule = schedule_tools(scope, &later);
        set->items = mem_array(COUNT(tools) + more + later, sizeof(*set->items));
        for (size_t i = 0; tools[i]; i++)
                if (is_listed(only, tools[i]->name) &&
                    (!tools[i]->offered || tools[i]->offered(scope)))
                        set->items[set->count++] = tools[i];
        for (size_t i = 0; i < more; i++)
                if (is_listed(only, set->platform[i].name))
                        set->items[set->count++] = &set->platform[i];
        for (size_t i = 0; i < later; i++)
                if (is_listed(only, set->schedule[i].name))
                        set->items[set->count++] = &set->schedule[i];
        qsort(set->items, set->count, sizeof(*set->items), by_name);
        return set;
}

void tool_set_free(struct tool_set *set)
{
        if (!set)
                return;
        free(set->items);
        free(set->platform);
        free(set->schedule);
        free(set);
}

const struct tool *tool_set_find(const struct tool_set *set, const char *name)
{
        for (size_t i = 0; i < set->count; i++)
                if (strcmp(set->items[i]->name, name) == 0)
                        return set->items[i];
        return NULL;
}

json_t *tool_set_describe(const struct tool_set *set)
{
        json_t *list = json_array();

        for (size_t i = 0; i < set->count; i++)
                json_array_append_new(list,
                                      json_pack("{s:s, s:s, s:o}", "name", set->items[i]->name,
                                                "description", set->items[i]->description,
                                                "parameters", schema_of(set->items[i])));
        return list;
}
