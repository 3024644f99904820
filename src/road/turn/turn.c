/*
 * turn: one run of an agent, from its claim to the transaction that ends it.
 *
 *     QUEUED ── claim committed ──► RUNNING ── agent answers ──► ENDING ── end committed ──► gone
 *
 * The claim raises attempt and fence before the agent is asked; the end names the fence. An agent
 * that answers after its turn was given to somebody else changes nothing. If the process dies in
 * between, the row still says running: the next life runs it again when that does no harm, and
 * otherwise ends it with a notice to the user.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/road_private.h"

struct turn *turn_new(struct road *r, struct lane *lane, const char *agent, const char *rule,
                      const char *trace)
{
        struct turn *t = mem_zalloc(sizeof(*t));

        t->road = r;
        t->lane = lane;
        t->run.id = r->next_turn++;
        t->run.conversation = lane->conversation;
        t->run.reset_turn = t->run.id >= lane->joins_from ? lane->joins_from : 0;
        t->agent = mem_strdup(agent);
        t->rule = mem_strdup(rule);
        snprintf(t->trace, sizeof(t->trace), "%s", trace ? trace : "");
        road_key("trn", t->run.id, t->key);
        t->created_ms = clock_wall_ms();
        arena_init(&t->arena);
        r->turn_count++;
        map_put(&r->turns, t->key, t);
        return t;
}

void turn_free(struct turn *t)
{
        struct road *r = t->road;

        map_remove(&r->turns, t->key);
        r->turn_count--;
        for (unsigned i = 0; i < t->input_count; i++) {
                change_unindex(t, t->inputs[i]);
                incoming_free(t->inputs[i]);
        }
        free(t->inputs);
        timer_free(t->timer);
        timer_free(t->slow);
        recall_forget(t);
        arena_release(&t->arena);
        draft_free(t->draft);
        free(t->agent);
        free(t->rule);
        free(t->adapter);
        free(t->channel);
        free(t->thread);
        free(t->person);
        free(t->session);
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
        change_index(t, in);
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

void turn_show_inputs(const struct turn *t, const char *key, struct buf *out)
{
        jsonw_open_member(out, key, '[');
        for (unsigned i = 0; i < t->input_count; i++) {
                char id[BUS_ID_SIZE];

                jsonw_str(out, NULL, bus_event_id(t->inputs[i]->event, id));
        }
        jsonw_close(out, ']');
}

bool turn_may_start(const struct road *r, const char *adapter)
{
        return !r->draining && (int64_t)r->running_count < r->limits.running_turns &&
               outbox_has_room(r, adapter);
}

/* ---- claim ---- */

struct claim {
        struct turn *turn;
        int64_t old_fence;
        int64_t now_ms, lease_ms;
        bool lost; /* the row is not ours any more */
        struct bus_batch batch;
};

int turn_started_event(struct store_tx *tx, struct bus_batch *batch, const struct turn *t,
                       int64_t attempt, int64_t now_ms, struct error *err)
{
        struct bus_event e = {
                .type = "turn.started",
                .time_ms = now_ms,
                .adapter = t->adapter,
                .channel = t->channel,
                .thread = t->thread,
                .trace = t->trace,
        };
        struct buf payload;
        int rc;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "turnId", t->key);
        jsonw_str(&payload, "agent", t->agent);
        jsonw_int(&payload, "attempt", attempt);
        jsonw_close(&payload, '}');
        e.payload = payload.data;
        rc = bus_append(tx, batch, &e, NULL, err);
        buf_release(&payload);
        return rc < 0 ? -1 : 0;
}

static int write_claim(struct store_tx *tx, void *arg, struct error *err)
{
        struct claim *c = arg;
        struct turn *t = c->turn;
        struct store_stmt *s = store_prepare(
                tx,
                "UPDATE turns SET state = 'running', attempt = ?2, fence = ?3, owner = ?4, started_ms = ?5,"
                " lease_ms = ?6 WHERE id = ?1 AND fence = ?7 AND state IN ('queued', 'running')");

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
        return c->lost ? 0 : turn_started_event(tx, &c->batch, t, t->run.attempt, c->now_ms, err);
}

void turn_leave(struct turn *t)
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
        if (c->lost) {
                if (t->cancel_done)
                        t->cancel_done(t->cancel_arg, NULL);
                turn_leave(t);
        } else {
                turn_begin(t);
        }
        bus_batch_release(&c->batch);
        free(c);
}

