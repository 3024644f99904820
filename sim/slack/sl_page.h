/*
 * page: cursors of lists. A cursor is opaque to apps, and has characters that a form must encode.
 */
#ifndef SIM_SLACK_SL_PAGE_H
#define SIM_SLACK_SL_PAGE_H

#include "sim/slack/sl_call.h"

/*
 * Reads "cursor" (0: the first page) and "limit" (between 1 and most). 0, or -1 after
 * sl_call_fail: invalid_cursor, invalid_limit.
 */
int sl_page_read(struct slack_call *c, int64_t fallback, int64_t most, int64_t *from,
                 int64_t *limit);
/* Sets response_metadata.next_cursor; next 0: the last page. */
void sl_page_set(struct slack_call *c, int64_t next);

#endif
