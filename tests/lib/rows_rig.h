/*
 * rows_rig: a store with the tables of the schema, in a folder of its own.
 */
#ifndef TESTS_ROWS_RIG_H
#define TESTS_ROWS_RIG_H

#include "base/buf.h"
#include "store/store.h"

struct rows_rig {
        char *dir;
        struct store *store;
        struct buf found; /* for the text of a list */
};

/* cmocka fixtures: *state is the rig, its store is open. */
int rows_rig_setup(void **state);
int rows_rig_teardown(void **state);
#define ROWS_RIG_CASE(name) cmocka_unit_test_setup_teardown(name, rows_rig_setup, rows_rig_teardown)

/* Runs fn in a transaction that may write, with the rig as its argument; an error fails the test.
 */
void rows_rig_run(struct rows_rig *r, store_fn *fn);
/* Opens such a store in dir, without a rig and without a loop, or fails the test. */
struct store *rows_rig_open(const char *dir);

#endif
