/*
 * The life of a request to an agent that answers whole.
 *
 *     ASKING ──► (an answer, or a failure) ──► agent_finish
 *       ▲  ├───► PAUSING, after a 5xx or a connection that never stood: the same request once more,
 *          with the same key
 *       │  │        │
 *       └──┼────────┘
 *          ├───► EXPECTING, after a 202 without an answer: it comes through the reply URL
 *          └───► LATE, at the deadline: the turn ends with a notice, the call goes on, and its
 *          answer follows
 *
 * A request that may have been acted upon is never sent again: neither after a timeout nor after a
 * connection that broke. The struct lives in run->agent_data until the turn ends, then, when it is
 * late, in the hook's list.
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

#define GRACE_MS     1000 /* our own timer comes before the client's */
#define QUOTE_MAX    300  /* bytes of a refusal that go into the record */
#define RETRY_MAX_MS 30000

enum call_state { CALL_ASKING, CALL_PAUSING, CALL_EXPECTING, CALL_LATE };

struct http_agent_call {
        struct http_agent *http_agent;
        struct turn_run *run; /* NULL once late */
        int64_t turn;
        enum call_state state;
        struct http_call *http;
        struct timer *timer;
        struct call_headers headers; /* all but the signature */
        struct buf body;
        int tries;
        int64_t deadline_ms;
        int status;
        char content_type[100];
        struct http_agent_read *reading;  /* a large answer that is being understood; else NULL */
        LIST_ENTRY(http_agent_call) next; /* among the late ones */
};

static void ask(struct http_agent_call *c);

static void call_free(struct http_agent_call *c)
{
        http_call_abort(c->http);
        http_agent_read_forget(c->reading);
        timer_free(c->timer);
        call_headers_release(&c->headers);
        buf_release(&c->body);
        free(c);
}

static bool forgets(const struct http_agent *k)
{
        return k->conf->mode && strcmp(k->conf->mode, "fire-and-forget") == 0;
}

/* The rule wants nothing posted: there is no place for answers that come later. */
static bool is_silent(const struct turn_run *run)
{
        return run->mode == MODE_SILENT;
}

static bool delivers_late(const struct http_agent *k)
{
        return k->conf->late && strcmp(k->conf->late, "deliver") == 0;
}

/* ---- ends ---- */

static void answer(struct http_agent_call *c, const struct turn_reply *reply)
{
        agent_finish(c->http_agent->agent, c->run, reply);
        call_free(c);
}

/* What the operator reads. A query may hold a key, so it is not shown. */
static void write_record(const struct http_agent_call *c, const char *why, struct buf *out)
{
        const char *url = c->http_agent->url;

        buf_addf(out, "%s at %.*s: ", c->http_agent->wire->name, (int)strcspn(url, "?#"), url);
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
        agent_fail(c->http_agent->agent, c->run, &reply, effect);
        buf_release(&record);
        call_free(c);
}

/* ---- late ---- */

/* got NULL: there is none. */
static void end_late(struct http_agent_call *c, const struct http_agent_reply *got,
                     enum error_kind kind, const char *why)
{
        struct agent *a = c->http_agent->agent;
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
        agent_late(a, c->turn, &reply);
        buf_release(&record);
        LIST_REMOVE(c, next);
        c->http_agent->late_count--;
        call_free(c);
        agent_unhold(a);
}

/* The turn ends with a notice; whoever waits for its answer gets it when it comes. */
static void let_go(struct http_agent_call *c)
{
        struct http_agent *k = c->http_agent;
        struct turn_reply reply = {
                .kind = ERR_TIMEOUT,
                .text = "This takes longer than usual. The answer follows when it is ready.",
        };
        struct turn_run *run = c->run;
        struct buf record;

        buf_init(&record, 0);
        write_record(c, "the answer is late; it is delivered when it comes", &record);
        reply.error = record.data;
        c->state = CALL_LATE;
        c->run = NULL;
        LIST_INSERT_HEAD(&k->late, c, next);
        k->late_count++;
        agent_hold(k->agent);
        agent_fail(k->agent, run, &reply, EFFECT_POSSIBLE);
        buf_release(&record);
}

