/*
 * Turns at the registry: which agent gets one, when, and what happens when it cannot.
 *
 *     agent_runs_start ──► WAITING ──► WORKING ──► agent_finish ──► turn_finish
 *               │             ▲           │
 *               │             └───────────┘  failover: the next agent of the list, same turn key
 *               └──► REFUSED ──► turn_finish, by the timer
 *
 * Another agent is asked only when the first certainly did nothing: its circuit is open, its queue
 * is full, or its call failed without effect. If it stored what it did, only an agent that goes on
 * from there (AGENT_RESUMES) is asked. It begins once the failover is stored, and after a crash the
 * turn goes on with it. No turn is worked on twice by accident.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agents_private.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"

#define NOT_CONFIGURED "No agent can answer: it is not configured."

static struct agent_run_list *bucket(struct agents *as, const struct turn_run *run)
{
        return &as->runs[(uint64_t)run->id % RUN_BUCKETS];
}

static struct agent_run *find_run(struct agents *as, const struct turn_run *run)
{
        struct agent_run *r;

        LIST_FOREACH(r, bucket(as, run), next) {
                if (r->run == run)
                        return r;
        }
        return NULL;
}

static void run_free(struct agents *as, struct agent_run *r)
{
        LIST_REMOVE(r, next);
        as->behind -= r->behind;
        if (r->state == AGENT_RUN_REFUSED)
                TAILQ_REMOVE(&as->refused, r, in_queue);
        buf_release(&r->record);
        free(r);
}

/* ---- journal events ---- */

struct event_write {
        struct agents *all; /* NULL once freed */
        struct bus_event *event;
        struct bus_batch batch;
        LIST_ENTRY(event_write) next;
};

static int append_event(struct store_tx *tx, void *arg, struct error *err)
{
        struct event_write *w = arg;

        bus_batch_reset(&w->batch);
        return bus_append(tx, &w->batch, w->event, NULL, err) < 0 ? -1 : 0;
}

static void on_written(void *arg, const struct error *err)
{
        struct event_write *w = arg;

        if (err)
                log_warn("cannot journal an event", LOG_S("type", w->event->type),
                         LOG_S("why", err->text));
        else if (w->all)
                bus_publish(w->all->env.bus, &w->batch);
        if (w->all)
                LIST_REMOVE(w, next);
        free(w->event);
        bus_batch_release(&w->batch);
        free(w);
}

/* Takes the payload. run may be NULL. */
static void journal(struct agents *as, const char *type, const struct turn_run *run,
                    struct buf *payload)
{
        struct bus_event e = { .type = type, .payload = payload->data };
        struct event_write *w;

        if (run) {
                e.adapter = run->adapter;
                e.channel = run->channel;
                e.thread = run->thread;
                e.trace = run->trace;
        }
        if (as->env.store) {
                w = mem_zalloc(sizeof(*w));
                w->all = as;
                w->event = bus_event_dup(&e);
                LIST_INSERT_HEAD(&as->event_writes, w, next);
                store_write(as->env.store, append_event, on_written, w);
        }
        buf_release(payload);
}

void agent_journal(struct agent *a, const char *type, struct buf *payload)
{
        journal(((struct agent_slot *)a)->all, type, NULL, payload);
}

static void journal_circuit(struct agent_slot *s, const char *type)
{
        struct buf payload;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "agent", s->agent.name);
        jsonw_int(&payload, "failures", s->breaker.failures);
        jsonw_opt(&payload, "why", s->breaker.state == BREAKER_CLOSED ? NULL : s->last_failure);
        jsonw_close(&payload, '}');
        journal(s->all, type, NULL, &payload);
}

static void journal_failover(struct agents *as, const struct turn_run *run, const char *from,
                             const char *to, const char *why)
{
        struct buf payload;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "turnId", run->key);
        jsonw_str(&payload, "from", from);
        jsonw_str(&payload, "to", to);
        jsonw_str(&payload, "why", why);
        jsonw_close(&payload, '}');
        journal(as, "turn.failover", run, &payload);
}

/* ---- slot queues ---- */

static bool has_place(const struct agent_slot *s)
{
        int64_t places = s->conf->common.concurrency;

        return places == 0 || (int64_t)s->working < places;
}

static bool has_queue_room(const struct agent_slot *s)
{
        return (int64_t)s->waiting < s->conf->common.queue;
}

static void enqueue(struct agent_run *r, struct agent_slot *s)
{
        r->slot = s;
        r->state = AGENT_RUN_WAITING;
        TAILQ_INSERT_TAIL(&s->queue, r, in_queue);
        s->waiting++;
        s->holds++;
}

