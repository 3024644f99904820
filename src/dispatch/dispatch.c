/*
 * The evaluator. A decision is made in this order: is the adapter known, is the event too old, which rule matches first, and without
 * rules: is it addressed to the bot. Each "no" leaves a sentence for a person.
 */
#include "dispatch/dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/map.h"
#include "base/mem.h"
#include "dispatch/rules.h"

struct dispatch {
        struct dispatch_adapter *adapters;
        size_t adapter_count;
        struct map by_name; /* → struct dispatch_adapter */
        struct rule *rules;
        size_t rule_count;
        char *only_agent;
        struct buf reason; /* of the last decision */
};

struct dispatch *dispatch_new(void)
{
        struct dispatch *d = mem_zalloc(sizeof(*d));

        map_init(&d->by_name);
        buf_init(&d->reason, 0);
        return d;
}

static void forget(struct dispatch *d)
{
        for (size_t i = 0; i < d->adapter_count; i++) {
                free(d->adapters[i].name);
                free(d->adapters[i].platform);
                free(d->adapters[i].agent);
        }
        for (size_t i = 0; i < d->rule_count; i++)
                rule_release(&d->rules[i]);
        free(d->adapters);
        free(d->rules);
        free(d->only_agent);
        map_release(&d->by_name);
}

void dispatch_free(struct dispatch *d)
{
        if (!d)
                return;
        forget(d);
        buf_release(&d->reason);
        free(d);
}

void dispatch_set(struct dispatch *d, struct dispatch_adapter *adapters, size_t adapter_count,
                  struct rule *rules, size_t rule_count, const char *only_agent)
{
        char *only = mem_strdup(only_agent); /* it may be the one we are about to forget */

        forget(d);
        d->adapters = adapters;
        d->adapter_count = adapter_count;
        d->rules = rules;
        d->rule_count = rule_count;
        d->only_agent = only;
        for (size_t i = 0; i < adapter_count; i++)
                map_put(&d->by_name, adapters[i].name, &adapters[i]);
}

static const char *type_of(const struct incoming *in)
{
        return in->type ? in->type : EVENT_MESSAGE_RECEIVED;
}

static bool too_old(const struct dispatch_adapter *a, const struct incoming *in)
{
        if (a->max_age_seconds <= 0 || in->time_ms <= 0)
                return false;
        return clock_wall_ms() - in->time_ms > a->max_age_seconds * 1000;
}

static const char *agent_for(const struct dispatch *d, const struct dispatch_adapter *a, const struct rule *r)
{
        if (r && r->agent)
                return r->agent;
        return a->agent ? a->agent : d->only_agent;
}

static void say_trigger(struct dispatch *d, const struct dispatch_adapter *a, const struct rule *r,
                        struct decision *out)
{
        out->agent = agent_for(d, a, r);
        if (!out->agent) {
                buf_addf(&d->reason,
                         "several agents are configured and neither %s nor adapter '%s' names one",
                         r ? "the rule" : "a rule", a->name);
                return;
        }
        out->trigger = true;
        out->debounce_ms = r && r->debounce_ms >= 0 ? r->debounce_ms : a->debounce_ms;
        out->debounce_max_ms = a->debounce_max_ms;
}

static void decide_by_rule(struct dispatch *d, const struct dispatch_adapter *a, const struct rule *r,
                           struct decision *out)
{
        out->rule = r->name;
        if (strcmp(r->mode, "off") == 0)
                buf_addf(&d->reason, "rule '%s' says off", r->name);
        else
                say_trigger(d, a, r, out);
}

