#include "net/filewatch.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A file that is written without a pause is reported after this many settle times. */
#define PATIENCE 10

struct filewatch {
        uv_fs_event_t uv;
        struct loop *loop;
        struct timer *timer; /* runs while changes settle */
        char *file;          /* NULL: any */
        char *changed;       /* since the last call; NULL: none or several */
        bool pending, several;
        int64_t settle_ms, first_ms;
        filewatch_fn *fn;
        void *arg;
};

static void on_settled(void *arg)
{
        struct filewatch *w = arg;
        char *name = w->changed;

        w->changed = NULL;
        w->pending = w->several = false;
        w->fn(w->arg, name); /* may free w */
        free(name);
}

static void on_event(uv_fs_event_t *uv, const char *name, int events, int status)
{
        struct filewatch *w = uv->data;
        int64_t now = loop_now_ms(w->loop), left;

        (void)events;
        if (status < 0)
                name = NULL; /* an event was lost: report any change */
        if (w->file && name && strcmp(name, w->file) != 0)
                return;
        if (!w->pending && name) {
                w->changed = mem_strdup(name);
        } else if (!w->several && !(w->changed && name && strcmp(w->changed, name) == 0)) {
                w->several = true;
                free(w->changed);
                w->changed = NULL;
        }
        if (!w->pending)
                w->first_ms = now;
        w->pending = true;
        left = w->first_ms + PATIENCE * w->settle_ms - now;
        timer_start(w->timer, left < w->settle_ms ? left : w->settle_ms);
}

static void on_closed(uv_handle_t *h)
{
        struct filewatch *w = h->data;

        free(w->file);
        free(w->changed);
        free(w);
}

struct filewatch *filewatch_new(struct loop *l, const char *dir, const char *file,
                                int64_t settle_ms, filewatch_fn *fn, void *arg, struct error *err)
{
        struct filewatch *w = mem_zalloc(sizeof(*w));
        int rc;

        w->loop = l;
        w->file = mem_strdup(file);
        w->settle_ms = settle_ms > 0 ? settle_ms : 0;
        w->fn = fn;
        w->arg = arg;
        w->timer = timer_new(l, on_settled, w);
        uv_fs_event_init(loop_uv(l), &w->uv);
        w->uv.data = w;
        rc = uv_fs_event_start(&w->uv, on_event, dir, 0);
        if (rc == 0)
                return w;
        error_set(err, rc == UV_ENOENT ? ERR_MISSING : ERR_IO, "cannot watch '%s': %s", dir,
                  uv_strerror(rc));
        filewatch_free(w);
        return NULL;
}

void filewatch_free(struct filewatch *w)
{
        if (!w)
                return;
        timer_free(w->timer);
        uv_close((uv_handle_t *)&w->uv, on_closed);
}
