/*
 * recover: resumes open rows of an earlier run, and retries failed turns.
 *
 * Queued turns keep waiting. Running ones run again if harmless (AGENT_REPEATABLE), if they go on
 * from stored steps (AGENT_RESUMES) or if the agent knows whether it was given them
 * (AGENT_RECOVERS), and not too often, else they end with a notice; what counts is the agent that
 * had it, also by failover. Deliveries in state sending may have arrived. Events after the dispatch
 * cursor are decided.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/road_state.h"
#include "rows/a2a_turn_row.h"
#include "rows/journal_row.h"
#include "rows/trigger_log_row.h"

/* ---- events ---- */

/* NULL: unreadable. */
static struct incoming *parse(const struct journal_row *row)
{
        struct error err;
        struct incoming *in = incoming_from_row(row, &err);

        if (!in)
                log_error("cannot read a stored event; skipping it", LOG_I("event", row->seq),
                          LOG_S("why", err.text));
        return in;
}

static int read_undecided(struct store_tx *tx, void *arg, struct error *err)
{
        struct road *r = arg;
        struct journal_range range = { 0 };
        struct journal_row row;
        struct store_stmt *s;
        int rc;

        if (bus_cursor_get(tx, ROAD_CURSOR, &range.after, err) < 0)
                return -1;
        s = journal_row_scan(tx, &range);
        while ((rc = journal_row_next(s, &row, err)) == 1) {
                struct incoming *in;

                if (!row.key || !incoming_is_type(row.type))
                        continue;
                journal_row_read_payload(s, &row);
                in = parse(&row);
                if (in) /* the loop is blocked meanwhile, so no lock */
                        decide_later(r, in);
        }
        return rc;
}

/* ---- deliveries ---- */

static int read_deliveries(struct store_tx *tx, void *arg, struct error *err)
{
        struct delivery_list *list = arg;
        struct store_stmt *s = delivery_row_list_open(tx);
        int64_t now_ms = clock_wall_ms();
        struct delivery_row row;
        int rc;

        while ((rc = delivery_row_next(s, &row, err)) == 1) {
                struct delivery_job *j = delivery_load(&row);
                int64_t left = row.due_ms - now_ms;
                int64_t pause = row.due_ms - (row.lease_ms > 0 ? row.lease_ms : row.created_ms);

                j->unconfirmed = row.state == DELIVERY_SENDING;
                /* a clock set back must not lengthen the pause */
                if (!j->unconfirmed && left > 0)
                        j->due_mono = left < pause ? left : pause; /* recover_open adds the clock */
                j->rate_limited = !j->unconfirmed && row.error_kind &&
                                  strcmp(row.error_kind, error_kind_name(ERR_LIMIT)) == 0;
                TAILQ_INSERT_TAIL(list, j, next);
        }
        return rc;
}

static int recover_deliveries(struct road *r, struct error *err)
{
        struct delivery_list list = TAILQ_HEAD_INITIALIZER(list);
        struct delivery_job *j, *answer = NULL;
        int64_t now = loop_now_ms(r->loop);
        int rc = store_read_now(r->store, read_deliveries, &list, err);

        while ((j = TAILQ_FIRST(&list))) {
                TAILQ_REMOVE(&list, j, next);
                if (rc < 0) {
                        delivery_free(j);
                        continue;
                }
                if (j->rate_limited && j->due_mono > 0)
                        pace_freeze(outbox_adapter(r, j->d.adapter)->pace, j->d.channel,
                                    j->due_mono, now);
                j->due_mono += now;
                outbox_enqueue_next(r, j, &answer);
        }
        return rc;
}

/* ---- turns ---- */

/* A turn as read, not yet in a lane. */
struct recovered_turn {
        struct turn_row *row;
        struct reset_turns resets;
        struct incoming **inputs;
        unsigned count;
        STAILQ_ENTRY(recovered_turn) next;
};
STAILQ_HEAD(recovered_list, recovered_turn);

static void recovered_free(struct recovered_turn *v)
{
        if (!v)
                return;
        for (unsigned i = 0; i < v->count; i++)
                incoming_free(v->inputs[i]);
        free(v->inputs);
        free(v->row);
        free(v);
}

/* *out: NULL when pruned or reduced to its key (see bus.h). */
static int read_event(struct store_tx *tx, int64_t seq, struct incoming **out, struct error *err)
{
        struct journal_row *row;
        int rc = journal_row_get(tx, seq, &row, err);

        *out = rc == 1 && strcmp(row->payload, "{}") != 0 ? parse(row) : NULL;
        free(row);
        return rc < 0 ? -1 : 0;
}

