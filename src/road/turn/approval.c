#include "road/turn/approval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/turn/approval_private.h"

struct approval *approval_find(const struct road *r, int64_t id)
{
        char key[ROAD_KEY_SIZE];

        return map_get(&r->approvals.open, road_key("apr", id, key));
}

struct approval *approval_first_of(const struct road *r, int64_t turn)
{
        char key[ROAD_KEY_SIZE];

        return map_get(&r->approvals.by_turn, road_key("trn", turn, key));
}

/* ---- in memory ---- */

static void on_expired(void *arg);

struct approval *approval_new(struct road *r, const struct approval_row *row)
{
        struct approval *a = mem_zalloc(sizeof(*a)), *first;
        const char *rest;
        char key[ROAD_KEY_SIZE];
        int64_t delivery, left = row->expires_ms - clock_wall_ms();

        a->road = r;
        a->row = approval_row_dup(row);
        road_key("apr", row->id, a->key);
        rest = a->row->deliveries;
        while (a->message_count < APPROVAL_MESSAGES_MAX && turn_row_next_input(&rest, &delivery))
                a->messages[a->message_count++] = (struct approval_message){
                        .delivery = delivery, .channel = a->row->channel, .thread = a->row->thread
                };
        map_put(&r->approvals.open, a->key, a);
        road_key("trn", row->turn, key);
        first = map_get(&r->approvals.by_turn, key);
        a->sibling = first;
        map_put(&r->approvals.by_turn, key, a);
        a->expiry = timer_new(r->loop, on_expired, a);
        /* a clock that was set back must not lengthen it */
        if (left > row->expires_ms - row->created_ms)
                left = row->expires_ms - row->created_ms;
        timer_start(a->expiry, left > 0 ? left : 0);
        return a;
}

/* Where it was posted, and its id (NULL: not known yet). */
void approval_set_message(struct approval *a, unsigned index, const char *channel, const char *id)
{
        struct approval_message *m = &a->messages[index];

        m->id = mem_strdup(id);
        if (strcmp(channel, a->row->channel) == 0)
                return;
        m->admin = mem_strdup(channel);
        m->channel = m->admin;
        m->thread = NULL;
}

static void stop_waiting(struct approval *a)
{
        struct turn *t = a->turn;

        if (!t)
                return;
        a->turn = NULL;
        if (--t->approvals_open == 0)
                t->road->approvals.parked--;
        approval_update_wait(t);
}

void approval_free(struct approval *a)
{
        struct road *r = a->road;
        struct approval *at = approval_first_of(r, a->row->turn);
        char key[ROAD_KEY_SIZE];

        stop_waiting(a);
        road_key("trn", a->row->turn, key);
        if (at == a && !a->sibling)
                map_remove(&r->approvals.by_turn, key);
        else if (at == a)
                map_put(&r->approvals.by_turn, key, a->sibling);
        for (; at; at = at->sibling)
                if (at->sibling == a)
                        at->sibling = a->sibling;
        map_remove(&r->approvals.open, a->key);
        timer_free(a->expiry);
        for (unsigned i = 0; i < a->message_count; i++) {
                free(a->messages[i].admin);
                free(a->messages[i].id);
        }
        free(a->row);
        free(a);
}

void approval_tell(approval_fn *done, void *arg, const struct approval_row *row)
{
        done(arg, &(struct approval_decision){ .id = row->id,
                                               .state = row->state,
                                               .subject = row->subject,
                                               .by = row->by,
                                               .note = row->note });
}

/* The decision is stored: the turn goes on. */
static void settle(struct approval *a, const struct approval_row *row)
{
        struct turn *t = a->turn;
        approval_fn *done = t && t->phase == PHASE_RUNNING ? a->done : NULL;
        void *arg = a->arg;
        struct road *r = a->road;

        if (row->state == APPROVAL_APPROVED)
                r->stats.approvals_approved++;
        else if (row->state == APPROVAL_EXPIRED)
                r->stats.approvals_expired++;
        else
                r->stats.approvals_refused++;
        approval_free(a);
        if (done)
                approval_tell(done, arg, row);
}

/* ---- events ---- */

int approval_append_event(struct store_tx *tx, struct bus_batch *batch,
                          const struct approval_row *row, int64_t time_ms, struct error *err)
{
        static const char *const types[] = {
                [APPROVAL_OPEN] = "approval.requested",
                [APPROVAL_APPROVED] = "approval.decided",
                [APPROVAL_REFUSED] = "approval.decided",
                [APPROVAL_EXPIRED] = "approval.expired",
                [APPROVAL_CANCELLED] = "approval.cancelled",
        };
        struct bus_event e = { .type = types[row->state],
                               .time_ms = time_ms,
                               .adapter = row->adapter,
                               .channel = row->channel,
                               .thread = row->thread,
                               .trace = row->trace };
        char key[ROAD_KEY_SIZE], iso[CLOCK_ISO_SIZE];
        struct buf payload;
        int rc;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "approvalId", road_key("apr", row->id, key));
        jsonw_str(&payload, "turnId", road_key("trn", row->turn, key));
        jsonw_str(&payload, "traceId", row->trace);
        jsonw_str(&payload, "agent", row->agent);
        jsonw_str(&payload, "tool", row->tool);
        jsonw_str(&payload, "title", row->title);
        jsonw_str(&payload, "detail", row->detail);
        jsonw_str(&payload, "reason", row->reason);
        jsonw_str(&payload, "approvers", approvers_name(row->approvers));
        jsonw_str(&payload, "state", approval_state_name(row->state));
        jsonw_str(&payload, "expiresAt", clock_iso(row->expires_ms, iso));
        jsonw_opt(&payload, "by", row->by);
        jsonw_opt(&payload, "note", row->note);
        jsonw_bool(&payload, "always", row->always);
        jsonw_close(&payload, '}');
        e.payload = payload.data;
        rc = bus_append(tx, batch, &e, NULL, err);
        buf_release(&payload);
        return rc < 0 ? -1 : 0;
}

