/*
 * Posts to an app's request URL: events as JSON, interactions and commands as forms, all signed.
 * Posts about one conversation go one after the other, so that order is lost only by a fault.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "net/http_text.h"
#include "sim/slack/sl_link.h"

#define MAX_ANSWER    ((size_t)1 << 20)
#define OLD_S         400 /* outside of the window of 300 s */
#define HOUR_MS       3600000
#define FAILED_OF_100 95

struct slack_probe {
        struct slack_app *app;
        enum slack_forgery forgery;
        char challenge[33];
        struct http_call *call;
        TAILQ_ENTRY(slack_probe) next;
};

/* ---- the request ---- */

static void sign(const struct slack_app *a, const char *timestamp, const char *body, size_t n,
                 char out[SHA256_HEX_SIZE])
{
        unsigned char mac[SHA256_SIZE];
        struct buf base;

        buf_init(&base, 0);
        buf_addf(&base, "v0:%s:", timestamp);
        buf_add(&base, body, n);
        crypto_hmac_sha256(a->signing_secret, strlen(a->signing_secret), base.data, base.len, mac);
        crypto_hex(mac, sizeof(mac), out);
        buf_release(&base);
}

struct slack_post {
        const char *url, *body;
        bool form;
        enum slack_forgery forgery;
        int attempt;
        const char *reason;
};

static struct http_call *start(const struct slack_app *a, const struct slack_post *p,
                               void (*done)(void *, const struct http_result *), void *arg)
{
        const struct http_handlers handlers = { .on_done = done };
        int64_t now_s = clock_wall_ms() / 1000 - (p->forgery == SLACK_OLD ? OLD_S : 0);
        char timestamp[24], signature[SHA256_HEX_SIZE], stamp[64], signed_by[100], number[40],
                why[80];
        const char *headers[7];
        struct http_request request = { .url = p->url,
                                        .headers = headers,
                                        .body = p->body,
                                        .body_n = strlen(p->body),
                                        .total_ms = a->world->settings.ack_ms,
                                        .max_body = MAX_ANSWER };
        size_t n = 0;

        snprintf(timestamp, sizeof(timestamp), "%lld", (long long)now_s);
        sign(a, timestamp, p->body, strlen(p->body), signature);
        if (p->forgery == SLACK_BAD_SIGNATURE)
                signature[0] = signature[0] == '0' ? '1' : '0';
        snprintf(stamp, sizeof(stamp), "X-Slack-Request-Timestamp: %s", timestamp);
        snprintf(signed_by, sizeof(signed_by), "X-Slack-Signature: v0=%s", signature);
        snprintf(number, sizeof(number), "X-Slack-Retry-Num: %d", p->attempt);
        snprintf(why, sizeof(why), "X-Slack-Retry-Reason: %s", p->reason ? p->reason : "");
        headers[n++] = p->form ? "Content-Type: application/x-www-form-urlencoded"
                               : "Content-Type: application/json";
        if (p->forgery != SLACK_UNSIGNED) {
                headers[n++] = stamp;
                headers[n++] = signed_by;
        }
        if (p->attempt > 0) {
                headers[n++] = number;
                headers[n++] = why;
        }
        headers[n] = NULL;
        return http_call_start(a->world->base.client, &request, &handlers, arg);
}

/* "payload=..." of an interaction, the members of a command. */
static char *form_of(const struct slack_delivery *d)
{
        struct buf b;
        json_t *value;
        const char *name;
        char *text;

        buf_init(&b, 0);
        if (d->kind == SLACK_INTERACTIVE) {
                char *json = json_text(d->payload);

                text = http_text_escape(json);
                buf_addf(&b, "payload=%s", text);
                free(text);
                free(json);
                return buf_take(&b);
        }
        json_object_foreach(d->payload, name, value) {
                text = http_text_escape(json_is_string(value) ? json_string_value(value) : "");
                buf_addf(&b, "%s%s=%s", b.len ? "&" : "", name, text);
                free(text);
        }
        return buf_take(&b);
}

static const char *url_of(const struct slack_delivery *d)
{
        const char *own = d->kind == SLACK_INTERACTIVE ? d->app->interactive_url
                          : d->kind == SLACK_COMMAND   ? d->app->command_url
                                                       : NULL;

        return own ? own : d->app->request_url;
}

/* ---- the answer ---- */

static const char *reason_of(const struct http_result *r)
{
        if (r->status >= 300 && r->status < 400)
                return "too_many_redirects";
        if (r->status)
                return "http_error";
        if (r->kind == ERR_TIMEOUT)
                return "http_timeout";
        if (r->why && (strcasestr(r->why, "ssl") || strcasestr(r->why, "certificate")))
                return "ssl_error";
        return r->kind == ERR_NET ? "connection_failed" : "unknown_error";
}

/* Slack stops sending events to an app that fails nearly always for an hour. */
static void count(struct slack_app *a, bool failed)
{
        int64_t now = clock_mono_ms();

        if (now - a->posts_since_ms > HOUR_MS) {
                a->posts_since_ms = now;
                a->posts = a->posts_failed = 0;
        }
        a->posts++;
        a->posts_failed += failed;
        if (a->disabled || a->posts < (uint64_t)a->world->settings.disable_after ||
            a->posts_failed * 100 <= a->posts * FAILED_OF_100)
                return;
        a->disabled = true;
        jsonw_str(journal_open(a->world->link_log, "disabled", 0), "app", a->id);
        journal_close(a->world->link_log);
}

