/*
 * said: a message as an agent reads it that takes nothing but text. A picture without a word, a
 * reaction or a deletion says something, too.
 */
#ifndef AGENT_MESSAGE_TEXT_H
#define AGENT_MESSAGE_TEXT_H

#include "base/buf.h"
#include "road/incoming.h"

/* Appends its text, or what stands for it, and a line for each file; never nothing. */
void said_add(struct buf *out, const struct incoming *in);

#endif
