/*
 * delivery_result: stores the result of an attempt before the queue continues.
 *
 * A send that may have arrived is repeated if harmless, read back if the platform can be asked, and
 * otherwise reported as unknown; it is never repeated blindly.
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
#include "road/outbox/delivery_job.h"
#include "road/road_state.h"

struct settlement {
        struct road *road;
        struct delivery_job *job;
        enum delivery_state state;
        const char *outcome; /* for the attempts table; NULL: no row */
        int64_t wait_ms;     /* until the next attempt */
        bool uncounted;      /* no attempt: a rate limit, or undone */
        bool becomes_send;   /* the message to edit is gone: send a new one */
        bool leaves_thread;  /* the thread could not be created: use the channel */
        char *payload;       /* of the next attempt; NULL: as before */
        char *platform_id, *why;
        enum error_kind kind;
        int64_t now_ms;
        bool lost; /* result: the row was claimed elsewhere */
        struct bus_batch batch;
};

/* ---- storing ---- */

/* Typing and undone claims are not recorded. */
static bool is_recorded(const struct settlement *m)
{
        return !delivery_is_typing(m->job) && (m->state != DELIVERY_QUEUED || m->outcome);
}

static int append_event(struct store_tx *tx, struct settlement *m, struct error *err)
{
        const struct delivery_job *j = m->job;
        bool message = j->d.kind == DELIVER_SEND;
        const char *type;
        char key[ROAD_KEY_SIZE];
        struct buf payload;
        int rc;

        buf_init(&payload, 0);
        if (m->state == DELIVERY_SENT) {
                type = message ? EVENT_MESSAGE_SENT : EVENT_DELIVERY_SENT;
                delivery_write_sent(j, m->platform_id, m->now_ms, &payload);
        } else {
                type = m->state == DELIVERY_QUEUED ? EVENT_DELIVERY_RETRYING
                       : message                   ? EVENT_MESSAGE_FAILED
                                                   : EVENT_DELIVERY_FAILED;
                jsonw_open(&payload, '{');
                jsonw_str(&payload, "deliveryId", road_key("dlv", j->d.id, key));
                jsonw_str(&payload, "kind", delivery_kind_name(j->d.kind));
                jsonw_str(&payload, "channelId", j->d.channel);
                jsonw_int(&payload, "attempt", j->d.attempt);
                jsonw_str(&payload, "state", delivery_state_name(m->state));
                jsonw_str(&payload, "errorKind", error_kind_name(m->kind));
                jsonw_str(&payload, "error", m->why);
                jsonw_bool(&payload, "retryable", m->state == DELIVERY_QUEUED);
                if (j->d.kind == DELIVER_CALENDAR) /* says which event it was */
                        delivery_write_members(j, &payload);
                jsonw_close(&payload, '}');
        }
        rc = delivery_append_event(tx, &m->batch, j, type, m->now_ms, payload.data, err);
        buf_release(&payload);
        return rc;
}

static int write_settlement(struct store_tx *tx, void *arg, struct error *err)
{
        struct settlement *m = arg;
        const struct delivery_job *j = m->job;
        struct delivery_row row = {
                .id = j->d.id,
                .fence = j->d.fence,
                .state = m->state,
                .attempt = j->d.attempt - m->uncounted,
                .due_ms = m->now_ms + m->wait_ms,
                .ended_ms = m->state == DELIVERY_QUEUED ? 0 : m->now_ms,
                .platform_id = m->platform_id,
                .error_kind = m->kind ? error_kind_name(m->kind) : NULL,
                .error = m->why,
                .lease_ms = m->now_ms, /* due_ms minus this is the requested pause */
                .kind = m->becomes_send ? DELIVER_SEND : j->d.kind,
                .edits = m->becomes_send ? 0 : j->edits,
        };
        struct attempt_row attempt = { .delivery = j->d.id,
                                       .attempt = j->d.attempt,
                                       .time_ms = m->now_ms,
                                       .outcome = m->outcome,
                                       .detail = m->why };
        int rc = delivery_row_settle(tx, &row, err);

        bus_batch_reset(&m->batch);
        m->lost = rc == 0;
        if (rc != 1)
                return rc;
        if (m->payload && delivery_row_set_payload(tx, j->d.id, m->payload, err) < 0)
                return -1;
        if (m->outcome && delivery_row_put_attempt(tx, &attempt, err) < 0)
                return -1;
        if (m->leaves_thread && delivery_row_leave_thread(tx, j->d.turn, j->d.thread, err) < 0)
                return -1;
        return is_recorded(m) ? append_event(tx, m, err) : 0;
}

