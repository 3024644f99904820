/*
 *     dc_rest_call ──► waiting ──► flying ──► answered
 *                         ▲           │
 *                         └── 429 ────┘   if the new wait ends before the call's deadline
 */
#include "platform/discord/dc_rest.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/http_text.h"
#include "net/json_offload.h"
#include "net/pace.h"
#include "platform/discord/dc_call.h"
#include "platform/discord/dc_rate_limit.h"
#include "platform/discord/discord.h"

#define PER_SECOND    50
#define DENIED_MS     60000
#define GUARDED_MS    60000
#define FLYING_MAX    32 /* as many connections as are kept alive */
#define NO_ACCESS     50001
#define NO_PERMISSION 50013
#define LATE_LOOK_MS  200 /* how often to look for late calls */
#define UNAUTHORIZED  "Discord does not know the bot token: no more calls are made"

struct dc_rest {
        struct loop *loop;
        struct http_client *http;
        char *base, *name;
        char *authorization;
        struct dc_rate_limits limits;
        struct dc_buckets busy; /* those where calls wait */
        struct dc_calls flying, parsing, refused;
        LIST_HEAD(, dc_call) asks;
        size_t waiting, flying_count;
        struct pace *global;
        int64_t global_ms; /* after a global 429: no call before this */
        struct timer *timer;
        bool unauthorized;
        void (*on_unauthorized)(void *arg);
        void *arg;
        struct dc_ban_guard guard;
        int64_t date_ms, date_boot_ms; /* the last Date header, and when it came; 0: none */
};

static void pump(struct dc_rest *r);

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

static void finish(struct dc_call *c, const struct dc_answer *a)
{
        if (c->is_ask)
                LIST_REMOVE(c, next_ask);
        c->is_ask = false;
        if (c->done)
                c->done(c->arg, a);
        dc_call_free(c);
}

/* answer_refused answers it from the loop. */
static void refuse(struct dc_call *c, enum error_kind kind, int64_t retry_ms, const char *why)
{
        error_set(&c->refusal, kind, "%s", why);
        c->state = CALL_REFUSED;
        c->refusal_ms = retry_ms;
        TAILQ_INSERT_TAIL(&c->rest->refused, c, next);
        timer_start(c->rest->timer, 0);
}

/* Only calls refused before this round: callbacks may add or abort some. */
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
                finish(c, &answer);
                if (was_last)
                        break;
        }
}

/* Further calls would count towards a ban. */
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
                                refuse(c, ERR_REFUSED, -1, UNAUTHORIZED);
                        }
                }
        }
}

static void note_date(struct dc_rest *r, const struct http_call *http)
{
        int64_t date_ms = http_text_date_ms(http_call_header(http, "Date"));

        if (date_ms <= 0)
                return;
        r->date_ms = date_ms;
        r->date_boot_ms = clock_boot_ms();
}

int64_t dc_rest_now_ms(const struct dc_rest *r)
{
        return r->date_ms > 0 ? r->date_ms + clock_boot_ms() - r->date_boot_ms : clock_wall_ms();
}

/* Returns the bucket the call belongs to from now on. */
static struct dc_bucket *learn(struct dc_call *c, const struct dc_answer *a)
{
        struct dc_rest *r = c->rest;
        struct dc_rate_limit_headers h = dc_call_limits(c->http);
        const char *scope = http_call_header(c->http, "X-RateLimit-Scope");
        bool shared = scope && strcmp(scope, "shared") == 0;
        struct dc_bucket *old = c->bucket, *b = old;
        int64_t now = loop_now_ms(r->loop), until = now + a->retry_after_ms;
        struct dc_call *waiting;

