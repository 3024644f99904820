#include "agent/llm/chat_server.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define DETAILS_MAX     256
#define DETAIL_TEXT_MAX ((size_t)256 << 10) /* pieces are joined one by one */

/* The first row is for unknown servers. */
static const struct chat_server servers[] = {
        { "other", NULL, .thinking = CHAT_THINKING_EFFORT },
        { "openai", "api.openai.com", .thinking = CHAT_THINKING_EFFORT, .max_completion = true,
          .developer = true, .store = true, .cache_key = true },
        { "azure", ".openai.azure.com", .thinking = CHAT_THINKING_EFFORT, .max_completion = true,
          .cache_key = true },
        { "deepseek", "deepseek.com", .thinking = CHAT_THINKING_BOTH, .wants_thinking = true },
        { "qwen", "dashscope", .thinking = CHAT_THINKING_ENABLE, .budget = "thinking_budget" },
        { "vllm", NULL, .thinking = CHAT_THINKING_TEMPLATE, .budget = "thinking_token_budget" },
        { "llama.cpp", NULL, .thinking = CHAT_THINKING_TEMPLATE,
          .budget = "thinking_budget_tokens" },
        { "ollama", ":11434", .thinking = CHAT_THINKING_EFFORT },
        { "lmstudio", ":1234", .thinking = CHAT_THINKING_NONE },
        { "openrouter", "openrouter.ai", .thinking = CHAT_THINKING_NESTED, .cache_key = true,
          .routes = true },
        { "kimi", "moonshot", .thinking = CHAT_THINKING_TYPE },
        { "zai", "z.ai", .thinking = CHAT_THINKING_TYPE },
        { "mimo", "xiaomimimo.com", .thinking = CHAT_THINKING_TYPE },
        { "cerebras", "cerebras.ai", .thinking = CHAT_THINKING_NONE, .max_completion = true },
        { "groq", "groq.com", .thinking = CHAT_THINKING_EFFORT, .max_completion = true },
        { "mistral", "mistral.ai", .thinking = CHAT_THINKING_NONE },
};

const char *const chat_server_names[] = { "auto",     "other",    "openai",     "azure",
                                          "deepseek", "qwen",     "vllm",       "llama.cpp",
                                          "ollama",   "lmstudio", "openrouter", "kimi",
                                          "zai",      "mimo",     "cerebras",   "groq",
                                          "mistral",  NULL };

const struct chat_server *chat_server_of(const struct llm *m)
{
        const char *named = m->conf->server ? m->conf->server : "auto";
        bool automatic = strcmp(named, "auto") == 0;

        for (size_t i = 0; i < COUNT(servers); i++) {
                if (automatic ? servers[i].host && strstr(m->base, servers[i].host)
                              : strcmp(named, servers[i].name) == 0)
                        return &servers[i];
        }
        return &servers[0];
}

/* Newer models of OpenAI refuse max_tokens, also behind a proxy; most servers know only that. */
const char *chat_server_max_tokens(const struct llm *m)
{
        static const char *const newer[] = { "o1", "o3", "o4", "gpt-5" };
        const char *slash = strrchr(m->model, '/'), *model = slash ? slash + 1 : m->model;
        bool completion = chat_server_of(m)->max_completion;

        for (size_t i = 0; i < COUNT(newer); i++)
                completion = completion || strncmp(model, newer[i], strlen(newer[i])) == 0;
        return completion ? "max_completion_tokens" : "max_tokens";
}

static void write_object(struct buf *out, const char *key, const char *member, const char *value)
{
        jsonw_open_member(out, key, '{');
        jsonw_str(out, member, value);
        jsonw_close(out, '}');
}

const char *chat_server_effort(const char *model, enum model_thinking thinking)
{
        static const char *const efforts[] = { NULL, "none", "low", "medium", "high" };

        if (thinking == THINKING_OFF && model[0] == 'o' && model[1] >= '1' && model[1] <= '9')
                return "low";
        if (thinking == THINKING_OFF && strncmp(model, "gpt-5", 5) == 0 && model[5] != '.')
                return "minimal";
        return efforts[thinking];
}

void chat_server_write_thinking(const struct llm *m, const struct llm_request *q, struct buf *out)
{
        static const int64_t budgets[] = { 0, 0, 2048, 8192, 16384 };
        const struct chat_server *s = chat_server_of(m);
        enum model_thinking t = q->q->thinking;
        bool on = t != THINKING_OFF;

        if (t == THINKING_DEFAULT || !q->limits.thinking)
                return;
        if (s->thinking == CHAT_THINKING_TYPE || s->thinking == CHAT_THINKING_BOTH)
                write_object(out, "thinking", "type", on ? "enabled" : "disabled");
        if (s->thinking == CHAT_THINKING_EFFORT || (s->thinking == CHAT_THINKING_BOTH && on))
                jsonw_str(out, "reasoning_effort", chat_server_effort(m->model, t));
        if (s->thinking == CHAT_THINKING_NESTED)
                write_object(out, "reasoning", "effort", chat_server_effort(m->model, t));
        if (s->thinking == CHAT_THINKING_ENABLE)
                jsonw_bool(out, "enable_thinking", on);
        if (s->budget && on)
                jsonw_int(out, s->budget, budgets[t]);
        if (s->thinking == CHAT_THINKING_TEMPLATE) {
                jsonw_open_member(out, "chat_template_kwargs", '{');
                jsonw_bool(out, "enable_thinking", on);
                jsonw_close(out, '}');
        }
}

/* Adds the text of a piece to the detail before it; false: the piece is one of its own. */
static bool extend(json_t *last, const json_t *piece)
{
        static const char *const members[] = { "text", "summary", "data" };
        bool same = last &&
                    json_equal(json_object_get(last, "type"), json_object_get(piece, "type")) &&
                    json_int(last, "index", 0) == json_int(piece, "index", 0) &&
                    strcmp(json_str(piece, "type", ""), "reasoning.encrypted") != 0;
        const char *key;
        json_t *value;

        if (!same)
                return false;
        json_object_foreach((json_t *)piece, key, value) {
                const json_t *old = json_object_get(last, key);
                bool grows = false;

                for (size_t i = 0; i < COUNT(members); i++)
                        grows = grows || strcmp(key, members[i]) == 0;
                if (grows && json_is_string(old) && json_is_string(value)) {
                        char *joined;

                        if (json_string_length(old) > DETAIL_TEXT_MAX)
                                continue;
                        joined = mem_printf("%s%s", json_string_value(old),
                                            json_string_value(value));
                        json_object_set_new(last, key, json_string(joined));
                        free(joined);
                } else if (!json_is_null(value)) {
                        json_object_set(last, key, value);
                }
        }
        return true;
}

void chat_details_read(struct llm_reader *r, const json_t *details)
{
        bool has_thinking = false;

        if (json_array_size(details) == 0)
                return;
        if (!r->details)
                r->details = json_array();
        for (size_t i = 0; i < json_array_size(details); i++) {
                json_t *piece = json_array_get(details, i);
                size_t n = json_array_size(r->details);

                if (!json_is_object(piece) || n >= DETAILS_MAX)
                        continue;
                if (!extend(json_array_get(r->details, n ? n - 1 : 0), piece))
                        json_array_append_new(r->details, json_copy(piece));
        }
        for (size_t i = 0; i < r->block_count; i++)
                has_thinking = has_thinking || r->blocks[i].type == LLM_THINKING;
        if (!has_thinking)
                llm_block_open(r, LLM_THINKING, -1);
}
