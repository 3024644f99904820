/*
 * sl_blocks: Block Kit for what text alone shows badly: tables, long code, buttons.
 *
 * The text is mrkdwn as the renderer writes it. Blocks repeat all of it, because Slack then shows
 * the text in notifications only.
 */
#ifndef PLATFORM_SLACK_SL_BLOCKS_H
#define PLATFORM_SLACK_SL_BLOCKS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

/* of Slack */
#define SL_BLOCKS_MAX        50
#define SL_BLOCKS_TEXT_MAX   3000 /* characters of a section */
#define SL_BLOCKS_BUTTONS    25   /* of a row */
#define SL_BLOCKS_LABEL_MAX  75   /* characters of a button */
#define SL_BLOCKS_VALUE_MAX  2000
#define SL_BLOCKS_TABLE_ROWS 100
#define SL_BLOCKS_TABLE_COLS 20
#define SL_BLOCKS_ROWS_MAX   10 /* of buttons; ours */

/*
 * Makes the blocks of a text and of buttons, rows of {"text", "data" or "url"} (NULL: none); *out
 * is yours, NULL: the text alone says it. plain: only buttons need blocks, as after Slack refused
 * others. -1: a button is impossible.
 */
int sl_blocks_make(const char *text, const json_t *buttons, bool plain, json_t **out,
                   struct error *err);
/* Adds sections with the text. */
void sl_blocks_add_text(json_t *blocks, const char *text);
/* Adds rows of buttons; NULL: none. */
int sl_blocks_add_buttons(json_t *blocks, const json_t *rows, struct error *err);

#endif
