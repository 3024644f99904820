/*
 * Deletes old events, a thousand numbers per transaction.
 *
 * If one stream is kept longer than others, its events would be looked at in every round; so a
 * round that deletes nothing stops after a while, and the next one goes on from there.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "bus/bus_private.h"
#include "rows/journal_row.h"

#define HOUR_MS (60 * 60 * INT64_C(1000))
#define DAY_MS  (24 * HOUR_MS)
/* Telegram repeats an update for a day; we know of no platform that does so for longer */
#define KEYS_KEPT_MS (2 * DAY_MS)
#define IDLE_STEPS   20 /* steps without a deletion before a round pauses */

struct bus_prune {
        struct bus *bus; /* NULL: it has closed */
        struct journal_sweep sweep;
        struct bus_positions active; /* readers that are running */
        int64_t stale_ms;            /* refresh cursors seen before this */
        unsigned idle_steps;
};

static void prune_free(struct bus_prune *p)
{
        for (unsigned i = 0; i < p->active.count; i++)
                free(p->active.items[i].name);
        free(p->active.items);
        buf_release(&p->sweep.lapsed);
        free(p);
}

static int sweep(struct store_tx *tx, void *arg, struct error *err)
{
        struct bus_prune *p = arg;
        int64_t now_ms = clock_wall_ms();

        for (unsigned i = 0; i < p->active.count; i++)
                if (cursor_row_touch(tx, p->active.items[i].name, p->active.items[i].seq, now_ms,
                                     p->stale_ms, err) != 0)
                        return -1;
        return journal_sweep(tx, &p->sweep, err);
}

static void on_swept(void *arg, const struct error *err)
{
        struct bus_prune *p = arg;
        bool more = false;

        if (!p->bus) {
                prune_free(p);
                return;
        }
        if (err) {
                log_warn("cannot delete old events; retrying in the next round",
                         LOG_S("error", err->text));
        } else {
                if (p->sweep.lapsed.len > 0)
                        log_warn("consumer was away for longer than events are kept; no longer "
                                 "waiting for it",
                                 LOG_S("consumer", p->sweep.lapsed.data));
                p->bus->extent.tail = p->sweep.extent.tail;
                p->sweep.at = p->sweep.next;
                if (p->sweep.deleted == 0)
                        p->idle_steps++;
                more = p->sweep.more && p->idle_steps < IDLE_STEPS;
        }
        if (more) {
                store_write(p->bus->store, sweep, on_swept, p);
                return;
        }
        p->bus->prune_at = p->sweep.at;
        p->bus->prune = NULL;
        prune_free(p);
}

void bus_prune(void *bus)
{
        struct bus *b = bus;
        int64_t now_ms = clock_wall_ms();
        struct bus_prune *p;

        if (b->prune)
                return;
        p = mem_zalloc(sizeof(*p));
        b->prune = p;
        p->bus = b;
        p->stale_ms = now_ms - HOUR_MS;
        for (int i = 0; i < STREAM_COUNT; i++) {
                int64_t keep_ms = b->retention_ms[i];

                p->sweep.cutoff_ms[i] = keep_ms < 0 ? INT64_MIN : now_ms - keep_ms;
                /* an active reader must count as seen for the shortest retention, too */
                if (p->stale_ms < p->sweep.cutoff_ms[i])
                        p->stale_ms = p->sweep.cutoff_ms[i];
        }
        p->sweep.future_ms = now_ms + DAY_MS;
        p->sweep.keys_ms = now_ms - KEYS_KEPT_MS;
        p->sweep.at = b->prune_at;
        buf_init(&p->sweep.lapsed, 0);
        bus_positions_take(b, &p->active);
        store_write(b->store, sweep, on_swept, p);
}

void bus_prune_abandon(struct bus *b)
{
        if (b->prune)
                b->prune->bus = NULL;
        b->prune = NULL;
}
