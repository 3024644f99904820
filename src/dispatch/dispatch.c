#include "dispatch/dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dispatch/dispatch_private.h"
#include "rows/trigger_log_row.h"

static const struct guard decision_guards[] = {
        { "adapter", guard_adapter },   { "own", guard_own },       { "content", guard_content },
        { "link", account_link_guard }, { "access", guard_access }, { "command", command_guard },
        { "rule", rule_select_guard },  { "age", guard_age },       { "handover", guard_handover },
};

static const struct guard admission_guards[] = {
        { "rate", guard_rate },
        { "reaction", guard_reaction },
        { "loop", guard_loop },
        { "budget", guard_budget },
};

/* ---- configuration ---- */

struct dispatch *dispatch_new(void)
{
        struct dispatch *d = mem_zalloc(sizeof(*d));

        map_init(&d->by_name);
        map_init(&d->rules_by_name);
        buf_init(&d->reason, 0);
        buf_init(&d->notice, 0);
        buf_init(&d->session, 0);
        buf_init(&d->chat, 0);
        d->rates = rate_limits_new(RATES_MAX);
        d->sessions = chat_sessions_new(SESSIONS_MAX);
        d->reactions = reaction_limits_new(REACTIONS_MAX);
        d->budget = budget_new();
        d->loops = bot_loops_new(LOOPS_MAX);
        return d;
}

static void release_configuration(struct dispatch *d)
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
        release_configuration(d);
        rate_limits_free(d->rates);
        chat_sessions_free(d->sessions);
        reaction_limits_free(d->reactions);
        budget_free(d->budget);
        bot_loops_free(d->loops);
        buf_release(&d->reason);
        buf_release(&d->notice);
        buf_release(&d->session);
        buf_release(&d->chat);
        free(d);
}

/* After adapters, rules or persons changed: rebuilds what is derived from them. */
static void rebuild(void *dispatch)
{
        struct dispatch *d = dispatch;

        for (size_t i = 0; d->policy && i < d->adapter_count; i++)
                access_resolve(d->adapters[i].access, d->policy->persons);
        free(d->rules);
        d->rules = stored_rules_merge(d->policy ? d->policy->rules : NULL, d->file_rules,
                                      d->file_rule_count, &d->rule_count);
        rule_select_index(d);
}

void dispatch_set_policy(struct dispatch *d, struct runtime_policy *policy)
{
        d->policy = policy;
        if (policy)
                runtime_policy_watch(policy, rebuild, d);
        rebuild(d);
}

struct runtime_policy *dispatch_policy(const struct dispatch *d)
{
        return d->policy;
}

void dispatch_set(struct dispatch *d, struct dispatch_adapter *adapters, size_t adapter_count,
                  struct rule *rules, size_t rule_count, const char *only_agent)
{
        char *only = mem_strdup(only_agent); /* may be the one that is freed here */
        int64_t longest = 0;

        release_configuration(d);
        d->adapters = adapters;
        d->adapter_count = adapter_count;
        d->file_rules = rules;
        d->file_rule_count = rule_count;
        d->rules = NULL;
        d->only_agent = only;
        for (size_t i = 0; i < adapter_count; i++) {
                const struct dispatch_adapter *a = &adapters[i];

                map_put(&d->by_name, a->name, &adapters[i]);
                if (a->conversation_seconds > longest)
                        longest = a->conversation_seconds;
                if (a->dm_conversation_seconds > longest)
                        longest = a->dm_conversation_seconds;
        }
        chat_sessions_set_longest(d->sessions, longest);
        rebuild(d);
}

