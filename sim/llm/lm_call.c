#include "sim/llm/lm_call.h"

#include <math.h>
#include <stdarg.h>
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
#include "sim/llm/lm_answer.h"

#define MUTE_MS      86400000          /* for ever, as far as a client can tell */
#define MAX_RECORDED ((size_t)1 << 20) /* longer bodies are left out of the journal */

static void call_free(struct call *c)
{
        call_base_release(&c->base);
        json_decref(c->body);
        json_decref(c->prompt.turns);
        json_decref(c->prompt.tools);
        buf_release(&c->prompt.system);
        lm_blocks_release(&c->prompt.blocks);
        json_decref(c->answer.content);
        lm_pieces_release(&c->pieces);
        buf_release(&c->out);
        free(c->key);
        free(c->version);
        free(c);
}

static int __attribute__((format(printf, 3, 0)))
refuse(struct call *c, const char *reason, const char *fmt, va_list ap)
{
        vsnprintf(c->problem, sizeof(c->problem), fmt, ap);
        if (c->status == 200)
                c->status = 400;
        c->reason = reason;
        c->base.valid = false;
        return -1;
}

int lm_call_refuse(struct call *c, const char *reason, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        refuse(c, reason, fmt, ap);
        va_end(ap);
        return -1;
}

int lm_call_refuse_at(struct call *c, const char *code, const char *param, const char *reason,
                      const char *fmt, ...)
{
        va_list ap;

        snprintf(c->code, sizeof(c->code), "%s", code ? code : "");
        snprintf(c->param, sizeof(c->param), "%s", param ? param : "");
        va_start(ap, fmt);
        refuse(c, reason, fmt, ap);
        va_end(ap);
        return -1;
}

static const char *words_of(int status)
{
        switch (status) {
        case 429:
                return "This request would exceed your organization's rate limit";
        case 503:
        case 529:
                return "Overloaded";
        default:
                return "Internal server error";
        }
}

int lm_call_fail(struct call *c, int status, const char *message)
{
        c->status = status;
        snprintf(c->problem, sizeof(c->problem), "%s", message ? message : words_of(status));
        return -1;
}

/* ---- the end of a call ---- */

static void record(const struct call *c, struct journal *j)
{
        struct buf *b = journal_open(j, c->operation, 0);
        char *body = c->body ? json_text(c->body) : NULL;

        jsonw_str(b, "operation", c->operation);
        jsonw_str(b, "request_id", c->request);
        jsonw_bool(b, "valid", c->base.valid);
        jsonw_int(b, "status", c->status);
        if (c->reason)
                jsonw_str(b, "reason", c->reason);
        if (c->status != 200)
                jsonw_str(b, "problem", c->problem);
        jsonw_bool(b, "streamed", c->streams);
        if (c->prompt.model)
                jsonw_int(b, "tokens", c->prompt.blocks.tokens);
        if (c->status == 200 && c->answer.content)
                lm_answer_write(c, b);
        if (body && strlen(body) <= MAX_RECORDED)
                jsonw_raw(b, "request", body);
        jsonw_int(b, "micros", call_base_micros(&c->base));
        journal_close(j);
        free(body);
}

static void add_number(struct http_exchange *x, const char *name, int64_t n)
{
        char text[24];

        snprintf(text, sizeof(text), "%lld", (long long)n);
        http_add_header(x, name, text);
}

static void add_headers(struct call *c)
{
        struct world *w = c->world;
        int64_t left = w->per_minute - w->minute_count;

        http_add_header(c->x, c->wire->anthropic ? "request-id" : "x-request-id", c->request);
        c->wire->limits(c, w->per_minute, left > 0 ? left : 0);
        if (c->retry_after >= 0) {
                add_number(c->x, "retry-after", (int64_t)ceil(c->retry_after));
                if (c->retry_after < 1)
                        add_number(c->x, "retry-after-ms", (int64_t)(c->retry_after * 1000));
        }
}

static void deliver(struct call *c)
{
        struct http_exchange *x = c->x;
        size_t n = c->out.len;

        if (c->base.cut) {
                http_cut(x);
        } else {
                add_headers(c);
                if (c->streams && c->status == 200)
                        lm_stream_start(c->world, x, &c->pieces);
                else
                        http_answer_take(x, c->status, "application/json", buf_take(&c->out), n);
        }
        call_free(c);
}

