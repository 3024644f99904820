#include "agent/llm/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/llm/chat_server.h"
#include "agent/llm/llm_call.h"
#include "agent/llm/llm_transcript.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#define IMAGE_TOKENS    1600
#define BYTES_PER_TOKEN 3.5
#define CUT_LEAST       4000 /* tokens; below, a prompt fits anywhere */

struct model_call {
        struct llm_call call;
        const struct model_request *q;
        struct model_handlers handlers;
        void *arg;
        struct llm_request request; /* built once, so that a retry is the same */
};

/* ---- estimates ---- */

static int64_t tokens_of(size_t bytes)
{
        return (int64_t)((double)bytes / BYTES_PER_TOKEN) + 1;
}

static int64_t estimate_block(const json_t *block)
{
        const char *type = json_str(block, "type", "");
        char *arguments;
        int64_t n;

        if (strcmp(type, "image") == 0)
                return IMAGE_TOKENS;
        if (strcmp(type, "document") == 0)
                return IMAGE_TOKENS + tokens_of(strlen(json_str(block, "data", ""))) / 10;
        if (strcmp(type, "toolCall") == 0) {
                arguments = json_text(json_object_get(block, "arguments"));
                n = tokens_of(strlen(arguments) + strlen(json_str(block, "name", "")));
                free(arguments);
                return n;
        }
        return tokens_of(strlen(json_str(block, "text", "")) +
                         strlen(json_str(block, "thinking", "")));
}

int64_t model_estimate(const json_t *messages)
{
        int64_t sum = 0;

        for (size_t i = 0; i < json_array_size(messages); i++) {
                const json_t *content = json_object_get(json_array_get(messages, i), "content");

                if (json_is_string(content))
                        sum += tokens_of(json_string_length(content));
                for (size_t k = 0; k < json_array_size(content); k++)
                        sum += estimate_block(json_array_get(content, k));
        }
        return sum;
}

int64_t model_estimate_request(const struct model_request *q)
{
        char *tools = q->tools ? json_text(q->tools) : NULL;
        int64_t sum = model_estimate(q->messages) + tokens_of(q->system ? strlen(q->system) : 0) +
                      tokens_of(tools ? strlen(tools) : 0);

        free(tools);
        return sum;
}

/* ---- answers ---- */

/* What a service did not say is estimated: a stream that was cut has its price as well. */
static void add_usage(const struct model_call *c, struct model_answer *a)
{
        const struct llm_reader *r = &c->call.reader;
        bool answered = r->block_count || llm_reader_is_complete(r);
        struct model_limits l;

        model_limits(c->call.llm, &l);
        a->usage = r->usage;
        if (answered && usage_tokens_in(&a->usage) == 0) {
                a->usage.in = model_estimate_request(c->q);
                a->cost_estimated = true;
        }
        if (r->block_count && (a->usage.out == 0 || !llm_reader_is_complete(r))) {
                int64_t out = tokens_of(r->text.len + r->rest_n);

                a->cost_estimated = true;
                if (out > a->usage.out)
                        a->usage.out = out;
        }
        a->cost_microusd = usage_cost(&a->usage, &l.prices);
}

/* Some local servers cut a long prompt without a word. */
static void warn_if_cut(const struct model_call *c, const struct model_answer *a)
{
        int64_t seen = usage_tokens_in(&a->usage), sent = model_estimate_request(c->q);

        if (!a->cost_estimated && seen > 0 && sent > CUT_LEAST && seen < sent * 2 / 5)
                log_warn("the model saw much less than was sent: its server may cut prompts; raise "
                         "its context length or set window",
                         LOG_S("model", c->call.llm->model), LOG_I("sentEstimate", sent),
                         LOG_I("seen", seen));
}

static json_t *usage_json(const struct model_answer *a)
{
        const struct usage *u = &a->usage;
        int64_t all = usage_tokens_in(u);

        return json_pack("{sI, sI, sI, sI, sI, s{sf}}", "input",
                         (json_int_t)(all - u->cached - u->written), "output", (json_int_t)u->out,
                         "cacheRead", (json_int_t)u->cached, "cacheWrite", (json_int_t)u->written,
                         "totalTokens", (json_int_t)(all + u->out), "cost", "total",
                         (double)a->cost_microusd / 1e6);
}

static enum model_stop stop_of(const struct llm_reader *r)
{
        switch (r->stop) {
        case LLM_CALLS:
                return MODEL_CALLS;
        case LLM_LENGTH:
                /* some servers fill the window and then say that the answer was too long */
                return r->block_count == 0 && r->usage.out == 0 ? MODEL_FULL : MODEL_LENGTH;
        case LLM_FILTERED:
                return MODEL_REFUSED;
        case LLM_PAUSED:
                return MODEL_PAUSED;
        case LLM_FULL:
                return MODEL_FULL;
        default:
                return r->too_large ? MODEL_LENGTH : MODEL_ENDED;
        }
}

static bool has_call(const json_t *content)
{
        for (size_t i = 0; i < json_array_size(content); i++) {
                if (llm_type_is(json_array_get(content, i), "toolCall"))
                        return true;
        }
        return false;
}

