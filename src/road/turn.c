/*
 * turn: one run of an agent, from its claim to the transaction that ends it.
 *
 *     QUEUED ── claim committed ──► RUNNING ── agent answers ──► ENDING ── end committed ──► gone
 *
 * The claim raises attempt and fence before the agent is asked; the end names the fence. An agent that answers after its turn was given to somebody
 * else changes nothing. If the process dies in between, the row still says running: the next life runs it again when that does no harm, and
 * otherwise ends it with a notice to the user.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/road_private.h"

#define MAX_SUPERSEDED 4

static void finish(struct turn *t, const struct turn_reply *reply);

struct turn *turn_new(struct road *r, struct lane *lane, const char *agent, const char *rule,
                      const char *trace)
{
        struct turn *t = mem_zalloc(sizeof(*t));

        t->road = r;
        t->lane = lane;
        t->run.id = r->next_turn++;
        t->run.conversation = lane->conversation;
        t->agent = mem_strdup(agent);
        t->rule = mem_strdup(rule);
        snprintf(t->trace, sizeof(t->trace), "%s", trace ? trace : "");
        road_key("trn", t->run.id, t->key);
        t->created_ms = clock_wall_ms();
        arena_init(&t->history);
        r->turn_count++;
        map_put(&r->turns, t->key, t);
        return t;
}

void turn_free(struct turn *t)
{
        struct road *r = t->road;

        map_remove(&r->turns, t->key);
        r->turn_count--;
        for (unsigned i = 0; i < t->input_count; i++)
                incoming_free(t->inputs[i]);
        free(t->inputs);
        timer_free(t->timer);
        arena_release(&t->history);
        draft_free(t->draft);
        free(t->agent);
        free(t->rule);
        free(t->adapter);
        free(t->channel);
        free(t->thread);
        free(t->cancel_why);
        free(t);
}

void turn_add_input(struct turn *t, struct incoming *in)
{
        if (t->input_count == t->input_cap) {
                t->input_cap = t->input_cap ? t->input_cap * 2 : 1;
                t->inputs = mem_realloc(t->inputs, t->input_cap * sizeof(*t->inputs));
        }
        t->inputs[t->input_count++] = in;
        if (t->adapter)
                return;
        t->adapter = mem_strdup(in->adapter);
        t->channel = mem_strdup(in->channel);
        t->thread = mem_strdup(in->thread);
}

void turn_inputs_text(const struct turn *t, struct buf *out)
{
        for (unsigned i = 0; i < t->input_count; i++)
                buf_addf(out, "%s%lld", i ? "," : "", (long long)t->inputs[i]->event);
}

bool turn_may_start(const struct road *r)
{
        return !r->draining && (int64_t)r->running_count < r->limits.running_turns &&
               (int64_t)r->out_count < r->limits.open_deliveries;
}

/* ---- claim ---- */

struct claim {
        struct turn *turn;
        int64_t old_fence;
        int64_t now_ms, lease_ms;
        bool lost; /* the row is not ours any more */
        struct bus_batch batch;
};

static int write_claim(struct store_tx *tx, void *arg, struct error *err)
{
        struct claim *c = arg;
        struct turn *t = c->turn;
        struct buf payload;
        struct bus_event e = { .type = "turn.started",
                               .time_ms = c->now_ms,
                               .adapter = t->adapter,
                               .channel = t->channel,
                               .thread = t->thread,
                               .trace = t->trace };
        struct store_stmt *s =
                store_prepare(tx, "UPDATE turns SET state = 'running', attempt = ?2, fence = ?3, owner = ?4, "
                                  "started_ms = ?5, lease_ms = ?6"
                                  " WHERE id = ?1 AND fence = ?7 AND state IN ('queued', 'running')");
        int rc;

        bus_batch_reset(&c->batch);
        store_bind_int(s, 1, t->run.id);
        store_bind_int(s, 2, t->run.attempt);
        store_bind_int(s, 3, t->run.fence);
        store_bind_text(s, 4, t->road->owner);
        store_bind_int(s, 5, c->now_ms);
        store_bind_int(s, 6, c->lease_ms);
        store_bind_int(s, 7, c->old_fence);
        if (store_run(s, err) < 0)
                return -1;
        c->lost = store_changes(tx) == 0;
        if (c->lost)
                return 0;
        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "turnId", t->key);
        jsonw_str(&payload, "agent", t->agent);
        jsonw_int(&payload, "attempt", t->run.attempt);
        jsonw_close(&payload, '}');
        e.payload = payload.data;
        rc = bus_append(tx, &c->batch, &e, NULL, err);
        buf_release(&payload);
        return rc < 0 ? -1 : 0;
}

