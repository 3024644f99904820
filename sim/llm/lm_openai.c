#include "sim/llm/lm_openai.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

#define MAX_NAME 64

json_t *lm_openai_error_value(const char *message, const char *type, const char *param,
                              const char *code)
{
        return json_pack("{s:{s:s,s:s,s:s?,s:s?}}", "error", "message", message, "type", type,
                         "param", param, "code", code);
}

static const char *type_of(const struct call *c)
{
        return c->status == 429   ? "requests"
               : c->status >= 500 ? "server_error"
                                  : "invalid_request_error";
}

void lm_openai_error(const struct call *c, struct buf *b)
{
        const char *code = c->code[0] ? c->code : c->status == 429 ? "rate_limit_exceeded" : NULL;
        json_t *value =
                lm_openai_error_value(c->problem, type_of(c), c->param[0] ? c->param : NULL, code);
        char *text = json_text(value);

        buf_addstr(b, text);
        free(text);
        json_decref(value);
}

void lm_openai_limits(struct call *c, int64_t limit, int64_t left)
{
        static const char *const kinds[] = { "requests", "tokens" };
        char name[64], number[24];

        for (size_t i = 0; i < COUNT(kinds); i++) {
                snprintf(name, sizeof(name), "x-ratelimit-limit-%s", kinds[i]);
                snprintf(number, sizeof(number), "%lld", (long long)limit);
                http_add_header(c->x, name, number);
                snprintf(name, sizeof(name), "x-ratelimit-remaining-%s", kinds[i]);
                snprintf(number, sizeof(number), "%lld", (long long)left);
                http_add_header(c->x, name, number);
                snprintf(name, sizeof(name), "x-ratelimit-reset-%s", kinds[i]);
                http_add_header(c->x, name, "60s");
        }
        http_add_header(c->x, "openai-version", "2020-10-01");
}

int lm_openai_check_members(struct call *c, const json_t *object, const char *const *known)
{
        const char *key;
        json_t *value;

        if (!c->world->base.strict)
                return 0;
        json_object_foreach((json_t *)object, key, value) {
                const char *const *k = known;

                while (*k && strcmp(*k, key) != 0)
                        k++;
                if (!*k)
                        return lm_call_refuse_at(c, "unknown_parameter", key, "unknown_member",
                                                 "Unknown parameter: '%s'.", key);
        }
        return 0;
}

int lm_openai_check_model(struct call *c)
{
        const char *name = json_str(c->body, "model", NULL);

        if (!name)
                return lm_call_refuse_at(c, NULL, NULL, "model",
                                         "you must provide a model parameter");
        c->prompt.model = lm_models_find(name, false);
        if (c->prompt.model)
                return 0;
        c->status = 404;
        return lm_call_refuse_at(
                c, "model_not_found", NULL, "model",
                "The model `%.100s` does not exist or you do not have access to it.", name);
}

int lm_openai_check_sampling(struct call *c)
{
        const json_t *temperature = json_object_get(c->body, "temperature");

        if (c->prompt.model->can & LM_SAMPLING)
                return 0;
        if (temperature && json_number_value(temperature) != 1)
                return lm_call_refuse_at(c, "unsupported_value", "temperature", "sampling",
                                         "Unsupported value: 'temperature' does not support %g "
                                         "with this model. Only the default (1) value is "
                                         "supported.",
                                         json_number_value(temperature));
        if (json_object_get(c->body, "top_p"))
                return lm_call_refuse_at(c, "unsupported_parameter", "top_p", "sampling",
                                         "Unsupported parameter: 'top_p' is not supported with "
                                         "this model.");
        return 0;
}

int lm_openai_check_length(struct call *c, const char *text, size_t max, const char *where)
{
        if (strlen(text) <= max)
                return 0;
        return lm_call_refuse_at(c, "string_above_max_length", where, "too_long_string",
                                 "Invalid '%s': string too long. Expected a string with maximum "
                                 "length %zu, but got a string with length %zu instead.",
                                 where, max, strlen(text));
}

int lm_openai_check_name(struct call *c, const char *name, const char *where)
{
        if (!*name)
                return lm_call_refuse_at(c, "empty_string", where, "tool_name",
                                         "Invalid '%s': empty string. Expected a string with "
                                         "minimum length 1, but got an empty string instead.",
                                         where);
        if (!lm_prompt_is_name(name))
                return lm_call_refuse_at(c, "invalid_value", where, "tool_name",
                                         "Invalid '%s': string does not match pattern. Expected a "
                                         "string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
                                         where);
        return lm_openai_check_length(c, name, MAX_NAME, where);
}

int lm_openai_check_schema(struct call *c, const char *name, const json_t *schema,
                           const char *where)
{
        const char *type = json_str(schema, "type", "None");

        if (!schema) /* no parameters */
                return 0;
        if (strcmp(type, "object") == 0)
                return 0;
        return lm_call_refuse_at(c, "invalid_function_parameters", where, "schema",
                                 "Invalid schema for function '%.64s': schema must be a JSON "
                                 "Schema of 'type: \"object\"', got 'type: \"%.40s\"'.",
                                 name, type);
}

void lm_openai_read_choice(struct call *c)
{
        const json_t *choice = json_object_get(c->body, "tool_choice");
        const char *word = json_is_string(choice) ? json_string_value(choice) : "";
        const json_t *function = json_object_get(choice, "function");

        c->prompt.one_call = !json_flag(c->body, "parallel_tool_calls", true);
        if (strcmp(word, "none") == 0)
                json_array_clear(c->prompt.tools);
        else if (strcmp(word, "required") == 0)
                snprintf(c->prompt.forced, sizeof(c->prompt.forced), "*");
        else
                snprintf(c->prompt.forced, sizeof(c->prompt.forced), "%.64s",
                         json_str(function ? function : choice, "name", ""));
}
