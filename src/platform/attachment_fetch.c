#include "platform/attachment_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/backoff.h"

#define RUNNING_MAX  4
#define DOWNLOAD_MS  30000
#define WAIT_MS      45000 /* in the queue */
#define NAME_LONGEST 100
#define ATTEMPTS     3
#define RETRY_MS     500
#define PATIENCE_MS  10000 /* no retry after this: a person waits for an answer */

struct attachment_fetch {
        struct attachment_queue *queue; /* NULL: dropped while a worker thread has it */
        attachment_fetched_fn *done;
        void *arg;
        void *lookup; /* by source.locate; NULL: none, or answered */
        struct http_call *download;
        char *key, *dir, *path; /* path is relative to the workspace of the data directory `dir` */
        char *bytes;
        size_t n;
        int64_t queued_ms, started_ms;
        unsigned attempts;
        struct timer *retry;
        bool running, saving;
        char why[200];
        TAILQ_ENTRY(attachment_fetch) next;
};

static void pump(struct attachment_queue *q);

void attachment_fetch_init(struct attachment_queue *q, struct adapter *a,
                           const struct attachment_source *source)
{
        *q = (struct attachment_queue){ .adapter = a, .source = *source };
        TAILQ_INIT(&q->list);
}

static void fetch_free(struct attachment_fetch *f)
{
        timer_free(f->retry);
        free(f->key);
        free(f->path);
        free(f->dir);
        free(f->bytes);
        free(f);
}

static void leave_queue(struct attachment_fetch *f)
{
        TAILQ_REMOVE(&f->queue->list, f, next);
        if (f->running)
                f->queue->running--;
}

/* why NULL: the file is saved. */
static void finish(struct attachment_fetch *f, const char *why)
{
        struct attachment_queue *q = f->queue;

        leave_queue(f);
        if (why)
                log_info("attachment not downloaded", LOG_S("adapter", q->adapter->name),
                         LOG_S("path", f->path), LOG_S("why", why));
        f->done(f->arg, why ? NULL : f->path, (int64_t)f->n, why);
        fetch_free(f);
        pump(q);
}

/* ---- saving, on a worker thread ---- */

/* The operator may have made the workspace itself a link; below it agents can write. */
static int open_folder(const char *dir, const char *path, const char **name)
{
        char *workspace = mem_printf("%s/workspace", dir);
        int root = -1, fd = -1;

        if (mkdir(workspace, 0755) == 0 || errno == EEXIST)
                root = open(workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        free(workspace);
        if (root >= 0) {
                fd = beneath_make_folder(root, path, name);
                close(root);
        }
        return fd;
}

static int write_file(int folder, const char *name, const char *bytes, size_t n)
{
        int fd;

        unlinkat(folder, name, 0); /* of an attempt that was interrupted */
        fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -1;
        while (n > 0) {
                ssize_t done = write(fd, bytes, n);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done < 0) {
                        close(fd);
                        return -1;
                }
                bytes += done;
                n -= (size_t)done;
        }
        return close(fd);
}

/* Writes under another name first: only whole files appear under their own. */
static void save(void *arg)
{
        struct attachment_fetch *f = arg;
        const char *name = "";
        int folder = open_folder(f->dir, f->path, &name);
        char *part = mem_printf("%s.part", name);

        if (folder < 0 || write_file(folder, part, f->bytes, f->n) < 0 ||
            renameat(folder, part, folder, name) < 0) {
                snprintf(f->why, sizeof(f->why), "it could not be saved: %s", strerror(errno));
                if (folder >= 0)
                        unlinkat(folder, part, 0);
        }
        if (folder >= 0)
                close(folder);
        free(part);
}

static void on_saved(void *arg)
{
        struct attachment_fetch *f = arg;

        if (f->queue)
                finish(f, f->why[0] ? f->why : NULL);
        else
                fetch_free(f);
}

/* ---- downloading ---- */

static void locate(void *arg)
{
        struct attachment_fetch *f = arg;

        if (f->queue->source.locate)
                f->lookup = f->queue->source.locate(f->queue->adapter, f, f->key);
        else
                attachment_fetch_from(f, f->key);
}

void attachment_fetch_retry(struct attachment_fetch *f, const char *why)
{
        struct loop *l = f->queue->adapter->loop;

        f->lookup = NULL;
        if (++f->attempts == ATTEMPTS || loop_now_ms(l) - f->started_ms > PATIENCE_MS) {
                finish(f, why);
                return;
        }
        if (!f->retry)
                f->retry = timer_new(l, locate, f);
        timer_start(f->retry, backoff_ms(f->attempts - 1, RETRY_MS, PATIENCE_MS));
}

