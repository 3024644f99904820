/*
 * recover: what a new life of the process reads of the old one.
 *
 * Turns that were queued go on waiting; turns that were running are run again when that does no
 * harm (AGENT_REPEATABLE) and not too often, else they are given up with a notice. Events behind
 * the dispatch cursor are decided.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/road_private.h"

/* A turn as read from its row, before it has a place in memory. */
struct row {
        int64_t id, conversation, attempt, fence, due_ms, created_ms, draft, mark, joins_from;
        char *agent, *rule, *trace, *adapter, *channel, *thread, *person, *session, *cancel,
                *policy;
        struct reset_turns resets;
        bool was_running;
        struct incoming **inputs;
        unsigned count;
        STAILQ_ENTRY(row) next;
};
STAILQ_HEAD(rows, row);

static void row_free(struct row *w)
{
        if (!w)
                return;
        for (unsigned i = 0; i < w->count; i++)
                incoming_free(w->inputs[i]);
        free(w->inputs);
        free(w->agent);
        free(w->rule);
        free(w->trace);
        free(w->adapter);
        free(w->channel);
        free(w->thread);
        free(w->person);
        free(w->session);
        free(w->cancel);
        free(w->policy);
        free(w);
}

/* ---- reading ---- */

#define JOURNAL_COLUMNS "seq, type, time_ms, adapter, channel, thread, trace, key, payload"

static struct incoming *parse_event(struct store_stmt *s)
{
        struct bus_event e = {
                .seq = store_col_int(s, 0),
                .type = store_col_text(s, 1),
                .time_ms = store_col_int(s, 2),
                .adapter = store_col_text(s, 3),
                .channel = store_col_text(s, 4),
                .thread = store_col_text(s, 5),
                .trace = store_col_text(s, 6),
                .key = store_col_text(s, 7),
                .payload = store_col_text(s, 8),
        };
        struct error err;
        struct incoming *in = incoming_parse(&e, &err);

        if (!in)
                log_error("an event cannot be read back", LOG_I("event", e.seq),
                          LOG_S("why", err.text));
        return in;
}

/* *out: the event, or NULL when it is no longer kept. */
static int read_event(struct store_tx *tx, int64_t seq, struct incoming **out, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT " JOURNAL_COLUMNS " FROM journal WHERE seq = ?1"
                " AND payload <> '{}'" /* of an old one perhaps only its key is kept, see bus.h */);
        int rc;

        *out = NULL;
        store_bind_int(s, 1, seq);
        rc = store_step(s, err);
        if (rc == 1) {
                *out = parse_event(s);
                store_reset(s);
        }
        return rc < 0 ? -1 : 0;
}

/* The event whose text replaced this one's; 0: none. */
static int read_edit(struct store_tx *tx, int64_t seq, int64_t *edit, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "SELECT edited_by FROM trigger_log WHERE event = ?1");

        store_bind_int(s, 1, seq);
        return store_number(s, 0, edit, err);
}

static int read_input(struct store_tx *tx, struct row *w, int64_t seq, struct error *err)
{
        struct incoming *in, *edit = NULL, *now;
        int64_t edit_seq = 0;

        if (read_event(tx, seq, &in, err) < 0)
                return -1;
        if (!in)
                return 0;
        if (read_edit(tx, seq, &edit_seq, err) < 0 ||
            (edit_seq > 0 && read_event(tx, edit_seq, &edit, err) < 0)) {
                incoming_free(in);
                return -1;
        }
        now = edit ? incoming_edited(in, edit) : in;
        if (edit)
                incoming_free(in);
        incoming_free(edit);
        w->inputs = mem_realloc(w->inputs, (w->count + 1) * sizeof(*w->inputs));
        w->inputs[w->count++] = now;
        return 0;
}

static int read_resets(struct store_tx *tx, struct row *w, struct error *err)
{
        struct reset_scope scope = { w->adapter, w->channel, w->thread,
                                     w->count > 0 ? w->inputs[0]->sender_id : NULL };

        return reset_row_get(tx, &scope, w->id, &w->resets, err);
}

