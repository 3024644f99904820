#include "sim/llm/lm_models.h"

#include <string.h>

#include "base/mem.h"

#define OLD     (LM_ANTHROPIC | LM_SAMPLING | LM_PREFILL | LM_THINK_ENABLED)
#define MID     (LM_ANTHROPIC | LM_THINK_ENABLED | LM_THINK_ADAPTIVE)
#define NEW     (LM_ANTHROPIC | LM_THINK_ADAPTIVE | LM_THINK_BETWEEN)
#define CHAT    (LM_SAMPLING | LM_MAX_TOKENS)
#define DEEP    (CHAT | LM_REASONS | LM_SHOWS_THINKING)

#define CREATED 1767225600 /* of all of them */

/* clang-format off */
static const struct lm_model models[] = {
        { "claude-opus-5-5",   "Claude Opus 5.5",   NEW,        1000000, 128000, 1024 },
        { "claude-sonnet-5-5", "Claude Sonnet 5.5", NEW,        1000000, 128000, 1024 },
        { "claude-haiku-5-5",  "Claude Haiku 5.5",  NEW,        200000,  64000,  2048 },
        { "claude-opus-4-6",   "Claude Opus 4.6",   MID,        200000,  128000, 4096 },
        { "claude-sonnet-4-5", "Claude Sonnet 4.5", OLD,        200000,  64000,  1024 },
        { "claude-haiku-4-5",  "Claude Haiku 4.5",  OLD,        200000,  64000,  4096 },
        { "claude-sim-small",  "Small window",      NEW,        8000,    2000,   1024 },
        { "gpt-5.6-sol",       "GPT-5.6 Sol",       LM_REASONS, 400000,  128000, 1024 },
        { "gpt-5.4",           "GPT-5.4",           LM_REASONS, 400000,  128000, 1024 },
        { "gpt-5.4-mini",      "GPT-5.4 mini",      LM_REASONS, 400000,  128000, 1024 },
        { "gpt-4o",            "GPT-4o",            CHAT,       128000,  16384,  1024 },
        { "deepseek-v4-flash", "DeepSeek V4 Flash", DEEP,       128000,  64000,  1024 },
        { "gpt-sim-small",     "Small window",      LM_REASONS, 8000,    2000,   1024 },
};
/* clang-format on */

const struct lm_model *lm_models_find(const char *name, bool anthropic)
{
        for (size_t i = 0; i < COUNT(models); i++) {
                if (strcmp(models[i].name, name) == 0 &&
                    ((models[i].can & LM_ANTHROPIC) != 0) == anthropic)
                        return &models[i];
        }
        return NULL;
}

static json_t *support(bool yes)
{
        return json_pack("{s:b}", "supported", yes);
}

static json_t *thinking(const struct lm_model *m)
{
        return json_pack("{s:b,s:{s:o,s:o,s:o,s:o}}", "supported", 1, "types", "adaptive",
                         support(m->can & LM_THINK_ADAPTIVE), "between_tools",
                         support(m->can & LM_THINK_BETWEEN), "disabled", support(true), "enabled",
                         support(m->can & LM_THINK_ENABLED));
}

static json_t *capabilities(const struct lm_model *m)
{
        bool effort = m->can & LM_THINK_ADAPTIVE;
        json_t *all = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "batch", support(true), "citations",
                                support(false), "code_execution", support(false), "image_input",
                                support(true), "pdf_input", support(true), "structured_outputs",
                                support(false));

        json_object_set_new(all, "context_management",
                            json_pack("{s:b,s:n,s:n,s:n}", "supported", 0,
                                      "clear_thinking_20251015", "clear_tool_uses_20250919",
                                      "compact_20260112"));
        json_object_set_new(all, "effort",
                            json_pack("{s:b,s:o,s:o,s:o,s:o,s:o}", "supported", effort, "low",
                                      support(effort), "medium", support(effort), "high",
                                      support(effort), "max", support(effort), "xhigh",
                                      support(effort)));
        json_object_set_new(all, "server_tools",
                            json_pack("{s:b,s:o,s:o}", "supported", 0, "code_execution",
                                      support(false), "web_search", support(false)));
        json_object_set_new(all, "thinking", thinking(m));
        return all;
}

static const char *line(const struct lm_model *m)
{
        return strstr(m->name, "opus") ? "opus" : strstr(m->name, "haiku") ? "haiku" : "sonnet";
}

json_t *lm_models_entry(const struct lm_model *m)
{
        if (!(m->can & LM_ANTHROPIC))
                return json_pack("{s:s,s:s,s:i,s:s}", "id", m->name, "object", "model", "created",
                                 CREATED, "owned_by", "system");
        return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:n,s:n,s:o}", "type", "model", "id",
                         m->name, "display_name", m->title, "created_at", "2026-01-01T00:00:00Z",
                         "lifecycle", "active", "line", line(m), "max_input_tokens",
                         (json_int_t)m->window, "max_tokens", (json_int_t)m->output,
                         "deprecated_at", "retires_at", "capabilities", capabilities(m));
}

json_t *lm_models_list(bool anthropic)
{
        json_t *data = json_array();
        const char *first = NULL, *last = NULL;

        for (size_t i = 0; i < COUNT(models); i++) {
                if (((models[i].can & LM_ANTHROPIC) != 0) != anthropic)
                        continue;
                first = first ? first : models[i].name;
                last = models[i].name;
                json_array_append_new(data, lm_models_entry(&models[i]));
        }
        if (!anthropic)
                return json_pack("{s:s,s:o}", "object", "list", "data", data);
        return json_pack("{s:o,s:b,s:s,s:s}", "data", data, "has_more", 0, "first_id", first,
                         "last_id", last);
}
