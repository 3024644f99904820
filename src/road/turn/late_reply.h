/*
 * late_reply: answers to a turn from outside its run: a POST to its reply URL, or the response of a
 * call that outlived it.
 *
 * The first ends a running turn. Later ones are delivered or discarded by the agent's policy, and
 * journaled as turn.reply.
 */
#ifndef ROAD_LATE_REPLY_H
#define ROAD_LATE_REPLY_H

#include <stdint.h>

#include "base/error.h"
#include "road/turn/turn_run.h"

struct road;

enum late_reply_outcome {
        LATE_REPLY_ENDED,     /* it ended the turn */
        LATE_REPLY_DELIVERED, /* stored as a delivery */
        LATE_REPLY_DISCARDED, /* see why */
        LATE_REPLY_DUPLICATE, /* known idempotency key */
};
const char *late_reply_outcome_name(enum late_reply_outcome outcome);

struct late_reply_result {
        enum late_reply_outcome outcome;
        int64_t delivery; /* 0: none */
        char why[100];
        /* ERR_MISSING: no such turn; ERR_BUSY: try again; ERR_CONFLICT: no further answers
         * accepted */
        struct error error;
};
typedef void late_reply_fn(void *arg, const struct late_reply_result *result);

/* Calls fn once the outcome is stored. key: for idempotency, may be NULL. Copies. */
void late_reply_submit(struct road *r, int64_t turn, const char *key,
                       const struct turn_reply *reply, late_reply_fn *fn, void *arg);
/*
 * A response that arrived after the turn ended. Copies. Of several, all but one have a
 * reply->request_key, which tells them apart.
 */
void late_reply_overdue(struct road *r, int64_t turn, const struct turn_reply *reply);

#endif
