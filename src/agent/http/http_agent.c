/*
 * One request to an agent that answers whole.
 *
 *     ASKING ──► (a reply, or a failure) ──► agent_finish
 *       ▲  ├───► PAUSING    after a 5xx or without a connection: the same request again, with the
 *       │  │        │       same key
 *       └──┼────────┘
 *          ├───► EXPECTING  after a 202 without a reply: it comes through the reply URL
 *          └───► LATE       at the deadline: the turn ends with a notice, the call goes on, and its
 *                           reply follows
 *
 * A silent turn posts nothing, so it has no reply URL and is never late. A request that may have
 * been acted upon is never sent again: neither after a timeout nor after a lost connection. The
 * call lives in run->agent_data until the turn ends and, when late, in the agent's list after that.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/http/call_headers.h"
#include "agent/http/http_agent.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/fault.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "net/http_text.h"

#define GRACE_MS     1000 /* our own timer fires before the client's */
#define QUOTE_MAX    300  /* of a refusal, for the record */
#define RETRY_MAX_MS 30000
#define TOO_SLOW     "The agent took too long to answer. Please try again."
#define TOO_LONG     "The agent's answer is too long to be sent."

enum http_agent_call_state { CALL_ASKING, CALL_PAUSING, CALL_EXPECTING, CALL_LATE };

struct http_agent_call {
        struct http_agent *owner;
        struct turn_run *run; /* NULL once late */
        int64_t turn;
        enum http_agent_call_state state;
        struct http_call *http;
        struct timer *timer;
        struct call_headers headers; /* all but the signature */
        struct buf body;
        int tries;
        int64_t deadline_ms;
        int status;
        char content_type[100];
        struct json_offload *offload;     /* parsing a large response; else NULL */
        LIST_ENTRY(http_agent_call) next; /* in the list of late calls */
};

static void call_free(struct http_agent_call *c)
{
        http_call_abort(c->http);
        json_offload_cancel(c->offload);
        timer_free(c->timer);
        call_headers_release(&c->headers);
        buf_release(&c->body);
        free(c);
}

/* ---- ending a call ---- */

/* For the operator. Omits the query, which may hold a key. */
static void write_record(const struct http_agent_call *c, const char *why, struct buf *out)
{
        const char *url = c->owner->url;

        buf_addf(out, "%s at %.*s: ", c->owner->wire->name, (int)strcspn(url, "?#"), url);
        if (c->status)
                buf_addf(out, "HTTP %d", c->status);
        else
                buf_addstr(out, "no answer");
        if (c->tries > 1)
                buf_addf(out, " after %d tries", c->tries);
        buf_addf(out, ": %s", why);
        log_redact(out->data);
}

static void fail(struct http_agent_call *c, enum error_kind kind, enum agent_effect effect,
                 const char *notice, const char *why)
{
        struct turn_reply reply = { .kind = kind, .text = notice };
        struct buf record;

        buf_init(&record, 0);
        write_record(c, why, &record);
        reply.error = record.data;
        http_call_abort(c->http);
        c->http = NULL;
        agent_finish(c->owner->agent, c->run, &reply, effect);
        buf_release(&record);
        call_free(c);
}

/* Ends the turn with a notice; the call continues. */
static void outlive_turn(struct http_agent_call *c)
{
        struct http_agent *h = c->owner;
        struct turn_reply reply = {
                .kind = ERR_TIMEOUT,
                .text = "This takes longer than usual. The answer follows when it is ready.",
        };
        struct turn_run *run = c->run;
        struct buf record;

        buf_init(&record, 0);
        write_record(c, "the answer is late and will be delivered when it comes", &record);
        reply.error = record.data;
        c->state = CALL_LATE;
        c->run = NULL;
        LIST_INSERT_HEAD(&h->late, c, next);
        h->late_count++;
        agent_hold(h->agent);
        agent_finish(h->agent, run, &reply, EFFECT_POSSIBLE);
        buf_release(&record);
}

/* got NULL: it failed. */
static void finish_late(struct http_agent_call *c, const struct http_agent_reply *got,
                        enum error_kind kind, const char *why)
{
        struct agent *a = c->owner->agent;
        struct turn_reply reply = { 0 };
        struct buf record;

        buf_init(&record, 0);
        if (got) {
                reply = http_agent_reply_for_turn(got);
        } else {
                write_record(c, why, &record);
                reply.kind = kind != ERR_NONE ? kind : ERR_PROTOCOL;
                reply.error = record.data;
        }
        agent_late_reply(a, c->turn, &reply);
        buf_release(&record);
        LIST_REMOVE(c, next);
        c->owner->late_count--;
        call_free(c);
        agent_unhold(a);
}

