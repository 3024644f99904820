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
#include "rows/conversation_row.h"

struct agents;

enum agent_ability {
        AGENT_REPEATABLE = 1 << 0, /* interrupted turns may run again */
        AGENT_BATCHES = 1 << 1,    /* takes several messages in one turn */
        AGENT_HISTORY = 1 << 2,    /* wants the history */
        AGENT_STREAMS = 1 << 3,    /* calls turn_delta */
        AGENT_CANCELS = 1 << 4,    /* can be stopped */
};

struct transcript_line {
        const char *role;    /* "user" or "assistant" */
        const char *name;    /* of the speaker; in channel history "discord:123"; may be NULL */
        const char *display; /* channel history only */
        const char *text;
        int64_t time_ms;
};

/* Valid until turn_finish or the cancel slot returns. */
struct turn_run {
        int64_t id;
        int64_t fence;
        int attempt;               /* 1 for the first */
        int64_t conversation;      /* shown as "conv-N" */
        int64_t reset_turn;        /* of the conversation's last /new; 0: none */
        struct reset_turns resets; /* the same for memory that spans conversations */
        const char *agent;
        const char *key; /* idempotency key, the same for every attempt */
        const char *trace;
        const char *adapter, *channel, *thread;
        const struct incoming *const *inputs; /* oldest first, at least one */
        unsigned input_count;
        const struct transcript_line *history; /* oldest first */
        unsigned history_count;
        const char *session, *rule; /* of the decision; may be NULL */
        enum reply_mode mode;
        const char *prompt; /* goes before the conversation; may be NULL */
        void *agent_data;   /* the agent's own */
};

struct turn_reply {
        enum error_kind kind; /* ERR_NONE: an answer; else the turn failed */
        const char *text;     /* posted: the answer or a short notice; NULL or "": nothing */
        const char *error;    /* of a failure, for the operator */
        int64_t tokens_in, tokens_out, cost_microusd;
        const char *const *parts; /* the text as several messages; NULL: it is one */
        unsigned part_count;
        const char *request_key; /* of the first message; may be NULL */
};

/* Agents call these, never before the start slot has returned. */
void turn_delta(struct turn_run *run, const char *text, size_t n);
void turn_progress(struct turn_run *run, const char *label);            /* "reading the manual" */
void turn_finish(struct turn_run *run, const struct turn_reply *reply); /* once; frees run */

struct turn_outcome {
        bool answered;      /* something was posted */
        const char *thread; /* begun by the answer; NULL: none */
        int64_t cost_microusd;
};

/* See late_reply.h. */
struct late_reply_policy {
        bool deliver_failed; /* to a failed turn; else discard */
        int64_t max_replies; /* answers one turn may have */
};

/* The contract with agents. */
struct road_agents {
        struct agents *agents;
        unsigned (*abilities)(struct agents *as, const char *agent); /* 0: unknown agent */
        void (*start)(struct agents *as, struct turn_run *run);
        void (*cancel)(struct agents *as, struct turn_run *run); /* no callback follows */
        /* Finishes the run with an answer from outside. False: it is not running. May be NULL. */
        bool (*answer)(struct agents *as, struct turn_run *run, const struct turn_reply *reply);
        /* False: the agent takes no late replies. May be NULL. */
        bool (*late_replies)(struct agents *as, const char *agent, struct late_reply_policy *out);
};

#endif
