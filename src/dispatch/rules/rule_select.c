/*
 * Which rule decides about an event, and which agent answers; and what holds where no rule speaks
 * about the adapter.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dispatch/dispatch_private.h"

/* ---- which rules can concern an adapter ---- */

static void index_adapter(struct dispatch *d, struct dispatch_adapter *a)
{
        free(a->rules);
        a->rules = mem_array(d->rule_count, sizeof(*a->rules));
        a->rule_count = 0;
        for (size_t i = 0; i < d->rule_count; i++) {
                if (rule_concerns(&d->rules[i], a->name, a->platform))
                        a->rules[a->rule_count++] = &d->rules[i];
        }
}

void rule_select_index(struct dispatch *d)
{
        for (size_t i = 0; i < d->adapter_count; i++)
                index_adapter(d, &d->adapters[i]);
        map_release(&d->rules_by_name);
        for (size_t i = 0; i < d->rule_count; i++) {
                if (!map_get(&d->rules_by_name, d->rules[i].name))
                        map_put(&d->rules_by_name, d->rules[i].name, &d->rules[i]);
        }
}

static const struct rule *first_match(const struct dispatch_adapter *a, struct situation *s)
{
        for (size_t i = 0; i < a->rule_count; i++) {
                if (rule_matches(a->rules[i], s, NULL))
                        return a->rules[i];
        }
        return NULL;
}

/* ---- who answers ---- */

/* Software that has shown a key may name the agent it wants; rules then have nothing to choose. */
static bool is_asked_by_name(const struct matter *m)
{
        return m->in->agent && m->adapter->trusted;
}

const char *rule_select_agent(const struct matter *m)
{
        if (is_asked_by_name(m))
                return m->in->agent;
        if (m->rule && m->rule->agent)
                return m->rule->agent;
        return m->adapter->agent ? m->adapter->agent : m->d->only_agent;
}

/* People write in bursts; they do not react in bursts, nor fill in commands. */
static int64_t debounce_of(const struct matter *m)
{
        if (m->in->is_command)
                return 0;
        if (m->rule && m->rule->debounce_ms >= 0)
                return m->rule->debounce_ms;
        return reaction_limit_applies(m->in) ? 0 : m->adapter->debounce_ms;
}

static bool say_trigger(struct matter *m)
{
        const struct dispatch_adapter *a = m->adapter;
        const struct rule *r = m->rule;
        struct decision *out = m->out;

        out->agent = rule_select_agent(m);
        if (!out->agent)
                return matter_refuse(
                        m,
                        "several agents are configured and neither %s nor adapter '%s' names one",
                        r ? "the rule" : "a rule", a->name);
        out->turns = guard_rate(a, r).turns;
        out->turns_seconds = guard_rate(a, r).seconds;
        out->debounce_ms = debounce_of(m);
        out->debounce_max_ms =
                r && r->debounce_max_ms >= 0 ? r->debounce_max_ms : a->debounce_max_ms;
        rule_policy_fill(m);
        conversation_name(m);
        return true;
}

/* ---- what decides ---- */

static bool decide_by_rule(struct matter *m)
{
        m->out->rule = m->rule->name;
        if (m->rule->off)
                return matter_refuse(m, "rule '%s' says off", m->rule->name);
        return say_trigger(m);
}

/* What holds where no rule speaks about the adapter. */
static bool decide_by_default(struct matter *m)
{
        const struct incoming *in = m->in;

        if (strcmp(event_type(in), EVENT_MESSAGE_RECEIVED) != 0)
                return matter_refuse(m, "event '%s' triggers only by a rule that names it",
                                     event_type(in));
        if (in->sender_is_bot)
                return matter_refuse(m, "the sender is a bot");
        if (!m->adapter->trusted && in->chat != CHAT_DM && !in->is_mention && !in->is_reply &&
            !m->live)
                return matter_refuse(m, "not addressed to the bot: neither DM, mention%s",
                                     m->window_seconds > 0 ? ", reply nor part of a conversation"
                                                           : " nor reply");
        return say_trigger(m);
}

/*
 * With rules, what they do not match is not answered. A trusted adapter that no rule is about keeps
 * answering all the same: rules for a group chat should not silence the terminal.
 */
static bool default_applies(const struct matter *m)
{
        return m->d->rule_count == 0 || (m->adapter->trusted && m->adapter->rule_count == 0);
}

bool rule_select_passes(struct matter *m)
{
        if (is_asked_by_name(m))
                return say_trigger(m);
        m->rule = first_match(m->adapter, &m->situation);
        if (m->rule)
                return decide_by_rule(m);
        if (default_applies(m))
                return decide_by_default(m);
        return matter_refuse(m, "no rule matched: %zu tried", m->d->rule_count);
}

/* ---- backlog ---- */

bool age_passes(struct matter *m)
{
        bool by_rule = m->rule && m->rule->max_age_seconds >= 0;
        int64_t most = by_rule ? m->rule->max_age_seconds : m->adapter->max_age_seconds;

        if (most <= 0 || m->in->time_ms <= 0 || m->now_ms - m->in->time_ms <= most * 1000)
                return true;
        m->out->expired = true;
        return matter_refuse(m, "it is older than the %lld seconds %s '%s' allows", (long long)most,
                             by_rule ? "rule" : "adapter",
                             by_rule ? m->rule->name : m->adapter->name);
}
