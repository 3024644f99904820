/*
 * decide: decides events and places them in conversations.
 *
 * Events are decided in commit order and stored in batches, one write at a time. A decision is made
 * once, in memory, and its write is repeated until it commits. Only then does the cursor "dispatch"
 * move, so events are decided again after a crash.
 */
#include "road/inbox/decide.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/report/trace_report.h"
#include "road/road_state.h"
#include "road/turn/approval.h"
#include "rows/conversation_row.h"
#include "rows/trigger_log_row.h"

#define PARTS_MS      1500 /* between parts of a message */
#define MAX_DECISIONS 512  /* per transaction */

enum decided_as { SKIPPED, EXPIRED, NEW_TURN, JOINED, CARRIED_OUT };

/* One event's decision, with everything the writer thread needs. */
struct decided {
        enum decided_as as;
        struct incoming *in; /* NEW_TURN, JOINED: the turn's; else ours */
        struct turn *turn;
        char *reason;
        char *agent, *rule; /* also set when skipped */
        char *rules;        /* that were tried; may be NULL */
        struct tx_extra extra;
        struct effect *effect;       /* CARRIED_OUT: may be NULL */
        struct delivery_job *notice; /* no turn: sent to the chat; may be NULL */
        int64_t notice_id;
        bool asks_report;  /* /why: the notice is the trace report */
        struct buf report; /* result of reading it */

        /* NEW_TURN and JOINED */
        char *inputs; /* of the turn, with this event */
        char *policy; /* NEW_TURN: as stored; NULL: a plain reply */
        int64_t due_ms;
        bool starts; /* stored as running */

        /* its conversation; agent NULL: none */
        struct lane_name lane;
        char *lane_key;            /* SKIPPED: the transcript gets the text; else NULL */
        int64_t known;             /* the conversation's number, if the lane has it */
        int64_t conversation;      /* result */
        int64_t reset_turn;        /* result, if the number was not known */
        struct reset_turns resets; /* result */
};

struct decisions {
        struct road *road;
        struct decided *items;
        unsigned count;
        int64_t now_ms;
        int64_t cursor;
        struct bus_batch batch;
};

void decide_later(struct road *r, struct incoming *in)
{
        struct pending_event *p = mem_zalloc(sizeof(*p));

        p->in = in;
        STAILQ_INSERT_TAIL(&r->inbox.pending, p, next);
        r->inbox.pending_count++;
}

static struct incoming *take_pending(struct inbox *i)
{
        struct pending_event *p = STAILQ_FIRST(&i->pending);
        struct incoming *in = p->in;

        STAILQ_REMOVE_HEAD(&i->pending, next);
        i->pending_count--;
        free(p);
        return in;
}

/* ---- placing a message ---- */

static bool is_same_sender(const struct incoming *a, const struct incoming *b)
{
        return a->sender_id && b->sender_id ? strcmp(a->sender_id, b->sender_id) == 0
                                            : a->sender_id == b->sender_id;
}

/* Does it wait for files, or will it as soon as its messages are stored? */
static bool waits_for_files(const struct road *r, const struct turn *t)
{
        bool storing = t->phase == PHASE_STORING || t->queue.changes > 0;

        for (unsigned i = 0; storing && i < t->run.input_count; i++)
                if (turn_files_needed(r, t->inputs[i]))
                        return true;
        return t->files.pending > 0;
}

/* Would one sender wait for the files of another, if the message joined the turn? */
static bool mixes_files(const struct road *r, const struct turn *t, const struct incoming *in)
{
        bool waits = turn_files_needed(r, in);
        const struct turn *other;

        TAILQ_FOREACH(other, &t->lane->waiting, in_lane) {
                if (!waits_for_files(r, other))
                        continue;
                waits = waits || turn_has_sender(other, in->sender_id);
                for (unsigned i = 0; i < t->run.input_count; i++)
                        if (!is_same_sender(t->inputs[i], in) &&
                            turn_has_sender(other, t->inputs[i]->sender_id))
                                return true;
        }
        return waits && turn_has_others(t, in->sender_id);
}

