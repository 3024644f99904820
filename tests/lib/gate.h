/*
 * gate: blocks the writer of a store. Writes wait while the gate is closed, and become one
 * transaction when it opens.
 *
 *     struct gate gate = { 0 };
 *
 *     gate_close(&gate, store);
 *     ... writes ...
 *     gate_open(&gate);
 *
 * Open it before the store is closed; it must live longer than the store.
 */
#ifndef TESTS_LIB_GATE_H
#define TESTS_LIB_GATE_H

#include <stdatomic.h>

#include "store/store.h"

struct gate {
        atomic_bool entered, open;
};

/* Returns when the writer is blocked: everything written before is stored. */
void gate_close(struct gate *g, struct store *s);
void gate_open(struct gate *g);

#endif
