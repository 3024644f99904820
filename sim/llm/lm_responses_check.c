/*
 * Refuses what OpenAI's Responses refuses, in its words, and reads the rest into the prompt.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "sim/llm/lm_openai.h"
#include "sim/llm/lm_responses.h"

#define LEAST_OUTPUT  16
#define MAX_CALL_ID   64
#define MAX_CACHE_KEY 64

static int check_limits(struct call *c)
{
        const json_t *most = json_object_get(c->body, "max_output_tokens");
        int64_t n = json_integer_value(most);
        const struct lm_model *m = c->prompt.model;

        if (json_is_integer(most) && n < LEAST_OUTPUT)
                return lm_call_refuse_at(c, "integer_below_min_value", "max_output_tokens",
                                         "max_tokens",
                                         "Invalid 'max_output_tokens': integer below minimum "
                                         "value. Expected a value >= 16, but got %lld instead.",
                                         (long long)n);
        if (n > m->output)
                return lm_call_refuse_at(c, "invalid_value", "max_output_tokens", "max_tokens",
                                         "max_output_tokens is too large: %lld. This model "
                                         "supports at most %lld output tokens.",
                                         (long long)n, (long long)m->output);
        c->prompt.max_tokens = n;
        if (json_is_object(json_object_get(c->body, "reasoning")) && !(m->can & LM_REASONS))
                return lm_call_refuse_at(c, "unsupported_parameter", "reasoning.effort", "thinking",
                                         "Unsupported parameter: 'reasoning.effort' is not "
                                         "supported with this model.");
        if (json_is_string(json_object_get(c->body, "previous_response_id")))
                return lm_call_refuse_at(c, "previous_response_not_found", "previous_response_id",
                                         "previous_response",
                                         "Previous response with id '%.80s' not found.",
                                         json_str(c->body, "previous_response_id", ""));
        return lm_openai_check_length(c, json_str(c->body, "prompt_cache_key", ""), MAX_CACHE_KEY,
                                      "prompt_cache_key");
}

static int check_tools(struct call *c)
{
        const json_t *tools = json_object_get(c->body, "tools"), *tool;
        size_t i;

        json_array_foreach(tools, i, tool) {
                const char *name = json_str(tool, "name", NULL);
                char where[40];

                snprintf(where, sizeof(where), "tools[%zu].name", i);
                if (!lm_prompt_is(tool, "type", "function") && !c->world->base.strict) {
                        lm_blocks_add(&c->prompt.blocks, "tools", tool);
                        continue; /* the model does not call it */
                }
                if (!lm_prompt_is(tool, "type", "function"))
                        return lm_call_refuse_at(c, "invalid_value", "tools", "tools",
                                                 "Invalid value: '%.40s'. Supported values are: "
                                                 "'function'.",
                                                 json_str(tool, "type", ""));
                if (!name)
                        return lm_call_refuse_at(c, "missing_required_parameter", where, "tools",
                                                 "Missing required parameter: '%s'.", where);
                if (lm_openai_check_name(c, name, where) != 0)
                        return -1;
                snprintf(where, sizeof(where), "tools[%zu].parameters", i);
                if (lm_openai_check_schema(c, name, json_object_get(tool, "parameters"), where) !=
                    0)
                        return -1;
                lm_blocks_add(&c->prompt.blocks, "tools", tool);
                lm_prompt_add_tool(&c->prompt, name, json_object_get(tool, "parameters"));
        }
        lm_openai_read_choice(c);
        return 0;
}

/* ---- items ---- */

static const char *type_of(const json_t *item)
{
        return json_str(item, "type", json_object_get(item, "role") ? "message" : "");
}

static bool is_of(const json_t *item, const char *type)
{
        return strcmp(type_of(item), type) == 0;
}

static bool has_item(const json_t *input, size_t before, const char *type, const char *key,
                     const char *value)
{
        for (size_t i = 0; i < before; i++) {
                const json_t *item = json_array_get(input, i);

                if (is_of(item, type) && lm_prompt_is(item, key, value))
                        return true;
        }
        return false;
}

