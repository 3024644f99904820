#include "platform/state_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

struct state_file {
        struct loop *loop;
        char *path;
        int64_t delay_ms;
        state_file_text_fn *text;
        void *arg;
        struct timer *timer;
        bool dirty;           /* changed since the last write began */
        uint64_t version;     /* of the last text taken */
        pthread_mutex_t lock; /* guards the file and `written` */
        uint64_t written;     /* version in the file */
        unsigned refs;        /* the owner, and writes on the pool */
};

struct state_write {
        struct state_file *file;
        char *text;
        uint64_t version;
};

/* Runs on any thread. The text may hold secrets. */
static void replace(void *arg)
{
        struct state_write *w = arg;
        struct state_file *f = w->file;

        pthread_mutex_lock(&f->lock);
        if (w->version > f->written) {
                if (file_replace(f->path, w->text) < 0)
                        log_warn("cannot write state file", LOG_S("file", f->path),
                                 LOG_S("why", strerror(errno)));
                f->written = w->version;
        }
        pthread_mutex_unlock(&f->lock);
        explicit_bzero(w->text, strlen(w->text));
        free(w->text);
}

static void unref(struct state_file *f)
{
        if (--f->refs > 0)
                return;
        pthread_mutex_destroy(&f->lock);
        free(f->path);
        free(f);
}

static void on_written(void *arg)
{
        struct state_write *w = arg;

        unref(w->file);
        free(w);
}

static void on_timer(void *arg)
{
        struct state_file *f = arg;
        struct state_write *w = mem_zalloc(sizeof(*w));

        w->file = f;
        w->text = f->text(f->arg);
        w->version = ++f->version;
        f->dirty = false;
        f->refs++;
        loop_work(f->loop, replace, on_written, w);
}

void state_file_changed(struct state_file *f, bool now)
{
        if (!f)
                return;
        f->dirty = true;
        if (now || !timer_active(f->timer))
                timer_start(f->timer, now ? 0 : f->delay_ms);
}

struct state_file *state_file_new(struct loop *l, const char *path, int64_t delay_ms,
                                  state_file_text_fn *text, void *arg)
{
        struct state_file *f = mem_zalloc(sizeof(*f));

        f->loop = l;
        f->path = mem_strdup(path);
        f->delay_ms = delay_ms;
        f->text = text;
        f->arg = arg;
        f->timer = timer_new(l, on_timer, f);
        f->refs = 1;
        pthread_mutex_init(&f->lock, NULL);
        return f;
}

void state_file_close(struct state_file *f)
{
        struct state_write last = { .file = f };

        if (!f)
                return;
        timer_free(f->timer);
        /* a write on the pool may finish after the file is next read: write here as well */
        if (f->dirty || f->refs > 1) {
                last.text = f->text(f->arg);
                last.version = ++f->version;
                replace(&last);
        }
        unref(f);
}