static void count(struct road *r, const struct settlement *m)
{
        struct adapter_stats *stats = &m->job->queue->adapter->stats;

        if (m->lost || !is_recorded(m))
                return;
        if (m->job->reconciling && m->state == DELIVERY_SENT)
                r->stats.found++;
        else if (m->job->reconciling && m->state == DELIVERY_QUEUED && !m->payload)
                r->stats.not_arrived++;
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

static void settlement_free(struct settlement *m)
{
        free(m->platform_id);
        free(m->payload);
        free(m->why);
        bus_batch_release(&m->batch);
        free(m);
}

static void on_settled(void *arg, const struct error *err)
{
        struct settlement *m = arg;
        struct road *r = m->road;
        struct delivery_job *j = m->job;

        if (err) {
                settlement_free(m);
                return;
        }
        fault_point("outbox.settled");
        count(r, m);
        bus_publish(r->bus, &m->batch);
        if (j->d.class == PACE_APPROVAL && m->state == DELIVERY_SENT)
                approval_message_sent(r, j->d.id, m->platform_id);
        if (j->d.class == PACE_EDIT && j->d.turn > 0 && j->d.kind == DELIVER_SEND &&
            m->state == DELIVERY_SENT)
                draft_message_sent(r, j, m->platform_id);
        j->d.attempt -= m->uncounted;
        j->reconciling = false;
        if (m->payload && !m->lost)
                delivery_set_payload(j, m->payload);
        if (m->state == DELIVERY_QUEUED && !m->lost) {
                if (m->becomes_send)
                        delivery_become_send(j);
                delivery_enter(j, JOB_QUEUED);
                j->unconfirmed = false;
                outbox_leave_channel(j);
                outbox_confirm(r, j);
                outbox_pump(r, j->queue);
        } else {
                if (m->leaves_thread && !m->lost)
                        outbox_leave_thread(r, j);
                outbox_remove(r, j);
        }
        road_check_drained(r);
        settlement_free(m);
}

static void settle(const struct settlement *what, const struct send_result *result)
{
        struct settlement *m = mem_dup(what, sizeof(*what));
        struct delivery_job *j = m->job;

        m->platform_id = mem_strdup(result->platform_id);
        m->why = mem_strdup(result->why);
        m->kind = result->kind;
        m->now_ms = clock_wall_ms();
        if (j->phase == JOB_SENDING && !j->reconciling)
                m->road->outbox.sending--;
        timer_free(j->deadline);
        j->deadline = NULL;
        delivery_enter(j, JOB_SETTLING);
        fault_point("outbox.before_settle");
        road_write(m->road, "delivery result", write_settlement, on_settled, m);
}

/* ---- interpreting a result ---- */

static void give_up(struct road *r, struct delivery_job *j, enum delivery_state state,
                    const struct send_result *result)
{
        bool leaves_thread = j->d.turn > 0 && j->d.kind == DELIVER_THREAD;

        /* no dead letter: a draft's text comes with the answer, a thread's answer goes to the
         * channel */
        if ((j->d.class > PACE_APPROVAL || leaves_thread) && state == DELIVERY_FAILED)
                state = DELIVERY_EXPIRED;
        if (!delivery_is_typing(j))
                log_warn("delivery given up", LOG_I("delivery", j->d.id),
                         LOG_S("adapter", j->d.adapter), LOG_S("channel", j->d.channel),
                         LOG_S("state", delivery_state_name(state)), LOG_S("trace", j->d.trace),
                         LOG_S("why", result->why));
        if (state == DELIVERY_UNKNOWN)
                unsure_ask(r, j, result->why); /* first: a crash in between asks twice, not never */
        settle(&(struct settlement){ .road = r,
                                     .job = j,
                                     .state = state,
                                     .outcome = delivery_state_name(state),
                                     .leaves_thread = leaves_thread },
               result);
}

/* finally: the state once attempts are used up. */
static void retry(struct road *r, struct delivery_job *j, const struct send_result *result,
                  enum delivery_state finally)
{
        bool limited = result->outcome == SEND_RETRY && result->kind == ERR_LIMIT;
        int64_t wait;

        if (delivery_is_typing(j) || (!limited && j->d.attempt >= r->limits.delivery_attempts)) {
                give_up(r, j, delivery_is_typing(j) ? DELIVERY_EXPIRED : finally, result);
                return;
        }
        wait = result->retry_after_ms >= 0
                       ? result->retry_after_ms
                       : backoff_half_jitter_ms(j->d.attempt > 1 ? (unsigned)j->d.attempt - 1 : 0,
                                                r->limits.retry_base_ms, r->limits.retry_cap_ms);
        if (limited)
                pace_freeze(j->queue->adapter->pace, result->freeze_adapter ? NULL : j->d.channel,
                            wait, loop_now_ms(r->loop));
        j->due_mono = loop_now_ms(r->loop) + wait;
        log_info("delivery failed; retrying", LOG_I("delivery", j->d.id),
                 LOG_S("adapter", j->d.adapter), LOG_I("attempt", j->d.attempt),
                 LOG_I("inMs", wait), LOG_S("why", result->why));
        settle(&(struct settlement){ .road = r,
                                     .job = j,
                                     .state = DELIVERY_QUEUED,
                                     .outcome = limited ? "limited" : "retry",
                                     .wait_ms = wait,
                                     .uncounted = limited },
               result);
}

/*
 * The adapter is gone, or its platform is silent. It is asked about the message when it is back, or
 * after wait_ms (-1: not given).
 */
static void park(struct road *r, struct delivery_job *j, int64_t wait_ms)
{
        if (!j->reconciling)
                r->outbox.sending--;
        timer_free(j->deadline);
        j->deadline = NULL;
        j->reconciling = false;
        j->unconfirmed = true;
        delivery_enter(j, JOB_QUEUED);
        outbox_confirm(r, j);
        if (wait_ms >= 0) {
                j->due_mono = loop_now_ms(r->loop) + wait_ms;
                outbox_pump(r, j->queue);
        }
        road_check_drained(r);
}

/* The platform could not say whether it arrived. */
static void end_unsure(struct road *r, struct delivery_job *j, const struct send_result *result)
{
        char *marked = unsure_repeats(r, j);

        if (!marked) {
                give_up(r, j, DELIVERY_UNKNOWN, result);
                return;
        }
        log_warn("delivery may have arrived; sending it again with a mark (whenUnsure)",
                 LOG_I("delivery", j->d.id), LOG_S("adapter", j->d.adapter),
                 LOG_S("why", result->why));
        settle(&(struct settlement){ .road = r,
                                     .job = j,
                                     .state = DELIVERY_QUEUED,
                                     .outcome = "repeated",
                                     .payload = marked },
               result);
}

static void resolve_unsure(struct road *r, struct delivery_job *j, const struct send_result *result)
{
        unsigned can = r->platforms.abilities(r->platforms.adapters, j->d.adapter);

        if ((can & ADAPTER_IDEMPOTENT) || delivery_is_repeatable(j)) {
                retry(r, j, result, DELIVERY_UNKNOWN);
        } else if ((can & ADAPTER_READBACK) &&
                   (result->kind == ERR_CANCELLED ||
                    !r->platforms.ready(r->platforms.adapters, j->d.adapter))) {
                park(r, j, result->kind == ERR_CANCELLED ? result->retry_after_ms : -1);
        } else if ((can & ADAPTER_READBACK) && !j->reconciling) {
                outbox_reconcile(r, j);
        } else {
                end_unsure(r, j, result);
        }
}

void delivery_result_give_up(struct road *r, struct delivery_job *j, enum delivery_state state,
                             const char *why)
{
        struct send_result result = { .kind = state == DELIVERY_EXPIRED ? ERR_TIMEOUT
                                                                        : ERR_INTERNAL,
                                      .why = why };

        give_up(r, j, state, &result);
}

void delivery_result_unclaim(struct road *r, struct delivery_job *j)
{
        struct settlement undone = {
                .road = r, .job = j, .state = DELIVERY_QUEUED, .uncounted = true
        };

        if (j->unconfirmed) { /* may have arrived: keep the row saying so */
                delivery_enter(j, JOB_QUEUED);
                r->outbox.sending--;
                road_check_drained(r);
                return;
        }
        settle(&undone, &(struct send_result){ 0 });
}

bool delivery_result(struct road *r, int64_t delivery, int64_t fence,
                     const struct send_result *result)
{
        struct delivery_job *j = r ? outbox_find(r, delivery) : NULL;

        if (!j || j->d.fence != fence || j->phase != JOB_SENDING)
                return false;
        fault_point("outbox.answered");
        switch (result->outcome) {
        case SEND_DONE:
                settle(&(struct settlement){ .road = r,
                                             .job = j,
                                             .state = DELIVERY_SENT,
                                             .outcome = j->reconciling ? "found" : NULL },
                       result);
                break;
        case SEND_RETRY:
                retry(r, j, result, DELIVERY_FAILED);
                break;
        case SEND_REJECTED:
                /* a final answer whose draft was deleted becomes a new message */
                if (result->kind == ERR_MISSING && delivery_may_become_send(j))
                        settle(&(struct settlement){ .road = r,
                                                     .job = j,
                                                     .state = DELIVERY_QUEUED,
                                                     .outcome = "retry",
                                                     .becomes_send = true },
                               result);
                else
                        give_up(r, j, DELIVERY_FAILED, result);
                break;
        case SEND_UNSURE:
                resolve_unsure(r, j, result);
                break;
        }
        return true;
}