/* The turn leaves memory: its lane goes on. */
static void leave(struct turn *t)
{
        struct road *r = t->road;
        struct lane *lane = t->lane;

        lane_give_back(t);
        turn_free(t);
        lane_pump(r, lane);
        lane_pump_ready(r);
        road_check_drained(r);
}

static void on_claimed(void *arg)
{
        struct claim *c = arg;
        struct turn *t = c->turn;

        bus_publish(t->road->bus, &c->batch);
        if (c->lost)
                leave(t);
        else
                turn_begin(t);
        bus_batch_release(&c->batch);
        free(c);
}

void turn_claim(struct turn *t)
{
        struct road *r = t->road;
        struct claim *c = mem_zalloc(sizeof(*c));

        lane_take(t);
        t->state = TURN_STARTING;
        timer_free(t->timer);
        t->timer = NULL;

        c->turn = t;
        c->old_fence = t->run.fence;
        c->now_ms = clock_wall_ms();
        c->lease_ms = c->now_ms + r->limits.turn_seconds * 1000;
        t->run.fence++;
        t->run.attempt++;
        fault_point("turn.before_claim");
        road_write(r, "turn claim", write_claim, on_claimed, c);
}

/* ---- running ---- */

struct history_read {
        struct turn *turn;
        int64_t conversation, limit;
        struct transcript_line *lines;
        unsigned count;
};

static int read_history(struct store_tx *tx, void *arg, struct error *err)
{
        struct history_read *h = arg;
        struct store_stmt *s = store_prepare(
                tx, "SELECT role, name, text, time_ms FROM (SELECT t.id AS id, role, name, text, time_ms"
                    " FROM transcript t JOIN conversations c ON c.id = t.conversation"
                    " WHERE t.conversation = ?1 AND t.id > c.history_from ORDER BY t.id DESC LIMIT ?2)"
                    " AS latest ORDER BY id");
        struct arena *arena = &h->turn->history;
        int rc;

        store_bind_int(s, 1, h->conversation);
        store_bind_int(s, 2, h->limit);
        h->lines = arena_alloc(arena, (size_t)h->limit * sizeof(*h->lines));
        h->count = 0;
        while ((rc = store_step(s, err)) == 1 && h->count < (unsigned)h->limit) {
                struct transcript_line *line = &h->lines[h->count++];

                line->role = arena_strdup(arena, store_col_text(s, 0));
                line->name = arena_strdup(arena, store_col_text(s, 1));
                line->text = arena_strdup(arena, store_col_text(s, 2));
                line->time_ms = store_col_int(s, 3);
        }
        return rc < 0 ? -1 : 0;
}

static void on_deadline(void *arg)
{
        struct turn *t = arg;
        struct road *r = t->road;
        char error[120];
        struct turn_reply reply = { .kind = ERR_TIMEOUT,
                                    .text = "Sorry, this took too long and was stopped. Please try again.",
                                    .error = error };

        snprintf(error, sizeof(error), "agent '%.60s' gave no answer within %lld s (limits.turnSeconds)",
                 t->agent, (long long)r->limits.turn_seconds);
        r->hooks.agent_cancel(r->hooks.ctx, &t->run);
        finish(t, &reply);
}

