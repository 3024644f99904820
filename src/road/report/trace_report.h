/*
 * story: what became of a message, and why, told from the rows.
 */
#ifndef ROAD_REPORT_TRACE_REPORT_H
#define ROAD_REPORT_TRACE_REPORT_H

#include "base/buf.h"
#include "base/error.h"
#include "road/incoming.h"
#include "store/store.h"

/*
 * Inside a store function. id is an event ("evt-12"), a turn ("trn-7"), a delivery ("dlv-9"), a
 * trace (32 hex digits), or the platform's own key of a message. Appends one JSON object:
 *     {"id", "traceId", "summary", "event", "decision", "turn", "deliveries": [{..., "attempts":
 *     [...]}]}
 * event, decision and turn are null when there is none; summary is one sentence for a person.
 * ERR_MISSING when nothing is known by that id; on any error nothing is appended.
 */
int story_tell(struct store_tx *tx, const char *id, struct buf *json, struct error *err);

/*
 * What became of the last message that the sender of `asked` wrote in the same place before, as a
 * sentence for a chat: without the errors, which are the operator's, but with a number under which
 * he finds them.
 */
int story_of_last(struct store_tx *tx, const struct incoming *asked, struct buf *text,
                  struct error *err);

#endif
