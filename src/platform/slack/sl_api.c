/*
 *     sl_api_call ──► waiting ──► flying ──► answered
 *                        ▲           │
 *                        └── 429 ────┘   if the new wait ends before the call's deadline
 */
#include "platform/slack/sl_api.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/http_text.h"
#include "net/server_clock.h"
#include "platform/slack/sl_call.h"
#include "platform/slack/sl_rate_limit.h"

#define WAIT_MS      10000
#define UNAUTHORIZED "Slack does not accept the token: no more calls are made"

struct sl_api {
        struct http_client *http;
        char *base, *name;
        char *bot_authorization, *app_authorization; /* the second may be NULL */
        struct call_queue queue;
        struct sl_rate_limits limits;
        LIST_HEAD(, sl_call) calls;
        bool unauthorized;
        void (*on_unauthorized)(void *arg, const struct sl_method *method, const char *error);
        void (*on_scoped)(void *arg, const struct sl_method *method, const struct sl_answer *a);
        void *arg;
        unsigned limited;
        struct server_clock clock;
};

static void finish(struct sl_call *c, const struct sl_answer *a)
{
        LIST_REMOVE(c, next);
        if (c->done)
                c->done(c->arg, a);
        sl_call_free(c);
}

static void on_refused(struct queued_call *q)
{
        const struct sl_answer answer = { .reach = HTTP_NOT_SENT,
                                          .kind = q->refusal.kind,
                                          .why = q->refusal.text,
                                          .retry_after_ms = q->refusal_ms };

        finish((struct sl_call *)q, &answer);
}

static bool has_token(const struct queued_call *q)
{
        return !((const struct sl_call *)q)->url;
}

/* ---- answers ---- */

/* A call was refused for its rate. True: it waits for another attempt. */
static bool limited(struct sl_call *c, struct sl_answer *a)
{
        struct sl_api *api = c->api;
        struct sl_lane *lane = (struct sl_lane *)c->queued.lane;
        int64_t now = loop_now_ms(api->queue.loop);

        api->limited++;
        if (c->url)
                return false; /* the limit of an address, not of a method */
        a->retry_after_ms = sl_rate_limit_close(lane, a->retry_after_ms, now);
        log_warn("Slack's rate limit reached", LOG_S("adapter", api->name),
                 LOG_S("method", c->method->name), LOG_I("retryAfterMs", a->retry_after_ms));
        if (now + a->retry_after_ms > c->queued.deadline_ms)
                return false;
        free(c->scopes);
        c->scopes = NULL;
        call_queue_again(&api->queue, &lane->lane, &c->queued);
        return true;
}

static void answered(struct sl_call *c, const struct http_result *result, const json_t *body)
{
        struct sl_api *api = c->api;
        const struct sl_method *method = c->method;
        struct sl_answer answer;
        char text[300], error[40] = "";
        bool is_call = !c->url;

        sl_call_answer(c, result, body, &answer, text, sizeof(text));
        if (answer.status == 429) {
                if (limited(c, &answer))
                        return;
        } else if (answer.ok && is_call) {
                ((struct sl_lane *)c->queued.lane)->refusals = 0;
        }
        if (is_call && !api->unauthorized && sl_api_is_revoked(answer.error)) {
                api->unauthorized = true;
                snprintf(error, sizeof(error), "%s", answer.error);
                call_queue_refuse_waiting(&api->queue, has_token, ERR_REFUSED, UNAUTHORIZED);
        }
        if (is_call && api->on_scoped && !method->app_level &&
            (answer.ok || (answer.error && strcmp(answer.error, "missing_scope") == 0)))
                api->on_scoped(api->arg, method, &answer);
        finish(c, &answer);
        if (error[0] && api->on_unauthorized)
                api->on_unauthorized(api->arg, method, error);
}

static void on_parsed(void *arg, const struct json_parsed *parsed)
{
        struct sl_call *c = arg;
        struct sl_api *api = c->api;
        const struct http_result result = c->result;

        c->parsing = NULL;
        answered(c, &result, parsed->root);
        call_queue_pump(&api->queue); /* it may wait again */
}

