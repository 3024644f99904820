/*
 * Retention: old events go, a thousand numbers per transaction, as long as there are any.
 *
 * With one retention for all streams the old events are simply the front of the journal. Where one
 * stream is kept longer, its events stay behind and would be looked at again every time; so a round
 * that finds only those stops after a while, and the next one goes on from there.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "bus/bus_private.h"

#define HOUR_MS (60 * 60 * INT64_C(1000))
#define DAY_MS  (24 * 60 * 60 * INT64_C(1000))
/* Telegram repeats an update for a day; nobody we know of for longer */
#define KEYS_KEPT_MS (2 * DAY_MS)
#define IDLE_STEPS   20 /* steps without a deletion before a round pauses */

struct prune {
        struct bus *bus; /* NULL: it has closed */
        struct journal_sweep sweep;
        struct bus_positions present; /* they are waited for */
        int64_t stale_ms;             /* who was noted before this is noted again */
        unsigned idle_steps;
};

static void step(struct prune *p);

static void prune_free(struct prune *p)
{
        bus_positions_release(&p->present);
        buf_release(&p->sweep.lapsed);
        free(p);
}

static void finish(struct prune *p)
{
        p->bus->prune_at = p->sweep.at;
        p->bus->prune = NULL;
        prune_free(p);
}

static int sweep(struct store_tx *tx, void *arg, struct error *err)
{
        struct prune *p = arg;

        for (unsigned i = 0; i < p->present.count; i++)
                if (cursor_seen(tx, p->present.items[i].name, p->present.items[i].seq, p->stale_ms,
                                err) != 0)
                        return -1;
        return journal_sweep(tx, &p->sweep, err);
}

static void on_swept(void *arg, const struct error *err)
{
        struct prune *p = arg;

        if (!p->bus) {
                prune_free(p);
                return;
        }
        if (err) {
                log_warn("old events could not be deleted; the next round tries again",
                         LOG_S("error", err->text));
                finish(p);
                return;
        }
        if (p->sweep.lapsed.len > 0)
                log_warn("a consumer has been away for longer than events are kept; it is not "
                         "waited for any longer",
                         LOG_S("consumer", p->sweep.lapsed.data));
        p->bus->extent.tail = p->sweep.extent.tail;
        p->sweep.at = p->sweep.next;
        if (p->sweep.deleted == 0)
                p->idle_steps++;
        if (p->sweep.more && p->idle_steps < IDLE_STEPS)
                step(p);
        else
                finish(p);
}

static void step(struct prune *p)
{
        store_write(p->bus->store, sweep, on_swept, p);
}

static void set_cutoffs(struct prune *p)
{
        int64_t now = clock_wall_ms();

        p->stale_ms = now - HOUR_MS;
        for (int i = 0; i < STREAM_COUNT; i++) {
                int64_t keep = p->bus->retention_ms[i];

                p->sweep.cutoff_ms[i] = keep < 0 ? INT64_MIN : now - keep;
                if (p->stale_ms < p->sweep.cutoff_ms[i])
                        /* who is there counts for the shortest retention, too */
                        p->stale_ms = p->sweep.cutoff_ms[i];
        }
        p->sweep.future_ms = now + DAY_MS;
        p->sweep.keys_ms = now - KEYS_KEPT_MS;
}

void bus_prune(void *bus)
{
        struct bus *b = bus;
        struct prune *p;

        if (b->prune)
                return;
        p = mem_zalloc(sizeof(*p));
        p->bus = b;
        p->sweep.at = b->prune_at;
        buf_init(&p->sweep.lapsed, 0);
        b->prune = p;
        set_cutoffs(p);
        bus_positions_take(b, &p->present);
        step(p);
}

void bus_prune_abandon(struct bus *b)
{
        if (b->prune)
                b->prune->bus = NULL;
        b->prune = NULL;
}
