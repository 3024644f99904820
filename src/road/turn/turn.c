#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/id.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "road/inbox/decide.h"
#include "road/road_state.h"
#include "road/turn/no_reply.h"
#include "road/turn/turn.h"

#define HELD_MAX 4096 /* more streamed text is no phrase */

struct turn *turn_new(struct road *r, struct lane *lane, const struct turn_run *run,
                      const struct reply_policy *policy)
{
        static const size_t strings[] = {
                offsetof(struct turn, run.agent),    offsetof(struct turn, run.rule),
                offsetof(struct turn, run.adapter),  offsetof(struct turn, run.channel),
                offsetof(struct turn, run.thread),   offsetof(struct turn, run.session),
                offsetof(struct turn, run.given_to),
        };
        struct turn template = { .run = *run, .road = r, .lane = lane }, *t;

        t = mem_dup_struct(&template, sizeof(template), strings, COUNT(strings));
        if (t->run.id == 0 && !numbers_take(&r->turn_numbers, 1, &t->run.id))
                abort(); /* decide.c limits events to the numbers left */
        t->run.conversation = lane->conversation;
        t->run.reset_turn = t->run.id >= lane->reset_turn ? lane->reset_turn : 0;
        snprintf(t->trace, sizeof(t->trace), "%s", run->trace ? run->trace : "");
        t->run.trace = t->trace;
        t->run.key = road_key("trn", t->run.id, t->key);
        t->created_ms = clock_wall_ms();
        TAILQ_INIT(&t->files.list);
        LIST_INIT(&t->approval_asks);
        arena_init(&t->arena);
        buf_init(&t->failover.failed, 0);
        buf_init(&t->display.held, 0);
        reply_policy_copy(&t->policy, policy, &t->arena);
        t->run.mode = t->policy.mode;
        t->run.prompt = t->policy.prompt;
        r->turns.open++;
        map_put(&r->turns.by_number, t->key, t);
        return t;
}

void turn_free(struct turn *t)
{
        struct road *r = t->road;

        approval_forget_turn(t);
        map_remove(&r->turns.by_number, t->key);
        r->turns.open--;
        for (unsigned i = 0; i < t->run.input_count; i++) {
                message_edit_unindex(t, t->inputs[i]);
                incoming_free(t->inputs[i]);
        }
        free(t->inputs);
        timer_free(t->timer);
        timer_free(t->display.slow);
        turn_files_release(t);
        channel_history_forget(t);
        reaction_context_forget(t);
        turn_commit_discard(t);
        free(draft_end(t));
        buf_release(&t->display.held);
        free(t->display.message);
        arena_release(&t->arena);
        buf_release(&t->failover.failed);
        free(t->cancel.why);
        free(t);
}

void turn_enter(struct turn *t, enum turn_phase phase)
{
        static const char *const names[] = {
                [PHASE_STORING] = "storing", [PHASE_STORING_RUNNING] = "storing running",
                [PHASE_QUEUED] = "queued",   [PHASE_STARTING] = "starting",
                [PHASE_RUNNING] = "running", [PHASE_ENDING] = "ending",
        };

        log_debug("turn", LOG_S("turn", t->key), LOG_S("from", names[t->phase]),
                  LOG_S("to", names[phase]), LOG_I("attempt", t->run.attempt));
        t->phase = phase;
}

void turn_add_input(struct turn *t, struct incoming *in)
{
        if (t->run.input_count == t->input_cap) {
                t->input_cap = t->input_cap ? t->input_cap * 2 : 1;
                t->inputs = mem_realloc(t->inputs, t->input_cap * sizeof(*t->inputs));
                t->run.inputs = (const struct incoming *const *)t->inputs;
        }
        t->inputs[t->run.input_count++] = in;
        message_edit_index(t, in);
}

struct incoming *turn_last_input(const struct turn *t)
{
        return t->inputs[t->run.input_count - 1];
}

static bool is_of(const struct incoming *in, const char *sender)
{
        return sender && in->sender_id ? strcmp(sender, in->sender_id) == 0
                                       : sender == in->sender_id;
}

bool turn_has_sender(const struct turn *t, const char *sender)
{
        for (unsigned i = 0; i < t->run.input_count; i++)
                if (is_of(t->inputs[i], sender))
                        return true;
        return false;
}