static void hand_over(struct turn *t)
{
        struct road *r = t->road;

        t->run.agent = t->agent;
        t->run.key = t->key;
        t->run.trace = t->trace;
        t->run.adapter = t->adapter;
        t->run.channel = t->channel;
        t->run.thread = t->thread;
        t->run.inputs = (const struct incoming *const *)t->inputs;
        t->run.input_count = t->input_count;
        t->state = TURN_RUNNING;
        timer_free(t->timer);
        t->timer = timer_new(r->loop, on_deadline, t);
        timer_start(t->timer, r->limits.turn_seconds * 1000);
        fault_point("turn.claimed");
        if (t->cancel_why) {
                turn_check_cancel(t);
                return;
        }
        draft_begin(t);
        r->hooks.agent_start(r->hooks.ctx, &t->run);
}

static void on_history(void *arg, const struct error *err)
{
        struct history_read *h = arg;
        struct turn *t = h->turn;

        t->road->writes--;
        if (err)
                log_warn("cannot read the conversation so far, going on without it", LOG_S("turn", t->key),
                         LOG_S("why", err->text));
        t->run.history = h->lines;
        t->run.history_count = err ? 0 : h->count;
        free(h);
        hand_over(t);
}

void turn_begin(struct turn *t)
{
        struct road *r = t->road;
        struct history_read *h;

        t->state = TURN_STARTING;
        t->started_ms = clock_wall_ms();
        if (!(r->hooks.agent_abilities(r->hooks.ctx, t->agent) & AGENT_HISTORY) ||
            r->limits.history_messages == 0) {
                hand_over(t);
                return;
        }
        h = mem_zalloc(sizeof(*h));
        h->turn = t;
        h->conversation = t->run.conversation;
        h->limit = r->limits.history_messages;
        r->writes++;
        store_read(r->store, read_history, on_history, h);
}

static void tell_live(struct turn *t, const char *type, const char *key, const char *text, size_t n)
{
        struct road *r = t->road;
        struct buf json;

        if (!r->hooks.live)
                return;
        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_str(&json, "turnId", t->key);
        jsonw_str(&json, "traceId", t->trace);
        jsonw_str(&json, "channel", t->channel);
        jsonw_strn(&json, key, text, n);
        jsonw_close(&json, '}');
        r->hooks.live(r->hooks.ctx, type, t->adapter, t->channel, json.data);
        buf_release(&json);
}

void turn_delta(struct turn_run *run, const char *text, size_t n)
{
        tell_live((struct turn *)run, "turn.delta", "text", text, n);
        draft_add((struct turn *)run, text, n);
}

void turn_progress(struct turn_run *run, const char *label)
{
        tell_live((struct turn *)run, "turn.progress", "label", label, strlen(label));
}

/* ---- the end: state, transcript, trigger log, deliveries and events in one transaction ---- */

struct ending {
        struct turn *turn;
        enum error_kind kind;
        const char *state; /* "done", "failed", "cancelled" */
        char *text, *error;
        int64_t tokens_in, tokens_out, cost_microusd;
        int64_t now_ms;
        struct out **outs; /* one per part */
        size_t out_count;
        int64_t superseded[MAX_SUPERSEDED]; /* waiting pieces of the draft that the answer replaces */
        size_t superseded_count;
        bool journaled;
        bool stale; /* the fence has moved on: nothing was written */
        struct bus_batch batch;
};

