/*
 * said: a message as an agent reads it that takes nothing but text. A picture without a word, a
 * reaction or a deletion says something, too.
 */
#ifndef AGENT_MESSAGE_TEXT_H
#define AGENT_MESSAGE_TEXT_H

#include "base/buf.h"
#include "road/road.h"

/* Appends its text, or what stands for it, and a line for each file; never nothing. */
void message_text_add(struct buf *out, const struct incoming *in);
/* What the turn's messages say, joined by line ends. Yours to free. */
char *message_text_of_run(const struct turn_run *run);

#endif
