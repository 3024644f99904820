/*
 * Questions to Discord that belong to nobody in particular: tools, recall, the gateway's own. They
 * end with the adapter.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "platform/discord/dc_route.h"
#include "platform/discord/discord.h"

struct dc_errand {
        struct dc_call *call;
        dc_answer_fn *done;
        void *arg;
        LIST_ENTRY(dc_errand) next;
};

static void on_answer(void *arg, const struct dc_answer *a)
{
        struct dc_errand *e = arg;

        LIST_REMOVE(e, next);
        e->done(e->arg, a);
        free(e);
}

void dc_ask(struct discord *dc, const struct dc_request *q, dc_answer_fn *done, void *arg)
{
        struct dc_errand *e = mem_zalloc(sizeof(*e));

        e->done = done;
        e->arg = arg;
        LIST_INSERT_HEAD(&dc->errands, e, next);
        e->call = dc_rest_call(dc->rest, q, on_answer, e);
}

void dc_errands_release(struct discord *dc)
{
        const struct dc_answer stopped = { .reach = HTTP_UNSURE,
                                           .kind = ERR_CANCELLED,
                                           .why = "the adapter was stopped",
                                           .retry_after_ms = -1 };
        struct dc_errand *e, *after;

        for (e = LIST_FIRST(&dc->errands); e; e = after) {
                after = LIST_NEXT(e, next);
                dc_call_abort(e->call);
                on_answer(e, &stopped);
        }
}

/* ---- any path ---- */

struct got {
        dc_got_fn *done;
        void *arg;
};

static void on_got(void *arg, const struct dc_answer *a)
{
        struct got *g = arg;

        if (a->kind != ERR_CANCELLED)
                g->done(g->arg, a->status, (json_t *)a->result, a->why);
        free(g);
}

static void get(struct discord *dc, const char *path, enum dc_priority priority, dc_got_fn *done,
                void *arg)
{
        struct dc_request q = { .method = "GET", .priority = priority, .repeatable = true };
        char ids[DC_ARGS_MAX][DC_ID_SIZE];
        const char *query = strchr(path, '?');
        struct got *g = mem_zalloc(sizeof(*g));
        struct buf route;

        g->done = done;
        g->arg = arg;
        buf_init(&route, 0);
        dc_route_of(path, &route, ids, q.args);
        q.route = route.data;
        q.query = query ? query + 1 : NULL;
        dc_ask(dc, &q, on_got, g);
        buf_release(&route);
}

void dc_get(void *discord, const char *path, dc_got_fn *done, void *arg)
{
        get(discord, path, DC_NORMAL, done, arg);
}

void dc_get_later(void *discord, const char *path, dc_got_fn *done, void *arg)
{
        get(discord, path, DC_IDLE, done, arg);
}