const struct rule *dispatch_file_rules(const struct dispatch *d, size_t *count)
{
        *count = d->file_rule_count;
        return d->file_rules;
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

void dispatch_set_clock(struct dispatch *d, int64_t now_ms)
{
        d->clock_ms = now_ms;
}

int64_t dispatch_now(const struct dispatch *d)
{
        return d->clock_ms > 0 ? d->clock_ms : clock_wall_ms();
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

/* ---- evaluations ---- */

void evaluation_init(struct evaluation *e, struct dispatch *d, const struct incoming *in,
                     struct decision *out)
{
        *e = (struct evaluation){ .d = d,
                                  .in = in,
                                  .type = in->type ? in->type : EVENT_MESSAGE_RECEIVED,
                                  .adapter = dispatch_adapter_of(d, in),
                                  .now_ms = dispatch_now(d),
                                  .out = out };
        e->context.in = in;
        e->context.persons = d->policy ? d->policy->persons : NULL;
        e->context.platform = e->adapter ? e->adapter->platform : NULL;
        buf_clear(&d->reason);
        buf_clear(&d->notice);
        decision_session_find(e);
}

void evaluation_release(struct evaluation *e)
{
        rule_context_release(&e->context);
}

static bool run_guards(struct evaluation *e, const struct guard *guards, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                if (!guards[i].check(e)) {
                        e->guard = guards[i].name;
                        return false;
                }
        }
        return true;
}

bool evaluation_decide(struct evaluation *e)
{
        return run_guards(e, decision_guards, COUNT(decision_guards));
}

bool evaluation_admit(struct evaluation *e)
{
        return run_guards(e, admission_guards, COUNT(admission_guards));
}

bool evaluation_refuse(struct evaluation *e, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        buf_vaddf(&e->d->reason, fmt, ap);
        va_end(ap);
        return false;
}

void evaluation_notify(struct evaluation *e, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        buf_vaddf(&e->d->notice, fmt, ap);
        va_end(ap);
}

void evaluation_finish(struct evaluation *e)
{
        const struct dispatch *d = e->d;

        if (!e->guard)
                return;
        /* the platform shows that an answer is coming */
        if (e->in->is_awaited && !e->dry && !e->command && d->notice.len == 0)
                evaluation_notify(e, "I do not answer this here.");
        e->out->reason = d->reason.len > 0 ? d->reason.data : NULL;
        e->out->notice = d->notice.len > 0 ? d->notice.data : NULL;
}

/* ---- decisions ---- */

/* A turn begins, or a message joins one. */
static void count_turn(struct evaluation *e)
{
        struct dispatch *d = e->d;
        struct rate_key key = guard_rate_key(e->in);

        if (!e->joins_turn) {
                rate_limit_count(d->rates, &key, guard_turn_rate(e->adapter, e->rule), e->now_ms);
                budget_begin(d->budget,
                             &(struct budget_turn){ e->in->trace, e->in->adapter, e->out->rule,
                                                    e->out->agent },
                             e->now_ms);
        }
        if (e->in->sender_is_bot)
                bot_loop_count(d->loops, e->in, e->now_ms);
        if (reaction_limit_applies(e->in))
                reaction_limit_count(d->reactions, e->in, e->now_ms);
        decision_session_open(e);
}

/* Only the road knows whether the message begins a turn, joins one, or finds no room. */
static bool admit(struct evaluation *e, const struct placement_query *query)
{
        enum placement placement = query->ask(query->arg, e->out);

        if (placement == PLACEMENT_REFUSED) /* with a reason */
                return false;
        e->joins_turn = placement == PLACEMENT_JOINS_TURN;
        if (!evaluation_admit(e))
                return false;
        count_turn(e);
        return true;
}

/* Records senders that are allowed, and offers a code to strangers in a direct chat. */
static void record_sender(struct evaluation *e)
{
        const struct dispatch_adapter *a = e->adapter;
        const struct runtime_policy *policy = e->d->policy;
        const struct incoming *in = e->in;

        if (!policy || in->sender_is_bot || !in->sender_id)
                return;
        /* software that writes with a key is not a person */
        if (e->is_allowed && !a->trusted)
                persons_record(policy->persons, a->platform, in, e->now_ms, e->out);
        else if (e->is_stranger && a->access && access_pairs(a->access) && in->chat == CHAT_DM &&
                 strcmp(e->type, EVENT_MESSAGE_RECEIVED) == 0)
                pairing_offer(policy->pairings, a->platform, in, e->out,
                              (struct pairing_words){ &e->d->notice, &e->d->reason });
}

void dispatch_decide(struct dispatch *d, const struct incoming *in,
                     const struct placement_query *query, struct decision *out)
{
        struct evaluation e;

        *out = (struct decision){ 0 };
        evaluation_init(&e, d, in, out);
        /* edits, deletions and reactions do not end a chain of bots */
        if (!in->sender_is_bot && !in->is_own && strcmp(e.type, EVENT_MESSAGE_RECEIVED) == 0)
                bot_loop_break(d->loops, in);
        out->trigger = evaluation_decide(&e) && (!query || admit(&e, query));
        if (e.link_code)
                account_link_run(&e);
        else
                record_sender(&e);
        if (e.counts_command)
                command_count(&e);
        if (e.command)
                command_run(&e);
        evaluation_finish(&e);
        evaluation_release(&e);
}

/* ---- the end of a turn ---- */

/* The chat key in which the session continues: a thread that the answer began; NULL: the same. */
static const char *next_chat(struct dispatch *d, const struct turn_run *run,
                             const struct turn_outcome *outcome)
{
        if (!outcome->thread)
                return NULL;
        buf_clear(&d->chat);
        chat_session_thread_key(run->adapter, run->channel, outcome->thread, &d->chat);
        return d->chat.data;
}

void dispatch_ending(struct dispatch *d, const struct turn_run *run,
                     const struct turn_outcome *outcome, struct tx_extra *extra)
{
        if (run->session)
                *extra = chat_session_ended_extra(run->session, next_chat(d, run, outcome),
                                                  dispatch_now(d));
}

void dispatch_ended(struct dispatch *d, const struct turn_run *run,
                    const struct turn_outcome *outcome)
{
        int64_t now_ms = dispatch_now(d);

        budget_end(d->budget,
                   &(struct budget_turn){ run->trace, run->adapter, run->rule, run->agent },
                   outcome->cost_microusd, now_ms);
        if (run->session)
                chat_session_ended(d->sessions, run->session, next_chat(d, run, outcome), now_ms);
}

/* ---- after a restart ---- */

static int64_t longest_rate(const struct dispatch *d)
{
        int64_t seconds = 0;

        for (size_t i = 0; i < d->adapter_count; i++) {
                if (d->adapters[i].rate.seconds > seconds)
                        seconds = d->adapters[i].rate.seconds;
        }
        for (size_t i = 0; i < d->rule_count; i++) {
                if (d->rules[i].rate.seconds > seconds)
                        seconds = d->rules[i].rate.seconds;
        }
        return seconds;
}

/* Rows come newest first; a turn counts by its first message, which comes last. */
static int restore_rates(struct dispatch *d, struct store_tx *tx, struct error *err)
{
        int64_t since_ms = dispatch_now(d) - longest_rate(d) * 1000;
        struct store_stmt *s = trigger_log_row_list_turns(tx, RATES_MAX);
        struct trigger_turn row, *turns = NULL;
        struct map seen;
        size_t count = 0;
        int rc;

        while ((rc = trigger_log_row_next_turn(s, since_ms, &row, err)) == 1) {
                turns = mem_realloc(turns, (count + 1) * sizeof(*turns));
                turns[count++] = (struct trigger_turn){ mem_strdup(row.adapter),
                                                        mem_strdup(row.channel),
                                                        mem_strdup(row.sender),
                                                        mem_strdup(row.rule),
                                                        row.turn,
                                                        row.time_ms };
        }
        map_init(&seen);
        for (; count > 0; count--) {
                struct trigger_turn *t = &turns[count - 1];
                const struct dispatch_adapter *a = map_get(&d->by_name, t->adapter);
                char *key = mem_printf("%lld", (long long)t->turn);

                if (a && !map_put(&seen, key, d))
                        rate_limit_count(d->rates,
                                         &(struct rate_key){ t->adapter, t->channel, t->sender },
                                         guard_turn_rate(a, dispatch_rule(d, t->rule)), t->time_ms);
                free(key);
                free((char *)t->adapter);
                free((char *)t->channel);
                free((char *)t->sender);
                free((char *)t->rule);
        }
        map_release(&seen);
        free(turns);
        return rc;
}

static int restore(struct store_tx *tx, void *arg, struct error *err)
{
        struct dispatch *d = arg;
        int64_t now_ms = dispatch_now(d);

        if (restore_rates(d, tx, err) < 0 ||
            chat_session_restore(d->sessions, tx, now_ms, err) < 0 ||
            reaction_limit_restore(d->reactions, tx, now_ms, err) < 0)
                return -1;
        return budget_restore(d->budget, tx, now_ms, err);
}

int dispatch_restore(struct dispatch *d, struct store *s, struct error *err)
{
        return store_read_now(s, restore, d, err);
}
