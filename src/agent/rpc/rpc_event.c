/*
 * rpc_event: what the program reports.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rpc/rpc.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

#define MICRO 1e6

/* ---- texts ---- */

/* The text blocks of a message's content; a plain string is content as well. Yours to free. */
static char *content_text(const json_t *content)
{
        struct buf text;
        json_t *block;
        size_t i;

        if (json_is_string(content))
                return mem_strdup(json_string_value(content));
        buf_init(&text, 0);
        json_array_foreach(content, i, block)
                if (strcmp(json_str(block, "type", ""), "text") == 0)
                        buf_addf(&text, "%s%s", text.len ? "\n" : "", json_str(block, "text", ""));
        return buf_take(&text);
}

static void add_notice(struct rpc *r, const char *text)
{
        struct buf *b = &r->run.notices;

        if (*text)
                buf_addf(b, "%s%s", b->len ? "\n" : "", text);
}

/* ---- tool calls ---- */

static void on_call_announced(struct rpc *r, const json_t *call)
{
        const char *id = json_str(call, "id", ""), *name = json_str(call, "name", "tool");
        json_t *arguments = json_object_get(call, "arguments");

        if (!*id || !json_is_object(arguments))
                return;
        child_tool(r->child, &(struct child_tool){ .id = id,
                                                   .state = CHILD_TOOL_ANNOUNCED,
                                                   .name = name,
                                                   .arguments = arguments });
}

static void on_tool_start(struct rpc *r, const json_t *m)
{
        const json_t *arguments = json_object_get(m, "args");

        r->run.used_tools = true;
        child_tool(r->child, &(struct child_tool){
                                     .id = json_str(m, "toolCallId", ""),
                                     .state = CHILD_TOOL_RUNS,
                                     .name = json_str(m, "toolName", NULL),
                                     .title = json_str(m, "intent", NULL),
                                     .arguments = json_is_object(arguments) ? arguments : NULL });
}

static void on_tool_end(struct rpc *r, const json_t *m)
{
        const json_t *result = json_object_get(m, "result");
        const json_t *job = json_object_get(json_object_get(result, "details"), "async");
        char *output = content_text(json_object_get(result, "content"));

        if (strcmp(json_str(job, "state", ""), "running") == 0)
                rpc_count_jobs(r, 1);
        child_tool(r->child,
                   &(struct child_tool){ .id = json_str(m, "toolCallId", ""),
                                         .state = json_flag(m, "isError", false) ? CHILD_TOOL_FAILED
                                                                                 : CHILD_TOOL_DONE,
                                         .name = json_str(m, "toolName", NULL),
                                         .output = output });
        free(output);
}

/* ---- messages ---- */

static void on_update(struct rpc *r, const json_t *m)
{
        const json_t *event = json_object_get(m, "assistantMessageEvent");
        const char *type = json_str(event, "type", "");
        const json_t *delta = json_object_get(event, "delta");

        if (strcmp(type, "text_delta") == 0 && json_is_string(delta)) {
                r->run.spoke = true;
                if (rpc_has_turn(r))
                        child_text(r->child, json_string_value(delta), json_string_length(delta));
        } else if (strcmp(type, "thinking_start") == 0) {
                child_progress(r->child, "thinking");
        } else if (strcmp(type, "toolcall_end") == 0) {
                on_call_announced(r, json_object_get(event, "toolCall"));
        }
}

static int64_t tokens(const json_t *usage, const char *key)
{
        int64_t n = json_int(usage, key, 0);

        return n > 0 && n < INT32_MAX ? n : 0;
}

static void add_usage(struct rpc *r, const json_t *usage)
{
        double cost = json_number_value(json_object_get(json_object_get(usage, "cost"), "total"));
        int64_t cached = tokens(usage, "cacheRead");
        struct child_usage *u = &r->run.usage;

        u->tokens_in += tokens(usage, "input") + cached + tokens(usage, "cacheWrite");
        u->tokens_cached += cached;
        u->tokens_out += tokens(usage, "output");
        if (cost > 0 && cost < 1e6)
                u->cost_microusd += (int64_t)(cost * MICRO + 0.5);
        child_set_usage(r->child, u);
}

/* A run without a turn is told by its last message. */
static void keep_late(struct rpc *r, const char *text)
{
        if (!text || !*text)
                return;
        buf_clear(&r->late.text);
        buf_add(&r->late.text, text, utf8_prefix(text, strlen(text), UTF8_BYTES, r->late.text.max));
}

/* The message as a whole decides, whatever its pieces were. */
static void on_answer(struct rpc *r, const json_t *message)
{
        const char *stop = json_str(message, "stopReason", "");
        bool failed = strcmp(stop, "error") == 0;
        char *text = failed ? NULL : content_text(json_object_get(message, "content"));

        add_usage(r, json_object_get(message, "usage"));
        free(r->run.error);
        r->run.error =
                failed ? mem_strdup(json_str(message, "errorMessage", "its model gave no reason"))
                       : NULL;
        r->run.aborted = strcmp(stop, "aborted") == 0;
        r->run.cut = strcmp(stop, "length") == 0;
        if (text && *text)
                r->run.spoke = true;
        if (rpc_has_turn(r))
                child_message(r->child, text, text ? strlen(text) : 0);
        else
                keep_late(r, text);
        free(text);
}

