/*
 * ending: a turn's end and its deliveries, in one transaction.
 *
 * State, transcript, trigger log, events and deliveries are written together, and only if the
 * turn's fence still holds: an answer is stored whole and once, or not at all. Nothing is sent
 * before that.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/road_private.h"

struct ending {
        struct turn *turn;
        enum error_kind kind;
        enum turn_state state; /* TURN_DONE, TURN_FAILED or TURN_CANCELLED */
        char *text, *error;
        char **parts; /* messages the agent wants apart; NULL: the text is one */
        unsigned part_count;
        char *request_key;
        int64_t tokens_in, tokens_out, cost_microusd;
        int64_t now_ms;
        struct answer answer;
        bool claimed; /* the first part leaves with this transaction */
        struct turn_outcome outcome;
        struct tx_extra extra; /* what others want stored together with it */
        bool stale;            /* the fence has moved on: nothing was written */
        struct bus_batch batch;
};

static int end_row(struct store_tx *tx, struct ending *e, struct error *err)
{
        /* it may be tried once more */
        struct store_stmt *s = store_prepare(
                tx,
                "UPDATE turns SET state = ?3, ended_ms = ?4, error_kind = ?5, error = ?6, tokens_in = ?7,"
                " tokens_out = ?8, cost_microusd = ?9,"
                " reply_policy = CASE WHEN ?3 = 'failed' THEN reply_policy END"
                " WHERE id = ?1 AND fence = ?2"
                " AND state IN ('queued', 'running')");

        store_bind_int(s, 1, e->turn->run.id);
        store_bind_int(s, 2, e->turn->run.fence);
        store_bind_text(s, 3, turn_state_name(e->state));
        store_bind_int(s, 4, e->now_ms);
        store_bind_text(s, 5, e->kind ? error_kind_name(e->kind) : NULL);
        store_bind_text(s, 6, e->error);
        store_bind_int(s, 7, e->tokens_in);
        store_bind_int(s, 8, e->tokens_out);
        store_bind_int(s, 9, e->cost_microusd);
        if (store_run(s, err) < 0)
                return -1;
        e->stale = store_changes(tx) == 0;
        return 0;
}

static int say(struct store_tx *tx, const struct ending *e, const char *role, const char *name,
               const char *text, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "INSERT INTO transcript(conversation, turn, role, name, text, time_ms,"
                    " session) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)");

        if (!text || text[0] == '\0')
                return 0;
        store_bind_int(s, 1, e->turn->run.conversation);
        store_bind_int(s, 2, e->turn->run.id);
        store_bind_text(s, 3, role);
        store_bind_text(s, 4, name);
        store_bind_text(s, 5, text);
        store_bind_int(s, 6, e->now_ms);
        store_bind_text(s, 7, e->turn->session);
        return store_run(s, err);
}

/* A failed turn leaves no trace in the conversation: a notice is not something the agent said. */
static int end_transcript(struct store_tx *tx, const struct ending *e, struct error *err)
{
        const struct turn *t = e->turn;

        if (e->kind != ERR_NONE)
                return 0;
        for (unsigned i = 0; i < t->input_count; i++) {
                const struct incoming *in = t->inputs[i];

                if (say(tx, e, "user", in->sender_name ? in->sender_name : in->sender_username,
                        in->text, err) < 0)
                        return -1;
        }
        return e->answer.silent ? 0 : say(tx, e, "assistant", t->agent, e->text, err);
}

static int64_t duration_ms(const struct ending *e)
{
        return e->now_ms > e->turn->created_ms ? e->now_ms - e->turn->created_ms
                                               : 0; /* clocks are set back */
}

/*
 * Tokens and cost belong to the turn: they stand with its last event, so that sums over the log are
 * right.
 */
