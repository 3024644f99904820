/*
 * Refuses what Anthropic's Messages refuses, in its words, and reads the rest into the prompt.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "sim/llm/lm_messages.h"

#define MAX_MARKS      4
#define THINKING_LEAST 1024
#define NEWER_VERSION  "2026-10-21"

static int check_version(struct lm_messages_reader *r)
{
        const char *version = r->call->version;

        if (!version)
                return lm_call_refuse(r->call, "version", "anthropic-version: header is required");
        r->newer = strcmp(version, NEWER_VERSION) == 0;
        if (!r->newer && strcmp(version, "2023-06-01") != 0 && strcmp(version, "2023-01-01") != 0)
                return lm_call_refuse(r->call, "version",
                                      "anthropic-version: \"%.40s\" is not a valid version",
                                      version);
        return 0;
}

static int check_sampling(struct lm_messages_reader *r)
{
        static const char *const keys[] = { "temperature", "top_p", "top_k" };
        struct call *c = r->call;

        for (size_t i = 0; i < COUNT(keys); i++) {
                if (!json_object_get(c->body, keys[i]))
                        continue;
                if (r->newer)
                        return lm_call_refuse(c, "sampling", "%s: Extra inputs are not permitted",
                                              keys[i]);
                if (!(c->prompt.model->can & LM_SAMPLING))
                        return lm_call_refuse(c, "sampling", "`%s` is deprecated for this model.",
                                              keys[i]);
        }
        return 0;
}

static int check_model(struct call *c)
{
        const char *name = json_str(c->body, "model", NULL);

        if (!name)
                return lm_call_refuse(c, "model", "model: Field required");
        c->prompt.model = lm_models_find(name, true);
        if (c->prompt.model)
                return 0;
        c->status = 404;
        return lm_call_refuse(c, "model", "model: %.100s", name);
}

static int check_max_tokens(struct call *c)
{
        const json_t *value = json_object_get(c->body, "max_tokens");
        int64_t n = json_integer_value(value);

        if (strcmp(c->operation, "count_tokens") == 0)
                return value ? lm_call_refuse(c, "max_tokens",
                                              "max_tokens: Extra inputs are not permitted")
                             : 0;
        if (!value)
                return lm_call_refuse(c, "max_tokens", "max_tokens: Field required");
        if (!json_is_integer(value))
                return lm_call_refuse(c, "max_tokens",
                                      "max_tokens: Input should be a valid integer");
        if (n < 0)
                return lm_call_refuse(c, "max_tokens",
                                      "max_tokens: must be greater than or equal to 0");
        if (n > c->prompt.model->output)
                return lm_call_refuse(c, "max_tokens",
                                      "max_tokens: %lld > %lld, which is the maximum allowed "
                                      "number of output tokens for %s",
                                      (long long)n, (long long)c->prompt.model->output,
                                      c->prompt.model->name);
        c->prompt.max_tokens = n;
        c->prompt.warms = n == 0;
        return 0;
}

static int check_thinking(struct call *c)
{
        const json_t *thinking = json_object_get(c->body, "thinking");
        const struct lm_model *m = c->prompt.model;
        int64_t budget = json_int(thinking, "budget_tokens", 0);
        const char *type = json_str(thinking, "type", "");

        if (!thinking)
                return 0;
        if (strcmp(type, "disabled") == 0)
                return 0;
        if ((strcmp(type, "enabled") == 0 && !(m->can & LM_THINK_ENABLED)) ||
            (strcmp(type, "adaptive") == 0 && !(m->can & LM_THINK_ADAPTIVE)) ||
            (strcmp(type, "between_tools") == 0 && !(m->can & LM_THINK_BETWEEN)))
                return lm_call_refuse(c, "thinking",
                                      "\"thinking.type.%s\" is not supported for this model.",
                                      type);
        if (strcmp(type, "enabled") == 0) {
                if (budget < THINKING_LEAST)
                        return lm_call_refuse(c, "thinking",
                                              "thinking.enabled.budget_tokens: Input should be "
                                              "greater than or equal to 1024");
                if (c->prompt.max_tokens && budget >= c->prompt.max_tokens)
                        return lm_call_refuse(c, "thinking",
                                              "`max_tokens` must be greater than "
                                              "`thinking.budget_tokens`.");
        } else if (strcmp(type, "adaptive") != 0 && strcmp(type, "between_tools") != 0) {
                return lm_call_refuse(c, "thinking",
                                      "thinking: Input tag '%.40s' found using 'type' does not "
                                      "match any of the expected tags: 'adaptive', "
                                      "'between_tools', 'disabled', 'enabled'",
                                      type);
        }
        c->prompt.thinks = true;
        c->prompt.thinking_hidden = lm_prompt_is(thinking, "display", "omitted");
        return 0;
}

/* ---- system and tools ---- */

