/*
 * row_scope: holds restricted keys to the rows of their adapters (REACH_ROW).
 *
 * A row of another adapter is answered like a missing one, so its existence stays hidden.
 */
#ifndef API_CORE_ROW_SCOPE_H
#define API_CORE_ROW_SCOPE_H

#include "api/core/routes.h"

/* The server's run function of these routes: checks the row, then request_run. */
void row_scope_run(struct http_exchange *x);

/* By the kind of row; see row_scope_fn. */
row_scope_fn row_scope_turn, row_scope_delivery, row_scope_event, row_scope_dead_letter,
        row_scope_trace;

#endif
