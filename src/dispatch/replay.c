#include "dispatch/replay.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "rows/trigger_log_row.h"

#define WARM_UP_MS 3600000 /* replayed before the first reported event */

struct replay {
        struct dispatch *dispatch;
        int64_t since_ms, after_event;
        struct map turns; /* turns whose first message was replayed */
        replay_fn *fn;
        void *arg;
        struct replay_sum *sum;
};

/* The turn ends when it did in the past; a new one ends at once. */
static void end_turn(struct replay *r, const struct incoming *in, const struct decision *now,
                     const struct trigger_decision *before)
{
        struct turn_run run = { .adapter = in->adapter,
                                .channel = in->channel,
                                .trace = in->trace,
                                .session = now->session,
                                .agent = now->agent,
                                .rule = now->rule };
        struct turn_outcome outcome = { .answered = true,
                                        .thread = in->thread ? NULL : before->thread,
                                        .cost_microusd = before->cost_microusd };

        dispatch_set_clock(r->dispatch,
                           before->ended_ms > before->time_ms ? before->ended_ms : before->time_ms);
        dispatch_ended(r->dispatch, &run, &outcome);
}

static bool same(const char *a, const char *b)
{
        return strcmp(a ? a : "", b ? b : "") == 0;
}

static void report(const struct replay *r, struct replay_row *row)
{
        const struct replay_decision *before = &row->before, *now = &row->now;
        struct replay_sum *sum = r->sum;
        bool moves = before->answers && now->answers &&
                     !(same(before->agent, now->agent) && same(before->rule, now->rule));

        sum->events++;
        sum->answered_before += before->answers;
        sum->answered_now += now->answers;
        sum->begins += !before->answers && now->answers;
        sum->ends += before->answers && !now->answers;
        sum->moves += moves;
        row->differs = moves || before->answers != now->answers;
        r->fn(r->arg, row);
}

static enum placement on_placement_query(void *arg, struct decision *d)
{
        (void)d;
        return *(enum placement *)arg;
}

static void replay_event(struct replay *r, const struct trigger_decision *before,
                         const struct incoming *in)
{
        struct replay_row row = { .in = in,
                                  .time_ms = before->time_ms,
                                  .before = { before->turn > 0, before->agent, before->rule,
                                              before->reason } };
        enum placement placement = PLACEMENT_NEW_TURN;
        struct decision now;
        char key[24];

        /* further messages of a turn join it again */
        snprintf(key, sizeof(key), "%lld", (long long)before->turn);
        if (before->turn > 0 && map_put(&r->turns, key, r))
                placement = PLACEMENT_JOINS_TURN;
        dispatch_set_clock(r->dispatch, row.time_ms);
        dispatch_decide(r->dispatch, in,
                        &(struct placement_query){ .ask = on_placement_query, .arg = &placement },
                        &now);
        if (now.extra.fn)
                now.extra.done(now.extra.arg, NULL); /* as if it were stored */
        row.now = (struct replay_decision){ now.trigger, now.agent, now.rule, now.reason };
        if (row.time_ms >= r->since_ms && in->event > r->after_event)
                report(r, &row);
        if (now.trigger && placement == PLACEMENT_NEW_TURN)
                end_turn(r, in, &now, before);
}

int replay_run(struct dispatch *d, struct store_tx *tx, int64_t since_ms, int64_t after_event,
               replay_fn *fn, void *arg, struct replay_sum *sum, struct error *err)
{
        struct replay r = { .dispatch = d,
                            .since_ms = since_ms,
                            .after_event = after_event,
                            .fn = fn,
                            .arg = arg,
                            .sum = sum };
        int64_t from_ms = since_ms;
        struct trigger_decision row;
        struct store_stmt *s;
        int rc;

        *sum = (struct replay_sum){ 0 };
        if (after_event > 0 && trigger_log_row_get_time(tx, after_event, &from_ms, err) < 0)
                return -1;
        s = trigger_log_row_list_decisions(tx, from_ms - WARM_UP_MS);
        map_init(&r.turns);
        while ((rc = trigger_log_row_next_decision(s, &row, err)) == 1) {
                struct incoming *in = incoming_from_row(&row.event, err);

                if (!in) {
                        rows_end(s);
                        rc = -1;
                        break;
                }
                replay_event(&r, &row, in);
                incoming_free(in);
        }
        map_release(&r.turns);
        return rc;
}
