#include "store/write_through.h"

int write_through_write(struct store_tx *tx, void *change, struct error *err)
{
        const struct write_through *w = change;

        if (w->refusal.kind != ERR_NONE) {
                *err = w->refusal;
                return -1;
        }
        return w->ops->write(tx, change, err);
}

void write_through_end(void *change, const struct error *err)
{
        const struct write_through *w = change;

        if (!err)
                w->ops->apply(change);
        w->ops->release(change);
}

static void on_written(void *change, const struct error *err)
{
        const struct write_through *w = change;

        if (!err)
                w->ops->apply(change);
        if (w->ops->done)
                w->ops->done(change, err);
        else if (w->done)
                w->done(w->arg, err);
        w->ops->release(change);
}

void write_through_submit(struct store *s, void *change)
{
        store_write(s, write_through_write, on_written, change);
}