/* Removes the turn from its slot. */
static void leave(struct agent_run *r)
{
        struct agent_slot *s = r->slot;

        if (!s)
                return;
        if (r->state == AGENT_RUN_WAITING) {
                TAILQ_REMOVE(&s->queue, r, in_queue);
                s->waiting--;
        } else {
                s->working--;
        }
        if (s->waiting > 0)
                timer_start(s->all->deferred, 0);
        r->slot = NULL;
        agent_slot_release(s);
}

/* ---- failover and refusal ---- */

static void add_record(struct agent_run *r, const char *agent, const char *why)
{
        buf_addf(&r->record, "%s%s: %s", r->record.len ? "; " : "", agent, why);
}

/* Ends the turn from the timer, because turn_finish must not precede the return of start. */
static void refuse(struct agents *as, struct agent_run *r, enum error_kind why, const char *notice)
{
        r->state = AGENT_RUN_REFUSED;
        TAILQ_INSERT_TAIL(&as->refused, r, in_queue);
        timer_start(as->deferred, 0);
        r->why = why;
        snprintf(r->notice, sizeof(r->notice), "%s", notice);
}

struct failover_store {
        struct agents *all;
        struct turn_run *run;
};

static void on_failover_stored(void *arg, bool stored)
{
        struct failover_store *f = arg;
        struct agents *as = f->all;
        struct agent_run *r = find_run(as, f->run);
        bool ends = f->run->interrupted; /* cancel follows */

        free(f);
        if (!r || ends || r->state == AGENT_RUN_REFUSED)
                return;
        r->failovers--;
        if (!stored) {
                leave(r);
                add_record(r, r->run->agent, "another process has this turn");
                refuse(as, r, ERR_CONFLICT, "");
        }
        timer_start(as->deferred, 0);
}

static void store_failover(struct agents *as, struct agent_run *r, const struct turn_failover *what)
{
        struct failover_store *f = mem_zalloc(sizeof(*f));

        *f = (struct failover_store){ as, r->run };
        r->failovers++;
        if (!turn_failed_over(r->run, what, on_failover_stored, f))
                free(f); /* cancel follows */
}

static bool resumes(const struct agent_slot *s)
{
        return agent_abilities(&s->agent) & AGENT_RESUMES;
}

/* Moves the turn to the next available agent of the failover list. False: none. */
static bool fail_over(struct agents *as, struct agent_run *r, const char *from, const char *why,
                      const struct turn_reply *spent)
{
        const struct agent_slot *first = map_get(&as->live, r->run->agent);
        const struct setting_list *others = first ? &first->conf->common.failover : NULL;
        struct agent_slot *s = NULL;

        while (!s && others && r->tried < others->count) {
                s = map_get(&as->live, others->items[r->tried++]);
                if (s && (s == first || (r->stored && !resumes(s)) ||
                          breaker_blocks(&s->breaker, loop_now_ms(as->loop)) ||
                          !(has_place(s) || has_queue_room(s))))
                        s = NULL;
        }
        if (!s)
                return false;
        log_warn("failing over to another agent", LOG_S("turn", r->run->key), LOG_S("from", from),
                 LOG_S("to", s->agent.name), LOG_S("why", why));
        journal_failover(as, r->run, from, s->agent.name, why);
        add_record(r, from, why);
        enqueue(r, s);
        store_failover(as, r,
                       &(struct turn_failover){ .from = from,
                                                .to = s->agent.name,
                                                .why = why,
                                                .tokens_in = spent->tokens_in,
                                                .tokens_cached = spent->tokens_cached,
                                                .tokens_out = spent->tokens_out,
                                                .cost_microusd = spent->cost_microusd });
        return true;
}

static void fail_over_or_refuse(struct agents *as, struct agent_run *r, const struct agent_slot *s,
                                enum error_kind kind, const char *notice, const char *why)
{
        if (fail_over(as, r, s->agent.name, why, &(struct turn_reply){ 0 }))
                return;
        add_record(r, s->agent.name, why);
        refuse(as, r, kind, notice);
}

static void on_circuit_open(struct agents *as, struct agent_run *r, const struct agent_slot *s)
{
        char why[300];

        snprintf(why, sizeof(why), "its circuit is open after %" PRId64 " failures, the last: %s",
                 s->breaker.failures, s->last_failure);
        fail_over_or_refuse(as, r, s, ERR_LIMIT,
                            "The agent is not available right now. Please try again later.", why);
}

