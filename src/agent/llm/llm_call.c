#include "agent/llm/llm_call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/http/call_headers.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/backoff.h"
#include "net/http_text.h"

#define RETRY_BASE_MS 500
#define RETRY_MAX_MS  30000 /* longer pauses are not retried */
#define JITTER_MS     250
#define LEAVE_MS      1000

/* ---- words ---- */

void llm_call_notice(const struct llm_call *c, const struct llm_failure *f, int64_t retry_after_ms,
                     struct buf *out)
{
        const char *it = c->llm->wire->subject ? c->llm->wire->subject : "model";
        char again[64] = "Please try again later.";

        if (retry_after_ms > 0)
                snprintf(again, sizeof(again), "Please try again in %" PRId64 " s.",
                         (retry_after_ms + 999) / 1000);
        if (f->notice)
                buf_addstr(out, f->notice);
        else if (f->account)
                buf_addf(out, "The %s's account has no credit left. Please tell the operator.", it);
        else if (f->too_long)
                buf_addf(out,
                         "This conversation has become too long for the %s. "
                         "Please start a new one.",
                         it);
        else if (f->kind == ERR_LIMIT)
                buf_addf(out, "The %s is busy right now (%s). %s", it,
                         c->status == 429 ? "rate limit" : "overloaded", again);
        else if (f->kind == ERR_REFUSED)
                buf_addf(out, "The %s's service refused our key. Please tell the operator.", it);
        else if (f->kind == ERR_MISSING)
                buf_addf(out, "The %s was not found at its service. Please tell the operator.", it);
        else if (f->kind == ERR_INVALID)
                buf_addf(out,
                         "The %s's service did not accept the request. Please tell the operator.",
                         it);
        else if (f->kind == ERR_TIMEOUT)
                buf_addf(out, "The %s took too long to answer. Please try again.", it);
        else if (f->kind == ERR_PROTOCOL)
                buf_addf(out, "The %s's answer could not be understood. Please try again.", it);
        else if (c->status >= 500)
                buf_addf(out, "The %s's service has a problem right now (HTTP %d). %s", it,
                         c->status, again);
        else if (c->reader.failure.kind != ERR_NONE && c->llm->wire->acts)
                buf_addf(out, "The %s failed. Please try again.", it);
        else if (c->reader.text.len)
                buf_addf(out, "The connection to the %s was lost.", it);
        else
                buf_addf(out, "The %s cannot be reached right now. %s", it, again);
}

/* Omits the query, which may hold a key. */
void llm_call_record(const struct llm_call *c, const char *why, struct buf *out)
{
        buf_addf(out, "%s %s at %s: ", c->llm->wire->name, c->llm->model, c->llm->base);
        if (c->status)
                buf_addf(out, "HTTP %d", c->status);
        else
                buf_addstr(out, "no answer");
        if (c->tries > 1)
                buf_addf(out, " after %d tries", c->tries);
        if (c->reader.text.len)
                buf_addf(out, " and %zu bytes of text", c->reader.text.len);
        if (*c->request_id)
                buf_addf(out, " (request %s)", c->request_id);
        buf_addf(out, ": %s", why);
        log_redact(out->data);
}

/* ---- ending ---- */

/* f: why the call failed; NULL: the response came to its end. */
static void finish(struct llm_call *c, const struct llm_failure *f, int64_t retry_after_ms)
{
        static const struct llm_failure cut_off = {
                .kind = ERR_NET, .text = "the stream ended before the answer did"
        };
        const struct llm_reader *r = &c->reader;

        if (!f && r->failure.kind != ERR_NONE)
                f = &r->failure;
        else if (!f && !r->too_large && !llm_reader_is_complete(r))
                f = &cut_off;
        http_call_abort(c->http);
        c->http = NULL;
        timer_stop(c->timer);
        c->handlers->on_done(c->arg, f, retry_after_ms);
}

/* May asking again help, and did the service certainly not answer? */
static bool is_worth_a_retry(const struct llm_call *c, enum http_reach reach,
                             const struct llm_failure *f, int64_t retry_after_ms)
{
        static const int statuses[] = { 408, 409, 429, 500, 502, 503, 504, 529 };

        if (c->tries > c->llm->conf->retries || retry_after_ms > RETRY_MAX_MS)
                return false;
        if (reach == HTTP_NOT_SENT)
                return f->kind == ERR_NET || f->kind == ERR_TIMEOUT;
        if (reach != HTTP_ANSWERED || f->account || f->too_long || c->reader.block_count)
                return false;
        if (!c->patient)
                return (!c->taken || !c->llm->wire->acts) && c->status >= 300 &&
                       f->kind == ERR_LIMIT;
        if (c->should_retry >= 0)
                return c->should_retry;
        for (size_t i = 0; i < COUNT(statuses); i++) {
                if (c->status == statuses[i])
                        return true;
        }
        return c->status < 300 && f->kind == ERR_LIMIT; /* said within a stream */
}

