/*
 * Turns at the registry: who takes one, when, and what happens when that one cannot.
 *
 *     agents_start ──► place ──► WAITS ──► WORKS ──► agent_finish ──► turn_finish
 *                        ▲         │         │
 *                        └─────────┴─────────┘  failover: another agent of the list, with the same
 *                                               turn key
 *                        └──► REFUSED ──► turn_finish, from the loop
 *
 * Another agent is asked only when the first certainly did nothing: its circuit is open, its queue
 * is full, or its call failed without effect (EFFECT_NONE). A turn is never worked on twice by
 * accident.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agents_private.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

static void place(struct agents *as, struct agent_run *r, struct agent_slot *in);

static const struct agent_common *common_of(const struct agent_slot *in)
{
        return &in->conf->common;
}

void agent_runs_init(struct agents *as)
{
        for (size_t i = 0; i < RUN_BUCKETS; i++)
                LIST_INIT(&as->running[i]);
        TAILQ_INIT(&as->refused);
}

static struct agent_run_list *bucket(struct agents *as, int64_t turn)
{
        return &as->running[(uint64_t)turn % RUN_BUCKETS];
}

static void run_free(struct agents *as, struct agent_run *r)
{
        LIST_REMOVE(r, next);
        if (r->state == AGENT_RUN_REFUSED)
                TAILQ_REMOVE(&as->refused, r, next_refused);
        buf_release(&r->record);
        free(r);
}

static struct agent_run *find_run(struct agents *as, const struct turn_run *run)
{
        struct agent_run *r;

        LIST_FOREACH(r, bucket(as, run->id), next) {
                if (r->run == run)
                        return r;
        }
        return NULL;
}

struct agent_run *agent_runs_find(struct agents *as, int64_t turn)
{
        struct agent_run *r;

        LIST_FOREACH(r, bucket(as, turn), next) {
                if (r->run->id == turn && r->on)
                        return r;
        }
        return NULL;
}

/* Its instance has nothing to do with it any more. */
static void leave(struct agent_run *r)
{
        struct agent_slot *in = r->on;

        if (!in)
                return;
        queue_remove(&in->queue, &r->entry);
        if (r->state == AGENT_RUN_WORKING)
                in->queue.working--;
        if (in->queue.waiting > 0)
                timer_start(in->all->deferred, 0);
        r->on = NULL;
        agent_slot_release(in);
}

/* ---- refusals and failover ---- */

/* Ended by the loop: the road must not hear of it before the start hook has returned. */
static void refuse(struct agents *as, struct agent_run *r, enum error_kind why, const char *notice)
{
        r->state = AGENT_RUN_REFUSED;
        TAILQ_INSERT_TAIL(&as->refused, r, next_refused);
        timer_start(as->deferred, 0);
        r->why = why;
        snprintf(r->notice, sizeof(r->notice), "%s", notice);
}

static void add_record(struct agent_run *r, const char *agent, const char *why)
{
        buf_addf(&r->record, "%s%s: %s", r->record.len ? "; " : "", agent, why);
}

static bool could_take(const struct agent_slot *in, int64_t now_ms)
{
        return !breaker_blocks(&in->breaker, now_ms) &&
               (queue_has_place(&in->queue, common_of(in)->concurrency) ||
                queue_has_room(&in->queue, common_of(in)->queue));
}

/* The next agent of the list that can take it; NULL: none. */
static struct agent_slot *next_choice(struct agents *as, struct agent_run *r)
{
        const struct agent_slot *first = map_get(&as->live, r->run->agent);
        const struct setting_list *others = first ? &common_of(first)->failover : NULL;

        while (others && r->at < others->count) {
                struct agent_slot *in = map_get(&as->live, others->items[r->at++]);

                if (in && in != first && could_take(in, loop_now_ms(as->loop)))
                        return in;
        }
        return NULL;
}

/* Gives the turn to the next agent of the list. False: there is none. */
static bool fail_over(struct agents *as, struct agent_run *r, const char *from, const char *why)
{
        struct agent_slot *in = next_choice(as, r);

        if (!in)
                return false;
        log_warn("another agent takes over", LOG_S("turn", r->run->key), LOG_S("from", from),
                 LOG_S("to", in->agent.name), LOG_S("why", why));
        agent_event_failover(as, r->run, from, in->agent.name, why);
        add_record(r, from, why);
        r->on = in;
        r->state = AGENT_RUN_WAITING;
        in->holds++;
        /* never at once: we may be inside a callback of the one that failed */
        queue_push(&in->queue, &r->entry);
        timer_start(as->deferred, 0);
        return true;
}

