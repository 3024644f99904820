/*
 * platform: the tools of the chat's platform, such as discord_react, each a tool of the turn's set.
 *
 * Unless the agent may reach everything its bot reaches, they work in the chat of the turn alone:
 * what the bot sees elsewhere is not for everybody here.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/tools/tool_output.h"
#include "agent/tools/tools_private.h"
#include "base/json.h"
#include "base/mem.h"
#include "road/road.h"

struct platform_call {
        struct tool_output output;
        bool waiting; /* for the platform */
        bool cancelled;
};

static const struct road_tool *find(const struct tool_scope *scope, const char *name)
{
        const struct road_tool *t;

        for (size_t i = 0; (t = road_tool_at(scope->road, scope->run->adapter, i)); i++)
                if (strcmp(t->name, name) == 0)
                        return t;
        return NULL;
}

/* One value a line, because long lines are cut; yours to free. */
static char *readable(const char *result)
{
        json_t *value = json_loads(result, JSON_DECODE_ANY, NULL);
        char *text = value ? json_dumps(value, JSON_INDENT(1) | JSON_ENCODE_ANY) : NULL;

        json_decref(value);
        return text ? text : mem_strdup(result);
}

struct platform_call *platform_call_new(struct tool_call *c)
{
        struct platform_call *p = mem_zalloc(sizeof(*p));

        p->waiting = true;
        tool_output_init(&p->output, c);
        return p;
}

void platform_call_answered(void *arg, const char *result, const struct error *err)
{
        struct platform_call *p = arg;
        struct tool_call *c = p->output.call;
        char *text;

        p->waiting = false;
        if (p->cancelled) {
                tool_output_free(&p->output);
        } else if (err && err->kind != ERR_NONE) {
                tool_output_cancel(c);
                tool_finish_text(c, true, "%s", err->text);
        } else {
                text = readable(result ? result : "\"done\"");
                tool_output_add(&p->output, text, strlen(text));
                tool_output_end(&p->output, false, NULL, NULL);
                free(text);
        }
}

/* ids are strings, but models like to write them as numbers */
static bool is_this_chat(const struct turn_run *run, const json_t *id)
{
        char *text = json_is_integer(id) ? mem_printf("%lld", (long long)json_integer_value(id))
                                         : mem_strdup(json_string_value(id));
        bool yes = text && (strcmp(text, run->channel) == 0 ||
                            (run->thread && strcmp(text, run->thread) == 0));

        free(text);
        return yes;
}

static void platform_start(struct tool_call *c)
{
        const struct tool_scope *scope = c->scope;
        const struct road_tool *t = find(scope, c->tool->name);
        json_t *arguments;
        char *key;

        if (!t) {
                tool_finish_text(c, true, "The chat's platform has no tool '%s' now.",
                                 c->tool->name);
                return;
        }
        if (t->channel && !scope->everywhere &&
            !is_this_chat(scope->run, json_object_get(c->arguments, t->channel))) {
                tool_finish_text(c, true, "'%s' reaches only this chat: %s must be \"%s\"%s%s%s.",
                                 t->name, t->channel, scope->run->channel,
                                 scope->run->thread ? " or its thread \"" : "",
                                 scope->run->thread ? scope->run->thread : "",
                                 scope->run->thread ? "\"" : "");
                return;
        }
        arguments = json_copy((json_t *)(uintptr_t)c->arguments);
        json_object_del(arguments, "label");
        key = tool_request_key(c);
        road_call_tool(scope->road, scope->run->adapter, t->name,
                       &(struct tool_request){ .arguments = arguments, .request_key = key },
                       platform_call_answered, platform_call_new(c));
        json_decref(arguments);
        free(key);
}

void platform_call_cancel(struct tool_call *c)
{
        struct platform_call *p = c->data;

        if (!p->waiting) {
                tool_output_cancel(c);
                return;
        }
        p->cancelled = true; /* its answer comes */
        p->output.call = c->data = NULL;
}

struct tool *platform_tools(const struct tool_scope *scope, size_t *count)
{
        const struct road_tool *t;
        struct tool *list = NULL;

        *count = 0;
        for (size_t i = 0; scope->road && (t = road_tool_at(scope->road, scope->run->adapter, i));
             i++) {
                if (t->everywhere && !scope->everywhere)
                        continue;
                list = mem_realloc(list, (*count + 1) * sizeof(*list));
                list[(*count)++] = (struct tool){
                        .name = t->name,
                        .description = t->help,
                        .parameters = t->parameters,
                        .flags = t->writes ? TOOL_RISKY : TOOL_READ_ONLY | TOOL_UNTRUSTED,
                        .start = platform_start,
                        .cancel = platform_call_cancel,
                };
        }
        return list;
}
