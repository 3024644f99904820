/*
 * session_stream: commands for coding sessions as server-sent events, without gaps.
 *
 * A client first gets what the store has queued, read up to a number of the journal; then the hub
 * sends what was queued after that number.
 */
#ifndef API_COMPAT_SESSION_STREAM_H
#define API_COMPAT_SESSION_STREAM_H

#include "api/core/api_core.h"
#include "remote/session_intake.h"

void session_stream_serve(struct http_exchange *x, const char *session);

/*
 * session_commands.c, inside a store function: calls each() for the commands that wait, oldest
 * first. ERR_MISSING: no such session of the caller's.
 */
typedef void session_command_fn(void *arg, const struct session_command_row *row);
int session_commands_read(struct store_tx *tx, const struct session_caller *by, const char *session,
                          session_command_fn *each, void *arg, struct error *err);

#endif