static void give_away_or_refuse(struct agents *as, struct agent_run *r, const struct agent_slot *in,
                                enum error_kind kind, const char *notice, const char *why)
{
        if (fail_over(as, r, in->agent.name, why))
                return;
        add_record(r, in->agent.name, why);
        refuse(as, r, kind, notice);
}

static void on_blocked(struct agents *as, struct agent_run *r, const struct agent_slot *in)
{
        char why[300];

        snprintf(why, sizeof(why), "its circuit is open after %" PRId64 " failures, the last: %s",
                 in->breaker.failures, in->last_failure);
        give_away_or_refuse(as, r, in, ERR_LIMIT,
                            "The agent is not available right now. Please try again later.", why);
}

static void on_full(struct agents *as, struct agent_run *r, const struct agent_slot *in)
{
        char why[80];

        snprintf(why, sizeof(why), "%zu turns wait for it already (queue)", in->queue.waiting);
        give_away_or_refuse(as, r, in, ERR_LIMIT,
                            "The agent is busy right now. Please try again later.", why);
}

/* ---- starting ---- */

/*
 * What the road gathered for another of the list is shown only to those who want it; what was
 * recalled of the room, to everybody.
 */
static bool is_shown_history(const struct agent_run *r)
{
        return (agent_slot_abilities(r->on) & AGENT_HISTORY) != 0 || r->run->mode == MODE_AMBIENT;
}

/* False: the circuit is open. */
static bool work(struct agent_run *r)
{
        r->pass = breaker_admit(&r->on->breaker, loop_now_ms(r->on->all->loop));
        if (r->pass == BREAKER_REFUSED)
                return false;
        r->state = AGENT_RUN_WORKING;
        r->on->queue.working++;
        r->run->history_count = is_shown_history(r) ? r->history_count : 0;
        r->on->agent.ops->start(&r->on->agent, r->run);
        return true;
}

static void place(struct agents *as, struct agent_run *r, struct agent_slot *in)
{
        int64_t now_ms = loop_now_ms(as->loop);
        bool at_once =
                in->queue.waiting == 0 && queue_has_place(&in->queue, common_of(in)->concurrency);

        if (breaker_blocks(&in->breaker, now_ms)) {
                on_blocked(as, r, in);
        } else if (!at_once && !queue_has_room(&in->queue, common_of(in)->queue)) {
                on_full(as, r, in);
        } else {
                r->on = in;
                r->state = AGENT_RUN_WAITING;
                in->holds++;
                if (!at_once || !work(r))
                        queue_push(&in->queue, &r->entry);
        }
}

void agents_start(struct agents *as, struct turn_run *run)
{
        struct agent_run *r = mem_zalloc(sizeof(*r));
        struct agent_slot *in = map_get(&as->live, run->agent);

        r->run = run;
        r->history_count = run->history_count;
        buf_init(&r->record, 0);
        LIST_INSERT_HEAD(bucket(as, run->id), r, next);
        if (in) {
                place(as, r, in);
                return;
        }
        buf_addf(&r->record, "there is no agent '%s'", run->agent);
        refuse(as, r, ERR_MISSING, "Nobody is there to answer: the agent is not configured.");
}

/* Starts those for whom there is a place; who finds the circuit open goes elsewhere. */
static void pump(struct agent_slot *in)
{
        struct agents *as = in->all;

        while (in->queue.waiting > 0 && queue_has_place(&in->queue, common_of(in)->concurrency)) {
                struct agent_run *r = (struct agent_run *)queue_pop(&in->queue);

                if (work(r))
                        continue;
                leave(r);
                on_blocked(as, r, in);
        }
}

/* ---- chores ---- */

/* Looks anew each time: the road may start and cancel others when it hears of one. */
static void end_refused(struct agents *as)
{
        struct agent_run *r;

        while ((r = TAILQ_FIRST(&as->refused))) {
                struct turn_run *run = r->run;
                struct turn_reply reply = { .kind = r->why,
                                            .tokens_in = r->tokens_in,
                                            .tokens_out = r->tokens_out,
                                            .cost_microusd = r->cost_microusd };
                char *record = mem_strdup(r->record.data), *notice = mem_strdup(r->notice);

                reply.text = notice;
                reply.error = record;
                run_free(as, r);
                turn_finish(run, &reply);
                free(record);
                free(notice);
        }
}

void agent_runs_pump(struct agents *as)
{
        void *value;

        for (size_t i = 0; map_each(&as->live, &i, NULL, &value);)
                pump(value);
        end_refused(as);
}

