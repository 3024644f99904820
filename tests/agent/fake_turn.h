/*
 * fake_turn: the road as an agent sees it.
 *
 * Defines the turn_* functions, so a test program includes it once and links no turns of the road.
 * Records what an agent reports; a report about a turn that has ended or was cancelled fails the
 * test.
 */
#ifndef TESTS_AGENT_FAKE_TURN_H
#define TESTS_AGENT_FAKE_TURN_H

#include <stdlib.h>
#include <string.h>

#include "agent/agents.h"
#include "base/buf.h"
#include "base/mem.h"
#include "road/turn/approval.h"
#include "road/turn/late_reply.h"

#define ROUNDS 200000 /* of the loop, before a test gives up */

struct fake_turn {
        struct turn_run run; /* first */
        struct incoming input;
        const struct incoming *inputs[4];
        bool open, starting;
        int finished, deltas, progresses;
        struct buf streamed, progress;
        struct turn_reply reply; /* text and error are ours */
        char *text, *error;
        struct buf failovers; /* "from>to: why" lines */
        bool holds_failover;  /* fake_turn_store_failover stores it */
        turn_step_done_fn *on_failover;
        void *on_failover_arg;
        struct turn_failover spent; /* sums of agents that failed */
        struct buf asked;           /* "call: detail" lines of approvals */
        char *asked_subject;        /* of the last */
        approval_fn *on_decided;    /* of the last */
        void *on_decided_arg;
};

static inline void fake_turn_init(struct fake_turn *t, const char *agent, const char *text)
{
        *t = (struct fake_turn){ 0 };
        buf_init(&t->streamed, 0);
        buf_init(&t->progress, 0);
        buf_init(&t->failovers, 0);
        buf_init(&t->asked, 0);
        t->input = (struct incoming){
                .adapter = "test",
                .key = "k1",
                .channel = "c1",
                .sender_id = "7",
                .sender_name = "Ann",
                .text = text,
        };
        t->inputs[0] = &t->input;
        t->run = (struct turn_run){
                .id = 1,
                .attempt = 1,
                .conversation = 12,
                .agent = agent,
                .key = "turn-1",
                .trace = "0af7651916cd43dd8448eb211c80319c",
                .adapter = "test",
                .channel = "c1",
                .inputs = t->inputs,
                .input_count = 1,
        };
        t->open = true;
}

static inline void fake_turn_release(struct fake_turn *t)
{
        buf_release(&t->streamed);
        buf_release(&t->progress);
        buf_release(&t->failovers);
        buf_release(&t->asked);
        free(t->asked_subject);
        free(t->text);
        free(t->error);
}

static inline void fake_turn_start(struct fake_turn *t, struct agents *as)
{
        t->starting = true;
        agent_runs_start(as, &t->run);
        t->starting = false;
}

static inline void fake_turn_cancel(struct fake_turn *t, struct agents *as)
{
        agent_runs_cancel(as, &t->run);
        t->open = false;
}

/* Runs the loop until the turn has ended; fails the test when it does not. */
static inline void fake_turn_await(struct fake_turn *t, struct loop *l)
{
        for (int i = 0; i < ROUNDS && !t->finished; i++)
                loop_step(l, true);
        assert_int_equal(t->finished, 1);
}

static inline struct fake_turn *reported_turn(struct turn_run *run)
{
        struct fake_turn *t = (struct fake_turn *)run;

        assert_true(t->open);
        assert_false(t->starting);
        return t;
}

void turn_delta(struct turn_run *run, const char *text, size_t n)
{
        struct fake_turn *t = reported_turn(run);

        t->deltas++;
        buf_add(&t->streamed, text, n);
}

void turn_goes_on(struct turn_run *run)
{
        struct fake_turn *t = reported_turn(run);

        buf_clear(&t->streamed);
}

void turn_progress(struct turn_run *run, const char *label)
{
        struct fake_turn *t = reported_turn(run);

        t->progresses++;
        buf_addf(&t->progress, "%s\n", label);
}

static inline void fake_turn_store_failover(struct fake_turn *t, bool stored)
{
        t->on_failover(t->on_failover_arg, stored);
}