static void retry_or_fail(struct llm_call *c, enum http_reach reach, const struct llm_failure *f,
                          int64_t retry_after_ms)
{
        int64_t wait = retry_after_ms;

        if (wait < 0)
                wait = backoff_ms((unsigned)c->tries - 1, RETRY_BASE_MS, RETRY_MAX_MS);
        wait += (int64_t)id_random_below(JITTER_MS + (uint64_t)wait / 4);
        if (!is_worth_a_retry(c, reach, f, retry_after_ms) ||
            loop_now_ms(c->llm->agent->loop) + wait >= c->deadline_ms) {
                finish(c, f, retry_after_ms);
                return;
        }
        c->state = CALL_WAITING;
        timer_start(c->timer, wait);
        if (c->handlers->on_retry)
                c->handlers->on_retry(c->arg, wait, f);
}

/* Without an answer, or with an error instead of one. */
static void on_failure(struct llm_call *c, const struct http_result *result)
{
        struct llm_failure f = { 0 };
        bool is_refusal = result->status >= 300;

        c->taken = result->reach != HTTP_NOT_SENT &&
                   (result->reach == HTTP_UNSURE || result->status < 300 || result->status >= 500);
        if (is_refusal)
                llm_reader_read_failure(&f, http_text_status_kind(result->status),
                                        result->body ? result->body : "", result->body_n);
        else
                llm_reader_read_failure(&f, result->kind, result->why ? result->why : "",
                                        result->why ? strlen(result->why) : 0);
        /* the same words elsewhere speak of other limits; Cerebras says nothing at all */
        if (!is_refusal || f.kind == ERR_LIMIT)
                f.too_long = false;
        else if (result->status == 413 || (result->status == 400 && result->body_n == 0))
                f.too_long = true;
        f.too_large = f.too_large || result->status == 413;
        if (result->status == 402) {
                f.account = true;
                f.kind = ERR_REFUSED;
        }
        retry_or_fail(c, result->reach, &f,
                      c->retry_after_ms >= 0 ? c->retry_after_ms : result->retry_after_ms);
}

/* ---- one try ---- */

/* The content type decides: some servers stream unasked, others never. */
static void on_head(void *arg, struct http_call *call, int status)
{
        struct llm_call *c = arg;
        const char *type = http_call_header(call, "content-type");
        const char *id = http_call_header(call, "x-request-id");
        const char *again = http_call_header(call, "x-should-retry");
        const char *after = http_call_header(call, "retry-after-ms");

        if (!id)
                id = http_call_header(call, "request-id");
        snprintf(c->request_id, sizeof(c->request_id), "%s", id ? id : "");
        c->should_retry = again ? strcmp(again, "true") == 0 : -1;
        c->retry_after_ms = after && *after >= '0' && *after <= '9' ? strtoll(after, NULL, 10) : -1;
        c->status = status;
        c->taken = status < 300;
        c->streaming = type ? strstr(type, "event-stream") != NULL : c->stream;
}

static void on_data(void *arg, const char *bytes, size_t n)
{
        struct llm_call *c = arg;
        int rc;

        if (c->status >= 300)
                return;
        rc = c->streaming ? llm_reader_stream(&c->reader, bytes, n)
                          : llm_reader_body(&c->reader, bytes, n);
        if (rc < 0 && c->reader.failure.kind != ERR_NONE) {
                struct llm_failure f = c->reader.failure;

                http_call_abort(c->http);
                c->http = NULL;
                retry_or_fail(c, HTTP_ANSWERED, &f, -1);
        } else if (rc < 0) {
                finish(c, NULL, -1);
        } else if (c->reader.ended && c->state == CALL_ASKING) {
                /* usually the body ends at once and the connection can be reused */
                c->state = CALL_LEAVING;
                timer_start(c->timer, LEAVE_MS);
        }
}

