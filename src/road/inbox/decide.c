/*
 * decide: what is to become of each event, and its place in a conversation.
 *
 * Events are decided in the order of their commit. Decisions that gather while one write is under
 * way go into the next, so a flood of events costs few transactions. A decision is made once, in
 * memory; its write is repeated until it is stored, and until then the cursor "dispatch" has not
 * moved: after a crash the events are simply decided again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/report/trace_report.h"
#include "road/road_private.h"

#define PARTS_MS      1500 /* from one part of a message to the next */
#define MAX_DECISIONS 512  /* per transaction */

enum placing { SKIPPED, EXPIRED, NEW_TURN, JOINED, CARRIED_OUT };

/* One event's decision, with everything the store's thread needs to write it. */
struct placed {
        enum placing placing;
        struct incoming *in; /* NEW_TURN, JOINED: the turn's; else ours */
        struct turn *turn;
        char *reason;
        char *agent, *rule;   /* of the decision, also for skipped ones */
        char *policy;         /* NEW_TURN: the reply policy as stored; NULL: a plain reply */
        char *inputs;         /* the turn's input numbers after this event */
        int64_t due_ms;       /* wall clock */
        int64_t known;        /* the lane's conversation when it has one already */
        int64_t conversation; /* result; written anew each time the write is repeated */
        /* result, of a lane that was not known: the turn with which it began anew */
        int64_t begun;
        struct reset_turns resets; /* result, likewise */
        struct lane_name lane;     /* whose conversation it belongs to; agent NULL: nobody's */
        char *lane_key;            /* the same as a key */
        bool remembered;           /* SKIPPED: the conversation's history gets it all the same */
        struct tx_extra extra;
        struct effect *effect; /* CARRIED_OUT: what is changed; may be NULL */
        /* CARRIED_OUT: the notice is what is stored about an earlier message */
        bool asks_story;
        struct buf story; /* the same; written anew each time the read is repeated */
        /* without a turn: what the sender is told, or that nothing is; may be NULL */
        struct out *notice;
        bool journaled; /* the notice is sent by being stored */
};

struct decisions {
        struct road *road;
        struct placed *items;
        unsigned count;
        int64_t now_ms;
        int64_t cursor;
        struct bus_batch batch;
};

void decide_later(struct road *r, struct incoming *in)
{
        struct pending *p = mem_zalloc(sizeof(*p));

        p->in = in;
        STAILQ_INSERT_TAIL(&r->pending, p, next);
        r->pending_count++;
}

/* ---- placing an event ---- */

/*
 * Rules may send to one agent what is to be answered and what is not: a question must not share the
 * silence of other messages.
 */
static bool suits(const struct turn *t, const struct decision *d)
{
        return t->policy.mode == d->policy.mode ||
               (reply_mode_answers(t->policy.mode) && reply_mode_answers(d->policy.mode));
}

/* Did the sender of the message say the last thing the turn answers? */
static bool is_of_sender(const struct turn *t, const struct incoming *in)
{
        const char *last = t->input_count > 0 ? t->inputs[t->input_count - 1]->sender_id : NULL;

        return last && in->sender_id ? strcmp(last, in->sender_id) == 0 : !last && !in->sender_id;
}

static bool is_closed(struct road *r, const struct turn *t)
{
        return t->doomed || t->cancel_why || t->run.id < t->lane->joins_from ||
               (t->phase != PHASE_QUEUED && t->phase != PHASE_STORING) || t->held_in == &r->ready ||
               t->held_in == &outbox_adapter(r, t->adapter)->held;
}

/*
 * A waiting turn takes another message of its sender while its window is open. An agent that reads
 * several at once is given everything that came while the lane was busy, whoever wrote it; but two
 * people who begin in the same moment are two questions.
 */
static bool may_join(struct road *r, struct turn *t, const struct incoming *in, int64_t now)
{
        bool own = is_of_sender(t, in);

        if (is_closed(r, t))
                return false;
        if (t->policy.mode == MODE_AMBIENT || (own && t->due_mono > now))
                return true;
        return (own || t->lane->running) &&
               (r->agents.abilities(r->agents.agents, t->agent) & AGENT_BATCHES) != 0;
}

/*
 * The turn that waits for the message, NULL: a new one. Never one before the last of the same
 * person.
 */
