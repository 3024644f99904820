/*
 * responses: OpenAI's Responses wire, request side, and the ids of its items.
 */
#ifndef SIM_LLM_LM_RESPONSES_H
#define SIM_LLM_LM_RESPONSES_H

#include <stdbool.h>

#include "sim/llm/lm_call.h"

#define LM_ITEM_ID_SIZE 64

/*
 * Items of one answer share its token. That of a reasoning item is rs_TOKEN; if there was one, the
 * ids of the calls say so, for they cannot be sent back without it.
 */
void lm_responses_item_id(const struct call *c, const char *prefix, size_t at, bool reasoned,
                          char out[LM_ITEM_ID_SIZE]);
/* The id of the reasoning item this item needs; false: none. */
bool lm_responses_needs(const char *id, char out[LM_ITEM_ID_SIZE]);

/* Checks the body as the service does and fills in the prompt. */
int lm_responses_check(struct call *c);

#endif
