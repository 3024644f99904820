/*
 * turn_prepare: from a stored claim to the agent.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "road/road_state.h"
#include "road/turn/turn.h"

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
                 "agent '%.60s' gave no answer within %lld s (limits.turnSeconds)", t->run.agent,
                 (long long)r->limits.turn_seconds);
        r->agents.cancel(r->agents.agents, &t->run);
        turn_end(t, &reply);
}

static void hand_over(struct turn *t)
{
        struct road *r = t->road;

        if (r->closing && !t->cancel.why)
                return; /* too late for an answer: the next run asks */
        turn_enter(t, PHASE_RUNNING);
        timer_free(t->timer);
        t->timer = timer_new(r->loop, on_deadline, t);
        timer_start(t->timer, r->limits.turn_seconds * 1000);
        fault_point("turn.claimed");
        if (t->cancel.why) {
                turn_check_cancel(t);
                return;
        }
        draft_begin(t);
        progress_reaction_begin(t);
        r->agents.start(r->agents.agents, &t->run);
}

void turn_prepare_next(struct turn *t)
{
        switch (t->progress.step) {
        case PREPARE_REACTION_CONTEXT:
                t->progress.step = PREPARE_HISTORY;
                if (reaction_context_begin(t))
                        return;
                /* fall through */
        case PREPARE_HISTORY:
                t->progress.step = PREPARE_HAND_OVER;
                if (channel_history_begin(t) || history_begin(t))
                        return;
                /* fall through */
        case PREPARE_HAND_OVER:
                hand_over(t);
        }
}

void turn_prepare(struct turn *t)
{
        turn_enter(t, PHASE_STARTING);
        t->started_ms = clock_wall_ms();
        t->progress.step = PREPARE_REACTION_CONTEXT;
        turn_prepare_next(t);
}