static struct turn *find_waiting(struct road *r, struct lane *lane, const struct incoming *in,
                                 const struct decision *d)
{
        int64_t now = loop_now_ms(r->loop);
        struct turn *t;

        TAILQ_FOREACH_REVERSE(t, &lane->waiting, turn_list, in_lane)
        {
                if (may_join(r, t, in, now) && suits(t, d))
                        return t;
                if (is_of_sender(t, in))
                        return NULL;
        }
        return NULL;
}

static struct lane_name lane_name_of(const struct incoming *in, const struct decision *d)
{
        return (struct lane_name){ .adapter = in->adapter,
                                   .channel = in->channel,
                                   .thread = in->thread,
                                   .agent = d->agent,
                                   .person = d->per_person ? in->sender_id : NULL };
}

static void join(struct turn *t, struct placed *p, const struct decision *d, int64_t now)
{
        int64_t due = now + d->debounce_ms;

        turn_add_input(t, p->in);
        t->joining++;
        t->lane->mailbox++;
        if (due > t->due_limit)
                due = t->due_limit;
        /* by the clock of its beginning, however the clock jumped since */
        t->due_ms += due - t->due_mono;
        t->due_mono = due;
        p->placing = JOINED;
        p->turn = t;
}

static void begin_turn(struct road *r, struct lane *lane, struct placed *p,
                       const struct decision *d, int64_t now)
{
        struct turn *t = turn_new(r, lane, d->agent, d->rule, p->in->trace);

        t->person = mem_strdup(p->lane.person);
        t->session = mem_strdup(d->session);
        reply_policy_copy(&t->policy, &d->policy, &t->arena);
        p->policy = reply_policy_write(&t->policy);
        turn_add_input(t, p->in);
        t->due_mono = now + d->debounce_ms;
        t->due_ms = clock_wall_ms() + d->debounce_ms;
        t->due_limit =
                now + (d->debounce_max_ms > d->debounce_ms ? d->debounce_max_ms : d->debounce_ms);
        t->starts_now = d->debounce_ms == 0 && !lane->running && TAILQ_EMPTY(&lane->waiting) &&
                        turn_may_start(r, p->in->adapter) &&
                        flight_is_free(r, t->agent, t->session);
        if (t->starts_now) {
                lane_run(t);
                t->run.attempt = 1;
                t->run.fence = 1;
        } else {
                lane_append(lane, t);
        }
        p->placing = NEW_TURN;
        p->turn = t;
}

/* Where a message that triggers would go. */
struct place_query {
        struct road *road;
        const struct incoming *in;
        struct lane *lane;    /* NULL: not asked */
        struct turn *waiting; /* the turn it would join; NULL: a new one */
        char *refusal;
};

static enum placement on_place_query(void *arg, struct decision *d)
{
        struct place_query *q = arg;
        struct road *r = q->road;
        struct lane_name name = lane_name_of(q->in, d);

        q->lane = lane_get(r, &name);
        if (q->lane->mailbox >= r->limits.mailbox) {
                q->refusal = mem_printf(
                        "%lld messages already wait in this conversation (limits.mailbox)",
                        (long long)q->lane->mailbox);
                d->reason = q->refusal;
                return PLACEMENT_REFUSED;
        }
        q->waiting = find_waiting(r, q->lane, q->in, d);
        return q->waiting ? PLACEMENT_JOINS_TURN : PLACEMENT_NEW_TURN;
}

static void place_in_lane(struct place_query *q, struct placed *p, struct decision *d)
{
        struct road *r = q->road;
        int64_t now = loop_now_ms(r->loop);
        struct buf inputs;

        if (p->in->more_follows && d->debounce_ms < PARTS_MS)
                d->debounce_ms = PARTS_MS;
        if (q->waiting)
                join(q->waiting, p, d, now);
        else
                begin_turn(r, q->lane, p, d, now);
        p->known = q->lane->conversation;
        buf_init(&inputs, 0);
        turn_inputs_text(p->turn, &inputs);
        p->inputs = buf_take(&inputs);
        p->due_ms = p->turn->due_ms;
}

/* A short text from us, not from an agent: the first part is all of it. */
static void make_notice(struct road *r, struct placed *p, const char *text)
{
        struct rendered parts = { 0 };
        struct error err;
        struct buf payload;

        if (r->platforms.render(r->platforms.adapters, p->in->adapter, text, &parts, &err) < 0)
                log_warn("cannot render a notice, sending it as it is", LOG_S("why", err.text));
        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "text", parts.count > 0 ? parts.parts[0].text : text);
        jsonw_opt(&payload, "plain", parts.count > 0 ? parts.parts[0].plain : NULL);
        jsonw_opt(&payload, "replyTo", p->in->id);
        jsonw_close(&payload, '}');
        p->notice = out_new(r->next_delivery++, 0, p->in->adapter, p->in->channel, p->in->thread,
                            DELIVER_SEND, PACE_FINAL, payload.data, p->in->trace);
        p->journaled = (r->platforms.abilities(r->platforms.adapters, p->in->adapter) &
                        ADAPTER_JOURNALED) != 0;
        out_set_expiry(r, p->notice);
        buf_release(&payload);
        rendered_release(&parts);
}