/*
 * A queued turn takes further messages of its sender until its debounce ends. An agent with
 * AGENT_BATCHES gets everything that arrived while the lane was busy, but two people who write at
 * the same moment start two turns. Answered and unanswered messages never share a turn.
 */
static bool may_join(struct road *r, struct turn *t, const struct incoming *in,
                     const struct decision *d)
{
        enum reply_mode mode = t->policy.mode;
        bool same_sender = is_same_sender(turn_last_input(t), in);

        if (incoming_is_scheduled(in) || incoming_is_scheduled(turn_last_input(t)))
                return false; /* each is an event of its own */
        if (t->cancel.pending || t->cancel.why || t->run.id < t->lane->reset_turn ||
            (t->phase != PHASE_QUEUED && t->phase != PHASE_STORING) ||
            t->queue.held_in == &r->turns.ready ||
            t->queue.held_in == &outbox_adapter(r, t->run.adapter)->held)
                return false;
        if (mode != d->policy.mode &&
            !(reply_mode_answers(mode) && reply_mode_answers(d->policy.mode)))
                return false;
        if (mode != MODE_AMBIENT && !(same_sender && t->queue.due_mono > loop_now_ms(r->loop)) &&
            !((same_sender || t->lane->running) &&
              (r->agents.abilities(r->agents.agents, t->run.agent) & AGENT_BATCHES)))
                return false;
        return !mixes_files(r, t, in);
}

/* Never a turn before the sender's last one. NULL: start a new turn. */
static struct turn *find_turn_to_join(struct road *r, struct lane *lane, const struct incoming *in,
                                      const struct decision *d)
{
        struct turn *t;

        TAILQ_FOREACH_REVERSE(t, &lane->waiting, turn_list, in_lane)
        {
                if (may_join(r, t, in, d))
                        return t;
                if (turn_has_sender(t, in->sender_id))
                        return NULL;
        }
        return NULL;
}

static struct lane_name lane_name_of(const struct incoming *in, const char *agent, bool per_person)
{
        return (struct lane_name){ .adapter = in->adapter,
                                   .channel = in->channel,
                                   .thread = in->thread,
                                   .agent = agent,
                                   .person = per_person ? in->sender_id : NULL };
}

struct place_query {
        struct road *road;
        const struct incoming *in;
        struct lane *lane;   /* NULL: not yet asked */
        struct turn *joined; /* NULL: a new turn */
        char *refusal;
};

/* Is the turn the last time's of this schedule? Its username is the schedule's id. */
static bool is_last_time(const struct turn *t, const struct incoming *in)
{
        const struct incoming *first = t->inputs[0];

        return incoming_is_scheduled(first) && first->sender_username && in->sender_username &&
               strcmp(first->sender_username, in->sender_username) == 0;
}

/*
 * One open turn per schedule: one that takes longer than its interval would pile up and cost. A
 * schedule that makes up for each missed time queues them.
 */
static const struct turn *find_last_time(const struct lane *lane, const struct incoming *in)
{
        json_t *metadata =
                in->metadata ? json_read(in->metadata, strlen(in->metadata), NULL) : NULL;
        bool queues = json_flag(metadata, "queues", false);
        const struct turn *t;

        json_decref(metadata);
        if (queues)
                return NULL;
        if (lane->running && is_last_time(lane->running, in))
                return lane->running;
        TAILQ_FOREACH(t, &lane->waiting, in_lane) {
                if (is_last_time(t, in))
                        return t;
        }
        return NULL;
}

static enum placement on_place_query(void *arg, struct decision *d)
{
        struct place_query *q = arg;
        struct road *r = q->road;
        struct lane_name name = lane_name_of(q->in, d->agent, d->per_person);
        const struct turn *before;

