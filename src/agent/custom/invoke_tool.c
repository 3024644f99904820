/*
 * invoke_tool and tool_search: the two doors to custom tools. The list of tools the model is given
 * stays the same when custom tools come and go, so that services keep it cached.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/custom/custom.h"
#include "base/json.h"
#include "base/mem.h"

#define FOUND_MOST 8

static bool has_custom(const struct tool_scope *scope)
{
        return scope->custom && custom_count(scope->custom) > 0;
}

static void on_progress(void *arg, const char *text)
{
        struct tool_call *c = arg;

        if (c->on_output)
                c->on_output(c, text, strlen(text));
}

static void on_done(void *arg, struct tool_result *r)
{
        struct tool_call *c = arg;

        c->data = NULL;
        tool_finish(c, r);
}

static void invoke(struct tool_call *c)
{
        static const struct custom_handlers h = { on_progress, on_done };
        struct custom_request q = {
                .key = json_str(c->arguments, "tool", ""),
                .args = json_object_get(c->arguments, "args"),
                .id = c->id,
                .view = c->scope->view,
        };

        if (!c->scope->custom)
                tool_finish_text(c, true, "This agent has no custom tools.");
        else
                c->data = custom_call_start(c->scope->custom, &q, &h, c);
}

static void cancel_invoke(struct tool_call *c)
{
        custom_call_cancel(c->data);
        c->data = NULL;
}

/* What is known of the tool that is called; a tool that does not exist does nothing. */
static unsigned flags_of(const struct tool_scope *scope, const json_t *arguments)
{
        const struct custom_tool *t =
                scope->custom ? custom_find(scope->custom, json_str(arguments, "tool", "")) : NULL;

        return t ? t->flags : TOOL_READ_ONLY;
}

const struct tool invoke_tool = {
        .name = "invoke_tool",
        .description = "Calls a custom tool, which runs outside the sandbox. The system prompt "
                       "lists these tools.",
        .parameters = "{\"type\":\"object\",\"properties\":{"
                      "\"tool\":{\"type\":\"string\",\"description\":\"Name of the tool\"},"
                      "\"args\":{\"type\":\"object\",\"description\":\"Its parameters\"}},"
                      "\"required\":[\"tool\"]}",
        .flags = TOOL_UNTRUSTED,
        .flags_of = flags_of,
        .offered = has_custom,
        .start = invoke,
        .cancel = cancel_invoke,
};

static void search(struct tool_call *c)
{
        struct buf out;

        if (!c->scope->custom) {
                tool_finish_text(c, true, "This agent has no custom tools.");
                return;
        }
        buf_init(&out, 0);
        custom_search(c->scope->custom, json_str(c->arguments, "query", ""), FOUND_MOST, &out);
        tool_finish_text(c, false, "%s", out.data);
        buf_release(&out);
}

static void cancel_search(struct tool_call *c)
{
        (void)c; /* ends before start returns */
}

const struct tool tool_search_tool = {
        .name = "tool_search",
        .description = "Finds custom tools by name or by words of their description, and shows "
                       "their parameters.",
        .parameters = "{\"type\":\"object\",\"properties\":{"
                      "\"query\":{\"type\":\"string\",\"minLength\":1,"
                      "\"description\":\"Names or words\"}},\"required\":[\"query\"]}",
        .flags = TOOL_READ_ONLY | TOOL_UNTRUSTED,
        .offered = has_custom,
        .start = search,
        .cancel = cancel_search,
};
