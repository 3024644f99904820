#include "dispatch/limits/budget.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/map.h"
#include "base/mem.h"

#define DAY_MS    ((int64_t)86400000)
#define MEMORY    8   /* a new cost changes the expectation by so small a part */
#define REMEMBERS 256 /* turns that are looked at after a restart for what their agents cost */

/* A turn that has not ended. */
struct open_turn {
        char *key, *adapter, *rule;
        int64_t expected, since_ms;
        /* of the same key: whoever gives us traces may give one twice */
        struct open_turn *same;
        TAILQ_ENTRY(open_turn) next; /* oldest first */
};

struct budget {
        int64_t day;
        struct map adapters, rules; /* → struct budget_sum; as many as there are names */
        /* → int64_t: microusd of a turn that cost something, on average */
        struct map agents;
        TAILQ_HEAD(open_turns, open_turn) open;
        struct map by_key; /* → struct open_turn, the first of its chain */
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
        const char *key;
        void *value;

        for (size_t i = 0; map_each(m, &i, &key, &value);)
                free(value);
        map_release(m);
        map_init(m);
}

/* ---- turns that have not ended ---- */

/* Yours to free. */
static char *key_of(const struct budget_turn *turn)
{
        return mem_printf("%s\n%s", turn->trace, turn->adapter);
}

static void put_open(struct budget *b, struct open_turn *t)
{
        TAILQ_INSERT_TAIL(&b->open, t, next);
        t->same = map_put(&b->by_key, t->key, t);
}

static void forget_open(struct budget *b, struct open_turn *t)
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
                forget_open(b, t);
        map_release(&b->by_key);
        clear(&b->adapters);
        clear(&b->rules);
        clear(&b->agents);
        free(b);
}

/* ---- sums ---- */

/* Found or made. */
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

/*
 * Names of yesterday are forgotten, and so is a turn whose end we were not told in a whole day:
 * somebody else has it.
 */
static void begin_day(struct budget *b, int64_t now_ms)
{
        struct open_turn *t;

        if (b->day == now_ms / DAY_MS)
                return;
        b->day = now_ms / DAY_MS;
        while ((t = TAILQ_FIRST(&b->open)) && now_ms - t->since_ms > DAY_MS)
                forget_open(b, t);
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
        t->key = key_of(turn);
        t->adapter = mem_strdup(turn->adapter);
        t->rule = mem_strdup(turn->rule);
        t->expected = *mean;
        t->since_ms = now_ms;
        put_open(b, t);
        expect(b, t);
}

static void close_turn(struct budget *b, const struct budget_turn *turn)
{
        char *key = key_of(turn);
        struct open_turn *t = map_get(&b->by_key, key);
        struct budget_sum *sums[] = { t ? map_get(&b->adapters, t->adapter) : NULL,
                                      t && t->rule ? map_get(&b->rules, t->rule) : NULL };

        for (size_t i = 0; i < COUNT(sums) && sums[i]; i++) {
                sums[i]->expected -= t->expected;
                sums[i]->open--;
        }
        if (t)
                forget_open(b, t);
        free(key);
}

static void learn(struct budget *b, const char *agent, int64_t microusd)
{
        int64_t *mean = map_get(&b->agents, agent);

        if (mean) {
                *mean += (microusd - *mean) / MEMORY;
                return;
        }
        mean = mem_zalloc(sizeof(*mean));
        *mean = microusd;
        map_put(&b->agents, agent, mean);
}

void budget_end(struct budget *b, const struct budget_turn *turn, int64_t microusd, int64_t now_ms)
{
        begin_day(b, now_ms);
        if (turn->trace)
                close_turn(b, turn);
        if (microusd <= 0)
                return;
        sum_at(&b->adapters, turn->adapter)->spent += microusd;
        if (turn->rule)
                sum_at(&b->rules, turn->rule)->spent += microusd;
        if (turn->agent)
                learn(b, turn->agent, microusd);
}

static struct budget_sum sum_of(const struct budget *b, const struct map *m, const char *name,
                                int64_t now_ms)
{
        const struct budget_sum *sum = map_get(m, name);
        struct budget_sum out = sum ? *sum : (struct budget_sum){ 0 };

        if (b->day != now_ms / DAY_MS)
                out.spent = 0;
        return out;
}

struct budget_sum budget_of_adapter(const struct budget *b, const char *adapter, int64_t now_ms)
{
        return sum_of(b, &b->adapters, adapter, now_ms);
}

struct budget_sum budget_of_rule(const struct budget *b, const char *rule, int64_t now_ms)
{
        return sum_of(b, &b->rules, rule, now_ms);
}

/* ---- after a restart ---- */

struct restoring {
        struct budget *budget;
        int64_t now_ms;
};

static int read_sums(struct store_tx *tx, const struct restoring *r, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "SELECT c.adapter, t.rule, t.cost_microusd FROM turns AS t"
                                  " JOIN conversations AS c ON c.id = t.conversation"
                                  " WHERE t.cost_microusd > 0 AND t.ended_ms >= ?1");
        int rc;

        store_bind_int(s, 1, r->now_ms / DAY_MS * DAY_MS);
        while ((rc = store_step(s, err)) == 1) {
                struct budget_turn turn = { .adapter = store_col_text(s, 0),
                                            .rule = store_col_text(s, 1) };

                budget_end(r->budget, &turn, store_col_int(s, 2), r->now_ms);
        }
        return rc;
}

static int read_costs(struct store_tx *tx, const struct restoring *r, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT agent, cost_microusd FROM (SELECT agent, cost_microusd, ended_ms FROM turns"
                " WHERE cost_microusd > 0 ORDER BY ended_ms DESC LIMIT ?1) AS last ORDER BY ended_ms");
        int rc;

        store_bind_int(s, 1, REMEMBERS);
        while ((rc = store_step(s, err)) == 1)
                learn(r->budget, store_col_text(s, 0), store_col_int(s, 1));
        return rc;
}

static int read_open(struct store_tx *tx, const struct restoring *r, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "SELECT t.trace, c.adapter, t.rule, t.agent FROM turns AS t"
                                  " JOIN conversations AS c ON c.id = t.conversation"
                                  " WHERE t.state IN ('queued', 'running') ORDER BY t.id");
        int rc;

        while ((rc = store_step(s, err)) == 1) {
                struct budget_turn turn = { store_col_text(s, 0), store_col_text(s, 1),
                                            store_col_text(s, 2), store_col_text(s, 3) };

                budget_begin(r->budget, &turn, r->now_ms);
        }
        return rc;
}

static int read_all(struct store_tx *tx, void *arg, struct error *err)
{
        return read_sums(tx, arg, err) < 0 || read_costs(tx, arg, err) < 0 ||
                               read_open(tx, arg, err) < 0
                       ? -1
                       : 0;
}

int budget_restore(struct budget *b, struct store *s, int64_t now_ms, struct error *err)
{
        struct restoring r = { b, now_ms };

        return store_read_now(s, read_all, &r, err);
}
