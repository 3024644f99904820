/*
 * a2a_turn: a turn from its rows to the end of its task; see a2a.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/a2a/a2a.h"
#include "agent/http/call_headers.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

#define KEEP_ALIVE_MS 5000
#define SHOW_MS       40 /* pieces of a stream are shown together */
#define REWRITES_MAX  20 /* of the shown text; then nothing more is shown until the end */
#define LABEL_BYTES   200
#define ASK_MS        30000

/* ---- what a turn has ---- */

static void on_time(void *arg);
static void on_deadline(void *arg);
static void on_show(void *arg);

static struct a2a_turn *turn_new(struct a2a_agent *o, struct turn_run *run)
{
        struct a2a_turn *t = mem_zalloc(sizeof(*t));
        char key[CALL_HEADERS_KEY_SIZE];

        t->owner = o;
        t->run = run;
        t->id = run->id;
        t->fence = run->fence;
        t->mode = run->mode;
        t->adapter = mem_strdup(run->adapter);
        t->channel = mem_strdup(run->channel);
        t->thread = mem_strdup(run->thread);
        t->trace = mem_strdup(run->trace);
        t->name = agent_session(o->agent, run);
        /* an operator's retry is another message */
        t->message = mem_printf("%s-%" PRId64, call_headers_key(run, key), run->fence);
        t->timer = timer_new(o->agent->loop, on_time, t);
        t->deadline = timer_new(o->agent->loop, on_deadline, t);
        t->show = timer_new(o->agent->loop, on_show, t);
        a2a_answer_init(&t->answer);
        buf_init(&t->shown, 0);
        buf_init(&t->unshown, 0);
        LIST_INSERT_HEAD(&o->turns, t, next_turn);
        return t;
}

void a2a_turn_free(struct a2a_turn *t)
{
        LIST_REMOVE(t, next_turn);
        if (t->held) {
                t->owner->late_count--;
                agent_unhold(t->owner->agent);
        }
        a2a_rows_forget(t);
        a2a_files_forget(t);
        a2a_discover_drop(t->waiter);
        a2a_call_free(t->call);
        timer_free(t->timer);
        timer_free(t->deadline);
        timer_free(t->show);
        a2a_card_unref(t->card);
        a2a_answer_release(&t->answer);
        buf_release(&t->shown);
        buf_release(&t->unshown);
        json_decref(t->parts);
        free(t->adapter);
        free(t->channel);
        free(t->thread);
        free(t->trace);
        free(t->name);
        free(t->message);
        free(t->context);
        free(t->task);
        free(t->refers_to);
        free(t->before);
        free(t->since);
        free(t->said);
        free(t->label);
        free(t);
}

/* ---- up to the message ---- */

static struct a2a_turn *find_late(struct a2a_agent *o, const char *task)
{
        struct a2a_turn *t;

        LIST_FOREACH(t, &o->turns, next_turn)
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed ones have left the list */
                if (!t->run && t->task && strcmp(t->task, task) == 0)
                        return t;
        return NULL;
}

/* A task that may be there is worth waiting for, as long as the turn may take. */
static void fail_without_card(struct a2a_turn *t, const struct error *err)
{
        bool unreached = err->kind == ERR_NET || err->kind == ERR_TIMEOUT;
        const char *notice = "The agent cannot be used right now. Please tell the operator.";

        if (unreached)
                notice = "The agent cannot be reached right now. Please try again later.";
        else if (err->kind == ERR_REFUSED)
                notice = "The agent refused our key. Please tell the operator.";
        if (unreached && (t->sent || t->pauses < (unsigned)t->owner->conf->retries))
                a2a_pause(t, A2A_DISCOVER_NEXT, a2a_backoff(t));
        else
                a2a_fail(t, err->kind, t->sent ? EFFECT_POSSIBLE : EFFECT_NONE, notice, NULL,
                         err->text);
}

