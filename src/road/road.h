/*
 * road: the pipeline of a message, from the inbox over lanes and turns to the outbox.
 *
 *     inbox_receive ──► decide ──► lane ──► turn ──► outbox ──► send
 *
 * Everything is a row before it is an action. The road knows neither platforms nor agents: it asks
 * dispatch (decision.h), agents (turn_run.h) and platforms (delivery.h). All functions run on the
 * loop thread; results of transactions come back as callbacks.
 *
 * Three promises are kept here and nowhere else:
 *  - an inbound event is acknowledged by the completion of its commit, and decided exactly once
 *    (unique adapter and dedup key);
 *  - a lane (adapter, channel, thread, agent and perhaps person) has at most one running turn, and
 *    so has a session, however many lanes it spans; what arrives meanwhile waits in the mailbox;
 *  - a turn's end and its deliveries are one transaction, guarded by the turn's fence.
 */
#ifndef ROAD_ROAD_H
#define ROAD_ROAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/settings.h"
#include "bus/bus.h"
#include "net/loop.h"
#include "road/decision.h"
#include "road/delivery.h"
#include "road/inbox.h"
#include "road/incoming.h"
#include "road/outbox.h"
#include "road/turn_run.h"
#include "store/store.h"

struct road;

/* Whom the road works with; copied. */
struct road_env {
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct road_dispatch dispatch;
        struct road_agents agents;
        struct road_platforms platforms;
};

struct road_limits {
        int64_t queued_events; /* stored but not yet decided; beyond it the inbox refuses */
        int64_t open_turns;    /* queued and running */
        int64_t running_turns;
        int64_t mailbox;         /* messages waiting in one lane */
        int64_t turn_seconds;    /* the longest a turn may run */
        int64_t turn_attempts;   /* interrupted runs of one turn before it is given up */
        int64_t open_deliveries; /* of one adapter; beyond it no further turn is started there */
        /* messages sent at once to a platform that cannot be asked whether they arrived */
        int64_t unconfirmed_sends;
        int64_t delivery_attempts;
        int64_t delivery_seconds; /* the longest one send may take */
        /* an older answer is no longer sent; 0: never expires */
        int64_t delivery_expiry_seconds;
        int64_t retry_base_ms, retry_cap_ms;
        int64_t history_messages;
        int64_t text_bytes;  /* the longest text of one inbound message */
        int64_t record_days; /* finished turns, deliveries, trigger log */
        int64_t transcript_days;
};
extern const struct setting road_settings[]; /* the "limits" section, into struct road_limits */

/*
 * Environment variable: "true" journals each reaction a second time as a message.received with
 * content of type reaction, for software that does not know reactions yet. The copy triggers
 * nothing.
 */
#define ROAD_DUAL_EMIT "OMNI_DUAL_EMIT_REACTIONS"

/* Reads what is open and resumes it; blocks while reading. Asks nobody before the loop runs. */
struct road *road_open(const struct road_env *env, const struct road_limits *limits,
                       struct error *err);
void road_set_limits(struct road *r, const struct road_limits *limits);
/*
 * Starts no further turns and sends; calls drained(arg) when those in flight have ended, or after
 * ms.
 */
void road_drain(struct road *r, int64_t ms, void (*drained)(void *arg), void *arg);
/* Frees what is in memory; the next road_open resumes open rows. */
void road_close(struct road *r);

/* Queues a failed turn again. */
void turn_retry(struct road *r, int64_t turn, store_done_fn *done, void *arg);
/* Stops a queued or running turn. done gets ERR_MISSING when it is neither; it may be NULL. */
void turn_cancel(struct road *r, int64_t turn, const char *why, store_done_fn *done, void *arg);

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