static void carry_out(struct road *r, struct placed *p, enum road_command what)
{
        struct buf answer;

        buf_init(&answer, 0);
        p->placing = CARRIED_OUT;
        p->effect = command_new(r, what, &p->lane, p->in, &answer);
        p->reason = mem_printf("the command /%s was carried out", command_name(what));
        p->asks_story = what == COMMAND_WHY;
        if (answer.len > 0)
                make_notice(r, p, answer.data);
        buf_release(&answer);
}

/*
 * An edit or a deletion of a message that is still to be answered concerns nobody but the turn that
 * has it.
 */
static bool is_change(struct road *r, struct placed *p)
{
        struct turn *t;

        p->effect = change_new(r, p->in, &t, &p->reason);
        if (!p->effect)
                return false;
        p->placing = CARRIED_OUT;
        p->agent = mem_strdup(t->agent);
        p->rule = mem_strdup(t->rule);
        return true;
}

static void place(struct road *r, struct placed *p, struct incoming *in)
{
        struct place_query q = { .road = r, .in = in };
        struct decision d = { 0 };

        p->in = in;
        p->placing = SKIPPED;
        buf_init(&p->story, 0);
        if (is_change(r, p))
                return;
        r->dispatch.decide(r->dispatch.dispatch, in,
                           &(struct placement_query){ on_place_query, &q }, &d);
        p->agent = mem_strdup(d.agent);
        p->rule = mem_strdup(d.rule);
        p->lane = lane_name_of(in, &d);
        p->lane.agent = p->agent;
        if (d.trigger)
                place_in_lane(&q, p, &d);
        else if (d.command != COMMAND_NONE && d.command != COMMAND_HANDLED)
                carry_out(r, p, d.command);
        else
                p->reason = mem_strdup(d.reason);
        if (!d.trigger && q.lane)
                lane_free_if_idle(r, q.lane);
        free(q.refusal);
        p->extra = d.extra;
        p->remembered = p->placing == SKIPPED && d.remember && d.agent;
        if (p->remembered)
                p->lane_key = lane_key(&p->lane);
        if (p->placing == SKIPPED && d.expired)
                p->placing = EXPIRED;
        if (p->placing == SKIPPED && d.notice)
                make_notice(r, p, d.notice);
        if (d.command == COMMAND_HANDLED)
                p->placing = CARRIED_OUT;
        if (!p->turn && !p->notice && !p->asks_story && withdraw_is_due(in))
                p->notice = withdraw_new(r, in, 0, NULL);
}

/* ---- writing decisions ---- */

static int write_turn(struct store_tx *tx, struct decisions *ds, struct placed *p,
                      struct error *err)
{
        struct reset_scope scope = { p->lane.adapter, p->lane.channel, p->lane.thread,
                                     p->in->sender_id };
        struct turn *t = p->turn;
        struct store_stmt *s;

        p->conversation = p->known;
        if (p->known == 0 &&
            lane_row(tx, t->lane->key, &p->lane, ds->now_ms, &p->conversation, &p->begun, err) < 0)
                return -1;
        if (reset_row_get(tx, &scope, t->run.id, &p->resets, err) < 0)
                return -1;
        s = store_prepare(
                tx, "INSERT INTO turns(id, conversation, agent, rule, state, inputs, trace, "
                    "attempt, fence, owner,"
                    " due_ms, created_ms, started_ms, session, reply_policy)"
                    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?10, ?11, ?12, ?13, ?14)");
        store_bind_int(s, 1, t->run.id);
        store_bind_int(s, 2, p->conversation);
        store_bind_text(s, 3, t->agent);
        store_bind_text(s, 4, t->rule);
        store_bind_text(s, 5, t->starts_now ? "running" : "queued");
        store_bind_text(s, 6, p->inputs);
        store_bind_text(s, 7, t->trace);
        store_bind_int(s, 8, t->starts_now ? 1 : 0);
        store_bind_text(s, 9, t->starts_now ? t->road->owner : NULL);
        store_bind_int(s, 10, p->due_ms);
        store_bind_int(s, 11, ds->now_ms);
        if (t->starts_now)
                store_bind_int(s, 12, ds->now_ms);
        else
                store_bind_null(s, 12);
        store_bind_text(s, 13, t->session);
        store_bind_text(s, 14, p->policy);
        if (store_run(s, err) < 0)
                return -1;
        return t->starts_now ? turn_started_event(tx, &ds->batch, t, 1, ds->now_ms, err) : 0;
}