        if (h.hash)
                b = dc_rate_limits_learn(&r->limits, old, c->method, c->route, c->major, h.hash);
        dc_rate_limit_update(b, &h, now);
        for (int i = 0; b != old && i < DC_PRIORITIES; i++) {
                while ((waiting = TAILQ_FIRST(&old->queues[i]))) {
                        dequeue(waiting);
                        enqueue(waiting, b, false);
                }
        }
        if (b != old)
                dc_rate_limits_drop(&r->limits, old);
        if (a->status == 401 || a->status == 403 || (a->status == 429 && !shared))
                dc_rate_limit_count(&r->guard, now);
        if (a->status == 429) {
                if (!a->global)
                        dc_rate_limit_close(b, a->retry_after_ms, now);
                else if (until > r->global_ms)
                        r->global_ms = until;
                log_warn("Discord's rate limit reached", LOG_S("adapter", r->name),
                         LOG_S("method", c->method), LOG_S("route", c->route),
                         LOG_I("retryAfterMs", a->retry_after_ms),
                         LOG_S("scope", a->global ? "global"
                                        : shared  ? "shared"
                                                  : "bucket"));
        }
        /* other known codes are about one message or person, not about the route */
        if (a->status == 403 &&
            (a->code == NO_ACCESS || a->code == NO_PERMISSION || !dc_outcome_advice(a->code))) {
                b->denied_ms = now + DENIED_MS;
                b->denied_code = a->code ? a->code : NO_PERMISSION;
        }
        return b;
}

static void on_parsed(void *arg, const struct json_parsed *parsed)
{
        struct dc_call *c = arg;

        TAILQ_REMOVE(&c->rest->parsing, c, next);
        c->answer.result = parsed->root;
        finish(c, &c->answer);
}

static void on_done(void *arg, const struct http_result *result)
{
        struct dc_call *c = arg;
        struct dc_rest *r = c->rest;
        struct dc_bucket *b = c->bucket;
        struct dc_answer answer;
        char text[300];
        bool bad_token, large;
        json_t *body = NULL;

        TAILQ_REMOVE(&r->flying, c, next);
        r->flying_count--;
        b->flying--;
        large = result->status >= 200 && result->status < 300 && result->kind == ERR_NONE &&
                result->body_n >= JSON_OFFLOAD_MIN;
        if (!large && result->status > 0 && result->kind == ERR_NONE && result->body_n > 0)
                body = json_read_lenient(result->body, result->body_n, NULL);
        dc_call_answer(c->http, result, body, &answer, text, sizeof(text));
        if (answer.status > 0) {
                note_date(r, c->http);
                b = learn(c, &answer);
        }
        c->http = NULL;
        bad_token = answer.status == 401 && !c->bare && !r->unauthorized;
        r->unauthorized |= bad_token;
        if (bad_token)
                refuse_waiting(r);
        if (answer.status == 429 &&
            loop_now_ms(r->loop) + answer.retry_after_ms <= c->deadline_ms) {
                enqueue(c, b, true);
        } else if (large) {
                c->state = CALL_PARSING;
                c->answer = answer;
                c->answer.why = "";
                TAILQ_INSERT_TAIL(&r->parsing, c, next);
                c->parsing = json_offload_start(r->loop, mem_dup(result->body, result->body_n),
                                                result->body_n, json_read_lenient, on_parsed, c);
        } else {
                finish(c, &answer);
        }
        json_decref(body);
        if (bad_token && r->on_unauthorized)
                r->on_unauthorized(r->arg);
        pump(r);
}

/* ---- which calls go ---- */

