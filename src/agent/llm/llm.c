/*
 * One call to a language model.
 *
 *     ASKING ──► (an answer, or a failure) ──► agent_finish
 *       ▲  ├───► WAITING  when the service certainly did not work on the request: refused by its
 *       └──┼────────┘     rate limit, or never sent
 *          └───► LEAVING  when the stream is complete but the connection still open
 *
 * One timer serves both waits. The call lives in run->agent_data and ends with the turn.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/http/call_headers.h"
#include "agent/llm/llm.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/backoff.h"
#include "net/http_text.h"

#define RETRY_BASE_MS 500
#define RETRY_MAX_MS  30000 /* longer pauses are not retried */
#define JITTER_MS     250
#define LEAVE_MS      1000

#define AT(field)     offsetof(struct llm_conf, field)
const struct setting llm_settings[] = {
        { "model", SETTING_STRING, NULL, 1, 200, .at = AT(model),
          .help = "The model's name at its service." },
        { "baseUrl", SETTING_URL, "null", 0, 0, .at = AT(base_url),
          .help = "Where the service is; `null` is its public address "
                  "(`https://api.openai.com/v1` or `https://api.anthropic.com`)." },
        { "apiKey", SETTING_SECRET, "null", 0, 0, .at = AT(key),
          .help = "The key; a local server may need none." },
        { "stream", SETTING_BOOL, "true", 0, 0, .at = AT(stream),
          .help = "Show the answer while it is being written." },
        { "system", SETTING_STRING, "null", 0, 65536, .at = AT(system),
          .help = "The system prompt." },
        { "maxTokens", SETTING_INT, "0", 0, 1000000, .at = AT(max_tokens),
          .help = "The longest answer, in tokens; 0: the service's default (Anthropic: 8192)." },
        { "temperature", SETTING_NUMBER, "-1", -1, 2, .at = AT(temperature),
          .help = "The sampling temperature; -1: the service's default." },
        { "timeoutMs", SETTING_INT, "300000", 100, 3600000, .at = AT(timeout_ms),
          .help = "The longest time to a complete answer, including retries." },
        { "firstByteMs", SETTING_INT, "120000", 100, 3600000, .at = AT(first_byte_ms),
          .help = "The longest time until a streamed answer begins." },
        { "silenceMs", SETTING_INT, "60000", 100, 3600000, .at = AT(silence_ms),
          .help = "The longest pause within a streamed answer." },
        { "retries", SETTING_INT, "2", 0, 5, .at = AT(retries),
          .help = "How often a request is retried that the service certainly did not work on." },
        { "pricePerMTokIn", SETTING_NUMBER, "0", 0, 100000, .at = AT(prices.in),
          .help = "US dollars per million input tokens; 0: not counted." },
        { "pricePerMTokOut", SETTING_NUMBER, "0", 0, 100000, .at = AT(prices.out),
          .help = "US dollars per million output tokens; 0: not counted." },
        { "pricePerMTokCached", SETTING_NUMBER, "-1", -1, 100000, .at = AT(prices.cached),
          .help = "US dollars per million input tokens read from the service's cache; -1: 0.1 "
                  "times `pricePerMTokIn` at Anthropic, 0.5 times elsewhere." },
        { "pricePerMTokCacheWrite", SETTING_NUMBER, "-1", -1, 100000, .at = AT(prices.written),
          .help = "US dollars per million input tokens written to the service's cache; -1: 1.25 "
                  "times `pricePerMTokIn` at Anthropic, as much as it elsewhere." },
        { "pricePerMTokCacheWrite1h", SETTING_NUMBER, "-1", -1, 100000, .at = AT(prices.written_1h),
          .help = "The same for tokens that the cache keeps for an hour; -1: 2 times "
                  "`pricePerMTokIn` at Anthropic, as much as it elsewhere." },
        SETTING_END
};

enum llm_call_state { CALL_ASKING, CALL_WAITING, CALL_LEAVING };

struct llm_call {
        const struct llm *llm;
        struct turn_run *run;
        enum llm_call_state state;
        struct http_call *http;
        struct timer *timer;
        struct llm_reader reader;
        bool streaming;
        bool taken; /* the service may have started */
        int status;
        char request_id[80]; /* for the service's support */
        int tries;
        int64_t deadline_ms;
};

