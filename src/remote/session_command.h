/*
 * session_command: what people tell a session, from the row to its last state.
 *
 * Every step is a row and a journal event in one transaction: session.command.queued, .delivered,
 * .seen, .failed, .expired or .superseded, with a payload of "sessionId", "session" ("ses-1"),
 * "commandId", "action", "content", "state", "by" (who gave it), "displayName", "message" (the id
 * of the message that gave it), "approvalId", "decision", "reason", "error", as far as they apply.
 */
#ifndef REMOTE_SESSION_COMMAND_H
#define REMOTE_SESSION_COMMAND_H

#include "bus/bus.h"
#include "remote/session_intake.h"

#define SESSION_COMMAND_MAX 16384 /* bytes of a content */

/* Writes a new id for session_command_row.command. */
char *session_command_id(char out[SESSION_COMMAND_ID_SIZE]);

/*
 * Inside a store function: queues it. 1: queued; 0: the request key is known, *id is its row;
 * -1: ERR_LIMIT: `most` wait already, ERR_CONFLICT: the session has ended. A decision is queued in
 * any case, and also ends its approval: ERR_CONFLICT if somebody else did.
 */
int session_command_queue(struct store_tx *tx, struct bus_batch *batch,
                          const struct session_row *session, const struct session_command_row *row,
                          int64_t most, int64_t *id, struct error *err);
/* Inside a store function: queued decisions about this approval come too late. */
int session_command_supersede(struct store_tx *tx, struct bus_batch *batch,
                              const struct session_row *session, const char *approval,
                              int64_t now_ms, struct error *err);
/* Inside a store function: its time is over. 1; 0: it was fetched meanwhile; -1. */
int session_command_expire(struct store_tx *tx, struct bus_batch *batch,
                           const struct session_command_row *row, int64_t now_ms,
                           struct error *err);

struct session_ack {
        struct session_caller by;
        const char *command;
        enum session_command_state state; /* delivered, seen, failed or superseded */
        const char *error;                /* may be NULL */
        /* The program's name for this attempt: the same again is no duplicate. May be NULL. */
        const char *receipt;
        int64_t now_ms;
        /* results */
        enum session_command_state now;
        /* It had this state by another receipt, or a later one: the program must do nothing. */
        bool duplicate;
};
/* Inside a store function. 0 or -1: ERR_MISSING, or ERR_CONFLICT when it has expired. */
int session_command_ack(struct store_tx *tx, struct bus_batch *batch, struct session_ack *ack,
                        struct error *err);

/* The object that programs get, as an element or the root. */
void session_command_json(struct buf *out, const struct session_command_row *row);

#endif
