/*
 * road: the way of a message, from the inbox over lanes and turns to the outbox.
 *
 *     inbox_receive ──► decide ──► lane ──► turn ──► outbox ──► send
 *
 * Everything is a row before it is an action. The road knows neither platforms nor agents: it asks
 * the hooks below. All functions run on the loop thread; results of transactions come back as
 * callbacks.
 *
 * Three promises are kept here and nowhere else:
 *  - an inbound event is acknowledged by the completion of its commit, and decided exactly once
 *    (unique adapter and key);
 *  - a lane (adapter, channel, thread, agent and perhaps person) has at most one running turn, and
 *    so has a session, over however many lanes it goes; what arrives meanwhile waits in its
 *    mailbox;
 *  - a turn's end and its deliveries are one transaction, guarded by the turn's fence.
 */
#ifndef ROAD_ROAD_H
#define ROAD_ROAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/settings.h"
#include "bus/bus.h"
#include "net/loop.h"
#include "net/pace.h"
#include "road/incoming.h"
#include "road/reply_policy.h"
#include "rows/delivery_row.h"
#include "rows/reset_row.h"
#include "store/store.h"

struct road;

/* ---- decisions (dispatch answers) ---- */

/*
 * What a message to the bot itself, rather than to its agent, asks for. The road does it in the
 * transaction of the decision.
 */
enum road_command {
        COMMAND_NONE,
        COMMAND_NEW, /* the conversation begins anew: nothing before counts as history */
        /* what runs and waits there is cancelled: the person's and what everybody shares */
        COMMAND_STOP,
        COMMAND_STATUS, /* tell what is going on in the conversation */
        COMMAND_WHY,    /* tell the story of the sender's last message before this one */
        /* whoever decided has done it: the decision's reason and notice are all of it */
        COMMAND_HANDLED,
};

/*
 * A further write of somebody else in a transaction of the road. May run more than once; `done` is
 * called once, when it is committed.
 */
struct tx_extra {
        store_fn *fn; /* NULL: none */
        void (*done)(void *arg);
        void *arg; /* yours to free in done */
};

/*
 * A command has per_person as a message would: it says whose conversation is meant, with whichever
 * agent.
 */
struct decision {
        bool trigger;
        bool expired; /* stored, but too old to answer */
        /* borrowed; the road copies what it needs before it returns to the loop */
        const char *agent;
        const char *rule;
        const char *reason;  /* why not; for the trigger log, a sentence for a person */
        int64_t debounce_ms; /* 0: at once */
        int64_t debounce_max_ms;
        /* how many turns the sender may cause here; for the admit hook */
        int64_t turns, turns_seconds;
        /*
         * told by the road to the admit hook: it adds to a turn that waits, rather than to begin
         * one
         */
        bool joins_turn;
        /*
         * not triggered: this short text is sent to the channel, in the transaction of the decision
         */
        const char *notice;
        /*
         * not triggered, but agent is set: what was said goes into the conversation's history all
         * the same
         */
        bool remember;
        /* the conversation is the sender's own in this channel, not everybody's */
        bool per_person;
        /* names the conversation for agents, stored with the turn; NULL: none */
        const char *session;
        /* not triggered: done, and its result sent in place of the notice */
        enum road_command command;
        struct tx_extra extra; /* whatever the decision is, also when it is not triggered */
};

/*
 * How a turn is to be run and answered; asked when it starts and when it ends, so that a reload
 * counts at once (but for the mode: it stays). When the rule is gone by then it is what was said at
 * the decision.
 */
struct turn_terms {
        bool has_rule; /* set by the terms hook: the rule still exists */
        enum reply_mode mode;
        /* ambient: how many messages of the channel the agent reads, fresh from the platform */
        int64_t recall_messages;
        const char *prompt; /* said to the agent before the conversation; NULL: nothing */
        /*
         * ambient: answers that mean "nothing to say", besides "", [SILENT] and "no action needed"
         */
        const struct setting_list *silence;
        int64_t thread_chars;  /* a longer answer in a group begins a thread; 0: never */
        int64_t part_delay_ms; /* between the messages of one answer */
        /* the message is marked when its answer takes longer than this, groups only; 0: never */
        int64_t slow_ms;
};

/* ---- turns (agents answer) ---- */

enum agent_ability {
        /* running a turn twice has no effect beyond its cost: an interrupted one is run again */
        AGENT_REPEATABLE = 1 << 0,
        AGENT_BATCHES = 1 << 1, /* takes several messages in one turn */
        AGENT_HISTORY = 1 << 2, /* wants the conversation so far */
        AGENT_STREAMS = 1 << 3, /* calls turn_delta */
        AGENT_CANCELS = 1 << 4, /* can be stopped half-way */
};

