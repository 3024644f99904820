/*
 * a2a_follow: what to do when a request ends and the task has not. What is heard of it is asked
 * for: by its stream, or again and again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/a2a/a2a.h"
#include "base/json.h"
#include "base/mem.h"
#include "net/backoff.h"

#define PAUSE_MS     250 /* the first */
#define RETRY_CAP_MS 30000
#define FINDS_MAX    3 /* a task may appear a little later than its message */
#define TOO_LARGE    "The agent's answer is too long to be sent."

void a2a_pause(struct a2a_turn *t, enum a2a_next next, int64_t ms)
{
        t->step = A2A_PAUSING;
        t->next = next;
        timer_start(t->timer, ms);
}

int64_t a2a_backoff(struct a2a_turn *t)
{
        return backoff_half_jitter_ms(t->pauses++, PAUSE_MS, t->owner->conf->poll_ms);
}

/* Not before the agent wants to be asked. */
static void pause_after(struct a2a_turn *t, enum a2a_next next, const struct a2a_outcome *o)
{
        int64_t ms = a2a_backoff(t);

        a2a_pause(t, next, o && o->retry_after_ms > ms ? o->retry_after_ms : ms);
}

void a2a_follow(struct a2a_turn *t, const struct a2a_outcome *o)
{
        t->resumed = true;
        pause_after(t, A2A_ASK_NEXT, o);
}

static bool is_unknown_method(const struct a2a_outcome *o)
{
        return o->end == A2A_END_ERROR &&
               (o->code == A2A_METHOD_NOT_FOUND || o->code == A2A_UNSUPPORTED_OPERATION);
}

/* It says no to us, not to the request, and will again. */
static bool refuses_us(const struct a2a_outcome *o)
{
        return o->status == 401 || o->status == 403;
}

static bool is_too_large(const struct a2a_outcome *o)
{
        return o->end == A2A_END_BROKEN && o->kind == ERR_LIMIT;
}

/* Asked again, the agent would say the same. */
static bool is_final(const struct a2a_outcome *o)
{
        return refuses_us(o) || is_too_large(o) ||
               (o->end == A2A_END_ERROR && o->code != A2A_INTERNAL_ERROR) ||
               (o->end == A2A_END_REFUSED && o->status < 500 && o->kind != ERR_LIMIT &&
                o->kind != ERR_TIMEOUT);
}

/* ---- what became of the message? ---- */

static void fail_lost(struct a2a_turn *t, const struct a2a_outcome *o)
{
        a2a_fail(t, ERR_NET, EFFECT_POSSIBLE,
                 "The connection to the agent was lost, and it does not say whether it works on "
                 "this. Please ask again if nothing comes.",
                 o, "the message may have arrived, and no task of it is known");
}

/* The same id: an agent that recognises it answers as before. */
static void send_again(struct a2a_turn *t)
{
        t->resent = true;
        a2a_pause(t, A2A_SEND_NEXT, backoff_half_jitter_ms(t->tries, PAUSE_MS, RETRY_CAP_MS));
}

static void find_in_list(struct a2a_turn *t)
{
        struct turn_run other = { .trace = t->trace };
        char *params = a2a_params_list(t);
        struct a2a_request q = { .card = t->card,
                                 .method = A2A_LIST,
                                 .params = params,
                                 .run = &other,
                                 .total_ms = RETRY_CAP_MS };

        t->step = A2A_FINDING;
        t->call = a2a_call_start(t->owner, &q, &a2a_find_handlers, t);
        free(params);
}

static bool may_repeat(const struct a2a_turn *t)
{
        return t->owner->conf->repeatable && t->tries <= (unsigned)t->owner->conf->retries;
}

void a2a_find(struct a2a_turn *t)
{
        if (t->goes_on && t->task) {
                /* also if it is repeatable: a task that has our message may take no other one */
                t->checks = true;
                a2a_ask(t);
        } else if (may_repeat(t)) {
                send_again(t);
        } else if (t->card->version == A2A_1_0 && t->finds < FINDS_MAX) {
                find_in_list(t);
        } else {
                fail_lost(t, NULL);
        }
}

