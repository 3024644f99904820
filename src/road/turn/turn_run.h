/*
 * turn_run: one run of an agent, and the road's contract with agents.
 */
#ifndef ROAD_TURN_RUN_H
#define ROAD_TURN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "road/incoming.h"
#include "road/turn/reply_policy.h"
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
        const char *name;    /* "discord:123" in channel history; may be NULL */
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
        int64_t reset_turn;        /* turn of the conversation's last /new; 0: none */
        struct reset_turns resets; /* the same across conversations */
        const char *agent;
        const char *key; /* idempotency key, equal for all attempts */
        const char *trace;
        const char *adapter, *channel, *thread;
        const struct incoming *const *inputs; /* oldest first, at least one */
        unsigned input_count;
        const struct transcript_line *history; /* oldest first */
        unsigned history_count;
        const char *session, *rule; /* of the decision; may be NULL */
        enum reply_mode mode;
        const char *prompt; /* precedes the conversation; may be NULL */
        void *agent_data;   /* the agent's own; NULL when it starts */
};

struct turn_reply {
        enum error_kind kind; /* ERR_NONE: an answer; else the turn failed */
        const char *text;     /* answer or short notice to post; NULL or "": nothing */
        const char *error;    /* for the operator */
        int64_t tokens_in, tokens_out, cost_microusd;
        int64_t tokens_cached;    /* of tokens_in, those from the service's cache */
        const char *const *parts; /* the text as several messages; NULL: one */
        unsigned part_count;
        const char *request_key; /* of the first message; may be NULL */
        bool accepted;           /* no text: the agent answers later, if at all */
};

/* Called by agents, never before the start slot has returned. */
void turn_delta(struct turn_run *run, const char *text, size_t n);
/* The streamed text so far is not the answer: the agent goes on working, and says more later. */
void turn_goes_on(struct turn_run *run);
void turn_progress(struct turn_run *run, const char *label);            /* "reading the manual" */
void turn_finish(struct turn_run *run, const struct turn_reply *reply); /* once; frees run */

/*
 * The agent `from` failed without effect, and `to` takes the turn over. The turn's end names the
 * last agent and those that failed, and sums what they cost. May be called during the start slot.
 */
struct turn_failover {
        const char *from, *to, *why;
        int64_t tokens_in, tokens_cached, tokens_out, cost_microusd; /* of `from` */
};
void turn_failed_over(struct turn_run *run, const struct turn_failover *f);

struct turn_outcome {
        bool answered;      /* something was posted */
        const char *thread; /* started by the answer; NULL: none */
        int64_t cost_microusd;
};

/* See late_reply.h. */
struct late_reply_policy {
        bool deliver_failed; /* else discard replies to failed turns */
        int64_t max_replies; /* answers per turn */
};

struct road_agents {
        struct agents *agents;
        unsigned (*abilities)(struct agents *as, const char *agent); /* 0: unknown agent */
        void (*start)(struct agents *as, struct turn_run *run);
        void (*cancel)(struct agents *as, struct turn_run *run); /* no callback follows */
        /* Ends the run with an answer from outside. False: not running. May be NULL. */
        bool (*answer)(struct agents *as, struct turn_run *run, const struct turn_reply *reply);
        /* False: no late replies. May be NULL. */
        bool (*late_replies)(struct agents *as, const char *agent, struct late_reply_policy *out);
};

#endif
