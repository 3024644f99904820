/*
 * dry_run: explains the decision about an event, changing nothing.
 */
#ifndef DISPATCH_DRY_RUN_H
#define DISPATCH_DRY_RUN_H

#include <jansson.h>

#include "dispatch/dispatch.h"

/*
 * An event as the API shows events:
 *     {"type": "message.received", "instanceId": "tg", "channel": "7", "payload": {"chatType":
 *     "dm", "sender": {"id": "7"}, "text": "hi"}}
 * instanceId and channel are required. Yours to incoming_free; NULL with ERR_INVALID.
 */
struct incoming *dry_run_event(const json_t *event, struct error *err);
/* An event of the journal, in a store function. NULL with ERR_MISSING or ERR_INVALID. */
struct incoming *dry_run_find(struct store_tx *tx, int64_t seq, struct error *err);

/* DRY_RUN_OWN_RULES: for clients that must not see rules about other adapters. */
enum dry_run_rules { DRY_RUN_ALL_RULES, DRY_RUN_OWN_RULES };
/*
 * {"decision": {"trigger", "expired", "guard", "agent", "rule", "reason", "debounceMs", "mode",
 * "conversation", "command"}, "access": {"allowed", "why"}, "rateLimit": {"turns", "seconds",
 * "waitMs"}, "rules": [{"name", "matched", "why"}]}. guard: the one that refused; conversation: the
 * event continues one.
 */
void dry_run_explain(struct dispatch *d, const struct incoming *in, enum dry_run_rules which,
                     struct buf *json);

#endif
