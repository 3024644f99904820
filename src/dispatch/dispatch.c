#include "dispatch/dispatch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dispatch/dispatch_private.h"

#define RATES_MAX     20000 /* senders with counted turns */
#define SESSIONS_MAX  20000 /* live sessions */
#define REACTIONS_MAX 20000 /* messages with counted reactions */
#define LOOPS_MAX     1000  /* chats in which bots answer each other */

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
        buf_init(&d->rules_tried, 0);
        buf_init(&d->rule_why, RULE_WHY_BYTES);
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
                rule_conf_release(&d->file_rules[i]);
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
        buf_release(&d->rules_tried);
        buf_release(&d->rule_why);
        free(d);
}

/* Called after adapters, rules or persons changed. */
static void rebuild(void *dispatch)
{
        struct dispatch *d = dispatch;

        for (size_t i = 0; d->policy && i < d->adapter_count; i++)
                access_resolve(d->adapters[i].access, d->policy->persons);
        free(d->rules);
        d->rules = stored_rules_merge(d->policy ? d->policy->rules : NULL, d->file_rules,
                                      d->file_rule_count, &d->rule_count);
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

void dispatch_set_policy(struct dispatch *d, struct runtime_policy *policy)
{
        d->policy = policy;
        if (policy) {
                policy->changed = rebuild;
                policy->changed_arg = d;
        }
        rebuild(d);
}

void dispatch_set_schedule(struct dispatch *d, const struct road_schedule *schedule)
{
        d->schedule = schedule ? *schedule : (struct road_schedule){ 0 };
}

void dispatch_set_remote(struct dispatch *d, const struct road_remote *remote)
{
        d->remote = remote ? *remote : (struct road_remote){ 0 };
}

struct runtime_policy *dispatch_policy(const struct dispatch *d)
{
        return d->policy;
}

void dispatch_set(struct dispatch *d, struct dispatch_adapter *adapters, size_t adapter_count,
                  struct rule *rules, size_t rule_count, const char *only_agent)
{
        char *only = mem_strdup(only_agent); /* may be the string freed here */
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

/* ---- turns ---- */

void dispatch_ending(struct dispatch *d, const struct turn_run *run,
                     const struct turn_outcome *outcome, struct tx_extra *extra)
{
        *extra = chat_session_ending(d, run, outcome);
}

void dispatch_ended(struct dispatch *d, const struct turn_run *run,
                    const struct turn_outcome *outcome)
{
        struct budget_turn turn = { run->trace, run->adapter, run->rule, run->agent };

        budget_end(d->budget, &turn, outcome->cost_microusd, dispatch_now(d));
        chat_session_ended(d, run, outcome);
}

static int restore(struct store_tx *tx, void *arg, struct error *err)
{
        struct dispatch *d = arg;
        int64_t now_ms = dispatch_now(d);

        if (rate_limit_restore(d, tx, err) < 0 ||
            chat_session_restore(d->sessions, tx, now_ms, err) < 0 ||
            reaction_limit_restore(d->reactions, tx, now_ms, err) < 0)
                return -1;
        return budget_restore(d->budget, tx, now_ms, err);
}

int dispatch_restore(struct dispatch *d, struct store *s, struct error *err)
{
        return store_read_now(s, restore, d, err);
}