        q->lane = lane_get(r, &name);
        before = incoming_is_scheduled(q->in) ? find_last_time(q->lane, q->in) : NULL;
        if (before) {
                q->refusal = mem_printf("the turn of the schedule's last time, trn-%lld, has not "
                                        "ended",
                                        (long long)before->run.id);
                d->reason = q->refusal;
                return PLACEMENT_REFUSED;
        }
        if (q->lane->mailbox >= r->limits.mailbox) {
                q->refusal = mem_printf(
                        "%lld messages already wait in this conversation (limits.mailbox)",
                        (long long)q->lane->mailbox);
                d->reason = q->refusal;
                return PLACEMENT_REFUSED;
        }
        q->joined = find_turn_to_join(r, q->lane, q->in, d);
        return q->joined ? PLACEMENT_JOINS_TURN : PLACEMENT_NEW_TURN;
}

static bool on_approval_query(void *arg, bool *approves)
{
        const struct place_query *q = arg;

        return approval_is_answer(q->in->text, approves) && approval_is_answered_by(q->road, q->in);
}

/* Takes the event into its turn, which is new or waits in the lane. */
static void place(struct decided *p, const struct place_query *q, const struct decision *d)
{
        struct road *r = q->road;
        int64_t debounce_ms =
                p->in->more_follows && d->debounce_ms < PARTS_MS ? PARTS_MS : d->debounce_ms;
        int64_t due = loop_now_ms(r->loop) + debounce_ms;
        struct lane *lane = q->lane;
        struct turn *t = q->joined;

        if (t) {
                p->as = JOINED;
                turn_add_input(t, p->in);
                t->queue.changes++;
                lane->mailbox++;
                if (due > t->queue.due_limit)
                        due = t->queue.due_limit;
                /* relative to the stored time, because the wall clock may have jumped */
                t->queue.due_ms += due - t->queue.due_mono;
                t->queue.due_mono = due;
        } else {
                p->as = NEW_TURN;
                t = turn_new(r, lane,
                             &(struct turn_run){ .agent = d->agent,
                                                 .rule = d->rule,
                                                 .session = d->session,
                                                 .adapter = p->in->adapter,
                                                 .channel = p->in->channel,
                                                 .thread = p->in->thread,
                                                 .trace = p->in->trace },
                             &d->policy);
                p->policy = reply_policy_write(&d->policy);
                turn_add_input(t, p->in);
                t->queue.due_mono = t->queue.due_limit = due;
                if (d->debounce_max_ms > debounce_ms)
                        t->queue.due_limit += d->debounce_max_ms - debounce_ms;
                t->queue.due_ms = clock_wall_ms() + debounce_ms;
                p->starts = debounce_ms == 0 && !lane->running && TAILQ_EMPTY(&lane->waiting) &&
                            turn_may_start(r, p->in->adapter) && !turn_files_needed(r, p->in) &&
                            session_lock_is_free(r, d->agent, d->session);
                if (p->starts) {
                        turn_enter(t, PHASE_STORING_RUNNING);
                        lane_set_running(t);
                        t->run.attempt = 1;
                        t->run.fence = 1;
                } else {
                        lane_append(lane, t);
                }
        }
        p->turn = t;
        p->known = lane->conversation;
        p->inputs = turn_inputs_text(t);
        p->due_ms = t->queue.due_ms;
}

/* ---- deciding an event ---- */

/* Only the first part: notices are short. In a group the others need not see it. */
static struct delivery_job *make_notice(struct road *r, const struct incoming *in, const char *said)
{
        char *text = command_spell(r, in->adapter, said);
        unsigned can = r->platforms.abilities(r->platforms.adapters, in->adapter);
        bool for_one = (can & ADAPTER_EPHEMERAL) && in->chat == CHAT_GROUP;
        struct rendered parts = { 0 };
        struct delivery_job *j;
        struct buf payload;
        struct error err;

