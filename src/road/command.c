/*
 * command: what a message to the bot itself asks for.
 *
 * A command is no turn: it never waits for one, and it is carried out by the transaction of its decision. What is to be stopped is marked there, so that
 * a stop holds even if the process ends before the turns do.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "road/road_private.h"

struct command {
        struct effect effect; /* first, so that they convert */
        struct road *road;
        enum road_command what;
        char *lane_key;    /* NEW */
        int64_t from_turn; /* NEW: turns before this one are not shown any more */
        char *why;         /* STOP */
        int64_t *turns;    /* STOP: which */
        unsigned count;
};

static const char *const names[] = {
        [COMMAND_NEW] = "new",
        [COMMAND_STOP] = "stop",
        [COMMAND_STATUS] = "status",
        [COMMAND_WHY] = "why",
};

const char *command_name(enum road_command what)
{
        return names[what];
}

/* ---- in the decision's transaction, and after it ---- */

static int write_new(struct store_tx *tx, const struct command *c, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "UPDATE conversations SET history_from = (SELECT coalesce(max(id), 0) FROM transcript),"
                    " history_turn = ?2 WHERE lane = ?1");

        store_bind_text(s, 1, c->lane_key);
        store_bind_int(s, 2, c->from_turn);
        return store_run(s, err);
}

static int write_command(struct store_tx *tx, struct effect *e, struct error *err)
{
        struct command *c = (struct command *)e;

        if (c->lane_key && write_new(tx, c, err) < 0)
                return -1;
        for (unsigned i = 0; i < c->count; i++) {
                if (turn_mark_cancelled(tx, c->turns[i], c->why, err) < 0)
                        return -1;
        }
        return 0;
}

static void on_committed(struct effect *e)
{
        struct command *c = (struct command *)e;

        for (unsigned i = 0; i < c->count; i++)
                turn_cancel(c->road, c->turns[i], c->why, NULL, NULL);
}

static void command_free(struct effect *e)
{
        struct command *c = (struct command *)e;

        free(c->lane_key);
        free(c->why);
        free(c->turns);
        free(c);
}

/* ---- what each of them means ---- */

static void begin_anew(struct command *c, const struct lane_name *n, struct lane *lane, struct buf *answer)
{
        c->lane_key = n->agent ? lane_key(n) : NULL;
        c->from_turn = c->road->next_turn;
        if (lane)
                lane->joins_from = c->from_turn; /* what comes from now on is no part of what waits */
        buf_addstr(answer, "A new conversation begins. What was said before no longer counts.");
}

static void add_turn(struct command *c, const struct turn *t)
{
        c->turns = mem_realloc(c->turns, (c->count + 1) * sizeof(*c->turns));
        c->turns[c->count++] = t->run.id;
}

static void say_messages(struct buf *b, int64_t n)
{
        buf_addf(b, "%lld message%s", (long long)n, n == 1 ? "" : "s");
}

static void stop(struct command *c, const struct incoming *in, const struct lane *lane, struct buf *answer)
{
        const struct turn *t = lane ? lane->running : NULL;
        bool runs = t && t->state != TURN_ENDING && !t->cancel_why;
        int64_t dropped = 0;

        c->why = mem_printf("stopped by %s", incoming_sender(in));
        if (runs)
                add_turn(c, t);
        for (t = lane ? TAILQ_FIRST(&lane->waiting) : NULL; t; t = TAILQ_NEXT(t, in_lane)) {
                if (t->cancel_why)
                        continue;
                add_turn(c, t);
                dropped += t->input_count;
        }
        if (!runs && dropped == 0) {
                buf_addstr(answer, "Nothing is running here.");
                return;
        }
        buf_addstr(answer, runs ? "Stopped" : "Nothing was running");
        if (dropped > 0) {
                buf_addstr(answer, runs ? ", and dropped " : "; dropped ");
                say_messages(answer, dropped);
                buf_addstr(answer, dropped == 1 ? " that waited" : " that were waiting");
        }
        buf_addch(answer, '.');
}

static void say_running(const struct turn *t, struct buf *answer)
{
        int64_t ms = t->started_ms > 0 ? clock_wall_ms() - t->started_ms : 0;

        buf_addf(answer, "Agent '%s' has been working on an answer for %lld s.", t->agent,
                 (long long)(ms > 0 ? ms / 1000 : 0));
}

static void status(const struct road *r, const struct lane *lane, struct buf *answer)
{
        const struct turn *first = lane ? TAILQ_FIRST(&lane->waiting) : NULL;

        if (!lane || (!lane->running && !first)) {
                buf_addstr(answer, "Nothing is going on in this conversation.");
                return;
        }
        if (lane->running)
                say_running(lane->running, answer);
        if (!first)
                return;
        if (lane->running)
                buf_addch(answer, ' ');
        say_messages(answer, lane->mailbox);
        buf_addstr(answer, lane->mailbox == 1 ? " waits" : " wait");
        if (!lane->running && first->due_mono > loop_now_ms(r->loop))
                buf_addstr(answer, " a moment for further ones");
        buf_addch(answer, '.');
}

struct effect *command_new(struct road *r, enum road_command what, const struct lane_name *n,
                           const struct incoming *in, struct buf *answer)
{
        struct command *c = mem_zalloc(sizeof(*c));
        struct lane *lane = n->agent ? lane_find(r, n) : NULL;

        c->effect = (struct effect){ write_command, on_committed, command_free };
        c->road = r;
        c->what = what;
        if (what == COMMAND_NEW)
                begin_anew(c, n, lane, answer);
        else if (what == COMMAND_STOP)
                stop(c, in, lane, answer);
        else if (what == COMMAND_STATUS)
                status(r, lane, answer);
        return &c->effect;
}
