#include "dispatch/guards.h"

#include <string.h>

#include "base/clock.h"
#include "dispatch/access/access_check.h"
#include "dispatch/dispatch_private.h"

#define BLOCK_NOTICE_SECONDS 3600 /* how often somebody is told that he is kept out */

bool is_configured(struct matter *m)
{
        if (m->adapter)
                return true;
        return matter_refuse(m, "adapter '%s' is not configured",
                             m->in->adapter ? m->in->adapter : "");
}

bool is_not_own(struct matter *m)
{
        return !m->in->is_own || matter_refuse(m, "it is the bot's own message");
}

static bool has_text(const struct incoming *in)
{
        return (in->text && *in->text) || (in->raw_text && *in->raw_text);
}

/* Joins, pins and other service messages are events, but there is nothing in them to answer. */
bool has_content(struct matter *m)
{
        const char *type = event_type(m->in);
        bool something = has_text(m->in) || m->in->attachment_count > 0;

        if (strncmp(type, "reaction.", 9) == 0)
                something = m->in->emoji != NULL;
        else if (strcmp(type, EVENT_MESSAGE_DELETED) == 0)
                something = true;
        return something ||
               matter_refuse(m,
                             "there is nothing to answer: neither text nor attachments nor emoji");
}

/*
 * Only whoever writes to the bot alone is told a code: a group would hear it, and a bot would
 * answer it.
 */
static bool may_pair(const struct matter *m)
{
        return m->d->policy && !m->dry && m->adapter->access && access_pairs(m->adapter->access) &&
               m->in->chat == CHAT_DM && !m->in->sender_is_bot && m->in->sender_id &&
               strcmp(event_type(m->in), EVENT_MESSAGE_RECEIVED) == 0;
}

bool may_talk(struct matter *m)
{
        struct access_verdict j =
                access_check_sender(m->d->policy, m->adapter, m->in, m->now_ms, &m->d->reason);
        struct rate_key who = guard_rate_key(m->in);

        if (j.outcome == ACCESS_ALLOWED)
                return true;
        if (j.message && !m->dry && m->in->chat == CHAT_DM && !m->in->sender_is_bot &&
            rate_limit_claim_notice(m->d->rates, &who,
                                    (struct turn_rate){ 1, BLOCK_NOTICE_SECONDS }, m->now_ms))
                matter_notice(m, "%s", j.message);
        if (j.outcome == ACCESS_STRANGER && may_pair(m))
                pairing_offer(m->d->policy->pairings, m->adapter->platform, m->in, m->out,
                              (struct pairing_words){ &m->d->notice, &m->d->reason });
        return false;
}

/*
 * Whoever is let in is noted; nobody is refused here. Software that writes with a key has no face
 * to remember.
 */
bool is_noted(struct matter *m)
{
        if (m->d->policy && !m->dry && !m->adapter->trusted && !m->in->sender_is_bot &&
            m->in->sender_id)
                persons_record(m->d->policy->persons, m->adapter->platform, m->in, m->now_ms,
                               m->out);
        return true;
}

/* A person has taken over: the agent is not asked, but it remembers what was said. */
bool is_not_paused(struct matter *m)
{
        const struct handovers *handover = m->d->policy ? m->d->policy->handovers : NULL;
        struct chat_key here = { m->in->adapter, m->in->channel, m->in->thread };
        const struct handover *p = handover ? handover_find(handover, &here) : NULL;
        char since[CLOCK_ISO_SIZE];

        if (!p)
                return true;
        m->out->remember = true;
        return matter_refuse(m, "the agent is paused here since %s by %s%s%s",
                             clock_iso(p->since_ms, since), p->by ? p->by : "somebody",
                             p->reason ? ": " : "", p->reason ? p->reason : "");
}

/* Hops are counted by the message, or by who spoke here. */
bool is_no_loop(struct matter *m)
{
        int in_a_row = m->in->sender_is_bot ? bot_loop_length(m->d->loops, m->in, m->now_ms) : 0;

        if (m->in->hops > m->adapter->max_hops)
                return matter_refuse(
                        m, "it has passed through %d bots, adapter '%s' allows %lld (maxHops)",
                        m->in->hops, m->adapter->name, (long long)m->adapter->max_hops);
        if (in_a_row >= m->adapter->max_hops && in_a_row > 0)
                return matter_refuse(
                        m,
                        "%d messages of bots in a row were answered here and nobody else spoke, "
                        "adapter '%s' allows no more (maxHops)",
                        in_a_row, m->adapter->name);
        return true;
}