static void call_free(struct llm_call *c)
{
        http_call_abort(c->http);
        timer_free(c->timer);
        llm_reader_release(&c->reader);
        free(c);
}

/* ---- ending a call ---- */

/* For the user. */
static void write_notice(const struct llm_call *c, const struct llm_failure *f,
                         int64_t retry_after_ms, struct buf *out)
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

/* For the operator. Omits the query, which may hold a key. */
static void write_record(const struct llm_call *c, const char *why, struct buf *out)
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

/*
 * The answer for the user and, if it is not complete, the record for the operator. f: why the call
 * failed; NULL: the response is complete.
 */
static enum error_kind write_answer(const struct llm_call *c, const struct llm_failure *f,
                                    int64_t retry_after_ms, struct buf *text, struct buf *record)
{
        const struct llm_reader *r = &c->reader;
        const char *it = c->llm->wire->subject ? c->llm->wire->subject : "model";
        const char *why = "the answer is empty";

        buf_add(text, r->text.data, r->text.len);
        if (f) {
                if (r->text.len)
                        buf_addstr(text, "\n\n(The answer breaks off here. ");
                write_notice(c, f, retry_after_ms, text);
                if (r->text.len)
                        buf_addch(text, ')');
                write_record(c, *f->text ? f->text : error_kind_name(f->kind), record);
                return f->kind;
        }
        if (r->too_large) {
                buf_addf(text, "%s(The answer breaks off here: it is longer than %zu KB.)",
                         r->text.len ? "\n\n" : "", LLM_ANSWER_MAX >> 10);
                write_record(c, "the answer is too large", record);
                return ERR_LIMIT;
        }
        if (r->text.len) {
                if (r->stop == LLM_LENGTH)
                        buf_addstr(text, "\n\n(The answer reached its length limit.)");
                return ERR_NONE;
        }
        /* an ambient turn may be silent, an addressed one may not */
        if (r->stop == LLM_STOPPED && c->run->mode == MODE_AMBIENT)
                return ERR_NONE;
        if (r->stop == LLM_LENGTH) {
                why = "the answer is empty: its tokens were used up before the first word";
                buf_addf(text,
                         "The %s reached its length limit before it answered. "
                         "Please tell the operator.",
                         it);
        } else if (r->stop == LLM_FILTERED) {
                why = "the answer is empty: withheld by the service's filter";
                buf_addf(text, "The %s's service withheld the answer (content filter).", it);
        } else {
                buf_addf(text, "The %s gave an empty answer. Please try again.", it);
        }
        write_record(c, why, record);
        return r->stop == LLM_FILTERED ? ERR_INVALID : ERR_PROTOCOL;
}

static struct usage_prices prices_of(const struct llm *m)
{
        struct usage_prices p = m->conf->prices;

        if (p.cached < 0)
                p.cached = p.in * m->wire->cache_shares.cached;
        if (p.written < 0)
                p.written = p.in * m->wire->cache_shares.written;
        if (p.written_1h < 0)
                p.written_1h = p.in * m->wire->cache_shares.written_1h;
        return p;
}

/* f: why the call failed; NULL: the response came to its end. */
static void finish(struct llm_call *c, const struct llm_failure *f, int64_t retry_after_ms)
{
        static const struct llm_failure cut_off = {
                .kind = ERR_NET, .text = "the stream ended before the answer did"
        };
        const struct llm_reader *r = &c->reader;
        const struct usage_prices prices = prices_of(c->llm);
        /* until the model has answered, asking another one only costs money */
        bool effect = r->text.len || (c->llm->wire->acts && c->taken);
        struct turn_reply reply = { .tokens_in = usage_tokens_in(&r->usage),
                                    .tokens_cached = r->usage.cached,
                                    .tokens_out = r->usage.out,
                                    .cost_microusd = usage_cost(&r->usage, &prices) };
        struct buf text, record;

        if (!f && r->failure.kind != ERR_NONE)
                f = &r->failure;
        else if (!f && !r->too_large && !r->ended && r->stop == LLM_GOES_ON)
                f = &cut_off;
        buf_init(&text, 0);
        buf_init(&record, 0);
        reply.kind = write_answer(c, f, retry_after_ms, &text, &record);
        reply.text = text.data;
        reply.error = reply.kind != ERR_NONE ? record.data : NULL;
        http_call_abort(c->http);
        c->http = NULL;
        agent_finish(c->llm->agent, c->run, &reply, effect ? EFFECT_POSSIBLE : EFFECT_NONE);
        call_free(c);
        buf_release(&text);
        buf_release(&record);
}