struct transcript_line {
        const char *role;    /* "user" or "assistant" */
        const char *name;    /* who said it, when known; recalled: "discord:123" */
        const char *display; /* recalled: the same as people see it; else NULL */
        const char *text;
        int64_t time_ms;
};

/* One run of an agent, as the agent sees it. Valid until turn_finish or the cancel hook returns. */
struct turn_run {
        int64_t id;
        int64_t fence;
        int attempt;          /* 1 for the first */
        int64_t conversation; /* number; shown as "conv-N" */
        int64_t reset_turn;   /* the turn with which it began anew (/new); 0: it never did */
        struct reset_turns
                resets; /* the same for those who share a memory beyond the conversation */
        const char *agent;
        const char *key; /* the same for every attempt: the idempotency key for the agent's side */
        const char *trace;
        const char *adapter, *channel, *thread;
        const struct incoming *const *inputs; /* oldest first, at least one */
        unsigned input_count;
        /* oldest first; only with AGENT_HISTORY, or recalled */
        const struct transcript_line *history;
        unsigned history_count;
        const char *session;  /* of the decision; NULL: none */
        const char *rule;     /* of the decision; NULL: none */
        enum reply_mode mode; /* of the terms */
        const char *prompt;   /* of the terms; may be NULL */
        void *agent_data;     /* the agent's own */
};

struct turn_reply {
        enum error_kind kind; /* ERR_NONE: an answer; else it failed */
        /* what the user gets: the answer, or a short notice; NULL or "": nothing */
        const char *text;
        const char *error; /* the full record of a failure, for the operator */
        int64_t tokens_in, tokens_out, cost_microusd;
        const char *const *parts; /* the same as messages of their own; NULL: text is one */
        unsigned part_count;
        /* names the first message, for whoever may repeat it; NULL: nobody does */
        const char *request_key;
};

/* Agents call these, never before the start hook has returned. */
/* a further piece of the answer */
void turn_delta(struct turn_run *run, const char *text, size_t n);
void turn_progress(struct turn_run *run, const char *label); /* "reading the manual" */
/* once; run is gone afterwards */
void turn_finish(struct turn_run *run, const struct turn_reply *reply);

/* How a turn ended, once that is stored. */
struct turn_outcome {
        bool answered; /* something was said */
        /* the answer began this thread, where the conversation goes on; NULL: it did not */
        const char *thread;
        int64_t cost_microusd; /* of this run */
};

/* ---- deliveries (platforms answer) ---- */

enum adapter_ability {
        /* the journal is the delivery: done when committed (terminal, API) */
        ADAPTER_JOURNALED = 1 << 0,
        ADAPTER_IDEMPOTENT = 1 << 1, /* repeating a send with the same delivery id does no harm */
        /* can find out whether an unsure send arrived (reconcile hook) */
        ADAPTER_READBACK = 1 << 2,
        ADAPTER_EDITS = 1 << 3,
        ADAPTER_TYPING = 1 << 4,
        ADAPTER_THREADS = 1 << 5,
        ADAPTER_REACTIONS = 1 << 6,
        ADAPTER_FILES = 1 << 7,
        /* wants a growing answer as one message that is edited; needs ADAPTER_EDITS */
        ADAPTER_STREAMS = 1 << 8,
        ADAPTER_CHANNEL_HISTORY = 1 << 9, /* can read what was said in a channel (recall hook) */
};

struct delivery {
        int64_t id; /* shown as "dlv-N" */
        int64_t fence;
        int attempt;
        int64_t turn; /* 0 when it belongs to none */
        const char *adapter, *channel, *thread;
        enum delivery_kind kind;
        enum pace_class class;
        const char *payload; /* JSON object text: {"text": ..., "replyTo": ..., "messageId": ...} */
        /* edit or delete of a draft: the platform id of the message; else NULL */
        const char *target;
        const char *trace;
        int64_t created_ms;
};

enum send_outcome {
        SEND_DONE, /* platform_id says where it is */
        /* it certainly did not arrive; trying again makes sense (retry_after_ms when told) */
        SEND_RETRY,
        SEND_REJECTED, /* it certainly did not arrive and never will */
        SEND_UNSURE,   /* it may have arrived */
};

struct send_result {
        enum send_outcome outcome;
        const char *platform_id;
        /* ERR_LIMIT with SEND_RETRY: the platform's rate limit; not counted as an attempt */
        enum error_kind kind;
        const char *why;
        int64_t retry_after_ms; /* -1: not told */
        bool freeze_adapter;    /* the rate limit is the adapter's, not only the channel's */
};

/*
 * Adapters call this for each delivery they were given, never before the send hook has returned.
 * Late or repeated calls are harmless.
 */
void delivery_result(struct road *r, int64_t delivery, int64_t fence,
                     const struct send_result *result);
