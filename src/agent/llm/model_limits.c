/*
 * What is known of a model, see model.h.
 *
 * Anthropic describes one model at /v1/models/ID. Others list all at /models, with as many names
 * for the size of the window as there are servers; some say nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/http/call_headers.h"
#include "agent/llm/llm_call.h"
#include "agent/llm/model_facts.h"
#include "base/json.h"
#include "base/mem.h"
#include "net/http_text.h"

#define WINDOW_GUESS   32768 /* of an unknown model: rather compact too early */
#define OUTPUT_DEFAULT 32000 /* the longest answer to ask for unless configured */
#define ASK_MS         10000
#define ASK_AGAIN_MS   (10 * 60 * 1000)
#define LIST_MAX       ((size_t)8 << 20)

struct model_facts {
        const struct llm *m;
        struct http_call *http;
        bool known;
        int64_t asked_ms;
        struct model_row row;
};

void model_facts_free(struct model_facts *f)
{
        if (f)
                http_call_abort(f->http);
        free(f);
}

/* ---- reading ---- */

static int64_t first_count(const json_t *object, const char *const *keys)
{
        for (; *keys; keys++) {
                int64_t n = json_int(object, *keys, 0);

                if (n > 0)
                        return n;
        }
        return -1;
}

static int supports(const json_t *capabilities, const char *what)
{
        const json_t *s = json_object_get(json_object_get(capabilities, what), "supported");

        return json_is_boolean(s) ? json_is_true(s) : -1;
}

/* The id is not compared: an alias is answered with its version. */
static bool read_anthropic(const json_t *answer, struct model_row *out)
{
        const json_t *can = json_object_get(answer, "capabilities");
        const json_t *types = json_object_get(json_object_get(can, "thinking"), "types");

        if (strcmp(json_str(answer, "id", ""), "") == 0)
                return false;
        out->window = json_int(answer, "max_input_tokens", -1);
        out->output = json_int(answer, "max_tokens", -1);
        out->images = supports(can, "image_input");
        out->documents = supports(can, "pdf_input");
        out->thinking = supports(can, "thinking");
        out->adaptive = supports(types, "adaptive");
        return true;
}

/* OpenRouter: US dollars per token, as a string. */
static double read_price(const json_t *pricing, const char *key)
{
        const char *text = json_str(pricing, key, "");

        return *text >= '0' && *text <= '9' ? strtod(text, NULL) * 1e6 : -1;
}

static int lists(const json_t *array, const char *word)
{
        for (size_t i = 0; i < json_array_size(array); i++) {
                const char *value = json_string_value(json_array_get(array, i));

                if (value && strcmp(value, word) == 0)
                        return 1;
        }
        return json_is_array(array) ? 0 : -1;
}

static bool read_entry(const json_t *entry, struct model_row *out)
{
        /* OpenRouter, Together, Fireworks; vLLM; Groq; Mistral; LM Studio; others */
        static const char *const windows[] = { "context_length",        "max_model_len",
                                               "context_window",        "max_context_length",
                                               "max_input_tokens",      "n_ctx",
                                               "loaded_context_length", NULL };
        static const char *const outputs[] = { "max_completion_tokens", "max_output_tokens",
                                               "max_output_length", NULL };
        static const char *const meta[] = { "n_ctx", "n_ctx_train", NULL }; /* llama.cpp */
        const json_t *top = json_object_get(entry, "top_provider");
        const json_t *pricing = json_object_get(entry, "pricing");

        out->window = first_count(entry, windows);
        if (out->window < 0)
                out->window = first_count(json_object_get(entry, "meta"), meta);
        out->output = first_count(entry, outputs);
        if (out->output < 0)
                out->output = first_count(top, outputs);
        out->images =
                lists(json_object_get(json_object_get(entry, "architecture"), "input_modalities"),
                      "image");
        out->documents =
                lists(json_object_get(json_object_get(entry, "architecture"), "input_modalities"),
                      "file");
        out->thinking = lists(json_object_get(entry, "supported_parameters"), "reasoning");
        out->prices.in = read_price(pricing, "prompt");
        out->prices.out = read_price(pricing, "completion");
        out->prices.cached = read_price(pricing, "input_cache_read");
        out->prices.written = read_price(pricing, "input_cache_write");
        out->prices.written_1h = out->prices.written;
        if (out->prices.out < 0)
                out->prices.in = -1;
        return out->window > 0 || out->prices.in >= 0;
}

bool model_facts_read(const struct llm_wire *wire, const char *model, const json_t *answer,
                      struct model_row *out)
{
        const json_t *data = json_object_get(answer, "data");

