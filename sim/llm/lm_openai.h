/*
 * openai: what Chat Completions and Responses share.
 */
#ifndef SIM_LLM_LM_OPENAI_H
#define SIM_LLM_LM_OPENAI_H

#include "sim/llm/lm_call.h"

void lm_openai_error(const struct call *c, struct buf *b);
void lm_openai_limits(struct call *c, int64_t limit, int64_t left);
/* Yours. */
json_t *lm_openai_error_value(const char *message, const char *type, const char *param,
                              const char *code);
/* Checks a body of Chat Completions and fills in the prompt. */
int lm_openai_check_chat(struct call *c);
/* Refuse: 0 or -1. */
int lm_openai_check_members(struct call *c, const json_t *object, const char *const *known);
int lm_openai_check_model(struct call *c);
int lm_openai_check_sampling(struct call *c);
/* where: "tools[0].function.name" */
int lm_openai_check_name(struct call *c, const char *name, const char *where);
int lm_openai_check_length(struct call *c, const char *text, size_t max, const char *where);
/* Reads tool_choice, after the tools. */
void lm_openai_read_choice(struct call *c);
int lm_openai_check_schema(struct call *c, const char *name, const json_t *schema,
                           const char *where);

#endif