static void on_done(void *arg, const struct http_result *result)
{
        struct sl_call *c = arg;
        struct sl_api *api = c->api;
        bool whole = result->status > 0 && result->kind == ERR_NONE && result->body_n > 0;
        json_t *body = NULL;

        server_clock_set(&api->clock, http_call_header(c->http, "Date"));
        c->scopes = mem_strdup(http_call_header(c->http, "X-OAuth-Scopes"));
        c->http = NULL;
        call_queue_leave(&api->queue, &c->queued);
        if (whole && result->body_n >= JSON_OFFLOAD_MIN) {
                c->result = *result;
                c->result.why = c->result.body = NULL;
                c->parsing =
                        json_offload_start(api->queue.loop, mem_dup(result->body, result->body_n),
                                           result->body_n, json_read_lenient, on_parsed, c);
        } else {
                if (whole)
                        body = json_read_lenient(result->body, result->body_n, NULL);
                answered(c, result, body);
                json_decref(body);
        }
        call_queue_pump(&api->queue);
}

/* ---- which calls go ---- */

static int64_t wait_for_turn(struct call_queue *q, const struct queued_call *queued, int64_t now_ms)
{
        if (queued->priority != SL_URGENT && q->flying_count >= CALL_FLYING_MAX)
                return -1;
        return sl_rate_limit_take((struct sl_lane *)queued->lane, queued->priority == SL_IDLE,
                                  now_ms);
}

static void start(struct queued_call *q)
{
        static const struct http_handlers handlers = { .on_done = on_done };
        struct sl_call *c = (struct sl_call *)q;
        struct sl_api *api = c->api;

        c->http = sl_call_start(
                c, api->http, api->base,
                c->method->app_level ? api->app_authorization : api->bot_authorization, &handlers);
}

static const struct call_queue_ops queue_ops = { .wait = wait_for_turn,
                                                 .start = start,
                                                 .refused = on_refused,
                                                 .late = "Slack's rate limit of this method is "
                                                         "used up" };

static struct sl_call *call_new(struct sl_api *api, sl_answer_fn *done, void *arg)
{
        struct sl_call *c = mem_zalloc(sizeof(*c));

        c->api = api;
        c->done = done;
        c->arg = arg;
        c->queued.refusal_ms = -1;
        LIST_INSERT_HEAD(&api->calls, c, next);
        return c;
}

static void submit(struct sl_call *c)
{
        struct sl_api *api = c->api;

        if (api->queue.waiting >= SL_WAITING_MAX && c->queued.priority != SL_URGENT)
                call_queue_refuse(&api->queue, &c->queued, ERR_LIMIT, CALL_LIMITED_MS,
                                  "too many calls wait for Slack's rate limits");
        else
                call_queue_add(&api->queue, &sl_rate_limits_lane(&api->limits, c->method)->lane,
                               &c->queued);
}

struct sl_call *sl_api_call(struct sl_api *api, const struct sl_request *q, sl_answer_fn *done,
                            void *arg)
{
        struct sl_call *c = call_new(api, done, arg);
        int64_t wait_ms = q->wait_ms > 0 ? q->wait_ms : WAIT_MS;
        struct error err = { 0 };

        c->queued.priority = q->priority;
        c->queued.deadline_ms = loop_now_ms(api->queue.loop) + wait_ms;
        if (sl_call_init(c, q, &err) < 0)
                call_queue_refuse(&api->queue, &c->queued, err.kind, -1, err.text);
        else if (api->unauthorized)
                call_queue_refuse(&api->queue, &c->queued, ERR_REFUSED, -1, UNAUTHORIZED);
        else if (c->method->app_level && !api->app_authorization)
                call_queue_refuse(&api->queue, &c->queued, ERR_REFUSED, -1,
                                  "there is no app-level token (xapp-...)");
        else
                submit(c);
        return c;
}

struct sl_call *sl_api_post(struct sl_api *api, const struct sl_post *p, sl_answer_fn *done,
                            void *arg)
{
        struct sl_call *c = call_new(api, done, arg);
        struct error err = { 0 };

        c->queued.priority = SL_NORMAL;
        c->queued.deadline_ms = loop_now_ms(api->queue.loop) + WAIT_MS;
        if (sl_call_init_post(c, p, &err) < 0)
                call_queue_refuse(&api->queue, &c->queued, err.kind, -1, err.text);
        else if (!sl_api_owns_url(api, p->url))
                call_queue_refuse(&api->queue, &c->queued, ERR_INVALID, -1,
                                  "the address is neither Slack's nor that of apiBase");
        else
                submit(c);
        return c;
}

