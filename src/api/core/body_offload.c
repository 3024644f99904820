/*
 * Large bodies are parsed on a pool thread before their handler runs. For the client nothing
 * changes: limits and mistakes are the same. The handler does not run for a client that has gone,
 * nor once the API has closed.
 */
#include <stdlib.h>

#include "api/core/api_private.h"
#include "base/mem.h"

static void on_parsed(void *arg, const struct json_parsed *parsed)
{
        struct api_job *j = arg;
        struct http_exchange *x = api_job_end(j);
        const struct route *route;

        free(j);
        if (!x)
                return;
        if (http_is_gone(x)) {
                http_refuse(x, 499, "HTTP_ERROR", "the client has gone");
                return;
        }
        route = http_route_of(x)->more;
        api_of(x)->parsed = parsed;
        route->run(x);
        api_of(x)->parsed = NULL;
}

void request_run(struct http_exchange *x)
{
        const struct route *route = http_route_of(x)->more;
        struct api_job *j;
        char *text;
        size_t n = 0;

        if (api_of(x)->closed) {
                http_refuse(x, 503, "UNAVAILABLE", "shutting down");
                return;
        }
        http_body(x, &n);
        if ((!route->body && !route->reads_body) || n < JSON_OFFLOAD_MIN) {
                route->run(x);
                return;
        }
        text = http_take_body(x, &n);
        j = mem_alloc(sizeof(*j));
        api_job_begin(j, x);
        json_offload_start(api_of(x)->env.loop, text, n, NULL, on_parsed, j);
}

const struct json_parsed *request_parsed(const struct http_exchange *x)
{
        return api_of(x)->parsed;
}