        if (r->platforms.render(r->platforms.adapters, in->adapter, text, false, &parts, &err) < 0)
                log_warn("cannot render a notice; sending it as it is", LOG_S("why", err.text));
        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "text", parts.count > 0 ? parts.parts[0].text : text);
        jsonw_opt(&payload, "plain", parts.count > 0 ? parts.parts[0].plain : NULL);
        jsonw_opt(&payload, "replyTo", in->id);
        jsonw_opt(&payload, "onlyFor", for_one ? in->sender_id : NULL);
        jsonw_close(&payload, '}');
        j = delivery_new(r, &(struct delivery){
                                    .adapter = in->adapter,
                                    .channel = in->channel,
                                    .thread = in->thread,
                                    .kind = DELIVER_SEND,
                                    .class = PACE_FINAL,
                                    .payload = payload.data,
                                    .trace = in->trace,
                                    .unsampled = !id_parent_samples(in->traceparent, in->trace) });
        buf_release(&payload);
        rendered_release(&parts);
        free(text);
        return j;
}

static void carry_out(struct road *r, struct decided *p, const struct decision *d)
{
        enum road_command what = d->command;
        struct buf answer;

        buf_init(&answer, 0);
        p->as = CARRIED_OUT;
        if (what == COMMAND_APPROVE || what == COMMAND_REFUSE)
                p->effect = approval_command_new(
                        r,
                        &(struct approval_answer){ .in = p->in,
                                                   .approves = what == COMMAND_APPROVE,
                                                   .admin = d->by_admin,
                                                   .trusted = d->by_trusted },
                        &answer);
        else
                p->effect = command_new(r, what, &p->lane, p->in, &answer);
        p->reason = mem_printf("the command /%s was carried out", command_name(what));
        p->asks_report = what == COMMAND_WHY || p->effect->report;
        if (answer.len > 0)
                p->notice = make_notice(r, p->in, answer.data);
        buf_release(&answer);
}

/* An edit or deletion of a queued message affects only its turn. */
static bool decide_edit(struct road *r, struct decided *p)
{
        struct turn *t;

        p->effect = message_edit_new(r, p->in, &t, &p->reason);
        if (!p->effect)
                return false;
        p->as = CARRIED_OUT;
        p->agent = mem_strdup(t->run.agent);
        p->rule = mem_strdup(t->run.rule);
        return true;
}

static void decide(struct road *r, struct decided *p, struct incoming *in)
{
        struct place_query q = { .road = r, .in = in };
        struct decision d = { 0 };

        p->in = in;
        buf_init(&p->report, 0);
        if ((strcmp(in->type, EVENT_MESSAGE_EDITED) == 0 ||
             strcmp(in->type, EVENT_MESSAGE_DELETED) == 0) &&
            decide_edit(r, p))
                return;
        r->dispatch.decide(r->dispatch.dispatch, in,
                           &(struct placement_query){ .ask = on_place_query,
                                                      .answers_approval = on_approval_query,
                                                      .arg = &q },
                           &d);
        p->agent = mem_strdup(d.agent);
        p->rule = mem_strdup(d.rule);
        p->rules = mem_strdup(d.rules);
        p->extra = d.extra;
        p->lane = lane_name_of(in, p->agent, d.per_person);
        p->effect = d.effect;
        p->asks_report = d.effect && d.effect->report;
        if (d.trigger)
                place(p, &q, &d);
        else if (d.command != COMMAND_NONE && d.command < COMMAND_HANDLED)
                carry_out(r, p, &d);
        else
                p->reason = mem_strdup(d.reason);
        if (!d.trigger && q.lane)
                lane_free_if_idle(r, q.lane);
        free(q.refusal);
        if (p->as == SKIPPED) {
                if (d.remember && d.agent)
                        p->lane_key = lane_key(&p->lane);
                if (d.expired)
                        p->as = EXPIRED;
                else if (d.notice)
                        p->notice = make_notice(r, in, d.notice);
                if (d.command == COMMAND_HANDLED || d.effect)
                        p->as = CARRIED_OUT;
        }
        if (!p->turn && !p->notice && !p->asks_report && deferred_reply_is_open(in))
                p->notice = deferred_reply_cancel(r, in, NULL);
        if ((p->notice || p->asks_report) && !numbers_take(&r->delivery_numbers, 1, &p->notice_id))
                abort(); /* decide_pending limits the batch to the numbers left */
        if (p->notice)
                p->notice->d.id = p->notice_id;
}