/* An adapter became able to send (connected), or its limits changed. */
void outbox_wake(struct road *r, const char *adapter);

/* Text cut into what the platform takes. */
struct rendered_part {
        char *text;  /* in the platform's markup */
        char *plain; /* without markup, for when the platform refuses it; NULL: same as text */
};
struct rendered {
        struct rendered_part *parts;
        size_t count;
};
void rendered_release(struct rendered *r);

/*
 * Messages as the platform has them, oldest first; err when it could not say. Borrowed for the
 * call.
 */
struct channel_message {
        const char *id;
        const char *sender_id;   /* the platform's */
        const char *sender_name; /* as people see it */
        bool is_own, is_bot;
        const char *text;
        int64_t time_ms;
};
typedef void channel_history_fn(void *arg, const struct channel_message *lines, size_t count,
                                const struct error *err);

/* ---- what the road asks of the others ---- */

struct road_hooks {
        void *ctx;
        void (*decide)(void *ctx, const struct incoming *in, struct decision *out);

        unsigned (*agent_abilities)(void *ctx, const char *agent); /* 0 for an unknown agent */
        void (*agent_start)(void *ctx, struct turn_run *run);
        /* no callback for this run follows */
        void (*agent_cancel)(void *ctx, struct turn_run *run);

        unsigned (*adapter_abilities)(void *ctx, const char *adapter);
        bool (*adapter_ready)(void *ctx, const char *adapter); /* may deliveries go now? */
        void (*adapter_limits)(void *ctx, const char *adapter, struct pace_limits *out);
        bool (*channel_is_group)(void *ctx, const char *adapter, const char *channel);
        int (*render)(void *ctx, const char *adapter, const char *text, struct rendered *out,
                      struct error *err);
        void (*send)(void *ctx, const struct delivery *d); /* answer with delivery_result */
        /* ADAPTER_READBACK: find out, answer with delivery_result */
        void (*reconcile)(void *ctx, const struct delivery *d);

        /*
         * A decision that triggers is about to become a new turn, or to join one that waits
         * (out->joins). Returns false, with reason and perhaps notice in *out, when it may not.
         * NULL: it always may.
         */
        bool (*admit)(void *ctx, const struct incoming *in, struct decision *out);

        /* The hooks below may be NULL. */

        /*
         * As render, for a text below a file: the first part is the caption, which is empty when
         * nothing could be cut off for it; the others are messages behind it. NULL: captions are
         * like messages.
         */
        int (*caption)(void *ctx, const char *adapter, const char *text, struct rendered *out,
                       struct error *err);
        /*
         * How the turns of this rule (NULL: no rule) are run and answered in such a chat of this
         * adapter.
         */
        void (*terms)(void *ctx, const char *adapter, const char *rule, enum chat_kind chat,
                      struct turn_terms *out);
        /*
         * The last messages of a channel, fresh from the platform: one call of done, never before
         * this has returned, also when the adapter goes away meanwhile (with an error then).
         */
        void (*recall)(void *ctx, const char *adapter, const char *channel, const char *thread,
                       unsigned limit, channel_history_fn *done, void *arg);
        /*
         * The id a thread begun at this message has; NULL where there can be none (it is one
         * already, or a DM). Borrowed.
         */
        const char *(*thread_at)(void *ctx, const struct incoming *in);
        /*
         * A turn is about to end like this: what must be stored together with its end (the thread
         * that now belongs to its session, say) goes into *also.
         */
        void (*ending)(void *ctx, const struct turn_run *run, const struct turn_outcome *outcome,
                       struct tx_extra *also);
        /* A turn has ended, however, and that is stored: the conversation was active until now. */
        void (*ended)(void *ctx, const struct turn_run *run, const struct turn_outcome *outcome);
};

struct road_limits {
        int64_t queued_events; /* stored but not yet decided; beyond it the inbox refuses */
        int64_t open_turns;    /* queued and running */
        int64_t running_turns;
        int64_t mailbox;         /* messages waiting in one lane */
        int64_t turn_seconds;    /* the longest a turn may run */
        int64_t turn_attempts;   /* interrupted runs of one turn before it is given up */
        int64_t open_deliveries; /* of one adapter; beyond it no further turn is started there */
        /* at once, to a platform that cannot tell whether a message arrived */
        int64_t sends_in_doubt;
        int64_t delivery_attempts;
        int64_t delivery_seconds; /* the longest one send may take */
        /* an answer older than this is not sent any more; 0: never */
        int64_t delivery_expiry_seconds;
        int64_t retry_base_ms, retry_cap_ms;
        int64_t history_messages;
        int64_t text_bytes;  /* the longest text of one inbound message */
        int64_t record_days; /* finished turns, deliveries, trigger log */
        int64_t transcript_days;
};
extern const struct setting road_settings[]; /* the "limits" section, into struct road_limits */