static void fail_late(struct call *c, int status)
{
        lm_call_fail(c, status, NULL);
        buf_clear(&c->out);
        c->wire->error(c, &c->out);
}

static const struct call_ops ops = {
        .record = record,
        .fail_late = fail_late,
        .deliver = deliver,
};

static void finish(struct call *c)
{
        if (c->status != 200) {
                buf_clear(&c->out);
                c->wire->error(c, &c->out);
        }
        if (c->reason)
                lm_world_refused(c->world, c->reason);
        if (!c->world->base.quiet) {
                printf("%s %s: %d %s\n", c->operation,
                       c->prompt.model ? c->prompt.model->name : "-", c->status,
                       c->reason ? c->reason : c->answer.stop);
                fflush(stdout);
        }
        call_base_finish(&c->base);
}

/* ---- the beginning ---- */

static struct call *call_new(struct world *w, struct http_exchange *x, const struct lm_wire *wire,
                             const char *operation)
{
        struct call *c = mem_zalloc(sizeof(*c));
        unsigned char bytes[11];

        call_base_init(&c->base, &w->base, &ops);
        c->world = w;
        c->x = x;
        c->wire = wire;
        c->operation = operation;
        c->status = 200;
        c->retry_after = -1;
        c->created = clock_wall_ms() / 1000;
        id_random_bytes(bytes, sizeof(bytes));
        crypto_hex(bytes, sizeof(bytes), c->id);
        id_random_bytes(bytes, sizeof(bytes));
        snprintf(c->request, sizeof(c->request), "req_");
        crypto_hex(bytes, sizeof(bytes), c->request + 4);
        buf_init(&c->out, 0);
        lm_pieces_init(&c->pieces);
        c->prompt.turns = json_array();
        c->prompt.tools = json_array();
        buf_init(&c->prompt.system, 0);
        return c;
}

static int check_key(struct call *c)
{
        const char *key = c->wire->anthropic ? http_header(c->x, "x-api-key") : NULL;
        const char *bearer = http_header(c->x, "Authorization");

        if (!key && bearer && strncasecmp(bearer, "Bearer ", 7) == 0)
                key = bearer + 7;
        c->key = mem_strdup(key ? key : "");
        if (map_get(&c->world->keys, c->key))
                return 0;
        c->status = 401;
        if (c->wire->anthropic)
                return lm_call_refuse(c, "key",
                                      key ? "invalid x-api-key" : "x-api-key header is required");
        if (key)
                return lm_call_refuse_at(
                        c, "invalid_api_key", NULL, "key",
                        "Incorrect API key provided: %.8s***. You can find your API key at "
                        "https://platform.openai.com/account/api-keys.",
                        key);
        return lm_call_refuse_at(
                c, NULL, NULL, "key",
                "You didn't provide an API key. You need to provide your API key in an "
                "Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).");
}

static int check_rate(struct call *c)
{
        struct world *w = c->world;
        int64_t minute = clock_mono_ms() / 60000;

        if (w->minute != minute) {
                w->minute = minute;
                w->minute_count = 0;
        }
        w->minute_count++;
        if (!w->base.limits || w->per_minute == 0 || w->minute_count <= w->per_minute)
                return 0;
        c->retry_after = 60 - (double)(clock_mono_ms() % 60000) / 1000;
        return lm_call_fail(c, 429, NULL);
}

/* Fails the call, or marks it for its end. */
static int check_faults(struct call *c)
{
        const struct fault *f = call_base_fault(&c->base, c->operation);

        if (!f)
                return 0;
        if (f->kind == FAULT_FLOOD)
                c->retry_after = f->retry_after;
        if (f->kind == FAULT_CUT_BEFORE)
                return lm_call_fail(c, 599, "cut before the effect");
        if (f->kind == FAULT_FLOOD)
                return lm_call_fail(c, 429, NULL);
        return lm_call_fail(c, f->status, f->description[0] ? f->description : NULL);
}