static void on_done(void *arg, const struct http_result *result)
{
        struct llm_call *c = arg;
        bool is_complete = llm_reader_is_complete(&c->reader);

        c->http = NULL;
        timer_stop(c->timer);
        if (result->status >= 300 ||
            (result->kind != ERR_NONE && result->kind != ERR_LIMIT && !is_complete)) {
                on_failure(c, result);
                return;
        }
        if (result->kind == ERR_NONE && !c->streaming)
                llm_reader_body_end(&c->reader);
        else if (result->kind == ERR_LIMIT && !is_complete)
                c->reader.too_large = true;
        finish(c, NULL, -1);
}

static void on_text(void *arg, const char *text, size_t n)
{
        const struct llm_call *c = arg;

        if (c->stream && c->handlers->on_text)
                c->handlers->on_text(c->arg, text, n);
}

static void on_thinking(void *arg, const char *text, size_t n)
{
        const struct llm_call *c = arg;

        if (c->stream && c->handlers->on_thinking)
                c->handlers->on_thinking(c->arg, text, n);
}

static void on_call(void *arg, const char *name)
{
        const struct llm_call *c = arg;

        if (c->stream && c->handlers->on_call)
                c->handlers->on_call(c->arg, name);
}

void llm_call_headers(struct call_headers *h, const struct llm *m)
{
        call_headers_init(h);
        call_headers_secret(h, m->wire->key_header, m->conf->key);
        if (m->wire->version)
                call_headers_add(h, "%s: %s", m->wire->version,
                                 m->conf->api_version ? m->conf->api_version
                                                      : m->wire->version_used);
}

static void init_headers(struct call_headers *h, const struct llm_call *c)
{
        const struct llm_wire *wire = c->llm->wire;

        llm_call_headers(h, c->llm);
        call_headers_add(h, "Content-Type: %s",
                         wire->content_type ? wire->content_type : "application/json");
        call_headers_add(h, "Accept: %s", c->stream ? "text/event-stream" : "application/json");
        if (c->session)
                call_headers_add(h, "x-session-id: %s", c->session);
        if (c->run && !c->first) {
                struct turn_run later = *c->run;

                later.key = NULL; /* another request than the turn's first */
                call_headers_run(h, &later);
        } else {
                call_headers_run(h, c->run);
        }
}

static void ask(struct llm_call *c)
{
        static const struct http_handlers handlers = { on_head, on_data, on_done };
        const struct llm *m = c->llm;
        const struct llm_conf *conf = m->conf;
        char *url = mem_printf("%s%s%s", m->base, m->path, m->query);
        int64_t left_ms = c->deadline_ms - loop_now_ms(m->agent->loop);
        struct call_headers h;
        struct buf body;

        llm_reader_init(&c->reader, m->wire, on_text, c);
        c->reader.on_thinking = on_thinking;
        c->reader.on_call = on_call;
        c->state = CALL_ASKING;
        c->status = 0;
        c->streaming = false;
        c->should_retry = -1;
        c->retry_after_ms = -1;
        c->request_id[0] = '\0';
        c->tries++;
        buf_init(&body, 0);
        c->handlers->write(c->arg, &body);
        init_headers(&h, c);
        c->http = http_call_start(m->agent->http,
                                  &(struct http_request){
                                          .method = "POST",
                                          .url = url,
                                          .headers = h.list,
                                          .body = body.data,
                                          .body_n = body.len,
                                          .first_byte_ms = c->stream ? conf->first_byte_ms : 0,
                                          .silence_ms = c->stream ? conf->silence_ms : 0,
                                          .total_ms = left_ms > 0 ? left_ms : 1,
                                          .max_body = LLM_STREAM_MAX,
                                  },
                                  &handlers, c);
        call_headers_release(&h);
        buf_release(&body);
        free(url);
}

static void on_time(void *arg)
{
        struct llm_call *c = arg;

        if (c->state == CALL_LEAVING) {
                finish(c, NULL, -1);
                return;
        }
        llm_reader_release(&c->reader);
        ask(c);
}

void llm_call_start(struct llm_call *c)
{
        struct loop *loop = c->llm->agent->loop;

        c->timer = timer_new(loop, on_time, c);
        c->deadline_ms = loop_now_ms(loop) + c->llm->conf->timeout_ms;
        ask(c);
}

void llm_call_fail(struct llm_call *c, enum error_kind kind, const char *why)
{
        llm_reader_init(&c->reader, c->llm->wire, NULL, NULL);
        llm_reader_fail(&c->reader, kind, why);
        c->timer = timer_new(c->llm->agent->loop, on_time, c);
        c->state = CALL_LEAVING;
        timer_start(c->timer, 0);
}

void llm_call_release(struct llm_call *c)
{
        http_call_abort(c->http);
        timer_free(c->timer);
        llm_reader_release(&c->reader);
}
