#include <stdlib.h>

#include "base/mem.h"
#include "net/loop.h"

struct timer {
        uv_timer_t uv;
        struct loop *loop;
        loop_fn *fn;
        void *arg;
};

struct timer *timer_new(struct loop *l, loop_fn *fn, void *arg)
{
        struct timer *t = mem_zalloc(sizeof(*t));

        uv_timer_init(loop_uv(l), &t->uv);
        t->uv.data = t;
        t->loop = l;
        t->fn = fn;
        t->arg = arg;
        return t;
}

static void on_timer(uv_timer_t *uv)
{
        struct timer *t = uv->data;

        loop_timer_fired(t->loop);
        t->fn(t->arg);
}

/*
 * libuv counts from the start of the round, so after a long callback the timer would fire early:
 * update the clock first. At least 1 ms: a timer that restarts itself with 0 never lets libuv reach
 * the sockets.
 */
void timer_start(struct timer *t, int64_t ms)
{
        uv_update_time(t->uv.loop);
        uv_timer_start(&t->uv, on_timer, ms > 0 ? (uint64_t)ms : 1, 0);
}

void timer_repeat(struct timer *t, int64_t ms)
{
        timer_start(t, ms);
        uv_timer_set_repeat(&t->uv, ms > 0 ? (uint64_t)ms : 1);
}

void timer_stop(struct timer *t)
{
        uv_timer_stop(&t->uv);
}

bool timer_active(const struct timer *t)
{
        return uv_is_active((const uv_handle_t *)&t->uv) != 0;
}

void timer_unref(struct timer *t)
{
        uv_unref((uv_handle_t *)&t->uv);
}

static void on_closed(uv_handle_t *h)
{
        free(h->data);
}

void timer_free(struct timer *t)
{
        if (t)
                uv_close((uv_handle_t *)&t->uv, on_closed);
}
