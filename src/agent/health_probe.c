#include "agent/agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

#define QUOTE_MAX 100 /* bytes kept of a failed response */

struct health_probe {
        void *token;
        const int *also;
        struct http_call *http;
        LIST_ENTRY(health_probe) next;
};

static void describe(const struct http_result *result, char *why, size_t size)
{
        const char *body = result->body ? result->body : "";
        char *quote;

        if (result->kind != ERR_NONE) {
                snprintf(why, size, "%s",
                         result->why ? result->why : error_kind_name(result->kind));
        } else if (result->status == 401 || result->status == 403) {
                snprintf(why, size, "HTTP %d: the key is refused", result->status);
        } else {
                quote = utf8_clean(body, utf8_prefix(body, result->body_n, UTF8_BYTES, QUOTE_MAX));
                snprintf(why, size, "HTTP %d%s%s", result->status, *quote ? ": " : "", quote);
                free(quote);
        }
        log_redact(why);
}

static void on_done(void *arg, const struct http_result *result)
{
        struct health_probe *p = arg;
        void *token = p->token;
        bool healthy = result->status >= 200 && result->status < 300;
        char why[200] = "";

        for (const int *also = p->also; also && *also; also++)
                healthy = healthy || *also == result->status;
        healthy = healthy && result->kind == ERR_NONE;
        if (!healthy)
                describe(result, why, sizeof(why));
        LIST_REMOVE(p, next);
        free(p);
        agent_health_report(token, healthy, result->elapsed_ms, why);
}

void health_probe_start(struct health_probes *all, struct agent *a, void *token,
                        const struct http_request *request, const int *also)
{
        static const struct http_handlers handlers = { .on_done = on_done };
        struct http_request asked = *request;
        struct health_probe *p = mem_zalloc(sizeof(*p));

        p->token = token;
        p->also = also;
        asked.repeatable = true;
        if (asked.total_ms == 0)
                asked.total_ms = HEALTH_PROBE_MS;
        LIST_INSERT_HEAD(all, p, next);
        p->http = http_call_start(a->http, &asked, &handlers, p);
}

void health_probes_drop(struct health_probes *all)
{
        struct health_probe *p;

        while ((p = LIST_FIRST(all))) {
                LIST_REMOVE(p, next);
                http_call_abort(p->http);
                free(p);
        }
}
