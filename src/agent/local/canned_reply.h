/*
 * play: an answer known beforehand, given step by step.
 *
 * What echo, demo and script share: steps are put together in the start hook and performed by a
 * timer, so that nothing is told before start has returned. The answer is everything said. The play
 * lives in run->agent_data and frees itself when it ends.
 *
 *     struct play *p = play_new(a, run);
 *     play_say(p, text, n);
 *     play_begin(p);
 */
#ifndef AGENT_LOCAL_CANNED_REPLY_H
#define AGENT_LOCAL_CANNED_REPLY_H

#include "agent/agent.h"

struct play;

struct play *play_new(struct agent *a, struct turn_run *run);
void play_wait(struct play *p, int64_t ms);
void play_progress(struct play *p, const char *label);
/* A piece of the answer: told as a delta when the steps are performed. */
void play_say(struct play *p, const char *text, size_t n);
/* Says the text word by word with a pause between them; a very long text hurries in the end. */
void play_say_words(struct play *p, const char *text, int64_t pause_ms);
/* Ends here with a failure; what was said so far goes before the notice. */
void play_fail(struct play *p, enum error_kind kind, const char *notice, const char *record);
/* Never ends by itself. */
void play_hang(struct play *p);
/* Nothing is told as a delta; the answer comes whole. */
void play_quietly(struct play *p);
/* Begins; the play ends with the turn. */
void play_begin(struct play *p);
/* The cancel hook of every agent that plays. */
void play_cancel(struct agent *a, struct turn_run *run);

/* What the turn's messages say, joined by line ends. Yours to free. */
char *play_heard(const struct turn_run *run);

#endif
