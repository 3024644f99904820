/*
 * messages: Anthropic's Messages wire, request side.
 */
#ifndef SIM_LLM_LM_MESSAGES_H
#define SIM_LLM_LM_MESSAGES_H

#include <stdbool.h>

#include "sim/llm/lm_call.h"

#define LM_CALL_ID_SIZE 40

/* The id of a tool call also says whether the answer had thinking, and of which model it was. */
void lm_messages_call_id(const struct call *c, size_t at, bool thought, char out[LM_CALL_ID_SIZE]);
bool lm_messages_call_thought(const char *id, const char *model);

/* Checks the body as the service does and fills in the prompt. */
int lm_messages_check(struct call *c);

#endif