static json_t *message_of(const struct model_call *c, struct model_answer *a)
{
        static const char *const stops[] = {
                "stop", "toolUse", "length", "error", "pause", "length"
        };
        const struct llm *m = c->call.llm;
        const struct llm_reader *r = &c->call.reader;
        json_t *content = llm_reader_content(r, c->q->tools), *message;
        struct buf provider;

        a->stop = stop_of(r);
        /* whatever the service says: with calls it waits for results, without it does not */
        if (a->stop == MODEL_CALLS || a->stop == MODEL_ENDED)
                a->stop = has_call(content) ? MODEL_CALLS : MODEL_ENDED;
        buf_init(&provider, 0);
        llm_provider(m, &provider);
        message = json_pack("{ss, so, ss, ss, ss, so, ss, sI}", "role", "assistant", "content",
                            content, "api", m->wire->api, "provider", provider.data, "model",
                            m->model, "usage", usage_json(a), "stopReason", stops[a->stop],
                            "timestamp", (json_int_t)clock_wall_ms());
        if (*r->run_id)
                json_object_set_new(message, "responseId", json_string(r->run_id));
        if (*r->stop_word)
                json_object_set_new(message, "stopWord", json_string(r->stop_word));
        if (a->stop == MODEL_REFUSED)
                json_object_set_new(message, "errorMessage",
                                    json_string(*r->detail ? r->detail : "refused"));
        buf_release(&provider);
        return message;
}

static void call_free(struct model_call *c)
{
        llm_call_release(&c->call);
        llm_request_release(&c->request);
        free(c);
}

static void on_done(void *arg, const struct llm_failure *f, int64_t retry_after_ms)
{
        struct model_call *c = arg;
        struct model_answer a = { .failure = f, .retry_after_ms = retry_after_ms };
        struct buf notice, record;

        buf_init(&notice, 0);
        buf_init(&record, 0);
        add_usage(c, &a);
        if (f) {
                llm_call_notice(&c->call, f, retry_after_ms, &notice);
                llm_call_record(&c->call, *f->text ? f->text : error_kind_name(f->kind), &record);
                a.notice = notice.data;
                a.record = record.data;
        } else
                warn_if_cut(c, &a);
        a.message = message_of(c, &a);
        if (f)
                json_object_set_new(a.message, "stopReason", json_string("error"));
        c->handlers.on_done(c->arg, &a);
        json_decref(a.message);
        buf_release(&notice);
        buf_release(&record);
        call_free(c);
}

static void on_text(void *arg, const char *text, size_t n)
{
        const struct model_call *c = arg;

        if (c->handlers.on_text)
                c->handlers.on_text(c->arg, text, n);
}

static void on_thinking(void *arg, const char *text, size_t n)
{
        const struct model_call *c = arg;

        if (c->handlers.on_thinking)
                c->handlers.on_thinking(c->arg, text, n);
}

static void on_call(void *arg, const char *name)
{
        const struct model_call *c = arg;

        if (c->handlers.on_call)
                c->handlers.on_call(c->arg, llm_tool_name(c->q->tools, name));
}

static void on_retry(void *arg, int64_t wait_ms, const struct llm_failure *f)
{
        const struct model_call *c = arg;
        struct buf why;

        buf_init(&why, 0);
        llm_call_record(&c->call, *f->text ? f->text : error_kind_name(f->kind), &why);
        if (c->handlers.on_retry)
                c->handlers.on_retry(c->arg, wait_ms, why.data);
        buf_release(&why);
}

/* ---- asking ---- */

static void write_body(void *arg, struct buf *out)
{
        const struct model_call *c = arg;

        c->call.llm->wire->write(c->call.llm, &c->request, out);
}

struct model_call *model_ask(const struct llm *m, const struct model_request *q,
                             const struct model_handlers *h, void *arg)
{
        static const struct llm_call_handlers handlers = { .write = write_body,
                                                           .on_text = on_text,
                                                           .on_thinking = on_thinking,
                                                           .on_call = on_call,
                                                           .on_retry = on_retry,
                                                           .on_done = on_done };
        struct model_call *c = mem_zalloc(sizeof(*c));
        struct error err = { 0 };

        c->q = q;
        c->handlers = *h;
        c->arg = arg;
        c->call = (struct llm_call){
                .llm = m,
                .run = q->run,
                .stream = m->conf->stream,
                .patient = true,
                .session =
                        m->wire == &openai_wire && chat_server_of(m)->routes ? q->cache_key : NULL,
                .handlers = &handlers,
                .arg = c,
        };
        llm_request_init(&c->request, m, q);
        c->request.stream = m->conf->stream;
        if (model_check(c->request.messages, &err) < 0)
                llm_call_fail(&c->call, err.kind, err.text); /* sending would only say so again */
        else
                llm_call_start(&c->call);
        return c;
}

void model_spent(const struct model_call *c, struct model_answer *out)
{
        *out = (struct model_answer){ .retry_after_ms = -1 };
        add_usage(c, out);
}

void model_abort(struct model_call *c)
{
        call_free(c);
}
