/*
 * also: several of us may have something to write with one decision.
 */
#ifndef DISPATCH_TX_EXTRA_H
#define DISPATCH_TX_EXTRA_H

#include "road/road.h"

/* Adds a write to those the decision has; each is done in the order in which they were added. */
void tx_extra_add(struct decision *out, struct tx_extra extra);

#endif