/* A JSON object, or a text as the message of a command; NULL: nothing. */
static json_t *response_of(const struct http_result *r)
{
        json_t *response = r->body_n ? json_read(r->body, r->body_n, NULL) : NULL;

        if (json_is_object(response))
                return response;
        json_decref(response);
        return r->body_n ? json_pack("{s:s}", "text", r->body) : NULL;
}

static char *lane_key(const struct slack_delivery *d)
{
        return mem_printf("%s %s", d->app->id, d->lane);
}

/* The next post of this conversation. */
static void leave_lane(struct slack_delivery *d)
{
        struct slack_links *links = d->world->links;
        char *key = lane_key(d);
        struct slack_delivery *other, *next = NULL;

        if (map_get(&links->posting, key) == d) {
                map_remove(&links->posting, key);
                TAILQ_FOREACH(other, &links->deliveries, next) {
                        if (other->state == SLACK_QUEUED && other != d && other->app == d->app &&
                            strcmp(other->lane, d->lane) == 0) {
                                next = other;
                                break;
                        }
                }
        }
        free(key);
        if (next)
                sl_post(next);
}

static void on_posted(void *arg, const struct http_result *r)
{
        struct slack_delivery *d = arg;
        const char *no_retry = r->status ? http_call_header(d->post, "x-slack-no-retry") : NULL;
        bool good = r->status >= 200 && r->status < 300, final = no_retry && *no_retry == '1';
        json_t *response = good && d->kind != SLACK_EVENT ? response_of(r) : NULL;

        d->post = NULL;
        if (d->world->base.record_calls) {
                jsonw_int(sl_push_entry(d, "post"), "status", r->status);
                journal_close(d->world->link_log);
        }
        count(d->app, !good);
        leave_lane(d);
        if (good)
                sl_push_acked(d, response);
        else
                sl_push_failed(d, reason_of(r), final);
        json_decref(response);
}

void sl_post(struct slack_delivery *d)
{
        struct slack_links *links = d->world->links;
        struct slack_post p = { .url = url_of(d),
                                .form = d->kind != SLACK_EVENT,
                                .attempt = d->attempt,
                                .reason = d->reason };
        char *key = lane_key(d), *body;

        if (d->lane[0] && map_get(&links->posting, key)) {
                sl_push_queued(d);
        } else {
                if (d->lane[0])
                        map_put(&links->posting, key, d);
                body = p.form ? form_of(d) : json_text(d->payload);
                p.body = body;
                sl_push_posting(d);
                d->post = start(d->app, &p, on_posted, d);
                free(body);
        }
        free(key);
}

void sl_post_withdraw(struct slack_delivery *d)
{
        char *key = lane_key(d);

        http_call_abort(d->post);
        if (map_get(&d->world->links->posting, key) == d)
                map_remove(&d->world->links->posting, key);
        free(key);
}

/* ---- probes ---- */

static bool is_challenge(const struct http_result *r, const char *challenge)
{
        json_t *answer;
        bool same;

        if (r->status != 200)
                return false;
        answer = json_read(r->body, r->body_n, NULL);
        same = strcmp(json_str(answer, "challenge", ""), challenge) == 0;
        json_decref(answer);
        if (!same && strncmp(r->body, "challenge=", 10) == 0)
                return strcmp(r->body + 10, challenge) == 0;
        return same || strcmp(r->body, challenge) == 0;
}

static void on_probed(void *arg, const struct http_result *r)
{
        struct slack_probe *p = arg;
        struct slack_world *w = p->app->world;
        struct buf *b =
                journal_open(w->link_log, p->forgery == SLACK_GENUINE ? "verified" : "forged", 0);

        jsonw_str(b, "app", p->app->id);
        jsonw_int(b, "status", r->status);
        if (p->forgery == SLACK_GENUINE)
                jsonw_bool(b, "good", is_challenge(r, p->challenge));
        journal_close(w->link_log);
        TAILQ_REMOVE(&w->links->probes, p, next);
        free(p);
}

void sl_post_probe(struct slack_app *a, enum slack_forgery forgery)
{
        struct slack_probe *p = mem_zalloc(sizeof(*p));
        struct slack_post post = { .url = a->request_url, .forgery = forgery };
        char *body;

        p->app = a;
        p->forgery = forgery;
        id_random_text(p->challenge, sizeof(p->challenge) - 1);
        body = mem_printf("{\"token\":\"" SL_PUSH_TOKEN "\",\"challenge\":\"%s\","
                          "\"type\":\"url_verification\"}",
                          p->challenge);
        post.body = body;
        TAILQ_INSERT_TAIL(&a->world->links->probes, p, next);
        p->call = start(a, &post, on_probed, p);
        free(body);
}

void sl_post_release(struct slack_links *links)
{
        struct slack_probe *p;

        while ((p = TAILQ_FIRST(&links->probes))) {
                TAILQ_REMOVE(&links->probes, p, next);
                http_call_abort(p->call);
                free(p);
        }
}