static int read_input(struct store_tx *tx, struct recovered_turn *v, int64_t seq, struct error *err)
{
        struct incoming *in, *edit = NULL;
        int64_t edit_seq;

        if (read_event(tx, seq, &in, err) < 0)
                return -1;
        if (!in)
                return 0;
        if (trigger_log_row_edited_by(tx, seq, &edit_seq, err) < 0 ||
            (edit_seq > 0 && read_event(tx, edit_seq, &edit, err) < 0)) {
                incoming_free(in);
                return -1;
        }
        if (edit) {
                struct incoming *original = in;

                in = incoming_edited(original, edit);
                incoming_free(original);
                incoming_free(edit);
        }
        v->inputs = mem_realloc(v->inputs, (v->count + 1) * sizeof(*v->inputs));
        v->inputs[v->count++] = in;
        return 0;
}

static int read_inputs(struct store_tx *tx, struct recovered_turn *v, struct error *err)
{
        const struct turn_row *row = v->row;
        const char *inputs = row->inputs;
        struct reset_scope scope = { row->adapter, row->channel, row->thread, NULL };
        int64_t event;

        while (turn_row_next_input(&inputs, &event)) {
                if (read_input(tx, v, event, err) < 0)
                        return -1;
        }
        scope.sender = v->count > 0 ? v->inputs[0]->sender_id : NULL;
        return reset_row_get(tx, &scope, row->id, &v->resets, err);
}

static int read_turns(struct store_tx *tx, void *arg, struct error *err)
{
        struct recovered_list *list = arg;
        struct store_stmt *s = turn_row_list_open(tx);
        struct turn_row row;
        int rc;

        while ((rc = turn_row_next(s, &row, err)) == 1) {
                struct recovered_turn *v = mem_zalloc(sizeof(*v));

                STAILQ_INSERT_TAIL(list, v, next);
                v->row = turn_row_dup(&row);
                if (read_inputs(tx, v, err) < 0) {
                        rows_end(s);
                        return -1;
                }
        }
        return rc;
}

/* Adds it to its lane; takes its inputs. */
static struct turn *queue_recovered(struct road *r, struct recovered_turn *v)
{
        const struct turn_row *row = v->row;
        struct lane_name name = { row->adapter, row->channel, row->thread, row->agent,
                                  row->person };
        struct lane *lane = lane_get(r, &name);
        struct turn_run run = { .id = row->id,
                                .fence = row->fence,
                                .attempt = (int)row->attempt,
                                .resets = v->resets,
                                .agent = row->agent,
                                .rule = row->rule,
                                .session = row->session,
                                .given_to = row->given_to,
                                .adapter = row->adapter,
                                .channel = row->channel,
                                .thread = row->thread,
                                .trace = row->trace };
        /* a clock set back must not lengthen the debounce */
        int64_t left = row->due_ms - clock_wall_ms(), whole = row->due_ms - row->created_ms;
        struct reply_policy policy;
        struct arena arena;
        struct turn *t;

        lane->conversation = row->conversation;
        if (lane->reset_turn < row->reset_turn) /* may be newer than the row */
                lane->reset_turn = row->reset_turn;
        arena_init(&arena);
        reply_policy_read(&policy, row->reply_policy, &arena);
        t = turn_new(r, lane, &run, &policy);
        arena_release(&arena);
        t->created_ms = row->created_ms;
        t->display.draft_delivery = row->draft;
        t->display.reaction = row->progress_reaction;
        if (row->answered_by)
                turn_recover_failover(t, row);
        turn_enter(t, PHASE_QUEUED);
        if (left > whole)
                left = whole;
        if (row->state == TURN_RUNNING || left < 0)
                left = 0;
        t->queue.due_ms = row->due_ms;
        t->queue.due_mono = t->queue.due_limit = loop_now_ms(r->loop) + left;
        for (unsigned i = 0; i < v->count; i++)
                turn_add_input(t, v->inputs[i]);
        v->count = 0;
        lane_append(lane, t);
        return t;
}

static int write_lost(struct store_tx *tx, void *id, struct error *err)
{
        return turn_row_lose(tx, *(int64_t *)id, clock_wall_ms(), err);
}

static void on_lost(void *id, const struct error *err)
{
        (void)err;
        free(id);
}

/* Files are fetched again, or found where the last run put them. */
static void start_recovered(struct road *r, struct turn *t)
{
        for (unsigned i = 0; i < t->run.input_count; i++)
                turn_files_want(t, t->inputs[i]);
        lane_pump(r, t->lane);
}