/* ---- starting ---- */

static struct agent_run *next_waiting(const struct agent_slot *s)
{
        struct agent_run *r;

        TAILQ_FOREACH(r, &s->queue, in_queue)
                if (r->failovers == 0)
                        return r;
        return NULL;
}

/* Starts waiting turns while places are free. */
static void pump(struct agent_slot *s)
{
        struct agents *as = s->all;
        struct agent_run *r;

        while (has_place(s) && (r = next_waiting(s))) {
                r->pass = breaker_admit(&s->breaker, loop_now_ms(as->loop));
                if (r->pass == BREAKER_REFUSED) {
                        leave(r);
                        on_circuit_open(as, r, s);
                        continue;
                }
                TAILQ_REMOVE(&s->queue, r, in_queue);
                s->waiting--;
                s->working++;
                r->state = AGENT_RUN_WORKING;
                /* the history may have been read for another agent of the list */
                r->run->history_count =
                        (agent_abilities(&s->agent) & AGENT_HISTORY) || r->run->mode == MODE_AMBIENT
                                ? r->history_count
                                : 0;
                r->run->agent_data = NULL; /* what an agent that failed had there is gone */
                s->agent.ops->start(&s->agent, r->run);
        }
}

/* Of the failover list, before a crash. */
static size_t count_tried(const struct agents *as, const struct turn_run *run)
{
        const struct agent_slot *first = map_get(&as->live, run->agent);
        size_t i = 0;

        while (run->goes_on_with && first && i < first->conf->common.failover.count)
                if (strcmp(first->conf->common.failover.items[i++], run->goes_on_with) == 0)
                        break;
        return i;
}

void agent_runs_start(struct agents *as, struct turn_run *run)
{
        const char *agent = run->goes_on_with ? run->goes_on_with : run->agent;
        struct agent_run *r = mem_zalloc(sizeof(*r));
        struct agent_slot *s = map_get(&as->live, agent);
        bool at_once = s && s->waiting == 0 && has_place(s);
        char why[80];

        r->run = run;
        r->history_count = run->history_count;
        r->tried = count_tried(as, run);
        buf_init(&r->record, 0);
        LIST_INSERT_HEAD(bucket(as, run), r, next);
        if (!s) {
                buf_addf(&r->record, "there is no agent '%s'", agent);
                refuse(as, r, ERR_MISSING, NOT_CONFIGURED);
        } else if (breaker_blocks(&s->breaker, loop_now_ms(as->loop))) {
                on_circuit_open(as, r, s);
        } else if (!at_once && !has_queue_room(s)) {
                snprintf(why, sizeof(why), "%zu turns wait for it already (queue)", s->waiting);
                fail_over_or_refuse(as, r, s, ERR_LIMIT,
                                    "The agent is busy right now. Please try again later.", why);
        } else {
                enqueue(r, s);
                if (at_once)
                        pump(s);
        }
}

/* ---- deferred work ---- */

static struct agent_run *next_behind(struct agents *as)
{
        struct agent_run *r;

        for (size_t i = 0; as->behind > 0 && i < RUN_BUCKETS; i++)
                LIST_FOREACH(r, &as->runs[i], next)
                        if (r->behind)
                                return r;
        return NULL;
}

/* Tells agents about messages behind their turns, one at a time: it may end a turn. */
static void tell_waiting(struct agents *as)
{
        struct agent_run *r;

        while ((r = next_behind(as))) {
                r->behind = false;
                as->behind--;
                if (r->state == AGENT_RUN_WORKING && r->slot->agent.ops->waiting)
                        r->slot->agent.ops->waiting(&r->slot->agent, r->run);
        }
}

void agent_runs_pump(struct agents *as)
{
        struct agent_run *r;
        void *value;

        for (size_t i = 0; map_each(&as->live, &i, NULL, &value);)
                pump(value);
        tell_waiting(as);
        /* one at a time: turn_finish may start and cancel others */
        while ((r = TAILQ_FIRST(&as->refused))) {
                struct turn_run *run = r->run;
                char *record = mem_strdup(r->record.data), *notice = mem_strdup(r->notice);
                struct turn_reply reply = { .kind = r->why, .text = notice, .error = record };

                run_free(as, r);
                turn_finish(run, &reply);
                free(record);
                free(notice);
        }
}

