/*
 * play: an answer known beforehand, given step by step.
 *
 * What echo, demo and script share: steps are put together in the start hook and performed by a
 * timer, so that nothing is told before start has returned. The answer is everything said. The play
 * lives in run->agent_data and frees itself when it ends.
 *
 *     struct canned_reply *p = canned_reply_new(a, run);
 *     canned_reply_say(p, text, n);
 *     canned_reply_start(p);
 */
#ifndef AGENT_LOCAL_CANNED_REPLY_H
#define AGENT_LOCAL_CANNED_REPLY_H

#include "agent/agent.h"

struct canned_reply;

struct canned_reply *canned_reply_new(struct agent *a, struct turn_run *run);
void canned_reply_wait(struct canned_reply *p, int64_t ms);
void canned_reply_progress(struct canned_reply *p, const char *label);
/* A piece of the answer: told as a delta when the steps are performed. */
void canned_reply_say(struct canned_reply *p, const char *text, size_t n);
/* Says the text word by word with a pause between them; a very long text hurries in the end. */
void canned_reply_say_words(struct canned_reply *p, const char *text, int64_t pause_ms);
/* Ends here with a failure; what was said so far goes before the notice. */
void canned_reply_fail(struct canned_reply *p, enum error_kind kind, const char *notice,
                       const char *record);
/* Never ends by itself. */
void canned_reply_hang(struct canned_reply *p);
/* Nothing is told as a delta; the answer comes whole. */
void canned_reply_set_whole(struct canned_reply *p);
/* Begins; the play ends with the turn. */
void canned_reply_start(struct canned_reply *p);
/* The cancel hook of every agent that plays. */
void canned_reply_cancel(struct agent *a, struct turn_run *run);

#endif
