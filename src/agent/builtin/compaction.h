/*
 * compaction: replaces the older part of a conversation by a summary when the model's window is
 * nearly full.
 *
 * The cut is before a message of a person or of the model, never between a call and its result.
 * An earlier summary is updated rather than summarised again. The message being worked on survives
 * verbatim. Memory, skills and rules are in the system prompt, which is not summarised.
 */
#ifndef AGENT_BUILTIN_COMPACTION_H
#define AGENT_BUILTIN_COMPACTION_H

#include "agent/builtin/steps.h"

/* The cut: steps from this index on are kept; 0: there is nothing to summarise. */
size_t compaction_cut(const struct steps *s, int64_t keep_tokens);
/* The request's only message, at most max_tokens long by estimate. */
json_t *compaction_request(const struct steps *s, size_t cut, int64_t max_tokens);
extern const char *const compaction_system; /* its system prompt */
/* The row's body; firstKept is the step at the cut. */
json_t *compaction_body(const struct steps *s, size_t cut, int64_t turn, const char *summary,
                        int64_t tokens_before);
/* Removes what a compaction at the end of the list covers. */
void compaction_apply(struct steps *s);

#endif
