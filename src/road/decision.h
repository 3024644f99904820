/*
 * decision: what dispatch says about an event, and what the road asks of dispatch.
 */
#ifndef ROAD_DECISION_H
#define ROAD_DECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "road/incoming.h"
#include "road/reply_policy.h"
#include "store/store.h"

struct dispatch;
struct turn_run;
struct turn_outcome;

/* A message to the bot itself. The road carries it out in the transaction of the decision. */
enum road_command {
        COMMAND_NONE,
        COMMAND_NEW,     /* resets the conversation: nothing before counts as history */
        COMMAND_STOP,    /* cancels the sender's turns, and those of the shared conversation */
        COMMAND_STATUS,  /* describes what is running and queued */
        COMMAND_WHY,     /* reports what became of the sender's last message */
        COMMAND_HANDLED, /* dispatch has done it; the decision's reason and notice are the result */
};

/*
 * A further write in a transaction of the road. fn may run more than once; done is called once,
 * after the commit, and frees arg.
 */
struct tx_extra {
        store_fn *fn; /* NULL: none */
        void (*done)(void *arg);
        void *arg;
};

/* Strings are borrowed; the road copies what it needs before it returns to the loop. */
struct decision {
        bool trigger;
        bool expired; /* stored, but too old to answer */
        const char *agent;
        const char *rule;
        const char *reason;  /* why it did not trigger: a sentence for the trigger log */
        int64_t debounce_ms; /* 0: start at once */
        int64_t debounce_max_ms;
        /* how many turns the sender may cause in this channel */
        int64_t turns, turns_seconds;
        /* not triggered: sent to the channel, stored in the transaction of the decision */
        const char *notice;
        /* not triggered, but agent is set: add the text to the conversation's transcript */
        bool remember;
        /* the conversation is the sender's own in this channel; for commands as for messages */
        bool per_person;
        const char *session; /* names the conversation for agents; NULL: none */
        struct reply_policy policy;
        enum road_command command;
        struct tx_extra extra; /* written whatever the decision is */
};

/*
 * What would become of a message that triggers. Dispatch asks once, when all guards that need no
 * answer have passed; those that count turns follow.
 */
enum placement { PLACEMENT_NEW_TURN, PLACEMENT_JOINS_TURN, PLACEMENT_REFUSED };
struct placement_query {
        /* Reads agent, per_person and policy. PLACEMENT_REFUSED: sets reason. */
        enum placement (*ask)(void *arg, struct decision *d);
        void *arg;
};

/* The contract with dispatch. */
struct road_dispatch {
        struct dispatch *dispatch;
        void (*decide)(struct dispatch *d, const struct incoming *in,
                       const struct placement_query *query, struct decision *out);
        /* A turn is about to end: *extra is stored together with its end. May be NULL. */
        void (*ending)(struct dispatch *d, const struct turn_run *run,
                       const struct turn_outcome *outcome, struct tx_extra *extra);
        /* The end is stored: the conversation was active until now. May be NULL. */
        void (*ended)(struct dispatch *d, const struct turn_run *run,
                      const struct turn_outcome *outcome);
};

#endif