static int end_row(struct store_tx *tx, struct ending *e, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "UPDATE turns SET state = ?3, ended_ms = ?4, error_kind = ?5, error = ?6, tokens_in = ?7,"
                    " tokens_out = ?8, cost_microusd = ?9 WHERE id = ?1 AND fence = ?2"
                    " AND state IN ('queued', 'running')");

        store_bind_int(s, 1, e->turn->run.id);
        store_bind_int(s, 2, e->turn->run.fence);
        store_bind_text(s, 3, e->state);
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
        struct store_stmt *s =
                store_prepare(tx, "INSERT INTO transcript(conversation, turn, role, name, text, time_ms)"
                                  " VALUES(?1, ?2, ?3, ?4, ?5, ?6)");

        if (!text || text[0] == '\0')
                return 0;
        store_bind_int(s, 1, e->turn->run.conversation);
        store_bind_int(s, 2, e->turn->run.id);
        store_bind_text(s, 3, role);
        store_bind_text(s, 4, name);
        store_bind_text(s, 5, text);
        store_bind_int(s, 6, e->now_ms);
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

                if (say(tx, e, "user", in->sender_name ? in->sender_name : in->sender_username, in->text,
                        err) < 0)
                        return -1;
        }
        return say(tx, e, "assistant", t->agent, e->text, err);
}

