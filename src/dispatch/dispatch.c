/*
 * The evaluator: an event passes the guards below in the order in which they stand. Each "no"
 * leaves the guard's name and a sentence for a person.
 */
#include "dispatch/dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dispatch/dispatch_private.h"
#include "dispatch/guards.h"

/* A guard is a line. */
/* clang-format off */
const struct guard dispatch_guards[] = {
        { "adapter", is_configured },
        { "own", is_not_own },
        { "content", has_content },
        { "link", is_no_link },
        { "access", may_talk },
        { "person", is_noted },
        { "command", is_no_command },
        { "rule", rule_select_passes },
        { "age", age_passes },
        { "handover", is_not_paused },
        { NULL, NULL },
};

const struct guard dispatch_admission[] = {
        { "rate", is_not_too_fast },
        { "reaction", is_no_repetition },
        { "loop", is_no_loop },
        { "budget", is_affordable },
        { NULL, NULL },
};
/* clang-format on */

struct dispatch *dispatch_new(void)
{
        struct dispatch *d = mem_zalloc(sizeof(*d));

        map_init(&d->by_name);
        map_init(&d->rules_by_name);
        buf_init(&d->reason, 0);
        buf_init(&d->notice, 0);
        buf_init(&d->session, 0);
        buf_init(&d->place, 0);
        d->rates = rate_limits_new(PEOPLE_MAX);
        d->sessions = chat_sessions_new(SESSIONS_MAX);
        d->reactions = reaction_limits_new(REACTED_MAX);
        d->budget = budget_new();
        d->loops = bot_loops_new(LOOPS_MAX);
        return d;
}

static void forget(struct dispatch *d)
{
        for (size_t i = 0; i < d->adapter_count; i++) {
                free(d->adapters[i].name);
                free(d->adapters[i].platform);
                free(d->adapters[i].agent);
                access_free(d->adapters[i].access);
                free(d->adapters[i].rules);
        }
        for (size_t i = 0; i < d->file_rule_count; i++)
                rule_release(&d->file_rules[i]);
        free(d->adapters);
        free(d->file_rules);
        free(d->rules);
        free(d->only_agent);
        map_release(&d->by_name);
        map_release(&d->rules_by_name);
}

void dispatch_free(struct dispatch *d)
{
        if (!d)
                return;
        forget(d);
        rate_limits_free(d->rates);
        chat_sessions_free(d->sessions);
        reaction_limits_free(d->reactions);
        budget_free(d->budget);
        bot_loops_free(d->loops);
        buf_release(&d->reason);
        buf_release(&d->notice);
        buf_release(&d->session);
        buf_release(&d->place);
        free(d);
}

/*
 * After the adapters, the file's rules or something on the desk changed: what is made of them is
 * made anew.
 */
static void renew(void *dispatch)
{
        struct dispatch *d = dispatch;

        for (size_t i = 0; d->policy && i < d->adapter_count; i++)
                access_resolve(d->adapters[i].access, d->policy->persons);
        free(d->rules);
        d->rules = stored_rules_merge(d->policy ? d->policy->rules : NULL, d->file_rules,
                                      d->file_rule_count, &d->rule_count);
        rule_select_index(d);
}

void dispatch_set_clock(struct dispatch *d, int64_t now_ms)
{
        d->clock_ms = now_ms;
}

int64_t dispatch_now(const struct dispatch *d)
{
        return d->clock_ms > 0 ? d->clock_ms : clock_wall_ms();
}

void dispatch_set_policy(struct dispatch *d, struct runtime_policy *policy)
{
        d->policy = policy;
        if (policy)
                runtime_policy_watch(policy, renew, d);
        renew(d);
}

const struct rule *dispatch_file_rules(const struct dispatch *d, size_t *count)
{
        *count = d->file_rule_count;
        return d->file_rules;
}

struct runtime_policy *dispatch_policy(const struct dispatch *d)
{
        return d->policy;
}

static int64_t longest_window(const struct dispatch *d)
{
        int64_t seconds = 0;

        for (size_t i = 0; i < d->adapter_count; i++) {
                const struct dispatch_adapter *a = &d->adapters[i];

                seconds = a->conversation_seconds > seconds ? a->conversation_seconds : seconds;
                seconds =
                        a->dm_conversation_seconds > seconds ? a->dm_conversation_seconds : seconds;
        }
        return seconds;
}

void dispatch_set(struct dispatch *d, struct dispatch_adapter *adapters, size_t adapter_count,
                  struct rule *rules, size_t rule_count, const char *only_agent)
{
        char *only = mem_strdup(only_agent); /* it may be the one we are about to forget */

        forget(d);
        d->adapters = adapters;
        d->adapter_count = adapter_count;
        d->file_rules = rules;
        d->file_rule_count = rule_count;
        d->rules = NULL;
        d->only_agent = only;
        for (size_t i = 0; i < adapter_count; i++)
                map_put(&d->by_name, adapters[i].name, &adapters[i]);
        renew(d);
        chat_sessions_set_longest(d->sessions, longest_window(d));
}

