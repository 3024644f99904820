/*
 * turn_run: one run of an agent as the agent sees it, and what the road asks of agents.
 */
#ifndef ROAD_TURN_RUN_H
#define ROAD_TURN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "road/incoming.h"
#include "road/reply_policy.h"
#include "rows/reset_row.h"

struct agents;

enum agent_ability {
        /* Running a turn twice has no effect beyond its cost: interrupted turns are repeated. */
        AGENT_REPEATABLE = 1 << 0,
        AGENT_BATCHES = 1 << 1, /* takes several messages in one turn */
        AGENT_HISTORY = 1 << 2, /* wants the conversation so far */
        AGENT_STREAMS = 1 << 3, /* calls turn_delta */
        AGENT_CANCELS = 1 << 4, /* can be stopped while it works */
};

struct transcript_line {
        const char *role;    /* "user" or "assistant" */
        const char *name;    /* the speaker, when known; in channel history "discord:123" */
        const char *display; /* channel history: the speaker's display name; else NULL */
        const char *text;
        int64_t time_ms;
};

/* Valid until turn_finish or the cancel slot returns. */
struct turn_run {
        int64_t id;
        int64_t fence;
        int attempt;               /* 1 for the first */
        int64_t conversation;      /* number; shown as "conv-N" */
        int64_t reset_turn;        /* the turn of the conversation's last /new; 0: none */
        struct reset_turns resets; /* the same for memories that span conversations */
        const char *agent;
        const char *key; /* the same for every attempt: the agent's idempotency key */
        const char *trace;
        const char *adapter, *channel, *thread;
        const struct incoming *const *inputs; /* oldest first, at least one */
        unsigned input_count;
        /* oldest first; only with AGENT_HISTORY, or channel history */
        const struct transcript_line *history;
        unsigned history_count;
        const char *session; /* of the decision; NULL: none */
        const char *rule;    /* of the decision; NULL: none */
        enum reply_mode mode;
        const char *prompt; /* goes before the conversation; NULL: none */
        void *agent_data;   /* the agent's own */
};

struct turn_reply {
        enum error_kind kind; /* ERR_NONE: an answer; else the turn failed */
        /* posted in the chat: the answer, or a short notice; NULL or "": nothing */
        const char *text;
        const char *error; /* the full record of a failure, for the operator */
        int64_t tokens_in, tokens_out, cost_microusd;
        const char *const *parts; /* the text as messages of their own; NULL: it is one */
        unsigned part_count;
        const char *request_key; /* idempotency key of the first message; NULL: none */
};

/* Agents call these, never before the start slot has returned. */
void turn_delta(struct turn_run *run, const char *text, size_t n);      /* one more piece of text */
void turn_progress(struct turn_run *run, const char *label);            /* "reading the manual" */
void turn_finish(struct turn_run *run, const struct turn_reply *reply); /* once; frees run */

/* How a turn ended. */
struct turn_outcome {
        bool answered; /* something was posted */
        /* the answer began this thread, where the conversation continues; NULL: it did not */
        const char *thread;
        int64_t cost_microusd; /* of this run */
};

/* What becomes of answers that come from outside a turn's run, see late_reply.h. */
struct late_reply_policy {
        bool deliver_failed; /* deliver those to a failed turn; else discard them */
        int64_t max_replies; /* answers one turn may have */
};

/* The contract with agents. */
struct road_agents {
        struct agents *agents;
        unsigned (*abilities)(struct agents *as, const char *agent); /* 0: unknown agent */
        void (*start)(struct agents *as, struct turn_run *run);
        void (*cancel)(struct agents *as, struct turn_run *run); /* no callback follows */
        /*
         * Stops the run and finishes it with an answer from outside, as though the agent had given
         * it. False: the agent does not have it. May be NULL.
         */
        bool (*answer)(struct agents *as, struct turn_run *run, const struct turn_reply *reply);
        /* False: the agent takes no late replies. May be NULL. */
        bool (*late_replies)(struct agents *as, const char *agent, struct late_reply_policy *out);
};

#endif