void agent_runs_move(struct agent_slot *from, struct agent_slot *to)
{
        struct agents *as = from->all;
        struct queue_entry *e;

        while ((e = queue_pop(&from->queue))) {
                struct agent_run *r = (struct agent_run *)e;

                leave(r);
                if (to) {
                        r->on = to;
                        to->holds++;
                        queue_push(&to->queue, &r->entry);
                } else {
                        give_away_or_refuse(
                                as, r, from, ERR_MISSING,
                                "Nobody is there to answer: the agent is not configured.",
                                "it is not configured any more");
                }
                timer_start(as->deferred, 0);
        }
}

/* ---- ends ---- */

/* Counts the end and hears what it says about the agent's health. */
static void note_end(struct agent_slot *in, const struct agent_run *r,
                     const struct turn_reply *reply)
{
        struct breaker_limits limits = { common_of(in)->breaker_failures,
                                         common_of(in)->breaker_seconds * 1000 };
        enum breaker_change change = breaker_record(&in->breaker, &limits, r->pass, reply->kind,
                                                    loop_now_ms(in->all->loop));

        in->health.turns++;
        if (reply->kind != ERR_NONE) {
                in->health.failures++;
                snprintf(in->last_failure, sizeof(in->last_failure), "%s",
                         reply->error ? reply->error : error_kind_name(reply->kind));
        }
        if (change == BREAKER_OPENED) {
                log_warn("an agent failed too often and is left alone for a while",
                         LOG_S("agent", in->agent.name), LOG_I("failures", in->breaker.failures),
                         LOG_S("why", in->last_failure));
                agent_event_circuit(in, "agent.circuit_opened");
        } else if (change == BREAKER_RECOVERED) {
                log_info("the agent works again", LOG_S("agent", in->agent.name));
                agent_event_circuit(in, "agent.circuit_closed");
        }
}

/* With what went wrong before it, and what that cost. */
static void tell_road(struct agents *as, struct agent_run *r, const struct turn_reply *reply)
{
        struct turn_reply told = *reply;
        struct turn_run *run = r->run;
        char *record = NULL;

        told.tokens_in += r->tokens_in;
        told.tokens_out += r->tokens_out;
        told.cost_microusd += r->cost_microusd;
        if (reply->kind != ERR_NONE && r->record.len) {
                record = mem_printf("%s; then %s", r->record.data,
                                    reply->error ? reply->error : "it failed");
                told.error = record;
        }
        run_free(as, r);
        turn_finish(run, &told);
        free(record);
}

void agent_finish(struct agent *a, struct turn_run *run, const struct turn_reply *reply)
{
        struct agent_slot *in = (struct agent_slot *)a;
        struct agent_run *r = find_run(in->all, run);

        note_end(in, r, reply);
        leave(r);
        tell_road(in->all, r, reply);
}

void agent_fail(struct agent *a, struct turn_run *run, const struct turn_reply *reply,
                enum agent_effect effect)
{
        struct agent_slot *in = (struct agent_slot *)a;
        struct agent_run *r = find_run(in->all, run);

        note_end(in, r, reply);
        leave(r);
        if (effect == EFFECT_NONE &&
            fail_over(in->all, r, in->agent.name,
                      reply->error ? reply->error : error_kind_name(reply->kind))) {
                r->tokens_in += reply->tokens_in;
                r->tokens_out += reply->tokens_out;
                r->cost_microusd += reply->cost_microusd;
                return;
        }
        tell_road(in->all, r, reply);
}

void agent_runs_stop(struct agent_run *r)
{
        if (r->state != AGENT_RUN_WORKING)
                return;
        r->on->agent.ops->cancel(&r->on->agent, r->run);
        breaker_forget(&r->on->breaker, r->pass);
}

void agents_cancel(struct agents *as, struct turn_run *run)
{
        struct agent_run *r = find_run(as, run);

        if (!r)
                return;
        agent_runs_stop(r);
        leave(r);
        run_free(as, r);
}

void agent_runs_drop(struct agents *as)
{
        struct agent_run *r;

        for (size_t i = 0; i < RUN_BUCKETS; i++) {
                while ((r = LIST_FIRST(&as->running[i]))) {
                        LIST_REMOVE(r, next);
                        if (r->state == AGENT_RUN_WORKING)
                                r->on->agent.ops->cancel(&r->on->agent, r->run);
                        buf_release(&r->record);
                        free(r);
                }
        }
}