static void on_card(void *arg, struct a2a_card *card, const struct error *err, int64_t elapsed_ms)
{
        struct a2a_turn *t = arg;

        (void)elapsed_ms;
        t->waiter = NULL;
        if (!card) {
                fail_without_card(t, err);
                return;
        }
        t->pauses = 0;
        t->card = a2a_card_ref(card);
        if (t->sent)
                a2a_recover(t);
        else if (a2a_read_files(t))
                t->step = A2A_READING;
        else
                a2a_send_marked(t);
}

static void discover(struct a2a_turn *t)
{
        t->step = A2A_DISCOVERING;
        t->waiter = a2a_discover(t->owner, false, on_card, t);
}

void a2a_loaded(struct a2a_turn *t, const struct error *err)
{
        struct a2a_turn *late;

        if (err) {
                a2a_fail(t, err->kind, EFFECT_NONE,
                         "The agent's session cannot be read. Please tell the operator.", NULL,
                         err->text);
                return;
        }
        /* an earlier turn need not wait for its task any more: this one does */
        while (t->goes_on && (late = find_late(t->owner, t->task)))
                a2a_turn_free(late);
        if (!t->context && strcmp(t->owner->conf->context, "session") == 0)
                t->context = mem_strdup(t->name);
        discover(t);
}

void a2a_files_read(struct a2a_turn *t)
{
        a2a_send_marked(t);
}

void a2a_send_marked(struct a2a_turn *t)
{
        t->step = A2A_MARKING;
        a2a_store_mark(t);
}

void a2a_marked(struct a2a_turn *t, bool stored)
{
        if (!stored && t->run->interrupted)
                return; /* cancel follows */
        if (!stored) {
                a2a_fail(t, ERR_CONFLICT, EFFECT_POSSIBLE, NULL, NULL,
                         "another process has this turn");
                return;
        }
        t->sent = true;
        fault_point("a2a.marked");
        a2a_send(t);
}

/* ---- requests ---- */

static void request(struct a2a_turn *t, enum a2a_step step, enum a2a_method method, char *params,
                    const struct a2a_call_handlers *handlers)
{
        const struct a2a_conf *conf = t->owner->conf;
        bool stream = method == A2A_SEND_STREAM || method == A2A_SUBSCRIBE;
        bool first = method == A2A_SEND_STREAM || method == A2A_SEND;
        struct turn_run other = { .trace = t->trace };
        struct a2a_request q = { .card = t->card,
                                 .method = method,
                                 .params = params,
                                 .run = first ? t->run : &other,
                                 .stream = stream,
                                 .first_byte_ms = conf->first_byte_ms,
                                 .silence_ms = conf->silence_ms,
                                 .total_ms = stream || first ? 0 : ASK_MS };

        t->step = step;
        timer_stop(t->timer);
        t->call = a2a_call_start(t->owner, &q, handlers, t);
        free(params);
}

static bool streams(const struct a2a_turn *t)
{
        return t->card->streams && t->owner->conf->stream && !t->plain;
}

void a2a_send(struct a2a_turn *t)
{
        t->tries++;
        fault_point("a2a.before_send");
        request(t, A2A_SENDING, streams(t) ? A2A_SEND_STREAM : A2A_SEND, a2a_params_send(t),
                &a2a_send_handlers);
}

void a2a_ask(struct a2a_turn *t)
{
        request(t, A2A_ASKING, A2A_GET, a2a_params_task(t, t->checks), &a2a_ask_handlers);
}

void a2a_subscribe(struct a2a_turn *t)
{
        request(t, A2A_SUBSCRIBED, A2A_SUBSCRIBE, a2a_params_task(t, true),
                &a2a_subscribe_handlers);
}

static void on_time(void *arg)
{
        struct a2a_turn *t = arg;

        switch (t->next) {
        case A2A_DISCOVER_NEXT:
                discover(t);
                break;
        case A2A_SEND_NEXT:
                a2a_send(t);
                break;
        case A2A_FIND_NEXT:
                a2a_find(t);
                break;
        case A2A_ASK_NEXT:
                a2a_ask(t);
                break;
        }
}

