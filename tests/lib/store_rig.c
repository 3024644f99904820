#include "store_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/mem.h"
#include "scratch.h"
#include "store/sql.h"

const struct store_migration store_rig_schema[] = {
        { 1, "numbers", "CREATE TABLE numbers(n INTKEY, note TEXT)" },
        { 0, NULL, NULL },
};

int store_rig_setup(void **state)
{
        struct store_rig *r = mem_zalloc(sizeof(*r));

        r->dir = scratch_new();
        r->loop = loop_new();
        r->options = (struct store_options){ .url = "sqlite",
                                             .dir = r->dir,
                                             .migrations = store_rig_schema };
        *state = r;
        return 0;
}

int store_rig_teardown(void **state)
{
        struct store_rig *r = *state;

        store_close(r->store);
        loop_free(r->loop);
        scratch_free(r->dir);
        free(r);
        return 0;
}

struct store *store_rig_try_open(struct store_rig *r, struct error *err)
{
        r->store = store_open(r->loop, &r->options, err);
        return r->store;
}

void store_rig_open(struct store_rig *r)
{
        struct error err = { 0 };

        if (!store_rig_try_open(r, &err))
                fail_msg("%s", err.text);
}

void store_rig_close(struct store_rig *r)
{
        store_close(r->store);
        r->store = NULL;
}

void store_rig_run(struct store_rig *r)
{
        while (loop_step(r->loop, true))
                ;
}

int rig_number_put(struct store_tx *tx, void *number, struct error *err)
{
        struct rig_number *p = number;
        struct sql_value n = p->bad_statement ? SQL_TEXT("not a number") : SQL_INT(p->n);
        int rc = sql_exec(tx, err, "INSERT INTO numbers(n, note) VALUES(?1, 'a note')", n);

        p->runs++;
        if (p->bad_statement)
                return 0;
        if (rc == 0 && p->refuse)
                return error_set(err, ERR_INVALID, "no %d today", (int)p->n);
        return rc;
}

void rig_number_done(void *number, const struct error *err)
{
        struct rig_number *p = number;

        p->completed++;
        if (p->clock)
                p->order = ++*p->clock;
        if (err)
                p->err = *err;
}

void rig_number_write(struct store_rig *r, struct rig_number *p)
{
        store_write(r->store, rig_number_put, rig_number_done, p);
}

void store_rig_fill(struct store_rig *r, int64_t from, int n)
{
        struct rig_number *p = mem_array((size_t)n, sizeof(*p));

        for (int i = 0; i < n; i++) {
                p[i].n = from + i;
                rig_number_write(r, &p[i]);
        }
        store_rig_run(r);
        for (int i = 0; i < n; i++)
                assert_int_equal(p[i].err.kind, ERR_NONE);
        free(p);
}

static int count_numbers(struct store_tx *tx, void *arg, struct error *err)
{
        return sql_number(tx, -1, arg, err, "SELECT count(*) FROM numbers");
}

int64_t store_rig_count(struct store_rig *r)
{
        struct error err = { 0 };
        int64_t n = -1;

        if (store_read_now(r->store, count_numbers, &n, &err) != 0)
                fail_msg("%s", err.text);
        return n;
}