/* ---- responses ---- */

/* got NULL: unreadable. */
static void take_reply(struct http_agent_call *c, const struct http_agent_reply *got,
                       const struct error *err)
{
        struct turn_reply reply;

        if (c->state == CALL_LATE) {
                finish_late(c, got, err->kind, err->text);
        } else if (!got) {
                fail(c, err->kind, EFFECT_POSSIBLE,
                     err->kind == ERR_LIMIT ? TOO_LONG
                                            : "The agent's answer could not be understood. "
                                              "Please tell the operator.",
                     err->text);
        } else if (c->status == 202 && !got->given && c->owner->wire->replies &&
                   c->run->mode != MODE_SILENT) {
                c->state = CALL_EXPECTING;
                timer_start(c->timer, c->owner->conf->reply_seconds * 1000);
                turn_progress(c->run, "the agent is working on it");
        } else {
                reply = http_agent_reply_for_turn(got);
                agent_finish(c->owner->agent, c->run, &reply, EFFECT_POSSIBLE);
                call_free(c);
        }
}

static void on_parsed(void *arg, const struct json_parsed *parsed)
{
        struct http_agent_call *c = arg;
        struct http_agent_reply got;
        struct error err = { 0 };
        bool ok = http_agent_reply_read_parsed(&got, c->owner->wire->read, c->content_type, parsed,
                                               &err) == 0;

        c->offload = NULL;
        take_reply(c, ok ? &got : NULL, &err);
        if (ok)
                http_agent_reply_release(&got);
}

static void read_response(struct http_agent_call *c, const struct http_result *result)
{
        struct http_agent_reply got;
        struct error err = { 0 };
        bool ok;

        if (result->body_n >= JSON_OFFLOAD_MIN) {
                c->offload = json_offload_start(c->owner->agent->loop,
                                                mem_dup(result->body, result->body_n),
                                                result->body_n, NULL, on_parsed, c);
                return;
        }
        ok = http_agent_reply_read(&got, c->owner->wire->read, c->content_type, result->body,
                                   result->body_n, &err) == 0;
        take_reply(c, ok ? &got : NULL, &err);
        if (ok)
                http_agent_reply_release(&got);
}

/* ---- failures ---- */

static bool try_again(struct http_agent_call *c, const struct http_result *result)
{
        const struct http_agent_conf *conf = c->owner->conf;
        bool unreached = result->reach == HTTP_NOT_SENT && result->kind != ERR_INVALID;
        int64_t wait =
                result->retry_after_ms > conf->retry_ms ? result->retry_after_ms : conf->retry_ms;

        wait += (int64_t)id_random_below((uint64_t)wait / 4 + 1);
        if ((!unreached && result->status < 500) || c->tries > conf->retries ||
            wait > RETRY_MAX_MS || loop_now_ms(c->owner->agent->loop) + wait >= c->deadline_ms)
                return false;
        c->state = CALL_PAUSING;
        timer_start(c->timer, wait);
        turn_progress(c->run, "the agent cannot be reached; retrying");
        return true;
}

/* A 4xx means nothing was done; after a 5xx that is unknown. */
static void fail_refused(struct http_agent_call *c, const struct http_result *result)
{
        size_t n =
                result->body ? utf8_prefix(result->body, result->body_n, UTF8_BYTES, QUOTE_MAX) : 0;
        enum error_kind kind = http_text_status_kind(result->status);
        char *quote = utf8_clean(result->body ? result->body : "", n);
        char notice[120];

        if (result->status >= 500)
                snprintf(notice, sizeof(notice),
                         "The agent has a problem right now (HTTP %d). Please try again later.",
                         result->status);
        else if (kind == ERR_LIMIT)
                snprintf(notice, sizeof(notice),
                         "The agent is busy right now. Please try again later.");
        else
                snprintf(notice, sizeof(notice),
                         "The agent did not accept the request (HTTP %d). "
                         "Please tell the operator.",
                         result->status);
        fail(c, kind, result->status >= 500 ? EFFECT_POSSIBLE : EFFECT_NONE, notice,
             *quote ? quote : "empty response");
        free(quote);
}

/* ---- request ---- */

static void on_head(void *arg, struct http_call *call, int status)
{
        struct http_agent_call *c = arg;
        const char *type = http_call_header(call, "content-type");

        c->status = status;
        snprintf(c->content_type, sizeof(c->content_type), "%s", type ? type : "");
}