static void time_is_up(struct http_agent_call *c)
{
        char why[80];

        snprintf(why, sizeof(why), "nothing came within %" PRId64 " ms",
                 c->http_agent->conf->timeout_ms);
        if (c->state == CALL_EXPECTING)
                fail(c, ERR_TIMEOUT, EFFECT_POSSIBLE,
                     "The agent took too long to answer. Please try again.",
                     "it took the request, but no answer came to the reply URL in time");
        else if (!forgets(c->http_agent) && delivers_late(c->http_agent) && !is_silent(c->run) &&
                 c->http_agent->late_count < HTTP_AGENT_LATE_MAX)
                let_go(c);
        else
                fail(c, ERR_TIMEOUT, EFFECT_POSSIBLE,
                     "The agent took too long to answer. Please try again.", why);
}

/* ---- answers ---- */

static void expect(struct http_agent_call *c)
{
        c->state = CALL_EXPECTING;
        timer_start(c->timer, c->http_agent->conf->reply_seconds * 1000);
        turn_progress(c->run, "the agent is working on it");
}

static void take_answer(struct http_agent_call *c, const struct http_agent_reply *got,
                        const struct error *err)
{
        struct turn_reply reply;

        if (!got) {
                fail(c, err->kind, EFFECT_POSSIBLE,
                     err->kind == ERR_LIMIT
                             ? "The agent's answer is too long to be sent."
                             : "The agent's answer could not be understood. Please tell the operator.",
                     err->text);
        } else if (c->status == 202 && !got->given && c->http_agent->wire->replies &&
                   !is_silent(c->run)) {
                expect(c);
        } else {
                reply = http_agent_reply_for_turn(got);
                answer(c, &reply);
        }
}

/* got NULL: err says why it makes no sense. */
static void on_understood(void *arg, const struct http_agent_reply *got, const struct error *err)
{
        struct http_agent_call *c = arg;

        c->reading = NULL;
        if (c->state == CALL_LATE)
                end_late(c, got, err->kind, err->text);
        else
                take_answer(c, got, err);
}

static void understand(struct http_agent_call *c, const struct http_result *result)
{
        const struct http_agent *k = c->http_agent;
        struct http_agent_reply got;
        struct error err = { 0 };
        bool fine;

        if (result->body_n >= HTTP_AGENT_BODY_LARGE) {
                c->reading = http_agent_read_start(k->agent->loop, k->wire->read, c->content_type,
                                                   result->body, result->body_n, on_understood, c);
                return;
        }
        fine = http_agent_reply_read(&got, k->wire->read, c->content_type, result->body,
                                     result->body_n, &err) == 0;
        on_understood(c, fine ? &got : NULL, &err);
        if (fine)
                http_agent_reply_release(&got);
}

static void on_answer(struct http_agent_call *c, const struct http_result *result)
{
        fault_point("http_agent.answered");
        if (forgets(c->http_agent))
                answer(c, &(struct turn_reply){ 0 });
        else
                understand(c, result);
}

static void on_late_answer(struct http_agent_call *c, const struct http_result *result)
{
        if (result->kind == ERR_NONE && result->status < 300)
                understand(c, result);
        else
                end_late(c, NULL, result->kind, result->why ? result->why : "");
}

/* ---- failures ---- */

static enum error_kind kind_of_status(int status)
{
        switch (status) {
        case 401:
        case 403:
                return ERR_REFUSED;
        case 404:
        case 410:
                return ERR_MISSING;
        case 408:
        case 504:
                return ERR_TIMEOUT;
        case 429:
        case 503:
                return ERR_LIMIT;
        }
        if (status >= 500)
                return ERR_NET;
        return status >= 400 ? ERR_INVALID : ERR_PROTOCOL;
}

