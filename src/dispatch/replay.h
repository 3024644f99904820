/*
 * replay: what another configuration would have decided about past events.
 *
 * Decides events of the journal again, at their time; sends and stores nothing. Turns end, cost and
 * start threads as they did. The hour before the first reported event is replayed silently, for
 * realistic counters and sessions.
 */
#ifndef DISPATCH_REPLAY_H
#define DISPATCH_REPLAY_H

#include "dispatch/dispatch.h"

/* NULL: unknown. */
struct replay_decision {
        bool answers;      /* an agent runs */
        const char *agent; /* when it answers */
        const char *rule;
        const char *reason; /* when it does not */
};

struct replay_row {
        const struct incoming *in;
        int64_t time_ms; /* of the decision */
        struct replay_decision before, now;
        bool differs; /* other answer, agent or rule */
};
typedef void replay_fn(void *arg, const struct replay_row *row);

struct replay_sum {
        int64_t events, answered_before, answered_now;
        int64_t begins, ends, moves; /* answered only now, only before, by another agent or rule */
};

/*
 * In a store function. Calls fn for events from since_ms on (after_event > 0: after that one),
 * oldest first. Leaves dispatch's clock at the last event.
 */
int replay_run(struct dispatch *d, struct store_tx *tx, int64_t since_ms, int64_t after_event,
               replay_fn *fn, void *arg, struct replay_sum *sum, struct error *err);

#endif
