#include "dispatch/budget.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

#define DAY_MS ((int64_t)86400000)

struct budget {
        int64_t day;
        struct map adapters, rules; /* → int64_t: microusd of the day; as many as there are names */
};

struct budget *budget_new(void)
{
        struct budget *b = mem_zalloc(sizeof(*b));

        map_init(&b->adapters);
        map_init(&b->rules);
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

void budget_free(struct budget *b)
{
        if (!b)
                return;
        clear(&b->adapters);
        clear(&b->rules);
        free(b);
}

static void add(struct map *m, const char *name, int64_t microusd)
{
        int64_t *sum = map_get(m, name);

        if (!sum) {
                sum = mem_zalloc(sizeof(*sum));
                map_put(m, name, sum);
        }
        *sum += microusd;
}

void budget_spend(struct budget *b, const char *adapter, const char *rule, int64_t microusd, int64_t now_ms)
{
        if (microusd <= 0)
                return;
        if (b->day != now_ms / DAY_MS) {
                clear(&b->adapters);
                clear(&b->rules);
                b->day = now_ms / DAY_MS;
        }
        add(&b->adapters, adapter, microusd);
        if (rule)
                add(&b->rules, rule, microusd);
}

static int64_t sum_of(const struct budget *b, const struct map *m, const char *name, int64_t now_ms)
{
        const int64_t *sum = b->day == now_ms / DAY_MS ? map_get(m, name) : NULL;

        return sum ? *sum : 0;
}

int64_t budget_of_adapter(const struct budget *b, const char *adapter, int64_t now_ms)
{
        return sum_of(b, &b->adapters, adapter, now_ms);
}

int64_t budget_of_rule(const struct budget *b, const char *rule, int64_t now_ms)
{
        return sum_of(b, &b->rules, rule, now_ms);
}

struct restoring {
        struct budget *budget;
        int64_t now_ms;
};

static int read_sums(struct store_tx *tx, void *arg, struct error *err)
{
        const struct restoring *r = arg;
        struct store_stmt *s = store_prepare(tx, "SELECT c.adapter, t.rule, t.cost_microusd FROM turns AS t"
                                                 " JOIN conversations AS c ON c.id = t.conversation"
                                                 " WHERE t.cost_microusd > 0 AND t.ended_ms >= ?1");
        int rc;

        store_bind_int(s, 1, r->now_ms / DAY_MS * DAY_MS);
        while ((rc = store_step(s, err)) == 1)
                budget_spend(r->budget, store_col_text(s, 0), store_col_text(s, 1), store_col_int(s, 2),
                             r->now_ms);
        return rc;
}

int budget_restore(struct budget *b, struct store *s, int64_t now_ms, struct error *err)
{
        struct restoring r = { b, now_ms };

        return store_read_now(s, read_sums, &r, err);
}
