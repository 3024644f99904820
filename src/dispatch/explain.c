/*
 * The whole reasoning about an event, told without anything happening.
 */
#include <stdlib.h>

#include "base/jsonw.h"
#include "dispatch/access/access_check.h"
#include "dispatch/dispatch_private.h"

/* own: only the rules that can concern this adapter; NULL: all. */
static void explain_rules(const struct dispatch *d, const struct dispatch_adapter *own,
                          struct situation *s, struct buf *json)
{
        bool decided = false;
        struct buf why;

        buf_init(&why, 0);
        for (size_t i = 0; i < (own ? own->rule_count : d->rule_count); i++) {
                const struct rule *r = own ? own->rules[i] : &d->rules[i];
                bool matched = rule_matches(r, s, &why);

                if (matched)
                        buf_addstr(&why,
                                   decided ? "all conditions hold, but an earlier rule came first"
                                           : "all conditions hold");
                decided = decided || matched;
                jsonw_open(json, '{');
                jsonw_str(json, "name", r->name);
                jsonw_bool(json, "matched", matched);
                jsonw_str(json, "why", why.data);
                jsonw_close(json, '}');
                buf_clear(&why);
        }
        buf_release(&why);
}

static void explain_decision(const struct matter *m, struct buf *json)
{
        const struct decision *decision = m->out;

        jsonw_open_member(json, "decision", '{');
        jsonw_bool(json, "trigger", decision->trigger);
        jsonw_bool(json, "expired", decision->expired);
        jsonw_str(json, "guard", m->d->guard);
        jsonw_str(json, "agent", decision->agent);
        jsonw_str(json, "rule", decision->rule);
        jsonw_str(json, "reason", decision->reason);
        jsonw_int(json, "debounceMs", decision->debounce_ms);
        jsonw_str(json, "mode",
                  decision->trigger ? reply_mode_name(m->rule ? m->rule->mode : MODE_REPLY) : NULL);
        jsonw_bool(json, "conversation", m->live != NULL);
        jsonw_str(json, "command", m->command ? m->command->name : NULL);
        jsonw_close(json, '}');
}

static void explain_access(const struct dispatch *d, const struct incoming *in, struct buf *json)
{
        const struct dispatch_adapter *a = dispatch_adapter_of(d, in);
        struct buf why;
        bool allowed;

        buf_init(&why, 0);
        allowed = a && access_check_sender(d->policy, a, in, dispatch_now(d), &why).outcome ==
                               ACCESS_ALLOWED;
        jsonw_open_member(json, "access", '{');
        jsonw_bool(json, "allowed", allowed);
        jsonw_str(json, "why",
                  why.len > 0       ? why.data
                  : a && a->trusted ? "the platform is trusted"
                                    : NULL);
        jsonw_close(json, '}');
        buf_release(&why);
}

static void explain_rate(const struct dispatch *d, const struct incoming *in,
                         const struct decision *decision, struct buf *json)
{
        struct turn_rate rate = { decision->turns, decision->turns_seconds };
        struct rate_key who = guard_rate_key(in);

        if (rate.turns <= 0) {
                jsonw_null(json, "rateLimit");
                return;
        }
        jsonw_open_member(json, "rateLimit", '{');
        jsonw_int(json, "turns", rate.turns);
        jsonw_int(json, "seconds", rate.seconds);
        jsonw_int(json, "waitMs", rate_limit_wait_ms(d->rates, &who, rate, dispatch_now(d)));
        jsonw_close(json, '}');
}

static void explain(struct dispatch *d, const struct incoming *in, bool all_rules, struct buf *json)
{
        const struct dispatch_adapter *a = dispatch_adapter_of(d, in);
        struct incoming event = *in;
        struct decision decision = { 0 };
        struct matter m;

        if (!event.platform && a)
                event.platform = a->platform; /* a made-up event need not know it */
        matter_init(&m, d, &event, &decision);
        m.dry = true;
        decision.trigger = matter_pass(&m, dispatch_guards) && matter_pass(&m, dispatch_admission);
        jsonw_open(json, '{');
        explain_decision(&m, json);
        explain_access(d, &event, json);
        explain_rate(d, &event, &decision, json);
        jsonw_open_member(json, "rules", '[');
        if (all_rules || a)
                explain_rules(d, all_rules ? NULL : a, &m.situation, json);
        jsonw_close(json, ']');
        jsonw_close(json, '}');
        matter_release(&m);
}

void dispatch_explain(struct dispatch *d, const struct incoming *in, struct buf *json)
{
        explain(d, in, true, json);
}

void dispatch_explain_own(struct dispatch *d, const struct incoming *in, struct buf *json)
{
        explain(d, in, false, json);
}
