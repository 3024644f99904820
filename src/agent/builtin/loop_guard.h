/*
 * loop_guard: notices that a turn goes round in circles.
 *
 * The same call with the same result, or the same error of one tool, is answered with a warning the
 * third time and ends the turn the fifth time. Counted in the rows of the turn, so a restart
 * changes nothing.
 */
#ifndef AGENT_BUILTIN_LOOP_GUARD_H
#define AGENT_BUILTIN_LOOP_GUARD_H

#include "agent/builtin/steps.h"

#define GUARD_WARNS 3
#define GUARD_STOPS 5

/*
 * Marks a result of this turn, before it is stored, with what it is compared by ("same"), and adds
 * a warning if it repeats others.
 */
void loop_guard_mark(const struct steps *s, int64_t turn, const json_t *call, json_t *result);
/* NULL: go on; else why the turn must end, for people. */
const char *loop_guard_verdict(const struct steps *s, int64_t turn);

#endif