static int write_join(struct store_tx *tx, const struct placed *p, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "UPDATE turns SET inputs = ?2, due_ms = ?3 WHERE id = ?1");

        store_bind_int(s, 1, p->turn->run.id);
        store_bind_text(s, 2, p->inputs);
        store_bind_int(s, 3, p->due_ms);
        return store_run(s, err);
}

/* As written in the trigger log. */
static const char *const statuses[] = {
        [SKIPPED] = "skipped", [EXPIRED] = "expired",  [NEW_TURN] = "queued",
        [JOINED] = "queued",   [CARRIED_OUT] = "done",
};

static int write_log(struct store_tx *tx, const struct decisions *ds, const struct placed *p,
                     struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "INSERT INTO trigger_log(event, time_ms, event_type, adapter, channel, thread, sender,"
                " sender_name, agent, rule, turn, trace, status, reason)"
                " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
                " ON CONFLICT(event) DO NOTHING");

        store_bind_int(s, 1, p->in->event);
        store_bind_int(s, 2, ds->now_ms);
        store_bind_text(s, 3, p->in->type);
        store_bind_text(s, 4, p->in->adapter);
        store_bind_text(s, 5, p->in->channel);
        store_bind_text(s, 6, p->in->thread);
        store_bind_text(s, 7, p->in->sender_id);
        store_bind_text(s, 8, p->in->sender_name ? p->in->sender_name : p->in->sender_username);
        store_bind_text(s, 9, p->agent);
        store_bind_text(s, 10, p->rule);
        if (p->turn)
                store_bind_int(s, 11, p->turn->run.id);
        else
                store_bind_null(s, 11);
        store_bind_text(s, 12, p->in->trace);
        store_bind_text(s, 13, statuses[p->placing]);
        store_bind_text(s, 14, p->reason);
        return store_run(s, err);
}

static int write_notice(struct store_tx *tx, struct decisions *ds, const struct placed *p,
                        struct error *err)
{
        return p->notice ? out_store(tx, &ds->batch, p->notice, p->journaled, NULL, err) : 0;
}

static int write_decisions(struct store_tx *tx, void *arg, struct error *err)
{
        struct decisions *ds = arg;

        bus_batch_reset(&ds->batch);
        for (unsigned i = 0; i < ds->count; i++) {
                struct placed *p = &ds->items[i];
                int rc = 0;

                if (p->placing == NEW_TURN)
                        rc = write_turn(tx, ds, p, err);
                else if (p->placing == JOINED)
                        rc = write_join(tx, p, err);
                else if (p->remembered)
                        rc = note_heard(tx, p->lane_key, &p->lane, p->in, ds->now_ms, err);
                if (rc < 0 || write_log(tx, ds, p, err) < 0 || write_notice(tx, ds, p, err) < 0 ||
                    (p->effect && p->effect->write(tx, p->effect, err) < 0) ||
                    (p->extra.fn && p->extra.fn(tx, p->extra.arg, err) < 0))
                        return -1;
        }
        return bus_cursor_set(tx, ROAD_CURSOR, ds->cursor, err);
}

/* ---- after the commit ---- */

static void send_notice(struct road *r, struct placed *p)
{
        struct out *o = p->notice;

        p->notice = NULL;
        if (!o)
                return;
        if (p->journaled) {
                r->stats.sent++;
                outbox_adapter(r, o->d.adapter)->stats.last_sent_ms = o->d.created_ms;
                out_free(o);
        } else {
                outbox_enqueue(r, o);
        }
}

static void on_placed(struct road *r, struct placed *p)
{
        struct turn *t = p->turn;

        send_notice(r, p);
        if (p->effect)
                p->effect->committed(p->effect);
        if (!t) {
                incoming_free(p->in);
                return;
        }
        if (p->placing == JOINED) {
                t->joining--;
                turn_check_cancel(t);
                return;
        }
        t->lane->conversation = p->conversation;
        t->run.conversation = p->conversation;
        t->run.resets = p->resets;
        if (p->known == 0)
                t->run.reset_turn = p->begun;
        if (t->lane->joins_from < p->begun)
                t->lane->joins_from = p->begun;
        if (t->starts_now) {
                turn_begin(t);
                return;
        }
        t->phase = PHASE_QUEUED;
        turn_check_cancel(t);
}

