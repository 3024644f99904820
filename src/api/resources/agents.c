/* The configured agents: their health, and a test question. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agents.h"
#include "api/compat/chat_bridge.h"
#include "api/core/page.h"
#include "api/core/reply_waiters.h"
#include "api/core/request.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/report/row_json.h"

#define TEST_WAIT_MS 120000

/* ---- listing ---- */

static void write_health(struct buf *b, const struct agent_health *h)
{
        jsonw_str(b, "health", !h->known ? "unknown" : h->healthy ? "healthy" : "unhealthy");
        jsonw_str(b, "why", h->why[0] ? h->why : NULL);
        if (h->known && h->latency_ms >= 0)
                jsonw_int(b, "latencyMs", h->latency_ms);
        else
                jsonw_null(b, "latencyMs");
        row_json_time(b, "checkedAt", h->checked_ms);
}

struct agent_list {
        struct buf *json;
        bool reasons; /* may quote chats: only for keys that reach all adapters */
};

static void write_sandbox(struct buf *b, const struct agent *a, bool reasons)
{
        struct agent_sandbox s = { 0 };

        if (a->ops->sandbox)
                a->ops->sandbox(a, &s);
        if (!s.kind) {
                jsonw_null(b, "sandbox");
                return;
        }
        jsonw_open_member(b, "sandbox", '{');
        jsonw_str(b, "kind", s.kind);
        jsonw_bool(b, "works", !s.problem);
        jsonw_str(b, "problem", reasons ? s.problem : NULL);
        jsonw_close(b, '}');
}

static void write_agent(void *arg, const struct agent *a, const struct agent_health *known)
{
        static const struct {
                unsigned flag;
                const char *name;
        } abilities[] = {
                { AGENT_REPEATABLE, "repeatable" }, { AGENT_BATCHES, "batches" },
                { AGENT_HISTORY, "history" },       { AGENT_STREAMS, "streams" },
                { AGENT_CANCELS, "cancels" },
        };
        unsigned can = agent_abilities(a);
        const struct agent_list *l = arg;
        struct agent_health h = *known;
        struct buf *b = l->json;

        if (!l->reasons) {
                h.why[0] = '\0';
                h.last_failure = "";
        }
        jsonw_open(b, '{');
        jsonw_str(b, "name", a->name);
        jsonw_str(b, "type", a->ops->type);
        write_health(b, &h);
        jsonw_int(b, "turns", (int64_t)h.turns);
        jsonw_int(b, "failures", (int64_t)h.failures);
        jsonw_int(b, "running", (int64_t)h.running);
        jsonw_int(b, "waiting", (int64_t)h.waiting);
        jsonw_open_member(b, "circuit", '{');
        jsonw_str(b, "state", h.circuit);
        jsonw_int(b, "failuresInARow", h.in_a_row);
        jsonw_int(b, "opened", (int64_t)h.opened);
        jsonw_int(b, "retryInMs", h.retry_ms);
        jsonw_close(b, '}');
        jsonw_str(b, "lastFailure", h.last_failure[0] ? h.last_failure : NULL);
        write_sandbox(b, a, l->reasons);
        jsonw_open_member(b, "abilities", '[');
        for (size_t i = 0; i < COUNT(abilities); i++)
                if (can & abilities[i].flag)
                        jsonw_str(b, NULL, abilities[i].name);
        jsonw_close(b, ']');
        if (l->reasons && a->ops->status)
                a->ops->status(a, b);
        jsonw_close(b, '}');
}

static void list(struct http_exchange *x)
{
        struct buf json;
        struct agent_list l = { &json, !caller_of(x)->adapters };

        buf_init(&json, 0);
        page_open(&json);
        agents_each(api_of(x)->env.agents, write_agent, &l);
        page_close(&json, false, NULL);
        reply_json(x, 200, &json);
}

/* ---- health ---- */

struct agent_health_job {
        struct api_job job;
        char *name;
};

static void on_checked(void *arg, const struct agent_health *h)
{
        struct agent_health_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);
        struct buf data;

        if (x) {
                buf_init(&data, 0);
                jsonw_open(&data, '{');
                jsonw_str(&data, "name", j->name);
                jsonw_bool(&data, "healthy", h->healthy);
                write_health(&data, h);
                jsonw_close(&data, '}');
                reply_data(x, 200, &data);
        }
        free(j->name);
        free(j);
}

static void check_health(struct http_exchange *x)
{
        const char *name = http_param(x, "name");
        struct agents *all = api_of(x)->env.agents;
        struct agent_health_job *j;
        struct error err;

        if (!name || !agents_has(all, name)) {
                reply_missing(x, "agent", name ? name : "");
                return;
        }
        j = mem_zalloc(sizeof(*j));
        j->name = mem_strdup(name);
        api_job_begin(&j->job, x);
        if (agents_check(all, name, on_checked, j, &err) == 0)
                return;
        reply_failed(api_job_end(&j->job), &err);
        free(j->name);
        free(j);
}

