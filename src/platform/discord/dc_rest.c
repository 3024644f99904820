/*
 *     dc_rest_call ──► waiting ──► flying ──► answered
 *                         ▲           │
 *                         └── 429 ────┘   if the new wait ends before the call's deadline
 */
#include "platform/discord/dc_rest.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/json_offload.h"
#include "net/pace.h"
#include "net/server_clock.h"
#include "platform/discord/dc_call.h"
#include "platform/discord/dc_rate_limit.h"
#include "platform/discord/discord.h"

#define PER_SECOND    50
#define DENIED_MS     60000
#define GUARDED_MS    60000
#define NO_ACCESS     50001
#define NO_PERMISSION 50013
#define UNAUTHORIZED  "Discord does not know the bot token: no more calls are made"

struct dc_rest {
        struct http_client *http;
        char *base, *name;
        char *authorization;
        struct call_queue queue;
        struct dc_rate_limits limits;
        LIST_HEAD(, dc_call) calls;
        struct pace *global;
        int64_t global_ms; /* after a global 429: no call before this */
        bool unauthorized;
        void (*on_unauthorized)(void *arg);
        void *arg;
        struct dc_ban_guard guard;
        struct server_clock clock;
};

/* ---- answers ---- */

static void finish(struct dc_call *c, const struct dc_answer *a)
{
        LIST_REMOVE(c, next);
        if (c->done)
                c->done(c->arg, a);
        dc_call_free(c);
}

static void on_refused(struct queued_call *q)
{
        struct dc_call *c = (struct dc_call *)q;
        const struct dc_answer answer = { .reach = HTTP_NOT_SENT,
                                          .code = c->refusal_code,
                                          .kind = q->refusal.kind,
                                          .why = q->refusal.text,
                                          .retry_after_ms = q->refusal_ms };

        finish(c, &answer);
}

static bool has_token(const struct queued_call *q)
{
        return !((const struct dc_call *)q)->bare;
}

int64_t dc_rest_now_ms(const struct dc_rest *r)
{
        return server_clock_now_ms(&r->clock);
}

/* Returns the bucket the call belongs to from now on. */
static struct dc_bucket *learn(struct dc_call *c, const struct dc_answer *a)
{
        struct dc_rest *r = c->rest;
        struct dc_rate_limit_headers h = dc_call_limits(c->http);
        const char *scope = http_call_header(c->http, "X-RateLimit-Scope");
        bool shared = scope && strcmp(scope, "shared") == 0;
        struct dc_bucket *old = (struct dc_bucket *)c->queued.lane, *b = old;
        int64_t now = loop_now_ms(r->queue.loop), until = now + a->retry_after_ms;

        if (h.hash)
                b = dc_rate_limits_learn(&r->limits, old, c->method, c->route, c->major, h.hash);
        dc_rate_limit_update(b, &h, now);
        if (b != old) {
                call_queue_move(&r->queue, &old->lane, &b->lane);
                dc_rate_limits_drop(&r->limits, old);
        }
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

        c->answer.result = parsed->root;
        finish(c, &c->answer);
}

static void on_done(void *arg, const struct http_result *result)
{
        struct dc_call *c = arg;
        struct dc_rest *r = c->rest;
        struct dc_bucket *b = (struct dc_bucket *)c->queued.lane;
        struct dc_answer answer;
        char text[300];
        bool bad_token, large;
        json_t *body = NULL;

        call_queue_leave(&r->queue, &c->queued);
        large = result->status >= 200 && result->status < 300 && result->kind == ERR_NONE &&
                result->body_n >= JSON_OFFLOAD_MIN;
        if (!large && result->status > 0 && result->kind == ERR_NONE && result->body_n > 0)
                body = json_read_lenient(result->body, result->body_n, NULL);
        dc_call_answer(c->http, result, body, &answer, text, sizeof(text));
        if (answer.status > 0) {
                server_clock_set(&r->clock, http_call_header(c->http, "Date"));
                b = learn(c, &answer);
        }
        c->http = NULL;
        bad_token = answer.status == 401 && !c->bare && !r->unauthorized;
        r->unauthorized |= bad_token;
        if (bad_token) /* further calls would count towards a ban */
                call_queue_refuse_waiting(&r->queue, has_token, ERR_REFUSED, UNAUTHORIZED);
        if (answer.status == 429 &&
            loop_now_ms(r->queue.loop) + answer.retry_after_ms <= c->queued.deadline_ms) {
                call_queue_again(&r->queue, &b->lane, &c->queued);
        } else if (large) {
                c->answer = answer;
                c->answer.why = "";
                c->parsing =
                        json_offload_start(r->queue.loop, mem_dup(result->body, result->body_n),
                                           result->body_n, json_read_lenient, on_parsed, c);
        } else {
                finish(c, &answer);
        }
        json_decref(body);
        if (bad_token && r->on_unauthorized)
                r->on_unauthorized(r->arg);
        call_queue_pump(&r->queue);
}

/* ---- which calls go ---- */

static int64_t wait_for_turn(struct call_queue *q, const struct queued_call *queued, int64_t now)
{
        const struct dc_call *c = (const struct dc_call *)queued;
        struct dc_rest *r = q->arg;
        int64_t wait;

        if (!dc_rate_limit_admit(&r->guard, now, queued->priority == DC_IDLE))
                return GUARDED_MS;
        wait = dc_rate_limit_wait((const struct dc_bucket *)queued->lane, now);
        if (wait != 0 || c->bare)
                return wait;
        if (q->flying_count >= CALL_FLYING_MAX)
                return -1;
        if (r->global_ms > now)
                return r->global_ms - now;
        return pace_take(r->global, "", false, PACE_FINAL, now);
}

