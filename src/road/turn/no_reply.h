/*
 * no_reply: answers by which an agent chooses silence.
 *
 *     answer  = marks marker anything | words
 *     marker  = "[SILENT]" in any case; "(SILENT)", "<SILENT>" and "{SILENT}" only as the whole
 *               answer
 *     marks   = blanks, quotes, code and emphasis marks, bullets, a code fence
 *     words   = those of a phrase in order, between filler words such as "at this time"; marks and
 *               punctuation do not count, a question mark does: a question is never silence
 *
 * The marker counts everywhere, because no person is meant to read it; phrases count only where the
 * policy has them, and only in short answers. A phrase that ends with "*" may be followed by
 * anything within that length. A link that happens to be named "SILENT" is an answer.
 */
#ifndef ROAD_NO_REPLY_H
#define ROAD_NO_REPLY_H

#include <stdbool.h>

#include "road/turn/reply_policy.h"

#define NO_REPLY_CHARS 100 /* default of reply_policy.no_reply_chars */

/* Does the text begin with the marker? */
bool no_reply_is_marked(const char *text);
/* Blank text: true only where the policy is ambient. */
bool no_reply_matches(const struct reply_policy *policy, const char *text);
/* The same for a partial text: may it become one? */
bool no_reply_may_follow(const struct reply_policy *policy, const char *text);

#endif
