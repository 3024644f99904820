/*
 * Calls wait at their bucket until it, the global limit and the guard let them go; answers teach
 * the bucket.
 *
 *     dc_rest_call ──► waiting ──► flying ──► answered
 *                         ▲           │
 *                         └── 429 ────┘   when the wait fits into what the call may wait
 */
#include "platform/discord/dc_rest.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/pace.h"
#include "platform/discord/dc_answer.h"
#include "platform/discord/dc_ban_guard.h"
#include "platform/discord/dc_call.h"
#include "platform/discord/dc_parse.h"
#include "platform/discord/dc_rate_limit.h"

#define PER_SECOND   50
#define DENIED_MS    60000
#define GUARDED_MS   60000
#define FLYING_MAX   32  /* as many connections as are kept: more would only mean handshakes */
#define LATE_LOOK_MS 200 /* how often calls that waited too long are looked for */

struct dc_rest {
        struct loop *loop;
        struct http_client *http;
        char *base, *name;
        char *authorization;
        struct dc_limits limits;
        struct dc_buckets busy; /* those where calls wait */
        struct dc_calls flying, parsing, refused;
        size_t waiting, flying_count;
        struct pace *global;
        int64_t global_ms; /* a global 429: nothing goes before */
        struct timer *timer;
        bool unauthorized;
        void (*on_unauthorized)(void *arg);
        void *arg;
        struct dc_guard guard;
};

static void on_timer(void *arg);

/* ---- life ---- */

struct dc_rest *dc_rest_new(const struct dc_rest_options *o)
{
        double rate = o->per_second == 0 ? PER_SECOND : o->per_second < 0 ? 0 : o->per_second;
        const struct pace_limits limits = { .per_second = rate };
        struct dc_rest *r = mem_zalloc(sizeof(*r));
        size_t n = strlen(o->base);

        while (n > 0 && o->base[n - 1] == '/')
                n--;
        r->loop = o->loop;
        r->http = o->http;
        r->base = mem_strndup(o->base, n);
        r->name = mem_strdup(o->name);
        r->authorization = mem_printf("Authorization: Bot %s", secret_reveal(o->token));
        r->on_unauthorized = o->unauthorized;
        r->arg = o->arg;
        dc_guard_init(&r->guard, r->name, o->invalid_max);
        dc_limits_init(&r->limits);
        LIST_INIT(&r->busy);
        TAILQ_INIT(&r->flying);
        TAILQ_INIT(&r->parsing);
        TAILQ_INIT(&r->refused);
        r->global = pace_new(&limits);
        r->timer = timer_new(o->loop, on_timer, r);
        return r;
}

/* ---- queues ---- */

static void enqueue(struct dc_call *c, struct dc_bucket *b, bool first)
{
        c->state = CALL_WAITING;
        c->bucket = b;
        if (first)
                TAILQ_INSERT_HEAD(&b->queues[c->priority], c, next);
        else
                TAILQ_INSERT_TAIL(&b->queues[c->priority], c, next);
        if (b->waiting++ == 0)
                LIST_INSERT_HEAD(&c->rest->busy, b, busy);
        c->rest->waiting++;
}

static void dequeue(struct dc_call *c)
{
        struct dc_bucket *b = c->bucket;

        TAILQ_REMOVE(&b->queues[c->priority], c, next);
        if (--b->waiting == 0)
                LIST_REMOVE(b, busy);
        c->rest->waiting--;
}

static struct dc_call *first_waiting(const struct dc_bucket *b)
{
        for (int i = 0; i < DC_PRIORITIES; i++)
                if (TAILQ_FIRST(&b->queues[i]))
                        return TAILQ_FIRST(&b->queues[i]);
        return NULL;
}

/* The answer to a call that is not made; given from the loop. */
static void refuse(struct dc_call *c, enum error_kind kind, int64_t retry_ms, const char *why)
{
        error_set(&c->refusal, kind, "%s", why);
        c->state = CALL_REFUSED;
        c->refusal_ms = retry_ms;
        TAILQ_INSERT_TAIL(&c->rest->refused, c, next);
        timer_start(c->rest->timer, 0);
}

/* Those that were refused before this round; callbacks may add, and abort others. */
static void answer_refused(struct dc_rest *r)
{
        struct dc_call *c, *last = TAILQ_LAST(&r->refused, dc_calls);

        while ((c = TAILQ_FIRST(&r->refused))) {
                const struct dc_answer answer = { .reach = HTTP_NOT_SENT,
                                                  .code = c->refusal_code,
                                                  .kind = c->refusal.kind,
                                                  .why = c->refusal.text,
                                                  .retry_after_ms = c->refusal_ms };
                bool was_last = c == last;

                TAILQ_REMOVE(&r->refused, c, next);
                c->done(c->arg, &answer);
                dc_call_free(c);
                if (was_last)
                        break;
        }
}

