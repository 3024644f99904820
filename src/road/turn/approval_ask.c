/*
 * approval_ask: a running turn asks, or finds what was decided when it asked before.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "road/turn/approval_private.h"

#define NUMBERS_RETRY_MS 1000 /* when delivery numbers run out */

struct approval_ask {
        struct turn *turn;
        struct approval_row *row; /* as it will be stored, without id and deliveries */
        char *rule_label;
        struct answer jobs;
        struct timer *timer; /* until there are delivery numbers */
        approval_fn *done;
        void *arg;
        /* results */
        struct approval_row *found; /* an earlier attempt asked, or something like it is refused */
        bool stale;
        struct bus_batch batch;
        LIST_ENTRY(approval_ask) in_turn;
};

static void ask_free(struct approval_ask *k)
{
        approval_discard_jobs(&k->jobs);
        LIST_REMOVE(k, in_turn);
        timer_free(k->timer);
        bus_batch_release(&k->batch);
        free(k->row);
        free(k->rule_label);
        free(k->found);
        free(k);
}

void approval_update_wait(struct turn *t)
{
        turn_wait_for_person(&t->run, t->approvals_open > 0 || !LIST_EMPTY(&t->approval_asks));
}

static int write_ask(struct store_tx *tx, void *arg, struct error *err)
{
        struct approval_ask *k = arg;
        const struct approval_row *row = k->row;
        int rc = approval_row_find(tx, row->turn, row->call, &k->found, err);

        bus_batch_reset(&k->batch);
        if (rc == 0 && row->effect)
                rc = approval_row_find_refused(tx, row->turn, row->effect, &k->found, err);
        if (rc != 0)
                return rc < 0 ? -1 : 0;
        rc = approval_row_insert(tx, row, k->turn->run.fence, err);
        k->stale = rc == 0;
        if (rc != 1)
                return rc;
        if (approval_append_event(tx, &k->batch, row, row->created_ms, err) < 0)
                return -1;
        for (size_t i = 0; i < k->jobs.count; i++) {
                if (delivery_store(tx, &k->batch, k->jobs.jobs[i], err) < 0)
                        return -1;
        }
        return 0;
}

static void ask(struct approval_ask *k);

/* The turn waits for a. */
static void wait_for(struct approval *a, const struct approval_ask *k)
{
        struct turn *t = k->turn;

        if (t->phase != PHASE_RUNNING) /* cancelled meanwhile: its end closes the approval */
                return;
        a->turn = t;
        a->done = k->done;
        a->arg = k->arg;
        if (t->approvals_open++ == 0)
                t->road->approvals.parked++;
        road_check_drained(t->road);
}

/* The row as the agent learns it; found is the refusal of something else with the same effect. */
static struct approval_row *refuse_alike(const struct approval_ask *k)
{
        struct approval_row row = *k->found, *refused;
        char *note = mem_printf("the same kind of action was refused in this turn (apr-%lld)",
                                (long long)row.id);

        row.note = note;
        row.subject = k->row->subject;
        refused = approval_row_dup(&row);
        free(note);
        return refused;
}

/* What is known without asking anybody, yours; NULL: the turn waits, or asks again. */
static struct approval_row *take_answer(struct approval_ask *k)
{
        struct road *r = k->turn->road;
        struct approval *a;
        struct approval_row *row;

        if (k->stale) { /* another process has the turn */
                k->row->state = APPROVAL_CANCELLED;
                return approval_row_dup(k->row);
        }
        if (!k->found) {
                a = approval_new(r, k->row);
                for (unsigned i = 0; i < a->message_count; i++)
                        approval_set_message(a, i, k->jobs.jobs[i]->d.channel, NULL);
                wait_for(a, k);
                r->stats.approvals_asked++;
                approval_enqueue_jobs(r, &k->jobs);
                return NULL;
        }
        if (strcmp(k->found->call, k->row->call) != 0)
                return refuse_alike(k);
        a = k->found->state == APPROVAL_OPEN ? approval_find(r, k->found->id) : NULL;
        if (a) {
                wait_for(a, k);
                return NULL;
        }
        row = k->found;
        k->found = NULL;
        return row;
}

static void on_asked(void *arg, const struct error *err)
{
        struct approval_ask *k = arg;
        struct turn *t = k->turn;
        approval_fn *done = k->done;
        void *done_arg = k->arg;
        struct approval_row *row;

        if (err) { /* left to the next run */
                ask_free(k);
                return;
        }
        fault_point("approval.asked");
        t->display.writes--;
        bus_publish(t->road->bus, &k->batch);
        row = take_answer(k);
        if (row && row->state == APPROVAL_OPEN && t->phase == PHASE_RUNNING) {
                free(row); /* decided between the read and now: read again */
                ask(k);
                return;
        }
        ask_free(k);
        approval_update_wait(t);
        if (t->phase != PHASE_RUNNING)
                turn_commit(t); /* cancelled meanwhile: its end waits for us */
        else if (row)
                approval_tell(done, done_arg, row);
        free(row);
}

