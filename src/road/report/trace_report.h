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
 * Appends one JSON object about a message; trace_find.h says what the id may be:
 *     {"id", "event", "decision", "rules": [{"name", "matched", "why"}], "turn",
 *      "approvals": [...], "deliveries": [{..., "attempts": [...]}], "answerTo", "traceId",
 *      "summary", "steps": [...]}; of a message that was scheduled also "schedule" and "tick"
 * event, decision, turn and answerTo may be null; summary is one sentence. answerTo is set if the
 * id is that of a message of the bot: {"kind", "eventId", "turnId", "deliveryId"}.
 *
 * Where several messages have the id: {"id", "candidates": [...], "summary"}, items as in
 * trace_report_recent.
 *
 * adapters (",api,tg,"; NULL: all): rows of others are missing. ERR_MISSING when the id is unknown;
 * on any error nothing is appended.
 */
int trace_report_write(struct store_tx *tx, const char *id, const char *adapters, struct buf *json,
                       struct error *err);

/* Which messages; NULL: any. */
struct trace_filter {
        const char *adapter, *channel;
        const char *adapters; /* as above */
        int64_t before;       /* events below this number; 0: all */
        int64_t limit;
};
/*
 * Appends JSON objects, with commas, for the last messages of people, newest first:
 *     {"id", "at", "instanceId", "channel", "threadId", "messageId", "direction", "sender", "text",
 *      "status", "agent", "summary"}
 * *last: the number of the last event; 0: none. *more: there are further ones.
 */
int trace_report_recent(struct store_tx *tx, const struct trace_filter *f, struct buf *json,
                        int64_t *last, bool *more, struct error *err);

/*
 * Appends the summary of the sender's previous message in this chat, as a sentence for the chat: it
 * names the turn instead of errors, which only operators may see.
 */
int trace_report_last(struct store_tx *tx, const struct incoming *asked, struct buf *text,
                      struct error *err);

#endif
