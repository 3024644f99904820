/*
 * prune: records that have ended go when they are old enough (limits.recordDays,
 * limits.transcriptDays), a thousand of each table per transaction.
 *
 * Rows are numbered in the order of time, so the oldest are found without an index over time:
 * looking from the front stops at the first row that is young enough. Open rows are passed over,
 * and so are those that a wrong clock has put into the future: they tell nothing about the rows
 * behind them. The newest turn and delivery stay whatever their age: new numbers are counted from
 * them, and no number may come twice.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/road_private.h"

#define PRUNE_EVERY_MS 60000
#define PRUNE_SOON_MS  50
#define DAY_MS         86400000LL
#define PRUNE_ROWS     1000

struct pruning {
        struct road *road;
        int64_t record_before_ms, transcript_before_ms;
        int64_t future_ms; /* what was made after this was made by a wrong clock */
        int64_t decided;   /* every event up to here is decided; 0: not known */
        int64_t done;      /* no open turn needs an event up to here any more; -1: not known */
        bool more;
};

/*
 * ?1: what is older may go; ?2: the future. `last` stands for the row behind the oldest ones when
 * none is young.
 */
#define FIRST_YOUNG(table, id, made, last)                                      \
        "coalesce((SELECT " id " FROM " table " WHERE " made " >= ?1 AND " made \
        " < ?2 ORDER BY " id " LIMIT 1), (SELECT " last " FROM " table "))"
#define OLDEST(table, id, made, ended, last)                         \
        "(SELECT " id " FROM " table " WHERE " ended " < ?1 AND " id \
        " < " FIRST_YOUNG(table, id, made, last) " ORDER BY " id " LIMIT 1000)"
#define OLDEST_ENDED(table)     OLDEST(table, "id", "created_ms", "ended_ms", "max(id)")
#define OLDEST_LINES(table, id) OLDEST(table, id, "time_ms", "time_ms", "max(" id ") + 1")

static const struct {
        const char *sql;
        bool transcript;
} prunings[] = {
        { "DELETE FROM attempts WHERE delivery IN " OLDEST_ENDED("deliveries"), false },
        { "DELETE FROM deliveries WHERE id IN " OLDEST_ENDED("deliveries"), false },
        { "DELETE FROM turns WHERE id IN " OLDEST_ENDED("turns"), false },
        { "DELETE FROM trigger_log WHERE event IN " OLDEST_LINES("trigger_log", "event"), false },
        { "DELETE FROM transcript WHERE id IN " OLDEST_LINES("transcript", "id"), true },
};

static int write_pruning(struct store_tx *tx, void *arg, struct error *err)
{
        struct pruning *p = arg;

        p->more = false;
        for (size_t i = 0; i < COUNT(prunings); i++) {
                struct store_stmt *s = store_prepare(tx, prunings[i].sql);

                store_bind_int(s, 1,
                               prunings[i].transcript ? p->transcript_before_ms
                                                      : p->record_before_ms);
                store_bind_int(s, 2, p->future_ms);
                if (store_run(s, err) < 0)
                        return -1;
                p->more = p->more || store_changes(tx) >= PRUNE_ROWS;
        }
        if (p->done >= 0 && bus_cursor_set(tx, TURNS_CURSOR, p->done, err) < 0)
                return -1;
        return p->decided > 0 ? bus_cursor_set(tx, ROAD_CURSOR, p->decided, err) : 0;
}

static void on_pruned(void *arg, const struct error *err)
{
        struct pruning *p = arg;

        p->road->writes--;
        if (err)
                log_warn("old records could not be removed; trying again in a minute",
                         LOG_S("why", err->text));
        if (!p->road->closing)
                timer_start(p->road->prune, !err && p->more ? PRUNE_SOON_MS : PRUNE_EVERY_MS);
        free(p);
}

/*
 * A turn is read back from its events after a crash: they must not go before it has ended, however
 * short events are kept.
 */
static int64_t done_up_to(const struct road *r, int64_t decided)
{
        int64_t done = decided > 0 ? decided : INT64_MAX;
        void *value;

        for (size_t i = 0; map_each(&r->turns, &i, NULL, &value);) {
                const struct turn *t = value;

                if (t->input_count > 0 && t->inputs[0]->event <= done)
                        done = t->inputs[0]->event - 1;
        }
        return done == INT64_MAX ? -1 : done;
}

void prune_run(void *road)
{
        struct road *r = road;
        struct pruning *p = mem_zalloc(sizeof(*p));
        int64_t now_ms = clock_wall_ms();
        void *a;

        for (size_t i = 0; map_each(&r->adapters, &i, NULL, &a);)
                pace_sweep(((struct out_adapter *)a)->pace, loop_now_ms(r->loop));
        outbox_pump_all(r); /* what waits for an adapter that is away may have expired */
        p->road = r;
        p->record_before_ms = now_ms - r->limits.record_days * DAY_MS;
        p->transcript_before_ms = now_ms - r->limits.transcript_days * DAY_MS;
        p->future_ms = now_ms + DAY_MS;
        /*
         * events we made ourselves need no decision: without this the journal could not be pruned
         * behind them
         */
        p->decided = r->pending_count == 0 && !r->deciding && !r->asked ? bus_head(r->bus) : 0;
        p->done = done_up_to(r, p->decided);
        r->writes++;
        store_write(r->store, write_pruning, on_pruned, p);
}

void prune_begin(struct road *r)
{
        r->prune = timer_new(r->loop, prune_run, r);
        /* our cursors are there before the journal is pruned for the first time */
        timer_start(r->prune, PRUNE_EVERY_MS / 2);
        timer_unref(r->prune);
}