/* ---- failures ---- */

/* Did the service certainly not process the request, and may a retry help? */
static bool is_worth_a_retry(const struct llm_call *c, const struct http_result *result,
                             const struct llm_failure *f)
{
        if (c->tries > c->llm->conf->retries || result->retry_after_ms > RETRY_MAX_MS)
                return false;
        if (result->reach == HTTP_NOT_SENT)
                return f->kind == ERR_NET || f->kind == ERR_TIMEOUT;
        if (c->llm->wire->acts && c->taken)
                return false;
        return result->reach == HTTP_ANSWERED && f->kind == ERR_LIMIT;
}

static void retry_or_fail(struct llm_call *c, const struct http_result *result)
{
        struct llm_failure f = { 0 };
        int64_t wait = result->retry_after_ms;
        char label[100];

        c->taken = result->reach == HTTP_UNSURE || result->status < 300 || result->status >= 500;
        if (result->reach == HTTP_NOT_SENT)
                c->taken = false;
        if (result->status >= 300)
                llm_reader_read_failure(&f, http_text_status_kind(result->status),
                                        result->body ? result->body : "", result->body_n);
        else
                llm_reader_read_failure(&f, result->kind, result->why ? result->why : "",
                                        result->why ? strlen(result->why) : 0);
        if (wait < 0)
                wait = backoff_ms((unsigned)c->tries - 1, RETRY_BASE_MS, RETRY_MAX_MS);
        wait += (int64_t)id_random_below(JITTER_MS + (uint64_t)wait / 4);
        if (!is_worth_a_retry(c, result, &f) ||
            loop_now_ms(c->llm->agent->loop) + wait >= c->deadline_ms) {
                finish(c, &f, result->retry_after_ms);
                return;
        }
        snprintf(label, sizeof(label), "%s, trying again in %" PRId64 " s",
                 f.kind == ERR_LIMIT ? "the model is busy" : "the model cannot be reached",
                 (wait + 999) / 1000);
        c->state = CALL_WAITING;
        timer_start(c->timer, wait);
        turn_progress(c->run, label);
}

/* ---- request ---- */

static void on_text(void *arg, const char *text, size_t n)
{
        const struct llm_call *c = arg;

        turn_delta(c->run, text, n);
}

/* The content type decides: some servers stream unasked, others never. */
static void on_head(void *arg, struct http_call *call, int status)
{
        struct llm_call *c = arg;
        const char *type = http_call_header(call, "content-type");
        const char *id = http_call_header(call, "x-request-id");

        if (!id)
                id = http_call_header(call, "request-id");
        snprintf(c->request_id, sizeof(c->request_id), "%s", id ? id : "");
        c->status = status;
        c->taken = status < 300;
        c->streaming = type ? strstr(type, "event-stream") != NULL : c->llm->conf->stream;
}