/* ---- storing decisions ---- */

static int write_turn(struct store_tx *tx, struct decisions *ds, struct decided *p,
                      struct error *err)
{
        const struct lane_name *n = &p->lane;
        struct turn *t = p->turn;
        struct reset_scope scope = { n->adapter, n->channel, n->thread, p->in->sender_id };
        struct conversation_key key = { .lane = t->lane->key,
                                        .chat = { n->adapter, n->channel, n->thread },
                                        .agent = n->agent,
                                        .person = n->person };
        struct turn_row row = {
                .id = t->run.id,
                .agent = t->run.agent,
                .rule = t->run.rule,
                .state = p->starts ? TURN_RUNNING : TURN_QUEUED,
                .inputs = p->inputs,
                .trace = t->trace,
                .attempt = p->starts ? 1 : 0,
                .fence = p->starts ? 1 : 0,
                .owner = p->starts ? ds->road->owner : NULL,
                .due_ms = p->due_ms,
                .created_ms = ds->now_ms,
                .started_ms = p->starts ? ds->now_ms : 0,
                .session = t->run.session,
                .reply_policy = p->policy,
        };

        p->conversation = p->known;
        if (p->known == 0 &&
            conversation_row_touch(tx, &key, ds->now_ms, &p->conversation, &p->reset_turn, err) < 0)
                return -1;
        row.conversation = p->conversation;
        if (reset_row_get(tx, &scope, t->run.id, &p->resets, err) < 0 ||
            turn_row_insert(tx, &row, err) < 0)
                return -1;
        return p->starts ? turn_append_started(tx, &ds->batch, t, ds->now_ms, err) : 0;
}

/* Handed over to a human: no turn, but the agent's transcript gets the message. */
static int write_remembered(struct store_tx *tx, const struct decisions *ds,
                            const struct decided *p, struct error *err)
{
        const struct lane_name *n = &p->lane;
        const struct incoming *in = p->in;
        struct conversation_key key = { .lane = p->lane_key,
                                        .chat = { n->adapter, n->channel, n->thread },
                                        .agent = n->agent,
                                        .person = n->person };
        struct transcript_row row = {
                .role = "user",
                .name = in->sender_name ? in->sender_name : in->sender_username,
                .text = in->text,
                .time_ms = ds->now_ms,
        };
        int64_t reset_turn;

        if (!in->text || in->text[0] == '\0')
                return 0;
        if (conversation_row_touch(tx, &key, ds->now_ms, &row.conversation, &reset_turn, err) < 0)
                return -1;
        return transcript_row_insert(tx, &row, err);
}

static int write_log(struct store_tx *tx, const struct decisions *ds, const struct decided *p,
                     struct error *err)
{
        static const enum trigger_status statuses[] = {
                [SKIPPED] = TRIGGER_SKIPPED,  [EXPIRED] = TRIGGER_EXPIRED,
                [NEW_TURN] = TRIGGER_QUEUED,  [JOINED] = TRIGGER_QUEUED,
                [CARRIED_OUT] = TRIGGER_DONE,
        };
        const struct incoming *in = p->in;
        struct trigger_log_row row = {
                .event = in->event,
                .time_ms = ds->now_ms,
                .event_type = in->type,
                .adapter = in->adapter,
                .channel = in->channel,
                .thread = in->thread,
                .sender = in->sender_id,
                .sender_name = in->sender_name ? in->sender_name : in->sender_username,
                .agent = p->agent,
                .rule = p->rule,
                .turn = p->turn ? p->turn->run.id : 0,
                .trace = in->trace,
                .status = statuses[p->as],
                .reason = p->reason,
                .rules = p->rules,
        };