/* ---- deciding ---- */

struct approval_change *approval_change_new(struct approval *a, enum approval_state state,
                                            const char *by, const char *note, bool always)
{
        struct road *r = a->road;
        struct approval_change *c = mem_zalloc(sizeof(*c));
        struct approval_row row = *a->row;
        int64_t number;

        a->deciding = true;
        row.state = state;
        row.by = by;
        row.note = note && *note ? note : NULL;
        row.always = always && row.rule;
        row.decided_ms = clock_wall_ms();
        c->approval = a;
        c->row = approval_row_dup(&row);
        if (row.always)
                c->rule = approval_rule_row_dup(
                        &(struct approval_rule_row){ .agent = row.agent,
                                                     .adapter = row.adapter,
                                                     .channel = row.channel,
                                                     .rule = row.rule,
                                                     .approval = row.id,
                                                     .by = by,
                                                     .created_ms = row.decided_ms });
        approval_make_outcome(a, c->row, &c->jobs);
        if (c->jobs.count > 0 && !numbers_take(&r->delivery_numbers, c->jobs.count, &number))
                approval_discard_jobs(&c->jobs); /* better decided than shown */
        for (size_t i = 0; i < c->jobs.count; i++)
                c->jobs.jobs[i]->d.id = number++;
        return c;
}

void approval_change_free(struct approval_change *c)
{
        approval_discard_jobs(&c->jobs);
        bus_batch_release(&c->batch);
        free(c->row);
        free(c->rule);
        free(c->found);
        free(c);
}

/* In a store function; may run more than once. */
int approval_change_write(struct store_tx *tx, struct approval_change *c, struct error *err)
{
        int rc = approval_row_decide(tx, c->row, err);

        bus_batch_reset(&c->batch);
        free(c->found);
        c->found = NULL;
        if (rc == 0)
                rc = approval_row_get(tx, c->row->id, &c->found, err) < 0 ? -1 : 0;
        if (rc != 1)
                return rc;
        if (approval_append_event(tx, &c->batch, c->row, c->row->decided_ms, err) < 0 ||
            (c->rule && approval_rule_row_insert(tx, c->rule, &c->rule->id, err) < 0))
                return -1;
        for (size_t i = 0; i < c->jobs.count; i++) {
                if (delivery_store(tx, &c->batch, c->jobs.jobs[i], err) < 0)
                        return -1;
        }
        return 0;
}

void approval_change_committed(struct approval_change *c)
{
        struct approval *a = c->approval;
        struct road *r = a->road;

        fault_point("approval.decided");
        bus_publish(r->bus, &c->batch);
        if (c->found) {
                approval_discard_jobs(&c->jobs);
        } else {
                if (c->rule)
                        approval_rule_add(r, c->rule);
                approval_enqueue_jobs(r, &c->jobs);
        }
        log_info("approval decided", LOG_S("approval", a->key),
                 LOG_S("state", approval_state_name(c->row->state)), LOG_S("by", c->row->by));
        settle(a, c->found ? c->found : c->row);
}

/* ---- expiry ---- */

static int write_expired(struct store_tx *tx, void *arg, struct error *err)
{
        return approval_change_write(tx, arg, err);
}

static void on_expiry_stored(void *arg, const struct error *err)
{
        if (!err) /* else the next run finds it */
                approval_change_committed(arg);
        approval_change_free(arg);
}

static void on_expired(void *arg)
{
        struct approval *a = arg;

        if (a->deciding || a->road->closing)
                return;
        road_write(a->road, "expiry of an approval", write_expired, on_expiry_stored,
                   approval_change_new(a, APPROVAL_EXPIRED, NULL, NULL, false));
}

/* ---- called by the road ---- */

void approval_end_turn(struct turn *t, struct answer *out, struct approvals_closed *closed)
{
        struct approval *a;

        for (a = approval_first_of(t->road, t->run.id); a; a = a->sibling) {
                struct approval_row row = *a->row;

                if (a->deciding)
                        continue;
                a->deciding = true;
                row.state = APPROVAL_CANCELLED;
                row.decided_ms = clock_wall_ms();
                closed->rows =
                        mem_realloc(closed->rows, (closed->count + 1) * sizeof(*closed->rows));
                closed->rows[closed->count++] = approval_row_dup(&row);
                approval_make_outcome(a, &row, out);
        }
}

