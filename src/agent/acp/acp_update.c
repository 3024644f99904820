/*
 * acp_update: session/update, what the agent reports while it works.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/acp/acp.h"
#include "base/json.h"
#include "base/mem.h"

#define OUTPUT_MAX ((size_t)64 << 10) /* of a tool, kept for events and details */

/* ---- text ---- */

/* A block of content as text. */
static void add_block(struct buf *out, const json_t *block)
{
        const char *type = json_str(block, "type", "");
        const json_t *resource = json_object_get(block, "resource");

        if (strcmp(type, "text") == 0)
                buf_addstr(out, json_str(block, "text", ""));
        else if (strcmp(type, "resource_link") == 0)
                buf_addf(out, "[%s](%s)", json_str(block, "name", "file"),
                         json_str(block, "uri", ""));
        else if (strcmp(type, "resource") == 0)
                buf_addstr(out, json_str(resource, "text", json_str(resource, "uri", "")));
        else
                buf_addf(out, "[%s]", *type ? type : "content");
}

/* An agent may say several messages in a turn; the text between them is a blank line. */
static void on_message(struct acp *a, const json_t *update)
{
        const char *id = json_str(update, "messageId", NULL);
        struct buf text;

        if (!a->prompt_id) /* some greet before they are asked anything */
                return;
        buf_init(&text, 0);
        if (id && a->message && strcmp(id, a->message) != 0)
                child_text_break(a->child);
        if (id) {
                free(a->message);
                a->message = mem_strdup(id);
        }
        add_block(&text, json_object_get(update, "content"));
        child_text(a->child, text.data, text.len);
        buf_release(&text);
}

static void on_thought(struct acp *a, const json_t *update)
{
        (void)update;
        child_progress(a->child, "thinking");
}

/* ---- plans ---- */

static void on_plan(struct acp *a, const json_t *update)
{
        const json_t *entries = json_object_get(update, "entries"), *e;
        const char *now = NULL;
        size_t i, done = 0;
        char *label;

        json_array_foreach(entries, i, e) {
                const char *status = json_str(e, "status", "");

                done += strcmp(status, "completed") == 0;
                if (!now && strcmp(status, "in_progress") == 0)
                        now = json_str(e, "content", "");
        }
        if (json_array_size(entries) == 0)
                return;
        label = mem_printf("plan: %zu of %zu done%s%s", done, json_array_size(entries),
                           now ? ", now: " : "", now ? now : "");
        child_progress(a->child, label);
        free(label);
}

/* ---- tool calls ---- */

static void add_output(struct buf *out, const json_t *content)
{
        const json_t *c;
        size_t i;

        json_array_foreach(content, i, c) {
                const char *type = json_str(c, "type", "");

                if (out->len > 0)
                        buf_addch(out, '\n');
                if (strcmp(type, "content") == 0)
                        add_block(out, json_object_get(c, "content"));
                else if (strcmp(type, "diff") == 0)
                        buf_addf(out, "changed %s", json_str(c, "path", "a file"));
        }
}

static void add_raw_output(struct buf *out, const json_t *raw)
{
        static const char *const members[] = { "output", "formatted_output", "stdout", "content" };
        char *text;

        if (json_is_string(raw)) {
                buf_addstr(out, json_string_value(raw));
                return;
        }
        for (size_t i = 0; i < COUNT(members); i++)
                if (json_str(raw, members[i], NULL)) {
                        buf_addstr(out, json_str(raw, members[i], ""));
                        return;
                }
        text = json_text(raw);
        buf_addstr(out, text);
        free(text);
}

static enum child_tool_state state_of(const json_t *call, bool runs)
{
        const char *status = json_str(call, "status", "");

        if (strcmp(status, "completed") == 0)
                return CHILD_TOOL_DONE;
        if (strcmp(status, "failed") == 0)
                return CHILD_TOOL_FAILED;
        return runs && strcmp(status, "in_progress") == 0 ? CHILD_TOOL_RUNS : CHILD_TOOL_ANNOUNCED;
}

void acp_update_tool(struct acp *a, const json_t *call, bool runs)
{
        const char *id = json_str(call, "toolCallId", NULL);
        const json_t *content = json_object_get(call, "content");
        const json_t *raw = json_object_get(call, "rawOutput");
        struct buf output;

        if (!id)
                return;
        buf_init(&output, OUTPUT_MAX);
        add_output(&output, content);
        if (output.len == 0 && raw && !json_is_null(raw))
                add_raw_output(&output, raw);
        child_tool(a->child, &(struct child_tool){
                                     .id = id,
                                     .state = state_of(call, runs),
                                     .name = json_str(call, "name", json_str(call, "kind", NULL)),
                                     .title = json_str(call, "title", NULL),
                                     .arguments = json_object_get(call, "rawInput"),
                                     .output = output.len ? output.data : NULL });
        buf_release(&output);
}

static void on_tool(struct acp *a, const json_t *update)
{
        acp_update_tool(a, update, true);
}

/* ---- the rest ---- */

static void on_usage(struct acp *a, const json_t *update)
{
        const json_t *cost = json_object_get(update, "cost");
        double amount = json_number_value(json_object_get(cost, "amount"));

        if (strcmp(json_str(cost, "currency", ""), "USD") != 0 || !(amount >= 0 && amount < 1e9))
                return;
        if (!a->costs && !a->resumed) /* what a resumed session has cost before is not ours */
                a->cost_before = 0;
        else if (!a->costs)
                a->cost_before = amount;
        a->costs = true;
        a->cost = amount;
}

static void on_compaction(struct acp *a, const json_t *update)
{
        (void)update;
        child_progress(a->child, "summarizing the conversation");
}

void acp_update(struct acp *a, const json_t *params)
{
        static const struct {
                const char *name;
                void (*read)(struct acp *a, const json_t *update);
        } kinds[] = {
                { "agent_message_chunk", on_message },
                { "agent_thought_chunk", on_thought },
                { "tool_call", on_tool },
                { "tool_call_update", on_tool },
                { "plan", on_plan },
                { "usage_update", on_usage },
                { "compaction_update", on_compaction },
        };
        const json_t *update = json_object_get(params, "update");
        const char *kind = json_str(update, "sessionUpdate", "");

        /* before the session is open, it replays what was said */
        if (a->phase != ACP_READY || strcmp(json_str(params, "sessionId", ""), a->session) != 0)
                return;
        for (size_t i = 0; i < COUNT(kinds); i++)
                if (strcmp(kinds[i].name, kind) == 0) {
                        kinds[i].read(a, update);
                        return;
                }
}