static bool try_again(struct http_agent_call *c, const struct http_result *result)
{
        const struct http_agent_conf *conf = c->http_agent->conf;
        bool unreached = result->reach == HTTP_NOT_SENT && result->kind != ERR_INVALID;
        int64_t wait =
                result->retry_after_ms > conf->retry_ms ? result->retry_after_ms : conf->retry_ms;

        wait += (int64_t)id_random_below((uint64_t)wait / 4 + 1);
        if ((!unreached && result->status < 500) || c->tries > conf->retries ||
            wait > RETRY_MAX_MS || loop_now_ms(c->http_agent->agent->loop) + wait >= c->deadline_ms)
                return false;
        c->state = CALL_PAUSING;
        timer_start(c->timer, wait);
        turn_progress(c->run, "the agent cannot be reached, trying again");
        return true;
}

/* A refusal says that nothing was done; a server's own mistake does not. */
static void on_refusal(struct http_agent_call *c, const struct http_result *result)
{
        size_t n =
                result->body ? utf8_prefix(result->body, result->body_n, UTF8_BYTES, QUOTE_MAX) : 0;
        enum error_kind kind = kind_of_status(result->status);
        char *said = utf8_clean(result->body ? result->body : "", n);
        char notice[120];

        if (result->status >= 500)
                snprintf(notice, sizeof(notice),
                         "The agent has a problem right now (HTTP %d). Please try again later.",
                         result->status);
        else if (kind == ERR_LIMIT)
                snprintf(notice, sizeof(notice),
                         "The agent is busy right now. Please try again later.");
        else
                snprintf(
                        notice, sizeof(notice),
                        "The agent did not accept the request (HTTP %d). Please tell the operator.",
                        result->status);
        fail(c, kind, result->status >= 500 ? EFFECT_POSSIBLE : EFFECT_NONE, notice,
             *said ? said : "without a word");
        free(said);
}

static void on_trouble(struct http_agent_call *c, const struct http_result *result)
{
        const char *why = result->why ? result->why : error_kind_name(result->kind);

        if (result->reach == HTTP_NOT_SENT)
                fail(c, ERR_NET, EFFECT_NONE,
                     "The agent cannot be reached right now. Please try again later.", why);
        else if (result->kind == ERR_LIMIT)
                fail(c, ERR_LIMIT, EFFECT_POSSIBLE, "The agent's answer is too long to be sent.",
                     why);
        else
                fail(c, result->kind, EFFECT_POSSIBLE,
                     "The connection to the agent was lost. Please try again.", why);
}

/* ---- the request ---- */

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

        c->http = NULL;
        timer_stop(c->timer);
        if (c->state == CALL_LATE)
                on_late_answer(c, result);
        else if (result->kind == ERR_NONE && result->status < 300)
                on_answer(c, result);
        else if (try_again(c, result))
                return;
        else if (result->kind != ERR_NONE)
                on_trouble(c, result);
        else
                on_refusal(c, result);
}

static void on_time(void *arg)
{
        struct http_agent_call *c = arg;

        if (c->state == CALL_PAUSING)
                ask(c);
        else
                time_is_up(c);
}

/*
 * X-Dragoman-Signature: t=SECONDS,v1=HEX, an HMAC-SHA256 over "SECONDS.BODY". New for each try: the
 * time is part of it.
 */
static void sign(const struct http_agent_call *c, struct call_headers *h)
{
        const struct secret *secret = c->http_agent->conf->secret;
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
        const struct http_agent *k = c->http_agent;
        int64_t left_ms = c->deadline_ms - loop_now_ms(k->agent->loop);
        struct call_headers h;

        c->state = CALL_ASKING;
        c->status = 0;
        c->tries++;
        call_headers_init(&h);
        for (size_t i = 0; i < c->headers.count; i++)
                call_headers_add(&h, "%s", c->headers.list[i]);
        sign(c, &h);
        timer_start(c->timer, left_ms > 0 ? left_ms : 1);
        fault_point("http_agent.before_ask");
        c->http = http_call_start(
                k->agent->http,
                &(struct http_request){
                        .method = "POST",
                        .url = k->url,
                        .headers = h.list,
                        .body = c->body.data,
                        .body_n = c->body.len,
                        .total_ms = left_ms + GRACE_MS +
                                    (delivers_late(k) ? k->conf->reply_seconds * 1000 : 0),
                        .max_body = HTTP_AGENT_BODY_MAX,
                        .repeatable = k->conf->repeatable,
                },
                &handlers, c);
        call_headers_release(&h);
}