static void on_numbers(void *arg)
{
        ask(arg);
}

static void ask(struct approval_ask *k)
{
        struct turn *t = k->turn;
        struct road *r = t->road;
        struct approval_row row = *k->row, *stored;
        struct buf numbers;
        int64_t next;

        if (!numbers_request(&r->delivery_numbers, APPROVAL_MESSAGES_MAX)) {
                if (!k->timer)
                        k->timer = timer_new(r->loop, on_numbers, k);
                timer_start(k->timer, NUMBERS_RETRY_MS);
                return;
        }
        approval_discard_jobs(&k->jobs);
        free(k->found);
        k->found = NULL;
        numbers_take(&r->delivery_numbers, 1, &row.id);
        k->row->id = row.id;
        approval_make_question(t, k->row, k->rule_label, &k->jobs);
        buf_init(&numbers, 0);
        for (size_t i = 0; i < k->jobs.count; i++) {
                next = row.id;
                if (i > 0)
                        numbers_take(&r->delivery_numbers, 1, &next);
                k->jobs.jobs[i]->d.id = next;
                buf_addf(&numbers, "%s%lld", i ? "," : "", (long long)next);
        }
        row.deliveries = numbers.data;
        stored = approval_row_dup(&row); /* its strings are those of k->row */
        free(k->row);
        k->row = stored;
        buf_release(&numbers);
        t->display.writes++;
        fault_point("approval.before_ask");
        road_write(r, "approval", write_ask, on_asked, k);
}

/*
 * People must see what they approve: control characters and changes of the text's direction, which
 * could hide or reorder a part of it, are written out.
 */
static char *clean_detail(const char *detail)
{
        char *valid = utf8_clean(
                detail, utf8_prefix(detail, strlen(detail), UTF8_BYTES, APPROVAL_DETAIL_MAX));
        size_t n = strlen(valid);
        struct buf b;

        buf_init(&b, 0);
        for (size_t i = 0; i < n;) {
                uint32_t cp;
                size_t len = utf8_decode(valid + i, n - i, &cp);

                if (utf8_is_control(cp) && cp != '\n' && cp != '\t')
                        buf_addf(&b, "\\u{%x}", (unsigned)cp);
                else
                        buf_add(&b, valid + i, len);
                i += len;
        }
        free(valid);
        return buf_take(&b);
}

void turn_ask_approval(struct turn_run *run, const struct approval_request *q, approval_fn *done,
                       void *arg)
{
        struct turn *t = (struct turn *)run;
        struct approval_ask *k = mem_zalloc(sizeof(*k));
        int64_t now_ms = clock_wall_ms();
        char *detail = clean_detail(q->detail);
        bool nobody = incoming_has_no_person(t->inputs[0]); /* asked for it: a schedule */
        struct approval_row row = { .turn = run->id,
                                    .conversation = run->conversation,
                                    .agent = turn_agent(t),
                                    .adapter = run->adapter,
                                    .channel = run->channel,
                                    .thread = run->thread,
                                    .trace = t->trace,
                                    .call = q->call,
                                    .tool = q->tool,
                                    .title = q->title,
                                    .detail = detail,
                                    .subject = q->subject,
                                    .reason = q->reason,
                                    .effect = q->effect,
                                    .rule = q->rule,
                                    .asker = nobody ? NULL : t->inputs[0]->sender_id,
                                    .approvers = nobody ? APPROVERS_ADMINS : q->approvers,
                                    .created_ms = now_ms,
                                    .expires_ms = now_ms + q->expires_ms,
                                    .deliveries = "" };

        k->turn = t;
        k->row = approval_row_dup(&row);
        k->rule_label = mem_strdup(q->rule_label ? q->rule_label : "");
        k->done = done;
        k->arg = arg;
        LIST_INSERT_HEAD(&t->approval_asks, k, in_turn);
        approval_update_wait(t);
        free(detail);
        ask(k);
}

/* Questions that are being written end by themselves. */
void approval_forget_turn(struct turn *t)
{
        struct approval *a;
        struct approval_ask *k, *next;

        for (a = approval_first_of(t->road, t->run.id); a; a = a->sibling) {
                if (a->turn == t) {
                        a->turn = NULL;
                        if (--t->approvals_open == 0)
                                t->road->approvals.parked--;
                }
        }
        for (k = LIST_FIRST(&t->approval_asks); k; k = next) {
                next = LIST_NEXT(k, in_turn);
                if (k->timer && timer_active(k->timer))
                        ask_free(k);
        }
}