static void on_done(void *arg, const struct http_result *result)
{
        struct http_agent_call *c = arg;
        bool ok = result->kind == ERR_NONE && result->status < 300;
        const char *why = result->why ? result->why : error_kind_name(result->kind);

        c->http = NULL;
        timer_stop(c->timer);
        if (ok)
                fault_point("http_agent.answered");
        if (ok && !c->owner->fire_and_forget) {
                read_response(c, result);
        } else if (c->state == CALL_LATE) {
                finish_late(c, NULL, result->kind, result->why ? result->why : "");
        } else if (ok) {
                agent_finish(c->owner->agent, c->run, &(struct turn_reply){ .accepted = true },
                             EFFECT_POSSIBLE);
                call_free(c);
        } else if (try_again(c, result)) {
                return;
        } else if (result->kind == ERR_NONE) {
                fail_refused(c, result);
        } else if (result->reach == HTTP_NOT_SENT) {
                fail(c, ERR_NET, EFFECT_NONE,
                     "The agent cannot be reached right now. Please try again later.", why);
        } else if (result->kind == ERR_LIMIT) {
                fail(c, ERR_LIMIT, EFFECT_POSSIBLE, TOO_LONG, why);
        } else {
                fail(c, result->kind, EFFECT_POSSIBLE,
                     "The connection to the agent was lost. Please try again.", why);
        }
}

/* X-Dragoman-Signature: t=SECONDS,v1=HEX, an HMAC-SHA256 over "SECONDS.BODY"; fresh for each
 * try. */
static void sign(const struct http_agent_call *c, struct call_headers *h)
{
        const struct secret *secret = c->owner->conf->secret;
        unsigned char mac[SHA256_SIZE];
        char hex[SHA256_HEX_SIZE];
        struct buf text;
        int64_t seconds = clock_wall_ms() / 1000;

        call_headers_add(h, "X-Dragoman-Timestamp: %" PRId64, seconds);
        if (!secret)
                return;
        buf_init(&text, 0);
        buf_addf(&text, "%" PRId64 ".", seconds);
        buf_add(&text, c->body.data, c->body.len);
        crypto_hmac_sha256(secret_reveal(secret), secret_length(secret), text.data, text.len, mac);
        call_headers_add(h, "X-Dragoman-Signature: t=%" PRId64 ",v1=%s", seconds,
                         crypto_hex(mac, sizeof(mac), hex));
        buf_release(&text);
}

static void ask(struct http_agent_call *c)
{
        static const struct http_handlers handlers = { .on_head = on_head, .on_done = on_done };
        const struct http_agent *h = c->owner;
        int64_t left_ms = c->deadline_ms - loop_now_ms(h->agent->loop);
        struct call_headers headers;

        c->state = CALL_ASKING;
        c->status = 0;
        c->tries++;
        call_headers_init(&headers);
        for (size_t i = 0; i < c->headers.count; i++)
                call_headers_add(&headers, "%s", c->headers.list[i]);
        sign(c, &headers);
        timer_start(c->timer, left_ms > 0 ? left_ms : 1);
        fault_point("http_agent.before_ask");
        c->http = http_call_start(
                h->agent->http,
                &(struct http_request){
                        .method = "POST",
                        .url = h->url,
                        .headers = headers.list,
                        .body = c->body.data,
                        .body_n = c->body.len,
                        .total_ms = left_ms + GRACE_MS +
                                    (h->deliver_late ? h->conf->reply_seconds * 1000 : 0),
                        .max_body = HTTP_AGENT_BODY_MAX,
                        .repeatable = h->conf->repeatable,
                },
                &handlers, c);
        call_headers_release(&headers);
}

static void on_time(void *arg)
{
        struct http_agent_call *c = arg;
        const struct http_agent *h = c->owner;
        char why[80];

        if (c->state == CALL_PAUSING) {
                ask(c);
        } else if (c->state == CALL_EXPECTING) {
                fail(c, ERR_TIMEOUT, EFFECT_POSSIBLE, TOO_SLOW,
                     "it accepted the request, but no reply reached the reply URL in time");
        } else if (!h->fire_and_forget && h->deliver_late && c->run->mode != MODE_SILENT &&
                   h->late_count < HTTP_AGENT_LATE_MAX) {
                outlive_turn(c);
        } else {
                snprintf(why, sizeof(why), "no response within %" PRId64 " ms",
                         h->conf->timeout_ms);
                fail(c, ERR_TIMEOUT, EFFECT_POSSIBLE, TOO_SLOW, why);
        }
}