static void on_deadline(void *arg)
{
        a2a_out_of_time(arg);
}

/* ---- showing ---- */

static void show_now(struct a2a_turn *t)
{
        struct buf text;
        bool grew;

        timer_stop(t->show);
        if (!t->run || t->rewrites > REWRITES_MAX)
                return;
        buf_init(&text, 0);
        a2a_answer_write(&t->answer, &text);
        grew = text.len >= t->shown.len && memcmp(text.data, t->shown.data, t->shown.len) == 0;
        if (!grew) { /* the agent has replaced what it said */
                t->rewrites++;
                buf_clear(&t->shown);
                turn_goes_on(t->run);
        }
        if (text.len > t->shown.len) {
                turn_delta(t->run, text.data + t->shown.len, text.len - t->shown.len);
                buf_add(&t->shown, text.data + t->shown.len, text.len - t->shown.len);
        }
        buf_release(&text);
}

static void on_show(void *arg)
{
        show_now(arg);
}

static void show_label(struct a2a_turn *t, const char *text)
{
        char *label = utf8_clean(text, utf8_prefix(text, strlen(text), UTF8_BYTES, LABEL_BYTES));

        for (char *p = label; *p; p++)
                if ((unsigned char)*p < ' ')
                        *p = ' ';
        if (t->label && strcmp(t->label, label) == 0) {
                free(label);
                return;
        }
        free(t->label);
        t->label = label;
        log_redact(label);
        if (t->run)
                turn_progress(t->run, label);
}

static void keep_alive(struct a2a_turn *t)
{
        int64_t now = loop_now_ms(t->owner->agent->loop);

        if (!t->run || now - t->kept_alive_ms < KEEP_ALIVE_MS)
                return;
        t->kept_alive_ms = now;
        turn_keep_alive(t->run);
}

/* ---- what the agent says ---- */

/* Some agents say their result as their last message, and make no artifact. */
static const json_t *last_words(const json_t *history)
{
        for (size_t i = json_array_size(history); i > 0; i--) {
                const json_t *message = json_array_get(history, i - 1);
                const char *role = json_str(message, "role", "");

                if (strcmp(role, "ROLE_AGENT") == 0 || strcmp(role, "agent") == 0)
                        return message;
        }
        return NULL;
}

static void set_said(struct a2a_turn *t, const json_t *message)
{
        char *text = a2a_message_text(message);

        if (!text)
                return;
        free(t->said);
        t->said = text;
}

/* The first that is heard of the task. */
static void meet(struct a2a_turn *t, const struct a2a_result *r)
{
        t->told = true;
        if (r->task) {
                free(t->task);
                t->task = mem_strdup(r->task);
        }
        if (r->context) {
                free(t->context);
                t->context = mem_strdup(r->context);
        }
        t->state = r->state;
        fault_point("a2a.told");
        if (t->run && (t->task || t->context))
                a2a_store_task(t);
}

/* A state as text, to be compared with a later one. */
static void set_since(struct a2a_turn *t, const struct a2a_result *r)
{
        free(t->since);
        t->since =
                mem_printf("%s %s", r->time ? r->time : "", json_str(r->message, "messageId", ""));
}

/*
 * Our message continues the task, and this is how the task was before it: some agents begin with
 * that.
 */
static bool is_stale(const struct a2a_turn *t, const struct a2a_result *r, bool whole)
{
        if (!t->goes_on || r->kind != A2A_TASK || !a2a_state_is_waiting(r->state))
                return false;
        if (t->before && strlen(t->before) > 1)
                return strcmp(t->before, t->since) == 0;
        return !whole;
}

static void take_stale(struct a2a_turn *t, const struct a2a_result *r)
{
        if (r->artifacts)
                a2a_answer_replace(&t->answer, r->artifacts);
        a2a_answer_set_old(&t->answer);
        t->state = A2A_WORKING;
}