/* What was said, and whether that was after a new beginning. */
static int read_inputs(struct store_tx *tx, struct row *w, const char *inputs, struct error *err)
{
        const char *p = inputs;

        while (*p) {
                char *end;
                int64_t seq = strtoll(p, &end, 10);

                if (end == p)
                        break;
                if (read_input(tx, w, seq, err) < 0)
                        return -1;
                p = *end == ',' ? end + 1 : end;
        }
        return read_resets(tx, w, err);
}

#define TURN_COLUMNS                                                                                                            \
        "t.id, t.conversation, t.agent, t.rule, t.state, t.inputs, t.trace, t.attempt, t.fence, t.due_ms, "                     \
        "t.created_ms,"                                                                                                         \
        " c.adapter, c.channel, c.thread, t.draft, c.person, t.session, t.cancel_reason, t.progress_reaction, c.history_turn, " \
        "t.reply_policy"

/*
 * Reads the row the statement stands on. inputs_out: a copy of the list, because reading events
 * moves the statement's memory.
 */
static struct row *read_row(struct store_stmt *s, char **inputs_out)
{
        struct row *w = mem_zalloc(sizeof(*w));

        w->id = store_col_int(s, 0);
        w->conversation = store_col_int(s, 1);
        w->agent = mem_strdup(store_col_text(s, 2));
        w->rule = mem_strdup(store_col_text(s, 3));
        w->was_running = strcmp(store_col_text(s, 4), "running") == 0;
        *inputs_out = mem_strdup(store_col_text(s, 5));
        w->trace = mem_strdup(store_col_text(s, 6));
        w->attempt = store_col_int(s, 7);
        w->fence = store_col_int(s, 8);
        w->due_ms = store_col_int(s, 9);
        w->created_ms = store_col_int(s, 10);
        w->adapter = mem_strdup(store_col_text(s, 11));
        w->channel = mem_strdup(store_col_text(s, 12));
        w->thread = mem_strdup(store_col_text(s, 13));
        w->draft = store_col_int(s, 14);
        w->person = mem_strdup(store_col_text(s, 15));
        w->session = mem_strdup(store_col_text(s, 16));
        w->cancel = mem_strdup(store_col_text(s, 17));
        w->mark = store_col_int(s, 18);
        w->joins_from = store_col_int(s, 19);
        w->policy = mem_strdup(store_col_text(s, 20));
        return w;
}

struct reading {
        struct rows rows;
        int64_t next_turn;
};

static int read_max(struct store_tx *tx, struct reading *v, struct error *err)
{
        int rc =
                store_number(store_prepare(tx, "SELECT max(id) FROM turns"), 0, &v->next_turn, err);

        v->next_turn++;
        return rc;
}

static int read_turns(struct store_tx *tx, void *arg, struct error *err)
{
        struct reading *v = arg;
        struct store_stmt *s =
                store_prepare(tx, "SELECT " TURN_COLUMNS
                                  " FROM turns t JOIN conversations c ON c.id = t.conversation"
                                  " WHERE t.state IN ('queued', 'running') ORDER BY t.id");
        int rc;

        while ((rc = store_step(s, err)) == 1) {
                char *inputs;
                struct row *w = read_row(s, &inputs);
                int got = read_inputs(tx, w, inputs, err);

                free(inputs);
                STAILQ_INSERT_TAIL(&v->rows, w, next);
                if (got < 0) {
                        store_reset(s);
                        return -1;
                }
        }
        return rc < 0 ? -1 : read_max(tx, v, err);
}

/* ---- back into lanes ---- */

/* What is left of a debounce. A clock that jumped back must not make it longer than it ever was. */
static int64_t time_left(const struct row *w)
{
        int64_t left = w->due_ms - clock_wall_ms(), whole = w->due_ms - w->created_ms;

        if (left > whole)
                left = whole;
        return w->was_running || left < 0 ? 0 : left;
}

