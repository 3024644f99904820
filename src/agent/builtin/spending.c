#include "agent/builtin/spending.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

#define DAY_MS 86400000LL

struct account {
        int64_t spent, reserved;
};

struct spending {
        bool loaded;
        int64_t day;
        struct account all;
        struct map persons; /* name -> struct account */
};

struct spending_rows {
        int64_t cost;
        char *person; /* NULL: unknown */
        struct spending_rows *next;
};

struct spending *spending_new(void)
{
        struct spending *s = mem_zalloc(sizeof(*s));

        map_init(&s->persons);
        return s;
}

void spending_free(struct spending *s)
{
        void *account;

        if (!s)
                return;
        for (size_t i = 0; map_each(&s->persons, &i, NULL, &account);)
                free(account);
        map_release(&s->persons);
        free(s);
}

static struct account *account_of(struct spending *s, const char *person)
{
        struct account *a = map_get(&s->persons, person);

        if (!a) {
                a = mem_zalloc(sizeof(*a));
                map_put(&s->persons, person, a);
        }
        return a;
}

/* A new day: nothing is spent. Accounts without a reservation go, so that the map stays small. */
static void turn_page(struct spending *s, int64_t now_ms)
{
        struct map kept;
        const char *person;
        void *value;

        if (s->day == now_ms / DAY_MS)
                return;
        s->day = now_ms / DAY_MS;
        s->all.spent = 0;
        map_init(&kept);
        for (size_t i = 0; map_each(&s->persons, &i, &person, &value);) {
                struct account *a = value;

                a->spent = 0;
                if (a->reserved > 0)
                        map_put(&kept, person, a);
                else
                        free(a);
        }
        map_release(&s->persons);
        s->persons = kept;
}

/* ---- reading back ---- */

int spending_read(struct store_tx *tx, const char *agent, int64_t now_ms,
                  struct spending_rows **out, struct error *err)
{
        struct store_stmt *s = step_row_list_costs(tx, agent, now_ms / DAY_MS * DAY_MS);
        const char *person;
        int64_t cost;
        int rc;

        spending_rows_free(*out);
        *out = NULL;
        while ((rc = step_row_next_cost(s, &person, &cost, err)) == 1) {
                struct spending_rows *row = mem_zalloc(sizeof(*row));

                row->person = mem_strdup(person);
                row->cost = cost;
                row->next = *out;
                *out = row;
        }
        return rc;
}

void spending_rows_free(struct spending_rows *rows)
{
        while (rows) {
                struct spending_rows *next = rows->next;

                free(rows->person);
                free(rows);
                rows = next;
        }
}

bool spending_is_loaded(const struct spending *s)
{
        return s->loaded;
}

void spending_load(struct spending *s, struct spending_rows *rows, int64_t now_ms)
{
        turn_page(s, now_ms);
        for (const struct spending_rows *r = s->loaded ? NULL : rows; r; r = r->next) {
                s->all.spent += r->cost;
                if (r->person)
                        account_of(s, r->person)->spent += r->cost;
        }
        s->loaded = true;
        spending_rows_free(rows);
}

/* ---- calls ---- */

static void tighten(int64_t *left, const char **what, double usd, int64_t used, const char *name)
{
        int64_t rest = (int64_t)(usd * 1e6) - used;

        if (usd <= 0 || rest >= *left)
                return;
        *left = rest > 0 ? rest : 0;
        *what = name;
}

int64_t spending_left(struct spending *s, const struct spending_limits *l, const char *person,
                      int64_t turn_spent, int64_t now_ms, const char **what)
{
        int64_t left = INT64_MAX;
        const struct account *a;

        turn_page(s, now_ms);
        a = person ? map_get(&s->persons, person) : NULL;
        *what = NULL;
        tighten(&left, what, l->turn_usd, turn_spent, "turn");
        tighten(&left, what, l->day_usd, s->all.spent + s->all.reserved, "day");
        if (person)
                tighten(&left, what, l->person_day_usd, a ? a->spent + a->reserved : 0, "person");
        return left;
}

void spending_reserve(struct spending *s, const char *person, int64_t microusd)
{
        s->all.reserved += microusd;
        if (person && microusd > 0)
                account_of(s, person)->reserved += microusd;
}

void spending_settle(struct spending *s, const char *person, int64_t reserved, int64_t cost,
                     int64_t now_ms)
{
        turn_page(s, now_ms);
        s->all.reserved -= reserved;
        s->all.spent += cost;
        if (person && (reserved > 0 || cost > 0)) {
                struct account *a = account_of(s, person);

                a->reserved -= reserved;
                a->spent += cost;
        }
}
