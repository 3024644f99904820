#include "net/loop.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/mem.h"

struct loop_call {
        loop_fn *fn;
        void *arg;
        STAILQ_ENTRY(loop_call) next;
};
STAILQ_HEAD(loop_calls, loop_call);

struct loop {
        uv_loop_t uv;
        bool stepping;    /* inside loop_step */
        uv_check_t after; /* runs deferred calls after the events of a round */
        uv_idle_t hurry;  /* active while calls wait, so that the poll does not block */
        struct loop_calls deferred;
};

struct loop_work {
        uv_work_t uv;
        loop_fn *work, *done;
        void *arg;
};

static void on_after(uv_check_t *c)
{
        struct loop *l = c->data;
        struct loop_calls calls = STAILQ_HEAD_INITIALIZER(calls);
        struct loop_call *call;

        /* calls deferred from here on wait for the next round, so that sockets get their turn */
        STAILQ_CONCAT(&calls, &l->deferred);
        uv_idle_stop(&l->hurry);
        while ((call = STAILQ_FIRST(&calls))) {
                STAILQ_REMOVE_HEAD(&calls, next);
                call->fn(call->arg);
                free(call);
        }
}

struct loop *loop_new(void)
{
        struct loop *l = mem_zalloc(sizeof(*l));
        int rc;

        /* a peer that goes away is an error code, not the end of the program */
        signal(SIGPIPE, SIG_IGN);
        rc = uv_loop_init(&l->uv);
        if (rc != 0) {
                fprintf(stderr, "dragoman: cannot create the event loop: %s\n", uv_strerror(rc));
                abort();
        }
        STAILQ_INIT(&l->deferred);
        uv_check_init(&l->uv, &l->after);
        l->after.data = l;
        uv_check_start(&l->after, on_after);
        uv_unref((uv_handle_t *)&l->after);
        uv_idle_init(&l->uv, &l->hurry);
        return l;
}

void loop_free(struct loop *l)
{
        if (!l)
                return;
        /* uv_run returns early after a loop_stop that met no run: repeat until nothing is left */
        while (uv_run(&l->uv, UV_RUN_DEFAULT) != 0)
                ;
        /* close callbacks may still defer, so our own handles go last */
        uv_close((uv_handle_t *)&l->after, NULL);
        uv_close((uv_handle_t *)&l->hurry, NULL);
        while (uv_run(&l->uv, UV_RUN_DEFAULT) != 0)
                ;
        if (uv_loop_close(&l->uv) != 0)
                return; /* a forgotten handle: a leak is better than a use after free */
        free(l);
}

uv_loop_t *loop_uv(struct loop *l)
{
        return &l->uv;
}

void loop_run(struct loop *l)
{
        uv_run(&l->uv, UV_RUN_DEFAULT);
}

bool loop_step(struct loop *l, bool wait)
{
        bool more;

        l->stepping = true;
        more = uv_run(&l->uv, wait ? UV_RUN_ONCE : UV_RUN_NOWAIT) != 0;
        l->stepping = false;
        return more;
}

/* libuv runs timers before it polls, and would then wait in the same round for another event. */
void loop_timer_fired(struct loop *l)
{
        if (l->stepping)
                uv_stop(&l->uv);
}

void loop_stop(struct loop *l)
{
        uv_stop(&l->uv);
}

int64_t loop_now_ms(const struct loop *l)
{
        return (int64_t)uv_now(&l->uv);
}

static void on_hurry(uv_idle_t *i)
{
        (void)i;
}

void loop_defer(struct loop *l, loop_fn *fn, void *arg)
{
        struct loop_call *c = mem_alloc(sizeof(*c));

        c->fn = fn;
        c->arg = arg;
        STAILQ_INSERT_TAIL(&l->deferred, c, next);
        uv_idle_start(&l->hurry, on_hurry);
}

static void on_work(uv_work_t *uv)
{
        struct loop_work *w = uv->data;

        w->work(w->arg);
}

static void on_worked(uv_work_t *uv, int status)
{
        struct loop_work *w = uv->data;

        (void)status; /* we never cancel */
        w->done(w->arg);
        free(w);
}

void loop_work(struct loop *l, loop_fn *work, loop_fn *done, void *arg)
{
        struct loop_work *w = mem_zalloc(sizeof(*w));

        w->uv.data = w;
        w->work = work;
        w->done = done;
        w->arg = arg;
        uv_queue_work(&l->uv, &w->uv, on_work, on_worked);
}
