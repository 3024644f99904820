/*
 * command: chat commands (/new, /stop, /status, /why, /resend).
 *
 * A command is no turn and never waits for one; the decision's transaction carries it out. Turns to
 * stop are marked there, so a stop survives a crash.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "road/inbox/decide.h"
#include "road/road_state.h"
#include "rows/conversation_row.h"

struct command {
        struct effect effect; /* first, so that they convert */
        struct road *road;
        enum road_command what;
        struct lane_name name; /* strings borrowed from the event, which outlives the commit */
        const char *sender;    /* may be NULL */
        int64_t reset_turn;    /* COMMAND_NEW: history begins after this turn */
        /* COMMAND_STOP */
        char *why;
        int64_t *turns;
        unsigned turn_count;
        unsigned running;         /* of the turns */
        int64_t dropped_messages; /* in queued turns */
        /* COMMAND_RESEND */
        int64_t delivery;
        bool leave;                   /* it is not sent again */
        struct delivery_row *revived; /* result */
};

const char *command_name(enum road_command what)
{
        static const char *const names[] = {
                [COMMAND_NEW] = "new",       [COMMAND_STOP] = "stop",
                [COMMAND_STATUS] = "status", [COMMAND_WHY] = "why",
                [COMMAND_RESEND] = "resend", [COMMAND_APPROVE] = "approve",
                [COMMAND_REFUSE] = "refuse"
        };

        return names[what];
}

const char *command_prefix(const struct road *r, const char *adapter)
{
        const char *prefix = r->platforms.command_prefix
                                     ? r->platforms.command_prefix(r->platforms.adapters, adapter)
                                     : NULL;

        return prefix ? prefix : "/";
}

char *command_spell(const struct road *r, const char *adapter, const char *text)
{
        const char *prefix = command_prefix(r, adapter), *at;
        struct buf out;

        if (strcmp(prefix, "/") == 0)
                return mem_strdup(text);
        buf_init(&out, 0);
        for (; (at = strstr(text, "`/")); text = at + 2) {
                size_t n = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz");
                bool named = n > 0 && (at[2 + n] == '`' || at[2 + n] == ' ') &&
                             strncmp(at + 1, prefix, strlen(prefix)) != 0;

                buf_add(&out, text, (size_t)(at - text) + 1);
                buf_addstr(&out, named ? prefix : "/");
        }
        buf_addstr(&out, text);
        return buf_take(&out);
}

/* Only while it is unknown: a decision is final. */
static int decide_delivery(struct store_tx *tx, struct command *c, struct error *err)
{
        struct delivery_row *row = NULL;
        int rc = delivery_row_get(tx, c->delivery, &row, err);
        bool undecided = rc == 1 && row->state == DELIVERY_UNKNOWN &&
                         strcmp(row->adapter, c->name.adapter) == 0;

        free(row);
        free(c->revived);
        c->revived = NULL;
        if (!undecided)
                return rc < 0 ? -1 : 0;
        rc = c->leave ? delivery_row_leave(tx, c->delivery, c->why, err)
                      : delivery_row_revive(tx, c->delivery, true, clock_wall_ms(), &c->revived,
                                            err);
        return rc < 0 ? -1 : 0;
}

static int write_command(struct store_tx *tx, struct effect *e, struct error *err)
{
        struct command *c = (struct command *)e;
        const struct lane_name *n = &c->name;

        if (c->what == COMMAND_NEW) {
                struct chat_key chat = { n->adapter, n->channel, n->thread };
                struct reset_scope scope = { n->adapter, n->channel, n->thread, c->sender };

                if (conversation_row_reset(tx, &chat, n->person, c->reset_turn, err) < 0 ||
                    reset_row_put(tx, &scope, c->reset_turn, err) < 0)
                        return -1;
        }
        if (c->what == COMMAND_RESEND && c->delivery > 0 && decide_delivery(tx, c, err) < 0)
                return -1;
        for (unsigned i = 0; i < c->turn_count; i++) {
                if (turn_row_cancel(tx, c->turns[i], c->why, err) < 0)
                        return -1;
        }
        return 0;
}

