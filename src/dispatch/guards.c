/*
 * Guards that need no file of their own; the table is in dispatch.c.
 */
#include <string.h>

#include "base/clock.h"
#include "dispatch/access/access_check.h"
#include "dispatch/dispatch_private.h"

#define DENY_NOTICE_SECONDS 3600 /* how often a denied sender gets the rule's message */

bool guard_adapter(struct evaluation *e)
{
        return e->adapter || evaluation_refuse(e, "adapter '%s' is not configured",
                                               e->in->adapter ? e->in->adapter : "");
}

bool guard_own(struct evaluation *e)
{
        return !e->in->is_own || evaluation_refuse(e, "it is the bot's own message");
}

/* Joins, pins and other service messages are events without anything to answer. */
bool guard_content(struct evaluation *e)
{
        const struct incoming *in = e->in;
        bool something = (in->text && *in->text) || (in->raw_text && *in->raw_text) ||
                         in->attachment_count > 0;

        if (strncmp(e->type, "reaction.", 9) == 0)
                something = in->emoji != NULL;
        else if (strcmp(e->type, EVENT_MESSAGE_DELETED) == 0)
                something = true;
        return something || evaluation_refuse(e, "there is nothing to answer: neither text nor "
                                                 "attachments nor emoji");
}

bool guard_access(struct evaluation *e)
{
        const struct incoming *in = e->in;
        struct access_verdict v =
                access_check_sender(e->d->policy, e->adapter, in, e->now_ms, &e->d->reason);
        const char *message = v.outcome == ACCESS_DENIED && v.rule ? v.rule->message : NULL;
        struct rate_key key = guard_rate_key(in);

        e->is_allowed = v.outcome == ACCESS_ALLOWED;
        e->is_stranger = v.outcome == ACCESS_STRANGER;
        if (message && !e->dry && in->chat == CHAT_DM && !in->sender_is_bot &&
            rate_limit_claim_notice(e->d->rates, &key, (struct turn_rate){ 1, DENY_NOTICE_SECONDS },
                                    e->now_ms))
                evaluation_notify(e, "%s", message);
        return e->is_allowed;
}

bool guard_age(struct evaluation *e)
{
        bool by_rule = e->rule && e->rule->max_age_seconds >= 0;
        int64_t most = by_rule ? e->rule->max_age_seconds : e->adapter->max_age_seconds;

        if (most <= 0 || e->in->time_ms <= 0 || e->now_ms - e->in->time_ms <= most * 1000)
                return true;
        e->out->expired = true;
        return evaluation_refuse(e, "it is older than the %lld seconds %s '%s' allows",
                                 (long long)most, by_rule ? "rule" : "adapter",
                                 by_rule ? e->rule->name : e->adapter->name);
}

/* A person has taken over: no agent runs, but the text goes into the transcript. */
bool guard_handover(struct evaluation *e)
{
        const struct handovers *all = e->d->policy ? e->d->policy->handovers : NULL;
        struct chat_key chat = { e->in->adapter, e->in->channel, e->in->thread };
        const struct handover *h = all ? handover_find(all, &chat) : NULL;
        char since[CLOCK_ISO_SIZE];

        if (!h)
                return true;
        e->out->remember = true;
        return evaluation_refuse(e, "the agent is paused here since %s by %s%s%s",
                                 clock_iso(h->since_ms, since), h->by ? h->by : "someone",
                                 h->reason ? ": " : "", h->reason ? h->reason : "");
}

/* ---- turns ---- */

/*
 * Never notify bots, which would continue the loop that is to be ended, nor in modes that do not
 * answer in the chat.
 */
static bool may_notify(const struct evaluation *e)
{
        return !e->in->sender_is_bot && !e->dry &&
               reply_mode_answers(e->rule ? e->rule->mode : MODE_REPLY);
}

struct turn_rate guard_turn_rate(const struct dispatch_adapter *a, const struct rule *r)
{
        struct turn_rate rate = a->rate;

        if (r && r->rate.turns >= 0)
                rate.turns = r->rate.turns;
        if (r && r->rate.seconds > 0)
                rate.seconds = r->rate.seconds;
        return rate;
}

struct rate_key guard_rate_key(const struct incoming *in)
{
        return (struct rate_key){ in->adapter, in->channel, in->sender_id };
}

