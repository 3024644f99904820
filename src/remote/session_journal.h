/*
 * session_journal: what we say of a session, and no program reported. The payload of such an event
 * begins with "sessionId" and "session" ("ses-1").
 */
#ifndef REMOTE_SESSION_JOURNAL_H
#define REMOTE_SESSION_JOURNAL_H

#include "base/jsonw.h"
#include "bus/bus.h"
#include "rows/session_row.h"

/* Opens the payload, for further members. */
void session_journal_begin(struct buf *payload, const struct session_row *session);
/*
 * Inside a store function: closes and releases the payload, and appends the event, of which type,
 * time_ms and perhaps the chat are given. 0 or -1.
 */
int session_journal_end(struct store_tx *tx, struct bus_batch *batch,
                        const struct session_row *session, struct bus_event *e, struct buf *payload,
                        struct error *err);

#endif
