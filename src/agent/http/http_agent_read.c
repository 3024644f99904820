/*
 * Large answers are understood on a pool thread: a megabyte of brackets would hold up everybody
 * else for a tenth of a second.
 */
#include <stdlib.h>

#include "agent/http/http_agent.h"
#include "base/mem.h"

struct hook_reading {
        hook_read_fn *members;
        char *type, *body;
        size_t n;
        struct hook_answer answer;
        struct error error;
        bool understood;
        hook_read_done_fn *done; /* NULL: nobody waits for it any more */
        void *arg;
};

static void on_pool(void *arg)
{
        struct hook_reading *r = arg;

        r->understood =
                hook_answer_read(&r->answer, r->members, r->type, r->body, r->n, &r->error) == 0;
}

static void on_read(void *arg)
{
        struct hook_reading *r = arg;

        if (r->done)
                r->done(r->arg, r->understood ? &r->answer : NULL, &r->error);
        hook_answer_release(&r->answer);
        free(r->type);
        free(r->body);
        free(r);
}

struct hook_reading *hook_answer_read_apart(struct loop *l, hook_read_fn *members,
                                            const char *content_type, const char *body, size_t n,
                                            hook_read_done_fn *done, void *arg)
{
        struct hook_reading *r = mem_zalloc(sizeof(*r));

        r->members = members;
        r->type = mem_strdup(content_type);
        r->body = mem_dup(body, n);
        r->n = n;
        r->done = done;
        r->arg = arg;
        loop_work(l, on_pool, on_read, r);
        return r;
}

void hook_reading_forget(struct hook_reading *r)
{
        if (r)
                r->done = NULL;
}
