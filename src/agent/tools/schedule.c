/*
 * schedule: the schedule's tools, such as remind, each a tool of the turn's set.
 *
 * They act for the person who wrote last, in the chat of the turn; the schedule checks what they
 * may reach.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/tools/tools_private.h"
#include "base/mem.h"
#include "road/road.h"

static struct chat_caller caller_of(const struct tool_scope *scope)
{
        const struct turn_run *run = scope->run;
        const struct incoming *in =
                run->input_count > 0 ? run->inputs[run->input_count - 1] : &(struct incoming){ 0 };

        return (struct chat_caller){
                .adapter = run->adapter,
                .platform = in->platform,
                .channel = run->channel,
                .thread = run->thread,
                .chat = in->chat,
                .guild = in->guild,
                .sender_id = incoming_has_no_person(in) ? NULL : in->sender_id,
                .sender_name = in->sender_name ? in->sender_name : in->sender_username,
                .agent = run->agent,
                .trace = run->trace,
                .everywhere = scope->everywhere,
        };
}

static void schedule_start_call(struct tool_call *c)
{
        const struct road_schedule *s = road_get_schedule(c->scope->road);
        struct chat_caller by;
        json_t *arguments;
        char *key;

        if (!s) {
                tool_finish_text(c, true, "The schedule is not available now.");
                return;
        }
        by = caller_of(c->scope);
        arguments = json_copy((json_t *)(uintptr_t)c->arguments);
        json_object_del(arguments, "label");
        key = tool_request_key(c);
        s->call_tool(s->schedule, &by, c->tool->name,
                     &(struct tool_request){ .arguments = arguments, .request_key = key },
                     platform_call_answered, platform_call_new(c));
        json_decref(arguments);
        free(key);
}

/*
 * What is written for a later turn is read by a model that has not seen where it came from. The
 * other calls may be repeated: the request key makes them once.
 */
static unsigned flags_of(const struct tool_scope *scope, const json_t *arguments)
{
        (void)scope;
        return json_is_true(json_object_get(arguments, "wake")) ? TOOL_RISKY : TOOL_READ_ONLY;
}

struct tool *schedule_tools(const struct tool_scope *scope, size_t *count)
{
        const struct road_schedule *s = scope->road ? road_get_schedule(scope->road) : NULL;
        const struct road_tool *t;
        struct tool *list = NULL;

        *count = 0;
        for (size_t i = 0; s && (t = s->tool_at(s->schedule, i)); i++) {
                if (t->everywhere && !scope->everywhere)
                        continue;
                list = mem_realloc(list, (*count + 1) * sizeof(*list));
                list[(*count)++] = (struct tool){
                        .name = t->name,
                        .description = t->help,
                        .parameters = t->parameters,
                        .flags = t->writes ? TOOL_RISKY : TOOL_READ_ONLY,
                        .flags_of = t->writes ? NULL : flags_of,
                        .start = schedule_start_call,
                        .cancel = platform_call_cancel,
                };
        }
        return list;
}
