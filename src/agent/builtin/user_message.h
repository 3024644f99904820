/*
 * user_message: what people said, as the model sees it and as it is stored:
 *
 *     [2026-11-16 10:00:00+00:00] [Ann]: what is in this file?
 *
 *     <attachments>
 *     /workspace/channels/tg/42/attachments/7-report.csv
 *     </attachments>
 *
 * Images are blocks of their own. The time is in the message, never in the system prompt, which
 * must stay the same to be cached.
 */
#ifndef AGENT_BUILTIN_USER_MESSAGE_H
#define AGENT_BUILTIN_USER_MESSAGE_H

#include <jansson.h>

#include "road/turn/turn_run.h"

/*
 * asker: the sender_id whose turn it is; messages of others make it untrusted. images: the model
 * takes them.
 */
json_t *user_message(const struct incoming *const *inputs, unsigned count, const char *asker,
                     bool images);
/*
 * Puts earlier lines that the model has not seen before it: those after the last step, at after_ms,
 * that were said to no agent; all, if there is no step (0).
 */
void user_message_add_history(json_t *message, const struct turn_run *run, int64_t after_ms);
/* A remark of ours. origin: why, "cut". */
json_t *user_message_note(const char *origin, const char *text);

#endif
