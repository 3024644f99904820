/*
 * One call to a language model per turn. The call lives in run->agent_data and ends with the turn.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/http/call_headers.h"
#include "agent/llm/chat_server.h"
#include "agent/llm/llm_call.h"
#include "agent/llm/model_facts.h"
#include "base/file.h"
#include "base/mem.h"

#define TABLE_MAX ((size_t)1 << 20)

#define AT(field) offsetof(struct llm_conf, field)
const struct setting llm_settings[] = {
#include "agent/llm/llm_settings.inc"
        SETTING_END
};

struct turn_call {
        struct llm_call call;
        struct turn_run *run;
};

/*
 * The answer for the user and, if it is not complete, the record for the operator. f: why the call
 * failed; NULL: the response is complete.
 */
static enum error_kind write_answer(const struct turn_call *t, const struct llm_failure *f,
                                    int64_t retry_after_ms, struct buf *text, struct buf *record)
{
        const struct llm_call *c = &t->call;
        const struct llm_reader *r = &c->reader;
        const char *it = c->llm->wire->subject ? c->llm->wire->subject : "model";
        const char *why = "the answer is empty";
        bool is_full = r->stop == LLM_LENGTH || r->stop == LLM_FULL;

        buf_add(text, r->text.data, r->text.len);
        if (f) {
                if (r->text.len)
                        buf_addstr(text, "\n\n(The answer breaks off here. ");
                llm_call_notice(c, f, retry_after_ms, text);
                if (r->text.len)
                        buf_addch(text, ')');
                llm_call_record(c, *f->text ? f->text : error_kind_name(f->kind), record);
                return f->kind;
        }
        if (r->too_large) {
                buf_addf(text, "%s(The answer breaks off here: it is longer than %zu KB.)",
                         r->text.len ? "\n\n" : "", LLM_ANSWER_MAX >> 10);
                llm_call_record(c, "the answer is too large", record);
                return ERR_LIMIT;
        }
        if (r->text.len) {
                if (is_full)
                        buf_addstr(text, "\n\n(The answer reached its length limit.)");
                return ERR_NONE;
        }
        /* an ambient turn may be silent, an addressed one may not */
        if (r->stop == LLM_STOPPED && t->run->mode == MODE_AMBIENT)
                return ERR_NONE;
        if (is_full) {
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
        llm_call_record(c, why, record);
        return r->stop == LLM_FILTERED ? ERR_INVALID : ERR_PROTOCOL;
}

static void on_done(void *arg, const struct llm_failure *f, int64_t retry_after_ms)
{
        struct turn_call *t = arg;
        const struct llm *m = t->call.llm;
        const struct llm_reader *r = &t->call.reader;
        struct model_limits limits;
        /* until the model has answered, asking another one only costs money */
        bool effect = r->text.len || (m->wire->acts && t->call.taken);
        struct turn_reply reply = { .tokens_in = usage_tokens_in(&r->usage),
                                    .tokens_cached = r->usage.cached,
                                    .tokens_out = r->usage.out };
        struct buf text, record;

        model_limits(m, &limits);
        reply.cost_microusd = usage_cost(&r->usage, &limits.prices);
        buf_init(&text, 0);
        buf_init(&record, 0);
        reply.kind = write_answer(t, f, retry_after_ms, &text, &record);
        reply.text = text.data;
        reply.error = reply.kind != ERR_NONE ? record.data : NULL;
        agent_finish(m->agent, t->run, &reply, effect ? EFFECT_POSSIBLE : EFFECT_NONE);
        llm_call_release(&t->call);
        free(t);
        buf_release(&text);
        buf_release(&record);
}

static void on_text(void *arg, const char *text, size_t n)
{
        const struct turn_call *t = arg;

        turn_delta(t->run, text, n);
}

static void on_retry(void *arg, int64_t wait_ms, const struct llm_failure *f)
{
        const struct turn_call *t = arg;
        char label[100];

        snprintf(label, sizeof(label), "%s, trying again in %" PRId64 " s",
                 f->kind == ERR_LIMIT ? "the model is busy" : "the model cannot be reached",
                 (wait_ms + 999) / 1000);
        turn_progress(t->run, label);
}

static void write_body(void *arg, struct buf *out)
{
        const struct turn_call *t = arg;

        llm_write_body(t->call.llm, t->run, out);
}

void llm_write_body(const struct llm *m, const struct turn_run *run, struct buf *out)
{
        struct model_request q = { .max_tokens = m->conf->max_tokens, .no_cache = true };
        struct llm_request r;
        struct buf system;
        char *session;

        if (m->wire->body) {
                m->wire->body(m, run, out);
                return;
        }
        session = agent_session(m->agent, run);
        buf_init(&system, 0);
        buf_addstr(&system, m->conf->system ? m->conf->system : "");
        if (run->prompt && *run->prompt)
                buf_addf(&system, "%s%s", system.len ? "\n\n" : "", run->prompt);
        q.system = system.data;
        q.messages = llm_prompt_messages(run);
        q.cache_key = session;
        llm_request_init(&r, m, &q);
        r.stream = m->conf->stream;
        m->wire->write(m, &r, out);
        llm_request_release(&r);
        json_decref(q.messages);
        buf_release(&system);
        free(session);
}

/* ---- agent_ops ---- */

void llm_start(struct agent *a, struct turn_run *run)
{
        static const struct llm_call_handlers handlers = {
                .write = write_body, .on_text = on_text, .on_retry = on_retry, .on_done = on_done
        };
        const struct llm *m = a->self;
        struct turn_call *t = mem_zalloc(sizeof(*t));

        t->run = run;
        t->call = (struct llm_call){ .llm = m,
                                     .run = run,
                                     .stream = m->conf->stream,
                                     .first = true,
                                     .handlers = &handlers,
                                     .arg = t };
        run->agent_data = t;
        llm_call_start(&t->call);
}

void llm_cancel(struct agent *a, struct turn_run *run)
{
        const struct llm *m = a->self;
        struct turn_call *t = run->agent_data;

        if (m->wire->cancel)
                m->wire->cancel(m, &t->call.reader, run);
        llm_call_release(&t->call);
        free(t);
        run->agent_data = NULL;
}

/* As model_table_read. */
static int read_table(const char *path, const char *model, struct model_row *row, struct error *err)
{
        struct buf text;
        int rc;

        buf_init(&text, 0);
        rc = file_read(path, TABLE_MAX, &text, err);
        if (rc == 0)
                rc = model_table_read(text.data, text.len, model, row, err);
        buf_release(&text);
        return rc;
}

int llm_check_conf(struct settings_source *src, const char *path, const void *settings,
                   struct error *err)
{
        const struct llm_conf *conf = settings;
        struct error wrong = { 0 };

        if (!conf->base_url && !(conf->key && secret_length(conf->key)))
                return settings_member_error(src, path, "apiKey", err,
                                             "is required for the public service, for example "
                                             "\"env:ANTHROPIC_API_KEY\"; for another service set "
                                             "'baseUrl'");
        if (conf->api_version && conf->api_version[strspn(conf->api_version, "0123456789-")])
                return settings_member_error(src, path, "apiVersion", err,
                                             "'%s' is not a date such as 2026-10-21",
                                             conf->api_version);
        if (conf->price_table && read_table(conf->price_table, NULL, NULL, &wrong) < 0)
                return settings_member_error(src, path, "priceTable", err, "%s", wrong.text);
        return call_headers_check_key(src, path, conf->key, err);
}

struct llm *llm_new(struct agent *a, const struct llm_wire *wire, const char *model)
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
        if (m->conf->price_table) {
                m->table = mem_zalloc(sizeof(*m->table));
                if (read_table(m->conf->price_table, model, m->table, NULL) != 1) {
                        free(m->table);
                        m->table = NULL;
                }
        }
        return m;
}

