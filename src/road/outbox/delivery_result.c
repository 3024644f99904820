/*
 * settle: what became of a delivery, and what follows from it.
 *
 * An adapter says done, try again, never, or cannot tell; the outcome is stored before the channel
 * goes on. What cannot be told is repeated where that does no harm, looked up where one can look,
 * and otherwise reported as unknown: never repeated blindly.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/backoff.h"
#include "road/road_private.h"

struct settlement {
        struct road *road;
        struct out *out;
        enum delivery_state state;
        const char *outcome; /* for the attempts table; NULL: no row */
        char *platform_id, *why;
        enum error_kind kind;
        int64_t now_ms, due_ms;
        int64_t attempt_after; /* a rate limit does not count as an attempt */
        bool anew;             /* the message to edit is gone: send the text as a new one */
        bool moves;            /* there is no thread: what was to stand in it goes to the channel */
        bool lost;             /* the row is not ours any more */
        struct bus_batch batch;
};

/* ---- writing ---- */

static int write_attempt(struct store_tx *tx, const struct settlement *m, struct error *err)
{
        struct store_stmt *s;

        if (!m->outcome)
                return 0;
        s = store_prepare(
                tx,
                "INSERT INTO attempts(delivery, attempt, time_ms, outcome, detail) VALUES(?1, ?2, ?3, ?4, ?5)"
                " ON CONFLICT(delivery, attempt) DO UPDATE SET time_ms = excluded.time_ms,"
                " outcome = excluded.outcome, detail = excluded.detail");
        store_bind_int(s, 1, m->out->d.id);
        store_bind_int(s, 2, m->out->d.attempt);
        store_bind_int(s, 3, m->now_ms);
        store_bind_text(s, 4, m->outcome);
        store_bind_text(s, 5, m->why);
        return store_run(s, err);
}

static void failure_payload(const struct settlement *m, struct buf *payload)
{
        char key[TURN_KEY_SIZE];

        jsonw_open(payload, '{');
        jsonw_str(payload, "deliveryId", road_key("dlv", m->out->d.id, key));
        jsonw_str(payload, "kind", delivery_kind_name(m->out->d.kind));
        jsonw_str(payload, "channelId", m->out->d.channel);
        jsonw_int(payload, "attempt", m->out->d.attempt);
        jsonw_str(payload, "state", delivery_state_name(m->state));
        jsonw_str(payload, "errorKind", error_kind_name(m->kind));
        jsonw_str(payload, "error", m->why);
        jsonw_bool(payload, "retryable", m->state == DELIVERY_QUEUED);
        jsonw_close(payload, '}');
}

static const char *event_type(const struct settlement *m)
{
        bool message = m->out->d.kind == DELIVER_SEND;

        if (m->state == DELIVERY_QUEUED)
                return "delivery.retrying";
        if (m->state == DELIVERY_SENT)
                return message ? EVENT_MESSAGE_SENT : "delivery.sent";
        return message ? EVENT_MESSAGE_FAILED : "delivery.failed";
}

static int write_event(struct store_tx *tx, struct settlement *m, struct error *err)
{
        struct buf payload;
        int rc;

        if (out_is_fleeting(m->out) || (m->state == DELIVERY_QUEUED && !m->outcome))
                return 0;
        buf_init(&payload, 0);
        if (m->state == DELIVERY_SENT)
                out_sent_payload(m->out, m->platform_id, m->now_ms, &payload);
        else
                failure_payload(m, &payload);
        rc = out_event(tx, &m->batch, m->out, event_type(m), m->now_ms, payload.data, err);
        buf_release(&payload);
        return rc;
}

static int write_move(struct store_tx *tx, const struct settlement *m, struct error *err)
{
        struct store_stmt *s;

        if (!m->moves)
                return 0;
        s = store_prepare(tx, "UPDATE deliveries SET thread = NULL WHERE turn = ?1 AND thread = ?2"
                              " AND state = 'queued'");
        store_bind_int(s, 1, m->out->d.turn);
        store_bind_text(s, 2, m->out->d.thread);
        return store_run(s, err);
}

/*
 * While a delivery waits, lease_ms holds the time of its last attempt: due_ms minus it is the pause
 * it was told to make.
 */