void a2a_recover(struct a2a_turn *t)
{
        if (!t->task || t->goes_on) {
                a2a_find(t);
                return;
        }
        t->resumed = true;
        a2a_ask(t);
}

static void on_list(void *arg, const json_t *result)
{
        struct a2a_turn *t = arg;
        const json_t *task;
        size_t i;

        json_array_foreach(json_object_get(result, "tasks"), i, task) {
                const char *id = json_str(task, "id", NULL);

                /* a response that is a stream may have several lists */
                if (t->task || !id ||
                    !a2a_has_message(json_object_get(task, "history"), t->message))
                        continue;
                t->task = mem_strdup(id);
                break;
        }
}

static void on_listed(void *arg, const struct a2a_outcome *o)
{
        struct a2a_turn *t = arg;

        t->call = NULL;
        if (t->task) {
                t->resumed = true;
                a2a_ask(t);
        } else if (is_final(o)) {
                fail_lost(t, o);
        } else if (o->end == A2A_END_DONE) {
                t->finds++; /* an agent that cannot be reached has not said no */
                a2a_pause(t, A2A_FIND_NEXT, t->owner->conf->poll_ms);
        } else {
                pause_after(t, A2A_FIND_NEXT, o);
        }
}

const struct a2a_call_handlers a2a_find_handlers = { on_list, on_listed };

/* Does the task ask something else than before our message, which must not answer that? */
static bool asks_otherwise(const struct a2a_turn *t, const struct a2a_result *r)
{
        const char *before = t->before ? strchr(t->before, ' ') : NULL;
        const char *now = json_str(r->message, "messageId", "");

        return before && before[1] && *now && strcmp(before + 1, now) != 0;
}

/*
 * The message was for a task that waited. True: it was sent again, or the turn has ended; false:
 * the task has it, or has gone on without it.
 */
static bool check_arrival(struct a2a_turn *t, const struct a2a_result *r)
{
        t->checks = false;
        if (a2a_has_message(r->history, t->message) || !a2a_state_is_waiting(r->state) ||
            asks_otherwise(t, r))
                return false;
        a2a_call_free(t->call);
        t->call = NULL;
        if (may_repeat(t) || (json_array_size(r->history) > 0 && !t->resent)) {
                send_again(t);
        } else {
                t->state = r->state;
                fail_lost(t, NULL);
        }
        return true;
}

/* ---- asking ---- */

static void on_asked(void *arg, const json_t *result)
{
        struct a2a_turn *t = arg;
        struct a2a_result r;

        a2a_result_read(result, &r);
        if (r.kind != A2A_TASK || (t->checks && check_arrival(t, &r)))
                return;
        a2a_take(t, result, true);
}

static void fail_following(struct a2a_turn *t, const struct a2a_outcome *o)
{
        const char *notice = "The agent no longer says how its task is. Please tell the operator.";

        if (is_too_large(o))
                notice = TOO_LARGE;
        else if (o->end == A2A_END_ERROR && o->code == A2A_TASK_NOT_FOUND)
                notice = "The agent has lost its task. Please ask again.";
        a2a_fail(t, o->kind, EFFECT_POSSIBLE, notice, o, o->why);
}

static void on_answered(void *arg, const struct a2a_outcome *o)
{
        struct a2a_turn *t = arg;

        t->call = NULL;
        if (is_final(o))
                fail_following(t, o);
        else if (o->end == A2A_END_DONE && t->card->streams && t->owner->conf->stream && !t->deaf)
                a2a_subscribe(t);
        else
                a2a_follow(t, o);
}

const struct a2a_call_handlers a2a_ask_handlers = { on_asked, on_answered };

/* ---- listening ---- */

static void on_event(void *arg, const json_t *result)
{
        a2a_take(arg, result, false);
}

/* The end of the task may have come just before. */
static void on_silence(void *arg, const struct a2a_outcome *o)
{
        struct a2a_turn *t = arg;

        t->call = NULL;
        t->deaf = t->deaf || is_unknown_method(o) || o->end == A2A_END_REFUSED;
        a2a_follow(t, o);
}

const struct a2a_call_handlers a2a_subscribe_handlers = { on_event, on_silence };