bool turn_has_others(const struct turn *t, const char *sender)
{
        for (unsigned i = 0; i < t->run.input_count; i++)
                if (!is_of(t->inputs[i], sender))
                        return true;
        return false;
}

char *turn_inputs_text(const struct turn *t)
{
        struct buf text;

        buf_init(&text, 0);
        for (unsigned i = 0; i < t->run.input_count; i++)
                buf_addf(&text, "%s%lld", i ? "," : "", (long long)t->inputs[i]->event);
        return buf_take(&text);
}

void turn_write_inputs(const struct turn *t, const char *key, struct buf *json)
{
        char id[BUS_ID_SIZE];

        jsonw_open_member(json, key, '[');
        for (unsigned i = 0; i < t->run.input_count; i++)
                jsonw_str(json, NULL, bus_event_id(t->inputs[i]->event, id));
        jsonw_close(json, ']');
}

const char *turn_agent(const struct turn *t)
{
        return t->failover.agent ? t->failover.agent : t->run.agent;
}

bool turn_is_unsampled(const struct turn *t)
{
        return t->run.input_count > 0 && !id_parent_samples(t->inputs[0]->traceparent, t->trace);
}

struct turn *turn_find(const struct road *r, int64_t id)
{
        char key[ROAD_KEY_SIZE];

        return map_get(&r->turns.by_number, road_key("trn", id, key));
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

/* ---- claiming ---- */

struct turn_claim {
        struct turn *turn;
        int64_t old_fence;
        int64_t now_ms, lease_ms;
        bool lost; /* result: claimed by another process */
        struct bus_batch batch;
};

bool turn_may_start(const struct road *r, const char *adapter)
{
        return !r->draining && (int64_t)r->turns.running < r->limits.running_turns &&
               outbox_has_room(r, adapter);
}

int turn_append_started(struct store_tx *tx, struct bus_batch *batch, const struct turn *t,
                        int64_t now_ms, struct error *err)
{
        struct bus_event e = {
                .type = EVENT_TURN_STARTED,
                .time_ms = now_ms,
                .adapter = t->run.adapter,
                .channel = t->run.channel,
                .thread = t->run.thread,
                .trace = t->trace,
        };
        struct buf payload;
        int rc;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "turnId", t->key);
        jsonw_str(&payload, "agent", turn_agent(t));
        jsonw_int(&payload, "attempt", t->run.attempt);
        turn_files_write(t, &payload);
        jsonw_close(&payload, '}');
        e.payload = payload.data;
        rc = bus_append(tx, batch, &e, NULL, err);
        buf_release(&payload);
        return rc < 0 ? -1 : 0;
}

static int write_claim(struct store_tx *tx, void *arg, struct error *err)
{
        struct turn_claim *c = arg;
        struct turn *t = c->turn;
        struct turn_row row = { .id = t->run.id,
                                .attempt = t->run.attempt,
                                .fence = t->run.fence,
                                .owner = t->road->owner,
                                .started_ms = c->now_ms };
        int rc = turn_row_claim(tx, &row, c->old_fence, c->lease_ms, err);

        bus_batch_reset(&c->batch);
        c->lost = rc == 0;
        return rc == 1 ? turn_append_started(tx, &c->batch, t, c->now_ms, err) : rc;
}

static void claim_free(struct turn_claim *c)
{
        bus_batch_release(&c->batch);
        free(c);
}

static void on_claimed(void *arg, const struct error *err)
{
        struct turn_claim *c = arg;
        struct turn *t = c->turn;

        if (err) {
                claim_free(c);
                return;
        }
        bus_publish(t->road->bus, &c->batch);
        if (c->lost) {
                if (t->cancel.done)
                        t->cancel.done(t->cancel.arg, NULL);
                turn_leave(t);
        } else {
                turn_prepare(t);
        }
        claim_free(c);
}

