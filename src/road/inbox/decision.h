/*
 * decision: dispatch's decision about an event, and the road's contract with dispatch.
 */
#ifndef ROAD_DECISION_H
#define ROAD_DECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "road/incoming.h"
#include "road/turn/reply_policy.h"
#include "store/store.h"

struct dispatch;
struct turn_run;
struct turn_outcome;

/* Carried out in the decision's transaction. */
enum road_command {
        COMMAND_NONE,
        COMMAND_NEW,     /* reset the conversation */
        COMMAND_STOP,    /* cancel the sender's turns and those of the shared conversation */
        COMMAND_STATUS,  /* describe what is running and queued */
        COMMAND_WHY,     /* report on the sender's last message */
        COMMAND_RESEND,  /* decide about a delivery that may have arrived */
        COMMAND_APPROVE, /* decide about an approval */
        COMMAND_REFUSE,
        /* the road does those above */
        COMMAND_HANDLED, /* done by dispatch: reason and notice are the result */
        COMMAND_EFFECT,  /* done by the decision's effect; reason as above */
};

/*
 * A change made by a decision, written in its transaction after `extra`. The event outlives
 * committed, but not free.
 */
struct effect {
        /* Runs on a store thread, perhaps more than once. */
        int (*write)(struct store_tx *tx, struct effect *e, struct error *err);
        void (*committed)(struct effect *e);
        void (*free)(struct effect *e);
        /*
         * Appends the answer, Markdown of one message, read before the write: on a store thread,
         * in a read transaction, once; an empty one says nothing. NULL: it is known. An error: the
         * answer says that it cannot be looked up, and the write follows all the same.
         */
        int (*report)(struct store_tx *tx, struct effect *e, struct buf *answer, struct error *err);
};

/*
 * An extra write in one of the road's transactions. fn may run more than once. done frees arg; it
 * gets an error if nothing was written and nothing will be.
 */
struct tx_extra {
        store_fn *fn; /* NULL: none */
        store_done_fn *done;
        void *arg;
};

/* Strings are borrowed. */
struct decision {
        bool trigger;
        bool expired; /* stored, but too old to answer */
        const char *agent;
        const char *rule;
        const char *reason;  /* for the trigger log */
        const char *rules;   /* tried: JSON list of {"name", "matched", "why"}; NULL: none */
        int64_t debounce_ms; /* 0: start at once */
        int64_t debounce_max_ms;
        int64_t turns, turns_seconds; /* rate limit of the sender in this channel */
        const char *notice;           /* not triggered: sent to the chat */
        bool remember;                /* not triggered, agent set: add the text to the transcript */
        bool per_person;              /* the conversation is the sender's own */
        const char *session;          /* for agents; NULL: none */
        struct reply_policy policy;
        enum road_command command;
        struct effect *effect; /* COMMAND_EFFECT: the road's to free; else NULL */
        bool by_admin;         /* COMMAND_APPROVE, COMMAND_REFUSE: the sender is one */
        bool by_trusted;       /* the adapter's clients have a key */
        struct tx_extra extra; /* written in any case */
};

/* Where a triggering message would go. Dispatch asks once, before the guards that count turns. */
enum placement { PLACEMENT_NEW_TURN, PLACEMENT_JOINS_TURN, PLACEMENT_REFUSED };
struct placement_query {
        /* Reads agent, per_person and policy. PLACEMENT_REFUSED: sets reason. */
        enum placement (*ask)(void *arg, struct decision *d);
        /* Does the event answer an approval ("yes", "no")? May be NULL. */
        bool (*answers_approval)(void *arg, bool *approves);
        void *arg;
};

struct road_dispatch {
        struct dispatch *dispatch;
        void (*decide)(struct dispatch *d, const struct incoming *in,
                       const struct placement_query *query, struct decision *out);
        /* *extra is committed with the turn's end. May be NULL. */
        void (*ending)(struct dispatch *d, const struct turn_run *run,
                       const struct turn_outcome *outcome, struct tx_extra *extra);
        /* The end is stored. May be NULL. */
        void (*ended)(struct dispatch *d, const struct turn_run *run,
                      const struct turn_outcome *outcome);
};

#endif
