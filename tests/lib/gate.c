#include "gate.h"

#include <sched.h>

static int hold(struct store_tx *tx, void *arg, struct error *err)
{
        struct gate *g = arg;

        (void)tx;
        (void)err;
        atomic_store(&g->entered, true);
        while (!atomic_load(&g->open))
                sched_yield();
        return 0;
}

void gate_close(struct gate *g, struct store *s)
{
        store_write(s, hold, NULL, g);
        while (!atomic_load(&g->entered))
                sched_yield();
}

void gate_open(struct gate *g)
{
        atomic_store(&g->open, true);
}