/* ---- what an answer teaches ---- */

static void move_waiting(struct dc_bucket *from, struct dc_bucket *to)
{
        struct dc_call *c;

        for (int i = 0; i < DC_PRIORITIES; i++) {
                while ((c = TAILQ_FIRST(&from->queues[i]))) {
                        dequeue(c);
                        enqueue(c, to, false);
                }
        }
}

/* The call has left its bucket's flight; returns the bucket it belongs to from now on. */
static struct dc_bucket *learn(struct dc_call *c)
{
        struct dc_rest *r = c->rest;
        struct dc_told told = dc_answer_limits(c->http);
        struct dc_bucket *old = c->bucket, *b = old;

        if (told.hash)
                b = dc_limits_learn(&r->limits, old, c->method, c->route, c->major, told.hash);
        dc_bucket_told(b, &told, loop_now_ms(r->loop));
        if (b != old) {
                move_waiting(old, b);
                dc_limits_drop(&r->limits, old);
        }
        return b;
}

static bool is_shared(const struct dc_call *c)
{
        const char *scope = http_answer_header(c->http, "X-RateLimit-Scope");

        return scope && strcmp(scope, "shared") == 0;
}

static void on_limited(struct dc_call *c, struct dc_bucket *b, const struct dc_answer *a)
{
        struct dc_rest *r = c->rest;
        int64_t now = loop_now_ms(r->loop),
                ms = a->retry_after_ms > 0 ? a->retry_after_ms : DC_LIMITED_MS;

        if (!a->global)
                dc_bucket_close(b, ms, now);
        else if (now + ms > r->global_ms)
                r->global_ms = now + ms;
        log_warn("Discord's rate limit is reached", LOG_S("adapter", r->name),
                 LOG_S("method", c->method), LOG_S("route", c->route), LOG_I("retryAfterMs", ms),
                 LOG_S("scope", a->global      ? "global"
                                : is_shared(c) ? "shared"
                                               : "bucket"));
}

static bool is_denied(const struct dc_answer *a)
{
        return a->status == 403 && (a->code == 50001 || a->code == 50013);
}

static void take_notice(struct dc_call *c, struct dc_bucket *b, const struct dc_answer *a)
{
        struct dc_rest *r = c->rest;

        if (a->status == 401 || a->status == 403 || (a->status == 429 && !is_shared(c)))
                dc_guard_count(&r->guard, loop_now_ms(r->loop));
        if (a->status == 429)
                on_limited(c, b, a);
        if (is_denied(a)) {
                b->denied_ms = loop_now_ms(r->loop) + DENIED_MS;
                b->denied_code = a->code;
        }
}

static void refuse_unauthorized(struct dc_call *c)
{
        refuse(c, ERR_REFUSED, -1,
               "Discord does not know the bot token: nothing more is asked with it");
}

/* Whatever waits would show a token that is worth nothing, and count towards a ban. */
static void refuse_waiting(struct dc_rest *r)
{
        struct dc_bucket *b, *next_bucket;
        struct dc_call *c, *after;

        for (b = LIST_FIRST(&r->busy); b; b = next_bucket) {
                next_bucket = LIST_NEXT(b, busy);
                for (int i = 0; i < DC_PRIORITIES; i++) {
                        for (c = TAILQ_FIRST(&b->queues[i]); c; c = after) {
                                after = TAILQ_NEXT(c, next);
                                if (c->bare)
                                        continue;
                                dequeue(c);
                                refuse_unauthorized(c);
                        }
                }
        }
}

static void pump(struct dc_rest *r);

static bool may_wait_again(const struct dc_call *c, const struct dc_answer *a)
{
        return a->status == 429 &&
               loop_now_ms(c->rest->loop) +
                               (a->retry_after_ms > 0 ? a->retry_after_ms : DC_LIMITED_MS) <=
                       c->deadline_ms;
}

static void on_parsed(void *arg, json_t *body)
{
        struct dc_call *c = arg;

        TAILQ_REMOVE(&c->rest->parsing, c, next);
        c->answer.result = body;
        c->done(c->arg, &c->answer);
        dc_call_free(c);
}

static void parse_apart(struct dc_call *c, const struct dc_answer *answer,
                        const struct http_result *result)
{
        c->state = CALL_PARSING;
        c->answer = *answer;
        c->answer.why = ""; /* it is a good one */
        TAILQ_INSERT_TAIL(&c->rest->parsing, c, next);
        c->parsing = dc_parse_apart(c->rest->loop, result->body, result->body_n, on_parsed, c);
}

