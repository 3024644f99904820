/*
 * write_through: changes of a table that memory mirrors.
 *
 * A change is written first and applied to memory once it is committed:
 *
 *     write    store thread  writes the row; may run more than once
 *     apply    loop          committed: updates memory and notifies watchers
 *     done     loop          calls the caller back, with the error if nothing was written; NULL:
 *                            done and arg of the change are called, if any
 *     release  loop          frees the change
 *
 * A change begins with a struct write_through. The mirror must outlive its changes: free it after
 * the store is closed.
 */
#ifndef STORE_WRITE_THROUGH_H
#define STORE_WRITE_THROUGH_H

#include "base/error.h"
#include "store/store.h"

struct write_through_ops {
        store_fn *write;
        void (*apply)(void *change);
        store_done_fn *done;
        void (*release)(void *change);
};

struct write_through {
        const struct write_through_ops *ops;
        /* set before submitting: nothing is written, and done() gets this error */
        struct error refusal;
        store_done_fn *done;
        void *arg;
};

/* Takes the change over. done() is called later, never from here. */
void write_through_submit(struct store *s, void *change);

/* For a change inside another transaction: the store function, and what to call at its end. */
int write_through_write(struct store_tx *tx, void *change, struct error *err);
/* Applies it, unless there is an error, and releases it; done() is not called. */
void write_through_end(void *change, const struct error *err);

#endif
