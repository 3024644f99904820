/*
 * session_intake: stores the events of a program. Events, the session's row and what its approvals
 * become are one transaction, shared with all other requests that wait (group commit).
 */
#ifndef REMOTE_SESSION_INTAKE_H
#define REMOTE_SESSION_INTAKE_H

#include "remote/remote.h"
#include "remote/session_event.h"
#include "remote/session_find.h"

struct session_receipt {
        size_t accepted, duplicates;
};
/* err NULL: committed. ERR_MISSING: a session of somebody else; ERR_LIMIT: too many are active. */
typedef void session_intake_fn(void *arg, const struct session_receipt *receipt,
                               const struct error *err);

/* Takes the events. Calls done once, after the commit; remote_close waits for it. */
void session_intake(struct remote *r, const struct session_caller *by,
                    struct session_events *events, session_intake_fn *done, void *arg);

#endif
