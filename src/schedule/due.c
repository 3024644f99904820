/*
 * due: one timer for everything that is pending.
 *
 * A look is one transaction: schedules that are due become ticks and get their next time, then
 * pending ticks are claimed, as many as there is room for in memory. The rest waits in the store.
 * The clock may jump: the timer never sleeps long, and compares with the wall clock when it wakes.
 * When the clock was set back, and at the start, periodic schedules whose next time is too far away
 * get an earlier one. That fires nothing again, because ticks are unique by due time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"
#include "rows/person_row.h"
#include "schedule/missed.h"
#include "schedule/schedule_private.h"

#define TAKE_MAX    100 /* schedules per look */
#define RUNNING_MAX 64  /* ticks in memory */
#define RETRY_MS    5000
#define STEP_MS     1000 /* the clock was set, not slowed down */
/* after which the wall clock is checked */
#ifdef DRAGOMAN_FAULTS
#define SLEEP_MS 100 /* tests make it jump */
#else
#define SLEEP_MS 10000
#endif

struct claim {
        struct schedule_row *row;
        struct tick_row *tick;
        bool direct; /* its chat is a person's */
};

struct look {
        struct schedule *schedule;
        const char *zone; /* of schedules without one */
        int64_t now_ms;
        size_t room;               /* for claims */
        int64_t busy[RUNNING_MAX]; /* schedules with a tick in memory */
        size_t busy_count;
        bool revive, set_back;
        /* results */
        struct claim claims[RUNNING_MAX];
        size_t claim_count;
        struct schedule_row *due[TAKE_MAX];
        const char *broken[TAKE_MAX]; /* of those due: why it was set aside; NULL: it was not */
        size_t due_count, skipped, failed;
        size_t moved; /* because the clock was set back */
        int64_t first_ms;
        struct bus_batch batch;
};

static void forget_results(struct look *l)
{
        for (size_t i = 0; i < l->claim_count; i++) {
                free(l->claims[i].row);
                free(l->claims[i].tick);
        }
        for (size_t i = 0; i < l->due_count; i++)
                free(l->due[i]);
        l->claim_count = l->due_count = l->skipped = l->failed = l->moved = 0;
        bus_batch_reset(&l->batch);
}

static void look_free(struct look *l)
{
        forget_results(l);
        bus_batch_release(&l->batch);
        free(l);
}

/* ---- in the store function ---- */

/* Next times that the clock, once it was set back, would not reach when it should. */
static int follow_clock(struct store_tx *tx, struct look *l, struct error *err)
{
        int64_t after = 0;
        size_t n;
        int rc;

        do {
                struct store_stmt *s = schedule_row_list_periodic(tx, l->now_ms, after, TAKE_MAX);
                struct schedule_row *rows[TAKE_MAX], row;

                for (n = 0; (rc = schedule_row_next(s, &row, err)) == 1; n++)
                        rows[n] = schedule_row_dup(&row);
                for (size_t i = 0; i < n; i++) {
                        int64_t next_ms = missed_next(rows[i], l->zone, l->now_ms);

                        after = rows[i]->id;
                        if (rc == 0 && next_ms > 0 && next_ms < rows[i]->next_ms) {
                                rc = schedule_row_set_back(tx, after, rows[i]->next_ms, next_ms,
                                                           err);
                                l->moved += rc == 1;
                                rc = rc < 0 ? -1 : 0;
                        }
                        free(rows[i]);
                }
        } while (rc == 0 && n == TAKE_MAX);
        return rc;
}

static int read_due(struct store_tx *tx, struct look *l, struct error *err)
{
        struct store_stmt *s = schedule_row_list_due(tx, l->now_ms, TAKE_MAX);
        struct schedule_row row;
        int rc;

        while ((rc = schedule_row_next(s, &row, err)) == 1)
                l->due[l->due_count++] = schedule_row_dup(&row);
        return rc;
}

static int journal(struct store_tx *tx, struct look *l, const struct schedule_row *row,
                   const struct tick_row *tick, struct error *err)
{
        bool failed = tick->state == TICK_FAILED;

        l->failed += failed;
        l->skipped += !failed;
        return schedule_journal(tx, &l->batch, failed ? "schedule.failed" : "schedule.skipped", row,
                                tick, tick->note, NULL, err);
}

/*
 * Ticks for all times that have passed, and the next time. One row that this version cannot use
 * ends, so that it holds up no other.
 */
