/*
 * answer: what the model says, from the scenario to the bytes that are sent: fitted to the request,
 * cut at its limits, spoiled by faults, counted.
 */
#ifndef SIM_LLM_LM_ANSWER_H
#define SIM_LLM_LM_ANSWER_H

#include "base/buf.h"
#include "sim/llm/lm_call.h"

/* Answers a checked request: fills in c->out or c->pieces, or fails the call. */
void lm_answer_make(struct call *c);
/* Writes members "stop", "content" and "usage" of a journal's entry. */
void lm_answer_write(const struct call *c, struct buf *b);

/* Both add to the answer. arguments: JSON text. */
void lm_answer_text(struct lm_answer *a, const char *type, const char *text);
void lm_answer_call(struct lm_answer *a, const char *name, const char *arguments);

#endif
