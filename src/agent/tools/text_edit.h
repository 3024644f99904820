/*
 * text_edit: replaces one exact piece of a text.
 */
#ifndef AGENT_TOOLS_TEXT_EDIT_H
#define AGENT_TOOLS_TEXT_EDIT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct text_edit {
        struct slice old, new;
};

/*
 * Replaces `old`, which must occur exactly once, in *text, and appends what changed to *diff:
 * numbered lines with four lines around them. *line: where the change begins. In a text with CR LF
 * line ends, those of the edit become such. -1 with a text for the model that helps it to find the
 * right piece; *text is unchanged then.
 */
int text_edit_apply(struct buf *text, const struct text_edit *edit, struct buf *diff, int64_t *line,
                    struct error *err);

#endif