/*
 * In the environment: with "true" each reaction is journaled a second time as a message.received
 * whose content has the type reaction, for software that has not learned of reactions yet. The copy
 * triggers nothing.
 */
#define ROAD_DUAL_EMIT "OMNI_DUAL_EMIT_REACTIONS"

/*
 * Reads what is open and resumes it. Hooks are called from the first turn of the loop on, not
 * before. Blocks while reading.
 */
struct road *road_open(struct loop *l, struct store *s, struct bus *b,
                       const struct road_limits *limits, const struct road_hooks *hooks,
                       struct error *err);
void road_set_limits(struct road *r, const struct road_limits *limits);
/*
 * No new turns and sends are started; calls drained(arg) when those in flight have ended, or after
 * ms.
 */
void road_drain(struct road *r, int64_t ms, void (*drained)(void *arg), void *arg);
/* Forgets everything in memory; open rows are resumed by the next road_open. */
void road_close(struct road *r);

/* ---- inbox ---- */

enum inbox_outcome { INBOX_STORED, INBOX_DUPLICATE, INBOX_FAILED };
struct inbox_receipt {
        enum inbox_outcome outcome;
        int64_t event; /* of the stored one, also for a duplicate */
        const char *trace;
        struct error error; /* with INBOX_FAILED: ERR_LIMIT, ERR_FULL, ERR_IO, ERR_INVALID */
};
typedef void inbox_ack_fn(void *arg, const struct inbox_receipt *receipt);
/*
 * Stores, then acknowledges: `ack` runs after the commit, never before this call has returned.
 * Copies what it needs.
 */
void inbox_receive(struct road *r, const struct incoming *in, inbox_ack_fn *ack, void *arg);

/* ---- outbox ---- */

struct outgoing {
        const char *adapter, *channel, *thread;
        enum delivery_kind kind;
        /*
         * Markdown; rendered and split. Of an upload it is the caption, and what does not fit
         * follows as messages.
         */
        const char *text;
        const char *reply_to;   /* platform id */
        const char *message_id; /* platform id of the target of edit, delete, react */
        const char *emoji;
        const char *buttons; /* JSON: rows of {"text", "data" or "url"}, below the last part */
        struct {
                const char *path; /* inside the workspace */
                const char *name, *mime, *as;
        } file;            /* DELIVER_UPLOAD */
        const char *trace; /* NULL: a new one */
        /*
         * a person who speaks in the bot's name: conversations of the chat remember the text as an
         * answer; NULL: nobody
         */
        const char *author;
        /* the caller's idempotency key; the same key gives the same delivery */
        const char *request_key;
        /* of what was asked: the same key with another is ERR_CONFLICT; NULL: not compared */
        const char *request_hash;
        enum pace_class class;
        int64_t expires_ms; /* wall clock; 0: the configured expiry */
};
struct outbox_receipt {
        int64_t delivery; /* the first one when the text was split */
        unsigned count;
        bool duplicate; /* the request key was seen before */
        char trace[33];
        struct error error; /* kind ERR_NONE when stored */
};
typedef void outbox_ack_fn(void *arg, const struct outbox_receipt *receipt);
/* Stores the delivery (or deliveries), then tells; sending follows by itself. */
void outbox_submit(struct road *r, const struct outgoing *out, outbox_ack_fn *ack, void *arg);
/*
 * Puts a dead delivery back: failed always, unknown only with `force` because it may have arrived.
 */
void outbox_retry(struct road *r, int64_t delivery, bool force, store_done_fn *done, void *arg);
/* Puts a failed turn back into its lane. */
void turn_retry(struct road *r, int64_t turn, store_done_fn *done, void *arg);
/* Stops a queued or running turn. done gets ERR_MISSING when it is neither; it may be NULL. */
void turn_cancel(struct road *r, int64_t turn, const char *why, store_done_fn *done, void *arg);

/* ---- what is going on ---- */

struct road_stats {
        uint64_t received, duplicates, refused;
        uint64_t turns_done, turns_failed, turns_cancelled;
        uint64_t sent, failed, unknown, retried;
        size_t events_waiting, turns_queued, turns_running, lanes, deliveries_open;
};
void road_stats(const struct road *r, struct road_stats *out);

struct adapter_stats {
        int64_t last_inbound_ms; /* wall clock of the last committed event; 0: none yet */
        int64_t last_sent_ms;    /* last success, end to end */
        int64_t oldest_open_ms;  /* creation of the oldest undelivered delivery; 0: none */
        size_t open;
        int64_t last_failure_ms;
        char last_failure[160];
};
void road_adapter_stats(const struct road *r, const char *adapter, struct adapter_stats *out);

#endif
