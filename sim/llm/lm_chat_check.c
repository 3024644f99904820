/*
 * Refuses what OpenAI's Chat Completions refuse, in their words, and reads the rest into the
 * prompt.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "sim/llm/lm_openai.h"

#define MAX_CALL_ID   40
#define MAX_CACHE_KEY 64

static int check_limits(struct call *c)
{
        const struct lm_model *m = c->prompt.model;
        bool old = json_object_get(c->body, "max_tokens") != NULL;
        const char *key = old ? "max_tokens" : "max_completion_tokens";
        int64_t n = json_int(c->body, key, 0);

        if (old && !(m->can & LM_MAX_TOKENS))
                return lm_call_refuse_at(c, "unsupported_parameter", "max_tokens", "max_tokens",
                                         "Unsupported parameter: 'max_tokens' is not supported "
                                         "with this model. Use 'max_completion_tokens' instead.");
        if (n > m->output)
                return lm_call_refuse_at(c, "invalid_value", key, "max_tokens",
                                         "max_tokens is too large: %lld. This model supports at "
                                         "most %lld completion tokens, whereas you provided %lld.",
                                         (long long)n, (long long)m->output, (long long)n);
        if (json_object_get(c->body, key) && n < 1)
                return lm_call_refuse_at(c, "integer_below_min_value", key, "max_tokens",
                                         "Invalid '%s': integer below minimum value. Expected a "
                                         "value >= 1, but got %lld instead.",
                                         key, (long long)n);
        c->prompt.max_tokens = n;
        if (json_object_get(c->body, "reasoning_effort") && !(m->can & LM_REASONS))
                return lm_call_refuse_at(c, "unsupported_parameter", "reasoning_effort", "thinking",
                                         "Unsupported parameter: 'reasoning_effort' is not "
                                         "supported with this model.");
        if (json_object_get(c->body, "stream_options") && !json_flag(c->body, "stream", false))
                return lm_call_refuse_at(c, NULL, "stream_options", "stream_options",
                                         "The 'stream_options' parameter is only allowed when "
                                         "'stream' is enabled.");
        return lm_openai_check_length(c, json_str(c->body, "prompt_cache_key", ""), MAX_CACHE_KEY,
                                      "prompt_cache_key");
}

static int check_tools(struct call *c)
{
        const json_t *tools = json_object_get(c->body, "tools"), *tool;
        const json_t *choice = json_object_get(c->body, "tool_choice");
        size_t i;

        if (choice && json_array_size(tools) == 0)
                return lm_call_refuse_at(c, NULL, "tool_choice", "tool_choice",
                                         "Invalid value for 'tool_choice': 'tool_choice' is only "
                                         "allowed when 'tools' are specified.");
        json_array_foreach(tools, i, tool) {
                const json_t *f = json_object_get(tool, "function");
                const char *name = json_str(f, "name", "");
                char where[48];

                snprintf(where, sizeof(where), "tools[%zu].function.name", i);
                if (!lm_prompt_is(tool, "type", "function") || !f)
                        return lm_call_refuse_at(c, "missing_required_parameter", where, "tools",
                                                 "Missing required parameter: 'tools[%zu].%s'.", i,
                                                 f ? "type" : "function");
                if (lm_openai_check_name(c, name, where) != 0)
                        return -1;
                snprintf(where, sizeof(where), "tools[%zu].function.parameters", i);
                if (lm_openai_check_schema(c, name, json_object_get(f, "parameters"), where) != 0)
                        return -1;
                lm_blocks_add(&c->prompt.blocks, "tools", tool);
                lm_prompt_add_tool(&c->prompt, name, json_object_get(f, "parameters"));
        }
        lm_openai_read_choice(c);
        return 0;
}

static int refuse_role(struct call *c, size_t at, const char *role)
{
        char param[48];

        snprintf(param, sizeof(param), "messages[%zu].role", at);
        return lm_call_refuse_at(c, "invalid_value", param, "role",
                                 "Invalid value: '%.40s'. Supported values are: 'system', "
                                 "'assistant', 'user', 'function', 'tool', and 'developer'.",
                                 role);
}

static int check_call(struct call *c, const json_t *call, size_t at, size_t k)
{
        const json_t *f = json_object_get(call, "function");
        const char *arguments = json_str(f, "arguments", NULL);
        char where[120];
        json_t *parsed;

        snprintf(where, sizeof(where), "messages[%zu].tool_calls[%zu].id", at, k);
        if (!*json_str(call, "id", ""))
                return lm_call_refuse_at(c, "missing_required_parameter", where, "call_id",
                                         "Missing required parameter: '%s'.", where);
        if (lm_openai_check_length(c, json_str(call, "id", ""), MAX_CALL_ID, where) != 0)
                return -1;
        snprintf(where, sizeof(where), "messages[%zu].tool_calls[%zu].function.name", at, k);
        if (lm_openai_check_name(c, json_str(f, "name", ""), where) != 0)
                return -1;
        snprintf(where, sizeof(where), "messages[%zu].tool_calls[%zu].function.arguments", at, k);
        if (!arguments)
                return lm_call_refuse_at(c, "missing_required_parameter", where, "call_input",
                                         "Missing required parameter: '%s'.", where);
        parsed = c->world->base.strict ? json_read(arguments, strlen(arguments), NULL) : NULL;
        if (c->world->base.strict && !json_is_object(parsed)) {
                json_decref(parsed); /* services behind proxies refuse it */
                return lm_call_refuse_at(c, "invalid_value", where, "call_input",
                                         "Invalid '%s': expected a JSON object.", where);
        }
        json_decref(parsed);
        return 0;
}

