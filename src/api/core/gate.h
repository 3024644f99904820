/*
 * gate: the checks that every request passes before its body is read: where it comes from, its key,
 * the key's rate limit, the scope of the route, and the adapter of the path.
 *
 * The keyring is in memory, so none of this reads the store. The other ways to name an adapter
 * (enum reach) are checked in request.c, in row_scope.c and by the handlers that list.
 */
#ifndef API_CORE_GATE_H
#define API_CORE_GATE_H

#include <stdbool.h>

#include "net/http_server.h"

/* The server's gate hook; false: answered. */
bool gate_admits(void *api, struct http_exchange *x);

#endif
