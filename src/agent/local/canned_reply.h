/*
 * canned_reply: a predefined reply, played step by step. For echo, demo and script.
 *
 * A timer runs the steps, because the road may not be called before start has returned. The answer
 * is all text said. The reply is in run->agent_data and frees itself at its end.
 */
#ifndef AGENT_LOCAL_CANNED_REPLY_H
#define AGENT_LOCAL_CANNED_REPLY_H

#include "agent/agent.h"
#include "road/turn/approval.h"

struct canned_reply;

struct canned_reply *canned_reply_new(struct agent *a, struct turn_run *run);
void canned_reply_wait(struct canned_reply *c, int64_t ms);
void canned_reply_progress(struct canned_reply *c, const char *label);
/* As one delta. */
void canned_reply_say(struct canned_reply *c, const char *text, size_t n);
/* Word by word with pauses. */
void canned_reply_say_words(struct canned_reply *c, const char *text, int64_t pause_ms);
/* The notice follows the text so far. */
void canned_reply_fail(struct canned_reply *c, enum error_kind kind, const char *notice,
                       const char *record);
/* Waits for an approval, which expires after ms; a refusal ends the reply. */
void canned_reply_ask(struct canned_reply *c, enum approvers approvers, int64_t ms,
                      const char *text);
/* Never ends by itself. */
void canned_reply_hang(struct canned_reply *c);
/* Sends no deltas. */
void canned_reply_set_whole(struct canned_reply *c);
void canned_reply_start(struct canned_reply *c);
void canned_reply_cancel(struct agent *a, struct turn_run *run);

#endif
