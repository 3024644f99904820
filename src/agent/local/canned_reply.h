/*
 * canned_reply: a reply known beforehand, given step by step. For echo, demo and script.
 *
 * Steps are added in start and performed by a timer, because nothing may reach the road before
 * start has returned. The answer is everything said. The reply lives in run->agent_data and frees
 * itself when it ends.
 *
 *     struct canned_reply *c = canned_reply_new(a, run);
 *     canned_reply_say(c, text, n);
 *     canned_reply_start(c);
 */
#ifndef AGENT_LOCAL_CANNED_REPLY_H
#define AGENT_LOCAL_CANNED_REPLY_H

#include "agent/agent.h"

struct canned_reply;

struct canned_reply *canned_reply_new(struct agent *a, struct turn_run *run);
void canned_reply_wait(struct canned_reply *c, int64_t ms);
void canned_reply_progress(struct canned_reply *c, const char *label);
/* Adds to the answer, as one delta. */
void canned_reply_say(struct canned_reply *c, const char *text, size_t n);
/* Says the text word by word with pauses; the end of a very long text is one piece. */
void canned_reply_say_words(struct canned_reply *c, const char *text, int64_t pause_ms);
/* Ends with a failure; the notice follows what was said so far. */
void canned_reply_fail(struct canned_reply *c, enum error_kind kind, const char *notice,
                       const char *record);
/* Never ends by itself. */
void canned_reply_hang(struct canned_reply *c);
/* Sends no deltas. */
void canned_reply_set_whole(struct canned_reply *c);
void canned_reply_start(struct canned_reply *c);
/* The cancel function of all three agents. */
void canned_reply_cancel(struct agent *a, struct turn_run *run);

#endif