static void on_download(void *arg, const struct http_result *r)
{
        struct attachment_fetch *f = arg;
        bool whole = r->status == 200 && r->kind == ERR_NONE;
        bool transient = r->status == 0 || r->status == 200 || r->status == 429 || r->status >= 500;
        char why[200];

        f->download = NULL;
        if (whole) {
                f->bytes = mem_dup(r->body, r->body_n);
                f->n = r->body_n;
                f->saving = true;
                loop_work(f->queue->adapter->loop, save, on_saved, f);
                return;
        }
        if (r->kind == ERR_LIMIT) {
                finish(f, "it is larger than mediaMaxBytes");
                return;
        }
        if (r->status != 0 && r->status != 200)
                snprintf(why, sizeof(why), "the download failed: %s refused it",
                         f->queue->adapter->ops->title);
        else
                snprintf(why, sizeof(why), "the download failed: %s", r->why);
        log_redact(why);
        if (transient)
                attachment_fetch_retry(f, why);
        else
                finish(f, why);
}

void attachment_fetch_from(struct attachment_fetch *f, const char *url)
{
        static const struct http_handlers handlers = { .on_done = on_download };
        const struct http_request request = { .url = url,
                                              .total_ms = DOWNLOAD_MS,
                                              .max_body = (size_t)f->queue->source.max_bytes,
                                              .repeatable = true };

        f->lookup = NULL;
        f->download = http_call_start(f->queue->adapter->http, &request, &handlers, f);
}

void attachment_fetch_fail(struct attachment_fetch *f, const char *why)
{
        f->lookup = NULL;
        finish(f, why);
}

/* ---- the queue ---- */

/*
 * Starts waiting fetches. One that ends at once pumps again, so each round restarts at the front.
 */
static void pump(struct attachment_queue *q)
{
        struct attachment_fetch *f;

        while (q->running < RUNNING_MAX) {
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed ones have left the list */
                for (f = TAILQ_FIRST(&q->list); f && f->running; f = TAILQ_NEXT(f, next))
                        ;
                if (!f)
                        return;
                f->running = true;
                q->running++;
                f->started_ms = loop_now_ms(q->adapter->loop);
                if (f->started_ms - f->queued_ms > WAIT_MS)
                        finish(f, "too many downloads were waiting");
                else
                        locate(f);
        }
}

char *attachment_fetch_safe_name(const char *name)
{
        char *safe = utf8_clean(name, utf8_prefix(name, strlen(name), UTF8_BYTES, NAME_LONGEST));

        for (char *p = safe; *p; p++)
                if ((unsigned char)*p < ' ' || strchr("/\\:*?\"<>|\x7f", *p) ||
                    (*p == '.' && p == safe))
                        *p = '_';
        return safe;
}

/* A safe name that keeps its extension when it is cut. */
static char *short_name(const char *name)
{
        const char *dot = strrchr(name, '.');
        char *safe, *whole;
        size_t n;

        if (strlen(name) <= NAME_LONGEST || !dot || strlen(dot) > 12)
                return attachment_fetch_safe_name(name);
        n = utf8_prefix(name, (size_t)(dot - name), UTF8_BYTES, NAME_LONGEST - strlen(dot));
        whole = mem_printf("%.*s%s", (int)n, name, dot);
        safe = attachment_fetch_safe_name(whole);
        free(whole);
        return safe;
}

const char *attachment_fetch_refusal(const struct attachment_queue *q, int64_t size)
{
        if (q->source.max_bytes == 0)
                return "downloads are switched off (mediaMaxBytes)";
        return size > q->source.max_bytes ? "it is larger than mediaMaxBytes" : NULL;
}

struct attachment_fetch *attachment_fetch_start(struct attachment_queue *q,
                                                const struct attachment_order *o,
                                                attachment_fetched_fn *done, void *arg)
{
        struct attachment_fetch *f = mem_zalloc(sizeof(*f));
        char *name = short_name(o->name ? o->name : "file");

        f->queue = q;
        f->done = done;
        f->arg = arg;
        f->key = mem_strdup(o->key);
        f->path = mem_printf("channels/%s/%s/attachments/%s-%s", q->adapter->name, o->channel,
                             o->message, name);
        f->dir = mem_strdup(q->adapter->dir); /* the worker thread may outlive the adapter */
        f->queued_ms = loop_now_ms(q->adapter->loop);
        free(name);
        TAILQ_INSERT_TAIL(&q->list, f, next);
        pump(q);
        return f;
}

void attachment_fetch_drop(struct attachment_fetch *f)
{
        if (!f)
                return;
        leave_queue(f);
        if (f->lookup)
                f->queue->source.cancel(f->lookup);
        http_call_abort(f->download);
        f->queue = NULL;
        if (!f->saving)
                fetch_free(f);
}

struct adapter *attachment_fetch_adapter(const struct attachment_fetch *f)
{
        return f->queue->adapter;
}