/* Counts turns, not messages: a message that joins a queued turn is never too fast. */
bool guard_rate(struct evaluation *e)
{
        struct turn_rate rate = guard_turn_rate(e->adapter, e->rule);
        struct rate_key key = guard_rate_key(e->in);
        int64_t wait_ms =
                e->joins_turn ? 0 : rate_limit_wait_ms(e->d->rates, &key, rate, e->now_ms);
        long long turns = rate.turns, seconds = rate.seconds, wait = (wait_ms + 999) / 1000;

        if (wait_ms == 0 || e->dry) /* a dry run reports the rate separately */
                return true;
        if (may_notify(e) && rate_limit_claim_notice(e->d->rates, &key, rate, e->now_ms))
                evaluation_notify(e,
                                  "Too many messages: I can give one person %lld answers within "
                                  "%lld seconds here. Please try again in %lld seconds.",
                                  turns, seconds, wait);
        return evaluation_refuse(e,
                                 "the sender caused %lld turns within %lld seconds here, more are "
                                 "not allowed (rateLimit); the next one in %lld seconds",
                                 turns, seconds, wait);
}

bool guard_reaction(struct evaluation *e)
{
        if (!reaction_limit_applies(e->in))
                return true;
        switch (reaction_limit_check(e->d->reactions, e->in, e->now_ms)) {
        case REACTION_NEW:
                return true;
        case REACTION_REPEATED:
                return evaluation_refuse(
                        e, "the same reaction of the sender on this message has triggered already");
        case REACTION_ONE_TOO_MANY:
                return evaluation_refuse(
                        e,
                        "reactions on this message have triggered %d times, more are not allowed",
                        REACTION_LIMIT_PER_MESSAGE);
        }
        return true;
}

/* Hops are counted by the message itself, or by who wrote here. */
bool guard_loop(struct evaluation *e)
{
        const struct dispatch_adapter *a = e->adapter;
        int in_a_row = e->in->sender_is_bot ? bot_loop_length(e->d->loops, e->in, e->now_ms) : 0;

        if (e->in->hops > a->max_hops)
                return evaluation_refuse(
                        e, "it has passed through %d bots, adapter '%s' allows %lld (maxHops)",
                        e->in->hops, a->name, (long long)a->max_hops);
        if (in_a_row > 0 && in_a_row >= a->max_hops)
                return evaluation_refuse(e,
                                         "%d messages of bots in a row were answered here, adapter "
                                         "'%s' allows no more until a person writes (maxHops)",
                                         in_a_row, a->name);
        return true;
}

/* ---- money ---- */

/* The budget is spent, or will be when the unfinished turns have ended. */
static bool refuse_cost(struct evaluation *e, const char *what, const char *name,
                        struct budget_sum sum, int64_t limit)
{
        bool spent = sum.spent >= limit;
        struct rate_key key = { e->in->adapter, e->in->channel, NULL,
                                spent ? "budget" : "expected" };
        struct turn_rate often = { 1, spent ? 86400 : 300 };

        if (may_notify(e) && rate_limit_claim_notice(e->d->rates, &key, often, e->now_ms))
                evaluation_notify(e, "%s",
                                  spent ? "I have used up what I may spend today. Please come back "
                                          "after midnight (UTC)."
                                        : "I am busy with as much as I may spend today. Please try "
                                          "again in a few minutes.");
        evaluation_refuse(e, "the turns of %s '%s' have cost $%.2f today", what, name,
                          (double)sum.spent / 1e6);
        if (!spent)
                evaluation_refuse(e, ", $%.2f more is expected of %u unfinished",
                                  (double)sum.expected / 1e6, sum.open);
        return evaluation_refuse(e, ", its budget is $%.2f (budget.usdPerDay)",
                                 (double)limit / 1e6);
}

bool guard_budget(struct evaluation *e)
{
        const struct dispatch_adapter *a = e->adapter;
        const struct rule *r = e->rule;
        int64_t limit = a->budget_microusd;
        struct budget_sum sum = budget_of_adapter(e->d->budget, a->name, e->now_ms);

        if (e->joins_turn)
                return true;
        if (limit > 0 && sum.spent + sum.expected >= limit)
                return refuse_cost(e, "adapter", a->name, sum, limit);
        limit = r ? (int64_t)(r->budget.usd_per_day * 1e6) : 0;
        if (limit <= 0)
                return true;
        sum = budget_of_rule(e->d->budget, r->name, e->now_ms);
        return sum.spent + sum.expected < limit || refuse_cost(e, "rule", r->name, sum, limit);
}