static int write_ticks(struct store_tx *tx, struct look *l, size_t n, struct error *err)
{
        const struct schedule_row *row = l->due[n];
        struct missed_plan plan;
        int rc;

        missed_plan_make(row, l->zone, l->now_ms, &plan);
        l->broken[n] = plan.broken;
        rc = plan.broken ? schedule_row_cancel(tx, row->id, plan.broken, l->now_ms, err)
                         : schedule_row_advance(tx, row->id, row->next_ms, plan.next_ms, l->now_ms,
                                                err);
        fault_point("schedule.advanced");
        /* 0: another scheduler was faster */
        for (size_t i = 0; rc == 1 && i < plan.count; i++) {
                struct tick_row *t = &plan.ticks[i];

                rc = tick_row_insert(tx, t, &t->id, err);
                fault_point("schedule.ticked");
                if (rc == 1 && t->state != TICK_PENDING)
                        rc = journal(tx, l, row, t, err);
                rc = rc < 0 ? -1 : 1;
        }
        return rc < 0 ? -1 : 0;
}

/*
 * A check or turn that takes longer than the schedule's interval: the tick is skipped, because runs
 * that pile up cost money. 1: skipped; 0; -1.
 */
static int skip_overlap(struct store_tx *tx, struct look *l, const struct schedule_row *row,
                        struct tick_row *tick, struct error *err)
{
        char note[80] = "the run before it has not ended";
        bool busy = false;
        int64_t turn;
        int rc;

        if (row->kind != SCHEDULE_PERIODIC || row->action != SCHEDULE_TURN ||
            row->missed == MISSED_ALL)
                return 0;
        for (size_t i = 0; i < l->busy_count; i++)
                busy = busy || l->busy[i] == row->id;
        rc = busy ? 0 : tick_row_find_turn(tx, row->id, tick->due_ms, &turn, err);
        if (!busy && rc != 1)
                return rc;
        if (!busy)
                snprintf(note, sizeof(note), "the turn before it (trn-%lld) has not ended",
                         (long long)turn);
        tick->state = TICK_SKIPPED;
        tick->ended_ms = l->now_ms;
        tick->note = note;
        rc = tick_row_end(tx, tick, err);
        if (rc == 1)
                rc = journal(tx, l, row, tick, err);
        tick->note = NULL;
        return rc < 0 ? -1 : 1;
}

/* 1: it is ours to run, and the look has taken it; 0; -1. */
static int claim(struct store_tx *tx, struct look *l, struct tick_row *tick, struct error *err)
{
        struct schedule_row *row;
        int rc = schedule_row_get(tx, tick->schedule, &row, err), direct = 0;

        if (rc < 0)
                return -1;
        if (rc == 0 || row->unknown[0]) { /* else it would be looked at for ever */
                tick->state = TICK_FAILED;
                tick->ended_ms = l->now_ms;
                tick->note = row ? row->unknown : "its schedule is gone";
                rc = tick_row_end(tx, tick, err);
                if (rc == 1 && row)
                        rc = journal(tx, l, row, tick, err);
                free(row);
                return rc < 0 ? -1 : 0;
        }
        rc = skip_overlap(tx, l, row, tick, err);
        if (rc == 0 && row->channel)
                rc = direct = person_row_is_direct(tx, row->adapter, row->channel, err);
        if (rc >= 0 && tick->state == TICK_PENDING)
                rc = tick_row_claim(tx, tick->id, l->now_ms, err);
        else
                rc = rc < 0 ? -1 : 0;
        if (rc != 1) {
                free(row);
                return rc;
        }
        tick->state = TICK_RUNNING;
        tick->started_ms = l->now_ms;
        l->claims[l->claim_count++] = (struct claim){ row, tick, direct == 1 };
        return 1;
}

static int claim_ready(struct store_tx *tx, struct look *l, struct error *err)
{
        struct store_stmt *s = tick_row_list_ready(tx, l->now_ms, (int64_t)l->room);
        struct tick_row *ready[RUNNING_MAX], tick;
        size_t n = 0;
        int rc;

        while ((rc = tick_row_next(s, &tick, err)) == 1)
                ready[n++] = tick_row_dup(&tick);
        for (size_t i = 0; i < n; i++) {
                int taken = rc < 0 ? 0 : claim(tx, l, ready[i], err);

                if (taken != 1)
                        free(ready[i]);
                if (taken < 0)
                        rc = -1;
        }
        return rc;
}

