/*
 * store_rig: a store with one table, numbers(n, note), in a folder of its own.
 */
#ifndef TESTS_STORE_RIG_H
#define TESTS_STORE_RIG_H

#include "store/store.h"

struct store_rig {
        char *dir;
        struct loop *loop;
        struct store *store;
        struct store_options options;
};

extern const struct store_migration store_rig_schema[];

/* cmocka fixtures: *state is the rig. The store is not open yet. */
int store_rig_setup(void **state);
int store_rig_teardown(void **state);
struct store *store_rig_try_open(struct store_rig *r, struct error *err);
void store_rig_open(struct store_rig *r); /* or fails the test */
void store_rig_close(struct store_rig *r);
void store_rig_run(struct store_rig *r); /* until nothing is left to do */

/* A number to be written. */
struct rig_number {
        int64_t n;
        bool refuse;        /* the function fails */
        bool bad_statement; /* the statement fails, the function returns 0 */
        int runs;           /* how often the function ran */
        int completed;      /* how often the completion ran */
        struct error err;   /* of the completion */
        int order;          /* when it was completed, counted by *clock from 1 */
        int *clock;
};
int rig_number_put(struct store_tx *tx, void *number, struct error *err);
void rig_number_done(void *number, const struct error *err);
/* Submits it: store_write with these two. */
void rig_number_write(struct store_rig *r, struct rig_number *p);

/* Writes n numbers from `from` on. */
void store_rig_fill(struct store_rig *r, int64_t from, int n);
/* How many numbers are stored. */
int64_t store_rig_count(struct store_rig *r);

#endif
