/*
 * prune: deletes old records (limits.recordDays, limits.transcriptDays), one block per table and
 * transaction, and moves the cursors of events still needed.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/road_state.h"
#include "rows/calendar_row.h"
#include "rows/prune_row.h"

#define PRUNE_EVERY_MS 60000
#define PRUNE_SOON_MS  50
#define DAY_MS         86400000LL
#define EVENT_ROWS     100 /* each with its members */

struct prune_job {
        struct road *road;
        int64_t record_before_ms, transcript_before_ms;
        int64_t future_ms; /* later rows come from a wrong clock */
        int64_t decided;   /* all events up to here are decided; 0: unknown */
        int64_t done;      /* no open turn needs events up to here; -1: unknown */
        bool more;         /* result */
};

static int write_prune(struct store_tx *tx, void *arg, struct error *err)
{
        struct prune_job *p = arg;
        int64_t count;

        p->more = false;
        for (enum prune_table table = 0; table < PRUNE_TABLES; table++) {
                bool said = table == PRUNE_TRANSCRIPT || table == PRUNE_STEPS ||
                            table == PRUNE_AGENT_SESSIONS || table == PRUNE_A2A_TURNS;

                count = prune_row_delete(tx, table,
                                         said ? p->transcript_before_ms : p->record_before_ms,
                                         p->future_ms, err);
                if (count < 0)
                        return -1;
                p->more = p->more || count >= PRUNE_ROWS;
        }
        count = calendar_row_prune(tx, p->record_before_ms, EVENT_ROWS, err);
        if (count < 0)
                return -1;
        p->more = p->more || count >= EVENT_ROWS;
        if (p->done >= 0 && bus_cursor_set(tx, TURNS_CURSOR, p->done, err) < 0)
                return -1;
        return p->decided > 0 ? bus_cursor_set(tx, ROAD_CURSOR, p->decided, err) : 0;
}

static void on_pruned(void *arg, const struct error *err)
{
        struct prune_job *p = arg;

        p->road->writes--;
        if (err)
                log_warn("cannot delete old records; retrying in a minute",
                         LOG_S("why", err->text));
        if (!p->road->closing)
                timer_start(p->road->prune, !err && p->more ? PRUNE_SOON_MS : PRUNE_EVERY_MS);
        free(p);
}

/* Recovery reads open turns back from their events, so keep these. */
static int64_t done_up_to(const struct road *r, int64_t decided)
{
        int64_t done = decided > 0 ? decided : INT64_MAX;
        void *value;

        for (size_t i = 0; map_each(&r->turns.by_number, &i, NULL, &value);) {
                const struct turn *t = value;

                if (t->run.input_count > 0 && t->inputs[0]->event <= done)
                        done = t->inputs[0]->event - 1;
        }
        return done == INT64_MAX ? -1 : done;
}

void prune_run(void *road)
{
        struct road *r = road;
        struct prune_job *p = mem_zalloc(sizeof(*p));
        int64_t now_ms = clock_wall_ms();

        outbox_sweep(r);
        outbox_pump_all(r); /* deliveries of an absent adapter may have expired */
        p->road = r;
        p->record_before_ms = now_ms - r->limits.record_days * DAY_MS;
        p->transcript_before_ms = now_ms - r->limits.transcript_days * DAY_MS;
        p->future_ms = now_ms + DAY_MS;
        /* our own events need no decision, and must not hold back the cursor */
        if (r->inbox.pending_count == 0 && !r->inbox.deciding && !r->inbox.asked)
                p->decided = bus_head(r->bus);
        p->done = done_up_to(r, p->decided);
        r->writes++;
        store_write(r->store, write_prune, on_pruned, p);
}

void prune_begin(struct road *r)
{
        r->prune = timer_new(r->loop, prune_run, r);
        /* before the bus first prunes, so that our cursors exist */
        timer_start(r->prune, PRUNE_EVERY_MS / 2);
        timer_unref(r->prune);
}