static int check_system(struct lm_messages_reader *r)
{
        const json_t *system = json_object_get(r->call->body, "system");

        if (!system || json_is_string(system))
                return 0;
        if (!json_is_array(system))
                return lm_call_refuse(r->call, "system", "system: Input should be a valid list");
        return lm_messages_check_content(r, system, "system", "system");
}

static int check_tool(struct lm_messages_reader *r, const json_t *tool, size_t at)
{
        static const char *const known[] = { "type",
                                             "name",
                                             "description",
                                             "input_schema",
                                             "cache_control",
                                             "strict",
                                             "defer_loading",
                                             "eager_input_streaming",
                                             "input_examples",
                                             "allowed_callers",
                                             NULL };
        const json_t *schema = json_object_get(tool, "input_schema"), *type;
        const char *name = json_str(tool, "name", "");
        char where[40];

        snprintf(where, sizeof(where), "tools.%zu", at);
        if (!lm_prompt_is_name(name) || strlen(name) > LM_TOOL_NAME_MAX)
                return lm_call_refuse(r->call, "tool_name",
                                      "%s.custom.name: String should match pattern "
                                      "'^[a-zA-Z0-9_-]{1,128}$'",
                                      where);
        type = json_object_get(schema, "type");
        if (!json_is_object(schema))
                return lm_call_refuse(r->call, "schema", "%s.custom.input_schema: Field required",
                                      where);
        if (!type)
                return lm_call_refuse(r->call, "schema",
                                      "%s.custom.input_schema.type: Field required", where);
        if (!json_is_string(type) || strcmp(json_string_value(type), "object") != 0)
                return lm_call_refuse(r->call, "schema",
                                      "%s.custom.input_schema.type: Input should be 'object'",
                                      where);
        if (lm_messages_check_members(r->call, tool, where, known) != 0)
                return -1;
        return lm_messages_check_mark(r, tool, where);
}

static int check_tools(struct lm_messages_reader *r)
{
        const json_t *tools = json_object_get(r->call->body, "tools"), *tool;
        const json_t *choice = json_object_get(r->call->body, "tool_choice");
        struct map names;
        size_t i;
        int rc = 0;

        if (tools && !json_is_array(tools))
                return lm_call_refuse(r->call, "tools", "tools: Input should be a valid list");
        if (choice && json_array_size(tools) == 0)
                return lm_call_refuse(r->call, "tool_choice",
                                      "tool_choice may only be specified while providing tools");
        map_init(&names);
        json_array_foreach(tools, i, tool) {
                if (rc == 0)
                        rc = check_tool(r, tool, i);
                if (rc == 0 && map_put(&names, json_str(tool, "name", ""), r))
                        rc = lm_call_refuse(r->call, "tool_name",
                                            "tools: Tool names must be unique.");
        }
        if (rc == 0 && lm_prompt_is(choice, "type", "tool") &&
            !map_get(&names, json_str(choice, "name", "")))
                rc = lm_call_refuse(r->call, "tool_choice",
                                    "Tool '%.64s' not found in provided tools",
                                    json_str(choice, "name", ""));
        map_release(&names);
        if (lm_prompt_is(choice, "type", "any"))
                snprintf(r->call->prompt.forced, sizeof(r->call->prompt.forced), "*");
        else if (lm_prompt_is(choice, "type", "tool"))
                snprintf(r->call->prompt.forced, sizeof(r->call->prompt.forced), "%.64s",
                         json_str(choice, "name", ""));
        r->call->prompt.one_call = json_flag(choice, "disable_parallel_tool_use", false);
        return rc;
}

/* ---- the prompt ---- */