int approval_write_closed(struct store_tx *tx, struct bus_batch *batch,
                          const struct approvals_closed *closed, struct error *err)
{
        for (size_t i = 0; i < closed->count; i++) {
                const struct approval_row *row = closed->rows[i];
                int rc = approval_row_decide(tx, row, err);

                if (rc < 0 ||
                    (rc == 1 && approval_append_event(tx, batch, row, row->decided_ms, err) < 0))
                        return -1;
        }
        return 0;
}

void approval_closed(struct road *r, struct approvals_closed *closed)
{
        for (size_t i = 0; i < closed->count; i++) {
                struct approval *a = approval_find(r, closed->rows[i]->id);

                if (a)
                        approval_free(a);
        }
}

void approvals_closed_release(struct approvals_closed *closed)
{
        for (size_t i = 0; i < closed->count; i++)
                free(closed->rows[i]);
        free(closed->rows);
        *closed = (struct approvals_closed){ 0 };
}

void approval_message_sent(struct road *r, int64_t delivery, const char *platform_id)
{
        void *value;

        for (size_t i = 0; platform_id && map_each(&r->approvals.open, &i, NULL, &value);) {
                struct approval *a = value;

                for (unsigned k = 0; k < a->message_count; k++) {
                        if (a->messages[k].delivery != delivery)
                                continue;
                        free(a->messages[k].id);
                        a->messages[k].id = mem_strdup(platform_id);
                }
        }
}

void approval_describe_turn(const struct road *r, int64_t turn, struct buf *out)
{
        const struct approval *a;

        for (a = approval_first_of(r, turn); a; a = a->sibling)
                buf_addf(out, " It waits for an approval: %s (`%s`).", a->row->title, a->key);
}

/* ---- opening and closing ---- */

struct approvals_read {
        struct approval_row **rows;
        struct delivery_row **messages; /* APPROVAL_MESSAGES_MAX for each; may be NULL */
        size_t count;
        struct approval_rule_row **rules;
        size_t rule_count;
};

static int read_messages(struct store_tx *tx, struct approvals_read *v, struct error *err)
{
        for (size_t i = 0; i < v->count; i++) {
                const char *rest = v->rows[i]->deliveries;
                int64_t id;

                for (size_t k = 0; k < APPROVAL_MESSAGES_MAX && turn_row_next_input(&rest, &id);
                     k++) {
                        if (delivery_row_get(tx, id, &v->messages[i * APPROVAL_MESSAGES_MAX + k],
                                             err) < 0)
                                return -1;
                }
        }
        return 0;
}

static int read_open(struct store_tx *tx, void *arg, struct error *err)
{
        struct approvals_read *v = arg;
        struct store_stmt *s = approval_row_list_open(tx);
        struct approval_rule_row rule;
        struct approval_row row;
        int rc;

        while ((rc = approval_row_next(s, &row, err)) == 1) {
                v->rows = mem_realloc(v->rows, (v->count + 1) * sizeof(*v->rows));
                v->rows[v->count++] = approval_row_dup(&row);
        }
        if (rc < 0)
                return -1;
        s = approval_rule_row_list(tx);
        while ((rc = approval_rule_row_next(s, &rule, err)) == 1) {
                v->rules = mem_realloc(v->rules, (v->rule_count + 1) * sizeof(*v->rules));
                v->rules[v->rule_count++] = approval_rule_row_dup(&rule);
        }
        if (rc < 0)
                return -1;
        v->messages = mem_array(v->count * APPROVAL_MESSAGES_MAX + 1, sizeof(*v->messages));
        return read_messages(tx, v, err);
}

static void load_one(struct road *r, const struct approvals_read *v, size_t i)
{
        struct approval *a = approval_new(r, v->rows[i]);

        for (unsigned k = 0; k < a->message_count; k++) {
                const struct delivery_row *d = v->messages[i * APPROVAL_MESSAGES_MAX + k];

                if (d)
                        approval_set_message(a, k, d->channel, d->platform_id);
        }
}

int approvals_open(struct road *r, struct error *err)
{
        struct approvals_read v = { 0 };
        int rc = store_read_now(r->store, read_open, &v, err);

        for (size_t i = 0; i < v.count; i++) {
                if (rc == 0)
                        load_one(r, &v, i);
                for (size_t k = 0; v.messages && k < APPROVAL_MESSAGES_MAX; k++)
                        free(v.messages[i * APPROVAL_MESSAGES_MAX + k]);
                free(v.rows[i]);
        }
        free(v.rows);
        free(v.messages);
        r->approvals.rules = v.rules;
        r->approvals.rule_count = v.rule_count;
        return rc;
}

void approvals_close(struct road *r)
{
        void *value;

        for (size_t i = 0; map_each(&r->approvals.open, &i, NULL, &value); i = 0)
                approval_free(value);
        map_release(&r->approvals.open);
        map_release(&r->approvals.by_turn);
        for (size_t i = 0; i < r->approvals.rule_count; i++)
                free(r->approvals.rules[i]);
        free(r->approvals.rules);
        free(r->approvals.matching);
}