/* ---- test questions, in a separate chat ---- */

struct agent_test_ask {
        const char *text;
};

static const struct field agent_test_fields[] = {
        { "text", FIELD_STRING, .min = 1, .max = 4096, FIELD_AT(agent_test_ask, text),
          .fallback = "\"Are you there?\"", .help = "The question." },
        FIELD_END,
};

struct agent_test_job {
        struct api_job job;
        char *name;
        char trace[ID_TRACE_SIZE];
        int64_t began_ms;
};

static void test_job_free(struct agent_test_job *j)
{
        free(j->name);
        free(j);
}

static void on_reply(void *arg, const struct awaited_reply *r)
{
        struct agent_test_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);
        struct buf b;

        if (x) {
                buf_init(&b, 0);
                jsonw_open(&b, '{');
                jsonw_str(&b, "name", j->name);
                jsonw_bool(&b, "ok", r && strcmp(r->status, "done") == 0);
                jsonw_str(&b, "status", r ? r->status : "running");
                jsonw_str(&b, "text", r ? r->text : NULL);
                jsonw_str(&b, "reason", r ? r->reason : "it did not answer in time");
                if (r && r->turn > 0)
                        row_json_id(&b, "turnId", "trn-", r->turn);
                else
                        jsonw_null(&b, "turnId");
                jsonw_str(&b, "traceId", j->trace);
                jsonw_int(&b, "durationMs", clock_mono_ms() - j->began_ms);
                jsonw_int(&b, "tokensIn", r ? r->tokens_in : 0);
                jsonw_int(&b, "tokensOut", r ? r->tokens_out : 0);
                jsonw_close(&b, '}');
                reply_data(x, 200, &b);
        }
        test_job_free(j);
}

static void on_receipt(void *arg, const struct inbox_receipt *r)
{
        struct agent_test_job *j = arg;
        struct http_exchange *x;

        if (j->job.api && r->outcome != INBOX_FAILED) {
                snprintf(j->trace, sizeof(j->trace), "%s", r->trace);
                reply_waiters_add(j->job.api->waiters, r->event, false, TEST_WAIT_MS, on_reply, j);
                return;
        }
        x = api_job_end(&j->job);
        if (x)
                reply_failed(x, &r->error);
        test_job_free(j);
}

static void submit_test(struct http_exchange *x, struct adapter *adapter, const char *agent,
                        const char *text)
{
        struct chat_bridge_line line = { CHAT_BRIDGE_USER, NULL, text };
        struct chat_bridge_ask ask = { .protocol = "test",
                                       .agent = agent,
                                       .sender = caller_of(x)->name,
                                       .caller = caller_of(x)->id,
                                       .traceparent = http_header(x, "traceparent"),
                                       .lines = &line,
                                       .line_count = 1 };
        struct agent_test_job *j = mem_zalloc(sizeof(*j));

        j->name = mem_strdup(agent);
        j->began_ms = clock_mono_ms();
        api_job_begin(&j->job, x);
        chat_bridge_submit(api_of(x), adapter, &ask, on_receipt, j);
}

static void test(struct http_exchange *x)
{
        struct agent_test_ask ask = { .text = "Are you there?" };
        const char *name = http_param(x, "name"), *agent = name;
        struct adapter *adapter;
        struct body b;

        if (!reply_waiters_check(x) || request_body(x, &b, &ask) < 0)
                return;
        if (!chat_bridge_agent(x, &agent) || !agent)
                reply_missing(x, "agent", name);
        else if ((adapter = chat_bridge_choose_journaled(x)) &&
                 chat_bridge_check_agent(x, adapter, agent))
                submit_test(x, adapter, agent, ask.text);
        body_release(&b);
}

const struct route agents_routes[] = {
        { "GET", "/api/v2/agents", SCOPE_READ, list, REACH_SHARED,
          .summary = "The agents and their health; the reason of a failure is shown to keys that "
                     "reach all instances.",
          .status = 200, .answer = ROUTE_PAGE " of agents." },
        { "POST", "/api/v2/agents/:name/health", SCOPE_WRITE, check_health, REACH_ALL,
          .summary = "Check the health of an agent now.", .status = 200,
          .answer = "{\"data\": {\"name\", \"healthy\", \"latencyMs\", \"why\"}}" },
        { "POST", "/api/v2/agents/:name/test", SCOPE_WRITE, test, REACH_HANDLER,
          .summary = "Ask an agent a question, in a separate chat whose answer is only "
                     "journaled; shows the answer, how long it took and what it cost.",
          .body = agent_test_fields, .status = 200,
          .answer = "{\"data\": {\"name\", \"ok\", \"status\", \"text\", \"turnId\", "
                    "\"traceId\", \"durationMs\", \"tokensIn\", \"tokensOut\"}}",
          .example = ROUTE_JSON({ "text" : "Are you there?" }) },
        ROUTE_END,
};