        return trigger_log_row_insert(tx, &row, err);
}

static int write_decisions(struct store_tx *tx, void *arg, struct error *err)
{
        struct decisions *ds = arg;

        bus_batch_reset(&ds->batch);
        for (unsigned i = 0; i < ds->count; i++) {
                struct decided *p = &ds->items[i];
                int rc = 0;

                if (p->as == NEW_TURN)
                        rc = write_turn(tx, ds, p, err);
                else if (p->as == JOINED)
                        rc = turn_row_join(tx, p->turn->run.id, p->inputs, p->due_ms, err);
                else if (p->lane_key)
                        rc = write_remembered(tx, ds, p, err);
                if (rc < 0 || write_log(tx, ds, p, err) < 0 ||
                    (p->notice && delivery_store(tx, &ds->batch, p->notice, err) < 0) ||
                    (p->extra.fn && p->extra.fn(tx, p->extra.arg, err) < 0) ||
                    (p->effect && p->effect->write(tx, p->effect, err) < 0))
                        return -1;
        }
        return bus_cursor_set(tx, ROAD_CURSOR, ds->cursor, err);
}

/* ---- after the commit ---- */

static void send_notice(struct road *r, struct decided *p)
{
        struct delivery_job *j = p->notice;

        p->notice = NULL;
        if (!j)
                return;
        if (!j->journaled) {
                outbox_enqueue(r, j);
                return;
        }
        outbox_count_journaled(r, j->d.adapter, 1, j->d.created_ms);
        delivery_free(j);
}

static void decided_release(struct decided *p)
{
        free(p->reason);
        free(p->agent);
        free(p->rule);
        free(p->rules);
        free(p->policy);
        free(p->inputs);
        free(p->lane_key);
        if (p->effect)
                p->effect->free(p->effect);
        buf_release(&p->report);
        delivery_free(p->notice);
}

static void decisions_free(struct decisions *ds)
{
        free(ds->items);
        bus_batch_release(&ds->batch);
        free(ds);
}

/* It is not stored; the next run decides the event again. */
static void decided_discard(struct decided *p, const struct error *why)
{
        if (p->extra.fn)
                p->extra.done(p->extra.arg, why);
        if (!p->turn)
                incoming_free(p->in);
        decided_release(p);
}

static void on_stored(void *arg, const struct error *err)
{
        struct decisions *ds = arg;
        struct road *r = ds->road;

        if (err) { /* `deciding` stays: a later decision must not move the cursor past these */
                for (unsigned i = 0; i < ds->count; i++)
                        decided_discard(&ds->items[i], err);
                decisions_free(ds);
                return;
        }
        fault_point("lane.committed");
        r->inbox.deciding = false;
        bus_defer(r->bus); /* extras and effects have batches of their own */
        bus_publish(r->bus, &ds->batch);
        for (unsigned i = 0; i < ds->count; i++) {
                if (ds->items[i].extra.fn)
                        ds->items[i].extra.done(ds->items[i].extra.arg, NULL);
        }
        for (unsigned i = 0; i < ds->count; i++) {
                struct decided *p = &ds->items[i];
                struct turn *t = p->turn;

                send_notice(r, p);
                if (p->effect)
                        p->effect->committed(p->effect);
                if (!t) {
                        incoming_free(p->in);
                        continue;
                }
                if (p->as == JOINED) {
                        t->queue.changes--;
                        turn_files_want(t, p->in);
                        turn_check_cancel(t);
                        continue;
                }
                t->lane->conversation = p->conversation;
                t->run.conversation = p->conversation;
                t->run.resets = p->resets;
                if (p->known == 0)
                        t->run.reset_turn = p->reset_turn;
                if (t->lane->reset_turn < p->reset_turn)
                        t->lane->reset_turn = p->reset_turn;
                if (p->starts) {
                        turn_prepare(t);
                } else {
                        turn_enter(t, PHASE_QUEUED);
                        turn_files_want(t, p->in);
                        turn_check_cancel(t);
                }
        }
        /* new turns may be first in their lanes; joined ones may have come due */
        for (unsigned i = 0; i < ds->count; i++) {
                struct decided *p = &ds->items[i];

                if (p->turn && !p->starts)
                        lane_pump(r, p->turn->lane);
                decided_release(p);
        }
        bus_flush(r->bus);
        decisions_free(ds);
        decide_pending(r);
}

