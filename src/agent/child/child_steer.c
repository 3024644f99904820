/*
 * child_steer: messages that people write during a turn join it, and the agent is told.
 *
 * They are stored as inputs of the turn first (road/turn/turn_steer.c). If the agent ends the turn
 * meanwhile, the end is held until it has been told of them and has ended again.
 */
#include <stdlib.h>

#include "agent/child/child_private.h"
#include "base/mem.h"
#include "rows/turn_row.h"

struct child_steering {
        struct child *child; /* works on the turn; NULL: no longer */
        int64_t turn, fence;
        char *text;
        bool ended; /* the agent has ended the turn, and has to be given the text as a new one */
};

static void take(void *arg, const struct incoming *const *inputs, unsigned count)
{
        struct child_steering *s = arg;

        s->text = child_messages_text(s->child, inputs, count);
}

static int write_steering(struct store_tx *tx, struct bus_batch *batch, void *arg,
                          struct error *err)
{
        const struct child_steering *s = arg;

        (void)batch;
        return turn_row_progress(tx, s->turn, s->fence, err);
}

static void on_steered(void *arg, bool stored)
{
        static const struct child_end lost = { .kind = ERR_CONFLICT,
                                               .error = "another process has this turn" };
        struct child_steering *s = arg;
        struct child *c = s->child;

        if (c)
                c->steering = NULL;
        if (c && stored) {
                c->owner->dialect->steer(c, s->text, s->ended);
                child_steer(c); /* what came meanwhile */
        } else if (c && s->ended && !child_run(c)->interrupted) {
                child_over(c, &lost);
        }
        free(s->text);
        free(s);
}

void child_steer(struct child *c)
{
        static const struct turn_steering steering = { take, write_steering, on_steered };
        struct turn_run *run = child_run(c);
        struct child_steering *s;

        /* while a person is asked, their next message may be the answer */
        if (!run || !c->owner->dialect->steer || c->steering || child_turn_asks(c->turn))
                return;
        s = mem_zalloc(sizeof(*s));
        s->child = c;
        s->turn = run->id;
        s->fence = run->fence;
        c->steering = s;
        if (turn_steer(run, &steering, s))
                return;
        c->steering = NULL; /* nothing waits */
        free(s->text);
        free(s);
}

void child_waiting(struct agent *a, struct turn_run *run)
{
        const struct child_turn *t = run->agent_data;

        (void)a;
        if (t && t->child && t->child->turn == t)
                child_steer(t->child);
}

bool child_steering_holds(struct child *c, const struct child_end *end)
{
        if (!c->steering || end->kind != ERR_NONE)
                return false;
        c->steering->ended = true;
        return true;
}

void child_forget_steering(struct child *c)
{
        if (c->steering)
                c->steering->child = NULL;
        c->steering = NULL;
}