static int write_look(struct store_tx *tx, void *arg, struct error *err)
{
        struct look *l = arg;

        forget_results(l);
        if (l->revive && tick_row_revive(tx, err) < 0)
                return -1;
        if (l->set_back && follow_clock(tx, l, err) < 0)
                return -1;
        if (read_due(tx, l, err) < 0)
                return -1;
        for (size_t i = 0; i < l->due_count; i++)
                if (write_ticks(tx, l, i, err) < 0)
                        return -1;
        if (claim_ready(tx, l, err) < 0)
                return -1;
        fault_point("schedule.claimed");
        return schedule_row_first_ms(tx, &l->first_ms, err);
}

/* ---- on the loop ---- */

static void sleep_until(struct schedule *s, int64_t when_ms)
{
        int64_t wait_ms = when_ms - clock_wall_ms();

        s->stats.next_ms = when_ms;
        if (when_ms == 0 || s->quiet)
                timer_stop(s->timer);
        else
                timer_start(s->timer, wait_ms < 0 ? 0 : wait_ms > SLEEP_MS ? SLEEP_MS : wait_ms);
}

static void watch_clock(struct schedule *s)
{
        int64_t clock_ms = clock_wall_ms() - clock_boot_ms();

        if (clock_ms < s->clock_ms - STEP_MS)
                s->set_back = true;
        s->clock_ms = clock_ms;
}

static void on_timer(void *arg)
{
        struct schedule *s = arg;

        watch_clock(s);
        if (s->stats.next_ms > clock_wall_ms() && !s->set_back)
                sleep_until(s, s->stats.next_ms);
        else
                due_look(s);
}

static void on_looked(void *arg, const struct error *err)
{
        struct look *l = arg;
        struct schedule *s = l->schedule;

        s->writes--;
        s->looking = false;
        fault_point("schedule.looked");
        if (err) {
                log_error("cannot look for what is due; retrying", LOG_S("why", err->text));
                if (!s->quiet)
                        timer_start(s->timer, RETRY_MS);
                s->set_back |= l->set_back;
                look_free(l);
                return;
        }
        if (l->revive)
                s->revived = true;
        if (l->moved > 0)
                log_warn("schedules were ahead of the clock; computed their next times again",
                         LOG_I("schedules", (int64_t)l->moved));
        bus_publish(s->env.bus, &l->batch);
        s->stats.skipped += l->skipped;
        s->stats.failed += l->failed;
        for (size_t i = 0; i < l->due_count; i++) {
                if (l->broken[i])
                        log_warn("set a schedule aside", LOG_I("schedule", l->due[i]->id),
                                 LOG_S("name", l->due[i]->name), LOG_S("why", l->broken[i]));
                event_files_ticked(s, l->due[i]);
        }
        /* what is claimed and not started is resumed by the next run */
        for (size_t i = 0; i < l->claim_count && !s->quiet; i++) {
                tick_start(s, l->claims[i].row, l->claims[i].tick, l->claims[i].direct);
                l->claims[i] = (struct claim){ NULL, NULL, false };
        }
        sleep_until(s, l->first_ms);
        look_free(l);
        if (s->look_again)
                due_look(s);
}

void due_look(struct schedule *s)
{
        const struct tick_run *t;
        struct look *l;

        s->look_again = s->looking;
        if (s->looking || s->quiet || !s->started || !s->conf->enabled)
                return;
        if (s->running_count >= RUNNING_MAX) {
                s->full = true; /* due_left looks */
                return;
        }
        s->looking = true;
        watch_clock(s);
        l = mem_zalloc(sizeof(*l));
        l->schedule = s;
        l->zone = schedule_default_zone(s);
        l->now_ms = clock_wall_ms();
        l->room = RUNNING_MAX - s->running_count;
        TAILQ_FOREACH(t, &s->running, next)
                l->busy[l->busy_count++] = t->row->id;
        l->revive = !s->revived;
        l->set_back = s->set_back;
        s->set_back = false;
        s->writes++;
        store_write(s->env.store, write_look, on_looked, l);
}

void due_left(struct schedule *s)
{
        if (s->full && !s->closing) {
                s->full = false;
                due_look(s);
        }
}

void due_open(struct schedule *s)
{
        s->timer = timer_new(s->env.loop, on_timer, s);
        s->set_back = true; /* while it was not running */
        TAILQ_INIT(&s->running);
}

void due_close(struct schedule *s)
{
        struct tick_run *t, *after;

        timer_stop(s->timer);
        do {
                for (t = TAILQ_FIRST(&s->running); t; t = after) {
                        after = TAILQ_NEXT(t, next);
                        tick_stop(t);
                }
        } while ((s->writes > 0 || s->running_count > 0) && loop_step(s->env.loop, true));
        timer_free(s->timer);
}