/* The tool messages right after the assistant message must answer all its calls. */
static int check_answered(struct call *c, const json_t *messages, size_t at)
{
        const json_t *calls = json_object_get(json_array_get(messages, at), "tool_calls"), *call;
        char param[48];
        struct buf open;
        size_t i;

        buf_init(&open, 400);
        json_array_foreach(calls, i, call) {
                const char *id = json_str(call, "id", "");
                size_t k = at + 1;

                while (lm_prompt_is(json_array_get(messages, k), "role", "tool") &&
                       !lm_prompt_is(json_array_get(messages, k), "tool_call_id", id))
                        k++;
                if (!lm_prompt_is(json_array_get(messages, k), "role", "tool"))
                        buf_addf(&open, "%s%s", open.len ? ", " : "", id);
        }
        snprintf(param, sizeof(param), "messages.[%zu].role", at + 1);
        if (open.len > 0)
                lm_call_refuse_at(c, NULL, param, "call_without_result",
                                  "An assistant message with 'tool_calls' must be followed by tool "
                                  "messages responding to each 'tool_call_id'. The following "
                                  "tool_call_ids did not have response messages: %s",
                                  open.data);
        buf_release(&open);
        return c->status == 200 ? 0 : -1;
}

static int check_assistant(struct call *c, const json_t *messages, size_t at)
{
        const json_t *m = json_array_get(messages, at), *calls = json_object_get(m, "tool_calls");
        const json_t *content = json_object_get(m, "content"), *call;
        char param[64];
        size_t i;

        snprintf(param, sizeof(param), "messages.[%zu].content", at);
        if (!json_is_string(content) && !json_is_array(content) && !calls)
                return lm_call_refuse_at(c, NULL, param, "content",
                                         "Invalid value for 'content': expected a string, got "
                                         "null.");
        snprintf(param, sizeof(param), "messages[%zu].tool_calls", at);
        if (calls && json_array_size(calls) == 0)
                return lm_call_refuse_at(c, "empty_array", param, "content",
                                         "Invalid '%s': empty array. Expected an array with "
                                         "minimum length 1, but got an empty array instead.",
                                         param);
        json_array_foreach(calls, i, call) {
                if (check_call(c, call, at, i) != 0)
                        return -1;
        }
        return check_answered(c, messages, at);
}

