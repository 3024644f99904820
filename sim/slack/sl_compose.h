/*
 * compose: what a request makes a message of: text, blocks, attachments, metadata; and Slack's
 * checks of them.
 */
#ifndef SIM_SLACK_SL_COMPOSE_H
#define SIM_SLACK_SL_COMPOSE_H

#include "sim/slack/sl_call.h"

#define SL_MARKDOWN_MAX 12000
#define SL_BLOCKS_MAX   50

/*
 * Fills m from the call's arguments. With `edit`, absent metadata stays, and text may have 4000
 * characters only. 0, or -1 after sl_call_fail: then m is unchanged.
 */
int sl_compose(struct slack_call *c, struct slack_message *m, bool edit);
/* Sets the metadata of args, if there is any; {} removes it. 0, or -1 after sl_call_fail. */
int sl_compose_metadata(struct slack_call *c, struct slack_message *m);
/* In code points. */
size_t sl_compose_length(const char *text);
/* Slack's error, with a sentence in `problem`; NULL: the blocks are fine. */
const char *sl_compose_check_blocks(const json_t *blocks, size_t most,
                                    char problem[SL_SPEC_PROBLEM_SIZE]);
/* The same of a modal or home tab. */
const char *sl_compose_check_view(const json_t *view, char problem[SL_SPEC_PROBLEM_SIZE]);
/* Writes the members "ts", "text", "thread_ts", "files", "message" of an entry. */
void sl_compose_record(const struct slack_call *c, struct buf *b, const struct slack_message *m);

#endif
