/*
 * turn_steer: messages that arrive while a turn runs reach it before its next step.
 *
 * They wait in the lane as queued turns. Those that the running turn could have taken from the
 * start are absorbed in one transaction: the step that holds their text, the running turn's list of
 * inputs, the trigger log, and the end of their own rows. After a crash they are inputs of the one
 * or still queued, never both and never neither.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "road/inbox/decide.h"
#include "road/road_state.h"
#include "road/turn/turn.h"
#include "rows/trigger_log_row.h"

struct steer {
        struct turn *turn;
        struct turn_list absorbed; /* without their inputs */
        unsigned first;            /* of the turn's inputs that are new */
        char *inputs;              /* of the turn, as text */
        struct turn_steering call;
        void *arg;
};

static bool same_text(const char *a, const char *b)
{
        return a && b ? strcmp(a, b) == 0 : a == b;
}

/* A message of another session, after /new, or with other terms starts its own turn. */
static bool may_absorb(const struct turn *t, const struct turn *next)
{
        for (unsigned i = 0; i < next->run.input_count; i++)
                if (strcmp(next->inputs[i]->type, EVENT_MESSAGE_RECEIVED) != 0)
                        return false; /* a reaction needs the message it is about */
        return next->phase == PHASE_QUEUED && next->queue.changes == 0 &&
               next->files.pending == 0 && !next->cancel.pending && !next->cancel.why &&
               next->run.attempt == 0 && next->run.reset_turn == t->run.reset_turn &&
               t->run.id >= t->lane->reset_turn && same_text(next->run.session, t->run.session) &&
               next->policy.mode == t->policy.mode &&
               same_text(next->policy.prompt, t->policy.prompt);
}

static void absorb(struct steer *s, struct turn *next)
{
        struct turn *t = s->turn;

        lane_unhold(next);
        timer_free(next->timer);
        next->timer = NULL;
        TAILQ_REMOVE(&t->lane->waiting, next, in_lane);
        t->lane->mailbox -= next->run.input_count;
        turn_files_apply(next);
        turn_files_move(next, t);
        for (unsigned i = 0; i < next->run.input_count; i++) {
                message_edit_unindex(next, next->inputs[i]);
                turn_add_input(t, next->inputs[i]);
        }
        next->run.input_count = 0;
        TAILQ_INSERT_TAIL(&s->absorbed, next, in_lane);
}

static int write_steer(struct store_tx *tx, struct bus_batch *batch, void *arg, struct error *err)
{
        struct steer *s = arg;
        const struct turn *t = s->turn, *gone;
        int rc = s->call.write(tx, batch, s->arg, err);

        if (rc != 1)
                return rc;
        if (turn_row_set_inputs(tx, t->run.id, s->inputs, err) < 0)
                return -1;
        for (unsigned i = s->first; i < t->run.input_count; i++)
                if (trigger_log_row_move(tx, t->inputs[i]->event, t->run.id, err) < 0)
                        return -1;
        TAILQ_FOREACH(gone, &s->absorbed, in_lane)
                if (turn_row_absorb(tx, gone->run.id, err) < 0)
                        return -1;
        return 1;
}

static void on_steered(void *arg, bool stored)
{
        struct steer *s = arg;
        struct road *r = s->turn->road;
        struct turn *gone;

        while ((gone = TAILQ_FIRST(&s->absorbed))) {
                TAILQ_REMOVE(&s->absorbed, gone, in_lane);
                if (stored && r->dispatch.ended) /* what it reserved is free again */
                        r->dispatch.ended(r->dispatch.dispatch, &gone->run,
                                          &(struct turn_outcome){ 0 });
                turn_free(gone);
        }
        s->call.done(s->arg, stored);
        free(s->inputs);
        free(s);
}

bool turn_steer(struct turn_run *run, const struct turn_steering *call, void *arg)
{
        struct turn *t = (struct turn *)run, *next;
        unsigned can = t->road->agents.abilities(t->road->agents.agents, turn_agent(t));
        struct steer *s;

        next = TAILQ_FIRST(&t->lane->waiting);
        if (!(can & AGENT_STEERS) || !next || t->road->closing || t->phase != PHASE_RUNNING ||
            t->cancel.pending || t->cancel.why || !may_absorb(t, next))
                return false;
        s = mem_zalloc(sizeof(*s));
        s->turn = t;
        s->first = t->run.input_count;
        s->call = *call;
        s->arg = arg;
        TAILQ_INIT(&s->absorbed);
        while ((next = TAILQ_FIRST(&t->lane->waiting)) && may_absorb(t, next))
                absorb(s, next);
        s->inputs = turn_inputs_text(t);
        call->take(arg, t->run.inputs + s->first, t->run.input_count - s->first);
        return turn_store_step(run, write_steer, on_steered, s);
}
