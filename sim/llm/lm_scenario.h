/*
 * scenario: what the model answers.
 *
 * Rules come first, in their order; each may be used a number of times. Without a rule that fits,
 * the default scenario does what the person's lines say:
 *
 *     use bash: ls -l           call the tool with its first required parameter
 *     call read {"path":"x"}    call the tool with these arguments
 *     calls read {"path":"x"} read {"path":"y"}     several at once
 *     calls 3 bash {"command":"echo {n}"}           the same, three times
 *     think Let me see.         think, then do the next line
 *     say Hello                 say this, with the next call or at the end
 *     wait 500                  pause before what follows
 *     long 200                  say 200 words
 *     refuse, pause             end with refusal or pause_turn
 *     fail 529                  answer with this status
 *
 * One call, or one `calls`, is made per request; the next line waits for the results. Anything else
 * is repeated: "You said: ...". The plan is read from the messages alone, so a conversation goes on
 * after a restart of either side.
 */
#ifndef SIM_LLM_LM_SCENARIO_H
#define SIM_LLM_LM_SCENARIO_H

#include <jansson.h>

#include "base/error.h"
#include "sim/control.h"
#include "sim/llm/lm_call.h"

/* Fills in the answer. */
void lm_scenario_answer(struct world *w, const struct lm_prompt *p, const char *wire,
                        struct lm_answer *a);
/* The default scenario alone. */
void lm_scenario_default(const struct lm_prompt *p, struct lm_answer *a);
/* Replaces the rules by those of a file. */
int lm_scenario_load(struct world *w, const char *path, struct error *err);
/* POST /sim/scenario {"rules":[...]}: replaces them; POST /sim/next {"answer":...}: one more, once.
 */
control_fn lm_scenario_set, lm_scenario_next;

#endif
