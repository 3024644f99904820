/*
 * gate: a store whose writer is held up. What is written while the gate is closed waits, and
 * becomes one transaction when it opens.
 *
 *     struct gate gate = { 0 };
 *
 *     gate_close(&gate, store);
 *     ... writes ...
 *     gate_open(&gate);
 *
 * It must be opened before the store is closed, and outlive that.
 */
#ifndef TESTS_LIB_GATE_H
#define TESTS_LIB_GATE_H

#include <stdatomic.h>

#include "store/store.h"

struct gate {
        atomic_bool entered, open;
};

/* Returns when the writer stands at it: everything written before is stored. */
void gate_close(struct gate *g, struct store *s);
void gate_open(struct gate *g);

#endif
