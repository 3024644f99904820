#include "sim_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"

struct sim_rig *sim_rig_new(const char *const *headers)
{
        struct sim_rig *r = mem_zalloc(sizeof(*r));
        struct http_client_options plain = { 0 };

        r->headers = headers;
        r->loop = loop_new();
        r->client = http_client_new(r->loop, &plain, NULL);
        r->sim_client = http_client_new(r->loop, &plain, NULL);
        return r;
}

void sim_rig_serve(struct sim_rig *r, struct world_base *w, const struct http_route *routes,
                   size_t count, const struct http_server_hooks *hooks)
{
        struct http_server_options options = { .listen = "127.0.0.1:0" };

        w->quiet = true;
        w->limits = false;
        w->client = r->sim_client;
        r->server = http_server_new(r->loop, &options, routes, count, hooks, r->world, NULL);
        assert_non_null(r->server);
}

void sim_rig_free(struct sim_rig *r, void (*free_world)(struct world *))
{
        http_client_free(r->client);
        free_world(r->world);
        http_server_free(r->server);
        http_client_free(r->sim_client);
        free(r->routes);
        loop_free(r->loop);
        free(r);
}

static void keep_header(const struct sim_answer *a, const char *name, char *out, size_t room)
{
        const char *value = http_call_header(a->call, name);

        snprintf(out, room, "%s", value ? value : "");
}

static void on_done(void *arg, const struct http_result *result)
{
        struct sim_answer *a = arg;

        a->done = true;
        a->status = result->status;
        a->body = result->body_n ? json_read(result->body, result->body_n, NULL) : NULL;
        if (result->status) {
                keep_header(a, "X-RateLimit-Remaining", a->remaining, sizeof(a->remaining));
                keep_header(a, "X-RateLimit-Bucket", a->bucket, sizeof(a->bucket));
                keep_header(a, "X-RateLimit-Scope", a->scope, sizeof(a->scope));
                keep_header(a, "Retry-After", a->retry_after, sizeof(a->retry_after));
        }
}

void sim_rig_start(struct sim_rig *r, struct sim_answer *a, const char *method, const char *path,
                   const char *body)
{
        static const struct http_handlers handlers = { .on_done = on_done };
        char *url = mem_printf("http://%s%s", http_server_address(r->server), path);
        struct http_request request = { .method = method,
                                        .url = url,
                                        .headers = r->headers,
                                        .body = body,
                                        .body_n = body ? strlen(body) : 0 };

        memset(a, 0, sizeof(*a));
        a->call = http_call_start(r->client, &request, &handlers, a);
        free(url);
}

void sim_rig_await(struct sim_rig *r, struct sim_answer *a)
{
        while (!a->done)
                assert_true(loop_step(r->loop, true));
}

struct sim_answer sim_rig_ask(struct sim_rig *r, const char *path, const char *body)
{
        struct sim_answer a;

        sim_rig_start(r, &a, NULL, path, body);
        sim_rig_await(r, &a);
        return a;
}

json_t *sim_rig_control(struct sim_rig *r, const char *what, const char *request)
{
        char *path = mem_printf("/sim/%s", what);
        struct sim_answer a = sim_rig_ask(r, path, request);

        free(path);
        assert_int_equal(a.status, 200);
        return a.body;
}

void sim_rig_control_ok(struct sim_rig *r, const char *what, const char *request)
{
        json_decref(sim_rig_control(r, what, request));
}
