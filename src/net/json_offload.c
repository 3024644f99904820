#include "net/json_offload.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"

struct json_offload {
        struct loop *loop;
        char *text;
        struct json_parsed parsed;
        json_offload_parse_fn *parse;
        json_offload_done_fn *done; /* NULL: cancelled */
        void *arg;
};

static void parse_on_pool(void *arg)
{
        struct json_offload *o = arg;

        o->parsed.root = o->parse(o->text, o->parsed.n, &o->parsed.error);
}

static void free_on_pool(void *arg)
{
        struct json_offload *o = arg;

        json_decref(o->parsed.root);
        free(o->text);
}

static void on_parsed(void *arg)
{
        struct json_offload *o = arg;
        json_t *root = o->parsed.root;

        if (o->done)
                o->done(o->arg, &o->parsed);
        if (root && root->refcount == 1) {
                loop_work(o->loop, free_on_pool, free, o);
                return;
        }
        /* the receiver may use a tree it kept at any time: only this thread may touch it */
        free_on_pool(o);
        free(o);
}

struct json_offload *json_offload_start(struct loop *l, char *text, size_t n,
                                        json_offload_parse_fn *parse, json_offload_done_fn *done,
                                        void *arg)
{
        struct json_offload *o = mem_zalloc(sizeof(*o));

        *o = (struct json_offload){ .loop = l,
                                    .text = text,
                                    .parsed = { .text = text, .n = n },
                                    .parse = parse ? parse : json_read,
                                    .done = done,
                                    .arg = arg };
        loop_work(l, parse_on_pool, on_parsed, o);
        return o;
}

void json_offload_cancel(struct json_offload *o)
{
        if (o)
                o->done = NULL;
}