int llm_open(struct agent *a, const struct llm_wire *wire, const char *model)
{
        a->self = llm_new(a, wire, model);
        return 0;
}

/* Lists the models, which is free; a server without a list still counts as healthy. */
void llm_probe(struct llm *m, void *token)
{
        static const int without_list[] = { 404, 405, 0 };
        char *url = mem_printf("%s%s%s", m->base, m->wire->health, m->query);
        struct call_headers h;

        llm_call_headers(&h, m);
        call_headers_run(&h, NULL);
        health_probe_start(&m->probes, m->agent, token,
                           &(struct http_request){ .url = url, .headers = h.list }, without_list);
        call_headers_release(&h);
        free(url);
}

void llm_check_health(struct agent *a, void *token)
{
        llm_probe(a->self, token);
}

void llm_free(struct llm *m)
{
        health_probes_drop(&m->probes);
        model_facts_free(m->facts);
        free(m->path);
        free(m->base);
        free(m->query);
        free(m->table);
        free(m);
}

void llm_close(struct agent *a)
{
        llm_free(a->self);
}

/* ---- choosing a wire ---- */

/* "service/model": what follows the slash; NULL: another service. */
static const char *model_of(const struct llm_wire *w, const char *name)
{
        size_t n = strlen(w->service);

        return strncmp(name, w->service, n) == 0 && name[n] == '/' && name[n + 1] ? name + n + 1
                                                                                  : NULL;
}

const struct llm_wire *llm_wire_find(const char *wire, const char *name, const char *base_url,
                                     const char **model)
{
        static const struct llm_wire *const wires[] = { &anthropic_wire, &openai_wire,
                                                        &responses_wire };
        bool automatic = !wire || strcmp(wire, "auto") == 0;

        for (size_t i = 0; i < COUNT(wires); i++) {
                const char *rest = model_of(wires[i], name);

                if (!automatic && strcmp(wire, wires[i]->name) == 0) {
                        /* elsewhere a slash is part of the name */
                        *model = rest && !base_url ? rest : name;
                        return wires[i];
                }
                if (!automatic || !rest)
                        continue;
                *model = rest;
                /* OpenAI's newer models think and call tools only there; others do not have it */
                return wires[i] == &openai_wire && !base_url ? &responses_wire : wires[i];
        }
        *model = name;
        return automatic && base_url ? &openai_wire : NULL;
}
