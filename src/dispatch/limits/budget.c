#include <stdlib.h>
#include <sys/queue.h>

#include "base/map.h"
#include "base/mem.h"
#include "dispatch/dispatch_private.h"
#include "rows/turn_row.h"

#define DAY_MS       ((int64_t)86400000)
#define MEAN_WEIGHT  8   /* a new cost moves the mean by this fraction */
#define RESTORE_MEAN 256 /* turns read for the means after a restart */

struct budget_sum {
        int64_t spent;    /* microusd, today */
        int64_t expected; /* of unfinished turns */
        unsigned open;    /* turns in `expected` */
};

/* An unfinished turn with an expected cost. */
struct open_turn {
        char *key, *adapter, *rule;
        int64_t expected, since_ms;
        struct open_turn *same;      /* same key: clients may repeat a trace id */
        TAILQ_ENTRY(open_turn) next; /* oldest first */
};

struct budget {
        int64_t day;
        struct map adapters, rules; /* → struct budget_sum */
        struct map agents;          /* → int64_t: mean microusd of turns that cost something */
        TAILQ_HEAD(open_turns, open_turn) open;
        struct map by_key; /* → struct open_turn, head of its chain */
};

struct budget *budget_new(void)
{
        struct budget *b = mem_zalloc(sizeof(*b));

        map_init(&b->adapters);
        map_init(&b->rules);
        map_init(&b->agents);
        map_init(&b->by_key);
        TAILQ_INIT(&b->open);
        return b;
}

static void clear(struct map *m)
{
        void *value;

        for (size_t i = 0; map_each(m, &i, NULL, &value);)
                free(value);
        map_release(m);
        map_init(m);
}

static void open_turn_free(struct budget *b, struct open_turn *t)
{
        struct open_turn *first = map_remove(&b->by_key, t->key), **at = &first;

        while (*at != t)
                at = &(*at)->same;
        *at = t->same;
        if (first)
                map_put(&b->by_key, first->key, first);
        TAILQ_REMOVE(&b->open, t, next);
        free(t->key);
        free(t->adapter);
        free(t->rule);
        free(t);
}

void budget_free(struct budget *b)
{
        struct open_turn *t;

        if (!b)
                return;
        while ((t = TAILQ_FIRST(&b->open)))
                open_turn_free(b, t);
        map_release(&b->by_key);
        clear(&b->adapters);
        clear(&b->rules);
        clear(&b->agents);
        free(b);
}

/* ---- sums ---- */

/* Finds or adds it. */
static struct budget_sum *sum_at(struct map *m, const char *name)
{
        struct budget_sum *sum = map_get(m, name);

        if (!sum) {
                sum = mem_zalloc(sizeof(*sum));
                map_put(m, name, sum);
        }
        return sum;
}

static void expect(struct budget *b, const struct open_turn *t)
{
        struct budget_sum *sums[] = { sum_at(&b->adapters, t->adapter),
                                      t->rule ? sum_at(&b->rules, t->rule) : NULL };

        for (size_t i = 0; i < COUNT(sums) && sums[i]; i++) {
                sums[i]->expected += t->expected;
                sums[i]->open++;
        }
}

/* Drops yesterday's sums and turns whose end went unreported for a day. */
static void begin_day(struct budget *b, int64_t now_ms)
{
        struct open_turn *t;

        if (b->day == now_ms / DAY_MS)
                return;
        b->day = now_ms / DAY_MS;
        while ((t = TAILQ_FIRST(&b->open)) && now_ms - t->since_ms > DAY_MS)
                open_turn_free(b, t);
        clear(&b->adapters);
        clear(&b->rules);
        TAILQ_FOREACH(t, &b->open, next)
                expect(b, t);
}

void budget_begin(struct budget *b, const struct budget_turn *turn, int64_t now_ms)
{
        const int64_t *mean = turn->agent ? map_get(&b->agents, turn->agent) : NULL;
        struct open_turn *t;

        if (!mean || !turn->trace)
                return;
        begin_day(b, now_ms);
        t = mem_zalloc(sizeof(*t));
        t->key = mem_printf("%s\n%s", turn->trace, turn->adapter);
        t->adapter = mem_strdup(turn->adapter);
        t->rule = mem_strdup(turn->rule);
        t->expected = *mean;
        t->since_ms = now_ms;
        t->same = map_put(&b->by_key, t->key, t);
        TAILQ_INSERT_TAIL(&b->open, t, next);
        expect(b, t);
}