static void introduce(const struct http_agent *k, struct call_headers *h)
{
        if (k->wire->mark)
                call_headers_add(h, "%s", k->wire->mark);
        call_headers_secret(h, k->wire->key_header, k->conf->key);
        call_headers_list(h, &k->conf->headers);
}

static void write_headers(struct http_agent_call *c)
{
        const struct http_agent *k = c->http_agent;

        call_headers_init(&c->headers);
        call_headers_add(&c->headers, "Content-Type: application/json");
        call_headers_add(&c->headers, "Accept: application/json, text/plain");
        introduce(k, &c->headers);
        call_headers_run(&c->headers, c->run);
}

/* ---- hooks ---- */

void http_agent_start(struct agent *a, struct turn_run *run)
{
        struct http_agent_call *c = mem_zalloc(sizeof(*c));
        struct http_agent *k = a->self;
        char *reply_url = k->wire->replies && !is_silent(run)
                                  ? agent_reply_url(a, run, k->conf->reply_seconds)
                                  : NULL;

        c->http_agent = k;
        c->run = run;
        c->turn = run->id;
        c->timer = timer_new(a->loop, on_time, c);
        c->deadline_ms = loop_now_ms(a->loop) + k->conf->timeout_ms;
        write_headers(c);
        buf_init(&c->body, 0);
        k->wire->body(k, run, reply_url, &c->body);
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
        struct http_agent *k = mem_zalloc(sizeof(*k));
        size_t n;

        k->agent = a;
        k->conf = a->conf;
        k->wire = wire;
        k->url = mem_strdup(k->conf->url);
        if (wire->path) {
                for (n = strlen(k->url); n > 0 && k->url[n - 1] == '/'; n--)
                        k->url[n - 1] = '\0';
                free(k->url);
                k->url = mem_printf("%.*s%s", (int)n, k->conf->url, wire->path);
        }
        LIST_INIT(&k->probes);
        LIST_INIT(&k->late);
        a->self = k;
        return 0;
}

void http_agent_close(struct agent *a)
{
        struct http_agent *k = a->self;
        struct http_agent_call *c;

        health_probes_drop(&k->probes);
        while ((c = LIST_FIRST(&k->late))) {
                LIST_REMOVE(c, next);
                call_free(c);
        }
        free(k->url);
        free(k);
}

/*
 * Without a place of its own for it, the question is a HEAD of the URL: who knows only POST says
 * so, and is there.
 */
void http_agent_check_health(struct agent *a, void *token)
{
        static const int knows_only_post[] = { 405, 501, 0 };
        struct http_agent *k = a->self;
        const char *own = k->conf->health_url;
        struct call_headers h;

        call_headers_init(&h);
        introduce(k, &h);
        call_headers_run(&h, NULL);
        health_probe_start(&k->probes, a, token,
                           &(struct http_request){ .method = own ? "GET" : "HEAD",
                                                   .url = own ? own : k->url,
                                                   .headers = h.list },
                           own ? NULL : knows_only_post);
        call_headers_release(&h);
}

int http_agent_check_conf(struct settings_source *src, const char *path, const void *settings,
                          struct error *err)
{
        const struct http_agent_conf *conf = settings;
        char *at;
        int rc;

        if (!call_headers_fit(conf->key)) {
                at = *path ? mem_printf("%s.apiKey", path) : mem_strdup("apiKey");
                rc = settings_error(src, at, err, "holds a blank or a line end, which no key has");
                free(at);
                return rc;
        }
        return call_headers_check(src, path, &conf->headers, err);
}

unsigned http_agent_abilities(const struct agent *a)
{
        const struct http_agent_conf *conf = a->conf;

        return AGENT_BATCHES | AGENT_CANCELS | (conf->repeatable ? AGENT_REPEATABLE : 0) |
               (conf->history ? AGENT_HISTORY : 0);
}

void http_agent_reply_terms(const struct agent *a, struct reply_terms *out)
{
        const struct http_agent *k = a->self;

        out->deliver_late = delivers_late(k);
        out->max_replies = k->conf->max_replies;
}
