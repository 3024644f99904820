/*
 * tx_extra: what dispatch writes in the transaction of a decision.
 */
#ifndef DISPATCH_TX_EXTRA_H
#define DISPATCH_TX_EXTRA_H

#include "road/road.h"

/* Adds a write to those the decision has; they run in the order in which they were added. */
void tx_extra_add(struct decision *out, struct tx_extra extra);
/* Adds a change (write_through.h), which is applied and released when the decision is committed. */
void tx_extra_add_change(struct decision *out, void *change);

#endif
