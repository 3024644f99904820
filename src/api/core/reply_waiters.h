/*
 * reply_waiters: requests that posted a message and wait for the reply.
 *
 * A turn's end names its events; their waiters then read the reply from the rows. Rows are also
 * polled, because events without a turn journal nothing.
 */
#ifndef API_CORE_REPLY_WAITERS_H
#define API_CORE_REPLY_WAITERS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/core/api_core.h"
#include "base/buf.h"
#include "store/store.h"

struct reply_waiters *reply_waiters_new(struct api *a);
void reply_waiters_free(struct reply_waiters *w);
unsigned reply_waiters_count(const struct reply_waiters *w);
/* false: too many; answered with 503. */
bool reply_waiters_check(struct http_exchange *x);

/* Strings are borrowed for the call. */
struct awaited_reply {
        const char *status; /* "done", "failed", "cancelled", "skipped", "expired" */
        const char *text;   /* the answer or notice; NULL: none */
        const char *reason; /* of a skip or a failure; may be NULL */
        int64_t turn;       /* 0: none */
        int64_t tokens_in, tokens_cached, tokens_out;
};
/* The same for a reader: */
struct reply_outcome {
        bool ended;
        struct awaited_reply reply; /* borrows the others */
        struct buf text;
        char *reason;
};
void reply_outcome_init(struct reply_outcome *o);
void reply_outcome_release(struct reply_outcome *o);
/* On a store thread; may be repeated. */
int reply_outcome_read(struct store_tx *tx, int64_t event, struct reply_outcome *o,
                       struct error *err);

/* Called once. reply NULL: timeout, or the API closes. */
typedef void reply_waiter_fn(void *arg, const struct awaited_reply *reply);
struct reply_waiter;
/* Waits at most ms. now: the event may have ended already. Valid until fn is called. */
struct reply_waiter *reply_waiters_add(struct reply_waiters *all, int64_t event, bool now,
                                       int64_t ms, reply_waiter_fn *fn, void *arg);
/* Nobody waits any more: fn is not called. */
void reply_waiters_remove(struct reply_waiter *w);

#endif