static void resume(struct road *r, struct recovered_turn *v)
{
        static const unsigned may_run_again = AGENT_REPEATABLE | AGENT_RESUMES | AGENT_RECOVERS;
        const struct turn_row *row = v->row;
        unsigned can = r->agents.abilities(r->agents.agents, turn_row_agent(row));
        struct turn *t;

        if (v->count == 0) { /* can never be run or answered */
                log_error("turn given up: its messages were pruned", LOG_I("turn", row->id));
                road_write(r, "end of a turn", write_lost, on_lost,
                           mem_dup(&row->id, sizeof(row->id)));
                return;
        }
        t = queue_recovered(r, v);
        t->cancel.why = mem_strdup(row->cancel_reason);
        if (t->cancel.why)
                turn_check_cancel(t);
        else if (row->state == TURN_RUNNING && !(can & may_run_again))
                turn_give_up(t,
                             "the process ended during this turn, and its agent must not be asked "
                             "twice");
        else if (row->state == TURN_RUNNING &&
                 row->attempt - row->progress_attempt >= r->limits.turn_attempts)
                turn_give_up(t,
                             "the process ended during this turn too often (limits.turnAttempts)");
        else
                start_recovered(r, t);
}

struct resumption {
        struct road *road;
        struct recovered_list turns;
};

/* On the loop, once agents and adapters exist. */
static void on_resume(void *arg)
{
        struct resumption *v = arg;
        struct road *r = v->road;
        struct recovered_turn *t;

        r->writes--;
        r->resumed = true;
        outbox_update_limits(r);
        while ((t = STAILQ_FIRST(&v->turns))) {
                STAILQ_REMOVE_HEAD(&v->turns, next);
                if (!r->closing)
                        resume(r, t);
                recovered_free(t);
        }
        decide_pending(r);
        outbox_pump_all(r);
        free(v);
}

int recover_open(struct road *r, struct error *err)
{
        struct resumption *v;

        if (recover_deliveries(r, err) < 0 || store_read_now(r->store, read_undecided, r, err) < 0)
                return -1;
        v = mem_zalloc(sizeof(*v));
        v->road = r;
        STAILQ_INIT(&v->turns);
        if (store_read_now(r->store, read_turns, &v->turns, err) < 0) {
                struct recovered_turn *t;

                while ((t = STAILQ_FIRST(&v->turns))) {
                        STAILQ_REMOVE_HEAD(&v->turns, next);
                        recovered_free(t);
                }
                free(v);
                return -1;
        }
        r->writes++;
        loop_defer(r->loop, on_resume, v);
        return 0;
}

/* ---- retrying a failed turn ---- */

struct turn_retry {
        struct road *road;
        int64_t id;
        struct recovered_turn *turn; /* result */
        store_done_fn *done;
        void *arg;
};

static int write_retry(struct store_tx *tx, void *arg, struct error *err)
{
        struct turn_retry *v = arg;
        int rc = turn_row_revive(tx, v->id, clock_wall_ms(), err);

        recovered_free(v->turn);
        v->turn = NULL;
        if (rc == 0)
                return error_set(err, ERR_CONFLICT, "turn 'trn-%lld' has not failed",
                                 (long long)v->id);
        /* its end writes them again */
        if (rc < 0 || transcript_row_delete_turn(tx, v->id, err) < 0 ||
            a2a_turn_row_delete(tx, v->id, err) < 0)
                return -1;
        v->turn = mem_zalloc(sizeof(*v->turn));
        if (turn_row_get(tx, v->id, &v->turn->row, err) != 1 || read_inputs(tx, v->turn, err) < 0)
                return -1;
        if (v->turn->count == 0)
                return error_set(err, ERR_MISSING, "the messages of turn 'trn-%lld' were pruned",
                                 (long long)v->id);
        return 0;
}

static void on_retried(void *arg, const struct error *err)
{
        struct turn_retry *v = arg;
        struct road *r = v->road;

        r->writes--;
        if (!err)
                start_recovered(r, queue_recovered(r, v->turn));
        recovered_free(v->turn);
        v->done(v->arg, err);
        free(v);
}

void turn_retry(struct road *r, int64_t turn, store_done_fn *done, void *arg)
{
        struct turn_retry *v = mem_zalloc(sizeof(*v));

        v->road = r;
        v->id = turn;
        v->done = done;
        v->arg = arg;
        r->writes++;
        store_write(r->store, write_retry, on_retried, v);
}
