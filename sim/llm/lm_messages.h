/*
 * messages: Anthropic's Messages wire, request side.
 */
#ifndef SIM_LLM_LM_MESSAGES_H
#define SIM_LLM_LM_MESSAGES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "sim/llm/lm_call.h"

#define LM_CALL_ID_SIZE  40
#define LM_TOOL_NAME_MAX 128

/* The id of a tool call also says whether the answer had thinking, and of which model it was. */
void lm_messages_call_id(const struct call *c, size_t at, bool thought, char out[LM_CALL_ID_SIZE]);
bool lm_messages_call_thought(const char *id, const char *model);

/* A request that is being read. */
struct lm_messages_reader {
        struct call *call;
        const json_t *messages;
        size_t marks;
        bool newer; /* the newer API version */
};

/* Refuse: 0 or -1. NULL ends the known members. */
int lm_messages_check_members(struct call *c, const json_t *object, const char *where,
                              const char *const *known);
int lm_messages_check_mark(struct lm_messages_reader *r, const json_t *block, const char *where);
int lm_messages_check_content(struct lm_messages_reader *r, const json_t *content, const char *role,
                              const char *where);
/* The messages: their blocks, calls and results, thinking, and the end. */
int lm_messages_check_list(struct lm_messages_reader *r);

/* Checks the body as the service does and fills in the prompt. */
int lm_messages_check(struct call *c);

#endif
