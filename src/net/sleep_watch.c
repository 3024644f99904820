#include "net/sleep_watch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

struct sleep_watch {
        struct timer *timer;
        int64_t suspend_ms, last_wall_ms, last_mono_ms;
        int64_t (*wall_ms)(void);
        loop_fn *fn;
        void *arg;
};

static void on_timer(void *arg)
{
        struct sleep_watch *w = arg;
        int64_t wall_ms = w->wall_ms(), mono_ms = clock_mono_ms();
        int64_t slept_ms = (wall_ms - w->last_wall_ms) - (mono_ms - w->last_mono_ms);

        w->last_wall_ms = wall_ms;
        w->last_mono_ms = mono_ms;
        if (slept_ms > w->suspend_ms)
                w->fn(w->arg);
}

struct sleep_watch *sleep_watch_new(struct loop *l, int64_t suspend_ms, int64_t (*wall_ms)(void),
                                    loop_fn *fn, void *arg)
{
        struct sleep_watch *w = mem_zalloc(sizeof(*w));

        w->wall_ms = wall_ms ? wall_ms : clock_wall_ms;
        w->suspend_ms = suspend_ms;
        w->last_wall_ms = w->wall_ms();
        w->last_mono_ms = clock_mono_ms();
        w->fn = fn;
        w->arg = arg;
        w->timer = timer_new(l, on_timer, w);
        timer_repeat(w->timer, suspend_ms / 4);
        return w;
}

void sleep_watch_stop(struct sleep_watch *w)
{
        timer_stop(w->timer);
}

void sleep_watch_free(struct sleep_watch *w)
{
        if (!w)
                return;
        timer_free(w->timer);
        free(w);
}