static void update_mean(struct budget *b, const char *agent, int64_t microusd)
{
        int64_t *mean = map_get(&b->agents, agent);

        if (mean)
                *mean += (microusd - *mean) / MEAN_WEIGHT;
        else
                map_put(&b->agents, agent, mem_dup(&microusd, sizeof(microusd)));
}

void budget_end(struct budget *b, const struct budget_turn *turn, int64_t microusd, int64_t now_ms)
{
        struct open_turn *t = NULL;
        char *key;

        begin_day(b, now_ms);
        if (turn->trace) {
                key = mem_printf("%s\n%s", turn->trace, turn->adapter);
                t = map_get(&b->by_key, key);
                free(key);
        }
        if (t) {
                struct budget_sum *sums[] = { map_get(&b->adapters, t->adapter),
                                              t->rule ? map_get(&b->rules, t->rule) : NULL };

                for (size_t i = 0; i < COUNT(sums) && sums[i]; i++) {
                        sums[i]->expected -= t->expected;
                        sums[i]->open--;
                }
                open_turn_free(b, t);
        }
        if (microusd <= 0)
                return;
        sum_at(&b->adapters, turn->adapter)->spent += microusd;
        if (turn->rule)
                sum_at(&b->rules, turn->rule)->spent += microusd;
        if (turn->agent)
                update_mean(b, turn->agent, microusd);
}

/* ---- guard ---- */

/* False: the budget is spent, or will be when unfinished turns have ended. */
static bool check_sum(struct evaluation *e, const char *what, const char *name, struct map *sums,
                      int64_t limit)
{
        const struct budget *b = e->d->budget;
        const struct budget_sum *sum = map_get(sums, name);
        int64_t spent = sum && b->day == e->now_ms / DAY_MS ? sum->spent : 0;
        bool all = spent >= limit;
        struct rate_key key = { e->in->adapter, e->in->channel, NULL, all ? "budget" : "expected" };
        struct turn_rate often = { 1, all ? 86400 : 300 };

        if (limit <= 0 || !sum || spent + sum->expected < limit)
                return true;
        if (evaluation_may_notify(e) &&
            rate_limit_claim_notice(e->d->rates, &key, often, e->now_ms))
                evaluation_notify(e, "%s",
                                  all ? "My budget for today is used up. Please come back "
                                        "after midnight (UTC)."
                                      : "The answers I am working on may use up my budget for "
                                        "today. Please try again in a few minutes.");
        evaluation_refuse(e, "the turns of %s '%s' have cost $%.2f today", what, name,
                          (double)spent / 1e6);
        if (!all)
                evaluation_refuse(e, ", $%.2f more is expected of %u unfinished",
                                  (double)sum->expected / 1e6, sum->open);
        return evaluation_refuse(e, ", its budget is $%.2f (budget.usdPerDay)",
                                 (double)limit / 1e6);
}

bool budget_guard(struct evaluation *e)
{
        const struct dispatch_adapter *a = e->adapter;
        const struct rule *r = e->rule;
        struct budget *b = e->d->budget;

        if (e->joins_turn)
                return true;
        return check_sum(e, "adapter", a->name, &b->adapters, a->budget_microusd) &&
               (!r ||
                check_sum(e, "rule", r->name, &b->rules, (int64_t)(r->budget.usd_per_day * 1e6)));
}

/* ---- restoring ---- */

int budget_restore(struct budget *b, struct store_tx *tx, int64_t now_ms, struct error *err)
{
        struct store_stmt *s = turn_row_list_costs(tx, now_ms / DAY_MS * DAY_MS);
        struct turn_pending open;
        struct turn_cost cost;
        int rc;

        while ((rc = turn_row_next_cost(s, &cost, err)) == 1)
                budget_end(b, &(struct budget_turn){ .adapter = cost.adapter, .rule = cost.rule },
                           cost.microusd, now_ms);
        if (rc < 0)
                return -1;
        s = turn_row_list_last_costs(tx, RESTORE_MEAN);
        while ((rc = turn_row_next_cost(s, &cost, err)) == 1)
                update_mean(b, cost.agent, cost.microusd);
        if (rc < 0)
                return -1;
        s = turn_row_list_pending(tx);
        while ((rc = turn_row_next_pending(s, &open, err)) == 1)
                budget_begin(
                        b, &(struct budget_turn){ open.trace, open.adapter, open.rule, open.agent },
                        now_ms);
        return rc;
}