/* Returns when to look again, or -1. */
static int64_t pump_bucket(struct dc_rest *r, struct dc_bucket *b)
{
        static const struct http_handlers handlers = { .on_done = on_done };
        int64_t now = loop_now_ms(r->loop), wait;

        for (;;) {
                struct dc_call *c = NULL;

                for (int i = 0; i < DC_PRIORITIES && !c; i++)
                        c = TAILQ_FIRST(&b->queues[i]);
                if (!c)
                        return -1;
                if (!dc_rate_limit_admit(&r->guard, now, c->priority == DC_IDLE))
                        return GUARDED_MS;
                wait = dc_rate_limit_wait(b, now);
                if (wait == 0 && !c->bare) {
                        if (r->flying_count >= FLYING_MAX)
                                return -1;
                        if (r->global_ms > now)
                                return r->global_ms - now;
                        wait = pace_take(r->global, "", false, PACE_FINAL, now);
                }
                if (wait != 0)
                        return wait;
                dequeue(c);
                c->state = CALL_FLYING;
                b->flying++;
                r->flying_count++;
                TAILQ_INSERT_TAIL(&r->flying, c, next);
                c->http = dc_call_start(c, r->http, r->base, r->authorization, &handlers);
        }
}

/* Refuses late calls; returns the nearest deadline of the others, or -1. */
static int64_t end_late(struct dc_rest *r, struct dc_bucket *b, int64_t wait)
{
        int64_t now = loop_now_ms(r->loop), nearest = -1;

        for (int i = 0; i < DC_PRIORITIES; i++) {
                struct dc_call *c, *after;

                for (c = TAILQ_FIRST(&b->queues[i]); c; c = after) {
                        after = TAILQ_NEXT(c, next);
                        if (now + (wait > 0 ? wait : 0) >= c->deadline_ms) {
                                dequeue(c);
                                refuse(c, ERR_LIMIT, wait > 0 ? wait : DC_LIMITED_MS,
                                       "Discord's rate limit for this route is used up");
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

/* Stops when all connections are busy, so that an answer does not scan every bucket. */
static void pump(struct dc_rest *r)
{
        struct dc_bucket *b, *after;
        int64_t next = LIST_EMPTY(&r->busy) ? -1 : LATE_LOOK_MS;

        for (b = LIST_FIRST(&r->busy); b && r->flying_count < FLYING_MAX; b = after) {
                int64_t wait;

                after = LIST_NEXT(b, busy);
                wait = pump_bucket(r, b);
                next = earlier(next, wait);
                if (wait > 0)
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

        dc_rate_limit_admit(&r->guard, loop_now_ms(r->loop), false); /* logs when it opens */
        for (b = LIST_FIRST(&r->busy); b; b = after) {
                after = LIST_NEXT(b, busy);
                end_late(r, b, -1);
        }
        answer_refused(r);
        pump(r);
}

struct dc_call *dc_rest_call(struct dc_rest *r, const struct dc_request *q, dc_answer_fn *done,
                             void *arg)
{
        struct dc_call *c = mem_zalloc(sizeof(*c));
        int64_t now = loop_now_ms(r->loop);
        struct error err = { 0 };
        struct dc_bucket *b;

        c->rest = r;
        c->done = done;
        c->arg = arg;
        if (dc_call_init(c, q, now, &err) < 0) {
                refuse(c, ERR_INVALID, -1, err.text);
                return c;
        }
        c->bucket = b = dc_rate_limits_bucket(&r->limits, c->method, c->route, c->major, now);
        if (r->unauthorized && !c->bare) {
                refuse(c, ERR_REFUSED, -1, UNAUTHORIZED);
        } else if (!dc_rate_limit_admit(&r->guard, now, c->priority == DC_IDLE)) {
                refuse(c, ERR_LIMIT, GUARDED_MS,
                       "Discord refused so many calls in ten minutes that it would soon ban our "
                       "address: calls are suspended");
        } else if (c->priority == DC_IDLE && b->denied_ms > now) {
                c->refusal_code = b->denied_code;
                refuse(c, ERR_REFUSED, -1, "Discord has just denied the bot this permission");
        } else if (r->waiting >= DC_WAITING_MAX && c->priority != DC_URGENT) {
                refuse(c, ERR_LIMIT, DC_LIMITED_MS,
                       "too many calls wait for Discord's rate limits");
        } else {
                enqueue(c, b, false);
                if (c->priority == DC_URGENT) /* even when all connections are busy */
                        pump_bucket(r, b);
                pump(r);
        }
        return c;
}

void dc_rest_ask(struct dc_rest *r, const struct dc_request *q, dc_answer_fn *done, void *arg)
{
        struct dc_call *c = dc_rest_call(r, q, done, arg);

        c->is_ask = true;
        LIST_INSERT_HEAD(&r->asks, c, next_ask);
}

void dc_rest_get(struct dc_rest *r, const struct dc_get *q, dc_answer_fn *done, void *arg)
{
        dc_rest_ask(r,
                    &(struct dc_request){ .method = "GET",
                                          .route = q->route,
                                          .args = { q->args[0], q->args[1] },
                                          .query = q->query,
                                          .priority = q->idle ? DC_IDLE : DC_NORMAL,
                                          .repeatable = true,
                                          .drop_on_cancel = q->drop_on_cancel },
                    done, arg);
}

bool dc_rest_begun(const struct dc_call *c)
{
        return c->state == CALL_FLYING || c->state == CALL_PARSING;
}

void dc_rest_abort(struct dc_call *c)
{
        if (!c)
                return;
        if (c->state == CALL_WAITING) {
                dequeue(c);
        } else if (c->state == CALL_REFUSED) {
                TAILQ_REMOVE(&c->rest->refused, c, next);
        } else if (c->state == CALL_PARSING) {
                TAILQ_REMOVE(&c->rest->parsing, c, next);
                json_offload_cancel(c->parsing);
        } else {
                TAILQ_REMOVE(&c->rest->flying, c, next);
                c->rest->flying_count--;
                c->bucket->flying--;
                http_call_abort(c->http);
                timer_start(c->rest->timer, 0); /* another one may go */
        }
        dc_call_free(c);
}

void dc_rest_cancel(struct dc_rest *r)
{
        const struct dc_answer cancelled = { .reach = HTTP_UNSURE,
                                             .kind = ERR_CANCELLED,
                                             .why = "the adapter was stopped",
                                             .retry_after_ms = -1 };
        struct dc_call *c;

        while ((c = LIST_FIRST(&r->asks))) {
                dc_answer_fn *done = c->drop_on_cancel ? NULL : c->done;
                void *arg = c->arg;

                dc_rest_abort(c);
                if (done)
                        done(arg, &cancelled);
        }
}

bool dc_rest_is_unavailable(const struct dc_answer *a)
{
        return a->status == 0 || a->status == 429 || a->status >= 500;
}

void dc_rest_stats(const struct dc_rest *r, size_t *waiting, unsigned *invalid)
{
        *waiting = r->waiting;
        *invalid = r->guard.sum;
}

struct dc_rest *dc_rest_new(const struct dc_rest_options *o)
{
        double rate = o->per_second == 0 ? PER_SECOND : o->per_second < 0 ? 0 : o->per_second;
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
        dc_rate_limit_guard_init(&r->guard, r->name, o->invalid_max);
        dc_rate_limits_init(&r->limits);
        LIST_INIT(&r->busy);
        LIST_INIT(&r->asks);
        TAILQ_INIT(&r->flying);
        TAILQ_INIT(&r->parsing);
        TAILQ_INIT(&r->refused);
        r->global = pace_new(&(struct pace_limits){ .per_second = rate });
        r->timer = timer_new(o->loop, on_timer, r);
        return r;
}

static void abort_all(struct dc_calls *calls)
{
        struct dc_call *c, *after;

        for (c = TAILQ_FIRST(calls); c; c = after) {
                after = TAILQ_NEXT(c, next);
                dc_rest_abort(c);
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
        dc_rate_limits_release(&r->limits);
        timer_free(r->timer);
        pace_free(r->global);
        explicit_bzero(r->authorization, strlen(r->authorization));
        free(r->authorization);
        free(r->base);
        free(r->name);
        free(r);
}