/* ---- agent_ops ---- */

static void add_fixed_headers(const struct http_agent *h, struct call_headers *headers)
{
        if (h->wire->header)
                call_headers_add(headers, "%s", h->wire->header);
        call_headers_secret(headers, h->wire->key_header, h->conf->key);
        for (size_t i = 0; i < h->conf->headers.count; i++)
                call_headers_add(headers, "%s", h->conf->headers.items[i]);
}

void http_agent_start(struct agent *a, struct turn_run *run)
{
        struct http_agent_call *c = mem_zalloc(sizeof(*c));
        struct http_agent *h = a->self;
        char *reply_url = h->wire->replies && run->mode != MODE_SILENT
                                  ? agent_reply_url(a, run, h->conf->reply_seconds)
                                  : NULL;

        c->owner = h;
        c->run = run;
        c->turn = run->id;
        c->timer = timer_new(a->loop, on_time, c);
        c->deadline_ms = loop_now_ms(a->loop) + h->conf->timeout_ms;
        call_headers_init(&c->headers);
        call_headers_add(&c->headers, "Content-Type: application/json");
        call_headers_add(&c->headers, "Accept: application/json, text/plain");
        add_fixed_headers(h, &c->headers);
        call_headers_run(&c->headers, run);
        buf_init(&c->body, 0);
        h->wire->body(h, run, reply_url, &c->body);
        free(reply_url);
        run->agent_data = c;
        ask(c);
}

void http_agent_cancel(struct agent *a, struct turn_run *run)
{
        (void)a;
        call_free(run->agent_data);
        run->agent_data = NULL;
}

int http_agent_open(struct agent *a, const struct http_agent_wire *wire)
{
        struct http_agent *h = mem_zalloc(sizeof(*h));
        const struct http_agent_conf *conf = a->conf;
        size_t n = strlen(conf->url);

        while (wire->path && n > 0 && conf->url[n - 1] == '/')
                n--;
        h->agent = a;
        h->conf = conf;
        h->wire = wire;
        h->url = mem_printf("%.*s%s", (int)n, conf->url, wire->path ? wire->path : "");
        h->fire_and_forget = conf->mode && strcmp(conf->mode, "fire-and-forget") == 0;
        h->deliver_late = conf->late && strcmp(conf->late, "deliver") == 0;
        LIST_INIT(&h->probes);
        LIST_INIT(&h->late);
        a->self = h;
        return 0;
}

void http_agent_close(struct agent *a)
{
        struct http_agent *h = a->self;
        struct http_agent_call *c;

        health_probes_drop(&h->probes);
        while ((c = LIST_FIRST(&h->late))) {
                LIST_REMOVE(c, next);
                call_free(c);
        }
        free(h->url);
        free(h);
}

/*
 * Without a health URL, HEAD of the agent's own: a server with only POST answers 405 or 501.
 */
void http_agent_check_health(struct agent *a, void *token)
{
        static const int knows_only_post[] = { 405, 501, 0 };
        struct http_agent *h = a->self;
        const char *url = h->conf->health_url;
        struct call_headers headers;

        call_headers_init(&headers);
        add_fixed_headers(h, &headers);
        call_headers_run(&headers, NULL);
        health_probe_start(&h->probes, a, token,
                           &(struct http_request){ .method = url ? "GET" : "HEAD",
                                                   .url = url ? url : h->url,
                                                   .headers = headers.list },
                           url ? NULL : knows_only_post);
        call_headers_release(&headers);
}

int http_agent_check_conf(struct settings_source *src, const char *path, const void *settings,
                          struct error *err)
{
        const struct http_agent_conf *conf = settings;

        if (call_headers_check_key(src, path, conf->key, err) < 0)
                return -1;
        return call_headers_check(src, path, &conf->headers, err);
}

unsigned http_agent_abilities(const struct agent *a)
{
        const struct http_agent_conf *conf = a->conf;

        return AGENT_BATCHES | AGENT_CANCELS | (conf->repeatable ? AGENT_REPEATABLE : 0) |
               (conf->history ? AGENT_HISTORY : 0);
}

void http_agent_late_replies(const struct agent *a, struct late_reply_policy *out)
{
        const struct http_agent *h = a->self;

        out->deliver_failed = h->deliver_late;
        out->max_replies = h->conf->max_replies;
}