static int end_log(struct store_tx *tx, const struct ending *e, struct error *err)
{
        const struct turn *t = e->turn;

        for (unsigned i = 0; i < t->input_count; i++) {
                bool last = i + 1 == t->input_count;
                struct store_stmt *s = store_prepare(
                        tx,
                        "UPDATE trigger_log SET status = ?2, duration_ms = ?3, tokens_in = ?4,"
                        " tokens_out = ?5, cost_microusd = ?6, error = ?7, reason = coalesce(?8, reason)"
                        " WHERE event = ?1");

                store_bind_int(s, 1, t->inputs[i]->event);
                store_bind_text(s, 2, turn_state_name(e->state));
                store_bind_int(s, 3, duration_ms(e));
                store_bind_int(s, 4, last ? e->tokens_in : 0);
                store_bind_int(s, 5, last ? e->tokens_out : 0);
                store_bind_int(s, 6, last ? e->cost_microusd : 0);
                store_bind_text(s, 7, e->error);
                store_bind_text(s, 8, e->answer.silent);
                if (store_run(s, err) < 0)
                        return -1;
        }
        return 0;
}

static int end_event(struct store_tx *tx, struct ending *e, struct error *err)
{
        const struct turn *t = e->turn;
        struct buf type, payload;
        struct bus_event ev = { .time_ms = e->now_ms,
                                .adapter = t->adapter,
                                .channel = t->channel,
                                .thread = t->thread,
                                .trace = t->trace };
        int rc;

        buf_init(&type, 0);
        buf_init(&payload, 0);
        buf_addf(&type, "turn.%s", turn_state_name(e->state));
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "turnId", t->key);
        jsonw_str(&payload, "agent", t->agent);
        jsonw_int(&payload, "attempt", t->run.attempt);
        jsonw_int(&payload, "durationMs", duration_ms(e));
        turn_show_inputs(t, "events", &payload);
        jsonw_int(&payload, "deliveries", (int64_t)e->answer.said);
        if (e->kind != ERR_NONE) {
                jsonw_str(&payload, "errorKind", error_kind_name(e->kind));
                jsonw_str(&payload, "error", e->error);
        }
        jsonw_close(&payload, '}');
        ev.type = type.data;
        ev.payload = payload.data;
        rc = bus_append(tx, &e->batch, &ev, NULL, err);
        buf_release(&type);
        buf_release(&payload);
        return rc < 0 ? -1 : 0;
}

static int end_superseded(struct store_tx *tx, const struct ending *e, struct error *err)
{
        for (size_t i = 0; i < e->answer.superseded_count; i++) {
                struct store_stmt *s = store_prepare(
                        tx,
                        "UPDATE deliveries SET state = 'superseded', ended_ms = ?2 WHERE id = ?1"
                        " AND state = 'queued'");

                store_bind_int(s, 1, e->answer.superseded[i]);
                store_bind_int(s, 2, e->now_ms);
                if (store_run(s, err) < 0)
                        return -1;
        }
        return 0;
}

/*
 * Unless another message has the name: a turn that was put back may be given the same answer again.
 */
static int name_answer(struct store_tx *tx, const struct ending *e, struct error *err)
{
        struct store_stmt *s;

        if (!e->request_key || e->answer.said == 0)
                return 0;
        s = store_prepare(tx, "UPDATE deliveries SET request_key = ?2 WHERE id = ?1"
                              " AND NOT EXISTS (SELECT 1 FROM deliveries WHERE request_key = ?2)");
        store_bind_int(s, 1, e->answer.first);
        store_bind_text(s, 2, e->request_key);
        return store_run(s, err);
}

static int write_ending(struct store_tx *tx, void *arg, struct error *err)
{
        struct ending *e = arg;

        bus_batch_reset(&e->batch);
        if (end_row(tx, e, err) < 0)
                return -1;
        if (e->stale)
                return 0;
        if (end_transcript(tx, e, err) < 0 || end_log(tx, e, err) < 0 ||
            end_event(tx, e, err) < 0 || end_superseded(tx, e, err) < 0)
                return -1;
        for (size_t i = 0; i < e->answer.count; i++) {
                if (out_store(tx, &e->batch, e->answer.outs[i], e->answer.journaled, NULL, err) < 0)
                        return -1;
        }
        if (name_answer(tx, e, err) < 0)
                return -1;
        return e->extra.fn ? e->extra.fn(tx, e->extra.arg, err) : 0;
}

static void count_end(struct road *r, const struct ending *e)
{
        if (e->kind == ERR_NONE)
                r->stats.turns_done++;
        else if (e->kind == ERR_CANCELLED)
                r->stats.turns_cancelled++;
        else
                r->stats.turns_failed++;
        if (e->answer.journaled && e->answer.count > 0) {
                r->stats.sent += e->answer.count;
                outbox_adapter(r, e->turn->adapter)->stats.last_sent_ms = e->now_ms;
        }
}

