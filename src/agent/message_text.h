/*
 * message_text: messages as plain text, for text-only agents. Pictures, reactions and deletions
 * become short notes in brackets.
 */
#ifndef AGENT_MESSAGE_TEXT_H
#define AGENT_MESSAGE_TEXT_H

#include "base/buf.h"
#include "road/turn/turn_run.h"

/* Appends the text or a note, and a line per file; never nothing. */
void message_text_add(struct buf *out, const struct incoming *in);
/*
 * The rule's prompt, the history if the agent gets one, and the messages, a line each; where there
 * may be several speakers, with their names. Yours to free.
 */
char *message_text_of_turn(const struct turn_run *run);
/* The bare texts, joined by line ends. Yours to free. */
char *message_text_of_run(const struct turn_run *run);

#endif