static void on_done(void *arg, const struct http_result *result)
{
        struct dc_call *c = arg;
        struct dc_rest *r = c->rest;
        struct dc_bucket *b = c->bucket;
        struct dc_answer answer;
        char text[300];
        bool bad_token;
        json_t *body;

        TAILQ_REMOVE(&r->flying, c, next);
        r->flying_count--;
        b->flying--;
        body = dc_answer_body(result);
        dc_answer_read(c->http, result, body, &answer, text, sizeof(text));
        if (answer.status > 0) {
                b = learn(c);
                take_notice(c, b, &answer);
        }
        c->http = NULL;
        bad_token = answer.status == 401 && !c->bare && !r->unauthorized;
        r->unauthorized |= bad_token;
        if (bad_token)
                refuse_waiting(r);
        if (may_wait_again(c, &answer)) {
                enqueue(c, b, true);
        } else if (dc_answer_is_large(result)) {
                parse_apart(c, &answer, result);
        } else {
                c->done(c->arg, &answer);
                dc_call_free(c);
        }
        json_decref(body);
        if (bad_token && r->on_unauthorized)
                r->on_unauthorized(r->arg);
        pump(r);
}

/* ---- who may go ---- */

static void fly(struct dc_call *c)
{
        static const struct http_handlers handlers = { .on_done = on_done };
        struct dc_rest *r = c->rest;

        c->state = CALL_FLYING;
        c->bucket->flying++;
        r->flying_count++;
        TAILQ_INSERT_TAIL(&r->flying, c, next);
        c->http = dc_call_start(c, r->http, r->base, r->authorization, &handlers);
}

static bool may_pass(struct dc_rest *r, const struct dc_call *c)
{
        int64_t now = loop_now_ms(r->loop);

        return c->priority == DC_IDLE ? dc_guard_is_wide_open(&r->guard, now)
                                      : dc_guard_is_open(&r->guard, now);
}

/* 0: now; > 0: ask again then; -1: after an answer. Counts at the global limit when it says 0. */
static int64_t wait_of(struct dc_rest *r, const struct dc_bucket *b, const struct dc_call *c)
{
        int64_t now = loop_now_ms(r->loop), ms = dc_bucket_wait(b, now);

        if (!may_pass(r, c))
                return GUARDED_MS;
        if (ms != 0 || c->bare)
                return ms;
        if (r->flying_count >= FLYING_MAX)
                return -1;
        if (r->global_ms > now)
                return r->global_ms - now;
        return pace_take(r->global, "", false, PACE_FINAL, now);
}

static void refuse_late(struct dc_call *c, int64_t wait)
{
        refuse(c, ERR_LIMIT, wait > 0 ? wait : DC_LIMITED_MS,
               "Discord's rate limit for this route is used up; it is tried again later");
}

/* Lets go what may go; returns when to look again, or -1. */
static int64_t pump_bucket(struct dc_rest *r, struct dc_bucket *b)
{
        struct dc_call *c;
        int64_t wait = -1;

        while ((c = first_waiting(b)) && (wait = wait_of(r, b, c)) == 0) {
                dequeue(c);
                fly(c);
        }
        return c ? wait : -1;
}

/*
 * Whoever cannot go before its deadline is told now; returns the nearest deadline of the others, or
 * -1.
 */
static int64_t end_late(struct dc_rest *r, struct dc_bucket *b, int64_t wait)
{
        int64_t now = loop_now_ms(r->loop), nearest = -1;

        for (int i = 0; i < DC_PRIORITIES; i++) {
                struct dc_call *c, *after;

                for (c = TAILQ_FIRST(&b->queues[i]); c; c = after) {
                        after = TAILQ_NEXT(c, next);
                        if (now + (wait > 0 ? wait : 0) >= c->deadline_ms) {
                                dequeue(c);
                                refuse_late(c, wait);
                        } else if (nearest < 0 || c->deadline_ms - now < nearest) {
                                nearest = c->deadline_ms - now;
                        }
                }
        }
        return nearest;
}

static int64_t earlier(int64_t a, int64_t b)
{
        if (a < 0 || b < 0)
                return a < 0 ? b : a;
        return a < b ? a : b;
}

/*
 * Lets go whatever may. Not one look at each that waits for every answer: when all connections are
 * busy, the rest can only wait.
 */
