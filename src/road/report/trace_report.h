/*
 * trace_report: what happened to a message and why; the answer to `why`. In store functions.
 */
#ifndef ROAD_REPORT_TRACE_REPORT_H
#define ROAD_REPORT_TRACE_REPORT_H

#include "base/buf.h"
#include "base/error.h"
#include "road/incoming.h"
#include "store/store.h"

/*
 * id is an event ("evt-12"), a turn ("trn-7"), a delivery ("dlv-9"), a trace (32 hex digits), or
 * the platform's own key of a message. Appends one JSON object:
 *     {"id", "event", "decision", "turn", "deliveries": [{..., "attempts": [...]}], "traceId",
 *      "summary"}
 * event, decision and turn may be null; summary is one sentence. ERR_MISSING when the id is
 * unknown; on any error nothing is appended.
 */
int trace_report_write(struct store_tx *tx, const char *id, struct buf *json, struct error *err);

/*
 * Appends the summary of the sender's previous message in this chat, as a sentence for the chat: it
 * names the turn instead of errors, which only operators may see.
 */
int trace_report_last(struct store_tx *tx, const struct incoming *asked, struct buf *text,
                      struct error *err);

#endif