static void on_data(void *arg, const char *bytes, size_t n)
{
        struct llm_call *c = arg;
        int rc;

        if (c->status >= 300)
                return;
        rc = c->streaming ? llm_reader_stream(&c->reader, bytes, n)
                          : llm_reader_body(&c->reader, bytes, n);
        if (rc < 0) {
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
        bool is_complete = c->reader.ended || c->reader.stop != LLM_GOES_ON;

        c->http = NULL;
        timer_stop(c->timer);
        if (result->status >= 300 ||
            (result->kind != ERR_NONE && result->kind != ERR_LIMIT && !is_complete)) {
                retry_or_fail(c, result);
                return;
        }
        if (result->kind == ERR_NONE && !c->streaming)
                llm_reader_body_end(&c->reader);
        else if (result->kind == ERR_LIMIT && !is_complete)
                c->reader.too_large = true;
        finish(c, NULL, -1);
}

static void init_headers(struct call_headers *h, const struct llm *m)
{
        call_headers_init(h);
        call_headers_secret(h, m->wire->key_header, m->conf->key);
        if (m->wire->header)
                call_headers_add(h, "%s", m->wire->header);
}

static void on_time(void *arg)
{
        struct llm_call *c = arg;

        if (c->state == CALL_LEAVING)
                finish(c, NULL, -1);
        else
                llm_start(c->llm->agent, c->run);
}

/* ---- agent_ops ---- */

/* Also sends the request again when a retry is due: then the run has its call. */
void llm_start(struct agent *a, struct turn_run *run)
{
        static const struct http_handlers handlers = { on_head, on_data, on_done };
        const struct llm *m = a->self;
        const struct llm_conf *conf = m->conf;
        char *url = mem_printf("%s%s%s", m->base, m->path, m->query);
        struct llm_call *c = run->agent_data;
        struct call_headers h;
        struct buf body;
        int64_t left_ms;

        if (c) {
                llm_reader_release(&c->reader);
        } else {
                c = run->agent_data = mem_zalloc(sizeof(*c));
                c->llm = m;
                c->run = run;
                c->timer = timer_new(a->loop, on_time, c);
                c->deadline_ms = loop_now_ms(a->loop) + conf->timeout_ms;
        }
        llm_reader_init(&c->reader, m->wire, conf->stream ? on_text : NULL, c);
        c->state = CALL_ASKING;
        c->status = 0;
        c->streaming = false;
        c->request_id[0] = '\0';
        c->tries++;
        buf_init(&body, 0);
        m->wire->body(m, run, &body);
        init_headers(&h, m);
        call_headers_add(&h, "Content-Type: %s",
                         m->wire->content_type ? m->wire->content_type : "application/json");
        call_headers_add(&h, "Accept: %s", conf->stream ? "text/event-stream" : "application/json");
        call_headers_run(&h, run);
        left_ms = c->deadline_ms - loop_now_ms(a->loop);
        c->http = http_call_start(a->http,
                                  &(struct http_request){
                                          .method = "POST",
                                          .url = url,
                                          .headers = h.list,
                                          .body = body.data,
                                          .body_n = body.len,
                                          .first_byte_ms = conf->stream ? conf->first_byte_ms : 0,
                                          .silence_ms = conf->stream ? conf->silence_ms : 0,
                                          .total_ms = left_ms > 0 ? left_ms : 1,
                                          .max_body = LLM_STREAM_MAX,
                                  },
                                  &handlers, c);
        call_headers_release(&h);
        buf_release(&body);
        free(url);
}

void llm_cancel(struct agent *a, struct turn_run *run)
{
        const struct llm *m = a->self;
        struct llm_call *c = run->agent_data;

        if (m->wire->cancel)
                m->wire->cancel(m, &c->reader, run);
        call_free(c);
        run->agent_data = NULL;
}

int llm_check_conf(struct settings_source *src, const char *path, const void *settings,
                   struct error *err)
{
        const struct llm_conf *conf = settings;

        if (!conf->base_url && !(conf->key && secret_length(conf->key)))
                return settings_member_error(src, path, "apiKey", err,
                                             "is required for the public service");
        return call_headers_check_key(src, path, conf->key, err);
}

int llm_open(struct agent *a, const struct llm_wire *wire, const char *model)
{
        struct llm *m = mem_zalloc(sizeof(*m));
        const char *url, *query;
        size_t n;

        m->agent = a;
        m->conf = a->conf;
        m->wire = wire;
        m->model = model;
        m->path = mem_strdup(wire->path);
        url = m->conf->base_url ? m->conf->base_url : wire->base;
        n = strcspn(url, "?#");
        query = url + n;
        m->query = mem_strndup(query, strcspn(query, "#"));
        while (n > 0 && url[n - 1] == '/')
                n--;
        m->base = mem_strndup(url, n);
        LIST_INIT(&m->probes);
        a->self = m;
        return 0;
}

/* Lists the models, which is free; a server without a list still counts as healthy. */
void llm_check_health(struct agent *a, void *token)
{
        static const int without_list[] = { 404, 405, 0 };
        struct llm *m = a->self;
        char *url = mem_printf("%s%s%s", m->base, m->wire->health, m->query);
        struct call_headers h;

        init_headers(&h, m);
        call_headers_run(&h, NULL);
        health_probe_start(&m->probes, a, token,
                           &(struct http_request){ .url = url, .headers = h.list }, without_list);
        call_headers_release(&h);
        free(url);
}

void llm_close(struct agent *a)
{
        struct llm *m = a->self;

        health_probes_drop(&m->probes);
        free(m->path);
        free(m->base);
        free(m->query);
        free(m);
}
