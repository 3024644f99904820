/*
 * a2a_rows: what is known of a turn's message and task, read first and stored as it becomes known.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/a2a/a2a.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "rows/a2a_turn_row.h"
#include "rows/agent_session_row.h"
#include "store/store.h"

static void set(char **to, const char *text)
{
        free(*to);
        *to = mem_strdup(text && *text ? text : NULL);
}

/* ---- reading ---- */

struct a2a_load {
        struct a2a_turn *turn; /* NULL: taken back */
        int64_t id;
        char *agent, *name;
        struct a2a_turn_row *row, *open; /* results; may be NULL */
        struct agent_session_row *session;
};

static void clear_results(struct a2a_load *l)
{
        free(l->row);
        free(l->open);
        free(l->session);
        l->row = l->open = NULL;
        l->session = NULL;
}

static int read_rows(struct store_tx *tx, void *arg, struct error *err)
{
        struct a2a_load *l = arg;

        clear_results(l);
        if (a2a_turn_row_get(tx, l->id, &l->row, err) < 0 ||
            agent_session_row_get(tx, l->agent, l->name, &l->session, err) < 0)
                return -1;
        /* of another agent: it failed, and this one took over */
        if (l->row && strcmp(l->row->agent, l->agent) != 0) {
                free(l->row);
                l->row = NULL;
        }
        return l->row || a2a_turn_row_find_open(tx, l->agent, l->name, &l->open, err) >= 0 ? 0 : -1;
}

static void on_loaded(void *arg, const struct error *err)
{
        struct a2a_load *l = arg;
        struct a2a_turn *t = l->turn;

        if (t) {
                t->load = NULL;
                if (l->row) {
                        t->sent = true;
                        t->goes_on = l->row->goes_on;
                        set(&t->message, l->row->message);
                        set(&t->task, l->row->task);
                        set(&t->before, l->row->goes_on ? l->row->since : NULL);
                } else if (l->open) {
                        t->goes_on = true;
                        set(&t->task, l->open->task);
                        set(&t->before, l->open->since);
                }
                if (l->session)
                        set(&t->context, l->session->session);
                a2a_loaded(t, err);
        }
        clear_results(l);
        free(l->agent);
        free(l->name);
        free(l);
}

void a2a_load(struct a2a_turn *t)
{
        struct a2a_load *l = mem_zalloc(sizeof(*l));

        l->turn = t;
        l->id = t->id;
        l->agent = mem_strdup(t->owner->agent->name);
        l->name = mem_strdup(t->name);
        t->load = l;
        turn_load(t->run, read_rows, on_loaded, l);
}

/* ---- writing ---- */

enum write_what { WRITE_MARK, WRITE_TASK, WRITE_OPEN };

struct a2a_write {
        struct a2a_turn *turn; /* NULL: nobody waits for it */
        const struct turn_run *run;
        enum write_what what;
        int64_t id, fence;
        char *agent, *name, *message, *task, *since, *context, *payload;
        bool goes_on;
};

static int put_session(struct store_tx *tx, const struct a2a_write *w, struct error *err)
{
        return agent_session_row_put(tx,
                                     &(struct agent_session_row){ .agent = w->agent,
                                                                  .name = w->name,
                                                                  .session = w->context,
                                                                  .turn = w->id,
                                                                  .used_ms = clock_wall_ms() },
                                     w->fence, err);
}

static int write_rows(struct store_tx *tx, struct bus_batch *batch, void *arg, struct error *err)
{
        const struct a2a_write *w = arg;
        /* a task that a message goes to waits until the agent tells of the message */
        bool closes = w->what != WRITE_MARK || !w->goes_on;
        int rc;

        rc = a2a_turn_row_put(tx,
                              &(struct a2a_turn_row){ .turn = w->id,
                                                      .agent = w->agent,
                                                      .name = w->name,
                                                      .message = w->message,
                                                      .task = w->task ? w->task : "",
                                                      .goes_on = w->goes_on,
                                                      .since = w->since ? w->since : "",
                                                      .used_ms = clock_wall_ms() },
                              w->fence, err);
        if (rc == 1 && closes && a2a_turn_row_close_all(tx, w->agent, w->name, err) < 0)
                return -1;
        if (rc == 1 && w->what == WRITE_OPEN &&
            a2a_turn_row_open(tx, w->id, w->since ? w->since : "", err) < 0)
                return -1;
        if (rc == 1 && w->context)
                rc = put_session(tx, w, err);
        if (rc == 1 && w->payload &&
            turn_append_event(tx, batch, w->run, "agent.task", w->payload, err) < 0)
                return -1;
        return rc;
}

