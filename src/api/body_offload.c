/*
 * Large bodies are read on a pool thread, so that one request does not hold up all others: a
 * megabyte of brackets keeps a parser busy for longer than everybody else's requests together.
 *
 * For the client nothing changes: limits and mistakes are the same, and its connection has one
 * request at a time. Whoever has gone by the time the body is read has asked for nothing.
 */
#include <stdlib.h>

#include "api/api_private.h"
#include "base/json.h"
#include "base/mem.h"

static void on_pool(void *arg)
{
        struct large *l = arg;

        l->read(l);
        free(l->text);
        l->text = NULL;
}

static void on_read(void *arg)
{
        struct large *l = arg;
        struct http_exchange *x = job_end(&l->job);

        if (x && http_is_gone(x)) {
                http_refuse(x, 499, "HTTP_ERROR", "the client has gone");
                x = NULL;
        }
        l->then(l, x);
}

bool large_body(const struct http_exchange *x)
{
        size_t n = 0;

        http_body(x, &n);
        return n >= LARGE_BODY;
}

void large_read(struct large *l, struct http_exchange *x)
{
        l->text = http_take_body(x, &l->n);
        job_begin(&l->job, x);
        loop_work(api_of(x)->env.loop, on_pool, on_read, l);
}

/* ---- bodies that the route's table describes ---- */

struct parsing {
        struct large large;
        struct parsed parsed;
};

static void parse(struct large *l)
{
        struct parsed *p = &((struct parsing *)l)->parsed;

        p->root = json_read(l->text, l->n, &p->error);
}

/* Taking a large tree apart takes almost as long as making it. */
static void drop(void *arg)
{
        json_decref(((struct parsing *)arg)->parsed.root);
}

/* Not where the handler still has it: one thread at a time. */
static bool is_ours_alone(const json_t *root)
{
        return root && root->refcount == 1;
}

static void run_parsed(struct large *l, struct http_exchange *x)
{
        struct parsing *p = (struct parsing *)l;
        const struct api_route *route = x ? http_route_of(x)->more : NULL;
        struct api *a = x ? api_of(x) : NULL;

        if (a) {
                a->parsed = &p->parsed;
                route->run(x);
                a->parsed = NULL;
        }
        if (a && is_ours_alone(p->parsed.root)) {
                loop_work(a->env.loop, drop, free, p);
                return;
        }
        drop(p);
        free(p);
}

void request_run(struct http_exchange *x)
{
        const struct api_route *route = http_route_of(x)->more;
        struct parsing *p;

        if (api_of(x)->closed) {
                http_refuse(x, 503, "UNAVAILABLE", "shutting down");
                return;
        }
        if (!route->body || !large_body(x)) {
                route->run(x);
                return;
        }
        p = mem_zalloc(sizeof(*p));
        p->large.read = parse;
        p->large.then = run_parsed;
        large_read(&p->large, x);
}