/* ---- batches ---- */

static int read_report(struct store_tx *tx, void *arg, struct error *err)
{
        struct decided *p = ((struct decisions *)arg)->items;

        buf_clear(&p->report);
        return p->effect->report ? p->effect->report(tx, p->effect, &p->report, err)
                                 : trace_report_last(tx, p->in, &p->report, err);
}

static void on_report(void *arg, const struct error *err)
{
        struct decisions *ds = arg;
        struct road *r = ds->road;
        struct decided *p = &ds->items[0];

        r->writes--;
        if (err)
                log_warn("cannot read a trace report", LOG_S("why", err->text));
        if (err)
                p->notice = make_notice(r, p->in, "Sorry, I cannot look that up right now.");
        else if (p->report.len > 0)
                p->notice = make_notice(r, p->in, p->report.data);
        else if (deferred_reply_is_open(p->in))
                p->notice = deferred_reply_cancel(r, p->in, NULL);
        if (p->notice)
                p->notice->d.id = p->notice_id;
        fault_point("lane.before_write");
        road_write(r, "decisions", write_decisions, on_stored, ds);
}

void decide_pending(struct road *r)
{
        struct inbox *in = &r->inbox;
        size_t waiting = in->asked ? 1 : in->pending_count;
        int64_t turns = numbers_left(&r->turn_numbers),
                deliveries = numbers_left(&r->delivery_numbers);
        struct decisions *ds;

        /* turns of an earlier run enter their lanes first */
        if (!r->resumed || in->deciding || waiting == 0 || (r->draining && !in->asked))
                return;
        if (waiting > MAX_DECISIONS)
                waiting = MAX_DECISIONS;
        /* each takes at most one turn and one delivery number */
        if ((int64_t)waiting > turns)
                waiting = (size_t)turns;
        if ((int64_t)waiting > deliveries)
                waiting = (size_t)deliveries;
        if (waiting == 0)
                return; /* road_numbers_refilled calls again */
        ds = mem_zalloc(sizeof(*ds));
        ds->road = r;
        ds->items = mem_array(waiting, sizeof(*ds->items));
        ds->now_ms = clock_wall_ms();
        in->deciding = true;
        if (in->asked) {
                ds->items[ds->count++] = *in->asked;
                free(in->asked);
                in->asked = NULL;
        }
        while (ds->count < waiting && !ds->items[0].asks_report) {
                struct decided *p = &ds->items[ds->count];

                decide(r, p, take_pending(in));
                if (p->asks_report && ds->count > 0) {
                        /* its report needs the other decisions stored: next batch */
                        in->asked = mem_dup(p, sizeof(*p));
                        break;
                }
                ds->count++;
        }
        ds->cursor = ds->items[ds->count - 1].in->event;
        if (ds->items[0].asks_report) {
                r->writes++;
                store_read(r->store, read_report, on_report, ds);
        } else {
                fault_point("lane.before_write");
                road_write(r, "decisions", write_decisions, on_stored, ds);
        }
}

void decide_release(struct road *r, const struct error *why)
{
        struct decided *asked = r->inbox.asked;

        if (asked) {
                decided_discard(asked, why);
                free(asked);
        }
        while (r->inbox.pending_count > 0)
                incoming_free(take_pending(&r->inbox));
}