void turn_claim(struct turn *t)
{
        struct road *r = t->road;
        struct claim *c = mem_zalloc(sizeof(*c));

        lane_take(t);
        t->phase = PHASE_STARTING;
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

static void on_deadline(void *arg)
{
        struct turn *t = arg;
        struct road *r = t->road;
        char error[120];
        struct turn_reply reply = {
                .kind = ERR_TIMEOUT,
                .text = "Sorry, this took too long and was stopped. Please try again.",
                .error = error
        };

        snprintf(error, sizeof(error),
                 "agent '%.60s' gave no answer within %lld s (limits.turnSeconds)", t->agent,
                 (long long)r->limits.turn_seconds);
        r->agents.cancel(r->agents.agents, &t->run);
        turn_end(t, &reply);
}

/* A turn that never started has an end as well, and that is told with its run. */
void turn_fill_run(struct turn *t)
{
        t->run.agent = t->agent;
        t->run.key = t->key;
        t->run.trace = t->trace;
        t->run.adapter = t->adapter;
        t->run.channel = t->channel;
        t->run.thread = t->thread;
        t->run.session = t->session;
        t->run.rule = t->rule;
        t->run.mode = t->policy.mode;
        t->run.prompt = t->policy.prompt;
        t->run.inputs = (const struct incoming *const *)t->inputs;
        t->run.input_count = t->input_count;
}

void turn_hand_over(struct turn *t)
{
        struct road *r = t->road;

        if (r->closing && !t->cancel_why)
                return; /* nobody would hear the answer: the next life asks */
        turn_fill_run(t);
        t->phase = PHASE_RUNNING;
        timer_free(t->timer);
        t->timer = timer_new(r->loop, on_deadline, t);
        timer_start(t->timer, r->limits.turn_seconds * 1000);
        fault_point("turn.claimed");
        if (t->cancel_why) {
                turn_check_cancel(t);
                return;
        }
        draft_begin(t);
        mark_begin(t);
        r->agents.start(r->agents.agents, &t->run);
}

void turn_begin(struct turn *t)
{
        t->phase = PHASE_STARTING;
        t->started_ms = clock_wall_ms();
        quote_gather(t);
}

static void publish_live(struct turn *t, const char *type, const char *key, const char *text,
                         size_t n)
{
        struct bus_event e = {
                .type = type, .adapter = t->adapter, .channel = t->channel, .trace = t->trace
        };
        struct buf json;

        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_str(&json, "turnId", t->key);
        jsonw_str(&json, "traceId", t->trace);
        jsonw_str(&json, "channel", t->channel);
        jsonw_strn(&json, key, text, n);
        jsonw_close(&json, '}');
        e.payload = json.data;
        bus_publish_live(t->road->bus, &e);
        buf_release(&json);
}

void turn_delta(struct turn_run *run, const char *text, size_t n)
{
        publish_live((struct turn *)run, "turn.delta", "text", text, n);
        draft_add((struct turn *)run, text, n);
}

void turn_progress(struct turn_run *run, const char *label)
{
        publish_live((struct turn *)run, "turn.progress", "label", label, strlen(label));
}

void turn_finish(struct turn_run *run, const struct turn_reply *reply)
{
        struct turn *t = (struct turn *)run;

        if (t->phase == PHASE_RUNNING)
                turn_end(t, reply);
}

void turn_give_up(struct turn *t, const char *why)
{
        struct turn_reply reply = {
                .kind = ERR_INTERNAL,
                .text = "Sorry, I was interrupted while working on this. Please ask again.",
                .error = why
        };

        lane_take(t);
        turn_end(t, &reply);
}

/* ---- stopping ---- */

void turn_check_cancel(struct turn *t)
{
        struct turn_reply reply = { .kind = ERR_CANCELLED, .error = t->cancel_why };

        if (!t->cancel_why || t->joining > 0)
                return;
        if (t->phase == PHASE_QUEUED) {
                lane_unhold(t);
                lane_take(t);
                turn_end(t, &reply);
        } else if (t->phase == PHASE_RUNNING) {
                turn_end(t, &reply);
        }
}

bool turn_is_taken_back(const struct turn *t)
{
        return t->deleted >= t->input_count;
}

int turn_mark_cancelled(struct store_tx *tx, int64_t turn, const char *why, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "UPDATE turns SET cancel_reason = ?2 WHERE id = ?1 AND state IN ('queued', 'running')");

        store_bind_int(s, 1, turn);
        store_bind_text(s, 2, why);
        return store_run(s, err);
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

        if (!t || t->cancel_why || t->phase == PHASE_ENDING) {
                struct refusal *f;

                if (!done)
                        return;
                f = mem_zalloc(sizeof(*f));
                f->done = done;
                f->arg = arg;
                error_set(&f->err, ERR_MISSING, "turn '%s' is neither waiting nor running", key);
                loop_defer(r->loop, on_refusal, f);
                return;
        }
        t->cancel_why = mem_strdup(why ? why : "cancelled");
        t->cancel_done = done;
        t->cancel_arg = arg;
        if (t->phase == PHASE_RUNNING)
                r->agents.cancel(r->agents.agents, &t->run);
        turn_check_cancel(t);
}
