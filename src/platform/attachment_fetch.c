#include "platform/attachment_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

#define AT_ONCE      4
#define DOWNLOAD_MS  30000
#define WAIT_MS      45000 /* for its turn */
#define NAME_LONGEST 100
#define TRIES        3
#define AGAIN_MS     500 /* after the first; twice as long after the next */
/* what has taken longer is not tried again: somebody waits for an answer */
#define PATIENCE_MS 10000

struct fetch {
        struct fetches *all; /* NULL: dropped while a worker thread has it */
        fetched_fn *done;
        void *arg;
        void *question; /* where it is; NULL: not asked, or answered */
        struct http_call *download;
        char *key, *dir, *path; /* path relative to the workspace of the data directory `dir` */
        char *bytes;
        size_t n;
        int64_t since_ms, begun_ms;
        unsigned tries;
        struct timer *again;
        bool running, saving;
        char why[200];
        TAILQ_ENTRY(fetch) next;
};

static void pump(struct fetches *all);

void fetches_init(struct fetches *all)
{
        TAILQ_INIT(&all->list);
        all->running = 0;
}

static void fetch_free(struct fetch *f)
{
        timer_free(f->again);
        free(f->key);
        free(f->path);
        free(f->dir);
        free(f->bytes);
        free(f);
}

static void leave(struct fetch *f)
{
        TAILQ_REMOVE(&f->all->list, f, next);
        if (f->running)
                f->all->running--;
}

/* why NULL: the file is there. */
static void finish(struct fetch *f, const char *why)
{
        struct fetches *all = f->all;

        leave(f);
        if (why)
                log_info("an attachment is not downloaded", LOG_S("adapter", all->adapter->name),
                         LOG_S("path", f->path), LOG_S("why", why));
        f->done(f->arg, why ? NULL : f->path, (int64_t)f->n, why);
        fetch_free(f);
        pump(all);
}

/* ---- saving, on a worker thread ---- */

/* Opens a folder of `parent`, made when it is not there. Takes parent over. */
static int enter(int parent, const char *name)
{
        int fd = -1;

        if (parent >= 0 && (mkdirat(parent, name, 0700) == 0 || errno == EEXIST))
                fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (parent >= 0)
                close(parent);
        return fd;
}

/*
 * The folder of `path`, and the name in it. Agents may write in the workspace: a link they have put
 * there is not followed, in no part of the path. The data directory itself is the operator's, who
 * may have moved the workspace elsewhere.
 */
static int open_folder(const char *dir, char *path, const char **name)
{
        char *workspace = mem_printf("%s/workspace", dir), *rest = path, *part;
        int fd = -1;

        if (mkdir(workspace, 0755) == 0 || errno == EEXIST)
                fd = open(workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        free(workspace);
        while ((part = strsep(&rest, "/")) && rest)
                fd = enter(fd, part);
        *name = part;
        return fd;
}

static int write_all(int fd, const char *bytes, size_t n)
{
        while (n > 0) {
                ssize_t done = write(fd, bytes, n);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done < 0)
                        return -1;
                bytes += done;
                n -= (size_t)done;
        }
        return 0;
}

static int write_file(int folder, const char *name, const char *bytes, size_t n)
{
        int fd, rc;

        unlinkat(folder, name, 0); /* of an attempt that was interrupted */
        fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -1;
        rc = write_all(fd, bytes, n);
        return close(fd) < 0 ? -1 : rc;
}

/* Under another name first: whoever looks into the folder sees whole files only. */
static void save(void *arg)
{
        struct fetch *f = arg;
        char *path = mem_strdup(f->path), *fresh;
        const char *name;
        int folder = open_folder(f->dir, path, &name);

        fresh = mem_printf("%s.part", name);
        if (folder < 0 || write_file(folder, fresh, f->bytes, f->n) < 0 ||
            renameat(folder, fresh, folder, name) < 0) {
                snprintf(f->why, sizeof(f->why), "it could not be saved: %s", strerror(errno));
                if (folder >= 0)
                        unlinkat(folder, fresh, 0);
        }
        if (folder >= 0)
                close(folder);
        free(fresh);
        free(path);
}

static void on_saved(void *arg)
{
        struct fetch *f = arg;

        if (!f->all)
                fetch_free(f);
        else
                finish(f, f->why[0] ? f->why : NULL);
}

/* ---- getting it ---- */

static void ask(struct fetch *f);

static void on_again(void *arg)
{
        ask(arg);
}

void fetch_fail_for_now(struct fetch *f, const char *why)
{
        struct loop *l = f->all->adapter->loop;

        f->question = NULL;
        if (++f->tries == TRIES || loop_now_ms(l) - f->begun_ms > PATIENCE_MS) {
                finish(f, why);
                return;
        }
        if (!f->again)
                f->again = timer_new(l, on_again, f);
        timer_start(f->again, AGAIN_MS << (f->tries - 1));
}

/* Does it make sense to ask once more? */
static bool is_transient(const struct http_result *r)
{
        return r->status == 0 || r->status == 429 || r->status >= 500 ||
               (r->status == 200 && r->kind != ERR_NONE);
}