        *out = (struct model_row){ -1, -1, -1, -1, -1, -1, { .in = -1 } };
        if (wire == &anthropic_wire)
                return read_anthropic(answer, out);
        for (size_t i = 0; i < json_array_size(data); i++) {
                const json_t *entry = json_array_get(data, i);

                if (strcmp(json_str(entry, "id", ""), model) == 0)
                        return read_entry(entry, out);
        }
        return false;
}

/* ---- asking ---- */

static void on_answer(void *arg, const struct http_result *result)
{
        struct model_facts *f = arg;
        json_t *answer = result->status == 200 && result->body
                                 ? json_read_lenient(result->body, result->body_n, NULL)
                                 : NULL;

        f->http = NULL;
        f->known = answer && model_facts_read(f->m->wire, f->m->model, answer, &f->row);
        json_decref(answer);
}

static void ask(struct model_facts *f)
{
        static const struct http_handlers handlers = { .on_done = on_answer };
        const struct llm *m = f->m;
        char *id = http_text_escape(m->model);
        char *url = mem_printf("%s%s%s%s%s", m->base, m->wire->health,
                               m->wire == &anthropic_wire ? "/" : "",
                               m->wire == &anthropic_wire ? id : "", m->query);
        struct call_headers h;

        llm_call_headers(&h, m);
        call_headers_run(&h, NULL);
        f->asked_ms = loop_now_ms(m->agent->loop);
        f->http = http_call_start(m->agent->http,
                                  &(struct http_request){ .url = url,
                                                          .headers = h.list,
                                                          .total_ms = ASK_MS,
                                                          .max_body = LIST_MAX,
                                                          .repeatable = true },
                                  &handlers, f);
        call_headers_release(&h);
        free(url);
        free(id);
}

void model_learn(struct llm *m)
{
        if (m->facts || !m->wire->api)
                return;
        m->facts = mem_zalloc(sizeof(*m->facts));
        m->facts->m = m;
        ask(m->facts);
}

/* NULL: nothing yet. */
static const struct model_row *facts_of(struct model_facts *f)
{
        if (!f)
                return NULL;
        if (!f->known && !f->http && loop_now_ms(f->m->agent->loop) - f->asked_ms > ASK_AGAIN_MS)
                ask(f);
        return f->known ? &f->row : NULL;
}

/* ---- limits ---- */

static void apply_flag(bool *to, int said)
{
        if (said >= 0)
                *to = said;
}

static void apply_row(struct model_limits *l, const struct model_row *row)
{
        if (!row)
                return;
        l->known = true;
        if (row->window > 0)
                l->window = row->window;
        if (row->output > 0)
                l->output = row->output;
        apply_flag(&l->images, row->images);
        apply_flag(&l->documents, row->documents);
        apply_flag(&l->thinking, row->thinking);
        apply_flag(&l->adaptive, row->adaptive);
        if (row->prices.in >= 0)
                l->prices = row->prices;
}

static void apply_conf(struct model_limits *l, const struct llm_conf *conf)
{
        const struct usage_prices *p = &conf->prices;
        int64_t most = conf->max_tokens > 0 ? conf->max_tokens : OUTPUT_DEFAULT;

        if (conf->window > 0)
                l->window = conf->window;
        if (l->output > most || (l->output == 0 && conf->max_tokens > 0))
                l->output = most;
        if (p->in >= 0 || p->out >= 0)
                l->prices = (struct usage_prices){ .in = p->in > 0 ? p->in : 0,
                                                   .out = p->out > 0 ? p->out : 0,
                                                   .cached = -1,
                                                   .written = -1,
                                                   .written_1h = -1 };
        if (p->cached >= 0)
                l->prices.cached = p->cached;
        if (p->written >= 0)
                l->prices.written = p->written;
        if (p->written_1h >= 0)
                l->prices.written_1h = p->written_1h;
}

static void apply_shares(const struct llm_wire *w, double in, double *cached, double *written,
                         double *written_1h)
{
        if (*cached < 0)
                *cached = in * w->cache_shares.cached;
        if (*written < 0)
                *written = in * w->cache_shares.written;
        if (*written_1h < 0)
                *written_1h = in * w->cache_shares.written_1h;
}

void model_limits(const struct llm *m, struct model_limits *out)
{
        struct usage_prices *p = &out->prices;

        *out = (struct model_limits){ .window = WINDOW_GUESS,
                                      .images = true,
                                      .documents = m->wire != &openai_wire,
                                      .thinking = true,
                                      .adaptive = true };
        apply_row(out, model_table_find(m->model));
        apply_row(out, facts_of(m->facts));
        apply_row(out, m->table);
        apply_conf(out, m->conf);
        apply_shares(m->wire, p->in, &p->cached, &p->written, &p->written_1h);
        apply_shares(m->wire, p->then.in, &p->then.cached, &p->then.written, &p->then.written_1h);
}