/* What holds where no rule speaks about the adapter. */
static void decide_by_default(struct dispatch *d, const struct dispatch_adapter *a, const struct incoming *in,
                              struct decision *out)
{
        if (strcmp(type_of(in), EVENT_MESSAGE_RECEIVED) != 0)
                buf_addf(&d->reason, "event '%s' triggers only by a rule that names it", type_of(in));
        else if (in->sender_is_bot)
                buf_addstr(&d->reason, "the sender is a bot");
        else if (!a->trusted && in->chat != CHAT_DM && !in->is_mention && !in->is_reply)
                buf_addstr(&d->reason, "not addressed to the bot: neither DM, mention nor reply");
        else
                say_trigger(d, a, NULL, out);
}

static const struct rule *first_match(const struct dispatch *d, const struct incoming *in)
{
        for (size_t i = 0; i < d->rule_count; i++) {
                if (rule_matches(&d->rules[i], in, NULL))
                        return &d->rules[i];
        }
        return NULL;
}

/*
 * With rules, what they do not match is not answered. A trusted adapter that no rule is about keeps answering all the same: rules
 * for a group chat should not silence the terminal.
 */
static bool default_applies(const struct dispatch *d, const struct dispatch_adapter *a)
{
        if (d->rule_count == 0)
                return true;
        if (!a->trusted)
                return false;
        for (size_t i = 0; i < d->rule_count; i++) {
                if (rule_concerns(&d->rules[i], a->name, a->platform))
                        return false;
        }
        return true;
}

static void evaluate(struct dispatch *d, const struct incoming *in, struct decision *out)
{
        const struct dispatch_adapter *a = in->adapter ? map_get(&d->by_name, in->adapter) : NULL;
        const struct rule *r;

        if (!a) {
                buf_addf(&d->reason, "adapter '%s' is not configured", in->adapter ? in->adapter : "");
                return;
        }
        if (too_old(a, in)) {
                out->expired = true;
                buf_addf(&d->reason, "it is older than the %lld seconds adapter '%s' allows",
                         (long long)a->max_age_seconds, a->name);
                return;
        }
        r = first_match(d, in);
        if (r)
                decide_by_rule(d, a, r, out);
        else if (default_applies(d, a))
                decide_by_default(d, a, in, out);
        else
                buf_addf(&d->reason, "no rule matched: %zu tried", d->rule_count);
}

void dispatch_decide(void *dispatch, const struct incoming *in, struct decision *out)
{
        struct dispatch *d = dispatch;

        *out = (struct decision){ 0 };
        buf_clear(&d->reason);
        evaluate(d, in, out);
        out->reason = d->reason.len > 0 ? d->reason.data : NULL;
}

static void explain_rules(const struct dispatch *d, const struct incoming *in, struct buf *json)
{
        bool decided = false;
        struct buf why;

        buf_init(&why, 0);
        for (size_t i = 0; i < d->rule_count; i++) {
                bool matched = rule_matches(&d->rules[i], in, &why);

                if (matched)
                        buf_addstr(&why, decided ? "all conditions hold, but an earlier rule came first"
                                                 : "all conditions hold");
                decided = decided || matched;
                jsonw_open(json, '{');
                jsonw_str(json, "name", d->rules[i].name);
                jsonw_bool(json, "matched", matched);
                jsonw_str(json, "why", why.data);
                jsonw_close(json, '}');
                buf_clear(&why);
        }
        buf_release(&why);
}

void dispatch_explain(struct dispatch *d, const struct incoming *in, struct buf *json)
{
        struct decision decision;

        dispatch_decide(d, in, &decision);
        jsonw_open(json, '{');
        jsonw_open_member(json, "decision", '{');
        jsonw_bool(json, "trigger", decision.trigger);
        jsonw_bool(json, "expired", decision.expired);
        jsonw_str(json, "agent", decision.agent);
        jsonw_str(json, "rule", decision.rule);
        jsonw_str(json, "reason", decision.reason);
        jsonw_int(json, "debounceMs", decision.debounce_ms);
        jsonw_close(json, '}');
        jsonw_open_member(json, "rules", '[');
        explain_rules(d, in, json);
        jsonw_close(json, ']');
        jsonw_close(json, '}');
}
