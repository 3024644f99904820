/*
 * Large answers are understood on a pool thread: a megabyte of brackets would hold up everybody
 * else for a tenth of a second.
 */
#include <stdlib.h>

#include "agent/http/http_agent.h"
#include "base/mem.h"

struct http_agent_read {
        http_agent_members_fn *members;
        char *type, *body;
        size_t n;
        struct http_agent_reply answer;
        struct error error;
        bool understood;
        http_agent_read_fn *done; /* NULL: nobody waits for it any more */
        void *arg;
};

static void on_pool(void *arg)
{
        struct http_agent_read *r = arg;

        r->understood = http_agent_reply_read(&r->answer, r->members, r->type, r->body, r->n,
                                              &r->error) == 0;
}

static void on_read(void *arg)
{
        struct http_agent_read *r = arg;

        if (r->done)
                r->done(r->arg, r->understood ? &r->answer : NULL, &r->error);
        http_agent_reply_release(&r->answer);
        free(r->type);
        free(r->body);
        free(r);
}

struct http_agent_read *http_agent_read_start(struct loop *l, http_agent_members_fn *members,
                                              const char *content_type, const char *body, size_t n,
                                              http_agent_read_fn *done, void *arg)
{
        struct http_agent_read *r = mem_zalloc(sizeof(*r));

        r->members = members;
        r->type = mem_strdup(content_type);
        r->body = mem_dup(body, n);
        r->n = n;
        r->done = done;
        r->arg = arg;
        loop_work(l, on_pool, on_read, r);
        return r;
}

void http_agent_read_forget(struct http_agent_read *r)
{
        if (r)
                r->done = NULL;
}