static void on_written(void *arg, bool stored)
{
        struct a2a_write *w = arg;
        struct a2a_turn *t = w->turn;

        if (t) {
                t->write = NULL;
                if (w->what == WRITE_MARK)
                        a2a_marked(t, stored);
                else
                        a2a_task_stored(t);
        }
        free(w->agent);
        free(w->name);
        free(w->message);
        free(w->task);
        free(w->since);
        free(w->context);
        free(w->payload);
        free(w);
}

/* For the operator: which task it is there. */
static char *event_payload(const struct a2a_turn *t)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "turnId", t->run->key);
        jsonw_str(&b, "agent", t->owner->agent->name);
        jsonw_opt(&b, "taskId", t->task);
        jsonw_opt(&b, "contextId", t->context);
        jsonw_str(&b, "messageId", t->message);
        jsonw_str(&b, "state", a2a_state_name(A2A_0_3, t->state));
        jsonw_close(&b, '}');
        return buf_take(&b);
}

static void store(struct a2a_turn *t, enum write_what what, bool waits)
{
        struct a2a_write *w = mem_zalloc(sizeof(*w));

        w->run = t->run;
        w->what = what;
        w->id = t->id;
        w->fence = t->fence;
        w->goes_on = t->goes_on;
        w->agent = mem_strdup(t->owner->agent->name);
        w->name = mem_strdup(t->name);
        w->message = mem_strdup(t->message);
        w->task = mem_strdup(t->task);
        /* of a task that waits, its state now; of a message to one, its state before */
        w->since = mem_strdup(what == WRITE_OPEN ? t->since : t->before);
        w->context = mem_strdup(t->context);
        if (what != WRITE_MARK)
                w->payload = event_payload(t);
        if (waits) {
                w->turn = t;
                t->write = w;
        }
        if (turn_store_step(t->run, write_rows, on_written, w))
                return;
        w->turn = NULL; /* the process ends, and cancel follows */
        t->write = NULL;
        on_written(w, false);
}

void a2a_store_mark(struct a2a_turn *t)
{
        store(t, WRITE_MARK, true);
}

void a2a_store_open(struct a2a_turn *t)
{
        store(t, WRITE_OPEN, true);
}

void a2a_store_task(struct a2a_turn *t)
{
        store(t, WRITE_TASK, false);
}

void a2a_rows_forget(struct a2a_turn *t)
{
        if (t->load)
                t->load->turn = NULL;
        if (t->write)
                t->write->turn = NULL;
        t->load = NULL;
        t->write = NULL;
}

/* ---- after the turn ---- */

struct late_write {
        int64_t turn;
        char *agent, *name, *task, *since; /* since NULL: it does not wait */
};

static int write_late(struct store_tx *tx, void *arg, struct error *err)
{
        const struct late_write *w = arg;

        return w->since ? a2a_turn_row_open(tx, w->turn, w->since, err)
                        : a2a_turn_row_close(tx, w->agent, w->name, w->task, err);
}

/* At worst the next message goes to a task that has ended, and is sent again without it. */
static void on_late_written(void *arg, const struct error *err)
{
        struct late_write *w = arg;

        if (err)
                log_warn("cannot store whether a task waits", LOG_I("turn", w->turn),
                         LOG_S("why", err->text));
        free(w->agent);
        free(w->name);
        free(w->task);
        free(w->since);
        free(w);
}

void a2a_store_late(struct a2a_turn *t, bool open)
{
        struct late_write *w = mem_zalloc(sizeof(*w));

        w->turn = t->id;
        w->agent = mem_strdup(t->owner->agent->name);
        w->name = mem_strdup(t->name);
        w->task = mem_strdup(t->task);
        w->since = open ? mem_strdup(t->since ? t->since : "") : NULL;
        store_write(agent_store(t->owner->agent), write_late, on_late_written, w);
}
