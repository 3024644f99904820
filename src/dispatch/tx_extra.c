#include "dispatch/tx_extra.h"

#include <stdlib.h>

#include "base/mem.h"

struct both {
        struct tx_extra first, second;
};

static int write_both(struct store_tx *tx, void *arg, struct error *err)
{
        struct both *b = arg;

        if (b->first.fn(tx, b->first.arg, err) < 0)
                return -1;
        return b->second.fn(tx, b->second.arg, err);
}

static void both_done(void *arg)
{
        struct both *b = arg;

        b->first.done(b->first.arg);
        b->second.done(b->second.arg);
        free(b);
}

void tx_extra_add(struct decision *out, struct tx_extra extra)
{
        struct both *b;

        if (!out->extra.fn) {
                out->extra = extra;
                return;
        }
        b = mem_alloc(sizeof(*b));
        *b = (struct both){ out->extra, extra };
        out->extra = (struct tx_extra){ .fn = write_both, .done = both_done, .arg = b };
}