void sl_api_ask(struct sl_api *api, const struct sl_request *request, sl_answer_fn *done, void *arg)
{
        sl_api_call(api, request, done, arg)->is_ask = true;
}

bool sl_api_begun(const struct sl_call *c)
{
        return c->queued.state == QUEUED_FLYING || c->parsing;
}

void sl_api_abort(struct sl_call *c)
{
        if (!c)
                return;
        http_call_abort(c->http);
        json_offload_cancel(c->parsing);
        call_queue_leave(&c->api->queue, &c->queued);
        LIST_REMOVE(c, next);
        sl_call_free(c);
}

static struct sl_call *first_ask(const struct sl_api *api)
{
        struct sl_call *c = LIST_FIRST(&api->calls);

        while (c && !c->is_ask)
                c = LIST_NEXT(c, next);
        return c;
}

void sl_api_cancel(struct sl_api *api)
{
        const struct sl_answer cancelled = { .reach = HTTP_UNSURE,
                                             .kind = ERR_CANCELLED,
                                             .why = "the adapter was stopped",
                                             .retry_after_ms = -1 };
        struct sl_call *c;

        while ((c = first_ask(api))) {
                sl_answer_fn *done = c->drop_on_cancel ? NULL : c->done;
                void *arg = c->arg;

                sl_api_abort(c);
                if (done)
                        done(arg, &cancelled);
        }
}

/* ---- what answers mean ---- */

bool sl_api_is_limited(const struct sl_answer *a)
{
        return a->kind == ERR_LIMIT || a->status == 429 || sl_call_is_limit(a->error);
}

bool sl_api_is_unavailable(const struct sl_answer *a)
{
        static const char *const passing[] = { "fatal_error", "internal_error", "request_timeout",
                                               "service_unavailable" };

        if (a->status == 0 || sl_api_is_limited(a) || a->status >= 500 || a->kind != ERR_NONE)
                return true;
        for (size_t i = 0; a->error && i < COUNT(passing); i++) {
                if (strcmp(a->error, passing[i]) == 0)
                        return true;
        }
        return false;
}

bool sl_api_owns_url(const struct sl_api *api, const char *url)
{
        static const char *const hosts[] = { "slack.com", "files.slack.com", "hooks.slack.com" };

        for (size_t i = 0; url && i < COUNT(hosts); i++) {
                if (http_text_is_https_of(url, hosts[i]))
                        return true;
        }
        return url && http_text_same_origin(url, api->base);
}

unsigned sl_api_limited(const struct sl_api *api)
{
        return api->limited;
}

int64_t sl_api_now_ms(const struct sl_api *api)
{
        return server_clock_now_ms(&api->clock);
}

/* ---- open and close ---- */

static char *authorization(const struct secret *token)
{
        return token ? mem_printf("Authorization: Bearer %s", secret_reveal(token)) : NULL;
}

struct sl_api *sl_api_new(const struct sl_api_options *o)
{
        struct sl_api *api = mem_zalloc(sizeof(*api));
        size_t n = strlen(o->base);

        while (n > 0 && o->base[n - 1] == '/')
                n--;
        api->http = o->http;
        api->base = mem_strndup(o->base, n);
        api->name = mem_strdup(o->name);
        api->bot_authorization = authorization(o->bot_token);
        api->app_authorization = authorization(o->app_token);
        api->on_unauthorized = o->unauthorized;
        api->on_scoped = o->scoped;
        api->arg = o->arg;
        LIST_INIT(&api->calls);
        sl_rate_limits_init(&api->limits, !o->unpaced);
        call_queue_open(&api->queue, o->loop, &queue_ops, api);
        return api;
}

static void forget(char *authorization)
{
        if (authorization)
                explicit_bzero(authorization, strlen(authorization));
        free(authorization);
}

void sl_api_free(struct sl_api *api)
{
        struct sl_call *c;

        if (!api)
                return;
        while ((c = LIST_FIRST(&api->calls)))
                sl_api_abort(c);
        call_queue_close(&api->queue);
        sl_rate_limits_release(&api->limits);
        forget(api->bot_authorization);
        forget(api->app_authorization);
        free(api->base);
        free(api->name);
        free(api);
}