static void on_message(struct rpc *r, const json_t *m)
{
        const json_t *message = json_object_get(m, "message");
        const char *role = json_str(message, "role", "");
        const json_t *jobs = json_object_get(json_object_get(message, "details"), "jobs");

        if (strcmp(role, "assistant") == 0)
                on_answer(r, message);
        else if (strcmp(json_str(message, "customType", ""), "async-result") == 0)
                rpc_count_jobs(r, -(int)json_array_size(jobs));
}

/* ---- runs ---- */

static void on_start(struct rpc *r, const json_t *m)
{
        (void)m;
        rpc_began(r);
}

static void on_end(struct rpc *r, const json_t *m)
{
        if (!r->dialect->settles) {
                if (json_flag(m, "isTerminal", true) && !json_flag(m, "willContinue", false))
                        rpc_run_ended(r, true);
        } else if (!r->knows_settled && !json_flag(m, "willRetry", false)) {
                rpc_run_ended(r, false);
        }
}

static void on_settled(struct rpc *r, const json_t *m)
{
        r->knows_settled = true;
        if (json_flag(m, "aborted", false)) {
                r->run.aborted = true;
                free(r->run.error);
                r->run.error = NULL;
        }
        rpc_run_ended(r, true);
}

static void on_prompt_result(struct rpc *r, const json_t *m)
{
        bool failed = strcmp(json_str(m, "status", ""), "error") == 0;

        if (failed || !json_flag(m, "agentInvoked", true))
                rpc_prompt_ended(r, strtoull(json_str(m, "id", "0"), NULL, 10),
                                 failed ? json_str(m, "error", "it gave no reason") : NULL);
}

static void on_retry(struct rpc *r, const json_t *m)
{
        const char *why = json_str(m, "errorMessage", "");
        char *label = mem_printf("retrying %lld of %lld%s%s", (long long)json_int(m, "attempt", 1),
                                 (long long)json_int(m, "maxAttempts", 1), *why ? ": " : "", why);

        child_progress(r->child, label);
        free(label);
}

static void on_compaction(struct rpc *r, const json_t *m)
{
        (void)m;
        child_progress(r->child, "summarising the conversation");
}

/* ---- what else it says ---- */

static void on_response(struct rpc *r, const json_t *m)
{
        rpc_answered(r, m);
}

static void on_ready(struct rpc *r, const json_t *m)
{
        rpc_greeted(r, m);
}

static void on_command_output(struct rpc *r, const json_t *m)
{
        add_notice(r, json_str(m, "text", ""));
}

void rpc_notify(struct rpc *r, const char *text)
{
        add_notice(r, text);
        child_progress(r->child, text);
}

static void on_notice(struct rpc *r, const json_t *m)
{
        const char *text = json_str(m, "message", "");

        if (strcmp(json_str(m, "level", ""), "error") == 0)
                log_warn("agent reports a problem", LOG_S("agent", child_agent(r->child)->name),
                         LOG_S("what", text));
        child_progress(r->child, text);
}

static void on_extension_error(struct rpc *r, const json_t *m)
{
        log_warn("extension of an agent failed", LOG_S("agent", child_agent(r->child)->name),
                 LOG_S("extension", json_str(m, "extensionPath", "")),
                 LOG_S("event", json_str(m, "event", "")), LOG_S("why", json_str(m, "error", "")));
}

static void on_ui(struct rpc *r, const json_t *m)
{
        rpc_ui_request(r, m);
}

static const struct {
        const char *type;
        void (*fn)(struct rpc *r, const json_t *m);
} events[] = {
        { "response", on_response },
        { "message_update", on_update },
        { "message_end", on_message },
        { "tool_execution_start", on_tool_start },
        { "tool_execution_end", on_tool_end },
        { "agent_start", on_start },
        { "agent_end", on_end },
        { "agent_settled", on_settled },       /* pi */
        { "prompt_result", on_prompt_result }, /* omp */
        { "extension_ui_request", on_ui },
        { "auto_retry_start", on_retry },
        { "compaction_start", on_compaction },      /* pi */
        { "auto_compaction_start", on_compaction }, /* omp */
        { "command_output", on_command_output },    /* omp */
        { "notice", on_notice },                    /* omp */
        { "extension_error", on_extension_error },
        { "ready", on_ready }, /* omp */
};

void rpc_received(struct child *c, json_t *message)
{
        const char *type = json_str(message, "type", "");

        for (size_t i = 0; i < COUNT(events); i++)
                if (strcmp(events[i].type, type) == 0) {
                        events[i].fn(rpc_of(c), message);
                        return;
                }
}