static void take_task(struct a2a_turn *t, const struct a2a_result *r)
{
        if (r->artifacts)
                a2a_answer_replace(&t->answer, r->artifacts);
        usage_read(&t->usage, r->metadata);
        if (a2a_state_is_final(r->state) && !r->message && json_array_size(r->artifacts) == 0)
                set_said(t, last_words(r->history));
}

/* whole: it has all that the task gave out so far. */
bool a2a_take(struct a2a_turn *t, const json_t *result, bool whole)
{
        struct a2a_result r;

        a2a_result_read(result, &r);
        if (r.kind == A2A_NOTHING)
                return true;
        if (r.task && t->task && strcmp(r.task, t->task) != 0 &&
            (t->told || t->step != A2A_SENDING))
                return true; /* of another task */
        keep_alive(t);
        if (r.kind == A2A_STATUS || r.kind == A2A_ARTIFACT)
                t->pauses = 0; /* it speaks by itself */
        if (r.kind == A2A_TASK || r.kind == A2A_STATUS)
                set_since(t, &r);
        if (!t->told)
                meet(t, &r);
        if (is_stale(t, &r, whole)) {
                take_stale(t, &r);
                return true;
        }
        switch (r.kind) {
        case A2A_MESSAGE: /* instead of a task */
                a2a_answer_add(&t->answer, r.message, false);
                usage_read(&t->usage, r.metadata);
                t->state = A2A_COMPLETED;
                a2a_conclude(t);
                return false;
        case A2A_ARTIFACT:
                a2a_answer_add(&t->answer, r.artifact, r.append);
                break;
        case A2A_TASK:
                take_task(t, &r);
                /* fall through */
        default:
                t->state = r.state;
                set_said(t, r.message);
                if (!a2a_state_is_final(r.state) && !a2a_state_is_waiting(r.state) && r.message &&
                    t->said)
                        show_label(t, t->said);
                break;
        }
        if (!timer_active(t->show))
                timer_start(t->show, SHOW_MS);
        if (t->awaits_person && t->state == A2A_AUTH_REQUIRED)
                return true; /* the turn has said so already */
        if (!a2a_state_is_final(t->state) && !a2a_state_is_waiting(t->state))
                return true;
        if (t->resumed && !whole && a2a_state_is_final(t->state)) {
                a2a_call_free(t->call); /* pieces were missed: ask for all of it */
                t->call = NULL;
                a2a_ask(t);
                return false;
        }
        show_now(t);
        a2a_conclude(t);
        return false;
}

/* ---- agent_ops ---- */

void a2a_start(struct agent *a, struct turn_run *run)
{
        struct a2a_agent *o = a->self;
        struct a2a_turn *t = turn_new(o, run);

        run->agent_data = t;
        timer_start(t->deadline, o->conf->timeout_ms);
        t->step = A2A_LOADING;
        a2a_load(t);
}

void a2a_outlive(struct a2a_turn *t, int64_t ms)
{
        t->run = NULL;
        if (!t->held) {
                t->held = true;
                t->owner->late_count++;
                agent_hold(t->owner->agent);
        }
        timer_stop(t->show);
        timer_start(t->deadline, ms);
}

void a2a_stop(struct agent *a, struct turn_run *run)
{
        struct a2a_turn *t = run->agent_data;
        bool stopped = run->stopped != NULL;

        (void)a;
        run->agent_data = NULL;
        if (stopped && t->step == A2A_SENDING && !t->told) {
                /* the task is not known yet: what the agent says first tells it */
                t->step = A2A_LEAVING;
                a2a_outlive(t, ASK_MS);
                return;
        }
        if (stopped && t->told && t->task && t->card && !a2a_state_is_final(t->state))
                a2a_cancel_task(t->owner, t->card, t->task, run);
        a2a_turn_free(t);
}
