/*
 * turn_run: one run of an agent, and the road's contract with agents.
 */
#ifndef ROAD_TURN_RUN_H
#define ROAD_TURN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "road/incoming.h"
#include "road/turn/reply_policy.h"
#include "rows/conversation_row.h"

struct agents;
struct bus_batch;

enum agent_ability {
        AGENT_REPEATABLE = 1 << 0, /* interrupted turns may run again */
        AGENT_BATCHES = 1 << 1,    /* takes several messages in one turn */
        AGENT_HISTORY = 1 << 2,    /* wants the history */
        AGENT_STREAMS = 1 << 3,    /* calls turn_delta */
        AGENT_CANCELS = 1 << 4,    /* can be stopped */
        AGENT_RESUMES = 1 << 5,    /* goes on from stored steps, also those of another such agent */
        AGENT_STEERS = 1 << 6,     /* takes further messages while it runs, see turn_steer */
        AGENT_RECOVERS = 1 << 7,   /* knows whether it was given an interrupted turn */
};

struct transcript_line {
        const char *role;    /* "user" or "assistant" */
        const char *name;    /* "discord:123" in channel history; may be NULL */
        const char *display; /* channel history only */
        const char *text;
        int64_t time_ms;
        int64_t turn; /* 0: said to no agent */
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
        const char *goes_on_with; /* before a crash: that took over by failover; NULL: none */
        const char *key;          /* idempotency key, equal for all attempts */
        const char *trace;
        const char *adapter, *channel, *thread;
        const struct incoming *const *inputs; /* oldest first, at least one */
        unsigned input_count;
        const struct transcript_line *history; /* oldest first */
        unsigned history_count;
        const char *session, *rule; /* of the decision; may be NULL */
        const char *given_to;       /* before a crash: the started agent that has it; NULL: none */
        enum reply_mode mode;
        const char *prompt;  /* precedes the conversation; may be NULL */
        const char *stopped; /* set when cancel is called: why; NULL: the process ends */
        bool interrupted;    /* a step could not be stored because the process ends */
        void *agent_data;    /* the agent's own; NULL when it starts */
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
        bool usage_line;         /* what the turn used is posted below the text */
        bool used_tools;         /* in any attempt: the details end with what the turn used */
};

/* Called by agents, never before the start slot has returned. */
void turn_delta(struct turn_run *run, const char *text, size_t n);
/* The streamed text so far is not the answer: the agent goes on working, and says more later. */
void turn_goes_on(struct turn_run *run);
void turn_progress(struct turn_run *run, const char *label);            /* "reading the manual" */
void turn_finish(struct turn_run *run, const struct turn_reply *reply); /* once; frees run */

/* ---- for agents that store what they do ---- */

/*
 * Stores a step: fn runs in a transaction, which is repeated until it commits, and returns 1; 0 if
 * the turn's fence is stale, having written nothing; or -1. Then done is called once: stored is
 * false if the turn is no longer ours, or the process ends (run->interrupted; cancel follows). The
 * turn's end waits for it, so that run stays valid until done, also after cancel. The deadline of
 * the turn starts again. False: the process ends, and nothing is called.
 */
typedef int turn_step_fn(struct store_tx *tx, struct bus_batch *batch, void *arg,
                         struct error *err);
typedef void turn_step_done_fn(void *arg, bool stored);
bool turn_store_step(struct turn_run *run, turn_step_fn *fn, turn_step_done_fn *done, void *arg);

/*
 * The agent `from` failed without effect, and `to` takes the turn over once that is stored, so that
 * a crash cannot give it to both; done is called as above. The turn's end names the last agent and
 * those that failed, and sums what they cost. May be called during the start slot.
 */
struct turn_failover {
        const char *from, *to, *why;
        int64_t tokens_in, tokens_cached, tokens_out, cost_microusd; /* of `from` */
};
bool turn_failed_over(struct turn_run *run, const struct turn_failover *f, turn_step_done_fn *done,
                      void *arg);

/* The agent is at work: the deadline of the turn starts again. */
void turn_keep_alive(struct turn_run *run);
/* The agent ends the turn by limits of its own: no deadline, until another agent takes over. */
void turn_drop_deadline(struct turn_run *run);

/* Reads, on a store thread; done is called once. run stays valid until then, also after cancel. */
void turn_load(struct turn_run *run, store_fn *fn, store_done_fn *done, void *arg);

/*
 * Messages that wait in the lane become inputs of the turn, in the transaction of a step that holds
 * them: take is called with them before turn_steer returns, write and done are as above. False:
 * nothing waits, and nothing is called.
 */
struct turn_steering {
        void (*take)(void *arg, const struct incoming *const *inputs, unsigned count);
        turn_step_fn *write;
        turn_step_done_fn *done;
};
bool turn_steer(struct turn_run *run, const struct turn_steering *s, void *arg);

/*
 * Details of the work, in the thread of the turn's main message, which appears with the first of
 * them. `store` is called in the transaction of the step that the text is about, `stored` after
 * it; both take NULL, and `stored` frees it.
 */
struct turn_detail;
bool turn_shows_details(const struct turn_run *run);
struct turn_detail *turn_detail_new(struct turn_run *run, const char *markdown); /* may be NULL */
int turn_detail_store(struct store_tx *tx, struct bus_batch *batch, const struct turn_detail *d,
                      struct error *err);
void turn_detail_stored(struct turn_detail *d, bool stored);

/* In a step's transaction: an event of this turn. payload: a JSON object with "turnId". */
int turn_append_event(struct store_tx *tx, struct bus_batch *batch, const struct turn_run *run,
                      const char *type, const char *payload, struct error *err);
/* The same for listeners only. */
void turn_publish_live(struct turn_run *run, const char *type, const char *payload);
/* Stops the deadline while a person is asked, and starts it again. */
void turn_wait_for_person(struct turn_run *run, bool waits);

/* What the steps of all attempts used. The turn's end adds it to its reply, however it ends. */
struct turn_usage {
        int64_t tokens_in, tokens_cached, tokens_out, cost_microusd;
};
void turn_set_usage(struct turn_run *run, const struct turn_usage *total);

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
        /*
         * Messages wait behind a run of an agent that steers, and turn_steer may take them once
         * this has returned. May be NULL.
         */
        void (*waiting)(struct agents *as, struct turn_run *run);
        /* Ends the run with an answer from outside. False: not running. May be NULL. */
        bool (*answer)(struct agents *as, struct turn_run *run, const struct turn_reply *reply);
        /* Appends what agents run in a chat beside turns, for /status. May be NULL. */
        void (*describe)(struct agents *as, const char *adapter, const char *channel,
                         struct buf *out);
        /* False: no late replies. May be NULL. */
        bool (*late_replies)(struct agents *as, const char *agent, struct late_reply_policy *out);
};

#endif
