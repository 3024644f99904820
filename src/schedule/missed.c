#include "schedule/missed.h"

#include "base/mem.h"
#include "base/timezone.h"
#include "schedule/cron.h"

/* What has passed: the last times, oldest first, and how many there were in all. */
struct passed {
        int64_t times[MISSED_MOST];
        size_t count;
        int64_t runs;
};

/* The last due time in (after_ms, until_ms], of which there is one. */
static int64_t find_last(const struct cron *c, const struct time_zone *z, int64_t after_ms,
                         int64_t until_ms)
{
        int64_t none_after_ms = until_ms;

        while (none_after_ms - after_ms > 1) {
                int64_t middle_ms = after_ms + (none_after_ms - after_ms) / 2;
                int64_t t = cron_next(c, z, middle_ms);

                if (t > 0 && t <= until_ms)
                        after_ms = middle_ms;
                else
                        none_after_ms = middle_ms;
        }
        return cron_next(c, z, after_ms);
}

/* A downtime may have been long, and the schedule one of every second: counts only so far. */
static void find_passed(const struct cron *c, const struct time_zone *z, int64_t first_ms,
                        int64_t now_ms, struct passed *out)
{
        int64_t t = first_ms;

        for (; t > 0 && t <= now_ms && out->runs < MISSED_COUNTED; t = cron_next(c, z, t))
                out->times[out->runs++ % MISSED_MOST] = t;
        out->count = out->runs < MISSED_MOST ? (size_t)out->runs : MISSED_MOST;
        if (t > 0 && t <= now_ms) {
                t = now_ms;
                for (size_t i = MISSED_MOST; i-- > 0; t = out->times[i] - 1)
                        out->times[i] = find_last(c, z, first_ms, t);
        } else if (out->runs > MISSED_MOST) {
                size_t oldest = (size_t)out->runs % MISSED_MOST;
                int64_t sorted[MISSED_MOST];

                for (size_t i = 0; i < MISSED_MOST; i++)
                        sorted[i] = out->times[(oldest + i) % MISSED_MOST];
                for (size_t i = 0; i < MISSED_MOST; i++)
                        out->times[i] = sorted[i];
        }
}

static void add(struct missed_plan *out, const struct schedule_row *row, int64_t due_ms,
                int64_t runs, const char *why_not, int64_t now_ms)
{
        out->ticks[out->count++] =
                (struct tick_row){ .schedule = row->id,
                                   .due_ms = due_ms,
                                   .runs = runs,
                                   .state = why_not ? TICK_SKIPPED : TICK_PENDING,
                                   .not_before_ms = due_ms,
                                   .ended_ms = why_not ? now_ms : 0,
                                   .note = why_not };
}

/* NULL: it runs. */
static const char *why_not(const struct schedule_row *row, int64_t due_ms, int64_t now_ms)
{
        int64_t late_ms = now_ms - due_ms;

        if (row->max_age_ms > 0 && late_ms > row->max_age_ms)
                return "it is too late: older than its age limit";
        if (row->missed == MISSED_SKIP && late_ms > MISSED_GRACE_MS)
                return "it was missed, and missed runs are skipped";
        return NULL;
}

static void plan_ticks(const struct schedule_row *row, const struct passed *p, int64_t first_ms,
                       int64_t now_ms, struct missed_plan *out)
{
        int64_t last_ms = p->times[p->count - 1], left_out;
        size_t first = p->count - 1; /* of those with a tick of their own */

        if (row->missed == MISSED_ONCE) {
                add(out, row, last_ms, p->runs, why_not(row, last_ms, now_ms), now_ms);
                return;
        }
        while (row->missed == MISSED_ALL && first > 0 && !why_not(row, p->times[first - 1], now_ms))
                first--;
        left_out = p->runs - (int64_t)(p->count - first);
        if (left_out > 0)
                add(out, row, first_ms, left_out,
                    row->missed == MISSED_SKIP ? "missed runs are skipped"
                                               : "too old, or too many were missed",
                    now_ms);
        for (size_t i = first; i < p->count; i++)
                add(out, row, p->times[i], 1, why_not(row, p->times[i], now_ms), now_ms);
}

/* NULL: its cron or zone is not valid. */
static struct time_zone *parse(const struct schedule_row *row, const char *zone, struct cron *out)
{
        struct error err;

        if (!row->cron || cron_parse(row->cron, out, &err) < 0)
                return NULL;
        return timezone_new(row->timezone ? row->timezone : zone, &err);
}

int64_t missed_next(const struct schedule_row *row, const char *zone, int64_t now_ms)
{
        struct cron c;
        struct time_zone *z = parse(row, zone, &c);
        int64_t next_ms = z ? cron_next(&c, z, now_ms) : 0;

        timezone_free(z);
        return next_ms;
}

void missed_plan_make(const struct schedule_row *row, const char *zone, int64_t now_ms,
                      struct missed_plan *out)
{
        struct passed p = { .times = { row->next_ms }, .count = 1, .runs = 1 };
        int64_t first_ms = row->next_ms;

        struct time_zone *z = NULL;
        struct cron c;

        out->count = 0;
        out->next_ms = 0;
        out->broken = row->unknown[0] ? row->unknown : NULL;
        if (row->kind == SCHEDULE_PERIODIC && !out->broken) {
                z = parse(row, zone, &c);
                out->broken = z ? NULL : "its cron or time zone is not valid";
        }
        if (out->broken) {
                add(out, row, row->next_ms, 1, out->broken, now_ms);
                out->ticks[0].state = TICK_FAILED;
                return;
        }
        if (z) {
                out->next_ms = cron_next(&c, z, now_ms);
                if (row->ahead_ms > 0 && now_ms - row->next_ms > MISSED_GRACE_MS &&
                    (out->next_ms >= row->ahead_ms || out->next_ms == 0))
                        first_ms = row->ahead_ms;
                p = (struct passed){ .count = 0 };
                find_passed(&c, z, first_ms, now_ms, &p);
                timezone_free(z);
        }
        if (p.count > 0)
                plan_ticks(row, &p, first_ms, now_ms, out);
}