static void on_download(void *arg, const struct http_result *r)
{
        struct fetch *f = arg;
        char why[200] = "";

        f->download = NULL;
        if (r->kind == ERR_LIMIT)
                snprintf(why, sizeof(why), "it is larger than mediaMaxBytes");
        else if (r->status != 200 || r->kind != ERR_NONE)
                snprintf(why, sizeof(why), "the download failed: %s%s",
                         r->status && r->status != 200 ? f->all->from : r->why,
                         r->status && r->status != 200 ? " refused it" : "");
        if (why[0]) {
                log_redact(why);
                if (r->kind != ERR_LIMIT && is_transient(r))
                        fetch_fail_for_now(f, why);
                else
                        finish(f, why);
                return;
        }
        f->bytes = mem_dup(r->body, r->body_n);
        f->n = r->body_n;
        f->saving = true;
        loop_work(f->all->adapter->loop, save, on_saved, f);
}

void fetch_at(struct fetch *f, const char *url)
{
        static const struct http_handlers handlers = { .on_done = on_download };

        f->question = NULL;
        f->download = http_call_start(f->all->adapter->http,
                                      &(struct http_request){ .url = url,
                                                              .total_ms = DOWNLOAD_MS,
                                                              .max_body = (size_t)f->all->max_bytes,
                                                              .repeatable = true },
                                      &handlers, f);
}

void fetch_fail(struct fetch *f, const char *why)
{
        f->question = NULL;
        finish(f, why);
}

/* ---- the queue ---- */

static void ask(struct fetch *f)
{
        if (f->all->locate)
                f->question = f->all->locate(f->all->adapter, f, f->key);
        else
                fetch_at(f, f->key);
}

static void begin(struct fetch *f)
{
        f->running = true;
        f->all->running++;
        f->begun_ms = loop_now_ms(f->all->adapter->loop);
        if (f->begun_ms - f->since_ms > WAIT_MS)
                finish(f, "too many downloads were waiting");
        else
                ask(f);
}

/* Whatever ends at once pumps again, so this begins anew each time. */
static void pump(struct fetches *all)
{
        struct fetch *f;

        do {
                /*
                 * NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not see that a freed one has
                 * left the list
                 */
                for (f = TAILQ_FIRST(&all->list); f && f->running; f = TAILQ_NEXT(f, next))
                        ;
                if (f && all->running < AT_ONCE)
                        begin(f);
        } while (f && all->running < AT_ONCE);
}

/* ---- names ---- */

char *fetch_safe_name(const char *name)
{
        char *safe = utf8_clean(name, utf8_prefix(name, strlen(name), UTF8_BYTES, NAME_LONGEST));

        for (char *p = safe; *p; p++)
                if ((unsigned char)*p < ' ' || strchr("/\\:*?\"<>|\x7f", *p) ||
                    (*p == '.' && p == safe))
                        *p = '_';
        return safe;
}

/* The beginning of a name may be cut away, its extension not. */
static char *short_name(const char *name)
{
        const char *dot = strrchr(name, '.');
        size_t n = strlen(name);
        char *safe, *cut, *whole;

        if (n <= NAME_LONGEST || !dot || strlen(dot) > 12)
                return fetch_safe_name(name);
        n = utf8_prefix(name, (size_t)(dot - name), UTF8_BYTES, NAME_LONGEST - strlen(dot));
        cut = mem_strndup(name, n);
        whole = mem_printf("%s%s", cut, dot);
        safe = fetch_safe_name(whole);
        free(cut);
        free(whole);
        return safe;
}

/* ---- the caller's side ---- */

struct adapter *fetch_adapter(const struct fetch *f)
{
        return f->all->adapter;
}

const char *fetch_refusal(const struct fetches *all, int64_t size)
{
        if (all->max_bytes == 0)
                return "downloads are switched off (mediaMaxBytes)";
        return size > all->max_bytes ? "it is larger than mediaMaxBytes" : NULL;
}

struct fetch *fetch_start(struct fetches *all, const struct fetch_order *o, fetched_fn *done,
                          void *arg)
{
        struct fetch *f = mem_zalloc(sizeof(*f));
        char *name = short_name(o->name ? o->name : "file");

        f->all = all;
        f->done = done;
        f->arg = arg;
        f->key = mem_strdup(o->key);
        f->path = mem_printf("channels/%s/%s/attachments/%s-%s", all->adapter->name, o->channel,
                             o->message, name);
        f->dir = mem_strdup(all->adapter->dir); /* the worker thread may outlive the adapter */
        f->since_ms = loop_now_ms(all->adapter->loop);
        free(name);
        TAILQ_INSERT_TAIL(&all->list, f, next);
        pump(all);
        return f;
}

void fetch_drop(struct fetch *f)
{
        if (!f)
                return;
        leave(f);
        if (f->question)
                f->all->forget(f->question);
        http_call_abort(f->download);
        f->all = NULL;
        if (!f->saving)
                fetch_free(f);
}