static struct turn *place_row(struct road *r, struct row *w)
{
        struct lane_name name = { w->adapter, w->channel, w->thread, w->agent, w->person };
        struct lane *lane = lane_get(r, &name);
        struct turn *t;
        int64_t next = r->next_turn;

        lane->conversation = w->conversation;
        if (lane->joins_from < w->joins_from) /* it may have begun anew since the row was read */
                lane->joins_from = w->joins_from;
        r->next_turn = w->id;
        t = turn_new(r, lane, w->agent, w->rule, w->trace);
        r->next_turn = next > w->id ? next : w->id + 1;
        t->run.attempt = (int)w->attempt;
        t->run.fence = w->fence;
        t->run.resets = w->resets;
        t->created_ms = w->created_ms;
        t->draft_delivery = w->draft;
        t->mark = w->mark;
        t->person = mem_strdup(w->person);
        t->session = mem_strdup(w->session);
        reply_policy_read(&t->policy, w->policy, &t->arena);
        t->phase = PHASE_QUEUED;
        t->due_ms = w->due_ms;
        t->due_mono = t->due_limit = loop_now_ms(r->loop) + time_left(w);
        for (unsigned i = 0; i < w->count; i++)
                turn_add_input(t, w->inputs[i]);
        w->count = 0;
        lane_append(lane, t);
        return t;
}

struct resumption {
        struct road *road;
        struct rows rows;
};

struct burial {
        struct road *road;
        int64_t id;
};

static int write_burial(struct store_tx *tx, void *arg, struct error *err)
{
        struct burial *b = arg;
        struct store_stmt *s = store_prepare(
                tx, "UPDATE turns SET state = 'failed', ended_ms = ?2, error_kind = 'missing',"
                    " error = 'its messages are no longer kept' WHERE id = ?1");

        store_bind_int(s, 1, b->id);
        store_bind_int(s, 2, clock_wall_ms());
        return store_run(s, err);
}

/*
 * A turn whose messages are gone can be neither run nor answered; it must not be found again at
 * every start.
 */
static void bury(struct road *r, int64_t id)
{
        struct burial *b = mem_zalloc(sizeof(*b));

        log_error("a turn is given up: its messages are no longer kept", LOG_I("turn", id));
        b->road = r;
        b->id = id;
        road_write(r, "end of a turn", write_burial, free, b);
}

static void resume_row(struct road *r, struct row *w)
{
        unsigned can = r->agents.abilities(r->agents.agents, w->agent);
        struct turn *t;

        if (w->count == 0) {
                bury(r, w->id);
                return;
        }
        t = place_row(r, w);
        t->cancel_why = mem_strdup(w->cancel);
        if (t->cancel_why)
                turn_check_cancel(t);
        else if (!w->was_running)
                lane_pump(r, t->lane);
        else if (!(can & AGENT_REPEATABLE))
                turn_give_up(
                        t,
                        "the process ended during this turn, and its agent must not be asked twice");
        else if (w->attempt >= r->limits.turn_attempts)
                turn_give_up(t,
                             "the process ended during this turn too often (limits.turnAttempts)");
        else
                lane_pump(r, t->lane);
}

/* From the loop, when agents and adapters are there. */
static void on_resume(void *arg)
{
        struct resumption *v = arg;
        struct row *w;

        v->road->writes--;
        v->road->resumed = true;
        outbox_set_all_limits(v->road);
        while ((w = STAILQ_FIRST(&v->rows))) {
                STAILQ_REMOVE_HEAD(&v->rows, next);
                if (!v->road->closing) /* else the next life takes it up */
                        resume_row(v->road, w);
                row_free(w);
        }
        decide_pending(v->road);
        outbox_pump_all(v->road);
        free(v);
}

