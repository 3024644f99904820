/*
 * dispatch: decides whether an event triggers an agent, and which.
 *
 * Guards (evaluation.c) check an event in order; the first to refuse ends the evaluation with a
 * reason. Then dispatch counts, records the sender and carries out commands.
 */
#ifndef DISPATCH_DISPATCH_H
#define DISPATCH_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "dispatch/access/access.h"
#include "dispatch/limits/limits.h"
#include "dispatch/rules/rules.h"
#include "dispatch/runtime_policy.h"
#include "road/road.h"
#include "road/road_remote.h"
#include "road/road_schedule.h"

struct dispatch;

struct dispatch_adapter {
        char *name;
        char *platform;
        char *agent;           /* may be NULL */
        bool trusted;          /* clients authenticate with a key: no access check */
        struct access *access; /* NULL: no one is allowed, unless trusted */
        struct turn_rate rate;
        struct turn_rate ambient_rate; /* of unrequested turns */
        int64_t max_hops;              /* bots a message may have passed through */
        int64_t debounce_ms, debounce_max_ms, max_age_seconds;
        int64_t conversation_seconds, dm_conversation_seconds; /* 0: no sessions */
        int64_t thread_chars, part_delay_ms, slow_ms;          /* struct reply_policy */
        int64_t budget_microusd;                               /* per day; 0: no limit */
        bool commands;                                         /* /new, /stop ... are enabled */
        const char *command_help; /* how people write them, outlives it; NULL: as they are */
        /* set by dispatch: rules about this adapter */
        const struct rule **rules;
        size_t rule_count;
};

struct dispatch *dispatch_new(void);
void dispatch_free(struct dispatch *d);
/* Restores counters and sessions after a restart; blocks. */
int dispatch_restore(struct dispatch *d, struct store *s, struct error *err);
/* The policy must outlive the dispatch; NULL: none. */
void dispatch_set_policy(struct dispatch *d, struct runtime_policy *policy);
struct runtime_policy *dispatch_policy(const struct dispatch *d);
/* Serves /remind, /reminders, /quiet and /event. NULL: they are turned off. */
void dispatch_set_schedule(struct dispatch *d, const struct road_schedule *schedule);
/* Serves /sessions, /steer and the like, and messages in the chat of a session. NULL: none. */
void dispatch_set_remote(struct dispatch *d, const struct road_remote *remote);
/* Takes adapters and rules. only_agent (may be NULL) answers when no agent is named. */
void dispatch_set(struct dispatch *d, struct dispatch_adapter *adapters, size_t adapter_count,
                  struct rule *rules, size_t rule_count, const char *only_agent);
/* Rules of the configuration, borrowed until the next dispatch_set. */
const struct rule *dispatch_file_rules(const struct dispatch *d, size_t *count);
/* "telegram tg: DMs: 1 admin; groups: none". False: trusted or unknown adapter. */
bool dispatch_describe(const struct dispatch *d, const char *adapter, struct buf *out);
/* Can the adapter's own setting or a rule about it choose the agent? */
bool dispatch_may_choose(const struct dispatch *d, const char *adapter, const char *agent);
/* The one that answers where no rule says otherwise, borrowed until dispatch_set; NULL: none. */
const char *dispatch_default_agent(const struct dispatch *d, const char *adapter);
/* Sets the wall clock, for replays and tests; 0: the real one. */
void dispatch_set_clock(struct dispatch *d, int64_t now_ms);

/*
 * The road's contract (road/inbox/decision.h). Strings of *out live until the next dispatch_set or
 * dispatch_decide. Without a query the guards that count turns are skipped.
 */
void dispatch_decide(struct dispatch *d, const struct incoming *in,
                     const struct placement_query *query, struct decision *out);
void dispatch_ending(struct dispatch *d, const struct turn_run *run,
                     const struct turn_outcome *outcome, struct tx_extra *extra);
void dispatch_ended(struct dispatch *d, const struct turn_run *run,
                    const struct turn_outcome *outcome);

#endif