static int read_body(struct call *c, const char *body, size_t n)
{
        struct error err = { 0 };

        c->body = json_read(body, n, &err);
        if (json_is_object(c->body))
                return 0;
        if (c->wire->anthropic)
                return lm_call_refuse(c, "json", "The request body is not valid JSON: %s",
                                      err.text);
        return lm_call_refuse_at(
                c, NULL, NULL, "json",
                "We could not parse the JSON body of your request. (HINT: This likely means you "
                "aren't using your HTTP library correctly. The API expects a JSON payload, but "
                "what was sent was not valid JSON: %s)",
                err.text);
}

static int check_length(struct call *c)
{
        int64_t window = c->world->window ? c->world->window : c->prompt.model->window;

        if (c->prompt.blocks.tokens <= window &&
            !faults_fire(&c->world->base.faults, FAULT_OVERFLOW, c->operation))
                return 0;
        c->wire->too_long(c, window);
        c->base.valid = true; /* the prompt was in order, only long */
        c->reason = NULL;
        return -1;
}

static bool begin(struct call *c)
{
        size_t n;
        const char *body = http_body(c->x, &n);

        c->version = mem_strdup(http_header(c->x, "anthropic-version"));
        return check_key(c) == 0 && check_faults(c) == 0 && check_rate(c) == 0 &&
               read_body(c, body, n) == 0 && c->wire->check(c) == 0;
}

/* ---- routes ---- */

static void serve(struct http_exchange *x, const struct lm_wire *wire)
{
        struct call *c = call_new(http_server_arg(x), x, wire, wire->name);

        if (begin(c) && check_length(c) == 0)
                lm_answer_make(c);
        if (c->status == 200 && faults_fire(&c->world->base.faults, FAULT_MUTE, c->operation))
                c->base.slow_ms = MUTE_MS;
        finish(c);
}

int lm_call_try(struct world *w, const struct lm_wire *wire, const char *body, size_t n,
                struct buf *out)
{
        struct call *c = call_new(w, NULL, wire, wire->name);
        int status;

        c->key = mem_strdup("");
        c->version = mem_strdup("2023-06-01");
        if (read_body(c, body, n) == 0 && wire->check(c) == 0 && check_length(c) == 0)
                lm_answer_make(c);
        if (c->status != 200)
                wire->error(c, &c->out);
        status = c->status;
        buf_add(out, c->out.data, c->out.len);
        buf_add(out, c->pieces.bytes.data, c->pieces.bytes.len);
        call_free(c);
        return status;
}

void lm_call_serve_messages(struct http_exchange *x)
{
        serve(x, &lm_messages);
}

void lm_call_serve_chat(struct http_exchange *x)
{
        serve(x, &lm_chat);
}

void lm_call_serve_responses(struct http_exchange *x)
{
        serve(x, &lm_responses);
}

void lm_call_serve_count(struct http_exchange *x)
{
        struct call *c = call_new(http_server_arg(x), x, &lm_messages, "count_tokens");

        if (begin(c))
                buf_addf(&c->out, "{\"input_tokens\":%lld}", (long long)c->prompt.blocks.tokens);
        finish(c);
}

/* Anthropic and OpenAI share this path; their headers differ. */
static struct call *models_call(struct http_exchange *x)
{
        bool anthropic = http_header(x, "anthropic-version") || http_header(x, "x-api-key");

        return call_new(http_server_arg(x), x, anthropic ? &lm_messages : &lm_chat, "models");
}

static void write_json(struct call *c, json_t *value)
{
        char *text = json_text(value);

        buf_addstr(&c->out, text);
        free(text);
        json_decref(value);
}

void lm_call_serve_models(struct http_exchange *x)
{
        struct call *c = models_call(x);

        if (check_key(c) == 0 && check_faults(c) == 0)
                write_json(c, lm_models_list(c->wire->anthropic));
        finish(c);
}

void lm_call_serve_model(struct http_exchange *x)
{
        struct call *c = models_call(x);
        const char *name = http_param(x, "id");
        const struct lm_model *m = lm_models_find(name, c->wire->anthropic);

        if (check_key(c) == 0 && check_faults(c) == 0) {
                if (m) {
                        write_json(c, lm_models_entry(m));
                } else {
                        c->status = 404;
                        if (c->wire->anthropic)
                                lm_call_refuse(c, "model", "model: %s", name);
                        else
                                lm_call_refuse_at(c, "model_not_found", "model", "model",
                                                  "The model '%s' does not exist", name);
                }
        }
        finish(c);
}