static int check_id(struct call *c, const json_t *item, const char *prefix, size_t at)
{
        const char *id = json_str(item, "id", NULL);
        char where[40];

        snprintf(where, sizeof(where), "input[%zu].id", at);
        if (!id)
                return 0;
        if (strncmp(id, prefix, strlen(prefix)) != 0)
                return lm_call_refuse_at(c, "invalid_value", where, "item_id",
                                         "Invalid '%s': '%.64s'. Expected an ID that begins with "
                                         "'%.2s'.",
                                         where, id, prefix);
        return lm_openai_check_length(c, id, MAX_CALL_ID, where);
}

/* Reasoning is sent back as it came, with what followed it. */
static int check_reasoning(struct call *c, const json_t *input, size_t at)
{
        const json_t *item = json_array_get(input, at), *next = json_array_get(input, at + 1);
        const char *sealed = json_str(item, "encrypted_content", NULL);
        const char *id = json_str(item, "id", "");
        struct lm_signed whose;

        if (check_id(c, item, "rs_", at) != 0)
                return -1;
        if (!sealed) {
                c->status = 404;
                return lm_call_refuse_at(c, NULL, "input", "reasoning_not_stored",
                                         "Item with id '%.64s' not found. Items are not persisted "
                                         "when `store` is set to false. Try again with `store` set "
                                         "to true, or remove this item from your input.",
                                         id);
        }
        if (!lm_sign_check(sealed, c->prompt.model->name, id, &whose))
                return lm_call_refuse_at(c, "invalid_encrypted_content", NULL, "signature",
                                         "The encrypted content for item %.64s could not be "
                                         "verified. Reason: Encrypted content could not be "
                                         "decrypted or parsed.",
                                         id);
        if (is_of(next, "function_call") || is_of(next, "reasoning") ||
            (is_of(next, "message") && lm_prompt_is(next, "role", "assistant")))
                return 0;
        return lm_call_refuse_at(c, NULL, "input", "reasoning_alone",
                                 "Item '%.64s' of type 'reasoning' was provided without its "
                                 "required following item.",
                                 id);
}

static int check_function_call(struct call *c, const json_t *input, size_t at)
{
        const json_t *item = json_array_get(input, at);
        const char *id = json_str(item, "id", ""), *call_id = json_str(item, "call_id", "");
        const char *arguments = json_str(item, "arguments", NULL);
        char where[48], needs[LM_ITEM_ID_SIZE];
        json_t *parsed;

        snprintf(where, sizeof(where), "input[%zu].call_id", at);
        if (!*call_id || !arguments)
                return lm_call_refuse_at(c, "missing_required_parameter", where, "call_id",
                                         "Missing required parameter: 'input[%zu].%s'.", at,
                                         *call_id ? "arguments" : "call_id");
        if (check_id(c, item, "fc_", at) != 0 ||
            lm_openai_check_length(c, call_id, MAX_CALL_ID, where) != 0)
                return -1;
        snprintf(where, sizeof(where), "input[%zu].name", at);
        if (lm_openai_check_name(c, json_str(item, "name", ""), where) != 0)
                return -1;
        parsed = json_read(arguments, strlen(arguments), NULL);
        if (c->world->base.strict && !json_is_object(parsed)) {
                json_decref(parsed);
                return lm_call_refuse_at(c, "invalid_value", "input", "call_input",
                                         "Invalid 'input[%zu].arguments': expected a JSON object.",
                                         at);
        }
        json_decref(parsed);
        if (lm_responses_needs(id, needs) && !has_item(input, at, "reasoning", "id", needs))
                return lm_call_refuse_at(c, NULL, "input", "call_without_reasoning",
                                         "Item '%.64s' of type 'function_call' was provided "
                                         "without its required 'reasoning' item: '%s'.",
                                         id, needs);
        for (size_t i = at + 1; i < json_array_size(input); i++) {
                if (is_of(json_array_get(input, i), "function_call_output") &&
                    lm_prompt_is(json_array_get(input, i), "call_id", call_id))
                        return 0;
        }
        return lm_call_refuse_at(c, NULL, "input", "call_without_result",
                                 "No tool output found for function call %s.", call_id);
}