static void on_committed(struct effect *e)
{
        struct command *c = (struct command *)e;

        if (c->revived)
                outbox_enqueue(c->road, delivery_load(c->revived));
        for (unsigned i = 0; i < c->turn_count; i++)
                turn_cancel(c->road, c->turns[i], c->why, NULL, NULL);
}

static void command_free(struct effect *e)
{
        struct command *c = (struct command *)e;

        free(c->why);
        free(c->turns);
        free(c->revived);
        free(c);
}

static void add_message_count(struct buf *b, int64_t n)
{
        buf_addf(b, "%lld message%s", (long long)n, n == 1 ? "" : "s");
}

/* ---- /new ---- */

static void reset(struct command *c, struct buf *answer)
{
        const struct lane_group *group = lane_group_find(c->road, &c->name);
        struct lane *lane;

        c->reset_turn = numbers_next(&c->road->turn_numbers);
        if (group) {
                LIST_FOREACH(lane, &group->lanes, in_group)
                        lane->reset_turn = c->reset_turn;
        }
        buf_addstr(answer, "A new conversation begins. What was said before no longer counts.");
}

/* ---- /stop ---- */

static bool is_stopping(const struct turn *t)
{
        return t->cancel.why || t->cancel.pending || t->phase == PHASE_ENDING;
}

static void add_turn(struct command *c, struct turn *t)
{
        t->cancel.pending = true;
        c->turns = mem_realloc(c->turns, (c->turn_count + 1) * sizeof(*c->turns));
        c->turns[c->turn_count++] = t->run.id;
}

/* Is the thread that of its question, or of its growing answer? NULL: any is. */
static bool belongs_to(const struct turn *t, const char *thread)
{
        bool found = !thread || (t->display.message && strcmp(t->display.message, thread) == 0);

        for (unsigned i = 0; !found && i < t->run.input_count; i++)
                found = t->inputs[i]->id && strcmp(t->inputs[i]->id, thread) == 0;
        return found;
}

static void stop_lane(struct command *c, const struct lane *lane, const char *thread)
{
        struct turn *t = lane->running;

        if (t && !is_stopping(t) && belongs_to(t, thread)) {
                add_turn(c, t);
                c->running++;
        }
        TAILQ_FOREACH(t, &lane->waiting, in_lane) {
                if (is_stopping(t) || !belongs_to(t, thread))
                        continue;
                add_turn(c, t);
                c->dropped_messages += t->run.input_count;
        }
}

/* In the thread below a message of the channel: the turn of that message. */
static void stop_above(struct command *c, const char *person)
{
        struct lane_name above = c->name;
        const struct lane_group *group;
        const struct lane *lane;

        above.thread = NULL;
        above.person = person;
        group = lane_group_find(c->road, &above);
        if (!group)
                return;
        LIST_FOREACH(lane, &group->lanes, in_group)
                stop_lane(c, lane, c->name.thread);
}

static void describe_stop(const struct command *c, struct buf *answer)
{
        int64_t dropped = c->dropped_messages;

        if (c->turn_count == 0) {
                buf_addstr(answer, "Nothing is running here.");
                return;
        }
        buf_addstr(answer, c->running > 0 ? "Stopped" : "Nothing was running");
        if (dropped > 0) {
                buf_addstr(answer, c->running > 0 ? ", and dropped " : "; dropped ");
                add_message_count(answer, dropped);
                buf_addstr(answer, dropped == 1 ? " that waited" : " that were waiting");
        }
        buf_addch(answer, '.');
}

/* ---- /status ---- */

