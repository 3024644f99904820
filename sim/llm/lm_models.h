/*
 * models: the models the simulated services offer, and what each of them accepts.
 */
#ifndef SIM_LLM_LM_MODELS_H
#define SIM_LLM_LM_MODELS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define LM_ANTHROPIC 1U /* else a model of OpenAI */
/* what it accepts */
#define LM_SAMPLING       2U   /* temperature, top_p, top_k */
#define LM_PREFILL        4U   /* an assistant message at the end */
#define LM_THINK_ENABLED  8U   /* thinking {"type":"enabled"} */
#define LM_THINK_ADAPTIVE 16U  /* thinking {"type":"adaptive"} */
#define LM_THINK_BETWEEN  32U  /* thinking {"type":"between_tools"} */
#define LM_MAX_TOKENS     64U  /* chat completions: max_tokens */
#define LM_REASONS        128U /* OpenAI: has reasoning, takes an effort */
#define LM_SHOWS_THINKING 256U /* chat completions: as DeepSeek, and wants it back */

struct lm_model {
        const char *name, *title;
        unsigned can;
        int64_t window, output; /* tokens */
        int64_t cache_from;     /* shorter prompts are not cached */
};

/* NULL: no such model of that vendor. */
const struct lm_model *lm_models_find(const char *name, bool anthropic);
/* An entry of GET /v1/models in the vendor's form; yours. */
json_t *lm_models_entry(const struct lm_model *m);
/* The list; yours. */
json_t *lm_models_list(bool anthropic);

#endif
