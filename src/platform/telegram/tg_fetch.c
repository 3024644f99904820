/*
 * Attachments are downloaded before their message is handed over, so that an agent finds the file where the event says it is.
 *
 *     waiting ──► getFile ──► download ──► saved on a worker thread ──► done
 *
 * Bounded in number, size and time: when it does not work out, the message goes on without the file and says why.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/telegram/telegram.h"

#define AT_ONCE      4
#define ASK_MS       10000
#define DOWNLOAD_MS  30000
#define WAIT_MS      45000 /* for its turn */
#define NAME_LONGEST 100

struct tg_fetch {
        struct telegram *tg; /* NULL: dropped while a worker thread has it */
        tg_fetched_fn *done;
        void *arg;
        struct tg_call *ask;
        struct http_call *download;
        char *file_id, *dir, *path; /* path relative to the workspace of the data directory `dir` */
        char *bytes;
        size_t n;
        int64_t size, since_ms;
        bool running, saving;
        char why[200];
        TAILQ_ENTRY(tg_fetch) next;
};

static void pump(struct telegram *tg);

static void fetch_free(struct tg_fetch *f)
{
        free(f->file_id);
        free(f->path);
        free(f->dir);
        free(f->bytes);
        free(f);
}

static void leave(struct tg_fetch *f)
{
        TAILQ_REMOVE(&f->tg->intake.fetches, f, next);
        if (f->running)
                f->tg->intake.fetching--;
}

/* why NULL: the file is there. */
static void finish(struct tg_fetch *f, const char *why)
{
        struct telegram *tg = f->tg;

        leave(f);
        if (why)
                log_info("an attachment is not downloaded", LOG_S("adapter", tg->adapter->name),
                         LOG_S("path", f->path), LOG_S("why", why));
        f->done(f->arg, why ? NULL : f->path, (int64_t)f->n, why);
        fetch_free(f);
        pump(tg);
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
 * The folder of `path`, and the name in it. Agents may write in the workspace: a link they have put there is not followed, in no part of
 * the path. The data directory itself is the operator's, who may have moved the workspace elsewhere.
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
        struct tg_fetch *f = arg;
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
        struct tg_fetch *f = arg;

        if (!f->tg)
                fetch_free(f);
        else
                finish(f, f->why[0] ? f->why : NULL);
}

/* ---- getting it ---- */

static void on_download(void *arg, const struct http_result *r)
{
        struct tg_fetch *f = arg;

        f->download = NULL;
        if (r->kind == ERR_LIMIT)
                snprintf(f->why, sizeof(f->why), "it is larger than mediaMaxBytes");
        else if (r->status != 200 || r->kind != ERR_NONE)
                snprintf(f->why, sizeof(f->why), "the download failed: %s",
                         r->status ? "Telegram refused it" : r->why);
        if (f->why[0]) {
                log_redact(f->why);
                finish(f, f->why);
                return;
        }
        f->bytes = mem_dup(r->body, r->body_n);
        f->n = r->body_n;
        f->saving = true;
        loop_work(f->tg->adapter->loop, save, on_saved, f);
}

/* Telegram's path with each part encoded; NULL when it is none we would ask for. */
static char *encode_path(const char *path)
{
        char *copy, *rest, *part;
        struct buf out;

        if (path[0] == '/' || strstr(path, ".."))
                return NULL;
        copy = rest = mem_strdup(path);
        buf_init(&out, 0);
        while ((part = strsep(&rest, "/"))) {
                char *safe = http_escape(part);

                buf_addf(&out, "%s%s", out.len > 0 ? "/" : "", safe);
                free(safe);
        }
        free(copy);
        return buf_take(&out);
}

static void download(struct tg_fetch *f, const char *encoded)
{
        static const struct http_handlers handlers = { .on_done = on_download };
        char *url = tg_url(f->tg, "/file", encoded);

        f->download = http_start(f->tg->adapter->http,
                                 &(struct http_request){ .url = url,
                                                         .total_ms = DOWNLOAD_MS,
                                                         .max_body = (size_t)f->tg->conf->media_max_bytes,
                                                         .repeatable = true },
                                 &handlers, f);
        tg_url_free(url);
}

static void on_file(void *arg, const struct tg_answer *answer)
{
        struct tg_fetch *f = arg;
        const char *path = json_str(answer->result, "file_path", NULL);
        char *encoded = answer->ok && path ? encode_path(path) : NULL;

        f->ask = NULL;
        if (!answer->ok)
                finish(f, answer->why);
        else if (!encoded)
                finish(f, "Telegram gave no path to download it from");
        else if (json_int(answer->result, "file_size", 0) > f->tg->conf->media_max_bytes)
                finish(f, "it is larger than mediaMaxBytes");
        else
                download(f, encoded);
        free(encoded);
}

static void ask(struct tg_fetch *f)
{
        json_t *params = json_pack("{s:s}", "file_id", f->file_id);

        f->ask = tg_call_start(
                f->tg,
                &(struct tg_request){
                        .method = "getFile", .params = params, .total_ms = ASK_MS, .repeatable = true },
                on_file, f);
        json_decref(params);
}

/* ---- the queue ---- */

static void pump(struct telegram *tg)
{
        struct tg_fetch *f, *after;

        for (f = TAILQ_FIRST(&tg->intake.fetches); f && tg->intake.fetching < AT_ONCE; f = after) {
                after = TAILQ_NEXT(f, next);
                if (f->running)
                        continue;
                f->running = true;
                tg->intake.fetching++;
                if (loop_now_ms(tg->adapter->loop) - f->since_ms > WAIT_MS) {
                        finish(f, "too many downloads were waiting"); /* pumps again */
                        return;
                }
                ask(f);
        }
}

char *tg_safe_name(const char *name)
{
        char *safe = utf8_clean(name, utf8_prefix(name, strlen(name), UTF8_BYTES, NAME_LONGEST));

        for (char *p = safe; *p; p++)
                if ((unsigned char)*p < ' ' || strchr("/\\:*?\"<>|\x7f", *p) || (*p == '.' && p == safe))
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
                return tg_safe_name(name);
        n = utf8_prefix(name, (size_t)(dot - name), UTF8_BYTES, NAME_LONGEST - strlen(dot));
        cut = mem_strndup(name, n);
        whole = mem_printf("%s%s", cut, dot);
        safe = tg_safe_name(whole);
        free(cut);
        free(whole);
        return safe;
}

struct tg_fetch *tg_fetch_start(struct telegram *tg, const struct tg_fetch_order *o, tg_fetched_fn *done,
                                void *arg)
{
        struct tg_fetch *f = mem_zalloc(sizeof(*f));
        char *name = short_name(o->name ? o->name : "file");

        f->tg = tg;
        f->done = done;
        f->arg = arg;
        f->file_id = mem_strdup(o->file_id);
        f->path = mem_printf("channels/%s/%s/attachments/%s-%s", tg->adapter->name, o->channel, o->message,
                             name);
        f->dir = mem_strdup(tg->adapter->dir); /* the worker thread may outlive the adapter */
        f->since_ms = loop_now_ms(tg->adapter->loop);
        free(name);
        TAILQ_INSERT_TAIL(&tg->intake.fetches, f, next);
        pump(tg);
        return f;
}

void tg_fetch_drop(struct tg_fetch *f)
{
        if (!f)
                return;
        leave(f);
        tg_call_abort(f->ask);
        http_abort(f->download);
        f->tg = NULL;
        if (!f->saving)
                fetch_free(f);
}
