/*
 * turn_commit: a turn's end and its deliveries, in one transaction.
 *
 * State, transcript, trigger log, events and deliveries are written together, if the turn's fence
 * still holds: an answer is stored whole and once, or not at all. Only then is anything sent.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/road_state.h"
#include "road/turn/turn.h"
#include "rows/conversation_row.h"
#include "rows/trigger_log_row.h"

struct turn_end {
        struct turn *turn;
        enum turn_state state;   /* TURN_DONE, TURN_FAILED or TURN_CANCELLED */
        struct turn_reply reply; /* strings are ours */
        int64_t now_ms;
        bool made; /* the answer */
        struct answer answer;
        bool keeps_policy; /* a late reply needs it */
        bool claimed;      /* the first delivery is claimed in this transaction */
        struct turn_outcome outcome;
        struct tx_extra extra;
        struct approvals_closed approvals;
        bool stale; /* result: the fence moved, nothing written */
        struct bus_batch batch;
        TAILQ_ENTRY(turn_end) in_waiting;
        bool waiting; /* for delivery numbers */
};

/* ---- in the store function ---- */

static int64_t between_ms(int64_t from_ms, int64_t to_ms)
{
        return to_ms > from_ms ? to_ms - from_ms : 0; /* the clock was set back */
}

/* Of the run itself; 0: it never began. */
static int64_t duration_ms(const struct turn_end *e)
{
        return e->turn->started_ms > 0 ? between_ms(e->turn->started_ms, e->now_ms) : 0;
}

/*
 * A question is kept for the next turn, even if this one failed. One that the agent's service
 * refuses is not: it would be refused again with every later question. Nor is one that was stopped.
 * The notice of a failure is not an answer.
 */
static int write_transcript(struct store_tx *tx, const struct turn_end *e, struct error *err)
{
        bool kept =
                e->state == TURN_DONE || (e->state == TURN_FAILED && e->reply.kind != ERR_INVALID);
        const struct turn *t = e->turn;
        struct transcript_row row = { .conversation = t->run.conversation,
                                      .turn = t->run.id,
                                      .role = "user",
                                      .time_ms = e->now_ms,
                                      .session = t->run.session };

        for (unsigned i = 0; kept && i < t->run.input_count; i++) {
                const struct incoming *in = t->inputs[i];

                row.name = in->sender_name ? in->sender_name : in->sender_username;
                row.text = in->text;
                if (in->text && in->text[0] && transcript_row_insert(tx, &row, err) < 0)
                        return -1;
        }
        if (e->state != TURN_DONE || e->answer.silent_reason || !e->reply.text ||
            e->reply.text[0] == '\0')
                return 0;
        row.role = "assistant";
        row.name = turn_agent(t);
        row.text = e->reply.text;
        return transcript_row_insert(tx, &row, err);
}

/* Tokens and cost go to the turn's last event only, so that sums over the log are right. */
static int write_trigger_log(struct store_tx *tx, const struct turn_end *e, struct error *err)
{
        static const enum trigger_status statuses[] = { [TURN_DONE] = TRIGGER_DONE,
                                                        [TURN_FAILED] = TRIGGER_FAILED,
                                                        [TURN_CANCELLED] = TRIGGER_CANCELLED };
        const struct turn *t = e->turn;

        for (unsigned i = 0; i < t->run.input_count; i++) {
                bool last = i + 1 == t->run.input_count;
                struct trigger_log_row row = {
                        .event = t->inputs[i]->event,
                        .status = statuses[e->state],
                        .reason = e->answer.silent_reason,
                        .duration_ms = duration_ms(e),
                        .tokens_in = last ? e->reply.tokens_in : 0,
                        .tokens_cached = last ? e->reply.tokens_cached : 0,
                        .tokens_out = last ? e->reply.tokens_out : 0,
                        .cost_microusd = last ? e->reply.cost_microusd : 0,
                        .error = e->reply.error,
                };

                if (trigger_log_row_finish(tx, &row, err) < 0)
                        return -1;
        }
        return 0;
}

static int append_event(struct store_tx *tx, struct turn_end *e, struct error *err)
{
        const struct turn *t = e->turn;
        struct bus_event event = { .time_ms = e->now_ms,
                                   .adapter = t->run.adapter,
                                   .channel = t->run.channel,
                                   .thread = t->run.thread,
                                   .trace = t->trace };
        struct buf type, payload;
        int rc;

        buf_init(&type, 0);
        buf_init(&payload, 0);
        buf_addf(&type, "turn.%s", turn_state_name(e->state));
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "turnId", t->key);
        jsonw_str(&payload, "agent", turn_agent(t));
        jsonw_int(&payload, "attempt", t->run.attempt);
        jsonw_int(&payload, "durationMs", duration_ms(e));
        /* debounce, and waiting for the conversation and a free place */
        jsonw_int(&payload, "waitMs",
                  between_ms(t->created_ms, t->started_ms > 0 ? t->started_ms : e->now_ms));
        turn_write_inputs(t, "events", &payload);
        jsonw_int(&payload, "deliveries", (int64_t)e->answer.messages);
        if (e->reply.kind != ERR_NONE) {
                jsonw_str(&payload, "errorKind", error_kind_name(e->reply.kind));
                jsonw_str(&payload, "error", e->reply.error);
        }
        jsonw_close(&payload, '}');
        event.type = type.data;
        event.payload = payload.data;
        rc = bus_append(tx, &e->batch, &event, NULL, err);
        buf_release(&type);
        buf_release(&payload);
        return rc < 0 ? -1 : 0;
}