static int write_settlement(struct store_tx *tx, void *arg, struct error *err)
{
        struct settlement *m = arg;
        struct store_stmt *s = store_prepare(
                tx, "UPDATE deliveries SET state = ?3, attempt = ?4, due_ms = ?5, ended_ms = "
                    "?6, platform_id = ?7,"
                    " error_kind = ?8, error = ?9, lease_ms = ?11, kind = CASE ?10 WHEN 1 THEN "
                    "'send' ELSE kind END,"
                    " edits = CASE ?10 WHEN 1 THEN 0 ELSE edits END"
                    " WHERE id = ?1 AND fence = ?2 AND state IN ('queued', 'sending')");

        bus_batch_reset(&m->batch);
        store_bind_int(s, 1, m->out->d.id);
        store_bind_int(s, 2, m->out->d.fence);
        store_bind_text(s, 3, delivery_state_name(m->state));
        store_bind_int(s, 4, m->attempt_after);
        store_bind_int(s, 5, m->due_ms);
        if (m->state == DELIVERY_QUEUED)
                store_bind_null(s, 6);
        else
                store_bind_int(s, 6, m->now_ms);
        store_bind_text(s, 7, m->platform_id);
        store_bind_text(s, 8, m->kind ? error_kind_name(m->kind) : NULL);
        store_bind_text(s, 9, m->why);
        store_bind_int(s, 10, m->anew ? 1 : 0);
        store_bind_int(s, 11, m->now_ms);
        if (store_run(s, err) < 0)
                return -1;
        m->lost = store_changes(tx) == 0;
        if (m->lost)
                return 0;
        if (write_attempt(tx, m, err) < 0 || write_move(tx, m, err) < 0)
                return -1;
        return write_event(tx, m, err);
}

/* ---- after the commit ---- */

static void count(struct road *r, const struct settlement *m)
{
        struct adapter_stats *stats = &m->out->channel->adapter->stats;

        /* a typing sign says nothing about whether messages arrive */
        if (m->lost || out_is_fleeting(m->out) || (m->state == DELIVERY_QUEUED && !m->outcome))
                return;
        if (m->state == DELIVERY_SENT) {
                r->stats.sent++;
                stats->last_sent_ms = m->now_ms;
                return;
        }
        stats->last_failure_ms = m->now_ms;
        snprintf(stats->last_failure, sizeof(stats->last_failure), "%s", m->why ? m->why : "");
        if (m->state == DELIVERY_QUEUED)
                r->stats.retried++;
        else if (m->state == DELIVERY_UNKNOWN)
                r->stats.unknown++;
        else
                r->stats.failed++;
}

static void on_settled(void *arg)
{
        struct settlement *m = arg;
        struct road *r = m->road;
        struct out *o = m->out;

        fault_point("outbox.settled");
        count(r, m);
        bus_publish(r->bus, &m->batch);
        o->d.attempt = (int)m->attempt_after;
        o->reconciling = false;
        if (m->state == DELIVERY_QUEUED && !m->lost) {
                if (m->anew)
                        out_becomes_send(o);
                o->state = OUT_QUEUED;
                o->unsure = false;
                outbox_decided(r, o);
                outbox_pump(r, o->channel);
        } else {
                if (m->moves && !m->lost)
                        outbox_move_to_channel(r, o);
                outbox_leave(r, o);
        }
        road_check_drained(r);
        free(m->platform_id);
        free(m->why);
        bus_batch_release(&m->batch);
        free(m);
}

static struct settlement *settlement_new(struct road *r, struct out *o, enum delivery_state state,
                                         const char *outcome, const struct send_result *result)
{
        struct settlement *m = mem_zalloc(sizeof(*m));

        m->road = r;
        m->out = o;
        m->state = state;
        m->outcome = outcome;
        m->platform_id = mem_strdup(result->platform_id);
        m->why = mem_strdup(result->why);
        m->kind = result->kind;
        m->now_ms = m->due_ms = clock_wall_ms();
        m->attempt_after = o->d.attempt;
        return m;
}

static void settle(struct settlement *m)
{
        struct out *o = m->out;

        if (o->state == OUT_SENDING)
                m->road->sending_count--;
        timer_free(o->deadline);
        o->deadline = NULL;
        o->state = OUT_SETTLING;
        fault_point("outbox.before_settle");
        road_write(m->road, "delivery outcome", write_settlement, on_settled, m);
}

/* ---- outcomes ---- */

static void give_up(struct road *r, struct out *o, enum delivery_state state,
                    const struct send_result *result)
{
        bool moves = o->d.turn > 0 && o->d.kind == DELIVER_THREAD;
        struct settlement *m;

        /*
         * a piece of a draft is no dead letter: the answer comes whole at the end; nor is a thread
         * without which the answer arrives as well
         */
        if ((o->d.class > PACE_APPROVAL || moves) && state == DELIVERY_FAILED)
                state = DELIVERY_EXPIRED;
        if (!out_is_fleeting(o))
                log_warn("delivery given up", LOG_I("delivery", o->d.id),
                         LOG_S("adapter", o->d.adapter), LOG_S("channel", o->d.channel),
                         LOG_S("state", delivery_state_name(state)), LOG_S("trace", o->d.trace),
                         LOG_S("why", result->why));
        m = settlement_new(r, o, state, delivery_state_name(state), result);
        m->moves = moves;
        settle(m);
}

