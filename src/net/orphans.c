#include "net/orphans.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/mem.h"

struct orphans {
        uv_signal_t ended;
};

/* __WNOTHREAD: not the children of the spawn thread, which libuv waits for. */
static void on_ended(uv_signal_t *s, int number)
{
        (void)s;
        (void)number;
        while (waitpid(-1, NULL, WNOHANG | __WALL | __WNOTHREAD) > 0)
                continue;
}

struct orphans *orphans_adopt(struct loop *l)
{
        struct orphans *o = mem_zalloc(sizeof(*o));

        prctl(PR_SET_CHILD_SUBREAPER, 1);
        o->ended.data = o;
        uv_signal_init(loop_uv(l), &o->ended);
        uv_signal_start(&o->ended, on_ended, SIGCHLD);
        uv_unref((uv_handle_t *)&o->ended);
        return o;
}

static void on_closed(uv_handle_t *h)
{
        free(h->data);
}

void orphans_free(struct orphans *o)
{
        if (o)
                uv_close((uv_handle_t *)&o->ended, on_closed);
}