static int write_end(struct store_tx *tx, void *arg, struct error *err)
{
        struct turn_end *e = arg;
        const struct answer *a = &e->answer;
        struct turn_row row = {
                .id = e->turn->run.id,
                .fence = e->turn->run.fence,
                .state = e->state,
                .ended_ms = e->now_ms,
                .error_kind = e->reply.kind ? error_kind_name(e->reply.kind) : NULL,
                .error = e->reply.error,
                .tokens_in = e->reply.tokens_in,
                .tokens_cached = e->reply.tokens_cached,
                .tokens_out = e->reply.tokens_out,
                .cost_microusd = e->reply.cost_microusd,
                .answered_by = e->turn->failover.agent,
                .failed_agents = e->turn->failover.agent ? e->turn->failover.failed.data : NULL,
                .keeps_policy = e->keeps_policy,
        };
        int rc = turn_row_finish(tx, &row, err);

        bus_batch_reset(&e->batch);
        e->stale = rc == 0;
        if (rc != 1)
                return rc;
        if (write_transcript(tx, e, err) < 0 || write_trigger_log(tx, e, err) < 0 ||
            approval_write_closed(tx, &e->batch, &e->approvals, err) < 0 ||
            append_event(tx, e, err) < 0)
                return -1;
        for (size_t i = 0; i < a->superseded_count; i++) {
                if (delivery_row_supersede(tx, a->superseded[i], e->now_ms, err) < 0)
                        return -1;
        }
        for (size_t i = 0; i < a->count; i++) {
                if (delivery_store(tx, &e->batch, a->jobs[i], err) < 0)
                        return -1;
        }
        /* a retried turn may repeat an answer whose key is taken */
        if (e->reply.request_key && a->messages > 0 &&
            delivery_row_set_request_key(tx, a->jobs[a->first]->d.id, e->reply.request_key, err) <
                    0)
                return -1;
        return e->extra.fn ? e->extra.fn(tx, e->extra.arg, err) : 0;
}

/* ---- after the commit ---- */

static void end_free(struct turn_end *e)
{
        for (unsigned i = 0; i < e->reply.part_count; i++)
                free((char *)e->reply.parts[i]);
        free((char **)e->reply.parts);
        free((char *)e->reply.text);
        free((char *)e->reply.error);
        free((char *)e->reply.request_key);
        free(e->answer.jobs); /* each is freed or owned by the outbox */
        free(e->answer.thread);
        free(e->answer.silent_reason);
        free(e->answer.draft);
        approvals_closed_release(&e->approvals);
        bus_batch_release(&e->batch);
        free(e);
}

/* The end is not stored: nothing of it is sent. */
static void end_discard(struct turn_end *e)
{
        /* the outbox has the claimed one */
        for (size_t i = e->claimed ? 1 : 0; i < e->answer.count; i++)
                delivery_free(e->answer.jobs[i]);
        end_free(e);
}

static void on_ended(void *arg, const struct error *err)
{
        struct turn_end *e = arg;
        struct turn *t = e->turn;
        struct road *r = t->road;
        struct delivery_job **jobs = e->answer.jobs, *answer = NULL;
        size_t count = e->answer.count;
        bool journaled = count > 0 && jobs[0]->journaled;
        struct error stale = { 0 };

        if (err) {
                if (e->extra.fn)
                        e->extra.done(e->extra.arg, err);
                end_discard(e);
                return;
        }
        fault_point("turn.ended");
        if (e->stale) {
                error_set(&stale, ERR_CONFLICT, "the turn was given to another process");
                log_warn("answer dropped: its turn was given to another process",
                         LOG_S("turn", t->key));
        } else {
                if (e->state == TURN_DONE)
                        r->stats.turns_done++;
                else if (e->state == TURN_CANCELLED)
                        r->stats.turns_cancelled++;
                else
                        r->stats.turns_failed++;
                if (journaled)
                        outbox_count_journaled(r, t->run.adapter, count, e->now_ms);
        }
        bus_publish(r->bus, &e->batch);
        approval_closed(r, &e->approvals);
        late_reply_turn_ended(r, t->run.id, !e->stale && e->state == TURN_DONE);
        if (e->claimed)
                outbox_on_stored(r, jobs[0], !e->stale);
        for (size_t i = e->claimed ? 1 : 0; i < count; i++) {
                if (journaled || e->stale)
                        delivery_free(jobs[i]);
                else
                        outbox_enqueue_next(r, jobs[i], &answer);
        }
        if (e->extra.fn)
                e->extra.done(e->extra.arg, e->stale ? &stale : NULL);
        if (r->dispatch.ended && !e->stale)
                r->dispatch.ended(r->dispatch.dispatch, &t->run, &e->outcome);
        if (t->cancel.done)
                t->cancel.done(t->cancel.arg, NULL);
        end_free(e);
        turn_leave(t);
}