void turn_claim(struct turn *t)
{
        struct road *r = t->road;
        struct turn_claim *c = mem_zalloc(sizeof(*c));

        lane_take(t);
        turn_enter(t, PHASE_STARTING);
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

/* ---- calls from agents ---- */

static void publish_live(struct turn *t, const char *type, const char *key, const char *text,
                         size_t n)
{
        struct bus_event e = { .type = type,
                               .adapter = t->run.adapter,
                               .channel = t->run.channel,
                               .trace = t->trace };
        char event[BUS_ID_SIZE];
        struct buf json;

        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_str(&json, "turnId", t->key);
        if (t->run.input_count > 0)
                jsonw_str(&json, "eventId", bus_event_id(t->inputs[0]->event, event));
        jsonw_str(&json, "traceId", t->trace);
        jsonw_str(&json, "channel", t->run.channel);
        jsonw_strn(&json, key, text, n);
        jsonw_close(&json, '}');
        e.payload = json.data;
        bus_publish_live(t->road->bus, &e);
        buf_release(&json);
}

/* Holds text back while it may become "no reply". */
void turn_delta(struct turn_run *run, const char *text, size_t n)
{
        struct turn *t = (struct turn *)run;
        struct buf *held = &t->display.held;

        if (!t->display.streams) {
                if (held->len >= HELD_MAX)
                        return; /* marked as "no reply" */
                buf_add(held, text, n);
                if (held->len < HELD_MAX ? no_reply_may_follow(&t->policy, held->data)
                                         : no_reply_is_marked(held->data))
                        return;
                t->display.streams = true;
                text = held->data;
                n = held->len;
        }
        publish_live(t, "turn.delta", "text", text, n);
        draft_add(t, text, n);
}

void turn_goes_on(struct turn_run *run)
{
        struct turn *t = (struct turn *)run;

        /* what comes next may be marked as "no reply" again */
        t->display.streams = false;
        buf_clear(&t->display.held);
        publish_live(t, "turn.aside", "text", "", 0);
        draft_turn_over(t);
}

void turn_progress(struct turn_run *run, const char *label)
{
        struct turn *t = (struct turn *)run;

        snprintf(t->steps.label, sizeof(t->steps.label), "%.*s",
                 (int)utf8_prefix(label, strlen(label), UTF8_BYTES, sizeof(t->steps.label) - 1),
                 label);
        publish_live(t, "turn.progress", "label", label, strlen(label));
        draft_progress(t, label);
}

void turn_give_up(struct turn *t, const char *why)
{
        struct turn_reply reply = {
                .kind = ERR_INTERNAL,
                .text = "Sorry, I was interrupted while working on this. Please ask again.",
                .error = why
        };

        lane_take(t);
        turn_finish(&t->run, &reply);
}

/* ---- stopping ---- */

bool turn_is_withdrawn(const struct turn *t)
{
        return t->progress.deleted >= t->run.input_count;
}

void turn_check_cancel(struct turn *t)
{
        struct turn_reply reply = { .kind = ERR_CANCELLED, .error = t->cancel.why };

        if (!t->cancel.why || t->queue.changes > 0)
                return;
        if (t->phase == PHASE_QUEUED) {
                turn_files_release(t);
                lane_unhold(t);
                lane_take(t);
                turn_finish(&t->run, &reply);
        } else if (t->phase == PHASE_RUNNING) {
                turn_finish(&t->run, &reply);
        }
}

struct cancel_refusal {
        store_done_fn *done;
        void *arg;
        struct error err;
};

static void on_refusal(void *arg)
{
        struct cancel_refusal *f = arg;

        f->done(f->arg, &f->err);
        free(f);
}

void turn_cancel(struct road *r, int64_t turn, const char *why, store_done_fn *done, void *arg)
{
        struct turn *t = turn_find(r, turn);

        if (!t || t->cancel.why || t->phase == PHASE_ENDING) {
                struct cancel_refusal *f;

                if (!done)
                        return;
                f = mem_zalloc(sizeof(*f));
                f->done = done;
                f->arg = arg;
                error_set(&f->err, ERR_MISSING, "turn 'trn-%lld' is neither waiting nor running",
                          (long long)turn);
                loop_defer(r->loop, on_refusal, f);
                return;
        }
        t->cancel.why = mem_strdup(why ? why : "cancelled");
        t->run.stopped = t->cancel.why;
        t->cancel.done = done;
        t->cancel.arg = arg;
        if (t->phase == PHASE_RUNNING)
                r->agents.cancel(r->agents.agents, &t->run);
        turn_check_cancel(t);
}
