#include "schedule/missed.h"

#include <stdlib.h>

#include "base/mem.h"

void missed_plan_make(const struct schedule_row *row, int64_t now_ms, struct missed_plan *out)
{
        int64_t age_ms = now_ms - row->next_ms;
        bool old = row->max_age_ms > 0 && age_ms > row->max_age_ms;
        bool left_out = row->missed == MISSED_SKIP && age_ms > MISSED_GRACE_MS;

        *out = (struct missed_plan){ mem_zalloc(sizeof(*out->ticks)), 1, 0 };
        out->ticks[0] = (struct tick_row){ .schedule = row->id,
                                           .due_ms = row->next_ms,
                                           .runs = 1,
                                           .state = TICK_PENDING,
                                           .not_before_ms = row->next_ms };
        if (!old && !left_out)
                return;
        out->ticks[0].state = TICK_SKIPPED;
        out->ticks[0].ended_ms = now_ms;
        out->ticks[0].note = old ? "it was older than its age limit" : "it was missed";
}

void missed_plan_release(struct missed_plan *p)
{
        free(p->ticks);
}
