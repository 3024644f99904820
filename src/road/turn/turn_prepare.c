/*
 * turn_prepare: from a stored claim to the agent.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
                 "agent '%.60s' did not answer within %lld s (limits.turnSeconds)", turn_agent(t),
                 (long long)r->limits.turn_seconds);
        t->run.stopped = "it took too long";
        r->agents.cancel(r->agents.agents, &t->run);
        turn_finish(&t->run, &reply);
}

void turn_hand_over(struct turn *t)
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

void turn_prepare_history(struct turn *t)
{
        struct road *r = t->road;
        bool from_channel = t->policy.mode == MODE_AMBIENT && t->policy.channel_messages > 0 &&
                            r->platforms.channel_history &&
                            (r->platforms.abilities(r->platforms.adapters, t->run.adapter) &
                             ADAPTER_CHANNEL_HISTORY);

        /* if the platform cannot be asked, the transcript must do */
        if (from_channel)
                channel_history_begin(t);
        else if ((r->agents.abilities(r->agents.agents, t->run.agent) & AGENT_HISTORY) &&
                 r->limits.history_messages > 0)
                history_begin(t);
        else
                turn_hand_over(t);
}

void turn_prepare(struct turn *t)
{
        const struct incoming *last;

        turn_enter(t, PHASE_STARTING);
        turn_files_apply(t);
        last = turn_last_input(t);
        t->started_ms = clock_wall_ms();
        if (last->emoji && last->id && !last->text && strncmp(last->type, "reaction.", 9) == 0)
                reaction_context_begin(t);
        else
                turn_prepare_history(t);
}