static int check_output(struct call *c, const json_t *input, size_t at)
{
        const json_t *item = json_array_get(input, at), *output = json_object_get(item, "output");
        const char *id = json_str(item, "call_id", "");

        if (!json_is_string(output) && !json_is_array(output))
                return lm_call_refuse_at(c, "missing_required_parameter", "input", "content",
                                         "Missing required parameter: 'input[%zu].output'.", at);
        if (has_item(input, at, "function_call_output", "call_id", id))
                return lm_call_refuse_at(c, NULL, "input", "result_twice",
                                         "Duplicate item found with call_id %.64s. Remove "
                                         "duplicate items from your input and try again.",
                                         id);
        if (has_item(input, at, "function_call", "call_id", id))
                return 0;
        return lm_call_refuse_at(c, NULL, "input", "result_without_call",
                                 "No tool call found for function call output with call_id %.64s.",
                                 id);
}

static int check_message(struct call *c, const json_t *input, size_t at)
{
        const json_t *item = json_array_get(input, at), *content, *part;
        const char *role = json_str(item, "role", "");
        bool own = strcmp(role, "assistant") == 0;
        char needs[LM_ITEM_ID_SIZE];
        size_t i;

        content = json_object_get(item, "content");
        if (strcmp(role, "user") != 0 && !own && strcmp(role, "system") != 0 &&
            strcmp(role, "developer") != 0)
                return lm_call_refuse_at(c, "invalid_value", "input", "role",
                                         "Invalid value: '%.40s'. Supported values are: "
                                         "'assistant', 'system', 'developer', and 'user'.",
                                         role);
        if (!json_is_string(content) && !json_is_array(content))
                return lm_call_refuse_at(c, "missing_required_parameter", "input", "content",
                                         "Missing required parameter: 'input[%zu].content'.", at);
        if (own && check_id(c, item, "msg_", at) != 0)
                return -1;
        json_array_foreach(content, i, part) {
                const char *type = json_str(part, "type", "");
                bool fits = own ? strcmp(type, "output_text") == 0 || strcmp(type, "refusal") == 0
                                : strcmp(type, "input_text") == 0 ||
                                            strcmp(type, "input_image") == 0 ||
                                            strcmp(type, "input_file") == 0;

                if (!fits)
                        return lm_call_refuse_at(c, "invalid_value", "input", "block",
                                                 "Invalid value: '%.40s'. Supported values are: "
                                                 "%s.",
                                                 type,
                                                 own ? "'output_text' and 'refusal'"
                                                     : "'input_text', 'input_image', and "
                                                       "'input_file'");
        }
        if (own && lm_responses_needs(json_str(item, "id", ""), needs) &&
            !has_item(input, at, "reasoning", "id", needs))
                return lm_call_refuse_at(c, NULL, "input", "message_without_reasoning",
                                         "Item '%.64s' of type 'message' was provided without its "
                                         "required 'reasoning' item: '%s'.",
                                         json_str(item, "id", ""), needs);
        return 0;
}

static int check_item(struct call *c, const json_t *input, size_t at)
{
        const char *type = type_of(json_array_get(input, at));

        if (strcmp(type, "message") == 0)
                return check_message(c, input, at);
        if (strcmp(type, "reasoning") == 0)
                return check_reasoning(c, input, at);
        if (strcmp(type, "function_call") == 0)
                return check_function_call(c, input, at);
        if (strcmp(type, "function_call_output") == 0)
                return check_output(c, input, at);
        return lm_call_refuse_at(c, "invalid_value", "input", "block",
                                 "Invalid value: '%.40s'. Supported values are: 'message', "
                                 "'reasoning', 'function_call', and 'function_call_output'.",
                                 type);
}

/* ---- the prompt ---- */