/* Tokens and cost belong to the turn: they stand with its last event, so that sums over the log are right. */
static int end_log(struct store_tx *tx, const struct ending *e, struct error *err)
{
        const struct turn *t = e->turn;

        for (unsigned i = 0; i < t->input_count; i++) {
                bool last = i + 1 == t->input_count;
                struct store_stmt *s = store_prepare(
                        tx, "UPDATE trigger_log SET status = ?2, duration_ms = ?3, tokens_in = ?4,"
                            " tokens_out = ?5, cost_microusd = ?6, error = ?7 WHERE event = ?1");

                store_bind_int(s, 1, t->inputs[i]->event);
                store_bind_text(s, 2, e->state);
                store_bind_int(s, 3, e->now_ms - t->created_ms);
                store_bind_int(s, 4, last ? e->tokens_in : 0);
                store_bind_int(s, 5, last ? e->tokens_out : 0);
                store_bind_int(s, 6, last ? e->cost_microusd : 0);
                store_bind_text(s, 7, e->error);
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
        buf_addf(&type, "turn.%s", e->state);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "turnId", t->key);
        jsonw_str(&payload, "agent", t->agent);
        jsonw_int(&payload, "attempt", t->run.attempt);
        jsonw_int(&payload, "durationMs", e->now_ms - t->created_ms);
        jsonw_open_member(&payload, "events", '[');
        for (unsigned i = 0; i < t->input_count; i++) {
                char id[BUS_ID_SIZE];

                jsonw_str(&payload, NULL, bus_event_id(t->inputs[i]->event, id));
        }
        jsonw_close(&payload, ']');
        jsonw_int(&payload, "deliveries", (int64_t)e->out_count);
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

/* For a journaled adapter the message.sent event is the delivery. */
static int end_delivery(struct store_tx *tx, struct ending *e, const struct out *o, struct error *err)
{
        struct bus_event ev = { .type = EVENT_MESSAGE_SENT,
                                .time_ms = e->now_ms,
                                .adapter = o->d.adapter,
                                .channel = o->d.channel,
                                .thread = o->d.thread,
                                .trace = o->d.trace };
        struct buf payload;
        int rc;

        if (out_insert(tx, o, e->journaled ? "sent" : "queued", NULL, err) < 0)
                return -1;
        if (!e->journaled)
                return 0;
        buf_init(&payload, 0);
        out_sent_event(o, NULL, e->now_ms, &payload);
        ev.payload = payload.data;
        rc = bus_append(tx, &e->batch, &ev, NULL, err);
        buf_release(&payload);
        return rc < 0 ? -1 : 0;
}

static int end_draft(struct store_tx *tx, const struct ending *e, struct error *err)
{
        for (size_t i = 0; i < e->superseded_count; i++) {
                struct store_stmt *s = store_prepare(
                        tx, "UPDATE deliveries SET state = 'superseded', ended_ms = ?2 WHERE id = ?1"
                            " AND state = 'queued'");

                store_bind_int(s, 1, e->superseded[i]);
                store_bind_int(s, 2, e->now_ms);
                if (store_run(s, err) < 0)
                        return -1;
        }
        return 0;
}

static int write_ending(struct store_tx *tx, void *arg, struct error *err)
{
        struct ending *e = arg;

        bus_batch_reset(&e->batch);
        if (end_row(tx, e, err) < 0)
                return -1;
        if (e->stale)
                return 0;
        if (end_transcript(tx, e, err) < 0 || end_log(tx, e, err) < 0 || end_event(tx, e, err) < 0 ||
            end_draft(tx, e, err) < 0)
                return -1;
        for (size_t i = 0; i < e->out_count; i++) {
                if (end_delivery(tx, e, e->outs[i], err) < 0)
                        return -1;
        }
        return 0;
}

static void count_end(struct road *r, const struct ending *e)
{
        if (e->kind == ERR_NONE)
                r->stats.turns_done++;
        else if (e->kind == ERR_CANCELLED)
                r->stats.turns_cancelled++;
        else
                r->stats.turns_failed++;
        if (e->journaled && e->out_count > 0) {
                r->stats.sent += e->out_count;
                outbox_adapter(r, e->turn->adapter)->stats.last_sent_ms = e->now_ms;
        }
}

static void on_ended(void *arg)
{
        struct ending *e = arg;
        struct turn *t = e->turn;
        struct road *r = t->road;

        fault_point("turn.ended");
        if (e->stale)
                log_warn("an answer came after its turn had been given to somebody else; it is not sent",
                         LOG_S("turn", t->key));
        else
                count_end(r, e);
        bus_publish(r->bus, &e->batch);
        for (size_t i = 0; i < e->out_count; i++) {
                if (e->journaled || e->stale)
                        out_free(e->outs[i]);
                else
                        outbox_enqueue(r, e->outs[i]);
        }
        if (t->cancel_done)
                t->cancel_done(t->cancel_arg, NULL);
        free(e->outs);
        free(e->text);
        free(e->error);
        bus_batch_release(&e->batch);
        free(e);
        leave(t);
}

/* {"text": ..., "plain": ..., "replyTo": ..., "answers": [...]}: what the adapter needs and what the story tells. */
static void part_payload(const struct turn *t, const struct rendered_part *part, struct buf *out)
{
        const struct incoming *last = t->inputs[t->input_count - 1];

        jsonw_open(out, '{');
        jsonw_str(out, "text", part->text);
        jsonw_opt(out, "plain", part->plain);
        jsonw_opt(out, "replyTo", last->id);
        jsonw_str(out, "turnId", t->key);
        jsonw_open_member(out, "answers", '[');
        for (unsigned i = 0; i < t->input_count; i++) {
                char id[BUS_ID_SIZE];

                jsonw_str(out, NULL, bus_event_id(t->inputs[i]->event, id));
        }
        jsonw_close(out, ']');
        jsonw_close(out, '}');
}

/* Cuts the answer into deliveries. A text that cannot be rendered is sent as it is: better plain than lost. */
static void make_outs(struct turn *t, struct ending *e)
{
        struct road *r = t->road;
        struct rendered parts = { 0 };
        struct rendered_part whole = { .text = e->text };
        struct error err;

        if (!e->text || e->text[0] == '\0')
                return;
        e->journaled = (r->hooks.adapter_abilities(r->hooks.ctx, t->adapter) & ADAPTER_JOURNALED) != 0;
        if (r->hooks.render(r->hooks.ctx, t->adapter, e->text, &parts, &err) < 0)
                log_warn("cannot render an answer, sending it as it is", LOG_S("turn", t->key),
                         LOG_S("why", err.text));
        /* a draft that has not left yet is replaced; one that has becomes the first part of the answer by an edit */
        e->superseded_count = draft_supersede(t, e->superseded, MAX_SUPERSEDED);
        e->out_count = parts.count ? parts.count : 1;
        e->outs = mem_array(e->out_count, sizeof(struct out *));
        for (size_t i = 0; i < e->out_count; i++) {
                struct buf payload;

                buf_init(&payload, 0);
                part_payload(t, parts.count ? &parts.parts[i] : &whole, &payload);
                e->outs[i] = out_new(r->next_delivery++, t->run.id, t->adapter, t->channel, t->thread,
                                     i == 0 && t->draft_delivery ? "edit" : "send", PACE_FINAL, payload.data,
                                     t->trace);
                if (i == 0)
                        e->outs[i]->ref = t->draft_delivery;
                if (r->limits.delivery_expiry_seconds > 0)
                        e->outs[i]->expires_ms = e->now_ms + r->limits.delivery_expiry_seconds * 1000;
                buf_release(&payload);
        }
        rendered_release(&parts);
}

static void finish(struct turn *t, const struct turn_reply *reply)
{
        struct ending *e = mem_zalloc(sizeof(*e));

        timer_free(t->timer);
        t->timer = NULL;
        draft_end(t);
        t->state = TURN_ENDING;
        e->turn = t;
        e->kind = reply->kind;
        e->state = reply->kind == ERR_NONE ? "done" : reply->kind == ERR_CANCELLED ? "cancelled" : "failed";
        e->text = mem_strdup(reply->text);
        e->error = mem_strdup(reply->error);
        e->tokens_in = reply->tokens_in;
        e->tokens_out = reply->tokens_out;
        e->cost_microusd = reply->cost_microusd;
        e->now_ms = clock_wall_ms();
        make_outs(t, e);
        if (e->kind != ERR_NONE && e->kind != ERR_CANCELLED)
                log_warn("turn failed", LOG_S("turn", t->key), LOG_S("agent", t->agent),
                         LOG_S("trace", t->trace), LOG_S("why", e->error));
        fault_point("turn.before_end");
        road_write(t->road, "turn end", write_ending, on_ended, e);
}

void turn_finish(struct turn_run *run, const struct turn_reply *reply)
{
        struct turn *t = (struct turn *)run;

        if (t->state == TURN_RUNNING)
                finish(t, reply);
}

void turn_give_up(struct turn *t, const char *why)
{
        struct turn_reply reply = {
                .kind = ERR_INTERNAL,
                .text = "Sorry, I was interrupted while working on this. Please ask again.",
                .error = why
        };

        lane_take(t);
        finish(t, &reply);
}

/* ---- stopping ---- */

void turn_check_cancel(struct turn *t)
{
        struct road *r = t->road;
        struct turn_reply reply = { .kind = ERR_CANCELLED, .error = t->cancel_why };

        if (!t->cancel_why || t->joining > 0)
                return;
        if (t->state == TURN_QUEUED) {
                if (t->in_ready) {
                        TAILQ_REMOVE(&r->ready, t, in_ready_list);
                        t->in_ready = false;
                }
                lane_take(t);
                finish(t, &reply);
        } else if (t->state == TURN_RUNNING) {
                finish(t, &reply);
        }
}

struct refusal {
        store_done_fn *done;
        void *arg;
        struct error err;
};

static void on_refusal(void *arg)
{
        struct refusal *f = arg;

        f->done(f->arg, &f->err);
        free(f);
}

void turn_cancel(struct road *r, int64_t turn, const char *why, store_done_fn *done, void *arg)
{
        char key[TURN_KEY_SIZE];
        struct turn *t = map_get(&r->turns, road_key("trn", turn, key));

        if (!t || t->cancel_why || t->state == TURN_ENDING) {
                struct refusal *f = mem_zalloc(sizeof(*f));

                f->done = done;
                f->arg = arg;
                error_set(&f->err, ERR_MISSING, "turn '%s' is neither waiting nor running", key);
                loop_defer(r->loop, on_refusal, f);
                return;
        }
        t->cancel_why = mem_strdup(why);
        t->cancel_done = done;
        t->cancel_arg = arg;
        if (t->state == TURN_RUNNING)
                r->hooks.agent_cancel(r->hooks.ctx, &t->run);
        turn_check_cancel(t);
}