/* As DeepSeek: while it thinks, it wants to see what it thought before. */
static int check_thought(struct call *c, const json_t *m)
{
        if (!c->prompt.thinks || json_is_string(json_object_get(m, "reasoning_content")))
                return 0;
        return lm_call_refuse_at(c, "invalid_request_error", NULL, "thinking_missing",
                                 "The `reasoning_content` in the thinking mode must be passed back "
                                 "to the API.");
}

/* A tool message answers a call of the assistant message before it and its neighbours. */
static int check_tool_message(struct call *c, const json_t *messages, size_t at)
{
        const char *id = json_str(json_array_get(messages, at), "tool_call_id", NULL);
        const json_t *call;
        char param[64];
        size_t k = at, i;

        snprintf(param, sizeof(param), "messages[%zu].tool_call_id", at);
        if (!id)
                return lm_call_refuse_at(c, "missing_required_parameter", param, "call_id",
                                         "Missing required parameter: '%s'.", param);
        snprintf(param, sizeof(param), "messages.[%zu].role", at);
        while (k > 0 && lm_prompt_is(json_array_get(messages, k - 1), "role", "tool")) {
                if (lm_prompt_is(json_array_get(messages, --k), "tool_call_id", id))
                        return lm_call_refuse_at(c, NULL, param, "result_twice",
                                                 "Duplicate value for 'tool_call_id' of '%s' in "
                                                 "messages.",
                                                 id);
        }
        json_array_foreach(json_object_get(json_array_get(messages, k ? k - 1 : at), "tool_calls"),
                           i, call) {
                if (lm_prompt_is(call, "id", id))
                        return 0;
        }
        return lm_call_refuse_at(c, NULL, param, "result_without_call",
                                 "messages with role 'tool' must be a response to a preceeding "
                                 "message with 'tool_calls'.");
}

static int check_parts(struct call *c, const json_t *m, size_t at)
{
        static const char *const types[] = { "text", "image_url", "input_audio", "file",
                                             "refusal" };
        const json_t *content = json_object_get(m, "content"), *part;
        bool user = lm_prompt_is(m, "role", "user");
        size_t i;

        if (!content && !lm_prompt_is(m, "role", "assistant"))
                return lm_call_refuse_at(c, "missing_required_parameter", "messages", "content",
                                         "Missing required parameter: 'messages[%zu].content'.",
                                         at);
        json_array_foreach(content, i, part) {
                const char *type = json_str(part, "type", "");
                size_t k = 0;

                while (k < COUNT(types) && strcmp(types[k], type) != 0)
                        k++;
                /* only people send pictures */
                if (k == COUNT(types) || (!user && k >= 1 && k <= 3))
                        return lm_call_refuse_at(
                                c, "invalid_value", "messages", "block",
                                "Invalid value: '%.40s'. Supported values are: %s.", type,
                                user ? "'text', 'image_url', 'input_audio', 'refusal', and 'file'"
                                     : "'text'");
        }
        return 0;
}

static int check_message(struct call *c, const json_t *messages, size_t at)
{
        static const char *const known[] = { "role",          "content",
                                             "name",          "tool_calls",
                                             "tool_call_id",  "refusal",
                                             "audio",         "reasoning_content",
                                             "reasoning",     "reasoning_details",
                                             "annotations",   "parsed",
                                             "function_call", NULL };
        const json_t *m = json_array_get(messages, at);
        const char *role = json_str(m, "role", "");

        if (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0 &&
            strcmp(role, "system") != 0 && strcmp(role, "developer") != 0 &&
            strcmp(role, "tool") != 0)
                return refuse_role(c, at, role);
        if (lm_openai_check_members(c, m, known) != 0 || check_parts(c, m, at) != 0)
                return -1;
        if (strcmp(role, "assistant") == 0)
                return check_thought(c, m) != 0 ? -1 : check_assistant(c, messages, at);
        return strcmp(role, "tool") == 0 ? check_tool_message(c, messages, at) : 0;
}