/*
 * Two bots that tell each other to slow down would be the loop that is to be ended; and who only
 * reads along tells nobody anything.
 */
static bool may_tell(const struct matter *m)
{
        enum reply_mode mode = m->rule ? m->rule->mode : MODE_REPLY;

        return !m->in->sender_is_bot && !m->dry && reply_mode_answers(mode);
}

/* ---- the rate of turns ---- */

struct turn_rate guard_rate(const struct dispatch_adapter *a, const struct rule *r)
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
        return (struct rate_key){ .adapter = in->adapter,
                                  .channel = in->channel,
                                  .sender = in->sender_id };
}

/* Turns are counted, not messages: who adds to a turn that waits is never too fast. */
bool is_not_too_fast(struct matter *m)
{
        struct turn_rate rate = guard_rate(m->adapter, m->rule);
        struct rate_key who = guard_rate_key(m->in);
        int64_t wait_ms =
                m->joins_turn ? 0 : rate_limit_wait_ms(m->d->rates, &who, rate, m->now_ms);
        long long turns = rate.turns, seconds = rate.seconds, wait = (wait_ms + 999) / 1000;

        if (wait_ms == 0 || m->dry) /* a dry run tells the rate apart */
                return true;
        if (may_tell(m) && rate_limit_claim_notice(m->d->rates, &who, rate, m->now_ms))
                matter_notice(
                        m,
                        "Too many messages: %lld answers within %lld seconds are what I can give "
                        "one person here. Please try again in %lld seconds.",
                        turns, seconds, wait);
        return matter_refuse(
                m,
                "the sender caused %lld turns within %lld seconds here, more are not allowed "
                "(rateLimit); the next one in %lld seconds",
                turns, seconds, wait);
}

/* ---- reactions ---- */

bool is_no_repetition(struct matter *m)
{
        if (!reaction_limit_applies(m->in))
                return true;
        switch (reaction_limit_check(m->d->reactions, m->in, m->now_ms)) {
        case REACTION_NEW:
                return true;
        case REACTION_REPEATED:
                return matter_refuse(
                        m, "the same reaction of the sender on this message has triggered already");
        case REACTION_ONE_TOO_MANY:
                return matter_refuse(
                        m,
                        "reactions on this message have triggered %d times, more are not allowed",
                        REACTION_LIMIT_PER_MESSAGE);
        }
        return true;
}

/* ---- money ---- */

/*
 * It is all spent; or it will be when those have ended that are under way, which is known better in
 * a while.
 */
static bool refuse_cost(struct matter *m, const char *what, const char *name, struct budget_sum sum,
                        int64_t limit)
{
        bool spent = sum.spent >= limit;
        struct rate_key here = { m->in->adapter, m->in->channel, NULL,
                                 spent ? "budget" : "expected" };
        struct turn_rate often = { 1, spent ? 86400 : 300 };

        if (may_tell(m) && rate_limit_claim_notice(m->d->rates, &here, often, m->now_ms))
                matter_notice(
                        m,
                        spent ? "I have used up what I may spend today. Please come back after midnight "
                                "(UTC)."
                              : "I am busy with as much as I may spend today. Please try again "
                                "in a few minutes.");
        matter_refuse(m, "the turns of %s '%s' have cost $%.2f today", what, name,
                      (double)sum.spent / 1e6);
        if (!spent)
                matter_refuse(m, " and %u that have not ended are expected to cost $%.2f", sum.open,
                              (double)sum.expected / 1e6);
        return matter_refuse(m, ", its budget is $%.2f (budget.usdPerDay)", (double)limit / 1e6);
}

static bool fits(struct budget_sum sum, int64_t limit)
{
        return sum.spent + sum.expected < limit;
}

/* Who adds to a turn that waits begins none. */
bool is_affordable(struct matter *m)
{
        const struct dispatch_adapter *a = m->adapter;
        const struct rule *r = m->rule;
        int64_t limit = r ? (int64_t)(r->budget.usd_per_day * 1e6) : 0;
        struct budget_sum sum = budget_of_adapter(m->d->budget, a->name, m->now_ms);

        if (m->joins_turn)
                return true;
        if (a->budget_microusd > 0 && !fits(sum, a->budget_microusd))
                return refuse_cost(m, "adapter", a->name, sum, a->budget_microusd);
        if (limit <= 0)
                return true;
        sum = budget_of_rule(m->d->budget, r->name, m->now_ms);
        return fits(sum, limit) || refuse_cost(m, "rule", r->name, sum, limit);
}
