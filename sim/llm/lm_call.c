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
#include "sim/llm/lm_scenario.h"

#define MAX_PAUSED   10000
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

/* Fails the call without blaming the request. */
static int fail(struct call *c, int status, const char *message)
{
        c->status = status;
        snprintf(c->problem, sizeof(c->problem), "%s", message);
        return -1;
}

/* ---- the end of a call ---- */

static void write_usage(const struct call *c, struct buf *b)
{
        const struct lm_answer *a = &c->answer;

        jsonw_open_member(b, "usage", '{');
        jsonw_int(b, "input", a->input);
        jsonw_int(b, "output", a->output);
        jsonw_int(b, "cache_read", a->cached.read);
        jsonw_int(b, "cache_write", a->cached.written_5m + a->cached.written_1h);
        jsonw_close(b, '}');
}

static void write_answer(const struct call *c, struct buf *b)
{
        char *content = json_text(c->answer.content);

        jsonw_str(b, "stop", c->answer.stop);
        jsonw_raw(b, "content", content);
        write_usage(c, b);
        free(content);
}

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
                write_answer(c, b);
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
        fail(c, status, "Internal server error");
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
        return fail(c, 429, "This request would exceed your organization's rate limit");
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

/* Fails the call, or marks it for its end. */
static int check_faults(struct call *c)
{
        const struct fault *f = call_base_fault(&c->base, c->operation);

        if (!f)
                return 0;
        if (f->kind == FAULT_FLOOD)
                c->retry_after = f->retry_after;
        if (f->kind == FAULT_CUT_BEFORE)
                return fail(c, 599, "cut before the effect");
        if (f->kind == FAULT_FLOOD)
                return fail(c, 429, words_of(429));
        return fail(c, f->status, f->description[0] ? f->description : words_of(f->status));
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

/* ---- the answer ---- */

static bool is_type(const json_t *part, const char *type)
{
        return strcmp(json_str(part, "type", ""), type) == 0;
}

/* Calls the tool that the request demands, unless the answer calls one. */
static void force_call(struct call *c)
{
        const char *name = c->prompt.forced;
        json_t *content = c->answer.content;

        if (strcmp(name, "*") == 0)
                name = json_str(json_array_get(c->prompt.tools, 0), "name", "");
        if (!*name || strcmp(c->answer.stop, "tool_use") == 0)
                return;
        json_array_clear(content);
        lm_answer_call(&c->answer, name, "{}");
        snprintf(c->answer.stop, sizeof(c->answer.stop), "tool_use");
}

/* Leaves out what this request cannot have: thinking nobody wanted, a second call. */
static void fit(struct call *c)
{
        json_t *content = c->answer.content;
        bool called = false;

        force_call(c);
        if (c->prompt.warms) {
                json_array_clear(content);
                snprintf(c->answer.stop, sizeof(c->answer.stop), "max_tokens");
                c->answer.output = 0;
        }

        for (size_t i = 0; i < json_array_size(content);) {
                json_t *part = json_array_get(content, i);
                bool call = is_type(part, "call");
                bool thought = is_type(part, "thinking") || is_type(part, "redacted");

                if ((thought && !c->prompt.thinks) || (call && called && c->prompt.one_call)) {
                        json_array_remove(content, i);
                        continue;
                }
                called = called || call;
                i++;
        }
}

static const char *text_key(const json_t *part)
{
        return is_type(part, "call") ? "arguments" : is_type(part, "wait") ? NULL : "text";
}

/* Cuts the text of a block to at most n bytes. */
static void shorten(json_t *part, size_t n)
{
        const char *text = json_str(part, text_key(part), "");
        size_t keep = lm_pieces_step(text, strlen(text), n);

        json_object_set_new(part, text_key(part), json_stringn(text, keep < n ? keep : n));
}

/* Counts the output; ends it with max_tokens beyond the limit. */
static void limit_output(struct call *c, int64_t limit)
{
        struct lm_answer *a = &c->answer;
        int64_t used = 0;
        json_t *part;
        size_t i;

        a->reasoning = 0;
        json_array_foreach(a->content, i, part) {
                const char *key = text_key(part), *text = key ? json_str(part, key, "") : "";
                int64_t tokens = lm_tokens_of(text, strlen(text));

                if (key && used + tokens > limit && limit > 0) {
                        shorten(part, (size_t)(limit - used) * LM_BYTES_PER_TOKEN);
                        while (json_array_size(a->content) > i + 1)
                                json_array_remove(a->content, i + 1);
                        snprintf(a->stop, sizeof(a->stop), "max_tokens");
                        tokens = limit - used;
                }
                used += tokens;
                if (is_type(part, "thinking"))
                        a->reasoning += tokens;
        }
        if (a->output < 0)
                a->output = used > 0 ? used : 1;
}

static json_t *last_of(json_t *content, const char *type)
{
        for (size_t i = json_array_size(content); i-- > 0;) {
                if (is_type(json_array_get(content, i), type))
                        return json_array_get(content, i);
        }
        return NULL;
}

/* Cuts the last block in half. */
static void truncate_answer(struct lm_answer *a)
{
        json_t *last = last_of(a->content, "call");

        if (!last)
                last = last_of(a->content, "text");
        if (last)
                shorten(last, strlen(json_str(last, text_key(last), "")) / 2);
        while (last && json_array_get(a->content, json_array_size(a->content) - 1) != last)
                json_array_remove(a->content, json_array_size(a->content) - 1);
        snprintf(a->stop, sizeof(a->stop), "max_tokens");
}

static void spoil_arguments(struct lm_answer *a)
{
        json_t *last = last_of(a->content, "call");
        char *bad;

        if (!last)
                return;
        bad = mem_printf("%s, \"oops\": ]", json_str(last, "arguments", "{}"));
        json_object_set_new(last, "arguments", json_string(bad));
        free(bad);
}

static void apply_faults(struct call *c)
{
        struct faults *f = &c->world->base.faults;
        struct lm_answer *a = &c->answer;
        const struct fault *fault;

        if (faults_fire(f, FAULT_EMPTY, c->operation)) {
                json_array_clear(a->content);
                snprintf(a->stop, sizeof(a->stop), "end_turn");
        }
        if (faults_fire(f, FAULT_REFUSE, c->operation)) {
                json_array_clear(a->content);
                snprintf(a->stop, sizeof(a->stop), "refusal");
        }
        if (faults_fire(f, FAULT_PAUSE, c->operation)) {
                json_array_clear(a->content);
                json_array_append_new(
                        a->content, json_pack("{s:s,s:s}", "type", "text", "text", "One moment."));
                snprintf(a->stop, sizeof(a->stop), "pause_turn");
        }
        if (faults_fire(f, FAULT_TRUNCATE, c->operation))
                truncate_answer(a);
        if (faults_fire(f, FAULT_BAD_JSON, c->operation))
                spoil_arguments(a);
        a->same_index = faults_fire(f, FAULT_SAME_INDEX, c->operation) != NULL;
        a->no_end = faults_fire(f, FAULT_NO_DONE, c->operation) != NULL;
        if ((fault = faults_fire(f, FAULT_SLOW_PIECES, c->operation)))
                a->piece_ms = fault->ms;
}

/* Cuts or breaks the stream, which is written; a whole answer is not sent at all. */
static void break_stream(struct call *c)
{
        struct faults *f = &c->world->base.faults;
        const struct fault *at = faults_fire(f, FAULT_CUT_AT, c->operation);
        const struct fault *pieces = faults_fire(f, FAULT_CUT_PIECES, c->operation);
        const struct fault *overload = faults_fire(f, FAULT_OVERLOAD, c->operation);
        struct lm_pieces *p = &c->pieces;

        if (overload && !c->streams) {
                c->status = c->wire->anthropic ? 529 : 503;
                fail(c, c->status, words_of(c->status));
        } else if (overload) {
                lm_pieces_keep(p, (size_t)overload->at);
                c->wire->fail(c, p);
        }
        if ((at || pieces) && !c->streams)
                c->base.cut = true;
        if (pieces && (size_t)pieces->at < p->count)
                p->cut_at = pieces->at > 0 ? (int64_t)p->list[pieces->at - 1].end : 0;
        if (at && at->at < (int64_t)p->bytes.len)
                p->cut_at = at->at;
}

static void count_input(struct call *c)
{
        struct world *w = c->world;
        struct lm_answer *a = &c->answer;
        const struct lm_model *m = c->prompt.model;
        char *scope = mem_printf("%s\n%s\n%s", c->key, m->name,
                                 json_str(c->body, "prompt_cache_key", ""));

        a->cached = c->wire->anthropic ? lm_cache_marked(w->cache, scope, &c->prompt.blocks,
                                                         m->cache_from, w->cache_ms)
                                       : lm_cache_auto(w->cache, scope, &c->prompt.blocks,
                                                       m->cache_from, w->cache_ms);
        free(scope);
        if (a->cache_read >= 0)
                a->cached.read = a->cache_read;
        if (a->cache_write >= 0)
                a->cached = (struct lm_cached){ a->cached.read, a->cache_write, 0 };
        if (a->input < 0)
                a->input = c->prompt.blocks.tokens;
}

static void note_answer(struct call *c)
{
        struct buf *b = journal_open(c->world->base.sent, "answer", 0);

        jsonw_str(b, "operation", c->operation);
        jsonw_str(b, "model", c->prompt.model->name);
        write_answer(c, b);
        journal_close(c->world->base.sent);
        c->world->answer_count++;
        c->world->base.message_count++;
}

static void remember_pause(struct call *c)
{
        const json_t *text = last_of(c->answer.content, "text");
        char sum[SHA256_HEX_SIZE];

        if (strcmp(c->answer.stop, "pause_turn") != 0 || !text)
                return;
        crypto_sha256_hex(json_str(text, "text", ""), strlen(json_str(text, "text", "")), sum);
        if (c->world->paused.count >= MAX_PAUSED) {
                map_release(&c->world->paused);
                map_init(&c->world->paused);
        }
        map_put(&c->world->paused, sum, c->world);
}

static void write_out(struct call *c)
{
        struct lm_pieces *p = &c->pieces;

        c->streams = c->prompt.stream;
        if (!c->streams) {
                c->wire->write(c, &c->out);
                if (c->world->first_ms > c->base.slow_ms)
                        c->base.slow_ms = c->world->first_ms;
                return;
        }
        p->wait_ms = c->answer.piece_ms;
        p->next_wait_ms = c->world->first_ms;
        c->wire->stream(c, p);
}

static void answer(struct call *c)
{
        struct lm_answer *a = &c->answer;

        lm_scenario_answer(c->world, &c->prompt, c->wire->name, a);
        if (a->status) {
                c->retry_after = a->retry_after;
                fail(c, a->status, a->message[0] ? a->message : words_of(a->status));
                return;
        }
        fit(c);
        apply_faults(c);
        if (a->piece_ms < 0)
                a->piece_ms = c->world->piece_ms;
        if (a->piece_bytes < 1)
                a->piece_bytes = (int64_t)c->world->piece_bytes;
        limit_output(c, c->prompt.max_tokens);
        count_input(c);
        remember_pause(c);
        write_out(c);
        note_answer(c);
        break_stream(c);
}

static void serve(struct http_exchange *x, const struct lm_wire *wire)
{
        struct call *c = call_new(http_server_arg(x), x, wire, wire->name);

        if (begin(c) && check_length(c) == 0)
                answer(c);
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
                answer(c);
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
