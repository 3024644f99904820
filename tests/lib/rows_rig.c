#include "rows_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/mem.h"
#include "rows/schema.h"
#include "scratch.h"

struct store *rows_rig_open(const char *dir)
{
        struct store_options o = { .url = "sqlite", .dir = dir, .migrations = schema_steps };
        struct error err = { 0 };
        struct store *s = store_open(NULL, &o, &err);

        if (!s)
                fail_msg("%s", err.text);
        return s;
}

int rows_rig_setup(void **state)
{
        struct rows_rig *r = mem_zalloc(sizeof(*r));

        r->dir = scratch_new();
        r->store = rows_rig_open(r->dir);
        buf_init(&r->found, 0);
        *state = r;
        return 0;
}

int rows_rig_teardown(void **state)
{
        struct rows_rig *r = *state;

        buf_release(&r->found);
        store_close(r->store);
        scratch_free(r->dir);
        free(r);
        return 0;
}

void rows_rig_run(struct rows_rig *r, store_fn *fn)
{
        struct error err = { 0 };

        if (store_write_now(r->store, fn, r, &err) != 0)
                fail_msg("%s", err.text);
}