static void placed_release(struct placed *p)
{
        free(p->reason);
        free(p->agent);
        free(p->rule);
        free(p->policy);
        free(p->inputs);
        free(p->lane_key);
        if (p->effect)
                p->effect->free(p->effect);
        buf_release(&p->story);
        out_free(p->notice);
}

static void decisions_free(struct decisions *ds)
{
        for (unsigned i = 0; i < ds->count; i++)
                placed_release(&ds->items[i]);
        free(ds->items);
        bus_batch_release(&ds->batch);
        free(ds);
}

static void on_decided(void *arg)
{
        struct decisions *ds = arg;
        struct road *r = ds->road;

        fault_point("lane.committed");
        r->deciding = false;
        bus_publish(r->bus, &ds->batch);
        for (unsigned i = 0; i < ds->count; i++) {
                if (ds->items[i].extra.fn)
                        ds->items[i].extra.done(ds->items[i].extra.arg);
        }
        for (unsigned i = 0; i < ds->count; i++)
                on_placed(r, &ds->items[i]);
        /*
         * a turn may have come due while it was joined, and new turns may be first in their lanes
         */
        for (unsigned i = 0; i < ds->count; i++) {
                struct turn *t = ds->items[i].turn;

                if (t && !t->starts_now)
                        lane_pump(r, t->lane);
        }
        decisions_free(ds);
        decide_pending(r);
}

/* ---- in batches ---- */

static int read_story(struct store_tx *tx, void *arg, struct error *err)
{
        struct decisions *ds = arg;
        struct placed *p = &ds->items[0];

        buf_clear(&p->story);
        return story_of_last(tx, p->in, &p->story, err);
}

static void store_decisions(struct decisions *ds)
{
        fault_point("lane.before_write");
        road_write(ds->road, "decisions", write_decisions, on_decided, ds);
}

static void on_story(void *arg, const struct error *err)
{
        struct decisions *ds = arg;
        struct placed *p = &ds->items[0];

        ds->road->writes--;
        if (err)
                log_warn("cannot read a story somebody asked for", LOG_S("why", err->text));
        make_notice(ds->road, p, err ? "Sorry, I cannot look that up right now." : p->story.data);
        store_decisions(ds);
}

/*
 * Looks at the next pending event. False: its decision needs what those before it have stored, and
 * is kept for the next batch.
 */
static bool place_next(struct road *r, struct decisions *ds)
{
        struct placed *p = &ds->items[ds->count];
        struct pending *next = STAILQ_FIRST(&r->pending);
        struct incoming *in = next->in;

        STAILQ_REMOVE_HEAD(&r->pending, next);
        r->pending_count--;
        free(next);
        place(r, p, in);
        if (p->asks_story && ds->count > 0) {
                r->asked = mem_dup(p, sizeof(*p));
                return false;
        }
        ds->cursor = in->event;
        ds->count++;
        return true;
}

static void take_asked(struct road *r, struct decisions *ds)
{
        ds->items[0] = *r->asked;
        ds->cursor = r->asked->in->event;
        ds->count = 1;
        free(r->asked);
        r->asked = NULL;
}

void decide_pending(struct road *r)
{
        size_t waiting = r->asked ? 1 : r->pending_count;
        struct decisions *ds;

        /* what an earlier life left is in its lanes first; what was asked is decided already */
        if (!r->resumed || r->deciding || waiting == 0 || (r->draining && !r->asked))
                return;
        if (waiting > MAX_DECISIONS)
                waiting = MAX_DECISIONS;
        ds = mem_zalloc(sizeof(*ds));
        ds->road = r;
        ds->items = mem_array(waiting, sizeof(*ds->items));
        ds->now_ms = clock_wall_ms();
        r->deciding = true;
        if (r->asked)
                take_asked(r, ds);
        while (ds->count < waiting && !ds->items[0].asks_story && place_next(r, ds))
                ;
        if (!ds->items[0].asks_story) {
                store_decisions(ds);
                return;
        }
        r->writes++;
        store_read(r->store, read_story, on_story, ds);
}

void decide_forget(struct road *r)
{
        if (!r->asked)
                return;
        incoming_free(r->asked->in);
        placed_release(r->asked);
        free(r->asked);
        r->asked = NULL;
}