int recover_turns(struct road *r, struct error *err)
{
        struct reading v = { .next_turn = 1 };
        struct resumption *later;
        struct row *w;

        STAILQ_INIT(&v.rows);
        if (store_read_now(r->store, read_turns, &v, err) < 0) {
                while ((w = STAILQ_FIRST(&v.rows))) {
                        STAILQ_REMOVE_HEAD(&v.rows, next);
                        row_free(w);
                }
                return -1;
        }
        r->next_turn = v.next_turn;
        later = mem_zalloc(sizeof(*later));
        later->road = r;
        STAILQ_INIT(&later->rows);
        STAILQ_CONCAT(&later->rows, &v.rows);
        r->writes++;
        loop_defer(r->loop, on_resume, later);
        return 0;
}

/* ---- events nobody has decided yet ---- */

static int read_undecided(struct store_tx *tx, void *arg, struct error *err)
{
        struct road *r = arg;
        struct store_stmt *s;
        int64_t cursor;
        int rc;

        if (bus_cursor_get(tx, ROAD_CURSOR, &cursor, err) < 0)
                return -1;
        s = store_prepare(tx, "SELECT " JOURNAL_COLUMNS
                              " FROM journal WHERE seq > ?1 AND key IS NOT NULL ORDER BY seq");
        store_bind_int(s, 1, cursor);
        while ((rc = store_step(s, err)) == 1) {
                struct incoming *in =
                        event_is_inbound(store_col_text(s, 1)) ? parse_event(s) : NULL;

                /* the loop waits for this function, so the list is ours alone */
                if (in)
                        decide_later(r, in);
        }
        return rc < 0 ? -1 : 0;
}

int recover_events(struct road *r, struct error *err)
{
        return store_read_now(r->store, read_undecided, r, err);
}

/* ---- a failed turn, once more ---- */

struct reviving {
        struct road *road;
        int64_t id;
        struct row *row; /* result */
        store_done_fn *done;
        void *arg;
};

static int revive(struct store_tx *tx, struct reviving *v, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "UPDATE turns SET state = 'queued', attempt = 0, fence = fence + 1,"
                " cancel_reason = NULL, progress_reaction = 0, due_ms = ?2, ended_ms = NULL WHERE id = ?1 AND state = 'failed'");

        store_bind_int(s, 1, v->id);
        store_bind_int(s, 2, clock_wall_ms());
        if (store_run(s, err) < 0)
                return -1;
        if (store_changes(tx) == 0)
                return error_set(err, ERR_CONFLICT, "turn 'trn-%lld' has not failed",
                                 (long long)v->id);
        return 0;
}

static int write_revival(struct store_tx *tx, void *arg, struct error *err)
{
        struct reviving *v = arg;
        struct store_stmt *s;
        char *inputs;
        int rc;

        row_free(v->row);
        v->row = NULL;
        if (revive(tx, v, err) < 0)
                return -1;
        s = store_prepare(tx, "SELECT " TURN_COLUMNS
                              " FROM turns t JOIN conversations c ON c.id = t.conversation"
                              " WHERE t.id = ?1");
        store_bind_int(s, 1, v->id);
        if (store_step(s, err) != 1)
                return -1;
        v->row = read_row(s, &inputs);
        store_reset(s);
        rc = read_inputs(tx, v->row, inputs, err);
        free(inputs);
        if (rc == 0 && v->row->count == 0)
                return error_set(err, ERR_MISSING,
                                 "the messages of turn 'trn-%lld' are no longer kept",
                                 (long long)v->id);
        return rc;
}

static void on_revived(void *arg, const struct error *err)
{
        struct reviving *v = arg;
        struct road *r = v->road;

        r->writes--;
        if (!err)
                lane_pump(r, place_row(r, v->row)->lane);
        row_free(v->row);
        v->done(v->arg, err);
        free(v);
}

void turn_retry(struct road *r, int64_t turn, store_done_fn *done, void *arg)
{
        struct reviving *v = mem_zalloc(sizeof(*v));

        v->road = r;
        v->id = turn;
        v->done = done;
        v->arg = arg;
        r->writes++;
        store_write(r->store, write_revival, on_revived, v);
}