bool turn_failed_over(struct turn_run *run, const struct turn_failover *f, turn_step_done_fn *done,
                      void *arg)
{
        struct fake_turn *t = (struct fake_turn *)run;

        assert_true(t->open);
        buf_addf(&t->failovers, "%s>%s: %s\n", f->from, f->to, f->why);
        t->spent.tokens_in += f->tokens_in;
        t->spent.tokens_cached += f->tokens_cached;
        t->spent.tokens_out += f->tokens_out;
        t->spent.cost_microusd += f->cost_microusd;
        t->on_failover = done;
        t->on_failover_arg = arg;
        if (!t->holds_failover)
                done(arg, true);
        return true;
}

void turn_finish(struct turn_run *run, const struct turn_reply *reply)
{
        struct fake_turn *t = reported_turn(run);

        t->finished++;
        t->open = false;
        t->reply = *reply;
        t->reply.tokens_in += t->spent.tokens_in;
        t->reply.tokens_cached += t->spent.tokens_cached;
        t->reply.tokens_out += t->spent.tokens_out;
        t->reply.cost_microusd += t->spent.cost_microusd;
        t->text = mem_strdup(reply->text ? reply->text : "");
        t->error = mem_strdup(reply->error ? reply->error : "");
}

void turn_ask_approval(struct turn_run *run, const struct approval_request *q, approval_fn *done,
                       void *arg)
{
        struct fake_turn *t = reported_turn(run);

        buf_addf(&t->asked, "%s: %s\n", q->call, q->detail);
        free(t->asked_subject);
        t->asked_subject = mem_strdup(q->subject);
        t->on_decided = done;
        t->on_decided_arg = arg;
}

void late_reply_overdue(struct road *r, int64_t turn, const struct turn_reply *reply)
{
        (void)r;
        (void)turn;
        (void)reply;
        fail_msg("unexpected late reply");
}

/* ---- for agents that store steps: see loop_rig.h ---- */

bool turn_shows_details(const struct turn_run *run)
{
        (void)run;
        return false;
}

struct turn_detail *turn_detail_new(struct turn_run *run, const char *markdown)
{
        (void)run;
        (void)markdown;
        return NULL;
}

int turn_detail_store(struct store_tx *tx, struct bus_batch *batch, const struct turn_detail *d,
                      struct error *err)
{
        (void)tx;
        (void)batch;
        (void)d;
        (void)err;
        return 0;
}

void turn_detail_stored(struct turn_detail *d, bool stored)
{
        (void)d;
        (void)stored;
}

void turn_keep_alive(struct turn_run *run)
{
        reported_turn(run);
}

void turn_drop_deadline(struct turn_run *run)
{
        (void)run;
}

bool turn_store_step(struct turn_run *run, turn_step_fn *fn, turn_step_done_fn *done, void *arg)
{
        (void)run;
        (void)fn;
        (void)done;
        (void)arg;
        fail_msg("unexpected step");
        return false;
}

void turn_load(struct turn_run *run, store_fn *fn, store_done_fn *done, void *arg)
{
        (void)run;
        (void)fn;
        (void)done;
        (void)arg;
        fail_msg("unexpected read");
}

bool turn_steer(struct turn_run *run, const struct turn_steering *s, void *arg)
{
        (void)run;
        (void)s;
        (void)arg;
        return false;
}

int turn_append_event(struct store_tx *tx, struct bus_batch *batch, const struct turn_run *run,
                      const char *type, const char *payload, struct error *err)
{
        (void)tx;
        (void)batch;
        (void)run;
        (void)type;
        (void)payload;
        (void)err;
        return 0;
}

void turn_publish_live(struct turn_run *run, const char *type, const char *payload)
{
        (void)run;
        (void)type;
        (void)payload;
}

void turn_wait_for_person(struct turn_run *run, bool waits)
{
        (void)run;
        (void)waits;
}

void turn_set_usage(struct turn_run *run, const struct turn_usage *total)
{
        (void)run;
        (void)total;
}

/* Makes this the only agent of the registry. */
static inline int fake_apply(struct agents *as, const char *name, const char *type,
                             const char *json, struct error *err)
{
        struct agent_conf *conf = agent_conf_make(name, type, json, err);

        return conf ? agents_apply(as, &conf, 1, err) : -1;
}

#endif
