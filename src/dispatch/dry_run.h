/*
 * dry_run: an event that never happened, or happened long ago, for trying rules.
 */
#ifndef DISPATCH_DRY_RUN_H
#define DISPATCH_DRY_RUN_H

#include <jansson.h>

#include "base/error.h"
#include "road/incoming.h"

/*
 * The event, written as the API shows events:
 *     {"type": "message.received", "instanceId": "tg", "channel": "7", "payload": {"chatType":
 *     "dm", "sender": {"id": "7"}, "text": "hi"}}
 * type may be absent; instanceId and channel are required. Yours to incoming_free; NULL with
 * ERR_INVALID.
 */
struct incoming *dry_run_event(const json_t *event, struct error *err);
/*
 * The event with this number, inside a store function. NULL with ERR_MISSING, or ERR_INVALID when
 * it is none that rules look at.
 */
struct incoming *dry_run_find(struct store_tx *tx, int64_t seq, struct error *err);

#endif