/* ---- ending a turn ---- */

void turn_finish(struct turn_run *run, const struct turn_reply *reply)
{
        struct turn *t = (struct turn *)run;
        struct turn_end *e;
        char **parts;

        if (t->phase == PHASE_ENDING) /* it was cancelled, or took too long */
                return;
        e = mem_zalloc(sizeof(*e));
        parts = reply->part_count > 0 ? mem_array(reply->part_count, sizeof(*parts)) : NULL;
        timer_free(t->timer);
        t->timer = NULL;
        timer_free(t->display.slow);
        t->display.slow = NULL;
        e->answer.draft = draft_end(t);
        approval_forget_turn(t);
        turn_enter(t, PHASE_ENDING);
        e->turn = t;
        e->state = reply->kind == ERR_NONE        ? TURN_DONE
                   : reply->kind == ERR_CANCELLED ? TURN_CANCELLED
                                                  : TURN_FAILED;
        if (t->failover.agent)
                jsonw_close(&t->failover.failed, ']');
        e->reply = *reply;
        e->reply.tokens_in += t->failover.tokens_in + t->steps.usage.tokens_in;
        e->reply.tokens_cached += t->failover.tokens_cached + t->steps.usage.tokens_cached;
        e->reply.tokens_out += t->failover.tokens_out + t->steps.usage.tokens_out;
        e->reply.cost_microusd += t->failover.cost_microusd + t->steps.usage.cost_microusd;
        e->reply.text = mem_strdup(reply->text);
        e->reply.error = mem_strdup(reply->error);
        e->reply.request_key = mem_strdup(reply->request_key);
        for (unsigned i = 0; i < reply->part_count; i++)
                parts[i] = mem_strdup(reply->parts[i]);
        e->reply.parts = (const char *const *)parts;
        e->now_ms = clock_wall_ms();
        if (e->state == TURN_FAILED)
                log_warn("turn failed", LOG_S("turn", t->key), LOG_S("agent", turn_agent(t)),
                         LOG_S("trace", t->trace), LOG_S("why", e->reply.error));
        t->progress.end = e;
        turn_commit(t);
}

void turn_commit(struct turn *t)
{
        struct turn_end *e = t->progress.end;
        struct road *r = t->road;
        int64_t number;

        if (!e || e->waiting || t->display.writes > 0 || t->steps.writes > 0)
                return;
        if (!e->made) {
                turn_deliveries_make(t, &e->reply, &e->answer);
                approval_end_turn(t, &e->answer, &e->approvals);
        }
        e->made = true;
        if (e->answer.count > 0) {
                if (!numbers_take(&r->delivery_numbers, e->answer.count, &number)) {
                        e->waiting = true;
                        TAILQ_INSERT_TAIL(&r->turns.ends, e, in_waiting);
                        return;
                }
                for (size_t i = 0; i < e->answer.count; i++)
                        e->answer.jobs[i]->d.id = number++;
                e->claimed = outbox_claim_new(r, e->answer.jobs[0]);
        }
        t->progress.end = NULL;
        e->keeps_policy = (t->policy.mode != MODE_REPLY || t->policy.no_reply_count > 0) &&
                          r->agents.late_replies &&
                          r->agents.late_replies(r->agents.agents, turn_agent(t),
                                                 &(struct late_reply_policy){ 0 });
        e->outcome = (struct turn_outcome){ .answered = e->answer.messages > 0,
                                            .thread = e->answer.thread,
                                            .cost_microusd = e->reply.cost_microusd };
        if (r->dispatch.ending)
                r->dispatch.ending(r->dispatch.dispatch, &t->run, &e->outcome, &e->extra);
        fault_point("turn.before_end");
        road_write(r, "turn end", write_end, on_ended, e);
}

void turn_commit_waiting(struct road *r)
{
        struct turn_end *e;

        while ((e = TAILQ_FIRST(&r->turns.ends)) &&
               numbers_request(&r->delivery_numbers, e->answer.count)) {
                TAILQ_REMOVE(&r->turns.ends, e, in_waiting);
                e->waiting = false;
                turn_commit(e->turn);
        }
}

void turn_commit_discard(struct turn *t)
{
        struct turn_end *e = t->progress.end;

        if (!e)
                return;
        if (e->waiting)
                TAILQ_REMOVE(&t->road->turns.ends, e, in_waiting);
        end_discard(e);
        t->progress.end = NULL;
}