static json_t *call_of(const json_t *item)
{
        return json_pack("{s:s,s:s}", "id", json_str(item, "call_id", ""), "name",
                         json_str(item, "name", ""));
}

/* Items of one answer, message and calls, are one turn. */
static void read_items(struct lm_prompt *p, const json_t *input)
{
        const json_t *item;
        size_t i;

        json_array_foreach(input, i, item) {
                const json_t *content = json_object_get(item, "content");
                json_t *last = json_array_get(p->turns, json_array_size(p->turns) - 1);
                char *text = lm_prompt_text(is_of(item, "function_call_output")
                                                    ? json_object_get(item, "output")
                                                    : content);

                lm_blocks_add(&p->blocks, type_of(item), item);
                if (is_of(item, "function_call_output")) {
                        lm_prompt_tool(p, json_str(item, "call_id", ""), text);
                } else if (is_of(item, "function_call")) {
                        if (!lm_prompt_is(last, "role", "assistant"))
                                lm_prompt_assistant(p, "", json_array());
                        last = json_array_get(p->turns, json_array_size(p->turns) - 1);
                        json_array_append_new(json_object_get(last, "calls"), call_of(item));
                } else if (lm_prompt_is(item, "role", "assistant")) {
                        lm_prompt_assistant(p, text, json_array());
                } else if (lm_prompt_is(item, "role", "user")) {
                        lm_prompt_user(p, text);
                } else if (is_of(item, "message")) {
                        buf_addstr(&p->system, text);
                }
                free(text);
        }
}

static int check_input(struct call *c)
{
        const json_t *input = json_object_get(c->body, "input"), *item;
        size_t i;

        if (json_is_string(input)) {
                lm_blocks_add(&c->prompt.blocks, "message", input);
                lm_prompt_user(&c->prompt, json_string_value(input));
                return 0;
        }
        if (!json_is_array(input) || json_array_size(input) == 0)
                return lm_call_refuse_at(c, "missing_required_parameter", "input", "messages",
                                         "Missing required parameter: 'input'.");
        json_array_foreach(input, i, item) {
                if (check_item(c, input, i) != 0)
                        return -1;
        }
        item = json_array_get(input, json_array_size(input) - 1);
        /* the service goes on with it; nobody who runs tools means that */
        if (c->world->base.strict && lm_prompt_is(item, "role", "assistant"))
                return lm_call_refuse_at(c, "invalid_value", "input", "assistant_last",
                                         "Invalid 'input': the last item must not be of the "
                                         "assistant.");
        read_items(&c->prompt, input);
        return 0;
}

int lm_responses_check(struct call *c)
{
        static const char *const known[] = { "model",
                                             "input",
                                             "instructions",
                                             "tools",
                                             "tool_choice",
                                             "stream",
                                             "stream_options",
                                             "store",
                                             "include",
                                             "reasoning",
                                             "max_output_tokens",
                                             "parallel_tool_calls",
                                             "prompt_cache_key",
                                             "prompt_cache_options",
                                             "prompt_cache_retention",
                                             "temperature",
                                             "top_p",
                                             "text",
                                             "truncation",
                                             "metadata",
                                             "user",
                                             "safety_identifier",
                                             "service_tier",
                                             "previous_response_id",
                                             "background",
                                             "conversation",
                                             "top_logprobs",
                                             "prompt",
                                             NULL };
        const json_t *instructions = json_object_get(c->body, "instructions");

        c->prompt.stream = json_flag(c->body, "stream", false);
        if (lm_openai_check_members(c, c->body, known) != 0 || lm_openai_check_model(c) != 0 ||
            lm_openai_check_sampling(c) != 0 || check_limits(c) != 0 || check_tools(c) != 0)
                return -1;
        c->prompt.thinks = c->prompt.model->can & LM_REASONS;
        if (json_is_string(instructions)) {
                buf_addstr(&c->prompt.system, json_string_value(instructions));
                lm_blocks_add(&c->prompt.blocks, "instructions", instructions);
        }
        return check_input(c);
}
