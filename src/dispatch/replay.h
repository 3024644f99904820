/*
 * replay: what another configuration would have decided about events that have happened.
 *
 * The events of the journal are decided again, in their order and at their time, by the same
 * evaluator; nothing is sent, nothing is stored. Counters and conversations are built up on the way
 * as they would have been: turns end when they ended, cost what they cost and began the threads
 * they began. Some time before the first event is replayed without being told, so that what was
 * going on then is known.
 */
#ifndef DISPATCH_REPLAY_H
#define DISPATCH_REPLAY_H

#include "dispatch/dispatch.h"

/* What was decided, or would be. NULL: nothing is known. */
struct replay_decision {
        bool answers;      /* an agent is asked */
        const char *agent; /* when it answers */
        const char *rule;
        const char *reason; /* when it does not */
};

struct replay_row {
        const struct incoming *in;
        int64_t time_ms; /* of the decision */
        struct replay_decision before, now;
        bool differs; /* another answer, agent or rule */
};
typedef void replay_fn(void *arg, const struct replay_row *row);

struct replay_sum {
        int64_t events, answered_before, answered_now;
        int64_t begins, ends, moves; /* answered only now, only before, by another agent or rule */
};

/*
 * Inside a store function. Events from since_ms on (after_event > 0: behind that one), oldest
 * first; fn is called for each. The dispatch's clock is that of the last event afterwards.
 */
int replay_run(struct dispatch *d, struct store_tx *tx, int64_t since_ms, int64_t after_event,
               replay_fn *fn, void *arg, struct replay_sum *sum, struct error *err);

#endif
