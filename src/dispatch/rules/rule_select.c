/*
 * Which rule decides about an event, and which agent answers; and what happens where no rule
 * concerns the adapter.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dispatch/dispatch_private.h"

void rule_select_index(struct dispatch *d)
{
        for (size_t i = 0; i < d->adapter_count; i++) {
                struct dispatch_adapter *a = &d->adapters[i];

                free(a->rules);
                a->rules = mem_array(d->rule_count, sizeof(*a->rules));
                a->rule_count = 0;
                for (size_t k = 0; k < d->rule_count; k++) {
                        if (rule_concerns(&d->rules[k], a->name, a->platform))
                                a->rules[a->rule_count++] = &d->rules[k];
                }
        }
        map_release(&d->rules_by_name);
        for (size_t i = 0; i < d->rule_count; i++) {
                if (!map_get(&d->rules_by_name, d->rules[i].name))
                        map_put(&d->rules_by_name, d->rules[i].name, &d->rules[i]);
        }
}

/* Software that has shown a key may name the agent; then no rule is tried. */
static bool names_agent(const struct evaluation *e)
{
        return e->in->agent && e->adapter->trusted;
}

const char *rule_select_agent(const struct evaluation *e)
{
        if (names_agent(e))
                return e->in->agent;
        if (e->rule && e->rule->agent)
                return e->rule->agent;
        return e->adapter->agent ? e->adapter->agent : e->d->only_agent;
}

/* Fills the decision of an event that triggers. */
static bool trigger(struct evaluation *e)
{
        const struct dispatch_adapter *a = e->adapter;
        const struct rule *r = e->rule;
        struct turn_rate rate = guard_turn_rate(a, r);
        struct decision *out = e->out;

        out->agent = rule_select_agent(e);
        if (!out->agent)
                return evaluation_refuse(
                        e,
                        "several agents are configured and neither %s nor adapter '%s' names one",
                        r ? "the rule" : "a rule", a->name);
        out->turns = rate.turns;
        out->turns_seconds = rate.seconds;
        /* people write in bursts, but they do not react or fill in commands in bursts */
        if (e->in->is_command)
                out->debounce_ms = 0;
        else if (r && r->debounce_ms >= 0)
                out->debounce_ms = r->debounce_ms;
        else
                out->debounce_ms = reaction_limit_applies(e->in) ? 0 : a->debounce_ms;
        out->debounce_max_ms =
                r && r->debounce_max_ms >= 0 ? r->debounce_max_ms : a->debounce_max_ms;
        rule_policy_fill(e);
        decision_session_assign(e);
        return true;
}

static bool decide_without_rules(struct evaluation *e)
{
        const struct incoming *in = e->in;

        if (strcmp(e->type, EVENT_MESSAGE_RECEIVED) != 0)
                return evaluation_refuse(e, "event '%s' triggers only by a rule that names it",
                                         e->type);
        if (in->sender_is_bot)
                return evaluation_refuse(e, "the sender is a bot");
        if (!e->adapter->trusted && in->chat != CHAT_DM && !in->is_mention && !in->is_reply &&
            !e->live_session)
                return evaluation_refuse(e, "not addressed to the bot: neither DM, mention%s",
                                         e->session_seconds > 0
                                                 ? ", reply nor part of a conversation"
                                                 : " nor reply");
        return trigger(e);
}

bool rule_select_guard(struct evaluation *e)
{
        const struct dispatch_adapter *a = e->adapter;

        if (names_agent(e))
                return trigger(e);
        e->rule = NULL;
        for (size_t i = 0; i < a->rule_count && !e->rule; i++) {
                if (rule_matches(a->rules[i], &e->context, NULL))
                        e->rule = a->rules[i];
        }
        if (e->rule) {
                e->out->rule = e->rule->name;
                if (e->rule->off)
                        return evaluation_refuse(e, "rule '%s' says off", e->rule->name);
                return trigger(e);
        }
        /*
         * With rules, only what they match is answered. A trusted adapter that no rule concerns
         * keeps answering: rules for a group chat should not silence the terminal.
         */
        if (e->d->rule_count == 0 || (a->trusted && a->rule_count == 0))
                return decide_without_rules(e);
        return evaluation_refuse(e, "no rule matched: %zu tried", e->d->rule_count);
}