bool dispatch_describe(const struct dispatch *d, const char *adapter, struct buf *out)
{
        const struct dispatch_adapter *a = map_get(&d->by_name, adapter);

        if (!a || a->trusted || !a->access)
                return false;
        buf_addf(out, "%s %s: ", a->platform, a->name);
        access_describe(a->access, out);
        return true;
}

const char *event_type(const struct incoming *in)
{
        return in->type ? in->type : EVENT_MESSAGE_RECEIVED;
}

const struct dispatch_adapter *dispatch_adapter_of(const struct dispatch *d,
                                                   const struct incoming *in)
{
        return in->adapter ? map_get(&d->by_name, in->adapter) : NULL;
}

const struct rule *dispatch_rule(const struct dispatch *d, const char *name)
{
        return name ? map_get(&d->rules_by_name, name) : NULL;
}

/* ---- a matter ---- */

void matter_init(struct matter *m, struct dispatch *d, const struct incoming *in,
                 struct decision *out)
{
        *m = (struct matter){ .d = d,
                              .in = in,
                              .adapter = dispatch_adapter_of(d, in),
                              .now_ms = dispatch_now(d),
                              .out = out };
        buf_clear(&d->reason);
        buf_clear(&d->notice);
        d->guard = NULL;
        situation_init(&m->situation, in);
        m->situation.persons = m->d->policy ? m->d->policy->persons : NULL;
        m->situation.platform = m->adapter ? m->adapter->platform : NULL;
        conversation_look(m);
}

void matter_release(struct matter *m)
{
        situation_release(&m->situation);
}

/* Whoever sees that a command is being worked on should not be left with nothing. */
static bool is_waited_for(const struct matter *m)
{
        return m->in->is_awaited && !m->dry && m->d->notice.len == 0 &&
               m->out->command == COMMAND_NONE;
}

bool matter_pass(struct matter *m, const struct guard *guards)
{
        for (; guards->name; guards++) {
                if (guards->passes(m))
                        continue;
                if (is_waited_for(m))
                        matter_notice(m, "I do not answer this here.");
                m->d->guard = guards->name;
                m->out->trigger = false;
                m->out->reason = m->d->reason.len > 0 ? m->d->reason.data : NULL;
                m->out->notice = m->d->notice.len > 0 ? m->d->notice.data : NULL;
                return false;
        }
        return true;
}

bool matter_refuse(struct matter *m, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        buf_vaddf(&m->d->reason, fmt, ap);
        va_end(ap);
        return false;
}

void matter_notice(struct matter *m, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        buf_vaddf(&m->d->notice, fmt, ap);
        va_end(ap);
}

/* ---- the road's hooks ---- */

/* Whoever edits, deletes or reacts says nothing, and who it was is often not told. */
static bool is_said_by_a_person(const struct incoming *in)
{
        return !in->sender_is_bot && !in->is_own &&
               strcmp(event_type(in), EVENT_MESSAGE_RECEIVED) == 0;
}

/* A turn is about to be placed, or a message to join one that waits: what counts them is told. */
static void note_placed(struct matter *m)
{
        struct rate_key who = guard_rate_key(m->in);

        if (!m->joins_turn) {
                rate_limit_count(m->d->rates, &who, guard_rate(m->adapter, m->rule), m->now_ms);
                budget_begin(m->d->budget,
                             &(struct budget_turn){ m->in->trace, m->in->adapter, m->out->rule,
                                                    m->out->agent },
                             m->now_ms);
        }
        if (m->in->sender_is_bot)
                bot_loop_count(m->d->loops, m->in, m->now_ms);
        if (reaction_limit_applies(m->in))
                reaction_limit_count(m->d->reactions, m->in, m->now_ms);
        conversation_placed(m);
}

/* Only the road knows whether the message begins a turn, joins one, or finds no room. */
static bool admit(struct matter *m, const struct placement_query *query)
{
        enum placement placement = query->ask(query->arg, m->out);

        if (placement == PLACEMENT_REFUSED) {
                m->d->guard = "mailbox";
                return false;
        }
        m->joins_turn = placement == PLACEMENT_JOINS_TURN;
        buf_clear(&m->d->reason);
        if (!matter_pass(m, dispatch_admission))
                return false;
        note_placed(m);
        return true;
}

void dispatch_decide(struct dispatch *d, const struct incoming *in,
                     const struct placement_query *query, struct decision *out)
{
        struct matter m;

        *out = (struct decision){ 0 };
        matter_init(&m, d, in, out);
        if (is_said_by_a_person(in))
                bot_loop_break(m.d->loops, in);
        out->trigger = matter_pass(&m, dispatch_guards) && (!query || admit(&m, query));
        if (m.command)
                command_carry_out(&m);
        matter_release(&m);
}
