#include "remote/session_intake.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"
#include "remote/remote_private.h"
#include "remote/session_command.h"

#define STALE_MS 1000 /* of last_event_ms: a burst of events is one write of the row */

/* A session that events of this request belong to. */
struct touched {
        struct session_row *row;
        bool changed; /* what its row says */
        bool moved;   /* it ended, or is active again */
        bool urgent;  /* people wait for what was reported */
};

struct intake {
        struct remote *remote;
        struct session_caller by;
        struct session_events events; /* the rows' strings point into it */
        int64_t now_ms, active;
        bool asks; /* a person is asked until some time */
        session_intake_fn *done;
        void *arg;
        /* results */
        struct touched *touched;
        size_t touched_count;
        struct session_receipt receipt;
        struct bus_batch batch;
};

/* ---- in the store function ---- */

static void forget_results(struct intake *in)
{
        for (size_t i = 0; i < in->touched_count; i++)
                free(in->touched[i].row);
        in->touched_count = 0;
        in->receipt = (struct session_receipt){ 0, 0 };
        bus_batch_reset(&in->batch);
}

static int touch(struct store_tx *tx, struct intake *in, const char *session, struct touched **out,
                 struct error *err)
{
        struct touched *t;

        for (size_t i = in->touched_count; i > 0; i--) {
                *out = &in->touched[i - 1];
                if (strcmp((*out)->row->session, session) == 0)
                        return 0;
        }
        t = &in->touched[in->touched_count];
        *t = (struct touched){ 0 };
        if (session_find_or_add(tx, &in->by, session, in->active, in->now_ms, &t->row, err) < 0)
                return -1;
        in->touched_count++;
        *out = t;
        return 0;
}

static void take_text(const char **to, const char *said, bool *changed)
{
        if (!said || (*to && strcmp(*to, said) == 0))
                return;
        *to = said;
        *changed = true;
}

/* What an event says about its session. */
static void apply(struct touched *t, const struct session_event *e, int64_t now_ms)
{
        enum session_state state = e->kind == SESSION_EVENT_END ? SESSION_ENDED : SESSION_ACTIVE;
        struct session_row *row = t->row;

        take_text(&row->program, e->program, &t->changed);
        take_text(&row->host, e->host, &t->changed);
        take_text(&row->cwd, e->cwd, &t->changed);
        take_text(&row->title, e->title, &t->changed);
        take_text(&row->model, e->model, &t->changed);
        if (e->kind == SESSION_EVENT_TURN_END) {
                row->turns += e->ends_turn;
                row->tokens += e->tokens;
                row->cost_microusd += e->cost_microusd;
                t->changed = true;
        }
        if (row->state != state) {
                row->state = state;
                row->ended_ms = state == SESSION_ENDED ? now_ms : 0;
                t->changed = t->moved = true;
        }
        if (now_ms - row->last_event_ms >= STALE_MS || now_ms < row->last_event_ms)
                t->changed = true;
        if (t->changed)
                row->last_event_ms = now_ms;
}

/* What the program says of its question is what it does, whatever people decided meanwhile. */
static int resolve(struct store_tx *tx, const struct session_approval_row *known,
                   const struct session_event *e, int64_t now_ms, struct error *err)
{
        const char *decision = e->decision ? e->decision : "deny", *by = e->by ? e->by : "desk";

        if (strcmp(known->state, "open") == 0)
                return session_approval_row_decide(tx, known->id, decision, by, NULL, now_ms, err);
        if (!e->decision || strcmp(known->state, decision) == 0)
                return 0;
        return session_approval_row_overrule(tx, known->id, decision, by, now_ms, err);
}