static void read_turn(struct lm_prompt *p, const json_t *m)
{
        const json_t *content = json_object_get(m, "content"), *block;
        json_t *calls = json_array();
        char *text;
        size_t i;

        json_array_foreach(content, i, block) {
                if (lm_prompt_is(block, "type", "tool_use"))
                        json_array_append_new(calls, json_pack("{s:s,s:s}", "id",
                                                               json_str(block, "id", ""), "name",
                                                               json_str(block, "name", "")));
                if (!lm_prompt_is(block, "type", "tool_result"))
                        continue;
                text = lm_prompt_text(json_object_get(block, "content"));
                lm_prompt_tool(p, json_str(block, "tool_use_id", ""), text);
                free(text);
        }
        text = lm_prompt_text(content);
        if (lm_prompt_is(m, "role", "assistant"))
                lm_prompt_assistant(p, text, json_incref(calls));
        else if (lm_prompt_is(m, "role", "user") && *text)
                lm_prompt_user(p, text);
        free(text);
        json_decref(calls);
}

/* A string is one text block; the block's place is part of what is cached. */
static void add_blocks(struct lm_blocks *b, const char *where, const json_t *content)
{
        const json_t *block;
        json_t *text;
        size_t i;

        json_array_foreach(content, i, block)
                lm_blocks_add(b, where, block);
        if (!json_is_string(content))
                return;
        text = json_pack("{s:s,s:O}", "type", "text", "text", content);
        lm_blocks_add(b, where, text);
        json_decref(text);
}

/* Thinking and tool choice are part of what messages are cached under. */
static char *message_scope(const struct call *c, const char *role)
{
        const json_t *thinking = json_object_get(c->body, "thinking");
        const json_t *choice = json_object_get(c->body, "tool_choice");
        char *a = thinking ? json_text(thinking) : mem_strdup("");
        char *b = choice ? json_text(choice) : mem_strdup("");
        char *all = mem_printf("%s %s %s", role, a, b);

        free(a);
        free(b);
        return all;
}

static void read_prompt(struct lm_messages_reader *r)
{
        struct call *c = r->call;
        struct lm_prompt *p = &c->prompt;
        const json_t *value, *all = json_object_get(c->body, "cache_control");
        const json_t *system = json_object_get(c->body, "system");
        char *text = lm_prompt_text(system);
        size_t i;

        buf_addstr(&p->system, text);
        free(text);
        json_array_foreach(json_object_get(c->body, "tools"), i, value) {
                lm_blocks_add(&p->blocks, "tools", value);
                lm_prompt_add_tool(p, json_str(value, "name", ""),
                                   json_object_get(value, "input_schema"));
        }
        if (lm_prompt_is(json_object_get(c->body, "tool_choice"), "type", "none"))
                json_array_clear(p->tools);
        add_blocks(&p->blocks, "system", system);
        json_array_foreach(r->messages, i, value) {
                char *scope = message_scope(c, json_str(value, "role", ""));

                add_blocks(&p->blocks, scope, json_object_get(value, "content"));
                free(scope);
                read_turn(p, value);
        }
        if (json_is_object(all) && p->blocks.count > 0)
                p->blocks.list[p->blocks.count - 1].mark =
                        lm_prompt_is(all, "ttl", "1h") ? LM_MARK_1H : LM_MARK_5M;
        p->stream = json_flag(c->body, "stream", false);
}

int lm_messages_check(struct call *c)
{
        static const char *const known[] = {
                "model",           "messages",       "max_tokens",
                "system",          "tools",          "tool_choice",
                "thinking",        "stream",         "cache_control",
                "metadata",        "temperature",    "top_p",
                "top_k",           "stop_sequences", "service_tier",
                "output_config",   "diagnostics",    "container",
                "inference_geo",   "speed",          "context_management",
                "user_profile_id", "workspace_id",   NULL
        };
        struct lm_messages_reader r = { .call = c };

        if (check_version(&r) != 0 || lm_messages_check_members(c, c->body, "", known) != 0 ||
            check_model(c) != 0 || check_max_tokens(c) != 0 || check_sampling(&r) != 0 ||
            check_thinking(c) != 0 || check_system(&r) != 0 || check_tools(&r) != 0 ||
            lm_messages_check_list(&r) != 0 || lm_messages_check_mark(&r, c->body, "request") != 0)
                return -1;
        if (r.marks > MAX_MARKS)
                return lm_call_refuse(c, "too_many_marks",
                                      "A maximum of %d blocks with cache_control may be provided. "
                                      "Found %zu.",
                                      MAX_MARKS, r.marks);
        read_prompt(&r);
        return 0;
}