/* `at_last`: what it is when all attempts are used up. */
static void try_again(struct road *r, struct out *o, const struct send_result *result,
                      enum delivery_state at_last)
{
        bool limited = result->kind == ERR_LIMIT;
        struct settlement *m;
        int64_t wait;

        if (out_is_fleeting(o) || (!limited && o->d.attempt >= r->limits.delivery_attempts)) {
                give_up(r, o, out_is_fleeting(o) ? DELIVERY_EXPIRED : at_last, result);
                return;
        }
        wait = result->retry_after_ms >= 0
                       ? result->retry_after_ms
                       : backoff_half_jitter_ms(o->d.attempt > 1 ? (unsigned)o->d.attempt - 1 : 0,
                                                r->limits.retry_base_ms, r->limits.retry_cap_ms);
        m = settlement_new(r, o, DELIVERY_QUEUED, limited ? "limited" : "retry", result);
        m->due_ms += wait;
        if (limited) {
                m->attempt_after--;
                pace_freeze(o->channel->adapter->pace, result->freeze_adapter ? NULL : o->d.channel,
                            wait, loop_now_ms(r->loop));
        }
        o->due_mono = loop_now_ms(r->loop) + wait;
        log_info("delivery will be tried again", LOG_I("delivery", o->d.id),
                 LOG_S("adapter", o->d.adapter), LOG_I("attempt", o->d.attempt),
                 LOG_I("inMs", wait), LOG_S("why", result->why));
        settle(m);
}

static void decide_unsure(struct road *r, struct out *o, const struct send_result *result)
{
        unsigned can = r->platforms.abilities(r->platforms.adapters, o->d.adapter);

        if ((can & ADAPTER_IDEMPOTENT) || out_is_repeatable(o)) {
                try_again(r, o, result, DELIVERY_UNKNOWN);
        } else if ((can & ADAPTER_READBACK) && !o->reconciling) {
                o->reconciling = true;
                timer_start(o->deadline, r->limits.delivery_seconds * 1000);
                r->platforms.reconcile(r->platforms.adapters, &o->d);
        } else {
                give_up(r, o, DELIVERY_UNKNOWN, result);
        }
}

/* The draft was deleted under our hands: the answer must still arrive. */
static bool send_anew(struct road *r, struct out *o, const struct send_result *result)
{
        struct settlement *m;

        if (result->kind != ERR_MISSING || o->ref == 0 || o->d.class != PACE_FINAL)
                return false;
        m = settlement_new(r, o, DELIVERY_QUEUED, "retry", result);
        m->anew = true;
        settle(m);
        return true;
}

void settle_result(struct road *r, struct out *o, const struct send_result *result)
{
        switch (result->outcome) {
        case SEND_DONE:
                settle(settlement_new(r, o, DELIVERY_SENT, NULL, result));
                break;
        case SEND_RETRY:
                try_again(r, o, result, DELIVERY_FAILED);
                break;
        case SEND_REJECTED:
                if (!send_anew(r, o, result))
                        give_up(r, o, DELIVERY_FAILED, result);
                break;
        case SEND_UNSURE:
                decide_unsure(r, o, result);
                break;
        }
}

void settle_expired(struct road *r, struct out *o, const char *why)
{
        struct send_result result = { .kind = ERR_TIMEOUT, .why = why };

        give_up(r, o, DELIVERY_EXPIRED, &result);
}

void settle_unknown(struct road *r, struct out *o, const char *why)
{
        struct send_result result = { .kind = ERR_INTERNAL, .why = why };

        give_up(r, o, DELIVERY_UNKNOWN, &result);
}

/* It may have arrived in an earlier life: the row must go on saying so. */
static void leave_unsure(struct road *r, struct out *o)
{
        o->state = OUT_QUEUED;
        r->sending_count--;
        road_check_drained(r);
}

void settle_unclaim(struct road *r, struct out *o)
{
        struct send_result result = { 0 };
        struct settlement *m;

        if (o->unsure) {
                leave_unsure(r, o);
                return;
        }
        m = settlement_new(r, o, DELIVERY_QUEUED, NULL, &result);
        m->attempt_after--;
        settle(m);
}

void delivery_result(struct road *r, int64_t delivery, int64_t fence,
                     const struct send_result *result)
{
        char key[TURN_KEY_SIZE];
        struct out *o = map_get(&r->outs, road_key("dlv", delivery, key));

        if (!o || o->d.fence != fence || o->state != OUT_SENDING)
                return;
        fault_point("outbox.answered");
        settle_result(r, o, result);
}
