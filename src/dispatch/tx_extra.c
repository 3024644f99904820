#include "dispatch/tx_extra.h"

#include <stdlib.h>

#include "base/mem.h"
#include "store/write_through.h"

struct extra_pair {
        struct tx_extra first, second;
};

static int write_pair(struct store_tx *tx, void *arg, struct error *err)
{
        struct extra_pair *p = arg;

        if (p->first.fn(tx, p->first.arg, err) < 0)
                return -1;
        return p->second.fn(tx, p->second.arg, err);
}

static void pair_done(void *arg)
{
        struct extra_pair *p = arg;

        p->first.done(p->first.arg);
        p->second.done(p->second.arg);
        free(p);
}

void tx_extra_add(struct decision *out, struct tx_extra extra)
{
        struct extra_pair *p;

        if (!out->extra.fn) {
                out->extra = extra;
                return;
        }
        p = mem_alloc(sizeof(*p));
        *p = (struct extra_pair){ out->extra, extra };
        out->extra = (struct tx_extra){ .fn = write_pair, .done = pair_done, .arg = p };
}

void tx_extra_add_change(struct decision *out, void *change)
{
        tx_extra_add(out, (struct tx_extra){ .fn = write_through_write,
                                             .done = write_through_commit,
                                             .arg = change });
}
