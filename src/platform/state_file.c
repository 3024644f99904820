#include "platform/state_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

#define FILE_MAX ((size_t)1 << 20)

struct dc_file {
        struct loop *loop;
        char *path;
        int64_t delay_ms;
        dc_file_text_fn *text;
        void *arg;
        struct timer *timer;
        bool dirty;           /* since the last writing began */
        uint64_t version;     /* grows with each writing */
        pthread_mutex_t lock; /* guards the file and `written` */
        uint64_t written;     /* version in the file */
        unsigned refs;        /* the owner, writings under way */
};

/* ---- writing ---- */

/* Any thread. */
static void put(struct dc_file *f, const char *text, uint64_t version)
{
        pthread_mutex_lock(&f->lock);
        if (version > f->written) {
                if (file_replace(f->path, text) < 0)
                        log_warn("cannot keep what should survive a restart",
                                 LOG_S("file", f->path), LOG_S("why", strerror(errno)));
                f->written = version;
        }
        pthread_mutex_unlock(&f->lock);
}

struct saving {
        struct dc_file *file;
        char *text;
        uint64_t version;
};

static void unref(struct dc_file *f)
{
        if (--f->refs > 0)
                return;
        pthread_mutex_destroy(&f->lock);
        free(f->path);
        free(f);
}

/* There may be secrets in it. */
static void wipe(char *text)
{
        explicit_bzero(text, strlen(text));
        free(text);
}

static void save(void *arg)
{
        struct saving *s = arg;

        put(s->file, s->text, s->version);
}

static void on_saved(void *arg)
{
        struct saving *s = arg;

        unref(s->file);
        wipe(s->text);
        free(s);
}

static void on_timer(void *arg)
{
        struct dc_file *f = arg;
        struct saving *s = mem_zalloc(sizeof(*s));

        s->file = f;
        s->text = f->text(f->arg);
        s->version = ++f->version;
        f->dirty = false;
        f->refs++;
        loop_work(f->loop, save, on_saved, s);
}

void dc_file_changed(struct dc_file *f, bool now)
{
        if (!f)
                return;
        f->dirty = true;
        if (now || !timer_active(f->timer))
                timer_start(f->timer, now ? 0 : f->delay_ms);
}

/* ---- life ---- */

struct dc_file *dc_file_new(struct loop *l, const char *path, int64_t delay_ms,
                            dc_file_text_fn *text, void *arg)
{
        struct dc_file *f = mem_zalloc(sizeof(*f));

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

void dc_file_close(struct dc_file *f)
{
        char *text;

        if (!f)
                return;
        timer_free(f->timer);
        /* a writing under way comes too late for whoever reads next */
        if (f->dirty || f->refs > 1) {
                text = f->text(f->arg);
                put(f, text, ++f->version);
                wipe(text);
        }
        unref(f);
}

/* ---- reading ---- */

json_t *dc_file_read(const char *path)
{
        return file_read_json(path, FILE_MAX);
}
