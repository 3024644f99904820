/*
 * dispatch: decides whether an event triggers an agent, and which.
 *
 * One evaluator serves the road, listings and dry runs. Guards stand in this order (dispatch.c has
 * them as a list), and the first that says no ends it with a reason:
 *
 *     own      the bot's own messages
 *     content  there is something to answer: text, a file, an emoji
 *     link     it is not the command by which people say that two accounts are theirs (link.h)
 *     access   the sender may talk to the bot there (judge.h); trusted platforms are not asked
 *     command  it is not for the bot itself (commands.h)
 *     rule     the first rule that matches wins, and every rule that did not can say why
 *     age      old backlog is expired
 *     handover no person has taken over in the chat (handover.h)
 *
 * These decide. The following are asked by the road when it is about to place a turn, because only
 * the road knows whether a message joins one that is waiting:
 *
 *     rate     the sender has not caused too many turns in the channel (limits.h)
 *     reaction the same one has not triggered before, and not too many on the message have
 *     (reactions.h)
 *     loop     it has not passed through too many bots
 *     budget   the day's budget of the adapter and of the rule is not used up (budget.h)
 *
 * Guards change nothing; what is counted is counted when all have passed. Then the event waits for
 * its burst to end (debounce) and its turn (lane).
 */
#ifndef DISPATCH_DISPATCH_H
#define DISPATCH_DISPATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/settings.h"
#include "dispatch/access/access.h"
#include "dispatch/limits/rate_limit.h"
#include "dispatch/runtime_policy.h"
#include "road/road.h"

struct dispatch;

/* What dispatch must know about an adapter; filled by whoever knows platforms. */
struct dispatch_adapter {
        char *name;
        char *platform;
        char *agent; /* may be NULL */
        bool trusted;
        struct access *access; /* not asked when trusted; NULL: nobody is let in */
        struct turn_rate rate;
        int64_t max_hops; /* bots a message may have passed through */
        int64_t debounce_ms, debounce_max_ms, max_age_seconds;
        int64_t conversation_seconds, dm_conversation_seconds; /* windows.h; 0: none */
        int64_t thread_chars, part_delay_ms, slow_ms;          /* struct reply_policy */
        int64_t budget_microusd;                               /* per day; 0: no limit */
        /* /new, /stop ... are for the bot itself */
        bool commands;
        const struct rule **rules; /* dispatch's own: those that can concern this adapter */
        size_t rule_count;
};

/*
 * One element of "rules". All conditions hold together; a list means any of its members; dm,
 * mention, reply, conversation and mentionPattern are alternatives. `*` globs.
 */
struct rule {
        char *name;
        struct setting_list adapter, platform, guild, channel, thread, event, sender, role,
                reaction;
        struct setting_list text, mention_pattern; /* regular expressions */
        struct setting_list hours;
        char *timezone; /* NULL: the system's */
        char *bots;     /* "none", "mentions" or "all" */
        bool dm, mention, reply, conversation;
        char *agent;
        /* as written; mode and off are what they mean */
        char *mode_text, *reply_in;
        enum reply_mode mode;
        bool off; /* no agent answers, and no later rule is tried */
        int64_t history;
        char *prompt; /* may be NULL */
        struct setting_list silence;
        int64_t debounce_ms, debounce_max_ms; /* each -1: the adapter's */
        int64_t max_age_seconds;              /* -1: the adapter's */
        struct turn_rate rate;                /* each member -1: the adapter's */
        struct {
                double usd_per_day; /* 0: no limit */
        } budget;
        struct rule_compiled *compiled;
};
int rule_read(struct settings_source *src, size_t index, const json_t *object, struct rule *out,
              struct error *err);
void rule_release(struct rule *r);
/* for schema and documentation */
extern const struct setting rule_settings[], rule_when_settings[];

struct dispatch *dispatch_new(void);
void dispatch_free(struct dispatch *d);
/*
 * Fills the counters of the rate limit from the trigger log, after a restart. Blocks while reading.
 */
int dispatch_restore(struct dispatch *d, struct store *s, struct error *err);
/*
 * What people change while we run, from now on looked at for every decision. Outlives the dispatch;
 * NULL: nothing of that.
 */
void dispatch_set_policy(struct dispatch *d, struct runtime_policy *policy);
struct runtime_policy *dispatch_policy(const struct dispatch *d);
/* The rules of the configuration, borrowed until the next dispatch_set. */
const struct rule *dispatch_file_rules(const struct dispatch *d, size_t *count);
/*
 * Replaces what it knows; takes everything over (arrays are malloc'd). only_agent: the agent that
 * answers when nothing else says so; may be NULL.
 */
void dispatch_set(struct dispatch *d, struct dispatch_adapter *adapters, size_t adapter_count,
                  struct rule *rules, size_t rule_count, const char *only_agent);
/*
 * Who is answered, for the log: "telegram tg: DMs from nobody but 1 admin; groups: none". False:
 * the adapter is trusted or unknown.
 */
bool dispatch_describe(const struct dispatch *d, const char *adapter, struct buf *out);
/*
 * The road's contract (road/decision.h). Strings of *out live until the next dispatch_set or
 * dispatch_decide. Without a query the guards that need its answer are skipped, and nothing is
 * counted.
 */
void dispatch_decide(struct dispatch *d, const struct incoming *in,
                     const struct placement_query *query, struct decision *out);
/* The conversation goes on from here, perhaps in a thread. */
void dispatch_ending(struct dispatch *d, const struct turn_run *run,
                     const struct turn_outcome *outcome, struct tx_extra *extra);
void dispatch_ended(struct dispatch *d, const struct turn_run *run,
                    const struct turn_outcome *outcome);
/* From now on it is this time by the wall clock, for replays and tests; 0: the real one. */
void dispatch_set_clock(struct dispatch *d, int64_t now_ms);
/*
 * The whole reasoning as JSON, changing nothing: {"decision": {"trigger", "expired", "guard",
 * "agent", "rule", "reason", "debounceMs", "mode", "conversation", "command"}, "access":
 * {"allowed", "why"}, "rateLimit": {"turns", "seconds", "waitMs"}, "rules": [{"name", "matched",
 * "why"}]}. guard is who said no; conversation: it goes on with one.
 */
void dispatch_explain(struct dispatch *d, const struct incoming *in, struct buf *json);
/*
 * The same without the rules that are about other adapters only: for those who must not know of
 * them.
 */
void dispatch_explain_own(struct dispatch *d, const struct incoming *in, struct buf *json);

#endif