void agent_runs_move(struct agent_slot *from, struct agent_slot *to)
{
        struct agents *as = from->all;
        struct agent_run *r;

        while ((r = TAILQ_FIRST(&from->queue))) {
                leave(r);
                if (to)
                        enqueue(r, to);
                else
                        fail_over_or_refuse(as, r, from, ERR_MISSING, NOT_CONFIGURED,
                                            "it is no longer configured");
                timer_start(as->deferred, 0);
        }
}

/* ---- ending turns ---- */

static const char *reason(const struct turn_reply *reply)
{
        return reply->error ? reply->error : error_kind_name(reply->kind);
}

/* Records the result with the breaker and removes the turn from its slot. */
static struct agent_run *end_work(struct agent_slot *s, struct turn_run *run,
                                  const struct turn_reply *reply)
{
        struct agent_run *r = find_run(s->all, run);
        struct breaker_limits limits = { s->conf->common.breaker_failures,
                                         s->conf->common.breaker_seconds * 1000 };
        enum breaker_change change = breaker_record(&s->breaker, &limits, r->pass, reply->kind,
                                                    loop_now_ms(s->all->loop));

        s->health.turns++;
        if (reply->kind != ERR_NONE) {
                s->health.failures++;
                snprintf(s->last_failure, sizeof(s->last_failure), "%s", reason(reply));
        }
        if (reply->kind != ERR_CANCELLED)
                agent_slot_observe(s, reply->kind == ERR_NONE, -1, s->last_failure);
        if (change == BREAKER_OPENED) {
                log_warn("agent failed too often; circuit opened", LOG_S("agent", s->agent.name),
                         LOG_I("failures", s->breaker.failures), LOG_S("why", s->last_failure));
                journal_circuit(s, "agent.circuit_opened");
        } else if (change == BREAKER_RECOVERED) {
                log_info("agent recovered; circuit closed", LOG_S("agent", s->agent.name));
                journal_circuit(s, "agent.circuit_closed");
        }
        leave(r);
        return r;
}

void agent_finish(struct agent *a, struct turn_run *run, const struct turn_reply *reply,
                  enum agent_effect effect)
{
        struct agent_slot *s = (struct agent_slot *)a;
        struct agents *as = s->all;
        struct agent_run *r = end_work(s, run, reply);
        bool failed = reply->kind != ERR_NONE;
        struct turn_reply whole = *reply;
        char *record = NULL;

        r->stored = r->stored || effect == EFFECT_STORED;
        if (failed && effect != EFFECT_POSSIBLE &&
            fail_over(as, r, s->agent.name, reason(reply), reply))
                return;
        if (failed && r->record.len) { /* with the agents tried before */
                record = mem_printf("%s; then %s", r->record.data,
                                    reply->error ? reply->error : "it failed");
                whole.error = record;
        }
        run_free(as, r);
        turn_finish(run, &whole);
        free(record);
}

static void stop_work(struct agent_run *r)
{
        if (r->state != AGENT_RUN_WORKING)
                return;
        r->slot->agent.ops->cancel(&r->slot->agent, r->run);
        breaker_forget(&r->slot->breaker, r->pass);
}

void agent_runs_waiting(struct agents *as, struct turn_run *run)
{
        struct agent_run *r = find_run(as, run);

        if (!r || r->behind || r->state != AGENT_RUN_WORKING || !r->slot->agent.ops->waiting)
                return;
        r->behind = true;
        as->behind++;
        timer_start(as->deferred, 0);
}

void agent_runs_cancel(struct agents *as, struct turn_run *run)
{
        struct agent_run *r = find_run(as, run);

        if (!r)
                return;
        stop_work(r);
        leave(r);
        run_free(as, r);
}

bool agent_runs_answer(struct agents *as, struct turn_run *run, const struct turn_reply *reply)
{
        struct agent_run *r = find_run(as, run);

        if (!r || !r->slot)
                return false;
        stop_work(r);
        agent_finish(&r->slot->agent, run, reply, EFFECT_POSSIBLE);
        return true;
}

void agent_runs_drop(struct agents *as)
{
        struct event_write *w;
        struct agent_run *r;

        for (size_t i = 0; i < RUN_BUCKETS; i++) {
                while ((r = LIST_FIRST(&as->runs[i]))) {
                        LIST_REMOVE(r, next);
                        if (r->state == AGENT_RUN_WORKING)
                                r->slot->agent.ops->cancel(&r->slot->agent, r->run);
                        buf_release(&r->record);
                        free(r);
                }
        }
        while ((w = LIST_FIRST(&as->event_writes))) {
                LIST_REMOVE(w, next);
                w->all = NULL;
        }
}
