/*
 * sl_emoji: Slack names emoji ("eyes"), the road uses Unicode. One table for both ways, of emoji
 * that people and agents react with.
 */
#ifndef PLATFORM_SLACK_SL_EMOJI_H
#define PLATFORM_SLACK_SL_EMOJI_H

#include <stddef.h>

/* The emoji of a name without colons, "thumbsup" or "+1::skin-tone-3"; NULL: not known. */
const char *sl_emoji_text(const char *name);
/*
 * Slack's name for an emoji, or for a name with or without colons (custom ones, too), in out. -1:
 * neither, or it does not fit.
 */
int sl_emoji_name(const char *emoji, char *out, size_t size);

#endif