/* The program asks a person, or needs no answer any more. */
static int write_approval(struct store_tx *tx, struct intake *in, const struct session_row *row,
                          const struct session_event *e, struct error *err)
{
        struct session_approval_row asked = {
                .session = row->id,
                .approval = e->approval,
                .tool = e->tool,
                .content = e->content,
                .reason = e->reason,
                .fallback = e->fallback,
                .created_ms = in->now_ms,
                .expires_ms = e->timeout_ms > 0 && e->timeout_ms < INT32_MAX
                                      ? in->now_ms + e->timeout_ms
                                      : 0,
        };
        struct session_approval_row *known;
        int64_t id;
        int rc;

        in->asks = in->asks || asked.expires_ms > 0;
        if (e->kind == SESSION_EVENT_APPROVAL_REQUEST)
                return session_approval_row_insert(tx, &asked, &id, err) < 0 ? -1 : 0;
        rc = session_approval_row_find(tx, row->id, e->approval, &known, err);
        if (rc == 1)
                rc = resolve(tx, known, e, in->now_ms, err);
        free(known);
        if (rc < 0)
                return -1;
        return session_command_supersede(tx, &in->batch, row, e->approval, in->now_ms, err);
}

static int write_event(struct store_tx *tx, struct intake *in, const struct session_event *e,
                       struct error *err)
{
        struct touched *t;
        int rc;

        if (touch(tx, in, e->session, &t, err) < 0)
                return -1;
        rc = bus_append(tx, &in->batch,
                        &(struct bus_event){ .type = e->type,
                                             .time_ms = in->now_ms,
                                             .trace = t->row->trace,
                                             .key = e->key,
                                             .payload = e->payload },
                        NULL, err);
        if (rc < 0)
                return -1;
        in->receipt.accepted += rc == 1;
        in->receipt.duplicates += rc == 0;
        if (rc == 0)
                return 0;
        apply(t, e, in->now_ms);
        t->urgent = t->urgent || e->is_urgent;
        if (e->kind == SESSION_EVENT_END) /* its program takes no answers any more */
                return session_approval_row_close(tx, t->row->id, SESSION_DECIDED_BY_END,
                                                  in->now_ms, err);
        return e->approval ? write_approval(tx, in, t->row, e, err) : 0;
}

static int write_intake(struct store_tx *tx, void *arg, struct error *err)
{
        struct intake *in = arg;

        forget_results(in);
        for (size_t i = 0; i < in->events.count; i++)
                if (write_event(tx, in, &in->events.items[i], err) < 0)
                        return -1;
        fault_point("session.events");
        for (size_t i = 0; i < in->touched_count; i++)
                if (in->touched[i].changed && session_row_update(tx, in->touched[i].row, err) < 0)
                        return -1;
        return 0;
}

/* ---- on the loop ---- */

static void on_written(void *arg, const struct error *err)
{
        struct intake *in = arg;
        struct remote *r = in->remote;
        bool moved = false;

        fault_point("session.committed");
        r->writes--;
        if (!err) {
                bus_publish(r->env.bus, &in->batch);
                r->stats.events += in->receipt.accepted;
                r->stats.duplicates += in->receipt.duplicates;
                for (size_t i = 0; i < in->touched_count; i++) {
                        moved = moved || in->touched[i].moved;
                        if (in->touched[i].moved)
                                session_index_put(r, in->touched[i].row);
                        session_view_wake(r, in->touched[i].row, in->touched[i].urgent, false);
                }
        }
        if (moved || in->asks || r->next_ms == 0)
                remote_wake(r);
        in->done(in->arg, err ? NULL : &in->receipt, err);
        forget_results(in);
        bus_batch_release(&in->batch);
        session_events_release(&in->events);
        free(in->touched);
        free(in);
}

void session_intake(struct remote *r, const struct session_caller *by,
                    struct session_events *events, session_intake_fn *done, void *arg)
{
        struct intake *in = mem_zalloc(sizeof(*in));

        in->remote = r;
        in->by = *by;
        in->events = *events;
        in->now_ms = clock_wall_ms();
        in->active = r->conf.active;
        in->done = done;
        in->arg = arg;
        in->touched = mem_array(events->count, sizeof(*in->touched));
        *events = (struct session_events){ 0 };
        r->writes++;
        store_write(r->env.store, write_intake, on_written, in);
}
