/*
 * road: the pipeline of a message, from the inbox over lanes and turns to the outbox.
 *
 *     inbox_receive ──► decide ──► lane ──► turn ──► outbox ──► send
 *
 * Everything is a row before it is an action. All functions run on the loop thread. Promises:
 *  - an event is acknowledged after its commit, and decided exactly once;
 *  - a lane has at most one running turn, and so has a session, however many lanes it spans;
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
#include "road/inbox/decision.h"
#include "road/inbox/inbox.h"
#include "road/incoming.h"
#include "road/outbox/delivery.h"
#include "road/outbox/outbox.h"
#include "road/road_schedule.h"
#include "road/turn/turn_run.h"
#include "store/store.h"

struct road;

struct road_env {
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct road_dispatch dispatch;
        struct road_agents agents;
        struct road_platforms platforms;
};

struct road_limits {
        int64_t queued_events;
        int64_t open_turns, running_turns;
        int64_t mailbox;
        int64_t turn_seconds, turn_attempts, file_seconds;
        int64_t open_deliveries, unconfirmed_sends; /* of one adapter */
        int64_t delivery_attempts, delivery_seconds, delivery_expiry_seconds, reconcile_seconds;
        int64_t retry_base_ms, retry_cap_ms;
        int64_t history_messages;
        int64_t text_bytes;
        int64_t record_days, transcript_days;
};
extern const struct setting road_settings[]; /* the section "limits", with help for each field */

/* "true" also journals reactions as message.received, for older software; never triggers. */
#define ROAD_DUAL_EMIT "OMNI_DUAL_EMIT_REACTIONS"

/* Blocks while reading open rows; they resume when the loop runs. */
struct road *road_open(const struct road_env *env, const struct road_limits *limits,
                       struct error *err);
void road_set_limits(struct road *r, const struct road_limits *limits);
/* Copied. The schedule opens after the road, and closes before it: then NULL. */
void road_set_schedule(struct road *r, const struct road_schedule *s);
/* NULL: there is none. */
const struct road_schedule *road_get_schedule(const struct road *r);
/* Starts nothing new; calls drained(arg) when turns and sends have ended, or after ms. */
void road_drain(struct road *r, int64_t ms, void (*drained)(void *arg), void *arg);
/*
 * Starts nothing new and waits for what is being written. Then those may close who write in the
 * road's transactions.
 */
void road_settle(struct road *r);
/* Frees memory only; the next road_open resumes open rows. */
void road_close(struct road *r);

/* Requeues a failed turn. */
void turn_retry(struct road *r, int64_t turn, store_done_fn *done, void *arg);
/* done (may be NULL) gets ERR_MISSING when the turn is neither queued nor running. */
void turn_cancel(struct road *r, int64_t turn, const char *why, store_done_fn *done, void *arg);

struct road_stats {
        uint64_t received, duplicates, refused;
        uint64_t turns_done, turns_failed, turns_cancelled;
        uint64_t sent, failed, unknown, retried;
        /* sends that may have arrived: looked for how often, found, certainly not there */
        uint64_t probes, found, not_arrived;
        uint64_t approvals_asked, approvals_approved, approvals_refused, approvals_expired;
        size_t approvals_open;
        size_t events_waiting, turns_queued, turns_running, lanes, deliveries_open;
};
void road_stats(const struct road *r, struct road_stats *out);

struct adapter_stats {
        int64_t last_inbound_ms; /* wall clock; 0 here and below: none yet */
        int64_t last_sent_ms;
        int64_t oldest_open_ms; /* creation of the oldest open delivery */
        size_t open;
        int64_t last_failure_ms;
        char last_failure[160];
};
void road_adapter_stats(const struct road *r, const char *adapter, struct adapter_stats *out);

/* The text with its commands, such as `/stop`, as people write them there. Yours to free. */
char *command_spell(const struct road *r, const char *adapter, const char *text);
/* Appends Markdown that mentions a user; the name, any text, is for platforms that need one. */
void road_mention(const struct road *r, const char *adapter, const char *id, const char *name,
                  struct buf *out);

/* ---- for agents ---- */

/* Is it connected? */
bool road_is_ready(const struct road *r, const char *adapter);
/* ADAPTER_*; 0: no such adapter. */
unsigned road_abilities(const struct road *r, const char *adapter);
/* The ids of its admins, borrowed until it is configured again; NULL: none. */
const struct setting_list *road_admins(const struct road *r, const char *adapter);
/* Bytes of a file; 0: it takes none. */
int64_t road_upload_max(const struct road *r, const char *adapter);
/*
 * Which threads can be begun in a channel. Calls done once, later, also with an error, as when the
 * adapter is not connected.
 */
void road_ask_threads(const struct road *r, const char *adapter, const char *channel,
                      chat_threads_fn *done, void *arg);
/* The i-th tool of the adapter's platform; NULL: there are no more. */
const struct road_tool *road_tool_at(const struct road *r, const char *adapter, size_t i);
/* Calls done once, later. q is borrowed. */
void road_call_tool(struct road *r, const char *adapter, const char *tool,
                    const struct tool_request *q, platform_tool_fn *done, void *arg);

#endif