static void read_turn(struct lm_prompt *p, const json_t *m)
{
        char *text = lm_prompt_text(json_object_get(m, "content"));
        const char *role = json_str(m, "role", "");
        const json_t *call;
        json_t *calls;
        size_t i;

        lm_blocks_add(&p->blocks, role, m);
        if (strcmp(role, "user") == 0) {
                lm_prompt_user(p, text);
        } else if (strcmp(role, "tool") == 0) {
                lm_prompt_tool(p, json_str(m, "tool_call_id", ""), text);
        } else if (strcmp(role, "assistant") == 0) {
                calls = json_array();
                json_array_foreach(json_object_get(m, "tool_calls"), i, call)
                        json_array_append_new(
                                calls,
                                json_pack("{s:s,s:s}", "id", json_str(call, "id", ""), "name",
                                          json_str(json_object_get(call, "function"), "name", "")));
                lm_prompt_assistant(p, text, calls);
        } else {
                buf_addstr(&p->system, text);
        }
        free(text);
}

static int check_messages(struct call *c)
{
        const json_t *messages = json_object_get(c->body, "messages"), *m;
        size_t i;

        if (!json_is_array(messages))
                return lm_call_refuse_at(c, "missing_required_parameter", "messages", "messages",
                                         "Missing required parameter: 'messages'.");
        if (json_array_size(messages) == 0)
                return lm_call_refuse_at(c, "empty_array", "messages", "messages",
                                         "Invalid 'messages': empty array. Expected an array with "
                                         "minimum length 1, but got an empty array instead.");
        json_array_foreach(messages, i, m) {
                if (check_message(c, messages, i) != 0)
                        return -1;
                read_turn(&c->prompt, m);
        }
        /* the service goes on with it; nobody who runs tools means that */
        if (c->world->base.strict &&
            lm_prompt_is(json_array_get(messages, json_array_size(messages) - 1), "role",
                         "assistant"))
                return lm_call_refuse_at(c, "invalid_value", "messages", "assistant_last",
                                         "Invalid 'messages': the last message must not be of the "
                                         "assistant.");
        return 0;
}

int lm_openai_check_chat(struct call *c)
{
        static const char *const known[] = { "model",
                                             "messages",
                                             "tools",
                                             "tool_choice",
                                             "stream",
                                             "stream_options",
                                             "max_tokens",
                                             "max_completion_tokens",
                                             "temperature",
                                             "top_p",
                                             "reasoning_effort",
                                             "parallel_tool_calls",
                                             "prompt_cache_key",
                                             "prompt_cache_options",
                                             "prompt_cache_retention",
                                             "store",
                                             "user",
                                             "safety_identifier",
                                             "metadata",
                                             "n",
                                             "stop",
                                             "seed",
                                             "response_format",
                                             "service_tier",
                                             "frequency_penalty",
                                             "presence_penalty",
                                             "logit_bias",
                                             "logprobs",
                                             "top_logprobs",
                                             "modalities",
                                             "verbosity",
                                             "thinking",
                                             "prediction",
                                             NULL };

        c->prompt.stream = json_flag(c->body, "stream", false);
        if (lm_openai_check_members(c, c->body, known) != 0 || lm_openai_check_model(c) != 0 ||
            lm_openai_check_sampling(c) != 0 || check_limits(c) != 0 || check_tools(c) != 0)
                return -1;
        /* OpenAI does not show it here */
        c->prompt.thinks = (c->prompt.model->can & LM_SHOWS_THINKING) &&
                           !lm_prompt_is(json_object_get(c->body, "thinking"), "type", "disabled");
        return check_messages(c);
}