static void start(struct queued_call *q)
{
        static const struct http_handlers handlers = { .on_done = on_done };
        struct dc_call *c = (struct dc_call *)q;
        struct dc_rest *r = c->rest;

        c->http = dc_call_start(c, r->http, r->base, r->authorization, &handlers);
}

static void on_tick(struct call_queue *q, int64_t now_ms)
{
        struct dc_rest *r = q->arg;

        dc_rate_limit_admit(&r->guard, now_ms, false); /* logs when it opens */
}

static const struct call_queue_ops queue_ops = { .wait = wait_for_turn,
                                                 .start = start,
                                                 .refused = on_refused,
                                                 .tick = on_tick,
                                                 .late = "Discord's rate limit for this route is "
                                                         "used up" };

struct dc_call *dc_rest_call(struct dc_rest *r, const struct dc_request *q, dc_answer_fn *done,
                             void *arg)
{
        struct dc_call *c = mem_zalloc(sizeof(*c));
        int64_t now = loop_now_ms(r->queue.loop);
        struct error err = { 0 };
        struct dc_bucket *b;

        c->rest = r;
        c->done = done;
        c->arg = arg;
        LIST_INSERT_HEAD(&r->calls, c, next);
        if (dc_call_init(c, q, now, &err) < 0) {
                call_queue_refuse(&r->queue, &c->queued, ERR_INVALID, -1, err.text);
                return c;
        }
        b = dc_rate_limits_bucket(&r->limits, c->method, c->route, c->major, now);
        if (r->unauthorized && !c->bare) {
                call_queue_refuse(&r->queue, &c->queued, ERR_REFUSED, -1, UNAUTHORIZED);
        } else if (!dc_rate_limit_admit(&r->guard, now, q->priority == DC_IDLE)) {
                call_queue_refuse(
                        &r->queue, &c->queued, ERR_LIMIT, GUARDED_MS,
                        "Discord refused so many calls in ten minutes that it would soon ban our "
                        "address: calls are suspended");
        } else if (q->priority == DC_IDLE && b->denied_ms > now) {
                c->refusal_code = b->denied_code;
                call_queue_refuse(&r->queue, &c->queued, ERR_REFUSED, -1,
                                  "Discord has just denied the bot this permission");
        } else if (r->queue.waiting >= DC_WAITING_MAX && q->priority != DC_URGENT) {
                call_queue_refuse(&r->queue, &c->queued, ERR_LIMIT, CALL_LIMITED_MS,
                                  "too many calls wait for Discord's rate limits");
        } else {
                call_queue_add(&r->queue, &b->lane, &c->queued);
        }
        return c;
}

void dc_rest_ask(struct dc_rest *r, const struct dc_request *q, dc_answer_fn *done, void *arg)
{
        dc_rest_call(r, q, done, arg)->is_ask = true;
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
        return c->queued.state == QUEUED_FLYING || c->parsing;
}

void dc_rest_abort(struct dc_call *c)
{
        if (!c)
                return;
        http_call_abort(c->http);
        json_offload_cancel(c->parsing);
        call_queue_leave(&c->rest->queue, &c->queued);
        LIST_REMOVE(c, next);
        dc_call_free(c);
}

static struct dc_call *first_ask(const struct dc_rest *r)
{
        struct dc_call *c = LIST_FIRST(&r->calls);

        while (c && !c->is_ask)
                c = LIST_NEXT(c, next);
        return c;
}

void dc_rest_cancel(struct dc_rest *r)
{
        const struct dc_answer cancelled = { .reach = HTTP_UNSURE,
                                             .kind = ERR_CANCELLED,
                                             .why = "the adapter was stopped",
                                             .retry_after_ms = -1 };
        struct dc_call *c;

        while ((c = first_ask(r))) {
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
        *waiting = r->queue.waiting;
        *invalid = r->guard.sum;
}

struct dc_rest *dc_rest_new(const struct dc_rest_options *o)
{
        double rate = o->per_second == 0 ? PER_SECOND : o->per_second < 0 ? 0 : o->per_second;
        const struct pace_limits global = pace_strict(rate);
        struct dc_rest *r = mem_zalloc(sizeof(*r));
        size_t n = strlen(o->base);

        while (n > 0 && o->base[n - 1] == '/')
                n--;
        r->http = o->http;
        r->base = mem_strndup(o->base, n);
        r->name = mem_strdup(o->name);
        r->authorization = mem_printf("Authorization: Bot %s", secret_reveal(o->token));
        r->on_unauthorized = o->unauthorized;
        r->arg = o->arg;
        dc_rate_limit_guard_init(&r->guard, r->name, o->invalid_max);
        dc_rate_limits_init(&r->limits);
        LIST_INIT(&r->calls);
        call_queue_open(&r->queue, o->loop, &queue_ops, r);
        r->global = pace_new(&global);
        return r;
}

void dc_rest_free(struct dc_rest *r)
{
        struct dc_call *c;

        if (!r)
                return;
        while ((c = LIST_FIRST(&r->calls)))
                dc_rest_abort(c);
        call_queue_close(&r->queue);
        dc_rate_limits_release(&r->limits);
        pace_free(r->global);
        explicit_bzero(r->authorization, strlen(r->authorization));
        free(r->authorization);
        free(r->base);
        free(r->name);
        free(r);
}
