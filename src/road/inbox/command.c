/*
 * command: what a message to the bot itself asks for.
 *
 * A command is no turn: it never waits for one, and it is carried out by the transaction of its
 * decision. What is to be stopped is marked there, so that a stop holds even if the process ends
 * before the turns do.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "road/road_private.h"

struct command {
        struct effect effect; /* first, so that they convert */
        struct road *road;
        enum road_command what;
        struct lane_name whose; /* borrowed from the event, which lives until this is committed */
        const char *sender;     /* borrowed likewise; may be NULL */
        int64_t from_turn;      /* NEW: turns before this one are not shown any more */
        char *why;              /* STOP */
        int64_t *turns;         /* STOP: which */
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
        struct reset_scope scope = { c->whose.adapter, c->whose.channel, c->whose.thread,
                                     c->sender };
        struct store_stmt *s = store_prepare(
                tx,
                "UPDATE conversations SET history_from = (SELECT coalesce(max(id), 0) FROM transcript),"
                " history_turn = ?5 WHERE adapter = ?1 AND channel = ?2 AND coalesce(thread, '') = ?3"
                " AND coalesce(person, '') = ?4");

        store_bind_text(s, 1, c->whose.adapter);
        store_bind_text(s, 2, c->whose.channel);
        store_bind_text(s, 3, c->whose.thread ? c->whose.thread : "");
        store_bind_text(s, 4, c->whose.person ? c->whose.person : "");
        store_bind_int(s, 5, c->from_turn);
        if (store_run(s, err) < 0)
                return -1;
        return reset_row_put(tx, &scope, c->from_turn, err);
}

static int write_command(struct store_tx *tx, struct effect *e, struct error *err)
{
        struct command *c = (struct command *)e;

        if (c->what == COMMAND_NEW && write_new(tx, c, err) < 0)
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

        free(c->why);
        free(c->turns);
        free(c);
}

/* ---- what each of them means ---- */

static void begin_anew(struct command *c, struct buf *answer)
{
        const struct place *here = lane_place(c->road, &c->whose);
        struct lane *lane;

        c->from_turn = c->road->next_turn;
        if (here) {
                LIST_FOREACH(lane, &here->lanes, in_place)
                        /* what comes from now on is no part of what waits */
                        lane->joins_from = c->from_turn;
        }
        buf_addstr(answer, "A new conversation begins. What was said before no longer counts.");
}

static void add_turn(struct command *c, struct turn *t)
{
        t->doomed = true;
        c->turns = mem_realloc(c->turns, (c->count + 1) * sizeof(*c->turns));
        c->turns[c->count++] = t->run.id;
}

static void say_messages(struct buf *b, int64_t n)
{
        buf_addf(b, "%lld message%s", (long long)n, n == 1 ? "" : "s");
}

/* What is to be stopped, counted. */
struct haul {
        unsigned running;
        int64_t dropped; /* messages */
};

static void stop_lane(struct command *c, const struct lane *lane, struct haul *haul)
{
        struct turn *t = lane->running;

        if (t && t->phase != PHASE_ENDING && !t->cancel_why && !t->doomed) {
                add_turn(c, t);
                haul->running++;
        }
        TAILQ_FOREACH(t, &lane->waiting, in_lane) {
                if (t->cancel_why || t->doomed)
                        continue;
                add_turn(c, t);
                haul->dropped += t->input_count;
        }
}

static void say_stopped(const struct haul *haul, struct buf *answer)
{
        if (haul->running == 0 && haul->dropped == 0) {
                buf_addstr(answer, "Nothing is running here.");
                return;
        }
        buf_addstr(answer, haul->running > 0 ? "Stopped" : "Nothing was running");
        if (haul->dropped > 0) {
                buf_addstr(answer, haul->running > 0 ? ", and dropped " : "; dropped ");
                say_messages(answer, haul->dropped);
                buf_addstr(answer, haul->dropped == 1 ? " that waited" : " that were waiting");
        }
        buf_addch(answer, '.');
}

static void say_running(const struct turn *t, struct buf *answer)
{
        int64_t ms = t->started_ms > 0 ? clock_wall_ms() - t->started_ms : 0;

        buf_addf(answer, "Agent '%s' has been working on an answer for %lld s.", t->agent,
                 (long long)(ms > 0 ? ms / 1000 : 0));
}

static void say_lane(const struct road *r, const struct lane *lane, struct buf *answer)
{
        const struct turn *first = TAILQ_FIRST(&lane->waiting);

        if (answer->len > 0)
                buf_addch(answer, ' ');
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

static void look_at(struct command *c, const struct place *place, struct haul *haul,
                    struct buf *answer)
{
        const struct lane *lane;

        if (!place)
                return;
        LIST_FOREACH(lane, &place->lanes, in_place) {
                if (c->what == COMMAND_STOP)
                        stop_lane(c, lane, haul);
                else if (lane->running || !TAILQ_EMPTY(&lane->waiting))
                        say_lane(c->road, lane, answer);
        }
}

/* A person's own conversation, and the one that everybody shares. */
static void look_around(struct command *c, struct haul *haul, struct buf *answer)
{
        struct lane_name shared = c->whose;

        look_at(c, lane_place(c->road, &c->whose), haul, answer);
        shared.person = NULL;
        if (c->whose.person)
                look_at(c, lane_place(c->road, &shared), haul, answer);
}

struct effect *command_new(struct road *r, enum road_command what, const struct lane_name *n,
                           const struct incoming *in, struct buf *answer)
{
        struct command *c = mem_zalloc(sizeof(*c));
        struct haul haul = { 0 };

        c->effect = (struct effect){ write_command, on_committed, command_free };
        c->road = r;
        c->what = what;
        c->whose = *n;
        c->sender = in->sender_id;
        if (what == COMMAND_NEW)
                begin_anew(c, answer);
        if (what == COMMAND_STOP || what == COMMAND_STATUS)
                look_around(c, &haul, answer);
        if (what == COMMAND_STOP) {
                c->why = mem_printf("stopped by %s", incoming_sender(in));
                say_stopped(&haul, answer);
        } else if (what == COMMAND_STATUS && answer->len == 0) {
                buf_addstr(answer, "Nothing is going on in this conversation.");
        }
        return &c->effect;
}
