#include "dispatch/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

#define WARM_UP_MS 3600000 /* what is going on at the first event began before it */

struct replay {
        struct dispatch *dispatch;
        int64_t since_ms, after_event;
        struct map turns; /* whose first message was replayed */
        replay_fn *fn;
        void *arg;
        struct replay_sum *sum;
};

enum column {
        COL_EVENT,
        COL_TYPE,
        COL_TIME,
        COL_ADAPTER,
        COL_CHANNEL,
        COL_THREAD,
        COL_TRACE,
        COL_PAYLOAD,
        COL_DECIDED,
        COL_AGENT,
        COL_RULE,
        COL_REASON,
        COL_TURN,
        COL_ENDED,
        COL_COST,
        COL_BEGUN_THREAD,
};

static struct incoming *event_of(struct store_stmt *s, struct error *err)
{
        struct bus_event e = { .seq = store_col_int(s, COL_EVENT),
                               .type = store_col_text(s, COL_TYPE),
                               .time_ms = store_col_int(s, COL_TIME),
                               .adapter = store_col_text(s, COL_ADAPTER),
                               .channel = store_col_text(s, COL_CHANNEL),
                               .thread = store_col_text(s, COL_THREAD),
                               .trace = store_col_text(s, COL_TRACE),
                               .payload = store_col_text(s, COL_PAYLOAD) };

        return incoming_parse(&e, err);
}

/* Was the turn there before this message? Then it would join it again. */
static bool joins_again(struct replay *r, struct store_stmt *s)
{
        char key[24];

        if (store_col_null(s, COL_TURN))
                return false;
        snprintf(key, sizeof(key), "%lld", (long long)store_col_int(s, COL_TURN));
        return map_put(&r->turns, key, r) != NULL;
}

/* The turn ends when it did; one that did not happen then ends at once. */
static void end_turn(struct replay *r, const struct incoming *in, const struct decision *out,
                     struct store_stmt *s)
{
        struct turn_run run = { .adapter = in->adapter,
                                .channel = in->channel,
                                .trace = in->trace,
                                .session = out->session,
                                .agent = out->agent,
                                .rule = out->rule };
        struct turn_outcome outcome = { .answered = true,
                                        .thread = in->thread ? NULL
                                                             : store_col_text(s, COL_BEGUN_THREAD),
                                        .cost_microusd = store_col_int(s, COL_COST) };
        int64_t decided_ms = store_col_int(s, COL_DECIDED), ended_ms = store_col_int(s, COL_ENDED);

        dispatch_set_clock(r->dispatch, ended_ms > decided_ms ? ended_ms : decided_ms);
        dispatch_ended(r->dispatch, &run, &outcome);
}

static bool same(const char *a, const char *b)
{
        return strcmp(a ? a : "", b ? b : "") == 0;
}

static void tell(const struct replay *r, struct replay_row *row)
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

static enum placement on_place_query(void *arg, struct decision *d)
{
        (void)d;
        return *(enum placement *)arg;
}

static void replay_event(struct replay *r, struct store_stmt *s, const struct incoming *in)
{
        struct replay_row row = { .in = in, .time_ms = store_col_int(s, COL_DECIDED) };
        enum placement placement;
        struct decision out;

        row.before = (struct replay_decision){ .answers = !store_col_null(s, COL_TURN),
                                               .agent = store_col_text(s, COL_AGENT),
                                               .rule = store_col_text(s, COL_RULE),
                                               .reason = store_col_text(s, COL_REASON) };
        dispatch_set_clock(r->dispatch, row.time_ms);
        placement = joins_again(r, s) ? PLACEMENT_JOINS_TURN : PLACEMENT_NEW_TURN;
        dispatch_decide(r->dispatch, in, &(struct placement_query){ on_place_query, &placement },
                        &out);
        row.now.answers = out.trigger;
        if (out.extra.fn)
                out.extra.done(out.extra.arg); /* it is not stored */
        row.now.agent = out.agent;
        row.now.rule = out.rule;
        row.now.reason = out.reason;
        if (row.time_ms >= r->since_ms && in->event > r->after_event)
                tell(r, &row);
        if (row.now.answers && placement == PLACEMENT_NEW_TURN)
                end_turn(r, in, &out, s);
}

static int replay_row(struct replay *r, struct store_stmt *s, struct error *err)
{
        struct incoming *in = event_of(s, err);

        if (!in)
                return -1;
        in->event = store_col_int(s, COL_EVENT);
        replay_event(r, s, in);
        incoming_free(in);
        return 0;
}

/* When an event was decided; 0 when it is not there. */
static int time_of(struct store_tx *tx, int64_t event, int64_t *time_ms, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT time_ms FROM trigger_log WHERE event >= ?1 ORDER BY event LIMIT 1");
        int rc;

        store_bind_int(s, 1, event);
        rc = store_step(s, err);
        if (rc == 1) {
                *time_ms = store_col_int(s, 0);
                store_reset(s);
        }
        return rc < 0 ? -1 : 0;
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
        struct store_stmt *s;
        int rc;

        *sum = (struct replay_sum){ 0 };
        if (after_event > 0 && time_of(tx, after_event, &from_ms, err) < 0)
                return -1;
        s = store_prepare(
                tx,
                "SELECT j.seq, j.type, j.time_ms, j.adapter, j.channel, j.thread, j.trace, j.payload,"
                " l.time_ms, l.agent, l.rule, l.reason, l.turn, t.ended_ms, t.cost_microusd,"
                " (SELECT max(d.thread) FROM deliveries AS d WHERE d.turn = t.id)"
                " FROM trigger_log AS l JOIN journal AS j ON j.seq = l.event"
                " LEFT JOIN turns AS t ON t.id = l.turn WHERE l.time_ms >= ?1 ORDER BY l.event");
        store_bind_int(s, 1, from_ms - WARM_UP_MS);
        map_init(&r.turns);
        while ((rc = store_step(s, err)) == 1 && replay_row(&r, s, err) == 0)
                ;
        if (rc == 1)
                store_reset(s);
        map_release(&r.turns);
        return rc == 0 ? 0 : -1;
}
