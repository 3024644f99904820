/*
 * sl_card: a card as blocks and an attachment with a coloured edge.
 *
 * The title is a block of the message itself, and its text for notifications; all else is in the
 * attachment, with the buttons.
 */
#ifndef PLATFORM_SLACK_SL_CARD_H
#define PLATFORM_SLACK_SL_CARD_H

#include <jansson.h>

#include "base/error.h"

/* Characters; besides the limits of sl_blocks.h. */
#define SL_CARD_FIELDS 10 /* fields of a section, side by side */
#define SL_CARD_FIELD  2000

/*
 * Sets text, blocks and attachments of a call from the payload's card, text and buttons. -1: a
 * button is impossible.
 */
int sl_card_add(json_t *args, const json_t *payload, struct error *err);
/* The same as text, after Slack has refused it; the buttons stay. */
int sl_card_add_plain(json_t *args, const json_t *payload, struct error *err);

#endif