static void describe_lane(const struct road *r, const struct lane *lane, struct buf *answer)
{
        const struct turn *running = lane->running, *first = TAILQ_FIRST(&lane->waiting);

        if (answer->len > 0 && (running || first))
                buf_addch(answer, ' ');
        if (running) {
                int64_t ms = running->started_ms > 0 ? clock_wall_ms() - running->started_ms : 0;

                buf_addf(answer, "Agent '%s' has been working on an answer for %lld s",
                         turn_agent(running), (long long)(ms > 0 ? ms / 1000 : 0));
                if (running->steps.label[0])
                        buf_addf(answer, ": %s", running->steps.label);
                buf_addch(answer, '.');
                approval_describe_turn(r, running->run.id, answer);
                if (first)
                        buf_addch(answer, ' ');
        }
        if (!first)
                return;
        add_message_count(answer, lane->mailbox);
        buf_addstr(answer, lane->mailbox == 1 ? " waits" : " wait");
        if (!running && first->queue.due_mono > loop_now_ms(r->loop))
                buf_addstr(answer, " a moment for further ones");
        buf_addch(answer, '.');
}

static void visit_lanes(struct command *c, const struct lane_name *n, struct buf *answer)
{
        const struct lane_group *group = lane_group_find(c->road, n);
        const struct lane *lane;

        if (!group)
                return;
        LIST_FOREACH(lane, &group->lanes, in_group) {
                if (c->what == COMMAND_STOP)
                        stop_lane(c, lane, NULL);
                else
                        describe_lane(c->road, lane, answer);
        }
}

/* ---- /resend ---- */

/* "/resend dlv-12" or "/resend dlv-12 no" */
static void read_decision(struct command *c, const struct incoming *in, struct buf *answer)
{
        const char *at = in->text ? strstr(in->text, "dlv-") : NULL;
        char *rest = NULL;

        if (at)
                c->delivery = strtoll(at + strlen("dlv-"), &rest, 10);
        if (c->delivery <= 0) {
                buf_addstr(answer,
                           "Say which delivery: `/resend dlv-12`, or `/resend dlv-12 no` to "
                           "leave it.");
                return;
        }
        rest += strspn(rest, " \t");
        c->leave = strncasecmp(rest, "no", 2) == 0 && !isalnum((unsigned char)rest[2]);
        c->why = mem_printf("%s decided to leave it", incoming_sender(in));
        buf_addf(answer,
                 c->leave ? "`dlv-%lld` is not sent again, unless that was decided before."
                          : "`dlv-%lld` is sent again, unless it was decided before.",
                 (long long)c->delivery);
}

struct effect *command_new(struct road *r, enum road_command what, const struct lane_name *n,
                           const struct incoming *in, struct buf *answer)
{
        struct command *c = mem_zalloc(sizeof(*c));
        struct lane_name shared = *n;

        c->effect = (struct effect){ write_command, on_committed, command_free, NULL };
        c->road = r;
        c->what = what;
        c->name = *n;
        c->sender = in->sender_id;
        if (what == COMMAND_NEW)
                reset(c, answer);
        if (what == COMMAND_STOP || what == COMMAND_STATUS) {
                visit_lanes(c, n, answer);
                shared.person = NULL;
                if (n->person) /* besides their own, the chat's shared conversation */
                        visit_lanes(c, &shared, answer);
        }
        if (what == COMMAND_STOP) {
                if (n->thread && c->turn_count == 0) {
                        stop_above(c, NULL);
                        if (c->sender)
                                stop_above(c, c->sender);
                }
                c->why = mem_printf("stopped by %s", incoming_sender(in));
                describe_stop(c, answer);
        }
        if (what == COMMAND_RESEND)
                read_decision(c, in, answer);
        if (what == COMMAND_STATUS && r->agents.describe)
                r->agents.describe(r->agents.agents, n->adapter, n->channel, answer);
        if (what == COMMAND_STATUS && answer->len == 0)
                buf_addstr(answer, "Nothing is going on in this conversation.");
        return &c->effect;
}