static void pump(struct dc_rest *r)
{
        struct dc_bucket *b, *after;
        int64_t next = LIST_EMPTY(&r->busy) ? -1 : LATE_LOOK_MS;

        for (b = LIST_FIRST(&r->busy); b && r->flying_count < FLYING_MAX; b = after) {
                int64_t wait;

                after = LIST_NEXT(b, busy);
                wait = pump_bucket(r, b);
                next = earlier(next, wait);
                if (wait > 0) /* who cannot wait so long is told at once */
                        next = earlier(next, end_late(r, b, wait));
        }
        if (!TAILQ_EMPTY(&r->refused))
                next = 0;
        if (next >= 0 && (!timer_active(r->timer) || next < LATE_LOOK_MS))
                timer_start(r->timer, next);
}

static void on_timer(void *arg)
{
        struct dc_rest *r = arg;
        struct dc_bucket *b, *after;

        dc_guard_is_open(&r->guard, loop_now_ms(r->loop));
        for (b = LIST_FIRST(&r->busy); b; b = after) {
                after = LIST_NEXT(b, busy);
                end_late(r, b, -1);
        }
        answer_refused(r);
        pump(r);
}

/* ---- making a call ---- */

/* Why it cannot even wait; false: it can. */
static bool refused_at_once(struct dc_call *c)
{
        struct dc_rest *r = c->rest;
        const struct dc_bucket *b = c->bucket;

        if (r->unauthorized && !c->bare) {
                refuse_unauthorized(c);
        } else if (!may_pass(r, c)) {
                refuse(c, ERR_LIMIT, GUARDED_MS,
                       "Discord has refused so many calls in ten minutes that it would soon ban "
                       "our address: nothing is sent for a while");
        } else if (c->priority == DC_IDLE && b->denied_ms > loop_now_ms(r->loop)) {
                c->refusal_code = b->denied_code;
                refuse(c, ERR_REFUSED, -1,
                       "Discord has just said that the bot may not do this here");
        } else if (r->waiting >= DC_WAITING_MAX && c->priority != DC_URGENT) {
                refuse(c, ERR_LIMIT, DC_LIMITED_MS,
                       "too many calls wait for Discord's rate limits");
        } else {
                return false;
        }
        return true;
}

struct dc_call *dc_rest_call(struct dc_rest *r, const struct dc_request *q, dc_answer_fn *done,
                             void *arg)
{
        struct dc_call *c = mem_zalloc(sizeof(*c));
        int64_t now = loop_now_ms(r->loop);
        struct error err = { 0 };

        c->rest = r;
        c->done = done;
        c->arg = arg;
        if (dc_call_make(c, q, now, &err) < 0) {
                refuse(c, ERR_INVALID, -1, err.text);
                return c;
        }
        c->bucket = dc_limits_bucket(&r->limits, c->method, c->route, c->major, now);
        if (refused_at_once(c))
                return c;
        enqueue(c, c->bucket, false);
        if (c->priority == DC_URGENT) /* also when all connections are busy */
                pump_bucket(r, c->bucket);
        pump(r);
        return c;
}

bool dc_call_begun(const struct dc_call *c)
{
        return c->state == CALL_FLYING || c->state == CALL_PARSING;
}

void dc_call_abort(struct dc_call *c)
{
        if (!c)
                return;
        if (c->state == CALL_WAITING) {
                dequeue(c);
        } else if (c->state == CALL_REFUSED) {
                TAILQ_REMOVE(&c->rest->refused, c, next);
        } else if (c->state == CALL_PARSING) {
                TAILQ_REMOVE(&c->rest->parsing, c, next);
                dc_parse_drop(c->parsing);
        } else {
                TAILQ_REMOVE(&c->rest->flying, c, next);
                c->rest->flying_count--;
                c->bucket->flying--;
                http_abort(c->http);
                timer_start(c->rest->timer, 0); /* its place is free */
        }
        dc_call_free(c);
}

size_t dc_rest_waiting(const struct dc_rest *r)
{
        return r->waiting;
}

unsigned dc_rest_invalid(const struct dc_rest *r)
{
        return r->guard.sum;
}

static void abort_all(struct dc_calls *calls)
{
        struct dc_call *c, *after;

        for (c = TAILQ_FIRST(calls); c; c = after) {
                after = TAILQ_NEXT(c, next);
                dc_call_abort(c);
        }
}

void dc_rest_free(struct dc_rest *r)
{
        struct dc_bucket *b, *after;

        if (!r)
                return;
        for (b = LIST_FIRST(&r->busy); b; b = after) {
                after = LIST_NEXT(b, busy);
                for (int i = 0; i < DC_PRIORITIES; i++)
                        abort_all(&b->queues[i]);
        }
        abort_all(&r->refused);
        abort_all(&r->parsing);
        abort_all(&r->flying);
        dc_limits_release(&r->limits);
        timer_free(r->timer);
        pace_free(r->global);
        explicit_bzero(r->authorization, strlen(r->authorization));
        free(r->authorization);
        free(r->base);
        free(r->name);
        free(r);
}
