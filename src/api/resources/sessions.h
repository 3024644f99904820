/*
 * sessions: shared by the routes about coding sessions.
 */
#ifndef API_RESOURCES_SESSIONS_H
#define API_RESOURCES_SESSIONS_H

#include "api/core/api_core.h"
#include "remote/session_command.h"

/*
 * A key sees the sessions that it reported itself; sessions:admin, without a restriction to
 * adapters, sees all of them.
 */
struct session_caller session_caller_of(const struct key *k);

#endif