/* ---- sending ---- */

static void on_sent(void *arg, const json_t *result)
{
        struct a2a_turn *t = arg;
        struct a2a_result r;

        if (t->step != A2A_LEAVING) {
                a2a_take(t, result, false);
                return;
        }
        a2a_result_read(result, &r);
        if (r.kind == A2A_NOTHING)
                return;
        if (r.kind != A2A_MESSAGE && r.task && !a2a_state_is_final(r.state))
                a2a_cancel_task(t->owner, t->card, r.task, &(struct turn_run){ .trace = t->trace });
        a2a_turn_free(t);
}

/* Libraries for agents do not agree on how they say that a task has ended. */
static bool refuses_task(const struct a2a_outcome *o)
{
        return o->end == A2A_END_ERROR &&
               (o->code == A2A_TASK_NOT_FOUND || o->code == A2A_UNSUPPORTED_OPERATION ||
                o->code == A2A_INVALID_PARAMS || o->code == A2A_INVALID_REQUEST);
}

/* The task that waited has ended otherwise: the message begins another one. */
static void send_afresh(struct a2a_turn *t)
{
        free(t->refers_to);
        t->refers_to = t->task;
        t->task = NULL;
        t->goes_on = false;
        a2a_send_marked(t);
}

static bool may_retry(const struct a2a_turn *t, const struct a2a_outcome *o, int64_t *wait)
{
        bool undone = o->reach == HTTP_NOT_SENT ? o->kind == ERR_NET || o->kind == ERR_TIMEOUT
                                                : o->status == 429 || o->status == 503;

        *wait = o->retry_after_ms >= 0 ? o->retry_after_ms
                                       : backoff_half_jitter_ms(t->tries, PAUSE_MS, RETRY_CAP_MS);
        return undone && t->tries <= (unsigned)t->owner->conf->retries && *wait <= RETRY_CAP_MS;
}

static void fail_refused(struct a2a_turn *t, const struct a2a_outcome *o)
{
        bool unreached = o->reach == HTTP_NOT_SENT;
        const char *notice = "The agent did not accept the request. Please tell the operator.";

        if (o->end == A2A_END_ERROR ? o->code == A2A_VERSION_NOT_SUPPORTED
                                    : unreached || o->status == 404)
                a2a_discover_again(t->owner);
        if (refuses_us(o))
                notice = "The agent refused our key. Please tell the operator.";
        else if (o->kind == ERR_LIMIT)
                notice = "The agent is busy right now. Please try again later.";
        else if (unreached)
                notice = "The agent cannot be reached right now. Please try again later.";
        else if (o->kind == ERR_NET)
                notice = "The agent has a problem right now. Please try again later.";
        /* an error inside the agent may come after it has begun */
        a2a_fail(t, o->kind,
                 o->end == A2A_END_ERROR && o->code == A2A_INTERNAL_ERROR ? EFFECT_POSSIBLE
                                                                          : EFFECT_NONE,
                 notice, o, o->why);
}

static void on_send_ended(void *arg, const struct a2a_outcome *o)
{
        struct a2a_turn *t = arg;
        int64_t wait;

        t->call = NULL;
        if (t->step == A2A_LEAVING) {
                a2a_turn_free(t);
                return;
        }
        if (t->told && t->task)
                a2a_follow(t, o);
        else if (may_retry(t, o, &wait))
                a2a_pause(t, A2A_SEND_NEXT, wait);
        else if (t->goes_on && refuses_task(o))
                send_afresh(t);
        else if (is_unknown_method(o) && t->card->streams && !t->plain) {
                t->plain = true;
                a2a_send(t);
        } else if (is_too_large(o)) {
                a2a_fail(t, ERR_LIMIT, EFFECT_POSSIBLE, TOO_LARGE, o, o->why);
        } else if (o->end == A2A_END_ERROR || o->reach == HTTP_NOT_SENT ||
                   (o->end == A2A_END_REFUSED && o->status < 500)) {
                fail_refused(t, o);
        } else {
                a2a_find(t); /* it may have arrived */
        }
}

const struct a2a_call_handlers a2a_send_handlers = { on_sent, on_send_ended };
