/* The configured agents and how they are. */
#include <stdlib.h>

#include "agent/agent.h"
#include "api/core/api_private.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/report/row_json.h"

static const struct {
        unsigned flag;
        const char *name;
} abilities[] = {
        { AGENT_REPEATABLE, "repeatable" }, { AGENT_BATCHES, "batches" },
        { AGENT_HISTORY, "history" },       { AGENT_STREAMS, "streams" },
        { AGENT_CANCELS, "cancels" },
};

static void write_health(struct buf *b, const struct agent_health *h)
{
        jsonw_str(b, "health", !h->known ? "unknown" : h->healthy ? "healthy" : "unhealthy");
        jsonw_str(b, "why", h->why[0] ? h->why : NULL);
        if (h->known)
                jsonw_int(b, "latencyMs", h->latency_ms);
        else
                jsonw_null(b, "latencyMs");
        show_time(b, "checkedAt", h->checked_ms);
}

static void write_circuit(struct buf *b, const struct agent_health *h)
{
        jsonw_open_member(b, "circuit", '{');
        jsonw_str(b, "state", h->circuit);
        jsonw_int(b, "failuresInARow", h->in_a_row);
        jsonw_int(b, "opened", (int64_t)h->opened);
        jsonw_int(b, "retryInMs", h->retry_ms);
        jsonw_close(b, '}');
}

struct listing {
        struct buf *json;
        bool reasons; /* they quote what was said elsewhere: for keys that reach everything */
};

static void write_agent(void *arg, const struct agent *a, const struct agent_health *known)
{
        unsigned can = a->ops->abilities ? a->ops->abilities(a) : a->ops->can;
        const struct listing *l = arg;
        struct agent_health shown = *known, *h = &shown;
        struct buf *b = l->json;

        if (!l->reasons) {
                h->why[0] = '\0';
                h->last_failure = "";
        }
        jsonw_open(b, '{');
        jsonw_str(b, "name", a->name);
        jsonw_str(b, "type", a->ops->type);
        write_health(b, h);
        jsonw_int(b, "turns", (int64_t)h->turns);
        jsonw_int(b, "failures", (int64_t)h->failures);
        jsonw_int(b, "running", (int64_t)h->running);
        jsonw_int(b, "waiting", (int64_t)h->waiting);
        write_circuit(b, h);
        jsonw_str(b, "lastFailure", h->last_failure[0] ? h->last_failure : NULL);
        jsonw_open_member(b, "abilities", '[');
        for (size_t i = 0; i < COUNT(abilities); i++)
                if (can & abilities[i].flag)
                        jsonw_str(b, NULL, abilities[i].name);
        jsonw_close(b, ']');
        jsonw_close(b, '}');
}

void agents_list(struct http_exchange *x)
{
        struct buf json;
        struct listing l = { &json, !caller_of(x)->adapters };

        buf_init(&json, 0);
        page_begin(&json);
        agents_each(api_of(x)->env.agents, write_agent, &l);
        page_end(&json, false, NULL);
        reply_json(x, 200, &json);
}

struct check {
        struct api_job job;
        char *name;
};

static void on_checked(void *arg, const struct agent_health *h)
{
        struct check *c = arg;
        struct http_exchange *x = api_job_end(&c->job);
        struct buf data;

        if (x) {
                buf_init(&data, 0);
                jsonw_open(&data, '{');
                jsonw_str(&data, "name", c->name);
                jsonw_bool(&data, "healthy", h->healthy);
                write_health(&data, h);
                jsonw_close(&data, '}');
                reply_data(x, 200, &data);
        }
        free(c->name);
        free(c);
}

void agents_health(struct http_exchange *x)
{
        const char *name = http_param(x, "name");
        struct agents *all = api_of(x)->env.agents;
        struct error err;
        struct check *c;

        if (!name || !agents_has(all, name)) {
                reply_missing(x, "agent", name ? name : "");
                return;
        }
        c = mem_zalloc(sizeof(*c));
        c->name = mem_strdup(name);
        api_job_begin(&c->job, x);
        if (agents_check(all, name, on_checked, c, &err) == 0)
                return;
        reply_failed(api_job_end(&c->job), &err);
        free(c->name);
        free(c);
}
