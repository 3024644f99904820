#include "net/loop.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/mem.h"

/* A call that waits for its turn. */
struct call {
        loop_fn *fn;
        void *arg;
        STAILQ_ENTRY(call) next;
};
STAILQ_HEAD(calls, call);

struct loop {
        uv_loop_t uv;     /* first: its handles lead back here */
        bool stepping;    /* one round is wanted, not a run */
        uv_async_t wake;  /* other threads knock here */
        uv_check_t after; /* runs deferred calls once the events of a round are done */
        uv_idle_t hurry;  /* active while calls wait, so that the poll does not block */
        struct calls deferred;
        pthread_mutex_t lock; /* guards posted only */
        struct calls posted;
};

struct timer {
        uv_timer_t uv;
        loop_fn *fn;
        void *arg;
};

struct work {
        uv_work_t uv;
        loop_fn *work, *done;
        void *arg;
};

static void on_hurry(uv_idle_t *i)
{
        (void)i;
}

/* Posted calls join the deferred ones: one queue, one order, one place where calls run. */
static void take_posted(struct loop *l)
{
        /* uv_async_send coalesces: take everything there is */
        pthread_mutex_lock(&l->lock);
        STAILQ_CONCAT(&l->deferred, &l->posted);
        pthread_mutex_unlock(&l->lock);
        if (!STAILQ_EMPTY(&l->deferred))
                uv_idle_start(&l->hurry, on_hurry);
}

static void on_wake(uv_async_t *a)
{
        take_posted(a->data);
}

static void on_after(uv_check_t *c)
{
        struct loop *l = c->data;
        struct calls calls = STAILQ_HEAD_INITIALIZER(calls);
        struct call *call;

        /* calls made from here on wait for the next round, so that nobody can starve the sockets */
        STAILQ_CONCAT(&calls, &l->deferred);
        uv_idle_stop(&l->hurry);
        while ((call = STAILQ_FIRST(&calls))) {
                STAILQ_REMOVE_HEAD(&calls, next);
                call->fn(call->arg);
                free(call);
        }
}

/* Without descriptors for its loop a program cannot even say so in an orderly way. */
static void must(int rc)
{
        if (rc == 0)
                return;
        fprintf(stderr, "dragoman: cannot make the event loop: %s\n", uv_strerror(rc));
        abort();
}

struct loop *loop_new(void)
{
        struct loop *l = mem_zalloc(sizeof(*l));

        /* a peer that goes away is an error code, not the end of the program */
        signal(SIGPIPE, SIG_IGN);
        must(uv_loop_init(&l->uv));
        STAILQ_INIT(&l->deferred);
        STAILQ_INIT(&l->posted);
        pthread_mutex_init(&l->lock, NULL);
        must(uv_async_init(&l->uv, &l->wake, on_wake));
        l->wake.data = l;
        uv_unref((uv_handle_t *)&l->wake);
        uv_check_init(&l->uv, &l->after);
        l->after.data = l;
        uv_check_start(&l->after, on_after);
        uv_unref((uv_handle_t *)&l->after);
        uv_idle_init(&l->uv, &l->hurry);
        return l;
}

/* uv_run returns early after a forgotten loop_stop; ask until it has nothing left. */
static void run_out(struct loop *l)
{
        do {
                take_posted(l);
        } while (uv_run(&l->uv, UV_RUN_DEFAULT) != 0);
}

void loop_free(struct loop *l)
{
        if (!l)
                return;
        /* close callbacks may still defer, so our own handles go last */
        run_out(l);
        uv_close((uv_handle_t *)&l->wake, NULL);
        uv_close((uv_handle_t *)&l->after, NULL);
        uv_close((uv_handle_t *)&l->hurry, NULL);
        while (uv_run(&l->uv, UV_RUN_DEFAULT) != 0)
                ;
        if (uv_loop_close(&l->uv) != 0)
                return; /* somebody forgot a handle: a leak is better than a use after free */
        pthread_mutex_destroy(&l->lock);
        free(l);
}

uv_loop_t *loop_uv(struct loop *l)
{
        return &l->uv;
}

void loop_run(struct loop *l)
{
        take_posted(l);
        uv_run(&l->uv, UV_RUN_DEFAULT);
}

bool loop_step(struct loop *l, bool wait)
{
        bool more;

        take_posted(l);
        l->stepping = true;
        more = uv_run(&l->uv, wait ? UV_RUN_ONCE : UV_RUN_NOWAIT) != 0;
        l->stepping = false;
        return more;
}

void loop_stop(struct loop *l)
{
        uv_stop(&l->uv);
}

int64_t loop_now_ms(const struct loop *l)
{
        return (int64_t)uv_now(&l->uv);
}

static struct call *call_new(loop_fn *fn, void *arg)
{
        struct call *c = mem_alloc(sizeof(*c));

        c->fn = fn;
        c->arg = arg;
        return c;
}

void loop_defer(struct loop *l, loop_fn *fn, void *arg)
{
        struct call *c = call_new(fn, arg);

        STAILQ_INSERT_TAIL(&l->deferred, c, next);
        uv_idle_start(&l->hurry, on_hurry);
}

void loop_post(struct loop *l, loop_fn *fn, void *arg)
{
        struct call *c = call_new(fn, arg);

        pthread_mutex_lock(&l->lock);
        STAILQ_INSERT_TAIL(&l->posted, c, next);
        pthread_mutex_unlock(&l->lock);
        uv_async_send(&l->wake);
}

static void on_work(uv_work_t *uv)
{
        struct work *w = uv->data;

        w->work(w->arg);
}

static void on_worked(uv_work_t *uv, int status)
{
        struct work *w = uv->data;

        (void)status; /* we never cancel */
        w->done(w->arg);
        free(w);
}

void loop_work(struct loop *l, loop_fn *work, loop_fn *done, void *arg)
{
        struct work *w = mem_zalloc(sizeof(*w));

        w->uv.data = w;
        w->work = work;
        w->done = done;
        w->arg = arg;
        uv_queue_work(&l->uv, &w->uv, on_work, on_worked);
}

/*
 * libuv runs timers before it waits for sockets, in the same round. A step has had its event then:
 * it must not wait for another one, which may never come.
 */
static void on_timer(uv_timer_t *uv)
{
        struct loop *l = (struct loop *)uv->loop;
        struct timer *t = uv->data;

        if (l->stepping)
                uv_stop(&l->uv);
        t->fn(t->arg);
}

struct timer *timer_new(struct loop *l, loop_fn *fn, void *arg)
{
        struct timer *t = mem_zalloc(sizeof(*t));

        uv_timer_init(&l->uv, &t->uv);
        t->uv.data = t;
        t->fn = fn;
        t->arg = arg;
        return t;
}

/*
 * libuv counts from the start of the round: after a long callback or a slow start-up the timer
 * would fire early, so look at the clock. At least 1 ms: a timer that restarts itself with 0 never
 * lets libuv reach the sockets.
 */
static void start(struct timer *t, int64_t ms, bool again)
{
        uint64_t wait = ms > 0 ? (uint64_t)ms : 1;

        uv_update_time(t->uv.loop);
        uv_timer_start(&t->uv, on_timer, wait, again ? wait : 0);
}

void timer_start(struct timer *t, int64_t ms)
{
        start(t, ms, false);
}

void timer_repeat(struct timer *t, int64_t ms)
{
        start(t, ms, true);
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

static void on_timer_closed(uv_handle_t *h)
{
        free(h->data);
}

void timer_free(struct timer *t)
{
        if (!t)
                return;
        uv_close((uv_handle_t *)&t->uv, on_timer_closed);
}