static void send_answer(struct road *r, struct ending *e)
{
        struct out *answer = NULL;

        if (e->claimed)
                outbox_row_stored(r, e->answer.outs[0], !e->stale);
        for (size_t i = e->claimed ? 1 : 0; i < e->answer.count; i++) {
                if (e->answer.journaled || e->stale)
                        out_free(e->answer.outs[i]);
                else
                        outbox_enqueue_next(r, e->answer.outs[i], &answer);
        }
}

static void on_ended(void *arg)
{
        struct ending *e = arg;
        struct turn *t = e->turn;
        struct road *r = t->road;

        fault_point("turn.ended");
        if (e->stale)
                log_warn(
                        "an answer came after its turn had been given to somebody else; it is not sent",
                        LOG_S("turn", t->key));
        else
                count_end(r, e);
        bus_publish(r->bus, &e->batch);
        late_reply_turn_ended(r, t->run.id, !e->stale && e->state == TURN_DONE);
        send_answer(r, e);
        if (e->extra.fn)
                e->extra.done(e->extra.arg);
        if (r->dispatch.ended && !e->stale)
                r->dispatch.ended(r->dispatch.dispatch, &t->run, &e->outcome);
        if (t->cancel_done)
                t->cancel_done(t->cancel_arg, NULL);
        for (unsigned i = 0; i < e->part_count; i++)
                free(e->parts[i]);
        free(e->parts);
        answer_release(&e->answer);
        free(e->text);
        free(e->error);
        free(e->request_key);
        bus_batch_release(&e->batch);
        free(e);
        turn_leave(t);
}

static void store_end(struct ending *e)
{
        struct turn *t = e->turn;
        struct road *r = t->road;
        struct turn_reply reply = { .kind = e->kind,
                                    .text = e->text,
                                    .parts = (const char *const *)e->parts,
                                    .part_count = e->part_count };

        t->ending = NULL;
        answer_make(t, &reply, &e->answer);
        e->claimed = e->answer.count > 0 && !e->answer.journaled &&
                     outbox_claim_with_row(r, e->answer.outs[0]);
        e->outcome = (struct turn_outcome){ .answered = e->answer.said > 0,
                                            .thread = e->answer.thread,
                                            .cost_microusd = e->cost_microusd };
        turn_fill_run(t);
        if (r->dispatch.ending)
                r->dispatch.ending(r->dispatch.dispatch, &t->run, &e->outcome, &e->extra);
        fault_point("turn.before_end");
        road_write(t->road, "turn end", write_ending, on_ended, e);
}

void turn_end_held(struct turn *t)
{
        if (t->ending && t->showing == 0)
                store_end(t->ending);
}

void turn_end(struct turn *t, const struct turn_reply *reply)
{
        struct ending *e = mem_zalloc(sizeof(*e));

        timer_free(t->timer);
        t->timer = NULL;
        timer_free(t->slow);
        t->slow = NULL;
        draft_end(t);
        t->phase = PHASE_ENDING;
        e->turn = t;
        e->kind = reply->kind;
        e->state = reply->kind == ERR_NONE        ? TURN_DONE
                   : reply->kind == ERR_CANCELLED ? TURN_CANCELLED
                                                  : TURN_FAILED;
        e->text = mem_strdup(reply->text);
        e->error = mem_strdup(reply->error);
        e->request_key = mem_strdup(reply->request_key);
        if (reply->part_count > 0)
                e->parts = mem_array(reply->part_count, sizeof(char *));
        for (unsigned i = 0; i < reply->part_count; i++)
                e->parts[e->part_count++] = mem_strdup(reply->parts[i]);
        e->tokens_in = reply->tokens_in;
        e->tokens_out = reply->tokens_out;
        e->cost_microusd = reply->cost_microusd;
        e->now_ms = clock_wall_ms();
        if (e->kind != ERR_NONE && e->kind != ERR_CANCELLED)
                log_warn("turn failed", LOG_S("turn", t->key), LOG_S("agent", t->agent),
                         LOG_S("trace", t->trace), LOG_S("why", e->error));
        t->ending = e;
        turn_end_held(t);
}
